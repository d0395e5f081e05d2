"""Bounds on the tails of the two noise laws, rounded against us: upper ones, and for the Gaussian a lower one.

``laplace_tail_upper(b, t)`` and ``gaussian_tail_upper(sigma, t)`` are never below ``P[Z >= t]``, for every integer ``t``. The discrete
Laplace has a closed form. The discrete Gaussian is summed in fixed point while sigma is at most ``SUMMED_SCALE_MAX`` (relative error below
``10**-40``); above it, the sum is compared with the normal tail Q, whose own enclosure is a power series (relative error of the comparison
about ``(t/sigma)**2 / (24 sigma**2)`` for ``t > sigma``).

Proofs: ``docs/proofs/discrete-laplace.md`` and ``docs/proofs/discrete-gaussian.md``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from lapwing.kernel.numbers import ceil_div, exp_lower, exp_upper, sqrt_lower, sqrt_upper

SUMMED_SCALE_MAX = 128
"""Largest sigma at which the discrete Gaussian is summed term by term."""

PI_LOWER = Fraction(3141592653589793238462643383279502884197169399375105820974944592307816406286208998628034825342117067, 10**99)
PI_UPPER = PI_LOWER + Fraction(1, 10**99)

_FIXED_BITS = 400
"""Fixed-point numbers below are integers over ``2**_FIXED_BITS``."""

_NEGLIGIBLE_BITS = 160
"""A sum of terms relative to 1 stops at the first term below ``2**-_NEGLIGIBLE_BITS``; the rest is bounded."""

_SERIES_ARGUMENT_MAX = 16
"""The power series of Q is used up to here; Q(16) is below ``10**-57``."""

_ONE = 1 << _FIXED_BITS


def laplace_tail_upper(scale: Fraction, t: int) -> Fraction:
    """At least ``P[Z >= t]`` for the discrete Laplace law of this scale: ``a**t / (1 + a)`` with ``a = exp(-1/scale)``, for t >= 0."""
    if t >= 0:
        return exp_upper(-t / scale) / (1 + exp_lower(-1 / scale))
    return 1 - exp_lower((t - 1) / scale) / (1 + exp_upper(-1 / scale))


def gaussian_tail_upper(sigma: Fraction, t: int) -> Fraction:
    """At least ``P[Z >= t]`` for the discrete Gaussian law of parameter sigma."""
    if t <= 0:
        # P[Z >= t] = 1 - P[Z >= 1 - t] by symmetry
        return 1 - positive_tail_lower(sigma, 1 - t)
    if sigma <= SUMMED_SCALE_MAX:
        weight = exp_upper(-(t**2) / (2 * sigma**2))
        return min(Fraction(1), weight * _relative_sum_upper(sigma, t) / gaussian_total(sigma)[0])
    # The summand is convex beyond sigma, so each term is at most its integral over the unit interval centred on it; it is decreasing
    # beyond 0, so each term is at most its integral over the unit interval before it. The total is at least sigma sqrt(2 pi).
    half = Fraction(1, 2)
    return normal_tail_upper((t - half if t - half >= sigma else t - 1) / sigma)


def positive_tail_lower(sigma: Fraction, t: int) -> Fraction:
    """At most ``P[Z >= t]``, for ``t >= 1``."""
    if sigma <= SUMMED_SCALE_MAX:
        weight = exp_lower(-(t**2) / (2 * sigma**2))
        return weight * _relative_sum_lower(sigma, t) / gaussian_total(sigma)[1]
    # total = sigma sqrt(2 pi) (1 + 2 sum_k exp(-2 pi^2 sigma^2 k^2)), and the bracket is at most 1 + 3 exp(-19 sigma^2)
    return normal_tail_lower(t / sigma) / (1 + 3 * exp_upper(-19 * sigma**2))


@lru_cache(maxsize=256)
def gaussian_total(sigma: Fraction) -> tuple[Fraction, Fraction]:
    """Lower and upper bound on ``sum over all integers z of exp(-z^2 / (2 sigma^2))``, for sigma at most ``SUMMED_SCALE_MAX``."""
    return 2 * _relative_sum_lower(sigma, 0) - 1, 2 * _relative_sum_upper(sigma, 0) - 1


def _relative_sum_upper(sigma: Fraction, t: int) -> Fraction:
    """At least ``sum over j >= 0 of f(t + j) / f(t)`` with ``f(z) = exp(-z^2 / (2 sigma^2))``, for ``t >= 0``.

    Each term is the one before times a ratio, and the ratios shrink by the constant factor ``exp(-1/sigma^2)``; all products round up.
    What is left after the last term is at most a geometric series with the next ratio.
    """
    ratio = _fixed_upper(exp_upper(-(2 * t + 1) / (2 * sigma**2)))
    shrink = _fixed_upper(exp_upper(-1 / sigma**2))
    total = term = _ONE
    while term >> (_FIXED_BITS - _NEGLIGIBLE_BITS):
        term = -(-term * ratio >> _FIXED_BITS)
        ratio = -(-ratio * shrink >> _FIXED_BITS)
        total += term
    return Fraction(total + ceil_div(term * ratio, _ONE - ratio), _ONE)


def _relative_sum_lower(sigma: Fraction, t: int) -> Fraction:
    """At most ``sum over j >= 0 of f(t + j) / f(t)``: the same terms rounded down, and nothing for the rest."""
    ratio = math.floor(exp_lower(-(2 * t + 1) / (2 * sigma**2)) * _ONE)
    shrink = math.floor(exp_lower(-1 / sigma**2) * _ONE)
    total = term = _ONE
    while term >> (_FIXED_BITS - _NEGLIGIBLE_BITS):
        term = term * ratio >> _FIXED_BITS
        ratio = ratio * shrink >> _FIXED_BITS
        total += term
    return Fraction(total, _ONE)


def _fixed_upper(x: Fraction) -> int:
    return math.ceil(x * _ONE)


def normal_tail_upper(x: Fraction) -> Fraction:
    """At least ``Q(x) = P[N(0, 1) >= x]``, for ``x >= 0``."""
    if x > _SERIES_ARGUMENT_MAX:
        # Q(x) <= density(x) / x
        return exp_upper(-(x**2) / 2) / (sqrt_lower(2 * PI_LOWER) * x)
    x_below = Fraction(math.floor(x * _ONE), _ONE)  # Q decreases, so a smaller argument is on the safe side
    density = exp_lower(-(x_below**2) / 2) / sqrt_upper(2 * PI_UPPER)
    return Fraction(1, 2) - density * _central_series(x_below)[0]


def normal_tail_lower(x: Fraction) -> Fraction:
    """At most ``Q(x)`` and at least 0, for ``x >= 0``."""
    if x > _SERIES_ARGUMENT_MAX:
        return Fraction(0)
    x_above = Fraction(math.ceil(x * _ONE), _ONE)
    density = exp_upper(-(x_above**2) / 2) / sqrt_lower(2 * PI_LOWER)
    return max(Fraction(0), Fraction(1, 2) - density * _central_series(x_above)[1])


def _central_series(x: Fraction) -> tuple[Fraction, Fraction]:
    """Lower and upper bound on ``sum over n >= 0 of x^(2n+1) / (1 * 3 * ... * (2n+1))``, which times the density is ``1/2 - Q(x)``.

    ``x`` is at least 0 and at most ``_SERIES_ARGUMENT_MAX`` (or a hair above), a multiple of ``2**-_FIXED_BITS``.
    """
    square = x * x
    square_lower, square_upper = math.floor(square * _ONE), math.ceil(square * _ONE)
    term_lower = term_upper = total_lower = total_upper = int(x * _ONE)
    odd = 1
    # Once odd exceeds twice the square each term is at most half the one before, so all that follow add up to at most the last one.
    while term_upper > 1 or odd < 2 * square:
        odd += 2
        term_lower = (term_lower * square_lower >> _FIXED_BITS) // odd
        term_upper = ceil_div(term_upper * square_upper, odd << _FIXED_BITS)
        total_lower += term_lower
        total_upper += term_upper
    return Fraction(total_lower, _ONE), Fraction(total_upper + term_upper, _ONE)
