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
RARE = 0.005
"""Long units that are in a given cell with a smaller chance, all together, are left out of its interval."""
STEPS_FINE = 4
"""Caps tried between two neighbouring edges of bins, once the best edge is known."""
ODDS = np.geomspace(1e-2, 1e7, 55)
"""How many units are spread over all cells for one in a single cell, at norm 1; a longer norm makes it less likely, in proportion."""
ODDS_UNKNOWN = 6.0
"""The odds while nothing is known about them."""
COUNTED = 0.05
"""If more than this part of the units have a norm of at most 2, norms are taken to be those of counts."""
COMMON = 0.8
"""The norm that this part of the units do not surpass is the first guess of the norm of a row, where it is not known."""
GRAINS = 64
"""Norms of a row that are tried, where it is not known."""
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


def best_cap(fit: NormFit, *, unit_noise: float, cells: int, total_l1: float | None, grain: float | None = None) -> CapChoice:
    """The cap with the narrowest interval of an ordinary cell, noise and what was cut together.

    ``unit_noise`` is the standard deviation of a cell's noise under cap 1, ``total_l1`` the sum over all cells, if it is known about,
    ``grain`` the norm of a unit with one row: 1 for counts. What is not known is guessed from the norms.
    """
    spread = _spread(fit, math.inf, cells, total_l1, grain)
    coarse = [float(edge) for edge in fit.edges]
    choices = _predicted(fit, coarse, unit_noise, spread)
    at = min(range(len(coarse)), key=lambda each: choices[each].width)
    ends = coarse[max(at - 1, 0)], coarse[min(at + 1, len(coarse) - 1)]
    fine = [ends[0] * (ends[1] / ends[0]) ** (step / (2 * STEPS_FINE)) for step in range(1, 2 * STEPS_FINE)]
    return min([choices[at], *_predicted(fit, fine, unit_noise, spread)], key=lambda choice: choice.width)


def predicted(fit: NormFit, cap: float, *, unit_noise: float, cells: int, total_l1: float | None, grain: float | None = None) -> CapChoice:
    """What a cap chosen elsewhere would do."""
    return _predicted(fit, [cap], unit_noise, _spread(fit, math.inf, cells, total_l1, grain))[0]


@dataclass(frozen=True, slots=True, eq=False)
class _Spread:
    """How units spread over the cells; arrays have an entry for each bin of the fit and one for the heap."""

    cells: int
    everywhere: Floats
    """The part of the units whose rows are all over the cells; the others have theirs in one cell."""
    reached: Floats
    """For a unit with its rows all over the cells: the sum of its cells over its norm."""

    def of_a_norm(self) -> Floats:
        """The sum of a unit's cells over its norm, expected."""
        return 1.0 + self.everywhere * (self.reached - 1.0)


def _spread(fit: NormFit, cap: float, cells: int, total_l1: float | None, grain: float | None) -> _Spread:
    """The spread with which the cells, clipped at ``cap``, add up to ``total_l1``.

    Of rows in one cell the norm is their sum, of rows all over the cells it is much less: where there are units of both kinds, the longest
    norms are of the first.
    """
    norms = fit.norms()
    if cells == 1:
        return _Spread(1, np.zeros_like(norms), np.ones_like(norms))
    below = np.minimum(norms, cap) * np.maximum(fit.expected, 0.0)
    if grain is None:
        grain = 1.0 if _counted(fit) else _rows_norm(fit, below, cells, total_l1)
    reached, in_rows = _reached(norms / grain, cells), np.maximum(norms / grain, 1.0)
    odds = ODDS_UNKNOWN
    if total_l1 is not None:
        sums = below.sum() + (1.0 / (1.0 + in_rows / ODDS[:, None])) @ (below * (reached - 1.0))
        odds = math.exp(float(np.interp(total_l1, sums, np.log(ODDS))))
    return _Spread(cells, 1.0 / (1.0 + in_rows / odds), reached)


