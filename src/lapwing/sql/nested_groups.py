"""GROUP BY and DISTINCT in subqueries, within units: by the unit or an identifier that one unit owns, and perhaps further keys.

A group then never has rows of different units. So groups are rows of units again: a unit has as many of them as there are combinations of
keys among its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from lapwing.kernel.expressions import Column, Function, call
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import PerUnit, Relation
from lapwing.sql.grouped import meant
from lapwing.sql.over_answers.answers import named_rows
from lapwing.sql.row_items import row_items
from lapwing.sql.rows.names import BindCatalog
from lapwing.sql.rows.per_unit import UNIT_COLUMN, UnitAggregates, unit_scope
from lapwing.sql.scalars.binding import Scalars, column_name, is_star, qualifier
from lapwing.sql.scalars.scope import Rows
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.select_list import SelectItem
from lapwing.sql.text.reader import Session, is_set

Keys: TypeAlias = tuple[tuple[str, Typed], ...]
"""The keys that group the rows of a unit, apart from the unit itself, with their names."""


@dataclass(frozen=True, slots=True)
class NestedGroups:
    """Distinguishes groups within units from groups that units share."""

    session: Session
    known: BindCatalog

    def keys(self, scalars: Scalars, conditions: list[Typed], nodes: tuple[exp.Expr, ...], items: list[SelectItem]) -> Keys | None:
        """The keys of GROUP BY besides the unit; None if no key determines the unit."""
        columns = [_columns(scalars, meant(scalars, node, items)) for node in nodes]
        if not any(self._tells_unit(scalars, conditions, name) for listed in columns for name in listed):
            return None
        keys: list[Typed] = []
        for node, listed in zip(nodes, columns, strict=True):
            key = meant(scalars, node, items)
            if any(name in scalars.scope.units for name in listed):
                with self.session.reading(key) as column:
                    column_name(self.session, column)
            else:
                keys.append(scalars.bind(key))
            self.session.read.add(id(node))
        return _named(keys)

    def distinct(
        self, scalars: Scalars, conditions: list[Typed], distinct: exp.Expr, items: list[SelectItem]
    ) -> list[tuple[str, Typed]] | None:
        """The list of SELECT DISTINCT, if it has the unit or an identifier that one unit owns; else None."""
        listed = [name for item in items for name in _columns(scalars, item.node)]
        if is_set(distinct.args.get("on")) or not any(self._tells_unit(scalars, conditions, name) for name in listed):
            return None
        with self.session.reading(distinct):
            return row_items(scalars, items)

    def _tells_unit(self, scalars: Scalars, conditions: list[Typed], name: str) -> bool:
        """Whether a column determines the unit: it is the unit, or a key on the path to it that is never NULL here."""
        scope = scalars.scope
        if name in scope.units:
            return True
        present = call(Function.NOT, call(Function.IS_NULL, Column(name)))
        never_null = not scope.columns[name].nullable or any(condition.expression == present for condition in conditions)
        return never_null and self.known.is_owned(scope.origins.get(name))


def distinct_rows(scalars: Scalars, facts: Facts, source: Relation, outputs: list[tuple[str, Typed]]) -> Rows:
    """Each combination of the listed values, once per unit."""
    units = scalars.scope.units
    keys = _named([typed for _, typed in outputs if not _is_unit(typed, units)])
    columns = {key.expression: name for name, key in keys}
    scope = unit_scope(UnitAggregates(scalars, facts, lambda: source, keys), frozenset())
    listed = [
        (name, Typed(Column(UNIT_COLUMN if _is_unit(typed, units) else columns[typed.expression]), typed.domain, typed.node))
        for name, typed in outputs
    ]
    return named_rows(PerUnit(source, (), tuple((name, key.expression) for name, key in keys)), "distinct", listed, scope)


def _is_unit(typed: Typed, units: set[str]) -> bool:
    return isinstance(typed.expression, Column) and typed.expression.name in units


def _named(keys: list[Typed]) -> Keys:
    distinct = {key.expression: key for key in keys}
    return tuple((f"g{i}", key) for i, key in enumerate(distinct.values()))


def _columns(scalars: Scalars, node: exp.Expr) -> list[str]:
    """The columns of the scope that a node names, without reading it: one, or all columns of a star."""
    scope = scalars.scope
    if is_star(node):
        return [column for item in scope.items if item.is_meant(qualifier(node)) for column in item.columns.values()]
    columns = scope.lookup(node.name, qualifier(node)) if type(node) is exp.Column else []
    return columns if len(columns) == 1 else []
