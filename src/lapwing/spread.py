"""The spread of noise: half-widths of intervals, variances, probabilities. For error bars, planning and lessons.

The gate does not use it: a mistake here makes an error bar too short, and leaks nothing. :func:`half_width` is exact or rounded against
us; :func:`variance` and :func:`pmf` are floats.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import assert_never

from lapwing.errors import Refused
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law, tail_quantile
from lapwing.kernel.numbers import require_exact
from lapwing.kernel.tails import SUMMED_SCALE_MAX, gaussian_total


def require_confidence(confidence: Fraction) -> None:
    """Stop (code ``confidence-invalid``) what is not a probability strictly between 0 and 1."""
    require_exact(confidence)
    if not 0 < confidence < 1:
        raise Refused("confidence-invalid", "a confidence must be above 0 and below 1")


def half_width(law: Law, *, confidence: Fraction) -> int:
    """The least integer ``t`` for which we can show ``P[|Z| <= t] >= confidence``: half the width of an interval around a noisy value."""
    require_confidence(confidence)
    # P[|Z| > t] = 2 P[Z >= t + 1]
    return max(0, tail_quantile(law, (1 - Fraction(confidence)) / 2) - 1)


def variance(law: Law) -> float:
    """The variance, as a float."""
    scale = float(law.scale)
    match law:
        case DiscreteLaplace():
            half_rate = 0.5 / scale
            # 1 / (2 sinh^2(1 / (2 scale))); beyond 350 it underflows
            return 0.0 if half_rate > 350.0 else 0.5 / math.sinh(half_rate) ** 2
        case DiscreteGaussian():
            if scale > 8.0:
                return scale**2  # off by a factor 1 - exp(-1200) at most
            weights = [(z, math.exp(-0.5 * (z / scale) ** 2)) for z in range(1, 1 + math.ceil(40.0 * scale))]
            return 2.0 * math.fsum(z * z * w for z, w in weights) / (1.0 + 2.0 * math.fsum(w for _, w in weights))
        case never:
            assert_never(never)


def pmf(law: Law, z: int) -> float:
    """``P[Z = z]`` as a float."""
    scale = float(law.scale)
    match law:
        case DiscreteLaplace():
            return math.tanh(0.5 / scale) * math.exp(-abs(z) / scale)
        case DiscreteGaussian():
            total = float(gaussian_total(law.scale)[0]) if law.scale <= SUMMED_SCALE_MAX else scale * math.sqrt(2.0 * math.pi)
            return math.exp(-0.5 * (z / scale) ** 2) / total
        case never:
            assert_never(never)
