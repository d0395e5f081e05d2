"""Norms fitted to noisy histograms. Noise is drawn from fixed seeds, so that every figure below is the same on every machine."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from lapwing.planning.norm_fit import NormFit, NormHistogram, fitted_norms

LARGEST = 1000.0
EDGES = (*(2.0 ** (power / 2.0) for power in range(20)), LARGEST)
DEVIATION = 20.0


def units_by_bin(norms: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.bincount(np.searchsorted(np.asarray(EDGES), norms - 1e-9), minlength=len(EDGES)).astype(float)


def pareto(units: int, exponent: float) -> npt.NDArray[np.float64]:
    """A power law, cut at the largest norm, without chance: evenly spaced quantiles."""
    return np.minimum(((np.arange(units) + 0.5) / units) ** (-1.0 / exponent), LARGEST)


def fit_of(norms: npt.NDArray[np.float64], *, seed: int, deviation: float = DEVIATION) -> NormFit:
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
    fits = [fit_of(norms, seed=seed) for seed in range(40)]
    cap = max(edge for edge, units in zip(EDGES, units_by_bin(norms), strict=True) if units > 2.0 * DEVIATION)
    truth = true_excess(norms, cap)
    assert 0.5 * truth < np.median([fit.excess(cap) for fit in fits]) < 2.0 * truth
    assert np.mean([fit.excess_upper(cap, beyond=0.05) >= truth for fit in fits]) >= 0.7


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
