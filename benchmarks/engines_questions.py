"""The questions that every engine is asked: as a certified plan, and as the SQL an analyst without privacy would write.

Bare SQL names its tables {visits} and {members}. Plans are those of `benchmarks.plans` where it has them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from benchmarks.engines_data import ITEMS, TIERS
from benchmarks.plans import STEPS, Comparison, Period, Question, Style, plan_of
from benchmarks.plans import bare_sql as visits_sql
from benchmarks.visits import AMOUNT_MAX, REGIONS, USER_ROWS_MAX

from lapwing.kernel.expressions import Column
from lapwing.kernel.ir import (
    Cap,
    DiscoveredGroups,
    GridSum,
    Grouped,
    KnownGroups,
    Plan,
    QuantileSet,
    Query,
    Ranked,
    RowCount,
    Scan,
    UnitJoin,
    Vector,
)
from lapwing.kernel.laws import DiscreteGaussian
from lapwing.kernel.quantile_tree import AtShare

_LAW = DiscreteGaussian(Fraction(64))
_VISITS = Scan("visits", USER_ROWS_MAX)


@dataclass(frozen=True, slots=True)
class Asked:
    """One question."""

    name: str
    bare: str
    plan: Callable[[], Plan]
    goal: float | None = None
    """Largest ratio of CPU time that is hoped for."""


def _compared(name: str, question: Question, style: Style, period: Period, goal: float | None = None) -> Asked:
    comparison = Comparison(question, style, period)
    return Asked(name, visits_sql(comparison).replace("FROM visits", "FROM {visits}"), lambda: plan_of(comparison), goal)


def _amounts() -> tuple[Vector, ...]:
    total = GridSum(Column("amount"), Fraction(0), Fraction(AMOUNT_MAX), STEPS)
    return (Vector("visits", RowCount(), _LAW), Vector("spent", total, _LAW))


def _joined() -> Plan:
    source = UnitJoin(_VISITS, Scan("members", 1), (), (("tier", "tier"),))
    return Plan((Query(source, (("tier", Column("tier")),), KnownGroups(tuple((tier,) for tier in TIERS)), Ranked(), _amounts()),))


def _by_item() -> Plan:
    groups = KnownGroups(tuple((item,) for item in range(ITEMS)))
    return Plan((Query(_VISITS, (("item", Column("item")),), groups, Ranked(), (Vector("visits", RowCount(), _LAW),)),))


def _discovered() -> Plan:
    keys = (("region", Column("region")), ("product", Column("product")))
    groups = DiscoveredGroups(_LAW, Fraction(1, 2**41), 100_000)
    return Plan((Query(Scan("visits", 20), keys, groups, Grouped(4), (Vector("visits", RowCount(), _LAW, Cap(20)),)),))


def _median() -> Plan:
    median = QuantileSet("median", Column("amount"), Fraction(0), Fraction(AMOUNT_MAX), STEPS, (AtShare(Fraction(1, 2)),), Fraction(64))
    groups = KnownGroups(tuple((region,) for region in REGIONS))
    return Plan((Query(Scan("visits", 20), (("region", Column("region")),), groups, Ranked(), (), (median,)),))


FOUR = (
    _compared("ranked scan", Question.COUNT_AND_SUM, Style.RANKED_ALL, Period.YEAR, 1.3),
    _compared("COUNT(DISTINCT unit)", Question.UNITS, Style.RANKED_ALL, Period.YEAR, 1.5),
    _compared("clipped after a filter (1/12)", Question.COUNT_AND_SUM, Style.CLIPPED, Period.MONTH, 3),
    Asked(
        "join on the unit",
        "SELECT m.tier, COUNT(*), SUM(v.amount) FROM {visits} v JOIN {members} m ON v.user_id = m.user_id GROUP BY m.tier",
        _joined,
        1.3,
    ),
)
"""The questions with a goal."""
MANY_GROUPS = Asked("a million groups", "SELECT item, COUNT(*) FROM {visits} GROUP BY item", _by_item)
PLANS = (
    FOUR[0],
    _compared("ranked, 20 rows", Question.COUNT_AND_SUM, Style.RANKED, Period.YEAR),
    _compared("weighted", Question.COUNT_AND_SUM, Style.WEIGHTED, Period.YEAR),
    _compared("clipped", Question.COUNT_AND_SUM, Style.CLIPPED, Period.YEAR),
    _compared("grouped", Question.COUNT_AND_SUM, Style.GROUPED, Period.YEAR),
    FOUR[3],
    Asked("median", "SELECT region, amount, COUNT(*) FROM {visits} GROUP BY region, amount", _median),
    Asked("discovered keys", "SELECT region, product, COUNT(*) FROM {visits} GROUP BY region, product", _discovered),
)
"""One question for each kind of plan, over all rows: what the cost model is fitted to."""
BY_NAME = {asked.name: asked for asked in (*FOUR, *PLANS, MANY_GROUPS)}
