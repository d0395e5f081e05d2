"""What any engine must offer. Nothing here names an engine's own types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from lapwing.catalog import Declaration
from lapwing.catalog.blocks import PreparedBlocks
from lapwing.engines.losses import Witness
from lapwing.kernel.certify import Certified
from lapwing.kernel.exact import Exact
from lapwing.kernel.expressions import Value
from lapwing.kernel.facts import Facts
from lapwing.render.dialect import SourceKind

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with what is being done, steps done and steps in all. Never called with a value from the data."""


def silent(_what: str, _done: int, _total: int) -> None:
    """A progress callback that does nothing."""


@dataclass(frozen=True, slots=True)
class BlockWrite:
    """Blocks of time that are to be written to a version, and what that takes."""

    declaration: Declaration
    blocks: tuple[int, int]
    """The first and the last; none if the first is behind the last."""
    after: PreparedBlocks
    """What the version holds afterwards."""
    ranking_key: bytes = field(repr=False)
    progress: Progress = silent
    witness: Witness | None = None

    @property
    def is_any(self) -> bool:
        """Whether there are blocks to be written."""
        return self.blocks[0] <= self.blocks[1]


@dataclass(frozen=True, slots=True)
class SourceField:
    """A column of the owner's, as the schema of its database says."""

    kind: SourceKind
    required: bool
    """Whether the schema lets no NULL in."""


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A column of one table of the owner's that points at a column of another, as the schema of their database says."""

    table: str
    column: str
    target: str
    target_column: str


class Snapshot(Protocol):
    """One prepared version, opened for reading."""

    @property
    def facts(self) -> Facts:
        """The public facts of this version."""
        ...

    def check(self, certified: Certified) -> None:
        """Refuse, before anything is charged, a plan that this snapshot cannot run."""
        ...

    def run(self, certified: Certified) -> Exact:
        """Run a certified plan. Raises Incident, and nothing else, on any fault of the engine."""
        ...

    def public_rows(self, table: str) -> Mapping[str, Sequence[Value]] | None:
        """The rows of a frozen public table, by column; None where they are too many to be read."""
        ...

    def close(self) -> None:
        """Release the engine's resources."""
        ...


class Engine(Protocol):
    """Where the versions of one data set are written and read. Holds no rows itself."""

    def versions(self) -> tuple[int, ...]:
        """Numbers of the versions that exist, oldest first."""
        ...

    def prepare(
        self,
        declaration: Declaration,
        text: str,
        *,
        version: int,
        ranking_key: bytes,
        progress: Progress,
        append_to: int | None = None,
        blocks: PreparedBlocks | None = None,
        witness: Witness | None = None,
    ) -> None:
        """Write one version from the sources, whole or not at all; ``text`` is the catalogue it is prepared with.

        ``witness`` is called with the rows and values to be left out and changed (see ``losses``) before anything is written; not for
        appends.

        With ``append_to``, an older version: tables that declare ``appended_by`` are made from the rows of that version and the rows of the
        source that came later (see ``appending``). The result is that of a preparation from nothing, for sources that only grow.

        Tables with blocks of time get the rows of ``blocks`` alone, and no other rows of theirs are read.

        Raises PreparationError with the engine's own words: the owner made this call and sees them; nothing of it reaches an analyst.
        """
        ...

    def prepared_blocks(self, version: int) -> PreparedBlocks | None:
        """The blocks of time whose rows a version holds; None of a version without blocks."""
        ...

    def write_blocks(self, version: int, write: BlockWrite) -> None:
        """Write the rows of some blocks of a version, from the sources; it then holds the blocks ``write.after``.

        Blocks that were there before are replaced (a correction); rows of blocks before ``after.first`` are deleted. All other rows of the
        version stay where they are, untouched. It happens whole or not at all, for readers too: a snapshot opened before keeps its blocks
        or, where they are gone, refuses in ``check``.
        """
        ...

    def late_rows(self, declaration: Declaration, version: int) -> dict[str, int]:
        """How many more rows than were read the sources have now in the blocks that the version holds, by table: exact, for the owner."""
        ...

    def open(self, version: int, *, ranking_key: bytes) -> Snapshot:
        """Open a version for reading."""
        ...

    def source_marks(self, declaration: Declaration) -> Mapping[str, frozenset[str]]:
        """Which rows each table is read from, independent of names in the catalogue: sources that share rows share a mark. Reads no row."""
        ...

    def stored_text(self, version: int) -> str:
        """The catalogue text a version was prepared with."""
        ...

    def retire(self, version: int) -> None:
        """Delete the rows of a version. Its number is not used again."""
        ...

    def close(self) -> None:
        """Close connections."""
        ...
