"""Units that add nothing have a bin of their own, and say nothing about how much the others add. Seeds are fixed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from lapwing.contribution.clipping_bound import best_cap, bias_bound
from lapwing.contribution.histograms import histogram_of, norms_of, norms_plan
from lapwing.contribution.model import ContributionModel, NormHistogram, fitted_norms
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import certify
from lapwing.kernel.domains import IntegerDomain
from lapwing.kernel.expressions import Column, not_null
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.ir import GridSum, Measure, RowCount, Scan, UnitCount, UnitNorms
from lapwing.kernel.laws import DiscreteGaussian
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.release import NoisyColumn, NoisyTable
from lapwing.kernel.stability import shape_of
from tests.support.promises import watched

TABLE = TableFacts({"cost": IntegerDomain(0, 500, nullable=True)}, rows_per_unit_max=40, rows_max=10**6)
FACTS = Facts("visits", 1, Neighbours.UNBOUNDED, Account.APPROXIMATE, {"visits": TABLE}, {})
VISITS = Scan("visits", 40)
THERE = not_null(Column("cost"))
COST = GridSum(Column("cost"), Fraction(0), Fraction(500), 1)
EDGES = tuple(2.0 ** (power / 2.0) for power in range(36))
ROW = 2.0**12


def norms(measure: Measure) -> UnitNorms:
    return norms_of(VISITS, (), measure, shape_of(VISITS, FACTS))


def test_units_that_may_add_nothing_to_a_sum_have_a_bin() -> None:
    edges = norms(COST).squared_edges
    assert edges[0] == 0 < edges[1]
    certify(norms_plan(norms(COST), FACTS, loss=Fraction(1, 100)), FACTS)


@pytest.mark.parametrize("measure", [RowCount(), UnitCount(), RowCount(THERE), UnitCount(THERE)])
def test_counts_begin_at_one_row(measure: Measure) -> None:
    assert norms(measure).squared_edges[0] == 1


def released(wanted: UnitNorms, values: list[int]) -> NoisyTable:
    column = NoisyColumn("units", tuple(values), DiscreteGaussian(Fraction(9)), Fraction(1), Fraction(0))
    return NoisyTable(("bin",), tuple((number,) for number in range(len(values))), (column,), None, 10**6)


def test_a_released_histogram_tells_them_apart() -> None:
    wanted = norms(COST)
    values = [900, *range(len(wanted.squared_edges))]
    found = histogram_of(wanted, released(wanted, values), FACTS)
    assert found.zeros == 900.0 and found.noisy == tuple(float(value) for value in values[1:])
    assert len(found.edges) == len(found.noisy) and found.edges[0] == math.sqrt(wanted.squared_edges[1]) and found.row == 500.0


def test_a_histogram_without_that_bin_is_read_as_before() -> None:
    """One that was bought when there was none: nothing is told apart, and nothing fails."""
    wanted = norms(COST)
    old = UnitNorms(wanted.source, wanted.keys, wanted.measure, wanted.squared_edges[1:], wanted.name)
    found = histogram_of(old, released(old, [900, *([0] * (len(old.squared_edges)))]), FACTS)
    assert found.zeros is None and not found.sparse and found.noisy[0] == 900.0
    assert fitted_norms(found).units() == pytest.approx(900.0, rel=0.1)


def spent(units: int, seed: int) -> npt.NDArray[np.float64]:
    """What units that add something add: about a fortieth of what a row may be."""
    return np.minimum(np.random.default_rng([seed, 5]).lognormal(math.log(ROW / 40.0), 1.0, units), ROW)


def fit_of(norms: npt.NDArray[np.float64], *, zeros: int, deviation: float, seed: int, apart: bool = True) -> ContributionModel:
    """The fit of a noisy histogram; those of norm 0 in a bin of their own, or in the lowest."""
    random = np.random.default_rng([seed, 6])
    bins = np.bincount(np.searchsorted(np.asarray(EDGES), norms), minlength=len(EDGES)) + random.normal(0.0, deviation, len(EDGES))
    none = zeros + random.normal(0.0, deviation)
    if apart:
        return fitted_norms(NormHistogram(EDGES, tuple(map(float, bins)), deviation, row=ROW, zeros=none))
    return fitted_norms(NormHistogram(EDGES, (float(bins[0] + zeros), *map(float, bins[1:])), deviation, row=ROW))


@dataclass
class Sums:
    """Answers of sums where most units add nothing: of each the length of its bar and its error, over the truth."""

    units: int
    deviation: float
    apart: bool
    lengths: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)

    def __call__(self) -> list[bool]:
        """Whether the bar of one more answer holds the truth."""
        seed = len(self.errors)
        norms = spent(self.units, seed)
        fit = fit_of(norms, zeros=9 * self.units, deviation=self.deviation, seed=seed, apart=self.apart)
        choice = best_cap(fit, unit_noise=self.deviation / 3.0, cells=1, total_l1=None)
        value = float(np.minimum(norms, choice.cap).sum() + np.random.default_rng([seed, 7]).normal(0.0, choice.noise))
        (added,) = bias_bound(fit, choice, cells=1, beyond=0.05, values=[value])
        truth, low, high = float(norms.sum()), value - 1.96 * choice.noise, value + 1.96 * choice.noise + added
        self.lengths.append((high - max(low, 0.0)) / truth)
        self.errors.append(abs(value - truth) / truth)
        return [low <= truth <= high]


def test_sums_of_few_units_that_nothing_shows_are_covered() -> None:
    """A hundred units in a noise of 40 in each bin: none is seen. With the others in the lowest bin, bars hold next to nothing."""
    sums = Sums(100, 40.0, apart=True)
    watched("sums that nothing shows").require(sums, rounds=24)
    assert np.median(sums.lengths) < 30.0 and np.median(sums.errors) < 1.0
    before = Sums(100, 40.0, apart=False)
    assert sum(before()[0] for _ in range(24)) < 12 and np.median(before.errors) > 0.9


def test_where_they_are_seen_bars_are_short() -> None:
    sums = Sums(5_000, 20.0, apart=True)
    watched("sums of units that are seen").require(sums, rounds=24)
    assert np.median(sums.lengths) < 0.5 and np.median(sums.errors) < 0.1


def test_most_units_add_nothing_only_where_that_is_seen() -> None:
    def sparse(zeros: float | None, others: float, deviation: float = 10.0) -> bool:
        return NormHistogram((1.0, 2.0), (others, 0.0), deviation, zeros=zeros).sparse

    assert sparse(500.0, 100.0)
    assert not sparse(500.0, 600.0)
    assert not sparse(500.0, 100.0, deviation=200.0)
    assert not sparse(None, 100.0)


def test_nothing_seen_leaves_everything_to_the_curves() -> None:
    fit = fit_of(spent(50, 1), zeros=1_000, deviation=60.0, seed=1)
    assert not fit.seen and fit.sparse and not fit.variance.any()
    assert fit.chances.sum() == pytest.approx(1.0) and fit.tails.min() >= 0.0
    assert fit.expected == pytest.approx(fit.chances @ fit.tails)
    assert not fit.informed(ROW, 1e5, 1e4).seen
