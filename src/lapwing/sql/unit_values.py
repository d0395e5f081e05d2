"""Subqueries for values of one unit: aggregates over other rows of the unit, as columns of each of its rows here.

``(SELECT COUNT(*) FROM visits v WHERE v.patient_id = p.patient_id)`` is one value per unit; with more equalities, one per unit and values
of these columns. It is joined to the rows on the unit. Where there are no rows to aggregate, a count is 0 and everything else NULL. LATERAL
is the same with several values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from lapwing.errors import Refused
from lapwing.kernel.domains import Kind, with_null
from lapwing.kernel.expressions import Column, Expression, Function, Literal, call
from lapwing.kernel.ir import JoinKind, UnitAggregateKind
from lapwing.kernel.stability import domain_of
from lapwing.sql.rows.names import BindCatalog, Environment
from lapwing.sql.rows.per_unit import UnitAggregates, unit_scalars
from lapwing.sql.rows.subqueries import Subqueries, filtered
from lapwing.sql.scalars.binding import Scalars, qualifier
from lapwing.sql.scalars.scope import Computed, Item, UnitPending
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.select_list import select_item
from lapwing.sql.text.reader import is_set
from lapwing.statements import substituted


@dataclass(frozen=True, slots=True)
class UnitValues:
    """Reads such subqueries."""

    known: BindCatalog
    subqueries: Subqueries

    def reaches_out(self, scalars: Scalars, select: exp.Expr) -> bool:
        """Whether a SELECT names a column that only the outer rows have; without reading it."""
        if type(select) is not exp.Select or not isinstance(select.args.get("from_"), exp.From):
            return False
        items = [select.args["from_"].this, *(join.this for join in select.args.get("joins") or ())]
        names = {item.alias_or_name.lower() for item in items}
        tables = [self._columns(item) for item in items]
        for column in select.find_all(exp.Column):
            by = qualifier(column)
            inside = by.table.lower() in names if by is not None else any(own is None or column.name.lower() in own for own in tables)
            if not inside and scalars.scope.lookup(column.name, by):
                return True
        return False

    def _columns(self, item: exp.Expr) -> set[str] | None:
        """The columns of a table of the catalogue; None of anything else."""
        facts = self.known.facts
        known = {**{name: table.columns for name, table in facts.tables.items()}, **{n: t.columns for n, t in facts.public_tables.items()}}
        columns = next((known[name] for name in known if type(item) is exp.Table and name.lower() == item.name.lower()), None)
        return None if columns is None else {column.lower() for column in columns}

    def value(self, scalars: Scalars, select: exp.Expr, environment: Environment) -> Typed:
        """The scalar value of a SELECT."""
        named = self.columns(scalars, select, environment)
        if len(named) != 1:
            message = "a scalar subquery must select one column"
            raise scalars.session.refuse("sql-unsupported", message, node=select)
        return named[0][1]

    def columns(self, scalars: Scalars, select: exp.Expr, environment: Environment) -> list[tuple[str, Typed]]:
        """The list of a SELECT of aggregates, by name, as expressions over the outer rows."""
        session = scalars.session
        if type(select) is not exp.Select or not is_set(select.args.get("from_")):
            raise _no_aggregate(scalars, select)
        with session.reading(select) as reader:
            reader.require_absent("with_", "group", "having", "distinct", "limit", "offset", "order", "qualify", "windows")
            inner, conditions, links, pairs = self.subqueries.correlated(scalars, reader, environment)
            links.require(select)
            if pairs.conditions:
                raise _about_pairs(scalars, pairs.conditions[0].node)
            keys = [(f"g{i}", Typed(Column(right), inner.scope.columns[right], select)) for i, (_, right) in enumerate(links.on)]
            aggregates = UnitAggregates(inner, self.known.facts, lambda: filtered(inner, conditions), tuple(keys))
            of_unit = unit_scalars(aggregates, frozenset())
            items = [select_item(session, node) for node in reader.many("expressions")]
            values = [(item.name.lower(), of_unit.bind(item.node)) for item in items]
        scope = scalars.scope
        counts = {name for aggregate, name in aggregates.collected.items() if aggregate.kind is UnitAggregateKind.COUNT}
        made: dict[str, Expression] = {}
        added = []
        for column in (*aggregates.collected.values(), *aggregates.picked.values()):
            name = scope.free_name("per_unit", column)
            scope.columns[name] = with_null(aggregates.domain(column), True)
            scope.used.add(name)
            added.append((name, column))
            made[column] = call(Function.COALESCE, Column(name), Literal(0, Kind.INTEGER)) if column in counts else Column(name)
        if not added:
            raise _no_aggregate(scalars, select)
        on = tuple((left, key) for (left, _), (key, _) in zip(links.on, keys, strict=True))
        scope.used |= {left for left, _ in on}
        scope.joins.append(UnitPending(aggregates.relation(), on, JoinKind.LEFT, tuple(added)))
        outside = [(name, substituted(typed.expression, made), typed) for name, typed in values]
        return [(name, Typed(value, domain_of(value, scope.columns), typed.node, typed.parts)) for name, value, typed in outside]

    def lateral(self, scalars: Scalars, join: exp.Expr, environment: Environment, alias: Callable[[exp.Expr], str]) -> list[Typed]:
        """Add an item of FROM that is such a SELECT; returns the conditions of ON. It has one row for each row, whatever the join."""
        session, scope = scalars.session, scalars.scope
        with session.reading(join) as clause, session.reading(clause.node_of("this")) as lateral:
            clause.require_absent("method", "using")
            side, kind, on = clause.word("side").upper(), clause.word("kind").upper(), clause.optional("on")
            name, query = alias(lateral.node_of("alias")), lateral.node_of("this")
            with session.reading(query) as brackets:
                listed = self.columns(scalars, brackets.node_of("this"), environment)
        if side not in ("", "LEFT") or kind not in ("", "INNER", "CROSS", "OUTER"):
            raise session.refuse("join-unsupported", "this kind of join is not supported", node=join)
        computed = {written: scope.free_name(name or "lateral", written) for written, _ in listed}
        for written, typed in listed:
            scope.columns[computed[written]] = typed.domain
            scope.computed[computed[written]] = Computed(typed.expression, typed.parts, is_supposed=False)
        scope.items.append(Item(name, computed))
        if on is None or on == exp.true():
            return [] if on is None else self._truth(scalars, on)
        if side == "LEFT":
            hint = "move the condition to WHERE, or into FILTER and CASE"
            raise session.refuse("join-unsupported", "the only condition of a LEFT JOIN LATERAL is TRUE", node=on, hint=hint)
        return [scalars.condition(on, "a condition of ON")]

    def _truth(self, scalars: Scalars, on: exp.Expr) -> list[Typed]:
        scalars.bind(on)
        return []


def _no_aggregate(scalars: Scalars, select: exp.Expr) -> Refused:
    message = "a scalar subquery that refers to outer rows must be an aggregate over the unit's rows"
    return scalars.session.refuse("subquery-unsupported", message, node=select, hint="aggregate the rows: MAX, SUM, COUNT(*)")


def _about_pairs(scalars: Scalars, node: exp.Expr) -> Refused:
    message = "a scalar subquery can compare its rows with the outer row only by equality"
    hint = "use a window in a subquery, such as COUNT(*) OVER (PARTITION BY ... ORDER BY ...), or JOIN and GROUP BY"
    return scalars.session.refuse("subquery-unsupported", message, node=node, hint=hint)
