"""The second list: statements as business-intelligence tools, analysts and clients write them, each with what is to become of it.

*Answered* means that it is read, bound, planned and priced, and that its post-processing is computable: asking it would give an answer.
Nothing is charged and no row is read. *Refused* is one code. Whether answers are right is what the first list and the limit tests show.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from lapwing.client.dataset import DataSet
from lapwing.client.dataset import open as open_data_set
from lapwing.demo.write import write_demo
from lapwing.errors import LapwingError

ANSWERED = "answered"
PATIENTS = 500
"""Of the demonstration. What becomes of a statement depends on declarations, so few are enough."""
FILE = "second_list.sql"


@dataclass(frozen=True, slots=True)
class SecondListed:
    """A statement of the second list; ``expected`` is ``ANSWERED`` or the code of its refusal."""

    kind: str
    name: str
    expected: str
    sql: str


@dataclass(frozen=True, slots=True)
class SecondOutcome:
    """What became of it, in the same words."""

    listed: SecondListed
    found: str


@dataclass(frozen=True, slots=True)
class SecondScore:
    """All outcomes."""

    outcomes: tuple[SecondOutcome, ...]

    @property
    def different(self) -> list[SecondOutcome]:
        """Those that are not as expected."""
        return [outcome for outcome in self.outcomes if outcome.found != outcome.listed.expected]

    def counts(self) -> dict[str, tuple[int, int]]:
        """By kind: how many are answered, and how many there are."""
        every = Counter(outcome.listed.kind for outcome in self.outcomes)
        answered = Counter(outcome.listed.kind for outcome in self.outcomes if outcome.found == ANSWERED)
        return {kind: (answered[kind], many) for kind, many in every.items()}

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "kinds": {kind: {"answered": answered, "of": many} for kind, (answered, many) in self.counts().items()},
            "refused": {outcome.listed.name: outcome.found for outcome in self.outcomes if outcome.found != ANSWERED},
            "different": [outcome.listed.name for outcome in self.different],
        }


def second_list() -> tuple[SecondListed, ...]:
    """The list, in its order."""
    text = resources.files("lapwing.demo").joinpath(FILE).read_text(encoding="utf-8")
    return tuple(SecondListed(*entry) for entry in re.findall(r"^-- (\w+) ([\w-]+): ([\w-]+)\n(.+);$", text, re.MULTILINE))


def run_second_list(directory: Path) -> Iterator[SecondOutcome]:
    """Outcomes of all statements, on a new demonstration in an empty directory that is the caller's to delete."""
    write_demo(directory / "clinic", patients=PATIENTS)
    with open_data_set(directory / "clinic", home=directory / "registry") as data_set:
        data_set.prepare()
        for listed in second_list():
            yield SecondOutcome(listed, _found(data_set, listed.sql))


def _found(data_set: DataSet, sql: str) -> str:
    try:
        data_set.explain(sql)
    except LapwingError as error:
        return error.code
    except Exception as error:
        return f"ended-in-{type(error).__name__}"
    return ANSWERED


def as_found(text: str, outcomes: tuple[SecondOutcome, ...]) -> str:
    """The text of the list with what was found in place of what was expected."""
    for outcome in outcomes:
        head = f"-- {outcome.listed.kind} {outcome.listed.name}: "
        text = text.replace(f"{head}{outcome.listed.expected}\n", f"{head}{outcome.found}\n")
    return text
