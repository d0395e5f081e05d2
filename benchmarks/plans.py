"""What is compared: each bounding plan with the same question asked of the engine directly.

The question is always "how many visits, and how much was spent, by region" (or "how many users, by region"), over the whole year, one
month or one day. The bare side is the SQL an analyst without privacy would write on an ordinary table of the same engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from benchmarks.visits import AMOUNT_MAX, FIRST_DAY, REGIONS, USER_ROWS_MAX

from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Column, Expression, Function, Literal, call
from lapwing.kernel.ir import (
    Bounding,
    Cap,
    Clipped,
    Filter,
    GridSum,
    Grouped,
    KnownGroups,
    Plan,
    Query,
    Ranked,
    Relation,
    RowCount,
    Scan,
    UnitCount,
    Vector,
    Weighted,
)
from lapwing.kernel.laws import DiscreteGaussian

STEPS = 100
"""Grid steps per 1 of `amount`, as the catalogue declares them."""
ROWS_LIMIT = 20
"""Rows of one unit that may count, where a plan asks for such a number."""
BITS = 10
"""Fineness of weights and of clipped cells."""
GROUPS_LIMIT = 4
"""Groups one unit keeps in the grouped plan."""

# The noise law does not touch the time of the engine: any that certifies will do.
_LAW = DiscreteGaussian(Fraction(64))
_REGION = Column("region")
_DAY = Column("day")


class Period(Enum):
    """How much of the year a question is about."""

    YEAR = "year"
    MONTH = "month"
    DAY = "day"


class Style(Enum):
    """The bounding plans compared; ``ranked, all`` reads every row, so that nothing is won by dropping rows."""

    RANKED = f"ranked, {ROWS_LIMIT} rows"
    RANKED_ALL = "ranked, all rows"
    WEIGHTED = "weighted"
    GROUPED = "grouped"
    CLIPPED = "clipped"


class Question(Enum):
    """What is asked per region."""

    COUNT_AND_SUM = "COUNT, SUM"
    UNITS = "COUNT(DISTINCT unit)"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One line of the benchmark."""

    question: Question
    style: Style
    period: Period

    @property
    def name(self) -> str:
        """How the line is called in tables and on the command line."""
        return f"{self.question.value} / {self.style.value} / {self.period.value}"


COMPARISONS = (
    *(Comparison(Question.COUNT_AND_SUM, style, period) for style in Style for period in Period),
    *(Comparison(Question.UNITS, style, period) for style in (Style.RANKED, Style.RANKED_ALL, Style.GROUPED) for period in Period),
)

_PERIOD_DAYS = {Period.YEAR: None, Period.MONTH: (FIRST_DAY + 60, FIRST_DAY + 90), Period.DAY: (FIRST_DAY + 74, FIRST_DAY + 74)}
"""March, and 15 March, of 2024."""
_BARE_CONDITIONS = {
    Period.YEAR: "",
    Period.MONTH: " WHERE day >= DATE '2024-03-01' AND day <= DATE '2024-03-31'",
    Period.DAY: " WHERE day >= DATE '2024-03-15' AND day <= DATE '2024-03-15'",
}


def bare_sql(comparison: Comparison) -> str:
    """The question in plain SQL."""
    asked = "COUNT(*), SUM(amount)" if comparison.question is Question.COUNT_AND_SUM else "COUNT(DISTINCT user_id)"
    return f"SELECT region, {asked} FROM visits{_BARE_CONDITIONS[comparison.period]} GROUP BY region"


def floor_sql(comparison: Comparison) -> str:
    """The same per user and region first: the least that any bounding after the filter must do, without bounding anything."""
    asked = ("COUNT(*) AS n, SUM(amount) AS s", "SUM(n), SUM(s)") if comparison.question is Question.COUNT_AND_SUM else ("1 AS n", "SUM(n)")
    cells = f"SELECT user_id, region, {asked[0]} FROM visits{_BARE_CONDITIONS[comparison.period]} GROUP BY user_id, region"
    return f"SELECT region, {asked[1]} FROM ({cells}) c GROUP BY region"


def bounds_after_filter(comparison: Comparison) -> bool:
    """Whether the plan bounds what is left of a unit after the filter, and so has a floor."""
    return comparison.style in (Style.GROUPED, Style.CLIPPED)


def plan_of(comparison: Comparison, *, binding: bool = True) -> Plan:
    """The plan of a comparison. Without ``binding`` its limits are so wide that they change nothing."""
    rows_per_unit = ROWS_LIMIT if binding and comparison.style is Style.RANKED else USER_ROWS_MAX
    source: Relation = Scan("visits", rows_per_unit)
    predicate = _predicate(comparison.period)
    if predicate is not None:
        source = Filter(source, predicate)
    groups = KnownGroups(tuple((region,) for region in REGIONS))
    return Plan((Query(source, (("region", _REGION),), groups, _bounding(comparison, binding), _vectors(comparison, binding)),))


def _predicate(period: Period) -> Expression | None:
    days = _PERIOD_DAYS[period]
    if days is None:
        return None
    first, last = (Literal(day, Kind.DATE) for day in days)
    return call(Function.AND, call(Function.GREATER_EQUAL, _DAY, first), call(Function.LESS_EQUAL, _DAY, last))


def _bounding(comparison: Comparison, binding: bool) -> Bounding:
    match comparison.style:
        case Style.RANKED | Style.RANKED_ALL:
            return Ranked()
        case Style.WEIGHTED:
            return Weighted(ROWS_LIMIT if binding else USER_ROWS_MAX, BITS)
        case Style.GROUPED:
            return Grouped(GROUPS_LIMIT if binding else len(REGIONS))
        case Style.CLIPPED:
            return Clipped(BITS)


def _vectors(comparison: Comparison, binding: bool) -> tuple[Vector, ...]:
    if comparison.question is Question.UNITS:
        return (Vector("users", UnitCount(), _LAW),)
    rows = ROWS_LIMIT if binding else USER_ROWS_MAX
    amount = rows * AMOUNT_MAX * STEPS
    count_cap, sum_cap = {
        Style.GROUPED: (Cap(rows), Cap(amount)),
        Style.CLIPPED: (Cap(rows << BITS), Cap(amount << BITS)),
    }.get(comparison.style, (None, None))
    total = GridSum(Column("amount"), Fraction(0), Fraction(AMOUNT_MAX), STEPS)
    return (Vector("visits", RowCount(), _LAW, count_cap), Vector("spent", total, _LAW, sum_cap))
