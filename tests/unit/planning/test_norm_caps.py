"""Caps chosen from noisy histograms of norms, and how far intervals must reach; seeds are fixed."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest
from benchmarks.norm_caps import Table, drawn_table, edges, unit_noise

from lapwing.contribution.clipping_bound import _spread, best_cap, bias_bound, predicted
from lapwing.contribution.model import ContributionModel, NormHistogram, fitted_norms
from tests.support.power import Together
from tests.support.promises import watched
from tests.unit.planning.test_norm_fit import EDGES, LARGEST, fit_of, pareto, units_by_bin

SCORE = 1.959964


def error(norms: np.typing.NDArray[np.float64], cap: float, noise: float) -> float:
    return math.hypot(noise * cap, float(np.maximum(norms - cap, 0.0).sum()))


@pytest.mark.parametrize("exponent", [1.1, 1.5, 2.0])
def test_the_error_of_one_cell_is_near_the_least(exponent: float) -> None:
    norms = pareto(20_000, exponent)
    least = min(error(norms, 2.0 ** (step / 8.0), 6.5) for step in range(80))
    ratios = [
        error(norms, best_cap(fit_of(norms, seed=seed), unit_noise=6.5, cells=1, total_l1=None).cap, 6.5) / least for seed in range(20)
    ]
    assert np.median(ratios) < 1.6
    assert max(ratios) < 3.0


def test_more_noise_and_more_cells_make_the_cap_smaller() -> None:
    fit = fit_of(pareto(50_000, 1.2), seed=1)
    by_noise = [best_cap(fit, unit_noise=noise, cells=10, total_l1=None).cap for noise in (1.0, 10.0, 100.0)]
    by_cells = [best_cap(fit, unit_noise=10.0, cells=cells, total_l1=fit.total()).cap for cells in (1, 10, 100, 1000)]
    assert by_noise == sorted(by_noise, reverse=True)
    assert by_cells == sorted(by_cells, reverse=True)
    assert by_cells[-1] < by_cells[0]


def test_almost_no_noise_takes_nothing_away() -> None:
    fit = fit_of(pareto(50_000, 1.2), seed=1, deviation=0.1)
    choice = best_cap(fit, unit_noise=1e-6, cells=3, total_l1=None)
    assert choice.cap == LARGEST
    assert choice.lost == choice.bias == choice.above == 0.0
    assert bias_bound(fit, choice, cells=3, beyond=0.05, values=[1e5, 2e5, 3e5]) == [0.0, 0.0, 0.0]


def test_what_is_predicted_agrees_with_itself() -> None:
    fit = fit_of(pareto(20_000, 1.3), seed=3)
    choice = best_cap(fit, unit_noise=10.0, cells=1, total_l1=None)
    again = predicted(fit, choice.cap, unit_noise=10.0, cells=1, total_l1=None)
    assert (again.cap, again.width) == pytest.approx((choice.cap, choice.width))
    assert choice.noise == pytest.approx(10.0 * choice.cap)
    assert choice.lost == pytest.approx(fit.excess(choice.cap) / fit.total())
    assert 0.0 < choice.lost < choice.lost_upper < 1.0
    assert choice.above == pytest.approx(fit.above(choice.cap))
    other = [predicted(fit, float(edge), unit_noise=10.0, cells=1, total_l1=None).width for edge in EDGES]
    assert choice.width <= min(other) * (1.0 + 1e-9)


def test_a_released_sum_says_more_about_the_tail() -> None:
    """Where the histogram shows hardly more than units of one row, a sum far above what it expects speaks for longer ones."""
    fit = fit_of(np.ones(3_000), seed=5)
    choice = best_cap(fit, unit_noise=30.0, cells=1, total_l1=None)

    def reach(total: float) -> float:
        return bias_bound(fit, choice, cells=1, beyond=0.05, values=[total], grain=1.0)[0]

    assert reach(3_000.0) <= reach(4_000.0) <= reach(8_000.0)
    again = fit.informed(choice.cap, 8_000.0, choice.noise)
    assert again.total() > fit.total() and again.chances.sum() == pytest.approx(1.0)


def test_a_unit_nothing_can_see_is_allowed_for_where_it_would_matter() -> None:
    fit = fit_of(np.full(20_000, 3.0), seed=5)
    choice = best_cap(fit, unit_noise=2.0, cells=1, total_l1=None)

    def added(cells: int, extreme: float, *, total: float = 60_000.0) -> list[float]:
        return bias_bound(fit, choice, cells=cells, beyond=0.05, values=[total / cells] * cells, grain=1.0, extreme=extreme)

    assert choice.cap < 6.0
    assert added(1, LARGEST) == pytest.approx([LARGEST - choice.cap + choice.bias], rel=0.01)
    # At home in one of five cells, and it may be any of them; in one of a hundred it may go unmentioned.
    assert added(5, LARGEST) == pytest.approx([LARGEST - choice.cap] * 5, rel=0.05)
    assert added(1, 0.0)[0] < 100.0
    assert added(100, LARGEST)[0] < 0.05 * LARGEST
    # Units all over the cells: so is this one, and every cell loses its part of it.
    assert added(100, 100 * LARGEST, total=170_000.0)[0] == pytest.approx(LARGEST, rel=0.2)


def test_units_at_home_in_some_cells_are_told_from_units_all_over_them() -> None:
    """Two rows of a unit are in one cell as often as the cells add up to, and it is in as many cells as that makes."""
    random = np.random.default_rng(3)
    for spread, together in (("one cell", 1.0), ("all cells", 0.055)):
        drawn = drawn_table("pareto 1.5", 20_000, 24, spread, random)
        fit = histogram_of(drawn.norms, 5.0, random)
        found = _spread(fit, 20.0, 24, float(drawn.clipped(20.0).sum()), 1.0)
        assert found.together == pytest.approx(together, rel=0.25)
        sums = np.bincount(drawn.unit, weights=drawn.value)
        long = drawn.norms > 30.0
        at = np.interp(30.0, fit.norms(), found.reached)
        assert at == pytest.approx(float(np.median(sums[long] / drawn.norms[long])), rel=0.15)


def test_the_sum_of_the_cells_tells_how_units_spread() -> None:
    """The same norms: with rows all over the cells there is more in every cell, and more to lose."""
    fit = fit_of(pareto(50_000, 1.5), seed=6)
    in_one = predicted(fit, 8.0, unit_noise=5.0, cells=100, total_l1=fit.total())
    in_all = predicted(fit, 8.0, unit_noise=5.0, cells=100, total_l1=10.0 * fit.total())
    assert in_one.bias == pytest.approx(fit.excess(8.0) / 100.0, rel=0.1)
    assert in_all.bias > 4.0 * in_one.bias
    unknown = predicted(fit, 8.0, unit_noise=5.0, cells=100, total_l1=None)
    assert in_one.bias < unknown.bias < in_all.bias


def test_the_norm_of_a_row_need_not_be_one() -> None:
    """The same units, measured in hundredths: nothing but the unit of measurement changes."""
    norms = pareto(50_000, 1.5)
    noisy = tuple(float(each) for each in units_by_bin(norms))
    counted = fitted_norms(NormHistogram(EDGES, noisy, 20.0))
    scaled = fitted_norms(NormHistogram(tuple(128.0 * edge for edge in EDGES), noisy, 20.0))
    one = best_cap(counted, unit_noise=5.0, cells=100, total_l1=3.0 * counted.total(), grain=1.0)
    other = best_cap(scaled, unit_noise=5.0, cells=100, total_l1=3.0 * scaled.total(), grain=128.0)
    assert other.cap == pytest.approx(128.0 * one.cap, rel=0.3)
    assert best_cap(counted, unit_noise=5.0, cells=100, total_l1=3.0 * counted.total()) == one


@pytest.mark.parametrize("times", [1.0, 2.0, 5.0, 10.0])
def test_where_the_norm_of_a_row_is_not_known_the_sum_of_the_cells_still_counts(times: float) -> None:
    noisy = tuple(float(each) for each in units_by_bin(pareto(50_000, 1.5)))
    fit = fitted_norms(NormHistogram(tuple(128.0 * edge for edge in EDGES), noisy, 20.0))
    found = predicted(fit, 500.0, unit_noise=5.0, cells=100, total_l1=times * fit.total())
    assert 0.9 * fit.excess(500.0) / 100.0 < found.bias < 10.1 * fit.excess(500.0) / 100.0
    assert found.bias >= 0.9 * times * fit.excess(500.0) / 100.0


def test_larger_cells_may_have_lost_more() -> None:
    fit = fit_of(pareto(50_000, 1.2), seed=7)
    choice = best_cap(fit, unit_noise=10.0, cells=4, total_l1=None)
    bounds = bias_bound(fit, choice, cells=4, beyond=0.05, values=[10_000.0, 20_000.0, 40_000.0, 80_000.0])
    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[-1]
    surer = bias_bound(fit, choice, cells=4, beyond=0.001, values=[10_000.0, 20_000.0, 40_000.0, 80_000.0])
    assert all(sure > bound for sure, bound in zip(surer, bounds, strict=True))


def test_what_is_missing_from_cells_together_is_the_sum_over_them() -> None:
    """A total over 100 cells: with rows all over them, it loses more than the norms do."""
    fit = fit_of(pareto(50_000, 1.5), seed=6, deviation=0.5)
    choice = predicted(fit, 8.0, unit_noise=0.01, cells=100, total_l1=10.0 * fit.total(), grain=1.0)
    kept = float(np.minimum(fit.norms(), 8.0) @ fit.expected)

    def missing(cells: int, values: list[float]) -> float:
        return sum(bias_bound(fit, choice, cells=cells, beyond=0.05, values=values, grain=1.0))

    for times in (1.0, 4.0, 8.0):
        assert 0.9 * fit.excess(8.0) < missing(100, [times * kept]) < 10.0 * fit.excess(8.0)
        assert missing(100, [times * kept]) < 1.01 * missing(100, [times * kept / 100.0] * 100)
    assert missing(100, [8.0 * kept]) > 3.0 * missing(1, [8.0 * kept])


@pytest.mark.parametrize("values", [[0.0, 0.0, 0.0], [-50.0, -20.0, 5.0], [1e9, -1e9, 0.0]])
def test_released_values_may_be_anything(values: list[float]) -> None:
    fit = fit_of(pareto(1_000, 1.2), seed=8, deviation=200.0)
    choice = best_cap(fit, unit_noise=60.0, cells=3, total_l1=None)
    bounds = bias_bound(fit, choice, cells=3, beyond=0.05, values=values)
    assert all(math.isfinite(bound) and bound >= 0.0 for bound in bounds)


def histogram_of(norms: np.typing.NDArray[np.float64], deviation: float, random: np.random.Generator) -> ContributionModel:
    ends = edges()
    bins = np.bincount(np.searchsorted(np.asarray(ends), norms - 1e-9), minlength=len(ends))
    noisy = bins + random.normal(0.0, deviation, size=len(ends))
    return fitted_norms(NormHistogram(tuple(ends), tuple(float(each) for each in noisy), deviation))


@pytest.mark.parametrize("law", ["pareto 1.1", "log-normal", "uniform"])
def test_intervals_cover_what_was_there_before_the_cap(law: str) -> None:
    """Coverage over budgets and ways of spreading; the benchmark measures the same over many more."""
    random = np.random.default_rng(1)
    tables = [drawn_table(law, 5_000, cells, spread, random) for cells in (1, 24, 300) for spread in ("one cell", "all cells")]
    truths = [drawn.clipped(math.inf) for drawn in tables]

    def shares() -> list[float]:
        found = []
        for (drawn, truth), epsilon in itertools.product(zip(tables, truths, strict=True), (0.3, 3.0)):
            noise, cells = unit_noise(epsilon), len(truth)
            fit = histogram_of(drawn.norms, noise / math.sqrt(0.1), random)
            choice = best_cap(fit, unit_noise=noise / math.sqrt(0.9), cells=cells, total_l1=float(truth.sum()))
            answer = drawn.clipped(choice.cap) + random.normal(0.0, choice.noise, size=cells)
            added = np.asarray(bias_bound(fit, choice, cells=cells, beyond=0.05, values=list(answer)))
            low, high = answer - SCORE * choice.noise, answer + SCORE * choice.noise + added
            found.append(float(((low <= truth) & (truth <= high)).mean()))
        return found

    watched("bars before the cap").require(shares)


@pytest.mark.parametrize(("beyond", "promise"), [(0.05, "cells that noise hides"), (1e-3, "cells that noise hides, surely")])
def test_cells_whose_sizes_the_noise_hides_are_covered_too(beyond: float, promise: str) -> None:
    """A few cells have most of the rows, noise is larger than any of them, and most is cut off: their bars must reach as far."""
    random = np.random.default_rng(3)
    cells, units, score = 72, 1_700, -NormalDist().inv_cdf(beyond / 2.0)
    sizes = np.where(np.arange(cells) < 12, 8.0, 1.0)

    def shares() -> list[float]:
        """Of all cells, and of the large ones."""
        rows = np.clip(np.rint(random.lognormal(1.5, 0.8, size=units)), 1, 100).astype(np.int64)
        unit = np.repeat(np.arange(units), rows)
        keys, counts = np.unique(unit * cells + random.choice(cells, size=len(unit), p=sizes / sizes.sum()), return_counts=True)
        value = counts.astype(float)
        norms = np.sqrt(np.bincount(keys // cells, weights=value**2, minlength=units))
        drawn = Table(keys // cells, keys % cells, value, norms, cells)
        truth = drawn.clipped(math.inf)
        fit = histogram_of(drawn.norms, 30.0, random)
        choice = best_cap(fit, unit_noise=150.0, cells=cells, total_l1=None)
        assert choice.lost > 0.5
        answer = drawn.clipped(choice.cap) + random.normal(0.0, choice.noise, size=cells)
        added = np.asarray(bias_bound(fit, choice, cells=cells, beyond=beyond, values=list(answer)))
        inside = (answer - score * choice.noise <= truth) & (truth <= answer + score * choice.noise + added)
        return [float(inside.mean()), float(inside[:12].mean())]

    both = Together(shares)
    for place in range(2):
        watched(promise).require(both.place(place))
