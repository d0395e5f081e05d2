"""GROUP BY unit inside a statement: one row per unit, or per unit and further keys, with aggregates over that unit's own rows."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, field

from sqlglot import exp

from lapwing.kernel.domains import Domain, Kind, bounds, is_numeric, kind_of
from lapwing.kernel.expressions import Case, Column, Expression, Function, Literal
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import PerUnit, Relation, UnitAggregate, UnitAggregateKind
from lapwing.kernel.stability import shape_of
from lapwing.sql.rows.tables import UNIT_DOMAIN
from lapwing.sql.rows.text_order import extreme
from lapwing.sql.scalars.binding import Handler, Scalars, Typed, column_name, function
from lapwing.sql.scalars.same_as import same_as
from lapwing.sql.scalars.scope import Item, Origin, Scope
from lapwing.sql.text.reader import Reader

UNIT_COLUMN = "unit"

_Measured = Callable[[exp.Expr, UnitAggregateKind, Expression | None], Typed]


@dataclass(slots=True)
class UnitAggregates:
    """The aggregates of one such SELECT, each once, as columns of the relation it makes."""

    rows: Scalars
    """Binds what stands inside the aggregates."""
    facts: Facts
    source: Callable[[], Relation]
    """The rows; made again whenever asked for, because joins list only the columns that were used so far."""
    keys: tuple[tuple[str, Typed], ...] = ()
    """What the rows of a unit are grouped by further, with the columns that hold it."""
    collected: dict[UnitAggregate, str] = field(default_factory=dict)

    def column(self, kind: UnitAggregateKind, value: Expression | None) -> str:
        """The column that holds an aggregate."""
        return self.collected.setdefault(UnitAggregate(kind, value), f"u{len(self.collected)}")

    def relation(self) -> PerUnit:
        """One row per unit and keys."""
        keys = tuple((name, key.expression) for name, key in self.keys)
        return PerUnit(self.source(), tuple((name, aggregate) for aggregate, name in self.collected.items()), keys)

    def domain(self, name: str) -> Domain:
        """The domain of such a column, as the kernel derives it."""
        return shape_of(self.relation(), self.facts).columns[name]


@dataclass(slots=True)
class _GroupedScalars(Scalars):
    """Binds expressions over one row per unit and keys: what means the same as a key over the unit's rows is that key."""

    aggregates: UnitAggregates

    def bind(self, node: exp.Expr) -> Typed:
        """A key, or anything over keys and aggregates."""
        keys = self.aggregates.keys
        number = same_as(self.aggregates.rows, node, [key.expression for _, key in keys])
        if number is None:
            return super(_GroupedScalars, self).bind(node)
        name, key = keys[number]
        return Typed(Column(name), key.domain, node)


def unit_scope(aggregates: UnitAggregates, unit_names: Set[str]) -> Scope:
    """The columns of one row per unit and keys; the unit is a column in name only."""
    return Scope(
        source=aggregates.source(),
        items=[Item("", dict.fromkeys(unit_names, UNIT_COLUMN))],
        columns={UNIT_COLUMN: UNIT_DOMAIN, **{name: key.domain for name, key in aggregates.keys}},
        origins=_origins(aggregates),
        units={UNIT_COLUMN},
        virtual={UNIT_COLUMN},
    )


def unit_scalars(aggregates: UnitAggregates, unit_names: Set[str]) -> Scalars:
    """Binds expressions over one row per unit: aggregates are its columns, and the unit's own columns keep their names."""
    scope = unit_scope(aggregates, unit_names)
    of_unit = _GroupedScalars(aggregates.rows.session, scope, {}, aggregates)

    def measured(node: exp.Expr, kind: UnitAggregateKind, value: Expression | None) -> Typed:
        name = aggregates.column(kind, value)
        scope.columns[name] = aggregates.domain(name)
        scope.used.add(name)
        return Typed(Column(name), scope.columns[name], node)

    def bind(scalars: Scalars, reader: Reader) -> Typed:
        return _aggregate(aggregates, scalars, reader, None, measured)

    def bind_filter(scalars: Scalars, reader: Reader) -> Typed:
        inner, where = reader.node_of("this"), reader.node_of("expression")
        with scalars.session.reading(where) as clause:
            kept = aggregates.rows.condition(clause.node_of("this"), "a FILTER")
        with scalars.session.reading(inner) as called:
            return _aggregate(aggregates, scalars, called, kept, measured)

    def bind_column(scalars: Scalars, reader: Reader) -> Typed:
        name, table = column_name(scalars.session, reader)
        matches = aggregates.rows.scope.lookup(name, table)
        if len(matches) == 1 and matches[0] in aggregates.rows.scope.units:
            return Typed(Column(UNIT_COLUMN), UNIT_DOMAIN, reader.node)
        hint = "put it inside an aggregate such as MAX, or add it to GROUP BY"
        raise scalars.session.refuse("not-grouped", f"the column {name!r} has many values for one unit", node=reader.node, hint=hint)

    special: dict[type[exp.Expr], Handler] = {
        exp.Column: Handler(bind_column),
        exp.Filter: Handler(bind_filter),
        exp.Count: function(bind, "COUNT"),
        exp.CountIf: function(bind, "COUNT_IF", "COUNTIF"),
        exp.Sum: function(bind, "SUM"),
        exp.Avg: function(bind, "AVG"),
        exp.Min: function(bind, "MIN"),
        exp.Max: function(bind, "MAX"),
        exp.LogicalOr: function(bind, "BOOL_OR", "LOGICAL_OR"),
        exp.LogicalAnd: function(bind, "BOOL_AND", "LOGICAL_AND"),
    }
    of_unit.handlers = {**aggregates.rows.handlers, **special}
    return of_unit


