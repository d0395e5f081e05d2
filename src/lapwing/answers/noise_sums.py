"""Error bars of sums of noisy cells: totals that are added up from released values. Post-processing only; nothing here touches privacy.

Proof of coverage: docs/proofs/error-bars.md, "Sums of cells".
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import assert_never

from lapwing.errors import Refused
from lapwing.kernel.laws import PROBABILITY_MIN, SCALE_MAX, DiscreteGaussian, DiscreteLaplace, Law, tail_quantile
from lapwing.kernel.numbers import exp_upper, ln_upper, require_exact, sqrt_upper
from lapwing.prices import scale_root_at_least
from lapwing.spread import half_width

EXACT_TERMS_MAX = 512
"""Most Laplace draws whose sum is computed by its exact law; larger sums use Chernoff's bound."""
_ROUNDED = 1 + 1e-9
"""Floats of the Laplace sum are below this factor of the truth; widths and probabilities are multiplied by it."""


def half_width_of_sum(law: Law, *, terms: int, confidence: Fraction) -> int:
    """An integer ``t`` with ``P[|Z_1 + ... + Z_terms| <= t] >= confidence`` for independent draws of the law.

    The least one that the exact tail shows for one term and for two to ``EXACT_TERMS_MAX`` Laplace draws; for Gaussian draws the least one
    but for a factor on the tail that is below ``1 + 10**-10`` from scale 2 on and up to 10^5 terms.
    """
    require_exact(confidence)
    if type(terms) is not int or terms < 1:
        raise Refused("mechanism-invalid", "a sum has at least one term")
    if terms == 1 or not 0 < confidence < 1:
        return half_width(law, confidence=confidence)
    beyond = 1 - Fraction(confidence)
    match law:
        case DiscreteGaussian():
            return _gaussian_sum(law.scale, terms, beyond)
        case DiscreteLaplace():
            return _laplace_sum(float(law.scale), terms, float(beyond))
        case never:
            assert_never(never)


def gaussian_of_sum(law: DiscreteGaussian, *, terms: int) -> DiscreteGaussian:
    """The Gaussian that a sum of independent draws follows up to a factor of :func:`gaussian_sum_factor` on every probability."""
    return law if terms == 1 else DiscreteGaussian(min(scale_root_at_least(terms * law.scale**2), SCALE_MAX))


def gaussian_sum_factor(scale: Fraction, *, terms: int) -> Fraction:
    """At least the largest ratio of ``P[Z_1 + ... + Z_n = z]`` to the probability of z under the Gaussian of scale ``sqrt(n) * scale``."""
    missing = exp_upper(-(scale**2) * 9)  # 9 < pi^2
    if missing * 16 * terms >= 1:
        return Fraction(2**64)
    eta = 2 * missing / (1 - missing)
    # (1 + x)^n <= 1 / (1 - n x) for n x < 1, with x = 2 eta / (1 - eta): ratio of the largest to the least theta sum, less 1.
    return 1 / (1 - terms * 2 * eta / (1 - eta))


@lru_cache(maxsize=4096)
def _gaussian_sum(scale: Fraction, terms: int, beyond: Fraction) -> int:
    # Each draw is sub-Gaussian with variance proxy scale^2, so the sum is with terms * scale^2.
    chernoff = math.ceil(sqrt_upper(2 * terms * scale**2 * ln_upper(2 / beyond)))
    one_side = beyond / 2 / gaussian_sum_factor(scale, terms=terms)
    if one_side < PROBABILITY_MIN:
        return chernoff
    whole = gaussian_of_sum(DiscreteGaussian(scale), terms=terms)
    return max(0, min(chernoff, tail_quantile(whole, one_side) - 1))


@lru_cache(maxsize=4096)
def _laplace_sum(scale: float, terms: int, beyond: float) -> int:
    chernoff = math.ceil(laplace_chernoff_width((scale,), terms=terms, beyond=beyond))
    if terms > EXACT_TERMS_MAX:
        return chernoff
    below = _failures_below(scale, terms)
    low, high = -1, chernoff  # not enough at ``low``, enough at ``high``
    while high - low > 1:
        middle = (low + high) // 2
        enough = 2 * _laplace_sum_tail(scale, terms, middle + 1, below) * _ROUNDED <= beyond
        low, high = (low, middle) if enough else (middle, high)
    return high


def _failures_below(scale: float, terms: int) -> list[float]:
    """``P[M <= j]`` for j below ``terms``; M as in the proof, with generating function ``((1 - q s) / (c - s))^terms``."""
    p, q = math.exp(-1 / scale), -math.expm1(-1 / scale)
    c = 1 + p
    mass = [c**-terms, terms * p * p / c * c**-terms]
    for j in range(1, terms - 1):
        mass.append((((q + 1 / c) * j + terms * p * p / c) * mass[j] - q / c * (j - 1) * mass[j - 1]) / (j + 1))
    chances, total = [], 0.0
    for value in mass[:terms]:
        total += value
        chances.append(total)
    return chances


def _laplace_sum_tail(scale: float, terms: int, at_least: int, below: list[float]) -> float:
    """``P[Z_1 + ... + Z_n >= t]`` for ``t >= 0``."""
    q = -math.expm1(-1 / scale)
    mass, total = math.exp(-at_least / scale), 0.0
    for i in range(terms):
        total += mass * below[terms - 1 - i]
        mass *= (at_least + i) / (i + 1) * q
    return total


def laplace_chernoff_width(scales: tuple[float, ...], *, terms: int, beyond: float) -> float:
    """Chernoff's half-width of a sum of ``terms`` independent draws of each discrete Laplace scale: chance ``beyond`` of more.

    It is ``(ln(2/beyond) - terms * sum of ln(1 - (m b)^2)) / m`` for the best m found; any m below ``1 / max(scales)`` is valid.
    """
    largest = max(scales)

    def width(m: float) -> float:
        return (math.log(2 / beyond) - terms * sum(math.log1p(-((m * b) ** 2)) for b in scales)) / m

    low, high = 1e-9 / largest, (1 - 1e-9) / largest
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(60):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if width(left) < width(right) else (left, high)
    return width((low + high) / 2) * _ROUNDED
