"""Error bars: from the noise law and the rounding to the grid. Post-processing only; nothing here touches privacy.

Proof of coverage: docs/proofs/error-bars.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from lapwing.answers.noise_sums import laplace_chernoff_width
from lapwing.answers.simulation import Floats
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law
from lapwing.spread import pmf


@dataclass(frozen=True, slots=True)
class Interval:
    """Ends of a confidence interval, included."""

    lo: float
    hi: float


def chance_beyond(residual: float, sum_law: Law, count_law: Law, *, slope: float) -> float:
    """Chance that the noise of sum - slope * count is larger than ``residual`` in size (continuous laws of the same scales).

    The noise is on whole numbers: half a step of each part is taken off the residual first, so intervals hold at small scales too. For one
    Laplace and one Gaussian this is an upper bound (for any split of the residual), so intervals only widen.
    """
    a, b = float(sum_law.scale), abs(slope) * float(count_law.scale)
    residual = max(residual - (1 + abs(slope)) / 2, 0.0)
    match sum_law, count_law:
        case DiscreteGaussian(), DiscreteGaussian():
            return _gaussian_beyond(residual, math.hypot(a, b))
        case DiscreteLaplace(), DiscreteLaplace():
            return _two_laplace_beyond(residual, a, b)
        case _:
            shared = residual / (a + b)  # in scales of each part
            return min(1.0, math.erfc(shared / math.sqrt(2)) + math.exp(-shared))


def chance_beyond_alone(residual: float, sum_law: Law, count_law: Law) -> float:
    """The same, where the noise of the count is hardly ever other than 0: an upper bound that takes off no half step for it."""
    beyond = max(residual - 0.5, 0.0) / float(sum_law.scale)
    alone = math.erfc(beyond / math.sqrt(2)) if isinstance(sum_law, DiscreteGaussian) else math.exp(-beyond)
    return 1.0 - pmf(count_law, 0) + alone


def _gaussian_beyond(residual: float, deviation: float) -> float:
    return math.erfc(residual / deviation / math.sqrt(2))


def _two_laplace_beyond(residual: float, a: float, b: float) -> float:
    """P(|A + B| > t) = (a^2 exp(-t/a) - b^2 exp(-t/b)) / (a^2 - b^2) for independent Laplace variables of scales a and b."""
    if min(a, b) < 1e-9 * max(a, b):
        return math.exp(-residual / max(a, b))
    if abs(a - b) < 1e-6 * max(a, b):
        b = a * (1 + 1e-6)
    return (a * a * math.exp(-residual / a) - b * b * math.exp(-residual / b)) / (a * a - b * b)


def ratio_interval(
    *,
    total: float,
    count: float,
    sum_law: Law,
    count_law: Law,
    confidence: float,
    lo: float,
    hi: float,
    terms: int = 1,
    exact_counts: bool = False,
) -> tuple[float, Interval]:
    """Estimate and Fieller interval of total / count, both inside the public bounds [lo, hi].

    The interval holds every ratio t in [lo, hi] for which total - t * count is no larger than its noise would explain. If a count is no
    larger than its noise, that is all of [lo, hi]. With ``terms`` above 1, total and count are each a sum of that many noisy cells. With
    ``exact_counts``, a count without noise, as large prices buy, adds nothing to the interval.
    """
    estimate = min(max(total / count, lo), hi) if count > 0 else (lo + hi) / 2

    def explained(t: float) -> bool:
        if terms > 1:
            return abs(total - t * count) <= _summed_width(sum_law, count_law, slope=t, terms=terms, beyond=1 - confidence)
        residual = abs(total - t * count)
        chance = chance_beyond(residual, sum_law, count_law, slope=t)
        return (min(chance, chance_beyond_alone(residual, sum_law, count_law)) if is_exact else chance) >= 1 - confidence

    is_exact = exact_counts and 1 - pmf(count_law, 0) < 1 - confidence
    step = (1 + float(sum_law.scale)) / max(abs(count), 1.0)
    return estimate, Interval(_edge(explained, estimate, lo, step), _edge(explained, estimate, hi, step))


def ratio_ends(top: Floats, bottom: Floats, *, variances: tuple[Floats, Floats], covariance: Floats, reach: float) -> tuple[Floats, Floats]:
    """Fieller's interval of top / bottom, element by element, for noise with these moments; ``reach`` is its half-width in deviations.

    NaN if no interval exists: the denominator may be 0.
    """
    square = bottom**2 - reach**2 * variances[1]
    middle = top * bottom - reach**2 * covariance
    rest = top**2 - reach**2 * variances[0]
    with np.errstate(all="ignore"):
        root = np.sqrt(np.maximum(middle**2 - square * rest, 0.0))
        ends = (middle - root) / square, (middle + root) / square
    bounded = (square > 0) & (bottom > 0)
    return np.where(bounded, ends[0], np.nan), np.where(bounded, ends[1], np.nan)


def _summed_width(sum_law: Law, count_law: Law, *, slope: float, terms: int, beyond: float) -> float:
    """Half-width of the noise of a sum of ``terms`` cells less slope times another such sum."""
    a, b = float(sum_law.scale), abs(slope) * float(count_law.scale)
    match sum_law, count_law:
        case DiscreteGaussian(), DiscreteGaussian():
            return NormalDist().inv_cdf(1 - beyond / 2) * math.hypot(a, b) * math.sqrt(terms) + (1 + abs(slope)) / 2
        case _:
            # A Gaussian of scale a is sub-Gaussian, and exp(m^2 a^2 / 2) <= 1 / (1 - m^2 a^2): Chernoff's bound covers it as a Laplace too.
            return laplace_chernoff_width((a, b), terms=terms, beyond=beyond)


def _edge(explained: Callable[[float], bool], inside: float, end: float, step: float) -> float:
    """Search from an explained ratio towards an end in doubling steps, then bisect; the set is treated as an interval."""
    if explained(end) or not explained(inside):
        return end
    towards = math.copysign(step, end - inside)
    while abs(towards) < abs(end - inside) and explained(inside + towards):
        towards *= 2
    if abs(towards) < abs(end - inside):
        end = inside + towards
    for _ in range(50):
        middle = (inside + end) / 2
        inside, end = (middle, end) if explained(middle) else (inside, middle)
    return end


def widened(value: int, half_width: int, *, step: Fraction, rounding: Fraction, rows_upper: int) -> Interval:
    """Interval of a noisy integer in real units: noise half-width plus the possible rounding error."""
    centre, width = value * step, half_width * step + rounding * max(rows_upper, 0)
    return Interval(float(centre - width), float(centre + width))


def all_widened(values: Sequence[int], half_width: int, *, step: Fraction, rounding: Fraction, rows_upper: Sequence[int]) -> list[Interval]:
    """:func:`widened` for a column, each cell with its own number of rows; in integers over one denominator, which is far faster."""
    parts = math.lcm(step.denominator, rounding.denominator)
    one, per_row = int(step * parts), int(rounding * parts)
    intervals = []
    for value, rows in zip(values, rows_upper, strict=True):
        centre, width = value * one, half_width * one + per_row * max(rows, 0)
        intervals.append(Interval((centre - width) / parts, (centre + width) / parts))
    return intervals
