"""The names other than columns that a statement can use: tables of the catalogue, and names defined by WITH."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from sqlglot import exp

from lapwing.kernel.domains import Kind, NumberType
from lapwing.kernel.expressions import Value
from lapwing.kernel.facts import Facts
from lapwing.sql.rows.algebra import Form
from lapwing.sql.scalars.scope import Origin, Qualifier, Rows
from lapwing.statements import DecidedRows, RowsAtMost

PublicRows: TypeAlias = Callable[[str], Mapping[str, Sequence[Value]] | None]


@dataclass(frozen=True, slots=True)
class BindCatalog:
    """The catalogue as far as binding needs it.

    ``unit_columns`` names each table's own column that holds the unit, where there is one. ``references`` are declared keys: from a column
    to the column of another protected table that it refers to on the path to the unit.
    """

    facts: Facts
    unit_columns: Mapping[str, str]
    references: Mapping[Origin, Origin]
    public_rows: PublicRows | None = None
    """Reads the rows of a public table, by column; None where they are too many."""

    def is_owned(self, column: Origin | None) -> bool:
        """Whether a column is a key on a declared path to the unit: preparation made sure that each value of it belongs to one unit."""
        return column is not None and (column in self.references or column in self.references.values())

    def along_key(self, left: Origin | None, right: Origin | None) -> bool:
        """Whether equality of these two columns is a step of a declared path to the unit, so that equal values mean the same unit."""
        if left is None or right is None:
            return False
        one, other = self.references.get(left), self.references.get(right)
        return one == right or other == left or (one is not None and one == other)


@dataclass(frozen=True, slots=True)
class NoisyField:
    """A column of a noisy table: its SQL name there, its type (None for NULL), and what is known about its error."""

    name: str
    kind: Kind | None
    form: Form
    mark: str | None = None
    """The column of its marks, where it has any."""
    number: NumberType | None = None
    """The type that SQL gives a number, where it is not that of its kind."""


@dataclass(frozen=True, slots=True)
class NoisyItem:
    """A subquery that is an answer: every SELECT from it is post-processing. ``sql`` is a whole SELECT over noisy tables."""

    sql: str
    fields: Mapping[str, NoisyField]
    """By name in the statement, in lower case, in order."""
    rows: RowsAtMost


@dataclass(frozen=True, slots=True)
class PublicItem:
    """A public table."""

    table: str


@dataclass(frozen=True, slots=True)
class SubqueryResult:
    """An answer that is used with rows. ``names`` are its columns, in lower case; ``rows`` is None until it is bought."""

    names: Mapping[str, int]
    kinds: tuple[Kind, ...]
    apart: frozenset[int] | None
    """Columns whose values together identify a row; None if that is not known, and empty if there is at most one row."""
    rows: DecidedRows | None


FromItem = Rows | NoisyItem | PublicItem | SubqueryResult


@dataclass(slots=True)
class Named:
    """A subquery named by WITH. It is bound once, at its first use: an answer used twice is one answer, paid for once."""

    node: exp.Expr
    inside: Environment
    bound: Rows | NoisyItem | None = None


class OuterAnswers(Protocol):
    """The answers of a SELECT around a subquery, whose WHERE may name their columns."""

    depth: int
    """Their nesting depth."""

    def find(self, name: str, table: Qualifier | None) -> list[tuple[str, NoisyField]]:
        """The columns that a name can mean: their SQL and what is known about them."""
        ...


@dataclass(slots=True)
class Environment:
    """The names that are visible at one place of a statement."""

    names: dict[str, Named] = field(default_factory=dict)
    outer: Environment | None = None
    answers: OuterAnswers | None = None
    """The answers of the enclosing SELECT, inside one of its expressions."""

    @property
    def around(self) -> OuterAnswers | None:
        """The nearest such answers."""
        return self.answers if self.answers is not None or self.outer is None else self.outer.around

    def find(self, name: str) -> Named | None:
        """The definition of a name by a WITH, here or further out."""
        here = self.names.get(name.lower())
        return here if here is not None or self.outer is None else self.outer.find(name)

    def bound(self) -> list[tuple[Named, Rows | NoisyItem | None]]:
        """Every visible name, with what it is bound to so far."""
        here = [(named, named.bound) for named in self.names.values()]
        return here if self.outer is None else [*here, *self.outer.bound()]

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Within this context names are bound anew: an answer of one statement is not an answer of another."""
        before = self.bound()
        for named, _ in before:
            named.bound = None
        try:
            yield
        finally:
            restore(before)


def restore(bound: list[tuple[Named, Rows | NoisyItem | None]]) -> None:
    """Restore what names were bound to."""
    for named, item in bound:
        named.bound = item
