"""The cap on the norm of what a unit adds to a statement, and how much the cap may take away, from fitted norms.

The release multiplies each unit's vector by ``min(1, cap / norm)`` and adds noise in proportion to the cap to each cell. What that takes
away has a Euclidean length of at most the *excess*, the sum of what norms have above the cap. How much of it shows in the cells depends on
how units spread: one with all its rows in one cell loses it there; one with its rows all over the cells has many more rows for the same
norm. The released sum of all cells, beside the sum of norms, tells how many are of either kind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from lapwing.planning.norm_fit import Floats, NormFit

BEYOND = 0.05
"""Chance that an interval, of noise and what was cut, misses: the interval the cap is chosen for."""
FIT_BEYOND = 0.05
"""Chance that more than the fit's upper bound was cut."""
UNLIKE = 0.2
"""Standard deviation, as a share of the expected loss, by which cells of unlike units lose more or less than others."""
RARE = 0.02
"""Long units that are in a given cell with a smaller chance, all together, are left out of its interval."""
STEPS_FINE = 4
"""Caps tried between two neighbouring edges of bins, once the best edge is known."""
SPREADING = 0.5
"""The part of the units that is taken to spread over all cells while nothing is known about it."""
UNSEEN_CELLS = 0.05
"""The share of cells in which one unit of the largest norm may go unmentioned."""


@dataclass(frozen=True, slots=True)
class CapChoice:
    """A cap, and what is predicted of it."""

    cap: float
    lost: float
    """Expected share of the sum of all cells, and of an ordinary cell, that the cap takes away."""
    lost_upper: float
    above: float
    """Expected units above the cap."""
    noise: float
    """Standard deviation of the noise of a cell."""
    bias: float
    """Expected loss of an ordinary cell."""
    width: float
    """Width of the interval of an ordinary cell."""


def best_cap(fit: NormFit, *, unit_noise: float, cells: int, total_l1: float | None) -> CapChoice:
    """The cap with the narrowest interval of an ordinary cell, noise and what was cut together.

    ``unit_noise`` is the standard deviation of a cell's noise under cap 1, ``total_l1`` the sum over all cells, if it is known about.
    """
    spreading = SPREADING if total_l1 is None else _spreading(fit, math.inf, cells, total_l1)
    coarse = [float(edge) for edge in fit.edges]
    choices = _predicted(fit, coarse, unit_noise, cells, spreading)
    at = min(range(len(coarse)), key=lambda each: choices[each].width)
    ends = coarse[max(at - 1, 0)], coarse[min(at + 1, len(coarse) - 1)]
    fine = [ends[0] * (ends[1] / ends[0]) ** (step / (2 * STEPS_FINE)) for step in range(1, 2 * STEPS_FINE)]
    return min([choices[at], *_predicted(fit, fine, unit_noise, cells, spreading)], key=lambda choice: choice.width)


def predicted(fit: NormFit, cap: float, *, unit_noise: float, cells: int, total_l1: float | None) -> CapChoice:
    """What a cap chosen elsewhere would do."""
    spreading = SPREADING if total_l1 is None else _spreading(fit, math.inf, cells, total_l1)
    return _predicted(fit, [cap], unit_noise, cells, spreading)[0]


def _cells_reached(fit: NormFit, cells: int) -> Floats:
    """For a unit of each bin with its rows all over the cells: the sum of its cells over its norm.

    With r rows the expected square of the norm is r + r (r - 1) / cells.
    """
    norms = np.maximum(fit.norms(), 1.0)
    rows = (cells - 1.0) / 2.0 * (np.sqrt(1.0 + 4.0 * cells * norms**2 / max(cells - 1.0, 1.0) ** 2) - 1.0) if cells > 1 else norms
    return np.clip(rows / norms, 1.0, math.sqrt(cells))


def _spreading(fit: NormFit, cap: float, cells: int, total_l1: float) -> float:
    """The part of the units whose rows are all over the cells, so that the cells below the cap add up to ``total_l1``."""
    if cells == 1:
        return 0.0
    below = np.minimum(fit.norms(), cap) * fit.expected
    in_one, in_all = float(below.sum()), float(below @ _cells_reached(fit, cells))
    return min(max((total_l1 - in_one) / (in_all - in_one), 0.0), 1.0) if in_all > in_one > 0.0 else SPREADING


def _predicted(fit: NormFit, caps: Sequence[float], unit_noise: float, cells: int, spreading: float) -> list[CapChoice]:
    reached = 1.0 + spreading * (_cells_reached(fit, cells) - 1.0)
    above, weights = fit.beyond_caps(caps, 0) @ fit.expected, fit.beyond_caps(caps, 1) * reached
    excess, upper = np.maximum(weights @ fit.expected, 0.0), fit.upper(weights, beyond=FIT_BEYOND)
    total = max(float((fit.beyond_caps([0.0], 1) * reached)[0] @ fit.expected), 1e-9)
    noise = unit_noise * np.asarray(caps)
    (mean,), (variance,) = _in_cells(fit, caps, cells, spreading, np.array([1.0 / cells]))
    width = 2.0 * -NormalDist().inv_cdf(BEYOND / 2.0) * noise + _added(
        mean, upper / np.maximum(excess, 1e-9), variance, noise, cells, BEYOND
    )
    return [
        CapChoice(
            cap,
            lost=min(float(excess[at]) / total, 1.0),
            lost_upper=float(upper[at]) / max(total + float(upper[at] - excess[at]), 1e-9),
            above=max(float(above[at]), 0.0),
            noise=float(noise[at]),
            bias=float(excess[at]) / cells,
            width=float(width[at]),
        )
        for at, cap in enumerate(caps)
    ]