def _rows_norm(fit: NormFit, below: Floats, cells: int, total_l1: float | None) -> float:
    """A guess of the norm of a row: that of a common unit, or as much less as it takes for the cells to add up to what they do."""
    common = _quantile_norm(fit, COMMON)
    if total_l1 is None:
        return common
    grains = np.geomspace(common, float(fit.edges[0]) / math.sqrt(cells), GRAINS)
    sums = _reached(fit.norms() / grains[:, None], cells) @ below
    return math.exp(float(np.interp(total_l1, sums, np.log(grains))))


def _reached(in_rows: Floats, cells: int) -> Floats:
    """Of rows of norm 1 all over the cells: their number over their norm. With r rows the expected square of the norm is
    r + r (r - 1) / cells."""
    in_rows = np.maximum(in_rows, 1.0)
    rows = (cells - 1.0) / 2.0 * (np.sqrt(1.0 + 4.0 * cells * in_rows**2 / (cells - 1.0) ** 2) - 1.0)
    return np.clip(rows / in_rows, 1.0, math.sqrt(cells))


def _counted(fit: NormFit) -> bool:
    """Whether norms look like those of counts: some units have one or two rows."""
    return _quantile_norm(fit, COUNTED) <= 2.0


def _quantile_norm(fit: NormFit, part: float) -> float:
    """The norm that a part of the units do not surpass."""
    units = np.cumsum(np.maximum(fit.expected, 0.0))
    return float(fit.norms()[int(np.searchsorted(units, part * units[-1]))])


def _predicted(fit: NormFit, caps: Sequence[float], unit_noise: float, spread: _Spread) -> list[CapChoice]:
    above, weights = fit.beyond_caps(caps, 0) @ fit.expected, fit.beyond_caps(caps, 1) * spread.of_a_norm()
    excess, upper = np.maximum(weights @ fit.expected, 0.0), fit.upper(weights, beyond=FIT_BEYOND)
    total = max(float((fit.beyond_caps([0.0], 1) * spread.of_a_norm())[0] @ fit.expected), 1e-9)
    noise = unit_noise * np.asarray(caps)
    (mean,), (variance,) = _in_parts(fit, caps, spread, np.array([1.0 / spread.cells]), spread.cells)
    added = _added(mean, upper / np.maximum(excess, 1e-9), variance, noise, spread.cells, BEYOND)
    width = 2.0 * -NormalDist().inv_cdf(BEYOND / 2.0) * noise + added
    return [
        CapChoice(
            cap,
            lost=min(float(excess[at]) / total, 1.0),
            lost_upper=float(upper[at]) / max(total + float(upper[at] - excess[at]), 1e-9),
            above=max(float(above[at]), 0.0),
            noise=float(noise[at]),
            bias=float(excess[at]) / spread.cells,
            width=float(width[at]),
        )
        for at, cap in enumerate(caps)
    ]


def bias_bound(
    fit: NormFit,
    choice: CapChoice,
    *,
    cells: int,
    beyond: float,
    values: Sequence[float],
    grain: float | None = None,
    extreme_units: float = 1.0,
    largest_l1: float | None = None,
) -> list[float]:
    """For each released value: how far the upper end of the interval of its noise moves up, to reach what the cap took away.

    Norms are over ``cells``. There is a value for each, or for as many together as there are cells for a value; the noise of ``choice`` is
    that of a value.

    With the interval of the noise alone at ``1 - beyond``, both together miss with chance ``beyond``, if the tail is of the fitted family
    and units spread over the cells by chance. ``extreme_units`` units of the largest norm possible, which nothing private can see, are
    allowed for besides; ``largest_l1`` is the most that a unit may add to all cells together (the largest norm, if not said).
    """
    released = np.asarray(values, dtype=np.float64)
    mean = max(float(released.mean()), choice.noise / math.sqrt(len(released)))
    signal = max(1.0 - choice.noise**2 / max(float(released.var()), 1e-300), 0.0) if len(released) > 1 else 1.0
    clipped = np.maximum(mean + signal * (released - mean), 0.0)
    shares = clipped / max(float(clipped.sum()), 1e-9)
    spread = _spread(fit, choice.cap, cells, float(released.sum()), grain)
    weights = fit.beyond_caps([choice.cap], 1) * spread.of_a_norm()
    excess, (upper,) = float((weights @ fit.expected)[0]), fit.upper(weights, beyond=FIT_BEYOND)
    parts = len(released)
    means, variances = (each[:, 0] for each in _in_parts(fit, [choice.cap], spread, shares, parts))
    added = _added(means, upper / max(excess, 1e-9), variances, np.full(parts, choice.noise), parts, beyond)
    extreme = extreme_units * _extreme(fit, choice.cap, spread, parts, fit.largest if largest_l1 is None else largest_l1)
    return [float(each) for each in np.maximum(added, extreme + means if extreme > 0.0 else 0.0)]


