"""Error bars hold as often as they say: 10^4 answers each for counts, sums and averages, with and without known keys.

Each release has 10^4 groups with the same exact value, so one run is 10^4 independent answers. False-alarm rate: a binomial share of
10^4 at 95 % has standard deviation 0.22 %, so a band of 1 % either side is 4.6 deviations: below 5e-6 per test.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from lapwing.answers.intervals import ratio_interval, widened
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import Certified, certify
from lapwing.kernel.domains import Domain, IntegerDomain, RealDomain, TextDomain
from lapwing.kernel.exact import Exact, ExactTable
from lapwing.kernel.expressions import Column, not_null
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.ir import DiscoveredGroups, GridSum, KnownGroups, Plan, Query, Ranked, RowCount, Scan, Vector
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.permit import issue
from lapwing.kernel.release import NoisyTable, release
from lapwing.spread import half_width
from tests.support.promises import coverage

ANSWERS = 10_000
CONFIDENCE = Fraction(95, 100)
LAWS: list[Law] = [DiscreteLaplace(Fraction(40)), DiscreteGaussian(Fraction(40)), DiscreteGaussian(Fraction(5000))]


def _facts(law: Law, *, account: Account | None = None) -> Facts:
    columns: dict[str, Domain] = {
        "group": IntegerDomain(0, ANSWERS - 1, False),
        "name": TextDomain(None),
        "cost": RealDomain(Fraction(0), Fraction(500), True, 100),
    }
    pure = account or (Account.PURE if isinstance(law, DiscreteLaplace) else Account.APPROXIMATE)
    return Facts("coverage", 1, Neighbours.UNBOUNDED, pure, {"t": TableFacts(columns, 10, 10_000_000)}, {})


def _released(certified: Certified, table: ExactTable) -> NoisyTable:
    return release(certified, issue(1, certified.digest, certified.cost), Exact([table], certified=certified)).tables[0]


def _known(law: Law, sum_law: Law) -> Certified:
    vectors = (
        Vector("n", RowCount(not_null(Column("cost"))), law),
        Vector("s", GridSum(Column("cost"), Fraction(0), Fraction(500), 100, 25_000), sum_law),
    )
    groups = KnownGroups(tuple((i,) for i in range(ANSWERS)))
    return certify(Plan((Query(Scan("t", 1), (("group", Column("group")),), groups, Ranked(), vectors),)), _facts(law))


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_counts_and_sums_of_known_groups(law: Law) -> None:
    certified = _known(law, law)
    count, total = 321, -7_654
    table = _released(
        certified, ExactTable(groups=[(i,) for i in range(ANSWERS)], vectors=[[count] * ANSWERS, [total] * ANSWERS], units=None)
    )
    for name, exact in (("n", count), ("s", total)):
        column = table.column(name)
        hw = half_width(law, confidence=CONFIDENCE)
        intervals = [widened(value, hw, step=column.step, rounding=Fraction(0), rows_upper=0) for value in column.values]
        held = [i.lo <= float(exact * column.step) <= i.hi for i in intervals]
        coverage("known groups").require(sum(held), of=len(held))


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("count", [60, 900, 40_000])
def test_averages_of_known_groups(law: Law, count: int) -> None:
    """Fieller intervals, from counts near the noise to counts far above it. Near it they may only be wider than they say."""
    sum_law = type(law)(law.scale * 25_000)
    certified = _known(law, sum_law)
    mean = 137.25
    total = round((mean * 100 - 25_000) * count)
    table = _released(
        certified, ExactTable(groups=[(i,) for i in range(ANSWERS)], vectors=[[count] * ANSWERS, [total] * ANSWERS], units=None)
    )
    hits = []
    for n, s in zip(table.column("n").values, table.column("s").values, strict=True):
        _, found = ratio_interval(total=s, count=n, sum_law=sum_law, count_law=law, confidence=0.95, lo=-25_000.0, hi=25_000.0)
        hits.append(found.lo <= mean * 100 - 25_000 <= found.hi)
    far_from_noise = count > 20 * float(law.scale)
    coverage("averages of known groups").require(sum(hits), of=len(hits), upper=far_from_noise)


@pytest.mark.parametrize("law", [DiscreteGaussian(Fraction(40)), DiscreteLaplace(Fraction(40))], ids=str)
def test_counts_of_discovered_groups(law: Law) -> None:
    """Groups far above the threshold are always shown, and their error bars hold too; the threshold does not bend them."""
    groups = DiscoveredGroups(law, Fraction(1, 10**9), 1_000_000)
    query = Query(Scan("t", 1), (("name", Column("name")),), groups, Ranked(), (Vector("n", RowCount(), law),))
    certified = certify(Plan((query,)), _facts(law, account=Account.APPROXIMATE))
    keys = certified.queries[0].keys
    assert keys is not None
    units, count = keys.threshold + 2_000, keys.threshold + 5_000
    table = _released(
        certified, ExactTable(groups=[(f"g{i}",) for i in range(ANSWERS)], vectors=[[count] * ANSWERS], units=[units] * ANSWERS)
    )
    assert len(table.groups) == ANSWERS
    hw = half_width(law, confidence=CONFIDENCE)
    held = [abs(value - count) <= hw for value in table.column("n").values]
    coverage("discovered groups").require(sum(held), of=len(held))
