"""Error bars of variances, covariances, correlations and regressions hold as often as they say: 2,500 answers for each case.

The whole path but the engine: bound, planned, certified, released with the kernel's own noise, assembled. Each release has 2,500 groups
with the same rows, so one run is 2,500 independent answers. False-alarm rate: a binomial share of 2,500 at 95 % has standard deviation
0.44 %, so 2 % either side is 4.6 deviations: below 5e-6 for each aggregate of each case.

Where noise is as large as the thing itself, error bars may only hold more often; then, and where a quotient has nothing to divide by, no
upper end is asked for. That they are of use where there is something to see is asked of their width.
"""

from __future__ import annotations

import math
import random
import statistics
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import pytest

from lapwing.answers.assembly import AssembledAnswer, assemble
from lapwing.answers.post_processing import evaluate
from lapwing.catalog import Settings
from lapwing.kernel.accounting import Account
from lapwing.kernel.domains import Domain, IntegerDomain, RealDomain
from lapwing.kernel.exact import Exact, ExactTable
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.ir import GridSum, RowCount
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.permit import issue
from lapwing.kernel.release import release
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.plan import plan_statement
from lapwing.planning.planned import GroupLimits, Price
from lapwing.sql import bind
from tests.support.promises import coverage
from tests.support.reference.evaluation import Row, evaluator, grid_sum

ANSWERS = 2_500
CONFIDENCE = Fraction(95, 100)
COLUMNS: dict[str, Domain] = {
    "g": IntegerDomain(0, ANSWERS - 1, False),
    "cost": RealDomain(Fraction(0), Fraction(500), True, 100),
    "minutes": IntegerDomain(0, 480, False),
}
AGGREGATES = {
    "avg": "AVG(cost)",
    "var": "VAR_SAMP(cost)",
    "stddev": "STDDEV_POP(cost)",
    "covar": "COVAR_SAMP(cost, minutes)",
    "corr": "CORR(cost, minutes)",
    "slope": "REGR_SLOPE(cost, minutes)",
    "intercept": "REGR_INTERCEPT(cost, minutes)",
    "r2": "REGR_R2(cost, minutes)",
}


@dataclass(frozen=True)
class Case:
    """Rows of each group, the loss of the statement (epsilon or rho), and which aggregates have error bars that are of use."""

    rows: int
    epsilon: str
    account: Account
    useful: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.rows} rows, {self.epsilon}, {self.account.value}"


ALL = tuple(AGGREGATES)
CASES = [
    Case(30, "20", Account.PURE, ("var", "stddev", "covar")),
    Case(400, "1", Account.PURE, ()),
    Case(4_000, "1", Account.PURE, ALL),
    Case(40_000, "1", Account.PURE, ALL),
    Case(30, "0.1", Account.APPROXIMATE, ()),
    Case(400, "0.1", Account.APPROXIMATE, ("avg", "var", "stddev", "covar")),
    Case(4_000, "0.1", Account.APPROXIMATE, ALL),
    Case(40_000, "0.001", Account.APPROXIMATE, ALL),
]


@lru_cache
def rows_of(count: int) -> list[Row]:
    """Skewed costs that grow with the minutes; one in twenty is NULL. As stored: cents, whole minutes."""
    rng = random.Random(count)
    made: list[Row] = []
    for _ in range(count):
        minutes = min(int(rng.expovariate(1 / 60)), 480)
        cost = min(round(100 * (20 + 0.8 * minutes + rng.expovariate(1 / 40))), 50_000)
        made.append({"g": 0, "cost": None if rng.random() < 0.05 else cost, "minutes": minutes})
    return made


def truth(listed: list[Row]) -> dict[str, float]:
    pairs = [(row["cost"] / 100, float(row["minutes"])) for row in listed if row["cost"] is not None]  # type: ignore[operator, arg-type]
    ys, xs = ([pair[i] for pair in pairs] for i in (0, 1))
    fit = statistics.linear_regression(xs, ys)
    return {
        "avg": statistics.fmean(ys),
        "var": statistics.variance(ys),
        "stddev": statistics.pstdev(ys),
        "covar": statistics.covariance(xs, ys),
        "corr": statistics.correlation(xs, ys),
        "slope": fit.slope,
        "intercept": fit.intercept,
        "r2": statistics.correlation(xs, ys) ** 2,
    }