def _origins(aggregates: UnitAggregates) -> dict[str, Origin]:
    """Keys that are columns of tables as they are."""
    known = aggregates.rows.scope.origins
    plain = {name: key.expression.name for name, key in aggregates.keys if isinstance(key.expression, Column)}
    return {name: known[column] for name, column in plain.items() if column in known}


def _aggregate(aggregates: UnitAggregates, scalars: Scalars, reader: Reader, kept: Typed | None, measured: _Measured) -> Typed:
    rows, node = aggregates.rows, reader.node
    if isinstance(node, exp.Count):
        reader.flag("big_int")
        argument = reader.node_of("this")
        if type(argument) is exp.Star:
            with scalars.session.reading(argument):
                if kept is None:
                    return measured(node, UnitAggregateKind.COUNT, None)
                yes = rows.constant(node, Literal(True, Kind.BOOLEAN))
                return measured(node, UnitAggregateKind.COUNT, where_kept(yes, kept))
        if type(argument) is exp.Distinct:
            raise scalars.session.refuse("distinct-unsupported", "distinct values within one unit are not counted yet", node=node)
        return measured(node, UnitAggregateKind.COUNT, where_kept(rows.bind(argument), kept))
    if isinstance(node, exp.CountIf):
        condition = rows.condition(reader.node_of("this"), "what COUNT_IF counts")
        whole = condition if kept is None else rows.call(node, Function.AND, kept, condition)
        return measured(node, UnitAggregateKind.COUNT, where_kept(rows.constant(node, Literal(True, Kind.BOOLEAN)), whole))
    value = rows.bind(reader.node_of("this"))
    match node:
        case exp.Sum() | exp.Avg():
            if not is_numeric(value.domain):
                raise scalars.session.refuse("type-mismatch", f"a number is needed here, not a {value.kind.value}", node=value.node)
            total = measured(node, UnitAggregateKind.SUM, where_kept(value, kept))
            if isinstance(node, exp.Sum):
                return total
            count = measured(node, UnitAggregateKind.COUNT, where_kept(value, kept))
            real = total if total.kind is Kind.REAL else scalars.call(node, Function.TO_REAL, total)
            return within_ends(scalars, scalars.call(node, Function.DIVIDE, real, count), value.domain)
        case exp.Min() | exp.Max():
            kind = UnitAggregateKind.MIN if isinstance(node, exp.Min) else UnitAggregateKind.MAX
            return extreme(rows, scalars, value, lambda ordered: measured(node, kind, where_kept(ordered, kept)))
        case exp.LogicalOr():
            return measured(node, UnitAggregateKind.ANY, where_kept(value, kept))
        case _:
            opposite = rows.call(node, Function.NOT, value)
            return scalars.call(node, Function.NOT, measured(node, UnitAggregateKind.ANY, where_kept(opposite, kept)))


def within_ends(scalars: Scalars, average: Typed, domain: Domain) -> Typed:
    """An average, which lies between the ends of what it is of: the division of a sum by a count does not say so by itself."""
    lower, upper = (scalars.constant(average.node, Literal(end, Kind.REAL)) for end in bounds(domain))
    clamped = scalars.call(average.node, Function.LEAST, scalars.call(average.node, Function.GREATEST, average, lower), upper)
    nothing = scalars.constant(average.node, Literal(None, Kind.REAL))
    # LEAST and GREATEST pass over NULL, and a unit without values has no average.
    return scalars.case(average.node, [(scalars.call(average.node, Function.IS_NULL, average), nothing)], clamped)


def where_kept(value: Typed, kept: Typed | None) -> Expression:
    """The value, or NULL where the FILTER is not true."""
    if kept is None:
        return value.expression
    return Case(((kept.expression, value.expression),), Literal(None, kind_of(value.domain)))
