"""Error bars of free answers hold as often as they say, for counts, sums, averages, ratios, sub-totals and what is computed from them.

The whole path from the kernel's sampler to the intervals. At ordinary scales 95 % of them hold, within 1 %; where the noise is of few whole
numbers bars reach half a step further than a normal law, so that more of them hold, and no kind has fewer than it should.
False-alarm rate: in the long tier there are about 31,000 answers at each scale, and a share of as many independent ones has the standard
deviation .13 %; those of a release share its noise, which is why the bands have several times that. The short tier looks at one release,
155 answers with a standard deviation of about 3 %: it sees bars that are wrong by a factor, below 82 %.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from lapwing.kernel.accounting import Account
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law, loss
from lapwing.kernel.noise.additive import add_noise
from lapwing.releases.coverage import NotCovered
from lapwing.releases.serving import ServedMarginals, serve
from lapwing.spread import variance
from tests.support.release_worlds import FACTS, Rows, bound, random_rows, served, sets
from tests.support.sizes import TIER, Tier, size

RELEASES = size("releases whose free answers are compared with the truth")
CONFIDENCE = Fraction(95, 100)
MEASURED: dict[str, list[tuple[int, ...]]] = {"all sets of three columns": sets(3, range(5)), "one table": [(0, 1, 2, 3, 4)]}
"""Estimates from many tables take any value, those from one table whole numbers only: their bars have to reach half a step further."""
STATEMENTS = {
    "counts": "SELECT region, visits, COUNT(*) AS x FROM people WHERE sex = 'F' GROUP BY region, visits",
    "filters": "SELECT visits, COUNT(*) FILTER (WHERE age < 50) AS x, COUNT(smoker) AS y FROM people GROUP BY visits",
    "unions": "SELECT smoker, COUNT(*) AS x FROM people WHERE region IN ('north', 'west') OR age >= 70 GROUP BY smoker",
    "sums": "SELECT region, smoker, SUM(visits) AS x FROM people GROUP BY region, smoker",
    "averages": "SELECT region, sex, AVG(visits) AS x FROM people GROUP BY region, sex",
    "ratios": "SELECT age // 10 AS a, COUNT(*) FILTER (WHERE sex = 'F') * 1.0 / COUNT(*) AS x FROM people GROUP BY 1",
    "shares": "SELECT region, COUNT(*) * 1.0 / (SELECT COUNT(*) FROM people) AS x FROM people GROUP BY region",
    "sub-totals": "SELECT sex, region, smoker, COUNT(*) AS x FROM people GROUP BY ROLLUP(sex, region, smoker)",
    "computed": "SELECT region, COUNT(*) FILTER (WHERE smoker) - 0.3 * COUNT(*) + SUM(visits) AS x FROM people GROUP BY region",
}


@cache
def rows() -> Rows:
    return random_rows(20_000, 7)


@cache
def truth(measured: str) -> dict[str, pa.Table]:
    """By kind of statement: the answer without noise."""
    marginals, found = served(rows(), MEASURED[measured]), {}
    for kind, sql in STATEMENTS.items():
        exact = serve(bound(sql), FACTS, marginals, confidence=CONFIDENCE)
        assert not isinstance(exact, NotCovered)
        found[kind] = exact.assembled.table
    return found


def noisy(law: Law, measured: str) -> ServedMarginals:
    account = Account.APPROXIMATE if isinstance(law, DiscreteGaussian) else Account.PURE
    charged = loss(law, account, l1=1, l2_squared=1)

    def noise(axes: tuple[int, ...], cells: int) -> tuple[npt.NDArray[np.int64], float]:
        drawn = add_noise(law, [0] * cells, account=account, l1=1, l2_squared=1, charged=charged)
        return np.asarray(drawn, dtype=np.int64), variance(law)

    return served(rows(), MEASURED[measured], noise, laplace=isinstance(law, DiscreteLaplace))


def held(law: Law, measured: str, releases: int) -> dict[str, tuple[int, int]]:
    """By kind of statement: how many intervals held the truth, and how many there were."""
    found: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for _ in range(releases):
        marginals = noisy(law, measured)
        for kind, sql in STATEMENTS.items():
            free = serve(bound(sql), FACTS, marginals, confidence=CONFIDENCE)
            assert not isinstance(free, NotCovered)
            for name, bars in free.assembled.intervals.items():
                for bar, value in zip(bars, truth(measured)[kind].column(name).to_pylist(), strict=True):
                    if bar is not None and value is not None:
                        hits, many = found[kind]
                        found[kind] = hits + (bar.lo - 1e-9 <= float(value) <= bar.hi + 1e-9), many + 1
    return found


@pytest.mark.slow
@pytest.mark.parametrize("measured", MEASURED)
@pytest.mark.parametrize(
    "law",
    [
        DiscreteGaussian(Fraction(30)),
        DiscreteGaussian(Fraction(6)),
        DiscreteGaussian(Fraction(1)),
        DiscreteGaussian(Fraction(3, 8)),
        DiscreteGaussian(Fraction(5, 32)),
        DiscreteLaplace(Fraction(20)),
        DiscreteLaplace(Fraction(1, 4)),
    ],
    ids=str,
)
def test_error_bars_of_free_answers(law: Law, measured: str) -> None:
    found = held(law, measured, RELEASES)
    assert set(found) == set(STATEMENTS)
    hits, many = (sum(each[place] for each in found.values()) for place in (0, 1))
    shares = {kind: round(each[0] / each[1], 4) for kind, each in found.items()}
    assert hits / many >= (0.94 if TIER is Tier.SOAK else 0.82), (hits / many, many, shares)
    if TIER is Tier.SOAK:
        assert all(share >= 0.91 for share in shares.values()), shares  # of some kinds there are 600, alike in each release
        # half a step is 1 % of coverage at scale 6, from one table
        assert law.scale < 30 or isinstance(law, DiscreteLaplace) or hits / many <= 0.96, (hits / many, many, shares)
