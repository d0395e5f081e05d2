"""What generated statements are made of: expressions over aggregates, sources of rows, and the statement itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lapwing.kernel.domains import Domain


@dataclass(frozen=True, slots=True)
class Piece:
    """An expression over aggregates: as asked, and for the bare engine, where a sum of nothing must be asked to be 0."""

    sql: str
    reference: str
    whole: bool
    """Always an integer."""
    sharp: bool
    """Made of counts and of sums of integers or stored reals only, so that noise of 0 means an exact value."""

    def wrapped(self, pattern: str, *, whole: bool | None = None) -> Piece:
        """The pattern with both forms put in its braces."""
        return Piece(pattern.format(self.sql), pattern.format(self.reference), self.whole if whole is None else whole, self.sharp)


@dataclass(frozen=True, slots=True)
class Generated:
    """A statement. Its first ``keys`` outputs are the keys, the others are ``outputs``."""

    text: str
    unlimited: str
    """The same without LIMIT and OFFSET."""
    reference: str
    """``unlimited`` for the bare engine."""
    existing: str | None
    """For the bare engine: the keys of all groups that have a row, whatever HAVING says, and the list of their units if wanted."""
    keys: int
    outputs: tuple[Piece, ...]
    table: str
    discovered: bool
    """Some key has no declared values."""
    limit: int | None
    offset: int

    @property
    def sharp(self) -> bool:
        """Whether every output is."""
        return all(output.sharp for output in self.outputs)


@dataclass(frozen=True, slots=True)
class Source:
    """What a statement is about: what stands in FROM, with the columns and conditions that fit it."""

    table: str
    sql: str
    columns: Mapping[str, Domain]
    """By how an expression writes them."""
    unit: str | None = None
    """The unit's column, likewise."""
    bare_unit: str | None = None
    """The column of the bare engine that holds the unit."""
    conditions: tuple[str, ...] = ()
    """Conditions with subqueries; they can stand only between the ANDs of WHERE."""
    prefix: str = ""
    """A WITH."""
