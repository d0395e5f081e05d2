"""How far a sum deviates from its mean: the inequalities behind accuracy statements, rounded upwards.

Each ``..._upper`` is a rational at least the bound of the theorem, which is itself at least the true probability; compare with the exact
tails (:func:`binomial_tail`, :func:`laplace_sum_tail`). For planning, :func:`samples_needed` and :func:`deviation` invert Hoeffding's
inequality.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from lapwing.errors import LapwingError
from lapwing.kernel.numbers import exp_lower, exp_upper, ln_lower, ln_upper, require_exact, sqrt_lower, sqrt_upper
from lapwing.kernel.tails import PI_LOWER, PI_UPPER

TERMS_MAX = 10_000
"""Most terms of an exact tail."""


def hoeffding_upper(*, samples: int, deviation: Fraction) -> Fraction:
    """At least ``exp(-2 m t^2)``: the mean of m independent values in [0, 1] is above its expectation by t or more with at most this
    probability.

    The additive Chernoff bound (Hoeffding 1963, theorem 2). The same holds below the expectation; for both sides together, double it.
    """
    _require(samples=samples, deviation=deviation)
    return exp_upper(-2 * samples * Fraction(deviation) ** 2)


def samples_needed(*, deviation: Fraction, probability: Fraction) -> int:
    """The least m for which Hoeffding's inequality gives ``P[|mean - expectation| >= t] <= probability``: ``ln(2/p) / (2 t^2)``, rounded
    up."""
    _require(samples=1, deviation=deviation)
    _require_probability(probability)
    return math.ceil(ln_upper(2 / Fraction(probability)) / (2 * Fraction(deviation) ** 2))


def deviation(*, samples: int, probability: Fraction) -> Fraction:
    """At least the t for which Hoeffding's inequality gives ``P[|mean - expectation| >= t] <= probability``: ``sqrt(ln(2/p) / (2 m))``."""
    _require(samples=samples, deviation=Fraction(1))
    _require_probability(probability)
    return sqrt_upper(ln_upper(2 / Fraction(probability)) / (2 * samples))


def chernoff_upper(*, samples: int, mean: Fraction, at_least: Fraction) -> Fraction:
    """At least ``exp(-m KL(a || mu))``, the sharpest exponential bound on ``P[average >= a]`` for values in [0, 1] of mean mu, ``mu < a <
    1``.

    Chernoff 1952, Hoeffding 1963 (theorem 1). The additive and the multiplicative bounds are simplifications of it.
    """
    require_exact(mean, at_least)
    _require(samples=samples, deviation=Fraction(1))
    if not 0 < mean < at_least < 1:
        raise LapwingError("theory-argument", "the bound needs 0 < mean < at_least < 1")
    mean, at_least = Fraction(mean), Fraction(at_least)
    divergence = at_least * ln_lower(at_least / mean) + (1 - at_least) * ln_lower((1 - at_least) / (1 - mean))
    return min(Fraction(1), exp_upper(-samples * divergence))


def multiplicative_above_upper(*, samples: int, mean: Fraction, share: Fraction) -> Fraction:
    """At least ``exp(-m mu s^2 / 3)``: the average of values in [0, 1] is at least ``(1 + s) mu`` with at most this probability, ``0 <= s
    <= 1``."""
    _require_multiplicative(samples=samples, mean=mean, share=share)
    return exp_upper(-samples * Fraction(mean) * Fraction(share) ** 2 / 3)


def multiplicative_below_upper(*, samples: int, mean: Fraction, share: Fraction) -> Fraction:
    """At least ``exp(-m mu s^2 / 2)``: the average is at most ``(1 - s) mu`` with at most this probability, ``0 <= s <= 1``."""
    _require_multiplicative(samples=samples, mean=mean, share=share)
    return exp_upper(-samples * Fraction(mean) * Fraction(share) ** 2 / 2)


def azuma_upper(*, steps: Sequence[Fraction], deviation: Fraction) -> Fraction:
    """At least ``exp(-t^2 / (2 sum c_i^2))``: a martingale whose i-th step is at most ``c_i`` in size ends t or more above its start.

    Azuma 1967. Steps may depend on the past in any way that keeps their mean 0; with independent steps it is Hoeffding's inequality.
    """
    require_exact(deviation, *steps)
    if deviation < 0 or not steps or any(step <= 0 for step in steps):
        raise LapwingError("theory-argument", "the bounds of the steps must be positive, and a deviation must not be negative")
    return exp_upper(-(Fraction(deviation) ** 2) / (2 * sum(Fraction(step) ** 2 for step in steps)))


def factorial_lower(n: int) -> Fraction:
    """At most n!: Stirling's formula with Robbins' correction, ``sqrt(2 pi n) (n/e)^n exp(1 / (12n + 1))`` (Robbins 1955)."""
    _require_factorial(n)
    return sqrt_lower(2 * PI_LOWER * n) * Fraction(n) ** n * exp_lower(-n + Fraction(1, 12 * n + 1))


def factorial_upper(n: int) -> Fraction:
    """At least n!: ``sqrt(2 pi n) (n/e)^n exp(1 / (12n))``."""
    _require_factorial(n)
    return sqrt_upper(2 * PI_UPPER * n) * Fraction(n) ** n * exp_upper(-n + Fraction(1, 12 * n))


def binomial_tail(*, samples: int, chance: Fraction, at_least: int) -> Fraction:
    """``P[successes >= k]`` among m independent trials. Exact."""
    _require(samples=samples, deviation=Fraction(1))
    require_exact(chance)
    if not 0 <= chance <= 1:
        raise LapwingError("theory-argument", "a probability must be between 0 and 1")
    n, d = Fraction(chance).numerator, Fraction(chance).denominator
    ways = sum(math.comb(samples, k) * n**k * (d - n) ** (samples - k) for k in range(max(0, at_least), samples + 1))
    return Fraction(ways, d**samples)