def bias_bound(
    fit: NormFit, choice: CapChoice, *, cells: int, beyond: float, values: Sequence[float], extreme_units: float = 1.0
) -> list[float]:
    """For each released value of a cell: how far the upper end of the interval of its noise moves up, to reach what the cap took away.

    With the interval of the noise alone at ``1 - beyond``, both together miss with chance ``beyond``, if the tail is of the fitted family
    and units spread over the cells by chance. ``extreme_units`` units of the largest norm possible, which nothing private can see, are
    allowed for besides.
    """
    released = np.asarray(values, dtype=np.float64)
    mean = max(float(released.mean()), choice.noise / math.sqrt(len(released)))
    signal = max(1.0 - choice.noise**2 / max(float(released.var()), 1e-300), 0.0) if len(released) > 1 else 1.0
    clipped = np.maximum(mean + signal * (released - mean), 0.0)
    shares = clipped / max(float(clipped.sum()), 1e-9)
    spreading = _spreading(fit, choice.cap, cells, float(released.sum()))
    weights = fit.beyond_caps([choice.cap], 1) * (1.0 + spreading * (_cells_reached(fit, cells) - 1.0))
    excess, (upper,) = float((weights @ fit.expected)[0]), fit.upper(weights, beyond=FIT_BEYOND)
    means, variances = (each[:, 0] for each in _in_cells(fit, [choice.cap], cells, spreading, shares))
    added = _added(means, upper / max(excess, 1e-9), variances, np.full(len(released), choice.noise), cells, beyond)
    extreme = extreme_units * _extreme(fit, choice.cap, cells, spreading)
    return [float(each) + extreme for each in added]


def _extreme(fit: NormFit, cap: float, cells: int, spreading: float) -> float:
    """What one unit of the largest norm possible would lose in a cell, unless so few cells would lose it that it may go unmentioned."""
    lost = fit.largest - cap
    in_one = lost if (1.0 - spreading) / cells > UNSEEN_CELLS else 0.0
    in_all = lost / math.sqrt(cells) if spreading > UNSEEN_CELLS and cells * UNSEEN_CELLS < 1.0 else 0.0
    return max(in_one, in_all)


def _in_cells(fit: NormFit, caps: Sequence[float], cells: int, spreading: float, shares: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of what a cell with each share of the whole (rows) loses under each cap (columns), rare long units left out."""
    units, reached = np.maximum(fit.expected, 0.0), _cells_reached(fit, cells)
    longer = np.cumsum(units[::-1])[::-1]
    here = (1.0 - spreading) * shares[:, None] if cells > 1 else np.full((len(shares), 1), math.inf)
    ordinary = np.clip(longer - RARE / np.maximum(here, 1e-12), 0.0, units)
    lost, squared = fit.beyond_caps(caps, 1), fit.beyond_caps(caps, 2)
    mean = (1.0 - spreading) * ordinary @ lost.T + spreading * (units * reached) @ lost.T
    variance = (1.0 - spreading) * ordinary @ squared.T + spreading * (units * (1.0 - reached**2 / cells)) @ squared.T
    return shares[:, None] * mean, shares[:, None] * (variance if cells > 1 else 0.0 * variance)


def _added(mean: Floats, factor: Floats, variance: Floats, noise: Floats, cells: int, beyond: float) -> Floats:
    """What reaches beyond the noise's own interval: the expected loss, and the uncertainties that do not come together.

    ``factor`` says how many times the expected loss it may be at ``FIT_BEYOND``, ``variance`` is by chance from cell to cell.
    """
    normal = NormalDist()
    both, one, fitted = -normal.inv_cdf(beyond / 2.0), -normal.inv_cdf(beyond), -normal.inv_cdf(FIT_BEYOND)
    # A loss makes the lower end safer; the upper end may then miss with nearly the whole chance.
    score = one + (both - one) * np.exp(-1.5 * mean / noise)
    by_cell = np.maximum(_gamma_quantile(mean, variance, score), mean) - mean
    unlike = score * UNLIKE * mean if cells > 1 else 0.0
    reach = np.sqrt((score * noise) ** 2 + (score / fitted * (factor - 1.0) * mean) ** 2 + by_cell**2 + unlike**2)
    return np.maximum(mean + reach - both * noise, 0.0)


def _gamma_quantile(mean: Floats, variance: Floats, score: Floats) -> Floats:
    """Quantiles of gamma laws by the cube-root approximation; the mean where nothing varies."""
    safe = np.maximum(mean, 1e-12)
    relative = variance / safe**2
    return np.where(variance > 0.0, safe * np.maximum(1.0 - relative / 9.0 + score * np.sqrt(relative) / 3.0, 0.0) ** 3, mean)
