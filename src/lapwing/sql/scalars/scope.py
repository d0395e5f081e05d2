"""The scope of a FROM clause, and the meaning of column names in it.

Columns get names that depend only on the tables, never on the aliases, so that a question with other aliases is the same question.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from lapwing.kernel.domains import Domain
from lapwing.kernel.expressions import Expression
from lapwing.kernel.ir import JoinKind, PublicJoin, Relation, SemiJoin, UnitJoin
from lapwing.kernel.shapes import NAME_BYTES_MAX

Origin: TypeAlias = tuple[str, str]
"""The table and column of the catalogue that a column's values come from unchanged."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of units: a protected table, or a subquery over some.

    ``names`` maps the columns' names in a statement (in lower case) to those in the relation. ``units`` are the columns that
    hold the unit. A unit column may be *virtual*: one row per unit has a unit, but no column for it.
    """

    relation: Relation
    label: str
    columns: Mapping[str, Domain]
    names: Mapping[str, str]
    origins: Mapping[str, Origin]
    units: frozenset[str]
    virtual: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    """Columns of the relation that have no name in the statement here; no other column may take their names."""


@dataclass(frozen=True, slots=True)
class Qualifier:
    """The qualifier of a column's name: a table, optionally with the schema of all tables of the catalogue."""

    table: str
    schema: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """One item of FROM: its name, and its columns by their name in the statement, with their name in the relation."""

    name: str
    columns: Mapping[str, str]
    in_schema: bool = False
    """Whether it is a table of the catalogue under its own name, so that the schema may qualify it."""

    def is_meant(self, by: Qualifier | None) -> bool:
        """Whether a column with this qualifier can be one of its columns; letter case does not matter."""
        return by is None or (self.name == by.table.lower() and (self.in_schema or not by.schema))


@dataclass(frozen=True, slots=True)
class PublicPending:
    """A public join whose list of columns is known only once the whole statement has been read."""

    table: str
    on: Expression
    kind: JoinKind
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class UnitPending:
    """A join to other rows of the same unit, whose list of columns is known only then, too."""

    right: Relation
    on: tuple[tuple[str, str], ...]
    kind: JoinKind
    columns: tuple[tuple[str, str], ...]
    where: Expression | None = None


@dataclass(frozen=True, slots=True)
class SemiPending:
    """A condition on other rows of the unit."""

    other: Relation
    on: tuple[tuple[str, str], ...]
    negated: bool
    columns: tuple[tuple[str, str], ...] = ()
    where: Expression | None = None


Pending: TypeAlias = PublicPending | UnitPending | SemiPending


@dataclass(frozen=True, slots=True)
class Computed:
    """The definition of a column that is in no relation; ``is_supposed`` if its values are not bought yet."""

    expression: Expression
    parts: int
    is_supposed: bool


@dataclass(slots=True)
class Scope:
    """The columns a SELECT over rows can see. ``used`` grows while expressions are bound."""

    source: Relation
    items: list[Item]
    columns: dict[str, Domain]
    origins: dict[str, Origin] = field(default_factory=dict)
    units: set[str] = field(default_factory=set)
    """Columns that hold the unit in every row."""
    virtual: set[str] = field(default_factory=set)
    """Those of ``units`` and ``optional_units`` that are not columns of the relation."""
    optional_units: set[str] = field(default_factory=set)
    """Columns that hold the unit, or NULL where a LEFT JOIN found nothing."""
    joins: list[Pending] = field(default_factory=list)
    merged: dict[str, str] = field(default_factory=dict)
    """Columns named in USING: the left column stands for both sides."""
    used: set[str] = field(default_factory=set)
    conditions: list[Expression] = field(default_factory=list)
    """Conditions that replace subqueries of WHERE."""
    hidden: frozenset[str] = frozenset()
    """Columns of the first item that have no name here."""
    computed: dict[str, Computed] = field(default_factory=dict)
    """Columns that no relation has: those of an answer that was joined, or of LATERAL, each an expression over the others."""

    @classmethod
    def over(cls, rows: Rows, name: str, *, in_schema: bool = False) -> Scope:
        """The scope of a single item."""
        return cls(
            source=rows.relation,
            items=[Item(name, dict(rows.names), in_schema)],
            columns=dict(rows.columns),
            origins=dict(rows.origins),
            units=set(rows.units),
            virtual=set(rows.virtual),
            hidden=rows.hidden,
        )

    def lookup(self, column: str, table: Qualifier | None) -> list[str]:
        """Names in the relation that a name in the statement can mean; letter case does not matter."""
        lowered = column.lower()
        if table is None and lowered in self.merged:
            return [self.merged[lowered]]
        return [item.columns[lowered] for item in self.items if item.is_meant(table) and lowered in item.columns]

    def has_item(self, table: Qualifier) -> bool:
        """Whether an item has this name."""
        return any(item.is_meant(table) for item in self.items)

    def free_name(self, label: str, column: str) -> str:
        """A name for a joined column that no other column has."""
        taken = {name.casefold() for name in (*self.columns, *self.hidden)}
        candidates = [column, f"{label}_{column}"]
        number = 2
        while candidates[0].casefold() in taken or len(candidates[0].encode()) > NAME_BYTES_MAX:
            candidates.pop(0)
            if not candidates:
                longest = NAME_BYTES_MAX - len(f"_{number}")
                candidates.append(f"{label}_{column}".encode()[:longest].decode(errors="ignore") + f"_{number}")
                number += 1
        return candidates[0]

    def relation(self) -> Relation:
        """The joined tables with the columns that are used, and no others."""
        source = self.source
        for join in self.joins:
            match join:
                case PublicPending(table, on, kind, columns):
                    source = PublicJoin(source, table, on, self._kept(columns), kind)
                case UnitPending(right, on, kind, columns, where):
                    source = UnitJoin(source, right, on, self._kept(columns), kind, where)
                case SemiPending(other, on, negated, columns, where):
                    source = SemiJoin(source, other, on, negated, columns, where)
        return source

    def _kept(self, columns: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        return tuple((name, column) for name, column in columns if name in self.used)
