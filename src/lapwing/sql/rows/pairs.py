"""Conditions inside EXISTS that compare an outer row with an inner row, such as a later day."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from lapwing.kernel.expressions import Expression, columns_of
from lapwing.sql.rows.joins import both
from lapwing.sql.scalars.binding import Scalars, qualifier
from lapwing.sql.scalars.scope import Item, Qualifier, Scope
from lapwing.sql.scalars.typed import Typed


@dataclass(slots=True)
class _PairScope(Scope):
    """Columns of two rows: a name means a column of the inner one if it can, else one of the outer."""

    outside: Scope | None = None

    def lookup(self, column: str, table: Qualifier | None) -> list[str]:
        """Names of columns of the pair."""
        nearer = super(_PairScope, self).lookup(column, table)
        return nearer if nearer or self.outside is None else self.outside.lookup(column, table)

    def has_item(self, table: Qualifier) -> bool:
        """Whether an item inside or outside has this name."""
        return super(_PairScope, self).has_item(table) or (self.outside is not None and self.outside.has_item(table))


@dataclass(slots=True)
class Pairs:
    """Collects such conditions of one EXISTS; the columns that they read are noted in the scope of each row."""

    outer: Scalars
    inner: Scalars
    conditions: list[Typed] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """Columns of the inner row, with their names in a pair."""

    def reaches_out(self, node: exp.Expr) -> bool:
        """Whether a condition names a column that only a row outside has."""
        unknown = [column for column in node.find_all(exp.Column) if not self.inner.scope.lookup(column.name, qualifier(column))]
        return any(self.outer.scope.lookup(column.name, qualifier(column)) for column in unknown)

    def add(self, node: exp.Expr) -> None:
        """Read a condition."""
        scope = self._scope()
        self.conditions.append(Scalars(self.outer.session, scope, self.outer.handlers).condition(node, "WHERE"))
        self.inner.scope.used |= {column for column, name in self.names.items() if name in scope.used}
        self.outer.scope.used |= scope.used & set(self.outer.scope.columns)

    def columns(self) -> tuple[tuple[str, str], ...]:
        """The columns of the inner row that conditions read, as (name, column)."""
        read = {name for condition in self.conditions for name in columns_of(condition.expression)}
        return tuple((name, column) for column, name in self.names.items() if name in read)

    def condition(self) -> Expression | None:
        """All conditions as one."""
        return both(self.outer, self.conditions)

    def _scope(self) -> Scope:
        outside, inside = self.outer.scope, self.inner.scope
        taken = Scope(outside.source, [], dict(outside.columns), hidden=outside.hidden)
        for column, domain in inside.columns.items():
            name = self.names.setdefault(column, taken.free_name("inside", column))
            taken.columns[name] = domain
        return _PairScope(
            source=outside.source,
            items=[
                Item(item.name, {written: self.names[column] for written, column in item.columns.items()}, item.in_schema)
                for item in inside.items
            ],
            columns=taken.columns,
            virtual={*outside.virtual, *(self.names[column] for column in inside.virtual)},
            merged={written: self.names[column] for written, column in inside.merged.items()},
            computed=outside.computed,
            outside=outside,
        )
