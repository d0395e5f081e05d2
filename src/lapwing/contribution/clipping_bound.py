"""The clipping bound on the norm of a unit's vector, and its clipping bias, from fitted norms.

The release multiplies each unit's vector by ``min(1, cap / norm)`` and adds noise in proportion to the cap to each cell. The clipped
part has a Euclidean length of at most the *excess*, the sum of the parts of norms above the cap. Its effect on the cells depends on
how units spread: a unit with all its rows in one cell loses it there; a unit with rows in all cells has many more rows for the same
norm. The released sum of all cells, compared with the sum of norms, shows how many units are of either kind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from lapwing.contribution.model import ContributionModel, Floats, gamma_quantile, longer

BEYOND = 0.05
"""Failure probability of the interval, of noise and clipping bias together, for which the cap is chosen."""
FIT_BEYOND = 0.05
"""Probability that the clipping bias exceeds the fit's upper bound."""
UNLIKE = 0.2
"""Standard deviation of the loss among cells of different units, as a share of the expected loss."""
RARE = 0.005
"""Units with long vectors whose joint probability of being in a given cell is smaller than this are left out of its interval."""
STEPS_FINE = 4
"""Number of caps tried between two neighbouring edges of bins after the best edge is known."""
ODDS_UNKNOWN = 6.0
"""Prior ratio of units spread over all cells to units in a single cell, at norm 1; a longer norm makes spreading less
likely, in proportion, because the norm of rows in one cell is their sum."""
CHANCES = 64
"""Tried probabilities that two rows are in the same cell."""
COUNTED = 0.05
"""If more than this part of the units have a norm of at most 2, norms are assumed to be those of counts."""
COMMON = 0.8
"""This quantile of the norms is the first guess of the norm of a row, if it is unknown."""
GRAINS = 64
"""Tried norms of a row, if it is unknown."""
SKEW_POWER = 0.15
"""Cells differ in size, more so the more there are: the cap is chosen for a cell this power of their number larger than the mean,
1.8 times as large among 50 and 2.8 times among 1,000, which is nearer to their root mean square."""
LIKELY_UNITS = 0.5
"""Units above a norm are ignored if fewer than this many are expected."""
UNSEEN_CELLS = 0.1
"""The share of cells whose error bars may ignore one unit of the largest norm."""


@dataclass(frozen=True, slots=True)
class CapChoice:
    """A cap and its predicted effects."""

    cap: float
    lost: float
    """Expected share of the sum of all cells, and of an ordinary cell, that the cap removes."""
    lost_upper: float
    above: float
    """Expected units above the cap."""
    noise: float
    """Standard deviation of the noise of a cell."""
    bias: float
    """Expected loss of an ordinary cell."""
    loss: float
    """Root mean square of the likely losses of cells: larger cells lose more, and units with long vectors are in few cells."""
    total: float
    """Expected sum of all cells before clipping."""
    width: float
    """Width of the interval of a typical cell, which is larger than an ordinary one."""


def best_cap(fit: ContributionModel, *, unit_noise: float, cells: int, total_l1: float | None, grain: float | None = None) -> CapChoice:
    """The cap with the narrowest interval of a typical cell, noise and clipping bias together; if no norm is significant, the cap with the
    least error.

    ``unit_noise`` is the standard deviation of a cell's noise under cap 1, ``total_l1`` the approximate sum over all cells, if it is known,
    ``grain`` the norm of a unit with one row: 1 for counts. Unknown values are estimated from the norms.
    """
    spread = _spread(fit, math.inf, cells, total_l1, grain)
    coarse = [float(edge) for edge in fit.edges]
    choices = _predicted(fit, coarse, unit_noise, spread, fit.upper_at_edges(spread.reached, beyond=FIT_BEYOND))
    if not fit.seen:
        return choices[int(np.argmin(_log_errors(fit, coarse, unit_noise, spread)))]
    at = min(range(len(coarse)), key=lambda each: choices[each].width)
    ends = coarse[max(at - 1, 0)], coarse[min(at + 1, len(coarse) - 1)]
    fine = [ends[0] * (ends[1] / ends[0]) ** (step / (2 * STEPS_FINE)) for step in range(1, 2 * STEPS_FINE)]
    return min([choices[at], *_predicted(fit, fine, unit_noise, spread)], key=lambda choice: choice.width)


