"""A model of the lengths of units' vectors in one statement, fitted to a noisy histogram of their norms.

The histogram is bought: one unit, one bin. Its use here affects accuracy only. Significant bins are used nearly
as they are. Beyond them no private mechanism can detect anything: there the curve is one of a family, log-log lines and
parabolas open below (a power law, a log-normal tail, a sharp end), each with or without an accumulation of units at the largest norm
possible. Where preparation bought the norms of the whole table, their tail is of the family too, with norms shortened by any factor: users
with very many rows mostly have many of a part of them. All bins, also seemingly empty ones, determine the posterior of each curve of the
family; expectations are averages over the curves, and upper bounds are quantiles over them. If no bin is significant, the curves are humps
with their peak in any bin, weighted by all bins and by the usual contribution of rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from lapwing.contribution.curves import family, humps
from lapwing.contribution.significance import ALONE_SEEN, END_SEEN, last_seen, normal_scores

Floats = npt.NDArray[np.float64]

BINS_BELOW = 8
"""At most this many bins up to the last significant one are used to fit the tail; none below the fullest, where curves may rise, and not
the first bin, which has no lower end."""
FINE_FROM = 8.0
"""Below this norm bins are fitted in pairs, a doubling each: whole numbers and their roots leave gaps in narrower ones."""
UNSEEN_SCORE = 2.0
"""A bin so many standard deviations below one unit holds none: 1 bin in 44 that has one is lower. It takes a deviation well below one half,
as large prices buy; elsewhere no bin is ruled out."""
MISFIT = 0.2
"""A bin may differ from its curve by this share of it without lowering the curve's plausibility."""
UPPERS_KEPT = 64
"""Number of cached results of ``upper_at_edges``, each of a few dozen numbers."""
NEGLIGIBLE = 1e-2
"""Curves this much less plausible than the best are dropped."""
RULED_OUT = 10.0
"""Standard deviations beyond a profile from which on curves lose plausibility linearly, no longer in squares: where all of them are ruled
out, those nearest to it remain."""
LEVELS = np.array([NormalDist().inv_cdf((k + 0.5) / 3) for k in range(3)]) / 0.79
"""The height of each curve is uncertain: it is taken at the medians of three parts of equal probability (their variance made 1)."""
HUMP_UNITS = tuple((k + 0.5) / 4 for k in range(4))
"""The number of units of a hump is taken at the medians of four parts of equal probability."""
CHANCE_PARTS = np.array([0.25, 0.25, 0.25, 0.15, 0.06, 0.03, 0.01])
"""Draws under a curve are taken at the medians of parts of this probability each."""
CHANCE_SCORES = tuple(NormalDist().inv_cdf(float(middle)) for middle in np.cumsum(CHANCE_PARTS) - CHANCE_PARTS / 2)


