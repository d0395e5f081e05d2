"""Error bars: from the exact noise law and the rounding to the grid. Post-processing only; nothing here touches privacy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law


@dataclass(frozen=True, slots=True)
class Interval:
    """Ends of a confidence interval, included."""

    lo: float
    hi: float


def combined_half_width(sum_law: Law, count_law: Law, *, slope: float, confidence: float) -> float:
    """Half-width that the noise of sum - slope * count stays within, with the given probability (continuous approximation)."""
    a, b = float(sum_law.scale), abs(slope) * float(count_law.scale)
    match sum_law, count_law:
        case DiscreteGaussian(), DiscreteGaussian():
            return NormalDist().inv_cdf((1 + confidence) / 2) * math.hypot(a, b)
        case DiscreteLaplace(), DiscreteLaplace():
            return _two_laplace_half_width(a, b, 1 - confidence)
        case _:
            parts = [combined_half_width(law, law, slope=0.0, confidence=(1 + confidence) / 2) for law in (sum_law, count_law)]
            return parts[0] + abs(slope) * parts[1]


def _two_laplace_half_width(a: float, b: float, miss: float) -> float:
    """Least t with P(|A + B| > t) <= miss for independent Laplace variables of scales a and b."""
    if min(a, b) < 1e-9 * max(a, b):
        return -max(a, b) * math.log(miss)
    if abs(a - b) < 1e-6 * max(a, b):
        b = a * (1 + 1e-6)

    def outside(t: float) -> float:
        return (a * a * math.exp(-t / a) - b * b * math.exp(-t / b)) / (a * a - b * b)

    low, high = 0.0, 4 * max(a, b) * (1 - math.log(miss))
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if outside(middle) <= miss else (middle, high)
    return high


def ratio_interval(
    *, total: float, count: float, sum_law: Law, count_law: Law, confidence: float, lo: float, hi: float
) -> tuple[float, Interval]:
    """Estimate and Fieller interval of total / count, both inside the public bounds [lo, hi].

    The interval holds every ratio t in [lo, hi] for which total - t * count is no larger than its noise would explain. With a count lost in
    its own noise that is all of [lo, hi].
    """
    estimate = min(max(total / count, lo), hi) if count > 0 else (lo + hi) / 2

    def explained(t: float) -> bool:
        return abs(total - t * count) <= combined_half_width(sum_law, count_law, slope=t, confidence=confidence)

    return estimate, Interval(_edge(explained, estimate, lo), _edge(explained, estimate, hi))


def _edge(explained: Callable[[float], bool], inside: float, end: float) -> float:
    """Bisect from a ratio that is explained towards an end; the set is taken as an interval around the estimate."""
    if explained(end) or not explained(inside):
        return end
    for _ in range(60):
        middle = (inside + end) / 2
        inside, end = (middle, end) if explained(middle) else (inside, middle)
    return end


def widened(value: int, half_width: int, *, step: Fraction, rounding: Fraction, rows_upper: int) -> Interval:
    """Interval of a noisy integer in real units: noise half-width plus what rounding could have moved."""
    centre, width = value * step, half_width * step + rounding * max(rows_upper, 0)
    return Interval(float(centre - width), float(centre + width))