def _log_errors(fit: ContributionModel, caps: Sequence[float], unit_noise: float, spread: _Spread) -> Floats:
    """For each cap the mean logarithm of the error of a typical cell, over all curves of the fit.

    If no norm is significant, norms may have any size, and an interval that covers all of them is long under every cap. So an error by
    a factor has the same weight at every size.
    """
    lost = (fit.beyond_caps(caps, 1) * spread.reached * spread.cells ** (SKEW_POWER - 1.0)) @ fit.tails.T
    return np.asarray(np.log(np.hypot(unit_noise * np.asarray(caps)[:, None], lost)) @ fit.chances)


def predicted_at_edges(
    fit: ContributionModel, *, unit_noise: float, cells: int, total_l1: float | None, grain: float | None = None
) -> list[CapChoice]:
    """The predictions for a cap at each edge of a bin."""
    spread = _spread(fit, math.inf, cells, total_l1, grain)
    upper = fit.upper_at_edges(spread.reached, beyond=FIT_BEYOND)
    return _predicted(fit, [float(edge) for edge in fit.edges], unit_noise, spread, upper)


def predicted(
    fit: ContributionModel, cap: float, *, unit_noise: float, cells: int, total_l1: float | None, grain: float | None = None
) -> CapChoice:
    """The predictions for a cap chosen elsewhere."""
    return _predicted(fit, [cap], unit_noise, _spread(fit, math.inf, cells, total_l1, grain))[0]


@dataclass(frozen=True, slots=True, eq=False)
class _Spread:
    """The distribution of units over the cells."""

    cells: int
    together: float
    """The probability that two rows of one unit are in the same cell."""
    reached: Floats
    """For a unit of each bin of the fit, and of the heap: the ratio of its L1 norm to its L2 norm. The square is its number of cells."""


def _spread(fit: ContributionModel, cap: float, cells: int, total_l1: float | None, grain: float | None) -> _Spread:
    """The spread for which the cells, clipped at ``cap``, add up to ``total_l1``."""
    norms = fit.norms()
    if cells == 1:
        return _Spread(1, 1.0, np.ones_like(norms))
    below = np.minimum(norms, cap) * np.maximum(fit.expected, 0.0)
    if grain is None:
        grain = 1.0 if _counted(fit) else _rows_norm(fit, below, cells, total_l1)
    in_rows = norms / grain
    if total_l1 is None:
        everywhere = 1.0 / (1.0 + np.maximum(in_rows, 1.0) / ODDS_UNKNOWN)
        return _Spread(cells, 1.0, 1.0 + everywhere * (_reached(in_rows, 1.0 / cells) - 1.0))
    chances = np.geomspace(1.0, 1.0 / cells, CHANCES)
    sums = np.array([_reached(in_rows, chance) @ below for chance in chances])
    together = math.exp(float(np.interp(total_l1, sums, np.log(chances))))
    return _Spread(cells, together, _reached(in_rows, together))


def _rows_norm(fit: ContributionModel, below: Floats, cells: int, total_l1: float | None) -> float:
    """An estimate of the norm of a row: that of a common unit, lowered until the cells add up to their total."""
    common = _quantile_norm(fit, COMMON)
    if total_l1 is None:
        return common
    grains = np.geomspace(common, float(fit.edges[0]) / math.sqrt(cells), GRAINS)
    sums = np.array([_reached(fit.norms() / grain, 1.0 / cells) @ below for grain in grains])
    return math.exp(float(np.interp(total_l1, sums, np.log(grains))))


def _reached(in_rows: Floats, together: float) -> Floats:
    """Rows over their norm, where each has norm 1: with r rows the expected square of the norm is r + r (r - 1) times the probability that
    two are in one cell."""
    in_rows = np.maximum(in_rows, 1.0)
    rows = (np.sqrt((1.0 - together) ** 2 + 4.0 * together * in_rows**2) - (1.0 - together)) / (2.0 * together)
    return np.clip(rows / in_rows, 1.0, together**-0.5)


