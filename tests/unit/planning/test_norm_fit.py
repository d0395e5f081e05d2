"""Norms fitted to noisy histograms. Noise is drawn from fixed seeds, so that every figure below is the same on every machine."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pytest

from lapwing.contribution.model import ContributionModel, NormHistogram, fitted_norms
from lapwing.contribution.significance import normal_scores
from tests.support.promises import coverage

LARGEST = 1000.0
EDGES = (*(2.0 ** (power / 2.0) for power in range(20)), LARGEST)
DEVIATION = 20.0


def units_by_bin(norms: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.bincount(np.searchsorted(np.asarray(EDGES), norms - 1e-9), minlength=len(EDGES)).astype(float)


def pareto(units: int, exponent: float) -> npt.NDArray[np.float64]:
    """A power law, cut at the largest norm, without chance: evenly spaced quantiles."""
    return np.minimum(((np.arange(units) + 0.5) / units) ** (-1.0 / exponent), LARGEST)


def fit_of(norms: npt.NDArray[np.float64], *, seed: int, deviation: float = DEVIATION) -> ContributionModel:
    noise = np.random.default_rng(seed).normal(0.0, deviation, size=len(EDGES))
    noisy = tuple(float(each) for each in units_by_bin(norms) + noise)
    return fitted_norms(NormHistogram(EDGES, noisy, deviation))


def true_excess(norms: npt.NDArray[np.float64], cap: float) -> float:
    return float(np.maximum(norms - cap, 0.0).sum())


def test_without_noise_the_fit_is_the_histogram() -> None:
    norms = pareto(50_000, 1.2)
    fit = fitted_norms(NormHistogram(EDGES, tuple(units_by_bin(norms)), 1e-3))
    assert fit.units() == pytest.approx(50_000, rel=1e-6)
    assert fit.above(EDGES[8]) == pytest.approx(float((norms > EDGES[8]).sum()), rel=1e-6)
    for cap in (4.0, 30.0, 200.0):
        assert fit.excess(cap) == pytest.approx(true_excess(norms, cap), rel=0.1)
        assert fit.excess_upper(cap, beyond=0.05) == pytest.approx(fit.excess(cap), rel=0.01)


def test_above_the_largest_norm_there_is_nothing() -> None:
    fit = fit_of(pareto(50_000, 1.2), seed=1)
    assert fit.largest == LARGEST
    assert fit.above(LARGEST) == 0.0
    assert fit.excess(LARGEST) == 0.0
    assert fit.excess_upper(LARGEST, beyond=0.01) == 0.0


def test_a_higher_cap_takes_less_and_a_surer_bound_is_higher() -> None:
    fit = fit_of(pareto(20_000, 1.5), seed=2)
    excesses = [fit.excess(cap) for cap in (1.0, 2.0, 8.0, 64.0, 512.0)]
    assert excesses == sorted(excesses, reverse=True)
    assert fit.excess(64.0) < fit.excess_upper(64.0, beyond=0.2) < fit.excess_upper(64.0, beyond=0.01)
    assert fit.total() > fit.excess(1.0)


@pytest.mark.parametrize("exponent", [1.1, 1.5, 2.5])
def test_the_tail_of_a_power_law_is_continued_where_bins_show_nothing(exponent: float) -> None:
    norms = pareto(20_000, exponent)
    promise = coverage("upper bounds of power laws")
    fits = [fit_of(norms, seed=seed) for seed in range(promise.answers)]
    cap = max(edge for edge, units in zip(EDGES, units_by_bin(norms), strict=True) if units > 2.0 * DEVIATION)
    truth = true_excess(norms, cap)
    assert 0.5 * truth < np.median([fit.excess(cap) for fit in fits]) < 2.0 * truth
    promise.require(sum(fit.excess_upper(cap, beyond=0.05) >= truth for fit in fits), of=len(fits))


def test_a_sharp_end_is_not_continued_far() -> None:
    norms = np.tile(np.arange(1.0, 21.0), 250)
    for seed in range(20):
        fit = fit_of(norms, seed=seed)
        assert fit.above(40.0) < DEVIATION
        assert fit.excess(40.0) < 0.01 * norms.sum()


def test_units_heaped_up_at_the_largest_norm_are_seen() -> None:
    norms = np.concatenate((np.full(5_000, 3.0), np.full(400, LARGEST)))
    fit = fit_of(norms, seed=4)
    assert fit.excess(500.0) == pytest.approx(400 * 500.0, rel=0.2)
    assert fit.excess_upper(500.0, beyond=0.05) > fit.excess(500.0)


def test_gaps_between_whole_numbers_do_not_count_as_the_end() -> None:
    """Norms 1, 2, 3, ...: no unit is between 1 and 2, nor between 2 and 2.83."""
    norms = np.floor(pareto(50_000, 1.5))
    fits = [fit_of(norms, seed=seed) for seed in range(20)]
    assert np.median([fit.excess(32.0) for fit in fits]) == pytest.approx(true_excess(norms, 32.0), rel=0.5)


def sampled_fit(norms: npt.NDArray[np.float64], *, seed: int, deviation: float, one_in: int, told: int | None = None) -> ContributionModel:
    """The fit of a sample of units, which is ``told`` that it is one: each bin has as many of its units as chance gives it, and noise."""
    random = np.random.default_rng(seed)
    counted = random.binomial(units_by_bin(norms).astype(int), 1 / one_in)
    noisy = tuple(float(each) for each in one_in * (counted + random.normal(0.0, deviation, size=len(EDGES))))
    return fitted_norms(NormHistogram(EDGES, noisy, one_in * deviation, one_in if told is None else told))


def test_a_sample_is_less_sure_than_all_units_also_where_it_shows_none() -> None:
    histogram = NormHistogram((1.0, 2.0), (800.0, 0.0), 8.0, 8)
    assert list(histogram.variances()) == [64 + 7 * 800 + 7 * 8, 64 + 7 * 8]
    assert list(NormHistogram((1.0, 2.0), (800.0, 0.0), 8.0).variances()) == [64, 64]


@pytest.mark.parametrize("deviation", [0.1, 1.0])
def test_upper_bounds_from_a_sample_reach_to_the_units_it_left_out(deviation: float) -> None:
    """A hundred units far above the others, of which twelve are in the sample on average, sometimes six."""
    norms = np.concatenate((pareto(200_000, 2.5), np.full(100, 600.0)))
    truth, promise = true_excess(norms, 100.0), coverage("upper bounds from samples")

    def reached(told: int) -> int:
        fits = (sampled_fit(norms, seed=seed, deviation=deviation, one_in=8, told=told) for seed in range(promise.answers))
        return sum(fit.excess_upper(100.0, beyond=0.05) >= truth for fit in fits)

    promise.require(reached(8), of=promise.answers)
    assert reached(1) < promise.least(promise.answers), "a sample that is not told that it is one"


def test_a_sample_of_a_power_law_gives_its_tail() -> None:
    norms = pareto(400_000, 1.3)
    promise = coverage("upper bounds from samples of power laws")
    fits = [sampled_fit(norms, seed=seed, deviation=DEVIATION, one_in=8) for seed in range(promise.answers)]
    truth = true_excess(norms, 200.0)
    assert 0.5 * truth < np.median([fit.excess(200.0) for fit in fits]) < 2.0 * truth
    assert np.median([fit.units() for fit in fits]) == pytest.approx(400_000, rel=0.01)
    promise.require(sum(fit.excess_upper(200.0, beyond=0.05) >= truth for fit in fits), of=len(fits))


@pytest.mark.parametrize(
    "histogram",
    [
        NormHistogram((1.0,), (30.0,), 5.0),
        NormHistogram((1.0, 1.4), (30.0, -3.0), 5.0),
        NormHistogram(EDGES, (0.0,) * len(EDGES), 5.0),
        NormHistogram(EDGES, (-9.0,) * len(EDGES), 5.0),
        NormHistogram(EDGES, (-9.0,) * (len(EDGES) - 1) + (50.0,), 5.0),
        NormHistogram(tuple(2.0 ** (power / 2.0) for power in range(12, 72)), (1e6,) * 60, 1e3),
    ],
)
def test_any_histogram_gives_finite_figures(histogram: NormHistogram) -> None:
    fit = fitted_norms(histogram)
    for cap in (0.5, 1.0, 7.0, histogram.edges[-1]):
        figures = (fit.units(), fit.total(), fit.above(cap), fit.excess(cap), fit.excess_upper(cap, beyond=0.05))
        assert all(math.isfinite(figure) for figure in figures)
        assert min(figures[1:]) >= 0.0


def test_units_that_begin_at_a_few_rows_do_not_bend_the_tail() -> None:
    """A power law from 3 on, so noisy that two doublings are seen: bins below its peak rise, and say nothing of its end."""
    norms = np.minimum(np.floor(2.85 * pareto(6_000, 1.2)), LARGEST)
    promise, truth = coverage("upper bounds where units begin at a few rows"), true_excess(norms, 50.0)
    fits = (fit_of(norms, seed=seed, deviation=190.0) for seed in range(promise.answers))
    promise.require(sum(fit.excess_upper(50.0, beyond=0.05) >= truth for fit in fits), of=promise.answers)


@pytest.mark.xfail(strict=True, reason="75 % of 600 such bounds hold, 95 % are promised: a hump is not of the family of tails")
def test_a_hump_too_broad_for_any_bin_is_seen_as_a_whole() -> None:
    """Units of two kinds: of the second about two deviations in each of six bins."""
    quantiles = (np.arange(300) + 0.5) / 300
    norms = np.concatenate((np.full(5_700, 3.0), np.minimum(np.ceil(-150.0 * np.log(quantiles)), LARGEST)))
    promise, truth = coverage("upper bounds of a broad hump"), true_excess(norms, 50.0)
    fits = (fit_of(norms, seed=seed, deviation=19.0) for seed in range(promise.answers))
    promise.require(sum(fit.excess_upper(50.0, beyond=0.05) >= truth for fit in fits), of=promise.answers)


def test_few_long_units_are_expected_where_the_table_shows_them() -> None:
    """Fifteen of a thousand units have a hundred times the rows of the others; the statement keeps six tenths and has more noise.

    Of its own histogram alone, 29 of 100 such bounds hold: a hump is not of the family of tails.
    """
    quantiles = (np.arange(300) + 0.5) / 300
    rows = np.concatenate((np.full(19_700, 5.0), np.ceil(400.0 * np.exp([0.3 * NormalDist().inv_cdf(each) for each in quantiles]))))
    norms, cap = np.ceil(0.6 * rows), 16.0
    promise, truth = coverage("upper bounds of two kinds of units"), true_excess(norms, cap)
    held = alone = 0
    for seed in range(promise.answers):
        statement = fit_of(norms, seed=seed, deviation=43.0).histogram
        assert statement is not None
        profile = fit_of(rows, seed=10_000 + seed, deviation=18.6)
        held += fitted_norms(statement, profile).excess_upper(cap, beyond=0.05) >= truth
        alone += fitted_norms(statement).excess_upper(cap, beyond=0.05) >= truth
    promise.require(held, of=promise.answers)
    assert alone < 0.8 * promise.answers, alone


def test_how_many_units_an_unseen_tail_has_is_a_matter_of_chance() -> None:
    """Few long units are expected under a curve: the upper bound allows for more of them than expected."""
    fit = fit_of(pareto(20_000, 1.5), seed=2)
    weights = fit.beyond_caps([200.0], 1)
    means = fit.tails @ weights.T
    order = np.argsort(means[:, 0])
    curves_alone = means[order[int((np.cumsum(fit.chances[order]) < 0.95).sum())], 0]
    assert fit.excess_upper(200.0, beyond=0.05) > 1.1 * curves_alone


def test_far_noise_of_laplaces_law_is_not_taken_for_units() -> None:
    """A pure account has this law: of histograms of noise alone, one in thirty seemed to show units, and bars were twenty times as long."""

    def seen(laplace: bool) -> int:
        draws = np.random.default_rng(8).laplace(0.0, DEVIATION / math.sqrt(2.0), size=(1_000, len(EDGES)))
        return sum(fitted_norms(NormHistogram(EDGES, tuple(map(float, each)), DEVIATION, laplace=laplace)).seen for each in draws)

    assert seen(laplace=True) <= 12 and seen(laplace=False) >= 25


def test_scores_of_laplaces_law_are_those_of_the_same_chance() -> None:
    scores = np.array([-2.0, 0.0, 1.0, 4.0, 7.0, 1e6])
    assert (normal_scores(scores, laplace=False) == scores).all()
    found = normal_scores(scores, laplace=True)
    assert (np.diff(found) > 0.0).all() and np.isfinite(found).all()
    for score, normal in zip(scores[2:5], found[2:5], strict=True):
        assert 1.0 - NormalDist().cdf(normal) == pytest.approx(math.exp(-math.sqrt(2.0) * score) / 2.0)


@pytest.mark.slow
def test_noise_far_above_all_units_is_hardly_ever_taken_for_some() -> None:
    """Of 2,000 histograms of units with one to four rows, six had somebody in the upper half by noise alone, and caps far too high."""
    noise = np.random.default_rng(9).normal(0.0, DEVIATION, size=(2_000, len(EDGES)))
    noise[:, :5] += 50.0 * DEVIATION
    fits = [fitted_norms(NormHistogram(EDGES, tuple(map(float, each)), DEVIATION)) for each in noise]
    assert sum(bool(fit.variance[12:].any()) for fit in fits) <= 2


def test_units_far_above_all_others_are_seen_where_they_stand_out() -> None:
    norms = np.concatenate((np.full(5_000, 2.0), np.full(170, 300.0)))
    assert all(fit_of(norms, seed=seed).above(250.0) > 40.0 for seed in range(20))