def laplace_sum_mass(*, count: int, decay: Fraction, total: int) -> Fraction:
    """``P[Z_1 + ... + Z_k = s]`` for independent discrete Laplace draws, ``P[Z = z]`` proportional to ``decay^|z|``. Exact.

    The generating function is ``(1-a)^(2k) / ((1 - a x)^k (1 - a/x)^k)``. Its coefficient is a hypergeometric series in ``a^2``; Euler's
    transformation makes it finite: ``(1-a)^(2k) a^s C(s+k-1, k-1) (1-a^2)^(1-2k) sum over j < k of (s+1-k)_j (1-k)_j / ((s+1)_j j!)
    a^(2j)``.
    """
    _require_laplace(count=count, decay=decay)
    s, a = abs(total), Fraction(decay)
    series, term = Fraction(0), Fraction(1)
    for j in range(count):
        series += term
        term *= Fraction((s + 1 - count + j) * (1 - count + j), (s + 1 + j) * (j + 1)) * a**2
    return (1 - a) ** (2 * count) * a**s * math.comb(s + count - 1, count - 1) * (1 - a**2) ** (1 - 2 * count) * series


def laplace_sum_tail(*, count: int, decay: Fraction, at_least: int) -> Fraction:
    """``P[Z_1 + ... + Z_k >= t]`` for ``t >= 1``. Exact: half of the mass outside 0, less the masses between 0 and t."""
    _require_laplace(count=count, decay=decay)
    if not 1 <= at_least <= TERMS_MAX:
        raise LapwingError("theory-argument", f"at_least must be between 1 and {TERMS_MAX}")
    half = (1 - laplace_sum_mass(count=count, decay=decay, total=0)) / 2
    return half - sum((laplace_sum_mass(count=count, decay=decay, total=s) for s in range(1, at_least)), Fraction(0))


def laplace_sum_tail_upper(*, count: int, decay: Fraction, at_least: int) -> Fraction:
    """At least ``P[Z_1 + ... + Z_k >= t]``, for ``t >= 0``, by Chernoff's method: ``min over u of u^-t ((1-a)^2 / ((1 - a u)(1 -
    a/u)))^k``.

    Any u with ``1 <= u < 1/a`` is valid, so a float chooses it and the bound is evaluated exactly.
    """
    _require_laplace(count=count, decay=decay)
    if at_least < 0:
        raise LapwingError("theory-argument", "the bound covers only the upper tail")
    a = Fraction(decay)
    tilt = _best_tilt(count=count, decay=float(a), at_least=at_least)
    # strictly inside the interval, where both factors are positive
    u = min(max(Fraction(1), Fraction(round(tilt * 2**20), 2**20)), 1 / a - (1 / a - 1) / 2**20)
    return min(Fraction(1), ((1 - a) ** 2 / ((1 - a * u) * (1 - a / u))) ** count / u**at_least)


def _best_tilt(*, count: int, decay: float, at_least: int) -> float:
    """Near the best u: where the tilted mean ``k (a u / (1 - a u) - a / (u - a))`` is t. The mean grows with u; bisect. Any u is sound."""
    low, high = 1.0, 1.0 / decay
    for _ in range(60):
        middle = (low + high) / 2.0
        mean = count * (decay * middle / max(1e-300, 1.0 - decay * middle) - decay / (middle - decay))
        low, high = (middle, high) if mean < at_least else (low, middle)
    return low


def laplace_sum_subgaussian_upper(*, scales: Sequence[Fraction], deviation: Fraction) -> Fraction | None:
    """At least ``exp(-t^2 / (8 sum b_i^2))`` for *continuous* Laplace draws of these scales; None where the bound is not proved.

    It holds for ``0 < t < 2 sqrt(2) V / max b`` with ``V = sum b_i^2`` (Chan, Shi and Song 2011, lemma 2.8, one side).
    """
    require_exact(deviation, *scales)
    if not scales or any(scale <= 0 for scale in scales) or deviation <= 0:
        raise LapwingError("theory-argument", "the scales and the deviation must be positive")
    variance_half = sum((Fraction(scale) ** 2 for scale in scales), Fraction(0))
    if Fraction(deviation) ** 2 * max(scales) ** 2 >= 8 * variance_half**2:
        return None
    return exp_upper(-(Fraction(deviation) ** 2) / (8 * variance_half))


def _require(*, samples: int, deviation: Fraction) -> None:
    require_exact(deviation)
    if type(samples) is not int or samples < 1 or deviation <= 0:
        raise LapwingError("theory-argument", "there must be at least one sample, and a deviation must be positive")


def _require_probability(probability: Fraction) -> None:
    require_exact(probability)
    if not 0 < probability < 1:
        raise LapwingError("theory-argument", "a failure probability must be above 0 and below 1")


def _require_multiplicative(*, samples: int, mean: Fraction, share: Fraction) -> None:
    require_exact(mean, share)
    if type(samples) is not int or samples < 1 or not 0 <= mean <= 1 or not 0 <= share <= 1:
        raise LapwingError("theory-argument", "the multiplicative bounds need a mean and a share between 0 and 1")


def _require_factorial(n: int) -> None:
    if type(n) is not int or not 1 <= n <= TERMS_MAX:
        raise LapwingError("theory-argument", f"n must be from 1 to {TERMS_MAX}")


def _require_laplace(*, count: int, decay: Fraction) -> None:
    require_exact(decay)
    if type(count) is not int or not 1 <= count <= TERMS_MAX or not 0 < decay < 1:
        raise LapwingError("theory-argument", f"a sum must have 1 to {TERMS_MAX} draws, and a decay must be above 0 and below 1")