def _counted(fit: ContributionModel) -> bool:
    """Whether norms look like those of counts: some units have one or two rows."""
    return _quantile_norm(fit, COUNTED) <= 2.0


def _quantile_norm(fit: ContributionModel, part: float) -> float:
    """A quantile of the norms."""
    units = np.cumsum(np.maximum(fit.expected, 0.0))
    return float(fit.norms()[int(np.searchsorted(units, part * units[-1]))])


def _predicted(
    fit: ContributionModel, caps: Sequence[float], unit_noise: float, spread: _Spread, upper: Floats | None = None
) -> list[CapChoice]:
    above, weights = fit.beyond_caps(caps, 0) @ fit.expected, fit.beyond_caps(caps, 1) * spread.reached
    excess, upper = np.maximum(weights @ fit.expected, 0.0), fit.upper(weights, beyond=FIT_BEYOND) if upper is None else upper
    total = max(float((fit.beyond_caps([0.0], 1) * spread.reached)[0] @ fit.expected), 1e-9)
    noise = unit_noise * np.asarray(caps)
    (mean,), (variance,) = _in_parts(fit, caps, spread, np.array([spread.cells ** (SKEW_POWER - 1.0)]), spread.cells)
    added = _added(mean, _unsure(mean, upper, excess, spread.cells ** (SKEW_POWER - 1.0)), variance, noise, spread.cells, BEYOND)
    width = 2.0 * -NormalDist().inv_cdf(BEYOND / 2.0) * noise + added
    loss = _likely_loss(fit, caps, spread)
    return [
        CapChoice(
            cap,
            lost=min(float(excess[at]) / total, 1.0),
            lost_upper=float(upper[at]) / max(total + float(upper[at] - excess[at]), 1e-9),
            above=max(float(above[at]), 0.0),
            noise=float(noise[at]),
            bias=float(excess[at]) / spread.cells,
            loss=float(loss[at]),
            total=total,
            width=float(width[at]),
        )
        for at, cap in enumerate(caps)
    ]


def _likely_loss(fit: ContributionModel, caps: Sequence[float], spread: _Spread) -> Floats:
    """The root mean square of the losses of cells of different sizes, without units so long that probably none exist."""
    units = np.clip(np.cumsum(np.maximum(fit.expected, 0.0)[::-1])[::-1] - LIKELY_UNITS, 0.0, np.maximum(fit.expected, 0.0))
    mean = (fit.beyond_caps(caps, 1) * spread.reached) @ units * spread.cells ** (SKEW_POWER - 1.0)
    by_chance = (fit.beyond_caps(caps, 2) * (1.0 - spread.reached**2 / spread.cells)) @ units / spread.cells
    return np.asarray(np.sqrt(mean**2 + np.maximum(by_chance, 0.0)))


def bias_bound(
    fit: ContributionModel,
    choice: CapChoice,
    *,
    cells: int,
    beyond: float,
    values: Sequence[float],
    grain: float | None = None,
    extreme: float = 0.0,
) -> list[float]:
    """For each released value: how far the upper end of its noise interval must move up to cover the clipping bias.

    Norms are over ``cells``. There is a value for each cell, or one for each equal block of cells; the noise of ``choice`` is
    that of a value.

    With the interval of the noise alone at ``1 - beyond``, both together miss with probability ``beyond``, if the tail is of the fitted
    family and units spread over the cells at random. One unit that adds ``extreme`` to all cells together, which no private mechanism can
    detect, is allowed for in addition.
    """
    released = np.asarray(values, dtype=np.float64)
    if cells == 1:  # the released value is itself a sum of norms, and is informative about their tail
        fit = fit.informed(choice.cap, float(released[0]), choice.noise)
    shares = shares_of(released, choice.noise)
    spread = _spread(fit, choice.cap, cells, float(released.sum()), grain)
    weights = fit.beyond_caps([choice.cap], 1) * spread.reached
    excess, (upper,) = float((weights @ fit.expected)[0]), fit.upper(weights, beyond=FIT_BEYOND)
    parts = len(released)
    means, variances = (each[:, 0] for each in _in_parts(fit, [choice.cap], spread, shares, parts))
    rate = max(excess, 0.0) / max(float(released.sum()), choice.noise * math.sqrt(parts))
    by_share = _by_share(released, choice.noise, rate)
    added = _added(means, _unsure(means, upper, excess, shares), variances, np.full(parts, choice.noise), parts, beyond, by_share)
    unseen = _extreme(extreme, choice.cap, spread, shares)
    return [float(each) for each in np.where(unseen > 0.0, np.maximum(added, unseen + means), added)]


