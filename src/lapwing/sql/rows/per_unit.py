"""GROUP BY unit inside a statement: one row per unit, or per unit and further keys, with aggregates over that unit's own rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field

from sqlglot import exp

from lapwing.kernel.domains import Domain, Kind, bounds, is_numeric, kind_of, number_type
from lapwing.kernel.expressions import Case, Column, Expression, Function, Literal, call
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import (
    Filter,
    PerUnit,
    Project,
    Relation,
    UnitAggregate,
    UnitAggregateKind,
    UnitJoin,
    UnitWindow,
)
from lapwing.kernel.stability import shape_of
from lapwing.kernel.window_columns import OrderKey, WindowColumn, WindowKind
from lapwing.sql.rows.distinct_tuples import combined, several_distinct
from lapwing.sql.rows.tables import UNIT_DOMAIN
from lapwing.sql.rows.text_order import extreme
from lapwing.sql.scalars import number_types
from lapwing.sql.scalars.binding import Handler, Scalars, column_name, function
from lapwing.sql.scalars.same_as import same_as
from lapwing.sql.scalars.scope import Item, Origin, Scope
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.text.reader import Reader

UNIT_COLUMN = "unit"

_Measured = Callable[[exp.Expr, UnitAggregateKind, Expression | None], Typed]


@dataclass(slots=True)
class UnitAggregates:
    """The aggregates of one such SELECT, each once, as columns of the relation it makes."""

    rows: Scalars
    """Binds the arguments of the aggregates."""
    facts: Facts
    source: Callable[[], Relation]
    """The rows; rebuilt on each access, because joins list only the columns used so far."""
    keys: tuple[tuple[str, Typed], ...] = ()
    """Further keys that group the rows of a unit, with the columns that hold them."""
    collected: dict[UnitAggregate, str] = field(default_factory=dict)
    windows: dict[WindowColumn, str] = field(default_factory=dict)
    """Window columns over the rows of a group, which aggregates take as arguments."""
    picked: dict[WindowColumn, str] = field(default_factory=dict)
    """Window columns with one value in all rows of a group: not aggregates, but used like the results of aggregates."""

    def partition(self) -> tuple[Expression, ...]:
        """The keys of a group besides the unit."""
        return tuple(key.expression for _, key in self.keys)

    def beside(self, column: WindowColumn) -> str:
        """The column of the rows that holds a window."""
        return self.windows.setdefault(column, self.rows.scope.free_name("window", f"w{len(self.windows)}"))

    def pick(self, column: WindowColumn) -> str:
        """The column with the value of a window that is the same in all rows of a group."""
        return self.picked.setdefault(column, self.rows.scope.free_name("picked", f"p{len(self.picked)}"))

    def column(self, kind: UnitAggregateKind, value: Expression | None) -> str:
        """The column that holds an aggregate."""
        return self.collected.setdefault(UnitAggregate(kind, value), f"u{len(self.collected)}")

    def relation(self) -> Relation:
        """One row per unit and keys."""
        keys = tuple((name, key.expression) for name, key in self.keys)
        columns = tuple((name, aggregate) for aggregate, name in self.collected.items())
        if self.picked and keys:
            # A value that all rows of a group share does not split the group.
            keys += tuple((name, Column(name)) for name in self.picked.values())
            return PerUnit(self._with_windows({**self.windows, **self.picked}), columns, keys)
        aggregated = PerUnit(self._with_windows(self.windows), columns, keys)
        if not self.picked:
            return aggregated
        first = self._first_row()
        return UnitJoin(aggregated, first, (), tuple((name, name) for name in self.picked.values())) if columns else first

    def _with_windows(self, windows: Mapping[WindowColumn, str]) -> Relation:
        return UnitWindow(self.source(), tuple((name, column) for column, name in windows.items())) if windows else self.source()

    def _first_row(self) -> Relation:
        """One row of each unit, with the values that all its rows share."""
        number = self.rows.scope.free_name("picked", "first_row")
        numbered = self._with_windows({**self.picked, WindowColumn(WindowKind.ROW_NUMBER, None): number})
        first = Filter(numbered, call(Function.EQUAL, Column(number), Literal(1, Kind.INTEGER)))
        return Project(first, tuple((name, Column(name)) for name in self.picked.values()))

    def domain(self, name: str) -> Domain:
        """The domain of such a column, as the kernel derives it."""
        return shape_of(self.relation(), self.facts).columns[name]


@dataclass(slots=True)
class _GroupedScalars(Scalars):
    """Binds expressions over one row per unit and keys: an expression over the unit's rows that equals a key is that key."""

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

    def picked(node: exp.Expr, column: WindowColumn) -> Typed:
        name = aggregates.pick(column)
        scope.columns[name] = aggregates.domain(name)
        return Typed(Column(name), scope.columns[name], node)

    def bind(scalars: Scalars, reader: Reader) -> Typed:
        return _aggregate(aggregates, scalars, reader, None, measured)

    def bind_choice(scalars: Scalars, reader: Reader) -> Typed:
        return picked(reader.node, _chosen(aggregates, reader, None))

    def bind_filter(scalars: Scalars, reader: Reader) -> Typed:
        inner, where = reader.node_of("this"), reader.node_of("expression")
        with scalars.session.reading(where) as clause:
            kept = aggregates.rows.condition(clause.node_of("this"), "a FILTER")
        with scalars.session.reading(inner) as called:
            if isinstance(inner, exp.ArgMin | exp.ArgMax):
                return picked(inner, _chosen(aggregates, called, kept))
            return _aggregate(aggregates, scalars, called, kept, measured)

    def bind_column(scalars: Scalars, reader: Reader) -> Typed:
        name, table = column_name(scalars.session, reader)
        matches = aggregates.rows.scope.lookup(name, table)
        if len(matches) == 1 and matches[0] in aggregates.rows.scope.units:
            return Typed(Column(UNIT_COLUMN), UNIT_DOMAIN, reader.node)
        hint = "put it inside an aggregate such as MAX, or add it to GROUP BY"
        raise scalars.session.refuse(
            "not-grouped", f"the column {name!r} may have several values for one unit", node=reader.node, hint=hint
        )

    special: dict[type[exp.Expr], Handler] = {
        exp.Column: Handler(bind_column),
        exp.Filter: Handler(bind_filter),
        exp.Count: function(bind, "COUNT"),
        exp.CountIf: function(bind, "COUNT_IF", "COUNTIF"),
        exp.Sum: function(bind, "SUM"),
        exp.Avg: function(bind, "AVG"),
        exp.Min: function(bind, "MIN"),
        exp.Max: function(bind, "MAX"),
        exp.ArgMin: function(bind_choice, "ARG_MIN", "ARGMIN", "MIN_BY"),
        exp.ArgMax: function(bind_choice, "ARG_MAX", "ARGMAX", "MAX_BY"),
        exp.LogicalOr: function(bind, "BOOL_OR", "LOGICAL_OR"),
        exp.LogicalAnd: function(bind, "BOOL_AND", "LOGICAL_AND"),
    }
    of_unit.handlers = {**aggregates.rows.handlers, **special}
    return of_unit


