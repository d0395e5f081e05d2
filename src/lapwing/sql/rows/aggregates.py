"""Aggregates of the private query: each once, in the order of first appearance."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from lapwing.errors import Span
from lapwing.kernel.domains import BooleanDomain, IntegerDomain, Kind, is_numeric, number_type
from lapwing.kernel.expressions import Column, Expression, Function, Literal
from lapwing.sql.rows import quantiles
from lapwing.sql.rows import variance_aggregates as moments
from lapwing.sql.rows.arguments import AggregateArgument, Arguments
from lapwing.sql.rows.distinct_tuples import combined, several_distinct
from lapwing.sql.scalars import number_types
from lapwing.sql.scalars.binding import Scalars, column_name, qualifier
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.text.reader import Reader, Session
from lapwing.statements import Aggregate, AggregateKind

_NAMES: dict[type[exp.Expr], frozenset[str]] = {
    exp.Count: frozenset({"COUNT"}),
    exp.CountIf: frozenset({"COUNT_IF", "COUNTIF"}),
    exp.ApproxDistinct: frozenset({"APPROX_COUNT_DISTINCT", "APPROX_DISTINCT"}),
    exp.Sum: frozenset({"SUM"}),
    exp.Avg: frozenset({"AVG"}),
    **moments.NAMES,
    **quantiles.NAMES,
}
KNOWN: tuple[type[exp.Expr], ...] = tuple(_NAMES)


_LISTS = frozenset({"STRING_AGG", "GROUP_CONCAT", "LISTAGG", "ARRAY_AGG", "LIST", "HISTOGRAM", "ANY_VALUE", "FIRST", "LAST", "ARBITRARY"})
"""Aggregates whose result holds values of rows."""


@dataclass(slots=True)
class Aggregates:
    """Collects the aggregates of one statement."""

    scalars: Scalars
    collected: list[Aggregate] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)

    @property
    def session(self) -> Session:
        """The statement being bound."""
        return self.scalars.session

    @property
    def arguments(self) -> Arguments:
        """Reads the arguments of aggregates."""
        return Arguments(self.scalars)

    def bind(self, node: exp.Expr) -> tuple[int, AggregateArgument]:
        """The number of the aggregate of a node, and the aggregate."""
        if type(node) is exp.Filter:
            with self.session.reading(node) as reader:
                inner, where = reader.node_of("this"), reader.node_of("expression")
                if type(where) is not exp.Where:
                    raise self.session.refuse("sql-unsupported", "FILTER takes only a WHERE", node=where)
                with self.session.reading(where) as condition:
                    kept = self.scalars.condition(condition.node_of("this"), "a FILTER")
                return self._bind(inner, kept, node)
        return self._bind(node, None, node)

    def _bind(self, node: exp.Expr, where: Typed | None, whole: exp.Expr) -> tuple[int, AggregateArgument]:
        if type(node) is exp.WithinGroup:
            with self.session.reading(node) as reader:
                measured = quantiles.within_group(self.arguments, reader, where)
            return self._add(measured.aggregate, whole), measured
        token = self.session.source.name_token(node)
        if type(node) not in KNOWN or (token is not None and token.text.upper() not in _NAMES[type(node)]):
            name = self.session.source.called_name(node).upper()
            message = f"the aggregate {name} is not supported" if name else "this aggregate is not supported"
            hint = "the SQL reference lists those that are"
            if name in _LISTS:
                message, hint = (
                    f"{name} would show the values of single rows",
                    "GROUP BY the column with COUNT(*): values that many units share are shown",
                )
            raise self.session.refuse("aggregate-unsupported", message, node=node, hint=hint)
        with self.session.reading(node) as reader:
            measured = self._aggregate(reader, where)
        return self._add(measured.aggregate, whole), measured

    def total_and_count(self, node: exp.Expr, whole: exp.Expr) -> tuple[int, int]:
        """The numbers of SUM and COUNT of a column of whole numbers."""
        value, where = self.arguments.value(node, None)
        self._require_number(value, AggregateKind.SUM)
        total = self._add(Aggregate(AggregateKind.SUM, value.expression, _of(where)), whole)
        return total, self._add(Aggregate(AggregateKind.COUNT, value.expression, _of(where)), whole)

    def is_whole(self, node: exp.Expr) -> bool:
        """Whether a column holds whole numbers."""
        columns = self.scalars.scope.lookup(node.name, qualifier(node))
        return len(columns) == 1 and isinstance(self.scalars.scope.columns[columns[0]], IntegerDomain)

    def _add(self, aggregate: Aggregate, node: exp.Expr) -> int:
        if aggregate not in self.collected:
            limit = self.session.settings.aggregates_max
            if len(self.collected) == limit:
                raise self.session.refuse("too-many-aggregates", f"a statement may have at most {limit} aggregates", node=node)
            self.collected.append(aggregate)
            self.spans.append(self.session.source.span(node))
        return self.collected.index(aggregate)

    def _aggregate(self, reader: Reader, where: Typed | None) -> AggregateArgument:
        node = reader.node
        if type(node) in moments.NAMES:
            return AggregateArgument(*moments.moment(self.arguments, reader, where))
        if type(node) in quantiles.NAMES:
            return quantiles.quantile(self.arguments, reader, where)
        argument = reader.node_of("this")
        match node:
            case exp.Count():
                reader.flag("big_int")  # counts are 64-bit integers
                return AggregateArgument(self._count(argument, where), Kind.INTEGER)
            case exp.ApproxDistinct():
                # only the noise makes it approximate
                return AggregateArgument(self._count_distinct(node, (argument,), where), Kind.INTEGER)
            case exp.CountIf():
                condition = self.scalars.condition(argument, "the argument of COUNT_IF")
                counted = Aggregate(AggregateKind.COUNT, None, self.arguments.both(node, where, condition).expression)
                return AggregateArgument(counted, Kind.INTEGER)
            case _:
                kind = AggregateKind.SUM if isinstance(node, exp.Sum) else AggregateKind.AVG
                value, where = self.arguments.value(argument, where)
                self._require_number(value, kind)
                whole = kind is AggregateKind.SUM and value.kind is Kind.INTEGER
                number, dialect = number_type(value.domain), self.session.dialect
                type_of = number_types.sum_type if kind is AggregateKind.SUM else number_types.average_type
                measured = Aggregate(kind, value.expression, _of(where))
                return AggregateArgument(measured, Kind.INTEGER if whole else Kind.REAL, number=type_of(number, dialect))

    def _count(self, argument: exp.Expr, where: Typed | None) -> Aggregate:
        if type(argument) is exp.Star:
            with self.session.reading(argument):
                return Aggregate(AggregateKind.COUNT, None, _of(where))
        if type(argument) is exp.Distinct:
            with self.session.reading(argument) as distinct:
                return self._count_distinct(argument, distinct.many("expressions"), where)
        unit = self._unit(argument)
        if unit is not None and unit in self.scalars.scope.units:
            return Aggregate(AggregateKind.COUNT, None, _of(where))  # the unit is never NULL
        if unit is not None:
            return Aggregate(AggregateKind.COUNT, None, self.arguments.both(argument, where, self._present(argument, unit)).expression)
        value, where = self.arguments.value(argument, where)
        if value.is_null:
            raise self.session.refuse("null-constant", "NULL is never counted", node=argument)
        constant = isinstance(value.expression, Literal)
        return Aggregate(AggregateKind.COUNT, None if constant else value.expression, _of(where))

    def _count_distinct(self, node: exp.Expr, values: tuple[exp.Expr, ...], where: Typed | None) -> Aggregate:
        if len(values) != 1:
            raise several_distinct(self.scalars, node)
        if type(values[0]) is exp.Tuple:
            with self.session.reading(values[0]) as listed:
                return self._count_combinations(node, listed.many("expressions"), where)
        unit = self._unit(values[0])
        if unit is not None:
            scope = self.scalars.scope
            if unit in scope.units:
                return Aggregate(AggregateKind.COUNT_UNITS, None, _of(where))
            present = self._present(values[0], unit)
            return Aggregate(AggregateKind.COUNT_UNITS, None, self.arguments.both(node, where, present).expression)
        value, where = self.arguments.value(values[0], where)
        if isinstance(value.expression, Column) and value.expression.name in self.scalars.scope.units:
            return Aggregate(AggregateKind.COUNT_UNITS, None, _of(where))
        if value.kind is Kind.REAL:
            hint = "round it to an integer first, or count its bins"
            raise self.session.refuse("distinct-unsupported", "distinct real numbers cannot be counted", node=node, hint=hint)
        if isinstance(value.expression, Literal):
            raise self.session.refuse("distinct-unsupported", "a constant has only one value", node=node)
        return Aggregate(AggregateKind.COUNT_DISTINCT, value.expression, _of(where))

    def _count_combinations(self, node: exp.Expr, values: tuple[exp.Expr, ...], where: Typed | None) -> Aggregate:
        if any(self._unit(value) is not None for value in values):
            hint = "count the rows of a subquery: SELECT COUNT(*) FROM (SELECT DISTINCT ... FROM ...)"
            raise self.session.refuse(
                "distinct-unsupported", "combinations that include the unit cannot be counted like this", node=node, hint=hint
            )
        whole = combined(self.scalars, node, [self.scalars.bind(value) for value in values])
        return Aggregate(AggregateKind.COUNT_DISTINCT, whole.expression, _of(where))

    def _unit(self, node: exp.Expr) -> str | None:
        """The unit column that a node names, or None."""
        if type(node) is not exp.Column:
            return None
        matches = self.scalars.scope.lookup(node.name, qualifier(node))
        if len(matches) != 1 or matches[0] not in self.scalars.scope.units | self.scalars.scope.optional_units:
            return None
        with self.session.reading(node) as reader:
            column_name(self.session, reader)
        return matches[0]

    def _present(self, node: exp.Expr, unit: str) -> Typed:
        """The condition that a LEFT JOIN found a row of the unit."""
        scope = self.scalars.scope
        if unit in scope.virtual:
            hint = "use JOIN, or test another column of the subquery for NULL"
            raise self.session.refuse(
                "join-unsupported", "where LEFT JOIN finds no row, the unit of the joined side is unknown", node=node, hint=hint
            )
        scope.used.add(unit)
        typed = Typed(Column(unit), scope.columns[unit], node)
        return self.scalars.call(node, Function.NOT, self.scalars.call(node, Function.IS_NULL, typed))

    def _require_number(self, value: Typed, kind: AggregateKind) -> None:
        if is_numeric(value.domain):
            return
        hint = ""
        if isinstance(value.domain, BooleanDomain):
            hint = "use COUNT_IF(...), or CASE WHEN ... THEN 1.0 ELSE 0 END"
        message = f"{kind.name} needs a number, not a {value.kind.value}"
        raise self.session.refuse("type-mismatch", message, node=value.node, hint=hint)


def _of(typed: Typed | None) -> Expression | None:
    return None if typed is None else typed.expression
