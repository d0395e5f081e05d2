"""The collection of catalogue mistakes in ``mistakes.txt``: an edit of the clinic catalogue, and exactly what is printed for it.

Each entry is a line ``=== name``, the lines taken out (``-``) and put in (``+``), and then the printed text.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
CLINIC = (HERE / "clinic.toml").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Mistake:
    """One entry."""

    name: str
    taken_out: str
    put_in: str
    printed: str

    def text(self) -> str:
        """The clinic catalogue with the mistake in it."""
        found = CLINIC.count(self.taken_out)
        assert found == 1, f"{self.name}: what is taken out stands in the catalogue {found} times"
        return CLINIC.replace(self.taken_out, self.put_in)


def read_mistakes() -> list[Mistake]:
    """All entries, in order."""
    entries = (HERE / "mistakes.txt").read_text(encoding="utf-8").split("=== ")[1:]
    return [_read(entry) for entry in entries]


def _read(entry: str) -> Mistake:
    name, *lines = entry.rstrip("\n").split("\n")
    split = next((number for number, line in enumerate(lines) if line[:1] not in ("-", "+")), len(lines))
    edit = lines[:split]
    return Mistake(
        name=name,
        taken_out="\n".join(line[1:] for line in edit if line.startswith("-")),
        put_in="\n".join(line[1:] for line in edit if line.startswith("+")),
        printed="\n".join(lines[split:]),
    )
