"""Bound statements: private queries, and the post-processing of their noisy answers.

The SQL front end makes these and planning turns the private part into a plan. Nothing here is trusted: a mistake can give a wrong answer,
never an uncharged one, because only the finished plan is certified and run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import TypeAlias, assert_never

from lapwing.errors import Span
from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Call, Case, Column, Expression, Function, Literal, Value
from lapwing.kernel.ir import Filter, PerUnit, Project, PublicJoin, Relation, Scan, SemiJoin, Union, UnitJoin, UnitWindow
from lapwing.kernel.workload import parts_of

DecidedRows: TypeAlias = tuple[tuple[Value, ...], ...]
"""The rows of an answer that was bought to decide which rows of protected tables count, as constants."""
ROW = "_row"
"""The column of a noisy table that numbers its rows."""


class AggregateKind(Enum):
    """The aggregates of the private part."""

    COUNT = "count"
    """Rows, or non-NULL values when there is a value."""
    COUNT_UNITS = "count_units"
    """Distinct units."""
    COUNT_DISTINCT = "count_distinct"
    """Distinct non-NULL values."""
    SUM = "sum"
    AVG = "avg"
    VAR_SAMP = "var_samp"
    VAR_POP = "var_pop"
    STDDEV_SAMP = "stddev_samp"
    STDDEV_POP = "stddev_pop"
    COVAR_SAMP = "covar_samp"
    """From here on of two values: rows where neither is NULL."""
    COVAR_POP = "covar_pop"
    CORR = "corr"
    REGR_SLOPE = "regr_slope"
    REGR_INTERCEPT = "regr_intercept"
    REGR_R2 = "regr_r2"
    QUANTILE_CONT = "quantile_cont"
    """Interpolated between two rows; MEDIAN is one."""
    QUANTILE_DISC = "quantile_disc"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of a private query; ``where`` is its FILTER, ``second`` the x of REGR_SLOPE(y, x). Equal aggregates appear once."""

    kind: AggregateKind
    value: Expression | None = None
    where: Expression | None = None
    second: Expression | None = None
    share: Fraction | None = None
    """Which quantile: from 0 to 1."""


QUANTILES = frozenset({AggregateKind.QUANTILE_CONT, AggregateKind.QUANTILE_DISC, AggregateKind.MIN, AggregateKind.MAX})
"""Aggregates by selection: their error is known in ranks, which does not imply an interval of values."""


def quantile_kind(kind: AggregateKind, value: Kind) -> Kind:
    """What a quantile of values of a kind is: interpolation makes reals of whole numbers, and moments of days."""
    if kind is not AggregateKind.QUANTILE_CONT:
        return value
    return Kind.TIMESTAMP if value in (Kind.DATE, Kind.TIMESTAMP) else Kind.REAL


@dataclass(frozen=True, slots=True)
class PrivateQuery:
    """The only kind of part that touches protected rows. Every Scan stands at its table's cap; planning lowers it.

    ``groups`` lists the groups if the statement itself determines them; otherwise they are declared or discovered. ``levels`` are
    the groupings that are shown, each as the numbers of its keys (ROLLUP and the like); all but the finest are sums of noisy groups.
    """

    source: Relation
    keys: tuple[tuple[str, Expression], ...]
    aggregates: tuple[Aggregate, ...]
    groups: tuple[tuple[Value, ...], ...] | None = None
    levels: tuple[tuple[int, ...], ...] | None = None


class CellMark(Enum):
    """The reason why a cell of an answer is not an ordinary value; least severe first. In SQL over noisy tables it is its ``code``, else
    0."""

    SCALED = "scaled"
    """A group measured at a low bound and scaled to a total by a model, on request. Otherwise an ordinary value."""
    SIZE_UNKNOWN = "size_unknown"
    """A quantile without any release on the number of its rows."""
    NOISE_ONLY = "noise_only"
    """A count or a sum that is no larger than its own noise. The value is kept; it is used neither for sorting nor as a divisor."""
    MEANINGLESS = "meaningless"
    """An average, a ratio, a moment or a quantile with too few rows to be informative. The value is withheld: it is NULL."""

    @property
    def code(self) -> int:
        """Its number, from 1 on."""
        return _MARK_CODES[self]


_MARK_CODES = {mark: number for number, mark in enumerate(CellMark, start=1)}