def signed_bias_bound(
    fit: ContributionModel,
    choice: CapChoice,
    *,
    beyond: float,
    rows: Sequence[float],
    counted: ContributionModel,
    count: CapChoice,
    cells: int,
    extreme: float,
) -> list[float]:
    """For each part of a centred sum: how far either end of its noise interval must move to cover the clipping bias.

    Distances from a centre cancel, so a sum of them does not show how much was clipped. Parts lose it in proportion to their released
    ``rows``, and units spread over the parts as they do by ``counted``, the norms of the count.
    """
    released = np.asarray(rows, dtype=np.float64)
    parts, shares = len(released), shares_of(released, count.noise)
    by_rows = _spread(counted, count.cap, cells, float(released.sum()), 1.0)
    spread = replace(by_rows, reached=np.interp(longer(fit), longer(counted)[::-1], by_rows.reached[::-1]))
    weights = fit.beyond_caps([choice.cap], 1) * spread.reached
    excess, (upper,) = float((weights @ fit.expected)[0]), fit.upper(weights, beyond=FIT_BEYOND)
    means, variances = (each[:, 0] for each in _in_parts(fit, [choice.cap], spread, shares, parts))
    added = _added(means, _unsure(means, upper, excess, shares), variances, np.full(parts, choice.noise), parts, beyond)
    unseen = _extreme(extreme, choice.cap, spread, shares)
    return [float(each) for each in np.where(unseen > 0.0, np.maximum(added, unseen + means), added)]


def lost_beside(fit: ContributionModel, choice: CapChoice, kept: float) -> tuple[float, float]:
    """For a single value released as ``kept``, above 0: the expected share removed by the cap, and the largest likely share."""
    informed = fit.informed(choice.cap, kept, choice.noise)
    excess, most = informed.excess(choice.cap), informed.excess_upper(choice.cap, beyond=FIT_BEYOND)
    return excess / (kept + excess), most / (kept + most)


def chance_of_parts(
    fit: ContributionModel, cap: float, *, cells: int, total_l1: float | None, shares: Floats, grain: float | None
) -> Floats:
    """The random deviation of the losses of parts with these shares from their shares of the total loss under a cap.

    A standard deviation for each; rare long units are left out.
    """
    spread = _spread(fit, math.inf, cells, total_l1, grain)
    _, variances = _in_parts(fit, [cap], spread, shares, max(len(shares), 2))
    return np.sqrt(np.maximum(variances[:, 0], 0.0))


def shares_of(released: Floats, noise: float) -> Floats:
    """Each part's share of the whole, shrunk towards the mean as far as the parts differ by noise alone."""
    mean = max(float(released.mean()), noise / math.sqrt(len(released)))
    signal = max(1.0 - noise**2 / max(float(released.var()), 1e-300), 0.0) if len(released) > 1 else 1.0
    clipped = np.maximum(mean + signal * (released - mean), 0.0)
    return np.asarray(clipped / max(float(clipped.sum()), 1e-9))


def _by_share(released: Floats, noise: float, rate: float) -> float:
    """The variance of a value and its loss together, less that of the noise: the loss is estimated from a noisy share.

    With ``rate`` lost per kept unit, the truth is ``1 + rate`` times the kept value. Let kept values have the variance t from part to
    part, and the noise n: the estimate of one, shrunk towards the mean by s = t / (t + n), has the error s n and the covariance s n with
    the noise as well, so that the loss adds (rate^2 + 2 rate) s n. t is known from the released values only, so the largest likely one is
    taken.
    """
    freedom = len(released) - 1
    if not freedom or rate <= 0.0:
        return 0.0
    third = 2.0 / (9.0 * freedom)  # Wilson and Hilferty: the cube root of a chi-squared over its degrees is nearly normal
    lowest = max(1.0 - third + NormalDist().inv_cdf(FIT_BEYOND) * math.sqrt(third), 0.0) ** 3
    largest = float(released.var()) * (freedom + 1) / freedom
    hidden = 1.0 - noise**2 * lowest / max(largest, 1e-300)
    return max(hidden, 0.0) * (rate**2 + 2.0 * rate) * noise**2


