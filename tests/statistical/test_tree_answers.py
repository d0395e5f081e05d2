"""Error bars of counts read off a tree hold as often as they say: ranges, spans, sums and groups by another column.

From the kernel's sampler to the half-widths that answers have. Bars reach half a count further than a normal law, which shows where noise
is small. False-alarm rate: a release has 132 answers, and those of one release share its noise. If that made them as good as ten
independent ones, the share that holds in 400 releases would have a deviation of .35 %, and the band of 1.5 % to either side is four of
these: 1 in 10,000. Other laws have fewer releases, since Laplace noise takes long to draw, and are looked at from below.

Intervals of quantiles reach to the ends of their leaves, and one row further than the noise: more of them hold than they say, and they are
looked at from below too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import duckdb
import numpy as np
import pytest

from lapwing.kernel.accounting import Account
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law, loss
from lapwing.kernel.noise.additive import add_noise
from lapwing.releases.marginals.axes import axis_of
from lapwing.releases.marginals.synopsis import MeasuredMarginal
from lapwing.releases.serving.answers import ServedMarginals, serve
from lapwing.releases.serving.coverage import NotCovered, covered_queries
from lapwing.releases.serving.tree_counts import TreeCounts
from lapwing.releases.serving.weighted_sums import WeightedSums
from lapwing.releases.tree.axes import tree_axes
from lapwing.releases.tree.range_tree import tree_split, tree_widths
from lapwing.spread import variance
from tests.support.promises import coverage, watched
from tests.support.release_worlds import COLUMNS, FACTS, bound, random_rows
from tests.support.sizes import size

RELEASES = size("releases of trees compared with the truth")
CONFIDENCE = Fraction(95, 100)
LEVELS = tree_axes("age", COLUMNS["age"], branch=4, bins=None)
AXES = (axis_of("sex", COLUMNS["sex"]), *LEVELS)
LEAVES = 100
STATEMENTS = [
    *(f"SELECT COUNT(*) AS x FROM people WHERE age BETWEEN {low} AND {low + length}" for low in (0, 13, 38) for length in (0, 6, 29, 60)),
    "SELECT sex, age // 10 AS a, COUNT(*) AS x FROM people GROUP BY sex, a",
    "SELECT age // 4 AS a, COUNT(*) AS x FROM people WHERE sex = 'F' GROUP BY a",
    "SELECT sex, SUM(age) AS x FROM people WHERE age > 17 GROUP BY sex",
    "SELECT sex, COUNT(*) AS x, COUNT(age) AS y FROM people GROUP BY sex",
    "SELECT COUNT(*) AS x FROM people WHERE age IS NULL",
]


@cache
def exact() -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.int64]], ...]:
    """Counts of every level, by sex."""
    rows = random_rows(5_000, 9)
    sexes = [AXES[0].cells().index(value) for value in rows.values["sex"]]
    found = []
    for width in tree_widths(LEAVES):
        nodes = -(-LEAVES // width)
        counts = np.zeros((2, nodes + 1), dtype=np.int64)
        for sex, age in zip(sexes, rows.values["age"], strict=True):
            assert age is None or isinstance(age, int)
            counts[sex, nodes if age is None else age // width] += 1
        found.append(counts)
    return tuple(found)


def law_of(kind: type[DiscreteGaussian] | type[DiscreteLaplace], scale: Fraction, share: float) -> Law:
    """Noise of a share of the price at which one table would have this scale."""
    factor = 1 / share if kind is DiscreteLaplace else 1 / math.sqrt(share)
    return kind(scale * Fraction(round(factor * 1024), 1024))


def released(kind: type[DiscreteGaussian] | type[DiscreteLaplace], scale: Fraction | None) -> TreeCounts:
    pure = kind is DiscreteLaplace
    split, widths = tree_split(LEAVES, pure=pure), tree_widths(LEAVES)
    measured = []
    for width, share in zip(split.widths, split.shares, strict=True):
        number = widths.index(width)
        counts, spread = exact()[number], 0.0
        if scale is not None:
            law, account = law_of(kind, scale, share), Account.PURE if pure else Account.APPROXIMATE
            charged = loss(law, account, l1=1, l2_squared=1)
            drawn = add_noise(law, [0] * counts.size, account=account, l1=1, l2_squared=1, charged=charged)
            counts, spread = counts + np.asarray(drawn, dtype=np.int64).reshape(counts.shape), variance(law)
        measured.append(MeasuredMarginal((0, 1 + number), counts, spread))
    return TreeCounts.of("people", AXES, measured, laplace=pure, notes=())


def shares_of_trees(kind: type[DiscreteGaussian] | type[DiscreteLaplace], scale: Fraction) -> Callable[[], list[float]]:
    """Draws a release: the share of its bars that hold."""
    public = released(kind, scale).public
    sums = []
    for sql in STATEMENTS:
        covered = covered_queries(bound(sql), FACTS, public)
        assert not isinstance(covered, NotCovered)
        sums += [WeightedSums(each, public) for each in covered]
    asked = [(each, vector, each.half_width(vector, CONFIDENCE)) for each in sums for vector in each.covered.weights]
    without = released(kind, None)
    truth = [each.values(vector, without.marginal(each.covered.axes)) for each, vector, _ in asked]

    def share() -> list[float]:
        tree = released(kind, scale)
        held = [
            np.abs(each.values(vector, tree.marginal(each.covered.axes)) - right) <= half + 1e-9
            for (each, vector, half), right in zip(asked, truth, strict=True)
        ]
        return [float(np.concatenate(held).mean())]

    return share


@pytest.mark.slow
def test_error_bars_of_a_tree_hold_no_more_often_than_they_say_either() -> None:
    share = shares_of_trees(DiscreteGaussian, Fraction(20))
    coverage("bars of a tree").require(sum(share()[0] for _ in range(RELEASES)), of=RELEASES)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "scale"),
    [(DiscreteGaussian, Fraction(1)), (DiscreteGaussian, Fraction(1, 4)), (DiscreteLaplace, Fraction(8))],
    ids=["gaussian 1", "gaussian 1/4", "laplace 8"],
)
def test_error_bars_of_a_tree_with_little_or_other_noise(kind: type[DiscreteGaussian] | type[DiscreteLaplace], scale: Fraction) -> None:
    watched("bars of trees with other noise").require(shares_of_trees(kind, scale), rounds=RELEASES // 20)


QUANTILES = [
    "SELECT sex, MEDIAN(age) AS x, quantile_cont(age, 0.1) AS y, quantile_disc(age, 0.75) AS z FROM people GROUP BY sex ORDER BY sex",
    "SELECT quantile_disc(age, 0.5) AS x, quantile_cont(age, 0.93) AS y FROM people WHERE age BETWEEN 20 AND 71",
    "SELECT age // 25 AS a, MEDIAN(age) FILTER (WHERE sex = 'F') AS x FROM people WHERE age IS NOT NULL GROUP BY a ORDER BY a",
]


def quantiles_held(kind: type[DiscreteGaussian] | type[DiscreteLaplace], scale: Fraction) -> Callable[[], list[tuple[bool, float]]]:
    """Draws a release: of each of its intervals of quantiles, whether it holds the truth and how long it is."""
    with duckdb.connect() as engine:
        engine.register("people", random_rows(5_000, 9).arrow())
        truth = [engine.sql(sql).to_arrow_table() for sql in QUANTILES]
    statements = [bound(sql) for sql in QUANTILES]

    def drawn() -> list[tuple[bool, float]]:
        marginals, found = ServedMarginals.of_tree(released(kind, scale)), []
        for statement, exact_answer in zip(statements, truth, strict=True):
            answer = serve(statement, FACTS, marginals, confidence=CONFIDENCE)
            assert not isinstance(answer, NotCovered)
            for name, bars in answer.assembled.intervals.items():
                for right, bar in zip(exact_answer.column(name).to_pylist(), bars, strict=True):
                    assert bar is not None
                    found.append((bar.lo <= right <= bar.hi, bar.hi - bar.lo))
        assert len(found) == 12
        return found

    return drawn


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "scale"),
    [(DiscreteGaussian, Fraction(20)), (DiscreteGaussian, Fraction(1)), (DiscreteLaplace, Fraction(8))],
    ids=["gaussian 20", "gaussian 1", "laplace 8"],
)
def test_intervals_of_quantiles(kind: type[DiscreteGaussian] | type[DiscreteLaplace], scale: Fraction) -> None:
    drawn, widths = quantiles_held(kind, scale), list[float]()

    def share() -> list[float]:
        found = drawn()
        widths.extend(width for _, width in found)
        return [sum(held for held, _ in found) / len(found)]

    watched("intervals of quantiles of trees").require(share, rounds=RELEASES // 40)
    assert sum(widths) / len(widths) < 12.0, "an interval of everything holds everything"