def _extreme(fit: NormFit, cap: float, spread: _Spread, parts: int, largest_l1: float) -> float:
    """What one unit, as large as can be, would lose in a part, unless so few parts would lose it that it may go unmentioned."""
    norm_in_all = largest_l1 / math.sqrt(spread.cells)
    is_in_all = np.interp(norm_in_all, fit.norms(), spread.everywhere) > 0.5
    in_all = (norm_in_all - cap) * math.sqrt(spread.cells) / parts if is_in_all else 0.0
    in_one = fit.largest - cap if (1.0 - float(spread.everywhere[-1])) / parts > UNSEEN_CELLS else 0.0
    return max(in_one, in_all, 0.0)


def _in_parts(fit: NormFit, caps: Sequence[float], spread: _Spread, shares: Floats, parts: int) -> tuple[Floats, Floats]:
    """Mean and variance of what a part with each share of the whole (rows) loses under each cap (columns), rare long units left out.

    A part is one cell, or several together; where there is one part, it has every unit.
    """
    lost = fit.beyond_caps(caps, 1)
    if parts == 1:
        mean = shares[:, None] * ((lost * spread.of_a_norm()) @ fit.expected)
        return np.maximum(mean, 0.0), np.zeros_like(mean)
    squared, units = fit.beyond_caps(caps, 2), np.maximum(fit.expected, 0.0)
    in_one, in_all, times = units * (1.0 - spread.everywhere), units * spread.everywhere, spread.reached**2
    ordinary_in_one, ordinary_in_all = _ordinary(in_one, shares), _ordinary(in_all * times, shares)
    mean = ordinary_in_one @ lost.T + (ordinary_in_all / spread.reached) @ lost.T
    variance = ordinary_in_one @ squared.T + (ordinary_in_all / times * (1.0 - times / spread.cells)) @ squared.T
    return shares[:, None] * mean, shares[:, None] * variance


def _ordinary(units: Floats, shares: Floats) -> Floats:
    """For each share of the whole (rows) the units of each bin, without the longest, as far as those are rarely in a part of that share."""
    return np.clip(np.cumsum(units[::-1])[::-1] - RARE / np.maximum(shares[:, None], 1e-12), 0.0, units)


def _added(mean: Floats, factor: Floats, variance: Floats, noise: Floats, parts: int, beyond: float) -> Floats:
    """What reaches beyond the noise's own interval: the expected loss, and the uncertainties that do not come together.

    ``factor`` says how many times the expected loss it may be at ``FIT_BEYOND``, ``variance`` is by chance from part to part.
    """
    normal = NormalDist()
    both, one, fitted = -normal.inv_cdf(beyond / 2.0), -normal.inv_cdf(beyond), -normal.inv_cdf(FIT_BEYOND)
    # A loss makes the lower end safer; the upper end may then miss with nearly the whole chance.
    score = one + (both - one) * np.exp(-1.5 * mean / noise)
    by_part = np.maximum(_gamma_quantile(mean, variance, score), mean) - mean
    unlike = score * UNLIKE * mean if parts > 1 else 0.0
    reach = np.sqrt((score * noise) ** 2 + (score / fitted * (factor - 1.0) * mean) ** 2 + by_part**2 + unlike**2)
    return np.maximum(mean + reach - both * noise, 0.0)


def _gamma_quantile(mean: Floats, variance: Floats, score: Floats) -> Floats:
    """Quantiles of gamma laws by the cube-root approximation; the mean where nothing varies."""
    safe = np.maximum(mean, 1e-12)
    relative = variance / safe**2
    return np.where(variance > 0.0, safe * np.maximum(1.0 - relative / 9.0 + score * np.sqrt(relative) / 3.0, 0.0) ** 3, mean)