@dataclass(frozen=True, slots=True)
class NormHistogram:
    """Noisy numbers of units by the norm of each unit's vector in one statement."""

    edges: tuple[float, ...]
    """Upper ends of the bins, ascending; the last is the largest norm publicly possible."""
    noisy: tuple[float, ...]
    """Units with ``edges[i - 1] < norm <= edges[i]``; the first bin also holds norm 0, unless that is counted separately. For a sample,
    already times ``one_in``."""
    deviation: float
    """Standard deviation of the noise of a bin, in those units."""
    one_in: int = 1
    """The sampling rate: a random one in this many units was counted."""
    row: float = 1.0
    """The largest norm of one row."""
    zeros: float | None = None
    """Units of norm 0, if they are counted separately: they say nothing about the norms of the others and are in no bin."""
    whole: int = 0
    """Norms to this power are whole numbers: 1 if there is one cell, 2 if there are several; 0 if they may be any number."""
    laplace: bool = False
    """The noise is Laplace noise, which has heavier tails."""
    mixed: bool = False
    """Units of the lowest bin need not be at its upper end: for a count with a condition, those without a row are there too."""

    def scaled(self, weight: float) -> NormHistogram:
        """The same in which each unit counts ``weight``."""
        noisy, zeros = tuple(weight * units for units in self.noisy), None if self.zeros is None else weight * self.zeros
        return replace(self, noisy=noisy, deviation=weight * self.deviation, zeros=zeros)

    @property
    def sparse(self) -> bool:
        """Whether most units significantly add nothing."""
        return self.zeros is not None and self.zeros > max(ALONE_SEEN * self.deviation, sum(self.noisy))

    def unseen(self) -> float:
        """The longest norm that a unit may have unseen: the end of the highest bin whose value allows for one."""
        short = self.one_in == 1 and np.asarray(self.noisy) < 1.0 - UNSEEN_SCORE * self.deviation
        return max((edge for edge, none in zip(self.edges, np.broadcast_to(short, len(self.edges)), strict=True) if not none), default=0.0)

    def variances(self) -> Floats:
        """Standard deviation of the units of each bin from its value: from noise and from sampling.

        About n / s of n units are in a sample of one in s. If k are, n is (k + 1) s - 1 with variance (k + 1) s (s - 1), all n being as
        likely a priori: a bin with value 0 may still have about s units.
        """
        sampled = (self.one_in - 1) * (np.maximum(np.asarray(self.noisy), 0.0) + self.one_in)
        return np.asarray(self.deviation**2 + sampled, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class ContributionModel:
    """Units by norm: the estimated bins, and the curves that may continue them.

    Arrays have an entry for each bin and a last one for the heap: units of exactly the largest norm.
    """

    edges: Floats
    """Upper ends of the bins (without the heap)."""
    expected: Floats
    """Expected units."""
    variance: Floats
    """Variance of the units of bins that are estimated from the bin itself."""
    tails: Floats
    """One row for each curve and height: units in bins left to the curves."""
    chances: Floats
    """The posterior of each row of ``tails``; they sum to 1."""
    seen: bool = True
    """Whether any bin is significant; if not, the curves describe all bins."""
    sparse: bool = False
    """Whether most units significantly add nothing."""
    whole: int = 0
    """Norms to this power are whole numbers; 0 if they may be any number."""
    mixed: bool = False
    """Whether units of the lowest bin may add less than its upper end, or nothing."""
    unseen: float = math.inf
    """The longest norm that a unit may have unseen: no bin above may hold one."""
    histogram: NormHistogram | None = field(default=None, repr=False)
    """What was fitted."""
    uppers: dict[bytes, Floats] = field(default_factory=dict, repr=False)
    """Cached results of ``upper_at_edges``: many rounds of many statements use the same caps."""

    @property
    def largest(self) -> float:
        """The largest norm publicly possible."""
        return float(self.edges[-1])

    @property
    def unsized(self) -> bool:
        """Whether most of the sum comes from a lowest bin whose units may add nothing."""
        return self.mixed and float(self.expected[0] * self.edges[0]) > self.total() / 2.0

    def units(self) -> float:
        """Expected units."""
        return float(self.expected.sum())

    def total(self) -> float:
        """Expected sum of norms."""
        return self.excess(0.0)

    def above(self, cap: float) -> float:
        """Expected units with a norm above ``cap``."""
        return max(float((self.beyond_caps([cap], 0) @ self.expected)[0]), 0.0)

    def excess(self, cap: float) -> float:
        """Expected sum of the parts of norms above ``cap``."""
        return max(float((self.beyond_caps([cap], 1) @ self.expected)[0]), 0.0)

    def excess_upper(self, cap: float, *, beyond: float) -> float:
        """The excess that is surpassed with probability ``beyond``, if the tail is of the family."""
        return float(self.upper(self.beyond_caps([cap], 1), beyond=beyond)[0])

    def informed(self, cap: float, total: float, deviation: float) -> ContributionModel:
        """The same with the posterior of each curve given also a released sum of norms clipped at ``cap``.

        If the lowest bin is mixed, each of its units may be at its upper end or add nothing: together they add any amount between.
        """
        weights = (self.beyond_caps([0.0], 1) - self.beyond_caps([cap], 1))[0]
        seen = self.expected - self.chances @ self.tails
        lowest = max(float(weights[0] * seen[0]), 0.0) if self.mixed else 0.0
        by_curve = total + lowest - float(weights @ seen) - self.tails @ weights
        logs = np.log(self.chances) + _log_between(by_curve, lowest, math.sqrt(deviation**2 + float(weights**2 @ self.variance)))
        chances = np.exp(logs - logs.max())
        chances /= chances.sum()
        return replace(self, expected=seen + chances @ self.tails, chances=chances, uppers={})

    def within(self, most: Floats, least: Floats | None = None) -> ContributionModel:
        """The same with the posterior of each curve given how many units there may be above each edge but the last, and must be."""
        seen = self.expected - self.chances @ self.tails
        above = np.cumsum((self.tails + seen)[:, ::-1], axis=1)[:, -2:0:-1]
        measured = np.cumsum(self.variance[::-1])[-2:0:-1]  # bins that are taken as they are miss by their own noise, not by the curve
        over = np.maximum(above - most, 0.0) / np.sqrt(np.maximum(most, 1.0) + measured)
        if least is not None:
            over = np.maximum(over, np.maximum(least - above, 0.0) / np.sqrt(np.maximum(least, 1.0) + measured))
        worst = over.max(axis=1, initial=0.0)
        logs = np.log(self.chances) - np.where(worst < RULED_OUT, worst**2 / 2.0, RULED_OUT * (worst - RULED_OUT / 2.0))
        chances = np.maximum(np.exp(logs - logs.max()), 1e-200)  # curves are weighed again by logarithms
        chances /= chances.sum()
        return replace(self, expected=seen + chances @ self.tails, chances=chances, uppers={})

    def norms(self) -> Floats:
        """A norm in the middle of each bin, and of the heap."""
        return np.append(self.edges * np.sqrt(_lower(self.edges) / self.edges), self.largest)

    def beyond_caps(self, caps: Sequence[float], power: int) -> Floats:
        """For each cap (rows) and a unit of each bin: the expected ``(norm - cap)+ ** power``, norms log-uniform within a bin.

        Power 0 gives the probability to be above the cap. Units of the first bin are at its upper end. Small norms are whole numbers, or
        their roots: all units between 1 and 2 then have norm 2, none 1 and a quarter.
        """
        cap = np.asarray(caps, dtype=np.float64)[:, None]
        upper, lower = self.edges, _lower(self.edges)
        start = np.clip(cap, lower, upper)
        whole, part = np.log(upper / lower), np.log(upper / start)
        inside = (part, upper - start - cap * part, (upper**2 - start**2) / 2.0 - 2.0 * cap * (upper - start) + cap**2 * part)[power]
        at_upper = np.maximum(upper - cap, 0.0) ** power * (upper > cap)
        found = np.hstack((np.where(whole > 0.0, inside / np.where(whole > 0.0, whole, 1.0), at_upper), at_upper[:, -1:]))
        if self.whole:
            norms, shares = _small_norms(tuple(upper.tolist()), self.whole)
            found[:, 1 : 1 + shares.shape[1]] = (np.maximum(norms - cap, 0.0) ** power * (norms > cap)) @ shares
        return found

    def upper_at_edges(self, reached: Floats, *, beyond: float) -> Floats:
        """``upper`` of the parts of norms above each edge of a bin, weighted by the reach of each bin's units."""
        key = reached.tobytes() + np.float64(beyond).tobytes()
        if key not in self.uppers:
            if len(self.uppers) >= UPPERS_KEPT:
                self.uppers.clear()
            self.uppers[key] = self.upper(self.beyond_caps([float(edge) for edge in self.edges], 1) * reached, beyond=beyond)
        return self.uppers[key]

    def upper(self, weights: Floats, *, beyond: float) -> Floats:
        """For each row of weights of bins: the weighted sum of units that is surpassed with probability ``beyond``."""
        means, variances = weights @ self.tails.T, (weights**2) @ self.tails.T
        # A curve gives expected numbers of units; the actual ones vary at random, and few units are long.
        values = np.hstack([gamma_quantile(means, variances, score) for score in CHANCE_SCORES])
        chances = np.concatenate([self.chances * part for part in CHANCE_PARTS])
        order = np.argsort(values, axis=1)  # rows are contiguous in memory: several times as fast as by columns
        at = (np.cumsum(chances[order], axis=1) < 1.0 - beyond).sum(axis=1).clip(0, values.shape[1] - 1)
        tail_upper = np.take_along_axis(values, np.take_along_axis(order, at[:, None], axis=1), axis=1)[:, 0]
        noise = -NormalDist().inv_cdf(beyond) * np.sqrt((weights**2) @ self.variance)
        added = np.hypot(np.maximum(tail_upper - means @ self.chances, 0.0), noise)
        return np.asarray(np.maximum(weights @ self.expected + added, 0.0))


@lru_cache(maxsize=32)
def fitted_norms(histogram: NormHistogram, profile: ContributionModel | None = None) -> ContributionModel:
    """The significant bins, and the curves that may continue them with their posteriors given all bins.

    Curves like the tail of ``profile``, the norms of the whole table, are tried too.
    """
    edges, noisy, deviation, by_bin = np.asarray(histogram.edges), np.asarray(histogram.noisy), histogram.deviation, histogram.variances()
    bins = len(edges)
    starts = _groups(histogram.edges)
    end_seen = bins == 1 or float(normal_scores(noisy[-1:] / deviation, histogram.laplace)[0]) > END_SEEN
    grouped = np.add.reduceat(noisy, starts)
    sizes = np.diff(np.append(starts, bins))
    deviations = deviation * np.sqrt(sizes)
    last_group = last_seen(grouped[:-1] / deviations[:-1], histogram.laplace) if bins > 1 else 0
    if last_group is None:
        if not end_seen:
            return _unseen(histogram)
        last_group = int(np.argmax(grouped[:-1]))
    peak = int(np.argmax(grouped[: last_group + 1] / sizes[: last_group + 1]))
    first_group = max(last_group - BINS_BELOW + 1, peak, min(1, last_group))
    first, after = int(starts[first_group]), int(starts[last_group] + sizes[last_group])
    shapes, heaps, beforehand = family(histogram.edges, after - 1, profile)
    to = len(starts) - int(end_seen)
    fitted = np.add.reduceat(shapes, starts, axis=1)
    if end_seen:
        heaps = np.zeros_like(heaps)
    else:
        fitted[:, -1] += heaps
    window, variance = grouped[first_group:to], np.add.reduceat(by_bin, starts)[first_group:to]
    seen = np.where(np.arange(first_group, to) <= last_group, np.maximum(window, 0.0), 0.0)
    chances, heights, spreads = _plausible(fitted[:, first_group:to], beforehand, window, variance + seen + (MISFIT * seen) ** 2)
    kept = chances > NEGLIGIBLE * chances.max()
    chances, heights, spreads, shapes, heaps = chances[kept] / chances[kept].sum(), heights[kept], spreads[kept], shapes[kept], heaps[kept]
    levels = np.maximum(heights[:, None] + spreads[:, None] * LEVELS, 0.0)
    by_height = np.zeros((len(heights), len(LEVELS), bins + 1))
    end = bins - int(end_seen)
    by_height[:, :, after:end] = levels[:, :, None] * shapes[:, None, after:end]
    by_height[:, :, bins] = levels * heaps[:, None]
    tails = by_height.reshape(-1, bins + 1)
    all_chances = np.repeat(chances / len(LEVELS), len(LEVELS))
    expected, variances = np.zeros(bins + 1), np.zeros(bins + 1)
    fine = max(first, int(np.searchsorted(edges, FINE_FROM * 1.001)))
    expected[:after], variances[:after] = noisy[:after], by_bin[:after]
    drawn_to, share = _drawn(noisy[fine:after], deviation, ((chances * heights) @ shapes)[fine:after])
    expected[fine:after], variances[fine:after] = drawn_to, share * by_bin[fine:after]
    if end_seen:
        expected[bins], variances[bins] = noisy[-1], by_bin[-1]
    return ContributionModel(
        edges,
        expected + all_chances @ tails,
        variances,
        tails,
        all_chances,
        sparse=histogram.sparse,
        whole=histogram.whole,
        mixed=histogram.mixed,
        unseen=histogram.unseen(),
        histogram=histogram,
    )


def _unseen(histogram: NormHistogram) -> ContributionModel:
    """The fit without significant bins: humps with their peak in any bin, each with a plausible number of units given all bins."""
    noisy, variance, normal = np.asarray(histogram.noisy), histogram.variances(), NormalDist()
    shapes, beforehand = humps(histogram.edges, histogram.row, histogram.sparse)
    precision = (shapes**2) @ (1.0 / variance)
    units, spreads = (shapes @ (noisy / variance)) / precision, 1.0 / np.sqrt(precision)
    below = np.array([normal.cdf(-score) for score in units / spreads])  # counts are not negative
    logs = (units / spreads) ** 2 / 2.0 + np.log(np.maximum(spreads * (1.0 - below), 1e-300)) + beforehand
    chances = np.exp(logs - logs.max())
    kept = chances > NEGLIGIBLE * chances.max()
    parts = [normal.inv_cdf(min(each + (1.0 - each) * part, 1.0 - 1e-9)) for each in below[kept] for part in HUMP_UNITS]
    levels = units[kept, None] + spreads[kept, None] * np.reshape(parts, (-1, len(HUMP_UNITS)))
    tails = (np.maximum(levels, 0.0)[:, :, None] * shapes[kept, None, :]).reshape(-1, len(noisy))
    tails = np.hstack((tails, np.zeros((len(tails), 1))))
    all_chances = np.repeat(chances[kept] / chances[kept].sum() / len(HUMP_UNITS), len(HUMP_UNITS))
    bins = len(noisy) + 1
    return ContributionModel(
        np.asarray(histogram.edges),
        all_chances @ tails,
        np.zeros(bins),
        tails,
        all_chances,
        seen=False,
        sparse=histogram.sparse,
        whole=histogram.whole,
        mixed=histogram.mixed,
        histogram=histogram,
    )


def longer(fit: ContributionModel) -> Floats:
    """For each bin: the expected units with a longer vector, and half of its own."""
    units = np.maximum(fit.expected, 0.0)
    return np.asarray(np.cumsum(units[::-1])[::-1] - units / 2.0)


def gamma_quantile(mean: Floats, variance: Floats, score: Floats | float) -> Floats:
    """Quantiles of gamma laws by the cube-root approximation; the mean if the variance is 0."""
    safe = np.maximum(mean, 1e-12)
    relative = variance / safe**2
    root = np.maximum(1.0 - relative / 9.0 + score * np.sqrt(relative) / 3.0, 0.0)
    return np.where(variance > 0.0, safe * root * root * root, mean)


def _log_between(values: Floats, most: float, deviation: float) -> Floats:
    """The log-likelihood of each value up to a constant, if it is noise added to a number uniform from 0 to ``most``."""
    if most < deviation:
        return np.asarray(-(((values - most / 2.0) / deviation) ** 2) / 2.0)
    # The other end is assumed to be far away: the logarithm of the normal tail beyond the nearer end.
    scores = np.maximum(-values, values - most) / deviation
    return np.asarray([_log_tail(float(score)) for score in scores])


def _log_tail(score: float) -> float:
    """The logarithm of the probability that a standard normal surpasses ``score``."""
    if score < 30.0:
        return math.log(math.erfc(score / math.sqrt(2.0)) / 2.0)
    return -(score**2) / 2.0 - math.log(score * math.sqrt(2.0 * math.pi))


def _lower(edges: Floats) -> Floats:
    """Lower ends of the bins; the first bin has no width."""
    return np.concatenate((edges[:1], edges[:-1]))


def _groups(edges: tuple[float, ...]) -> npt.NDArray[np.intp]:
    """The first bin of each group of bins that are fitted together."""
    starts, lower = [0], edges[0]
    for at in range(1, len(edges)):
        if edges[at - 1] >= FINE_FROM or edges[at - 1] >= 1.99 * lower or at == 1 or at == len(edges) - 1:
            starts.append(at)
            lower = edges[at - 1]
    return np.asarray(starts)


@lru_cache(maxsize=64)
def _small_norms(edges: tuple[float, ...], whole: int) -> tuple[Floats, Floats]:
    """The norms that units may have up to ``FINE_FROM``, and (columns) the share of each bin above the first that has them.

    A bin that can have none, as between 1 and the root of 2 with whole norms, has those of its group: curves pass through it as well.
    """
    starts = _groups(edges).tolist()
    groups = [(start, end) for start, end in zip(starts, [*starts[1:], len(edges)], strict=True) if start]
    groups = [(start, end) for start, end in groups if edges[end - 1] <= FINE_FROM * 1.001]
    norms = np.array([number ** (1.0 / whole) for number in range(2, round(FINE_FROM**whole) + 1)])

    def between(lower: float, upper: float) -> Floats:
        return np.asarray(((norms > lower * (1.0 + 1e-9)) & (norms <= upper * (1.0 + 1e-9))) / norms**whole)

    shares = np.zeros((len(norms), groups[-1][1] - 1 if groups else 0))
    for start, end in groups:
        for at in range(start, end):
            own = between(edges[at - 1], edges[at])
            even = own if own.any() else between(edges[start - 1], edges[end - 1])
            shares[:, at - 1] = even / max(float(even.sum()), 1e-300)
    return norms, shares


def _plausible(shapes: Floats, beforehand: Floats, window: Floats, variance: Floats) -> tuple[Floats, Floats, Floats]:
    """The posterior of each curve (heights integrated out), its height, and the standard deviation of its height."""
    precision = np.maximum((shapes**2) @ (1.0 / variance), 1e-300)
    heights = (shapes @ (window / variance)) / precision
    spreads = 1.0 / np.sqrt(precision)
    logs = heights**2 * precision / 2.0 + np.log(spreads) + beforehand
    logs = np.where(heights > 0.0, logs, -np.inf) if (heights > 0.0).any() else beforehand
    return np.exp(logs - logs.max()), np.maximum(heights, 0.0), spreads


def _drawn(noisy: Floats, deviation: float, curve: Floats) -> tuple[Floats, Floats]:
    """Significant bins near the tail, shrunk towards the curve as far as their noise exceeds the curve's misfit; and their remaining
    variance."""
    misfit = np.maximum((MISFIT * curve) ** 2, (noisy - curve) ** 2 - deviation**2)
    share = misfit / (misfit + deviation**2)
    return share * noisy + (1.0 - share) * curve, share
