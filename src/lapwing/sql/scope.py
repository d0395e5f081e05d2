"""FROM: which tables a statement reads, and what its column names mean.

One protected table and public tables joined on their unique key. Columns get names that depend on the tables alone, never on the aliases
chosen, so that the same question asked with other aliases is the same question.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lapwing.kernel.domains import Domain
from lapwing.kernel.expressions import Expression
from lapwing.kernel.ir import JoinKind, PublicJoin, Relation, Scan


@dataclass(frozen=True, slots=True)
class Item:
    """One table of FROM: the name it is called by, and its columns by their name in the catalogue, with their name in the relation."""

    name: str
    columns: Mapping[str, str]


@dataclass(slots=True)
class PendingJoin:
    """A public join whose list of columns is known only when the whole statement was read; ``extra`` are further conditions of its ON."""

    table: str
    on: Expression
    kind: JoinKind
    columns: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Scope:
    """The columns a statement can see. ``used`` grows while expressions are bound."""

    scan: Scan
    unit_column: str | None
    items: list[Item]
    columns: dict[str, Domain]
    joins: list[PendingJoin] = field(default_factory=list)
    merged: dict[str, str] = field(default_factory=dict)
    """Columns named in USING: one name, the left one, for both sides."""
    used: set[str] = field(default_factory=set)

    def lookup(self, column: str, table: str | None) -> list[str]:
        """Names in the relation that a name in the statement can mean; letter case does not matter."""
        wanted = column.lower()
        if table is None and wanted in self.merged:
            return [self.merged[wanted]]
        items = [item for item in self.items if table is None or item.name == table.lower()]
        return [item.columns[wanted] for item in items if wanted in item.columns]

    def free_name(self, table: str, column: str) -> str:
        """A name for a joined column that no other column has."""
        candidates = [column, f"{table}_{column}"]
        number = 2
        while candidates[0] in self.columns:
            candidates.pop(0)
            if not candidates:
                candidates.append(f"{table}_{column}_{number}")
                number += 1
        return candidates[0]

    def relation(self) -> Relation:
        """The joined tables with the columns that are used, and no others."""
        source: Relation = self.scan
        for join in self.joins:
            kept = tuple((name, column) for name, column in join.columns if name in self.used)
            source = PublicJoin(source, join.table, join.on, kept, join.kind)
        return source