def _extreme(extreme: float, cap: float, spread: _Spread, shares: Floats) -> Floats:
    """The loss of a unit with ``extreme`` in all cells together in each part, if it is concentrated in one of them.

    Its concentration follows from the probability that two of its rows are together. Among many parts, that one may be ignored.
    """
    norm = extreme * math.sqrt(spread.together)
    even = float(shares @ shares)
    at_home = math.sqrt(max(spread.together - even, 0.0) / max(1.0 - even, 1e-9)) if len(shares) > 1 else 1.0
    here = shares * (1.0 - at_home) + (at_home if 1.0 / len(shares) > UNSEEN_CELLS else 0.0)
    return np.asarray(extreme * max(1.0 - cap / max(norm, 1e-9), 0.0) * np.minimum(here, 1.0))


def _in_parts(fit: ContributionModel, caps: Sequence[float], spread: _Spread, shares: Floats, parts: int) -> tuple[Floats, Floats]:
    """Mean and variance of what a part with each share of the whole (rows) loses under each cap (columns), rare long units left out.

    A part is one cell or several; a single part has every unit. A unit loses the same in each of its parts; if
    it is in all of them, there is no random variation.
    """
    lost = fit.beyond_caps(caps, 1) * spread.reached
    if parts == 1:
        mean = shares[:, None] * (lost @ fit.expected)
        return np.maximum(mean, 0.0), np.zeros_like(mean)
    times = np.minimum(spread.reached**2, parts)
    squared, units = fit.beyond_caps(caps, 2) * spread.reached**2, np.maximum(fit.expected, 0.0)
    ordinary = _ordinary(units * times, shares)
    mean = (ordinary / times) @ lost.T
    variance = (ordinary / times**2 * (1.0 - (times - 1.0) / (parts - 1.0))) @ squared.T
    return shares[:, None] * mean, shares[:, None] * variance


def _ordinary(units: Floats, shares: Floats) -> Floats:
    """For each share of the whole (rows) the units of each bin, without the longest, as far as those are rarely in a part of that share."""
    return np.clip(np.cumsum(units[::-1])[::-1] - RARE / np.maximum(shares[:, None], 1e-12), 0.0, units)


def _unsure(mean: Floats, upper: Floats | float, excess: Floats | float, shares: Floats | float) -> Floats:
    """The excess over the mean that a part may lose, at ``FIT_BEYOND``: the ratio for all parts together; without an expected loss, its
    share."""
    whole = np.maximum(excess, 0.0)
    factor = np.maximum(np.asarray(upper) - whole, 0.0) / np.maximum(whole, 1e-9)
    return np.asarray(np.where(mean > 0.0, factor * mean, np.asarray(shares) * upper))


def _added(mean: Floats, unsure: Floats, variance: Floats, noise: Floats, parts: int, beyond: float, by_share: float = 0.0) -> Floats:
    """The extension of the interval beyond the noise: the expected loss, and independent uncertainties.

    ``unsure`` is how much more than the expected loss it may be at ``FIT_BEYOND``, ``variance`` is the random variance between parts,
    ``by_share`` the variance from an uncertain share.
    """
    normal = NormalDist()
    both, one, fitted = -normal.inv_cdf(beyond / 2.0), -normal.inv_cdf(beyond), -normal.inv_cdf(FIT_BEYOND)
    # A loss makes the lower end safer; the upper end may then use nearly the whole failure probability.
    score = one + (both - one) * np.exp(-1.5 * mean / noise)
    by_part = np.maximum(gamma_quantile(mean, variance, score), mean) - mean
    unlike = score * UNLIKE * mean if parts > 1 else 0.0
    reach = np.sqrt(score**2 * (noise**2 + by_share) + (score / fitted * unsure) ** 2 + by_part**2 + unlike**2)
    return np.maximum(mean + reach - both * noise, 0.0)