def _origins(aggregates: UnitAggregates) -> dict[str, Origin]:
    """Keys that are plain columns of tables."""
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
            with scalars.session.reading(argument) as distinct:
                return _count_distinct(aggregates, scalars, _counted(rows, argument, distinct.many("expressions")), kept, measured)
        return measured(node, UnitAggregateKind.COUNT, where_kept(rows.bind(argument), kept))
    if isinstance(node, exp.CountIf):
        condition = rows.condition(reader.node_of("this"), "the argument of COUNT_IF")
        whole = condition if kept is None else rows.call(node, Function.AND, kept, condition)
        return measured(node, UnitAggregateKind.COUNT, where_kept(rows.constant(node, Literal(True, Kind.BOOLEAN)), whole))
    value = rows.bind(reader.node_of("this"))
    match node:
        case exp.Sum() | exp.Avg():
            if not is_numeric(value.domain):
                raise scalars.session.refuse("type-mismatch", f"a number is needed here, not a {value.kind.value}", node=value.node)
            total = measured(node, UnitAggregateKind.SUM, where_kept(value, kept))
            if isinstance(node, exp.Sum):
                return number_types.typed_as(total, number_types.sum_type(number_type(value.domain), scalars.session.dialect))
            count = measured(node, UnitAggregateKind.COUNT, where_kept(value, kept))
            real = total if total.kind is Kind.REAL else scalars.call(node, Function.TO_REAL, total)
            return within_ends(scalars, scalars.call(node, Function.DIVIDE, real, count), value.domain)
        case exp.Min() | exp.Max():
            kind = UnitAggregateKind.MIN if isinstance(node, exp.Min) else UnitAggregateKind.MAX
            found = extreme(rows, scalars, value, lambda ordered: measured(node, kind, where_kept(ordered, kept)))
            return number_types.typed_as(found, number_type(value.domain))
        case exp.LogicalOr():
            return measured(node, UnitAggregateKind.ANY, where_kept(value, kept))
        case _:
            opposite = rows.call(node, Function.NOT, value)
            return scalars.call(node, Function.NOT, measured(node, UnitAggregateKind.ANY, where_kept(opposite, kept)))