def answered(case: Case, names: tuple[str, ...]) -> AssembledAnswer:
    """One release with as many groups as there are answers."""
    facts = Facts("coverage", 1, Neighbours.UNBOUNDED, case.account, {"t": TableFacts(COLUMNS, 1, 10**9)}, {})
    listed = ", ".join(f"{AGGREGATES[name]} AS {name}" for name in names)
    statement = bind(f"SELECT g, {listed} FROM t GROUP BY g ORDER BY g", facts, settings=Settings(), unit_columns={})
    delta = Fraction(1, 2**40) if case.account is Account.APPROXIMATE else Fraction(0)
    planned = plan_statement(
        statement.privates,
        facts,
        Price(Fraction(case.epsilon), delta),
        contributions={},
        units=None,
        limits=GroupLimits(ANSWERS, ANSWERS),
        finder=GroupFinder(evaluate),
    )
    (query,) = planned.certified.plan.queries
    rows, exact = rows_of(case.rows), []
    for vector in query.vectors:
        if isinstance(vector.measure, RowCount):
            where = vector.measure.where
            holds = (lambda _: True) if where is None else evaluator(where, COLUMNS).value
            exact.append(sum(holds(row) is True for row in rows))
        else:
            assert isinstance(vector.measure, GridSum)
            exact.append(grid_sum(vector.measure, rows, COLUMNS))
    table = ExactTable(groups=[(i,) for i in range(ANSWERS)], vectors=[[value] * ANSWERS for value in exact], units=None)
    certified = planned.certified
    released = release(certified, issue(1, certified.digest, certified.cost), Exact([table], certified=certified))
    # Bars hold as often as they say among all values; what is withheld would be the ones that always hold.
    return assemble(planned, released, statement.post, confidence=CONFIDENCE, withholding=False)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_error_bars_of_moments(case: Case) -> None:
    found, expected = answered(case, ALL), truth(rows_of(case.rows))
    for name in AGGREGATES:
        values = found.table.column(name).to_pylist()
        bars = [bar for bar in found.intervals[name] if bar is not None]
        if name in case.useful:
            assert len(bars) == ANSWERS and None not in values
            width = statistics.median((bar.hi - bar.lo) / 2 for bar in bars)
            assert width < 2 * abs(expected[name]), f"{name}: the error bar is wider than the value"
        if len(bars) < ANSWERS // 2:
            continue  # too few rows for this aggregate: it is mostly NULL, or without an error bar
        held = sum(bar.lo <= expected[name] <= bar.hi for bar in bars)
        coverage("moments").require(held, of=len(bars), upper=name in case.useful)


def test_values_are_inside_what_is_possible_and_inside_their_error_bars() -> None:
    found = answered(Case(30, "0.01", Account.APPROXIMATE, ()), ALL)
    ends = {"var": (0, 500**2 / 2), "stddev": (0, 250), "covar": (-500 * 480 / 2, 500 * 480 / 2), "corr": (-1, 1), "r2": (0, 1)}
    shown = 0
    for name in AGGREGATES:
        low, high = ends.get(name, (-math.inf, math.inf))
        for value, bar in zip(found.table.column(name).to_pylist(), found.intervals[name], strict=True):
            if value is None or bar is None:
                continue
            shown += 1
            assert low <= bar.lo <= value <= bar.hi <= high
    assert shown > ANSWERS


def test_a_statement_with_one_moment_measures_no_more_than_it_needs() -> None:
    """Half the vectors, so less noise: a variance alone is known better than beside a correlation."""
    case = Case(4_000, "0.1", Account.APPROXIMATE, ())

    def width(names: tuple[str, ...]) -> float:
        return statistics.median(bar.hi - bar.lo for bar in answered(case, names).intervals["var"] if bar is not None)

    assert width(("var",)) < 0.8 * width(("var", "corr"))
    assert width(("var", "stddev", "avg")) == pytest.approx(width(("var",)), rel=0.05)