@dataclass(frozen=True, slots=True)
class Noisy:
    """Aggregate number ``index`` of private query number ``query``."""

    query: int
    index: int


@dataclass(frozen=True, slots=True)
class KeyOutput:
    """The output is key number ``key``."""

    key: int


@dataclass(frozen=True, slots=True)
class LinearOutput:
    """The output is scale * aggregate + shift."""

    aggregate: Noisy
    scale: Fraction = Fraction(1)
    shift: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class RatioOutput:
    """The output is scale * numerator / denominator, both aggregates."""

    numerator: Noisy
    denominator: Noisy
    scale: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class ComputedOutput:
    """Anything else computed from the noisy columns: no error bar is given."""


@dataclass(frozen=True, slots=True)
class QuantileOutput(ComputedOutput):
    """A quantile as it is. Where it was selected no error bar follows; where it is read off counts, the counts give one."""

    aggregate: Noisy


Derivation: TypeAlias = KeyOutput | LinearOutput | RatioOutput | ComputedOutput


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the answer. ``sql`` is DuckDB SQL over the noisy tables q0, q1, .. and their columns k0, k1, .. and a0, a1, .."""

    name: str
    sql: str
    derivation: Derivation
    mark: str | None = None
    """SQL for the code of its mark; None for what does not come from noisy values."""


@dataclass(frozen=True, slots=True)
class RowsAtMost:
    """A bound on rows of post-processing: ``many`` times the groups of each of these private queries."""

    many: int = 1
    queries: tuple[int, ...] = ()

    def __mul__(self, other: RowsAtMost) -> RowsAtMost:
        return RowsAtMost(self.many * other.many, (*self.queries, *other.queries))

    def given(self, groups: Sequence[int | None]) -> int | None:
        """The number, from the number of groups of each query; None if unknown."""
        known = [groups[query] if query < len(groups) else None for query in self.queries]
        return None if None in known else math.prod((max(number or 0, 1) for number in known), start=self.many)


@dataclass(frozen=True, slots=True)
class PostProcess:
    """Post-processing of noisy tables: joins, HAVING, ORDER BY, LIMIT, expressions over aggregates. It has no other input."""

    outputs: tuple[Output, ...]
    source: str = "q0"
    """The FROM clause over the noisy tables; empty if there is none."""
    rows_of: int | None = 0
    """The private query whose groups are the rows of ``source``, one for one; None for rows of other origin."""
    where: str | None = None
    group_by: tuple[str, ...] = ()
    having: str | None = None
    qualify: str | None = None
    """A condition on windows: which rows are kept once they are computed."""
    distinct: bool = False
    distinct_on: tuple[str, ...] = ()
    """Of rows that agree in all of these the first is kept."""
    order_by: tuple[str, ...] = ()
    limit: int | None = None
    percent: int | None = None
    """The share of the rows that is kept, in place of a number of them."""
    offset: int = 0
    aggregates: bool = False
    """Of a whole statement: whether answers are aggregated again, here or in a subquery."""
    crossed: tuple[RowsAtMost, ...] = ()
    """Of a whole statement: the joins that pair any row with any row, by how many pairs there are at most."""

    @property
    def computes_over_rows(self) -> bool:
        """Whether something is computed over several rows of answers: aggregates or windows."""
        return self.aggregates or " OVER (" in self.sql(numbered=False)

    @property
    def marked(self) -> tuple[int, ...]:
        """The outputs that have marks, by number. Rows that DISTINCT merges may differ in theirs, so none are given then."""
        return () if self.distinct else tuple(i for i, output in enumerate(self.outputs) if output.mark is not None)

    def sql(self, *, numbered: bool, marked: tuple[int, ...] = ()) -> str:
        """The whole as one SELECT with columns c0, c1, .., and behind them m0, m1, .. for the marks of the outputs numbered in ``marked``.

        ``numbered``: where rows are those of one noisy table, the number of the row there is the last column and decides ties.
        """
        listed = [f"{output.sql} AS c{i}" for i, output in enumerate(self.outputs)]
        listed += [f"{self.outputs[i].mark or 0} AS m{i}" for i in marked]
        order = list(self.order_by)
        if numbered and self.rows_of is not None and not self.distinct:
            listed.append(f"q{self.rows_of}.{ROW}")
            order.append(f"q{self.rows_of}.{ROW}")
        on = f"DISTINCT ON ({', '.join(self.distinct_on)}) " if self.distinct_on else ""
        parts = [f"SELECT {'DISTINCT ' if self.distinct else on}{', '.join(listed)}"]
        parts += [f"FROM {self.source}"] if self.source else []
        parts += [f"WHERE {self.where}"] if self.where is not None else []
        parts += [f"GROUP BY {', '.join(self.group_by)}"] if self.group_by else []
        parts += [f"HAVING {self.having}"] if self.having is not None else []
        parts += [f"QUALIFY {self.qualify}"] if self.qualify is not None else []
        parts += [f"ORDER BY {', '.join(order)}"] if order else []
        parts += [f"LIMIT {self.limit}"] if self.limit is not None else []
        parts += [f"LIMIT {self.percent}%"] if self.percent is not None else []
        parts += [f"OFFSET {self.offset}"] if self.offset else []
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Statement:
    """A bound statement. Without private queries it is answered from declarations alone, and is free."""

    text: str
    privates: tuple[PrivateQuery, ...]
    post: PostProcess
    spans: tuple[tuple[str, Span], ...] = ()
    """Places of named parts in the text, for messages: q0.k0, q0.a0 and so on."""
    notes: tuple[str, ...] = ()
    """Notes for the author from reading the statement."""
    first: tuple[Statement, ...] = ()
    """Answers that decide which rows count, to be bought before it, in this order. Without their rows the statement is only *supposed*:
    conditions that they decide are left out, and where a value of theirs is computed with, another one stands for it."""

    @property
    def private(self) -> PrivateQuery:
        """The private query of a statement that has one."""
        (query,) = self.privates
        return query


def expressions_of(relation: Relation) -> Iterator[Expression]:
    """Every expression that a relation computes on its way."""
    for part in parts_of(relation):
        match part:
            case Filter(_, predicate):
                yield predicate
            case Project(_, columns):
                yield from (value for _, value in columns)
            case PublicJoin(_, _, on):
                yield on
            case PerUnit(_, aggregates, keys):
                yield from (value for _, value in keys)
                yield from (item.value for _, item in aggregates if item.value is not None)
            case UnitWindow(_, windows):
                for _, item in windows:
                    yield from item.partition
                    yield from (key.value for key in item.order)
                    yield from () if item.value is None else (item.value,)
            case UnitJoin() | SemiJoin():
                yield from () if part.where is None else (part.where,)
            case Scan() | Union():
                pass
            case _:
                assert_never(part)


def with_sources(relation: Relation, change: Callable[[Relation], Relation]) -> Relation:
    """The relation with each of its direct sources changed."""
    match relation:
        case Scan():
            return relation
        case Filter(source) | Project(source) | PublicJoin(source) | PerUnit(source) | UnitWindow(source):
            return replace(relation, source=change(source))
        case UnitJoin(left, right):
            return replace(relation, left=change(left), right=change(right))
        case SemiJoin(source, other):
            return replace(relation, source=change(source), other=change(other))
        case Union(sources):
            return Union(tuple(change(source) for source in sources))
        case _:
            assert_never(relation)


def with_scans(relation: Relation, change: Callable[[Scan], Scan]) -> Relation:
    """The relation with each of its scans changed."""
    return change(relation) if isinstance(relation, Scan) else with_sources(relation, lambda source: with_scans(source, change))


MIRRORED = {
    Function.LESS: Function.GREATER,
    Function.LESS_EQUAL: Function.GREATER_EQUAL,
    Function.GREATER: Function.LESS,
    Function.GREATER_EQUAL: Function.LESS_EQUAL,
}
"""The comparison with its sides exchanged."""


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """The parts of a condition that must all be true."""
    if isinstance(expression, Call) and expression.function is Function.AND:
        return tuple(part for argument in expression.arguments for part in conjuncts(argument))
    return (expression,)


def substituted(expression: Expression, columns: Mapping[str, Expression]) -> Expression:
    """The expression with every column replaced by its definition."""
    match expression:
        case Column(name):
            return columns[name]
        case Literal():
            return expression
        case Call(function, arguments):
            return Call(function, tuple(substituted(argument, columns) for argument in arguments))
        case Case(branches, otherwise):
            replaced = tuple((substituted(condition, columns), substituted(value, columns)) for condition, value in branches)
            return Case(replaced, substituted(otherwise, columns))
        case _:
            assert_never(expression)