def _counted(rows: Scalars, node: exp.Expr, values: tuple[exp.Expr, ...]) -> Typed:
    """The argument of COUNT(DISTINCT ...): one value, or combinations in brackets."""
    if len(values) != 1:
        raise several_distinct(rows, node)
    if type(values[0]) is not exp.Tuple:
        return rows.bind(values[0])
    with rows.session.reading(values[0]) as listed:
        return combined(rows, node, [rows.bind(value) for value in listed.many("expressions")])


def _count_distinct(aggregates: UnitAggregates, scalars: Scalars, value: Typed, kept: Typed | None, measured: _Measured) -> Typed:
    """How many distinct values a group has: their largest dense rank, with NULLs last."""
    node, counted = value.node, where_kept(value, kept)
    order = (OrderKey(call(Function.IS_NULL, counted)), OrderKey(counted))
    number = Column(aggregates.beside(WindowColumn(WindowKind.DENSE_RANK, None, aggregates.partition(), order)))
    there = call(Function.NOT, call(Function.IS_NULL, counted))
    most = measured(node, UnitAggregateKind.MAX, Case(((there, number),), Literal(None, Kind.INTEGER)))
    return scalars.call(node, Function.COALESCE, most, scalars.constant(node, Literal(0, Kind.INTEGER)))


def _chosen(aggregates: UnitAggregates, reader: Reader, kept: Typed | None) -> WindowColumn:
    """ARG_MIN and ARG_MAX: the value in the first row ordered by another one. Rows in which either is NULL come last, and give NULL."""
    rows, descending = aggregates.rows, isinstance(reader.node, exp.ArgMax)
    reader.require_absent("count")
    value, by = rows.bind(reader.node_of("this")), rows.bind(reader.node_of("expression"))
    there = rows.call(reader.node, Function.NOT, rows.call(reader.node, Function.IS_NULL, by))
    found = where_kept(value, there if kept is None else rows.call(reader.node, Function.AND, kept, there))
    order = (OrderKey(call(Function.IS_NULL, found)), OrderKey(by.expression, descending))
    return WindowColumn(WindowKind.FIRST, found, aggregates.partition(), order)


def within_ends(scalars: Scalars, average: Typed, domain: Domain) -> Typed:
    """An average clamped to the range of its argument: the quotient of a sum and a count alone does not imply that range."""
    lower, upper = (scalars.constant(average.node, Literal(end, Kind.REAL)) for end in bounds(domain))
    clamped = scalars.call(average.node, Function.LEAST, scalars.call(average.node, Function.GREATEST, average, lower), upper)
    nothing = scalars.constant(average.node, Literal(None, Kind.REAL))
    # LEAST and GREATEST ignore NULL, and a unit without values has no average.
    return scalars.case(average.node, [(scalars.call(average.node, Function.IS_NULL, average), nothing)], clamped)


def where_kept(value: Typed, kept: Typed | None) -> Expression:
    """The value, or NULL where the FILTER is not true."""
    if kept is None:
        return value.expression
    return Case(((kept.expression, value.expression),), Literal(None, kind_of(value.domain)))
