"""Error bars of sub-totals hold as often as they say: 10^4 sub-totals of five groups each.

False-alarm rate: a binomial share of 10^4 at 95 % has standard deviation 0.22 %, so a band of 1 % is 4.6 deviations: below 5e-6 per test.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from lapwing.answers.intervals import ratio_interval
from lapwing.answers.noise_sums import half_width_of_sum
from lapwing.answers.subtotals import levels_of, table_of
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import certify
from lapwing.kernel.domains import Domain, IntegerDomain, RealDomain
from lapwing.kernel.exact import Exact, ExactTable
from lapwing.kernel.expressions import Column, not_null
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.ir import GridSum, KnownGroups, Plan, Query, Ranked, RowCount, Scan, Vector
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.permit import issue
from lapwing.kernel.release import NoisyTable, release
from tests.support.promises import coverage
from tests.support.sizes import size

TOTALS, TERMS = 10_000, 5
RATIOS = size("ratios of sub-totals")
CONFIDENCE = Fraction(95, 100)
COUNT, TOTAL = 700, -3_150_000
"""Rows of each group, and their sum of steps above the middle of the range."""
LAWS: list[Law] = [DiscreteLaplace(Fraction(40)), DiscreteGaussian(Fraction(40))]


def released(law: Law) -> NoisyTable:
    columns: dict[str, Domain] = {
        "total": IntegerDomain(0, TOTALS - 1, False),
        "part": IntegerDomain(0, TERMS - 1, False),
        "cost": RealDomain(Fraction(0), Fraction(500), True, 100),
    }
    account = Account.PURE if isinstance(law, DiscreteLaplace) else Account.APPROXIMATE
    facts = Facts("coverage", 1, Neighbours.UNBOUNDED, account, {"t": TableFacts(columns, 10, 10_000_000)}, {})
    groups = tuple((i, j) for i in range(TOTALS) for j in range(TERMS))
    vectors = (
        Vector("n", RowCount(not_null(Column("cost"))), law),
        Vector("s", GridSum(Column("cost"), Fraction(0), Fraction(500), 100, 25_000), type(law)(law.scale * 25_000)),
    )
    keys = (("total", Column("total")), ("part", Column("part")))
    certified = certify(Plan((Query(Scan("t", 1), keys, KnownGroups(groups), Ranked(), vectors),)), facts)
    exact = ExactTable(groups=list(groups), vectors=[[COUNT] * len(groups), [TOTAL] * len(groups)], units=None)
    return release(certified, issue(1, certified.digest, certified.cost), Exact([exact], certified=certified)).tables[0]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_sub_totals_and_their_averages(law: Law) -> None:
    groups = released(law)
    (level,) = levels_of(groups.groups, ((0,),), keys=2)
    assert len(groups.groups) == TOTALS * TERMS and level.terms == TERMS and len(level.groups) == TOTALS
    table = table_of(level, groups)
    width = half_width_of_sum(law, terms=TERMS, confidence=CONFIDENCE)
    counts, sums = table.column("n").values, table.column("s").values
    coverage("sub-totals").require(sum(abs(value - TERMS * COUNT) <= width for value in counts), of=TOTALS)
    exact = isinstance(law, DiscreteGaussian)
    tried = TOTALS if exact else RATIOS  # Chernoff's bound is slow to find
    hits = 0
    for s, n in list(zip(sums, counts, strict=True))[:tried]:
        _, found = ratio_interval(
            total=s,
            count=n,
            sum_law=table.column("s").law,
            count_law=law,
            confidence=0.95,
            lo=-25_000.0,
            hi=25_000.0,
            terms=TERMS,
        )
        hits += found.lo <= TOTAL / COUNT <= found.hi
    # Ratios of Laplace sums use Chernoff's bound, which is wider than they need.
    off = 4.6 * math.sqrt(0.95 * 0.05 / tried)
    assert 0.95 - off <= hits / tried <= (0.95 + off if exact else 1.0)
    coverage("averages of sub-totals").require(hits, of=tried, upper=False)
