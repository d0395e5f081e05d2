"""Counts that few units add to: who adds nothing shares a bin with who adds one row, and norms are whole numbers. Seeds are fixed."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from lapwing.contribution.clipping_bound import best_cap, bias_bound, lost_beside
from lapwing.contribution.model import ContributionModel, NormHistogram, fitted_norms
from tests.support.promises import watched

EDGES = (*(2.0 ** (power / 2.0) for power in range(16)), 400.0)
COUNTS = np.repeat([0, 1, 2, 3], [9_548, 425, 26, 1])
"""Rows that meet a condition, of each of 10,000 units."""
TRUTH = float(COUNTS.sum())


def fit_of(bins: dict[int, float], *, deviation: float, whole: int, seed: int | None = None, mixed: bool = True) -> ContributionModel:
    noisy = np.zeros(len(EDGES)) if seed is None else np.random.default_rng([seed, 1]).normal(0.0, deviation, len(EDGES))
    for number, units in bins.items():
        noisy[number] += units
    return fitted_norms(NormHistogram(EDGES, tuple(map(float, noisy)), deviation, whole=whole, mixed=mixed))


def test_units_between_one_and_two_have_two_rows() -> None:
    fit = fit_of({0: 9_000.0, 2: 800.0}, deviation=1.0, whole=1)
    assert fit.beyond_caps([1.0, 1.5, 2.0], 1)[:, 2] == pytest.approx([1.0, 0.5, 0.0])
    assert fit.beyond_caps([1.0, 1.5, 2.0], 0)[:, 2] == pytest.approx([1.0, 1.0, 0.0])
    anything = fit_of({0: 9_000.0, 2: 800.0}, deviation=1.0, whole=0)
    assert fit.excess(1.0) == pytest.approx(800.0, rel=0.05) and anything.excess(1.0) < 600.0


def test_units_between_two_and_four_have_three_or_four() -> None:
    """Three a little more often, as 1 / 3 to 1 / 4; between 4 and the root of 32 there is 5 alone."""
    fit = fit_of({0: 9_000.0, 4: 800.0}, deviation=1.0, whole=1)
    assert fit.beyond_caps([2.0], 1)[0, 3:6] == pytest.approx([(1 * 4 + 2 * 3) / 7, (1 * 4 + 2 * 3) / 7, 3.0])


def test_over_groups_squares_are_whole() -> None:
    """With rows in three or four groups the norm is a root of that, and in two groups it is in the bin below."""
    fit = fit_of({0: 9_000.0, 2: 800.0}, deviation=1.0, whole=2)
    weights = np.array([1 / 3, 1 / 4])
    assert fit.beyond_caps([1.0], 1)[0, 1] == pytest.approx(math.sqrt(2) - 1)
    assert fit.beyond_caps([1.0], 1)[0, 2] == pytest.approx(float((np.sqrt([3, 4]) - 1) @ weights / weights.sum()))


def test_large_norms_are_as_before() -> None:
    caps = [20.0, 50.0, 300.0]
    whole, anything = (fit_of({0: 9_000.0, 12: 800.0}, deviation=1.0, whole=power).beyond_caps(caps, 1) for power in (1, 0))
    assert whole == pytest.approx(anything)


@pytest.mark.parametrize("whole", [1, 2])
@pytest.mark.parametrize("last", [1.4, 2.0, 3.0, 5.0, 9.0])
def test_few_bins_are_no_trouble(whole: int, last: float) -> None:
    edges = (*(edge for edge in EDGES if edge < last), last)
    fit = fitted_norms(NormHistogram(edges, (500.0,) + (3.0,) * (len(edges) - 1), 5.0, whole=whole))
    assert np.isfinite(fit.beyond_caps([0.0, 1.0, last], 1)).all()
    assert math.isfinite(best_cap(fit, unit_noise=3.0, cells=1, total_l1=None).width)


def test_a_small_value_does_not_speak_against_units_above_the_cap() -> None:
    """Of 10,000 units in the lowest bin any number may add nothing: that 450 rows are counted says nothing about those above."""
    fit = fit_of({0: 9_973.0, 2: 27.0}, deviation=20.0, whole=1)
    rare, half = fit.informed(1.0, 450.0, 12.0), fit.informed(1.0, 5_000.0, 12.0)
    assert rare.excess(1.0) == pytest.approx(fit.excess(1.0), rel=0.02)
    assert half.excess(1.0) == pytest.approx(fit.excess(1.0), rel=0.02)
    # More than all of them at once is more of others; less than nothing is fewer of them.
    assert fit.informed(1.0, 10_100.0, 12.0).excess(1.0) > 1.1 * fit.excess(1.0)
    assert fit.informed(1.0, 5.0, 2.0).excess(1.0) < 0.8 * fit.excess(1.0)


def test_who_is_in_no_row_is_in_no_bin() -> None:
    """Without a condition of its own a count has no units of no row, and a value far below speaks against many above the cap."""
    fit = fit_of({0: 973.0, 2: 27.0}, deviation=20.0, whole=1, mixed=False)
    assert fit.informed(1.0, 900.0, 12.0).excess(1.0) < 0.9 * fit.excess(1.0)
    assert not fit.unsized


@pytest.mark.parametrize("unit_noise", [3.0, 12.0, 60.0])
def test_bars_of_rare_counts_reach_to_units_that_nothing_shows(unit_noise: float) -> None:
    """27 units of two rows or more, in a noise of 2 to 40: bars held a fifth to two thirds of the truths."""
    seeds, lengths = itertools.count(), list[float]()
    bins = np.bincount(np.searchsorted(np.asarray(EDGES), COUNTS), minlength=len(EDGES))

    def held() -> list[bool]:
        seed = next(seeds)
        fit = fit_of(dict(enumerate(bins.astype(float))), deviation=unit_noise * 2 / 3, whole=1, seed=seed)
        choice = best_cap(fit, unit_noise=unit_noise, cells=1, total_l1=None, grain=1.0)
        value = float(np.minimum(COUNTS, choice.cap).sum() + np.random.default_rng([seed, 2]).normal(0.0, choice.noise))
        (added,) = bias_bound(fit, choice, cells=1, beyond=0.05, values=[value], grain=1.0)
        low, high = value - 1.96 * choice.noise, value + 1.96 * choice.noise + added
        lengths.append((high - low) / (2 * 1.96 * unit_noise))
        return [low <= TRUTH <= high]

    watched("rare counts by their model").require(held)
    assert np.median(lengths) < 3.0, "twice the noise of a cap of 1, and what it takes to reach"


def test_what_is_missing_is_told_beside_the_value() -> None:
    """27 rows of 480, and not of the 10,000 units that the lowest bin may stand for."""
    fit = fit_of({0: 9_973.0, 2: 27.0}, deviation=2.0, whole=1)
    choice = best_cap(fit, unit_noise=12.0, cells=1, total_l1=None, grain=1.0)
    lost, most = lost_beside(fit, choice, 453.0)
    assert 0.04 < lost < most < 0.12 and fit.unsized
    assert choice.lost < 0.01
    assert not fit_of({0: 500.0, 6: 3_000.0}, deviation=2.0, whole=1).unsized
