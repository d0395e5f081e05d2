"""Windows over rows: each reads the rows of one unit only, and adds a column to every row.

A window that is not partitioned by the unit would let one unit's rows change the values of all others; it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from lapwing.errors import Refused
from lapwing.kernel.domains import Domain, Kind, is_numeric
from lapwing.kernel.expressions import Column, Expression, Function, Literal, call
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Filter, Relation, UnitWindow
from lapwing.kernel.stability import shape_of
from lapwing.kernel.unit_windows import OFFSET_MAX
from lapwing.kernel.window_columns import OrderKey, Reach, WindowColumn, WindowKind
from lapwing.sql.rows.per_unit import where_kept, within_ends
from lapwing.sql.rows.text_order import extreme
from lapwing.sql.scalars.binding import Handler, Scalars, column_name, qualifier
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.text.reader import Reader

_NUMBERED: Mapping[type[exp.Expr], WindowKind] = {
    exp.RowNumber: WindowKind.ROW_NUMBER,
    exp.Rank: WindowKind.RANK,
    exp.DenseRank: WindowKind.DENSE_RANK,
}
_NEIGHBOURING: Mapping[type[exp.Expr], WindowKind] = {exp.Lag: WindowKind.LAG, exp.Lead: WindowKind.LEAD}
_PLACED: Mapping[type[exp.Expr], WindowKind] = {exp.FirstValue: WindowKind.FIRST, exp.LastValue: WindowKind.LAST}
_MEASURED: Mapping[type[exp.Expr], WindowKind] = {exp.Min: WindowKind.MIN, exp.Max: WindowKind.MAX}


@dataclass(frozen=True, slots=True)
class Over:
    """The contents of OVER."""

    partition: tuple[Expression, ...]
    order: tuple[OrderKey, ...]
    reach: Reach
    node: exp.Expr


@dataclass(slots=True)
class UnitWindows:
    """The windows of one SELECT over rows, each once, as columns of the relation it makes."""

    rows: Scalars
    """Binds the expressions in windows."""
    facts: Facts
    source: Callable[[], Relation]
    """The rows; rebuilt on each access, because joins list only the columns used so far."""
    collected: dict[WindowColumn, str] = field(default_factory=dict)
    kept: Expression | None = None
    """The condition under which rows are kept, once the windows are known."""

    def relation(self) -> Relation:
        """The rows, with a column for each window."""
        source = self.source()
        if self.collected:
            source = UnitWindow(source, tuple((name, column) for column, name in self.collected.items()))
        return source if self.kept is None else Filter(source, self.kept)

    def keep(self, qualify: exp.Expr) -> None:
        """Keep the rows for which a condition on windows is true; it may use aliases of SELECT."""
        with self.rows.session.reading(qualify) as clause:
            kept = self.scalars().condition(clause.node_of("this"), "QUALIFY")
        if not self.collected:
            message = "QUALIFY needs a window function, and there is none"
            raise self.rows.session.refuse("window-unsupported", message, node=qualify, hint="use WHERE")
        self.kept = kept.expression

    def keep_first(self, node: exp.Expr, partition: tuple[Expression, ...], order: tuple[OrderKey, ...]) -> None:
        """Keep the first row of each partition."""
        number = self.column(node, WindowColumn(WindowKind.ROW_NUMBER, None, partition, order))
        self.kept = call(Function.EQUAL, number.expression, Literal(1, Kind.INTEGER))

    def scalars(self) -> Scalars:
        """Binds expressions over the rows that may hold windows."""
        return Scalars(
            self.rows.session,
            self.rows.scope,
            {**self.rows.handlers, exp.Window: Handler(self._window)},
            aliases=self.rows.aliases,
            answers=self.rows.answers,
        )

    def column(self, node: exp.Expr, column: WindowColumn) -> Typed:
        """The column that holds a window."""
        scope = self.rows.scope
        if column not in self.collected:
            name = scope.free_name("window", f"w{len(self.collected)}")
            self.collected[column] = name
            scope.columns[name] = self._domain(name, node)
        name = self.collected[column]
        return Typed(Column(name), scope.columns[name], node)

    def _domain(self, name: str, node: exp.Expr) -> Domain:
        try:
            return shape_of(self.relation(), self.facts).columns[name]
        except Refused as error:
            error.span = error.span or self.rows.session.source.span(node)
            raise

    # -- OVER -------------------------------------------------------------------------------------------------------------------------

    def partition(self, nodes: tuple[exp.Expr, ...], node: exp.Expr) -> tuple[Expression, ...]:
        """The expressions that partition the rows of a unit; the unit must be among the nodes."""
        listed, by_unit = list[Expression](), False
        for part in nodes:
            if self.is_unit(part):
                by_unit = True
            else:
                listed.append(self.rows.bind(part).expression)
        if not by_unit:
            scope = self.rows.scope
            unit = next((name for item in scope.items for name, column in item.columns.items() if column in scope.units), "")
            message = "a window over rows must stay within one unit, or one unit's rows would change the values of others"
            hint = (
                f"add PARTITION BY {unit}, or GROUP BY first, then a window over the answer"
                if unit
                else "select the unit's column in the subquery, too"
            )
            raise self.rows.session.refuse("window-unsupported", message, node=node, hint=hint)
        return tuple(listed)

    def is_unit(self, node: exp.Expr) -> bool:
        """Whether a node is the unit; if so, it is marked as read."""
        scope = self.rows.scope
        matches = scope.lookup(node.name, qualifier(node)) if type(node) is exp.Column else []
        if len(matches) != 1 or matches[0] not in scope.units:
            return False
        with self.rows.session.reading(node) as reader:
            column_name(self.rows.session, reader)
        return True

    def order(self, nodes: tuple[exp.Expr, ...], meant: Callable[[exp.Expr], exp.Expr] = lambda node: node) -> tuple[OrderKey, ...]:
        """The keys that order the rows of a unit, without the unit and constants, which are the same in all of them."""
        keys = []
        for node in nodes:
            with self.rows.session.reading(node) as item:
                value, descending, first = meant(item.node_of("this")), item.flag("desc"), item.flag("nulls_first")
                if not self.is_unit(value) and not isinstance(bound := self.rows.bind(value).expression, Literal):
                    keys.append(OrderKey(bound, descending, first))
        return tuple(keys)

    def _over(self, reader: Reader) -> Over:
        session, order, spec = self.rows.session, reader.optional("order"), reader.optional("spec")
        partition = self.partition(reader.many("partition_by"), reader.node)
        keys: tuple[OrderKey, ...] = ()
        if order is not None:
            with session.reading(order) as clause:
                keys = self.order(clause.many("expressions"))
        if reader.word("over").upper() not in ("", "OVER"):
            raise session.refuse("window-unsupported", "this kind of window is not supported", node=reader.node)
        reach = Reach.PEERS if order is not None else Reach.ALL
        return Over(partition, keys, reach if spec is None else self._reach(spec), reader.node)

    def _reach(self, node: exp.Expr) -> Reach:
        with self.rows.session.reading(node) as reader:
            if any(isinstance(node.args.get(end), exp.Expr) for end in ("start", "end")):
                raise self._frame(node)
            kind, start, end = reader.word("kind"), reader.word("start"), reader.word("end")
            sides = reader.word("start_side"), reader.word("end_side")
        if kind in ("ROWS", "RANGE") and (start, sides[0]) == ("UNBOUNDED", "PRECEDING"):
            if (end, sides[1]) == ("UNBOUNDED", "FOLLOWING"):
                return Reach.ALL
            if end in ("", "CURRENT ROW"):
                return Reach.ROW if kind == "ROWS" else Reach.PEERS
        raise self._frame(node)

    def _frame(self, node: exp.Expr) -> Refused:
        message = "a frame over the rows of a unit must begin at the first row and end at the current or the last row"
        hint = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        return self.rows.session.refuse("window-unsupported", message, node=node, hint=hint)

    # -- functions --------------------------------------------------------------------------------------------------------------------

    def _window(self, scalars: Scalars, reader: Reader) -> Typed:
        called, over, kept = reader.node_of("this"), self._over(reader), None
        if type(called) is exp.Filter:
            with scalars.session.reading(called) as filtered:
                called, where = filtered.node_of("this"), filtered.node_of("expression")
                with scalars.session.reading(where) as clause:
                    kept = self.rows.condition(clause.node_of("this"), "a FILTER")
                if type(called) not in (exp.Count, exp.Sum, exp.Avg, *_MEASURED):
                    raise self._unknown(called)
        with scalars.session.reading(called) as function:
            if type(called) in (exp.Count, exp.Sum, exp.Avg, *_MEASURED):
                return self._measured(scalars, function, over, kept)
            return self._placed(scalars, function, over)

    def _unknown(self, node: exp.Expr) -> Refused:
        message = "this window function is not supported over the rows of a unit"
        hint = "use ROW_NUMBER, RANK, DENSE_RANK, LAG, LEAD, FIRST_VALUE, LAST_VALUE, COUNT, SUM, AVG, MIN or MAX"
        return self.rows.session.refuse("window-unsupported", message, node=node, hint=hint)

    def _placed(self, scalars: Scalars, reader: Reader, over: Over) -> Typed:
        node, session = reader.node, self.rows.session
        if type(node) not in (*_NUMBERED, *_NEIGHBOURING, *_PLACED):
            raise self._unknown(node)
        if not over.order and type(node) is not exp.RowNumber:
            raise session.refuse(
                "window-unsupported", "this window function needs an order", node=over.node, hint="add ORDER BY inside OVER"
            )
        if type(node) in _NUMBERED:
            return self.column(node, WindowColumn(_NUMBERED[type(node)], None, over.partition, over.order))
        value = self.rows.bind(reader.node_of("this"))
        if type(node) in _PLACED:
            if type(node) is exp.LastValue and over.reach is not Reach.ALL:
                message = "LAST_VALUE of a frame that ends at the current row is the current row's value"
                hint = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
                raise session.refuse("window-unsupported", message, node=node, hint=hint)
            return self.column(node, WindowColumn(_PLACED[type(node)], value.expression, over.partition, over.order))
        offset, default = reader.optional("offset"), reader.optional("default")
        steps = 1 if offset is None else self._count(offset)
        kind = _NEIGHBOURING[type(node)]
        neighbour = self.column(node, WindowColumn(kind, value.expression, over.partition, over.order, steps))
        if default is None:
            return neighbour
        there = self.column(node, WindowColumn(kind, Literal(True, Kind.BOOLEAN), over.partition, over.order, steps))
        return scalars.case(node, [(scalars.call(node, Function.IS_NULL, there), self.rows.bind(default))], neighbour)

    def _count(self, node: exp.Expr) -> int:
        constant = self.rows.bind(node).expression
        number = constant.value if isinstance(constant, Literal) else None
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= OFFSET_MAX:
            raise self.rows.session.refuse("wrong-arguments", "a whole number of rows is needed here", node=node)
        return number

    def _measured(self, scalars: Scalars, reader: Reader, over: Over, kept: Typed | None) -> Typed:
        node, rows = reader.node, self.rows

        def measured(kind: WindowKind, value: Expression | None) -> Typed:
            ordered = over.order if over.reach is not Reach.ALL else ()
            return self.column(node, WindowColumn(kind, value, over.partition, ordered, reach=over.reach))

        argument = reader.node_of("this")
        if type(node) is exp.Count:
            reader.flag("big_int")
            if type(argument) is exp.Star:
                with rows.session.reading(argument):
                    yes = rows.constant(node, Literal(True, Kind.BOOLEAN))
                    return measured(WindowKind.COUNT, None if kept is None else where_kept(yes, kept))
            return measured(WindowKind.COUNT, where_kept(rows.bind(argument), kept))
        value = rows.bind(argument)
        if type(node) in _MEASURED:
            return extreme(rows, scalars, value, lambda ordered: measured(_MEASURED[type(node)], where_kept(ordered, kept)))
        if not is_numeric(value.domain):
            raise rows.session.refuse("type-mismatch", f"a number is needed here, not a {value.kind.value}", node=value.node)
        total = measured(WindowKind.SUM, where_kept(value, kept))
        if type(node) is exp.Sum:
            return total
        count = measured(WindowKind.COUNT, where_kept(value, kept))
        real = total if total.kind is Kind.REAL else scalars.call(node, Function.TO_REAL, total)
        return within_ends(scalars, scalars.call(node, Function.DIVIDE, real, count), value.domain)
