"""The *continuous* Gaussian mechanism and Gaussian differential privacy, with directed rounding.

This module is about the normal law on the reals, from which no computer can draw exactly; Lapwing draws the discrete Gaussian, whose
guarantee is stated in rho (``docs/proofs/discrete-gaussian.md``). The discrete Gaussian is slightly less private; the last three functions
say by how much, and ``docs/explanation/gaussian-dp.md`` proves it.

``mu`` is the largest movement of the value divided by sigma. A mechanism is mu-GDP when telling two neighbours apart is at least as hard as
telling N(0, 1) from N(mu, 1) (Dong, Roth and Su 2022). Because composition adds the squares, functions take ``mu_squared``, which is
rational. Floats decide nothing: the normal tail is enclosed by its power series in fixed point (:mod:`lapwing.kernel.tails`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

from lapwing.errors import LapwingError
from lapwing.kernel.numbers import exp_lower, exp_upper, ln_upper, require_exact, sqrt_lower, sqrt_upper
from lapwing.kernel.tails import PI_LOWER, PI_UPPER, SUMMED_SCALE_MAX, gaussian_total, normal_tail_lower, normal_tail_upper
from lapwing.theory.guarantees import Guarantee

SIGNIFICANT_DIGITS = 12
"""Digits to which solved values (a calibrated sigma) are computed. They are on the safe side at any number of digits."""

_QUANTILE_STEP = Fraction(1, 2**80)
"""Width of the enclosure of a normal quantile."""

_QUANTILE_MAX = 16
"""Quantiles are searched between minus and plus this; the tail beyond is below ``10**-57``."""


def tail_upper(x: Fraction) -> Fraction:
    """At least ``Q(x) = P[N(0, 1) >= x]``, for every rational x."""
    return normal_tail_upper(x) if x >= 0 else 1 - normal_tail_lower(-x)


def tail_lower(x: Fraction) -> Fraction:
    """At most ``Q(x)``, and at least 0, for every rational x."""
    return normal_tail_lower(x) if x >= 0 else 1 - normal_tail_upper(-x)


def mu_squared(*, sensitivity: Fraction, sigma_squared: Fraction) -> Fraction:
    """The square of mu for Gaussian noise of this variance on a value that moves by at most ``sensitivity`` (in L2). Exact."""
    require_exact(sensitivity, sigma_squared)
    if sensitivity < 0 or sigma_squared <= 0:
        raise LapwingError("theory-argument", "a sensitivity must not be negative, and a variance must be positive")
    return Fraction(sensitivity) ** 2 / sigma_squared


def composed(mu_squares: Iterable[Fraction]) -> Fraction:
    """The square of mu after composing mechanisms: the sum of the squares. Exact (Dong, Roth and Su 2022, corollary 3.3)."""
    return sum((_mu_squared(square) for square in mu_squares), Fraction(0))


def delta_upper(*, mu_squared: Fraction, epsilon: Fraction) -> Fraction:
    """At least the least delta of mu-GDP at this epsilon: ``Q(epsilon/mu - mu/2) - exp(epsilon) Q(epsilon/mu + mu/2)``.

    Tight for the Gaussian mechanism itself (Balle and Wang 2018, theorem 8). The true delta grows with mu, but the bound on it is computed
    from bounds on mu that differ by one part in ``2**400``, so each argument is bounded in its own direction.
    """
    mu_low, mu_high = _mu_bounds(mu_squared, epsilon)
    if mu_low == 0:
        return Fraction(0)
    first = tail_upper(epsilon / mu_high - mu_high / 2)
    second = tail_lower(epsilon / mu_low + mu_high / 2)
    return min(Fraction(1), max(Fraction(0), first - exp_lower(epsilon) * second))


def delta_lower(*, mu_squared: Fraction, epsilon: Fraction) -> Fraction:
    """At most the least delta of mu-GDP at this epsilon, and at least 0."""
    mu_low, mu_high = _mu_bounds(mu_squared, epsilon)
    if mu_low == 0:
        return Fraction(0)
    first = tail_lower(epsilon / mu_low - mu_low / 2)
    second = tail_upper(epsilon / mu_high + mu_low / 2)
    return max(Fraction(0), first - exp_upper(epsilon) * second)


def sigma_classic(*, epsilon: Fraction, delta: Fraction, sensitivity: Fraction) -> Fraction:
    """At least ``sqrt(2 ln(1.25/delta)) sensitivity / epsilon``, for which the Gaussian mechanism is (epsilon, delta)-differentially
    private.

    Proved for ``0 < epsilon < 1`` only (Dwork and Roth 2014, theorem 3.22); anything else is refused, because the formula is false for
    large epsilon.
    """
    require_exact(epsilon, delta, sensitivity)
    if not (0 < epsilon < 1 and 0 < delta < 1 and sensitivity > 0):
        raise LapwingError("theory-argument", "the classic calibration is proved only for 0 < epsilon < 1 and 0 < delta < 1")
    return sqrt_upper(2 * ln_upper(Fraction(5, 4) / delta)) * sensitivity / epsilon


def sigma_analytic(*, epsilon: Fraction, delta: Fraction, sensitivity: Fraction) -> Fraction:
    """The least sigma, rounded up in the twelfth digit, whose Gaussian mechanism is (epsilon, delta)-private (Balle and Wang 2018).

    Any epsilon of at least 0. The search halves an interval of sigma; only :func:`delta_upper` decides.
    """
    require_exact(epsilon, delta, sensitivity)
    if not (epsilon >= 0 and 0 < delta < 1 and sensitivity > 0):
        raise LapwingError("theory-argument", "a calibration needs epsilon >= 0, 0 < delta < 1 and a positive sensitivity")

    def enough(sigma: Fraction) -> bool:
        return delta_upper(mu_squared=(sensitivity / sigma) ** 2, epsilon=epsilon) <= delta

    return _least(enough, start=Fraction(sensitivity))


def _least(enough: Callable[[Fraction], bool], *, start: Fraction) -> Fraction:
    """A value that is enough and exceeds one that is not by at most ``10**-SIGNIFICANT_DIGITS`` of itself; ``enough`` is monotone."""
    low = high = start
    while not enough(high):
        low, high = high, high * 2
    while low == high or enough(low):
        low, high = low / 2, low
    while high - low > high / 10**SIGNIFICANT_DIGITS:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def trade_off_lower(*, mu_squared: Fraction, false_alarm: Fraction) -> Fraction:
    """At most ``G_mu(alpha) = Q(mu - Q^-1(alpha))``: the least share of misses of any test with this false-alarm rate."""
    low, _ = _quantile(false_alarm)
    return tail_lower(sqrt_upper(_mu_squared(mu_squared)) - low)


def trade_off_upper(*, mu_squared: Fraction, false_alarm: Fraction) -> Fraction:
    """At least ``G_mu(alpha)``; the best test misses no more."""
    _, high = _quantile(false_alarm)
    return tail_upper(sqrt_lower(_mu_squared(mu_squared)) - high)


def pure_mu_upper(guarantee: Guarantee) -> Fraction:
    """At least the least mu for which every mechanism with this pure guarantee is mu-GDP: ``2 Q^-1(1 / (1 + odds))``.

    The curve of randomised response has one corner, at ``(1/(1+odds), 1/(1+odds))``; the convex curve ``G_mu`` lies below it if
    it does at this corner.
    """
    if guarantee.delta:
        raise LapwingError("theory-argument", "only a guarantee with delta = 0 implies Gaussian privacy")
    return max(Fraction(0), 2 * _quantile(1 / (1 + guarantee.odds))[1])


def discrete_mu_squared(*, sensitivity_squared: int, sigma_squared: Fraction, smoothing_squared: Fraction = Fraction(4)) -> Fraction:
    """The square of the mu that discrete Gaussian noise has, up to :func:`discrete_closeness_upper`: ``Delta^2 / (sigma^2 - s^2)``.
    Exact.

    Discrete Gaussian noise on integers is, up to that factor on every probability, a *continuous* Gaussian of variance ``sigma^2 - s^2``
    rounded at random to an integer; rounding is post-processing. Any ``s^2 < sigma^2`` is valid. Proof:
    ``docs/explanation/gaussian-dp.md``.
    """
    require_exact(sigma_squared, smoothing_squared)
    if type(sensitivity_squared) is not int or sensitivity_squared < 0 or not 0 < smoothing_squared < sigma_squared:
        raise LapwingError("theory-argument", "a squared sensitivity must be a natural number, and smoothing must be below the variance")
    return sensitivity_squared / (Fraction(sigma_squared) - smoothing_squared)


def discrete_closeness_upper(*, cells: int, smoothing_squared: Fraction = Fraction(4)) -> Fraction:
    """At least ``((1 + eta) / (1 - eta))^cells``, ``eta = 2 sum over k >= 1 of exp(-2 pi^2 s^2 k^2)``: the factor of
    :func:`discrete_mu_squared`.

    After at most ``cells`` noisy values the probability of any transcript differs by at most this factor, either way, from its
    probability in the interaction that is mu-GDP. With ``s^2 = 4`` and ``10**12`` cells it is below ``1 + 10**-21``.
    """
    require_exact(smoothing_squared)
    if type(cells) is not int or not 0 <= cells <= 10**15 or smoothing_squared < 1:
        raise LapwingError("theory-argument", "cells must be at most 10^15, and the smoothing must be at least 1")
    first = exp_upper(-2 * PI_LOWER**2 * Fraction(smoothing_squared))
    eta = 2 * first / (1 - first)  # the k-th term is at most first^k
    # ((1 + eta) / (1 - eta))^n = (1 + x)^n <= exp(n x), without a power of a long fraction
    return exp_upper(cells * 2 * eta / (1 - eta))


def discrete_delta_upper(*, mu_squared: Fraction, epsilon: Fraction, closeness: Fraction) -> Fraction:
    """At least the delta at this epsilon of an interaction whose probabilities are within a factor c of one that is mu-GDP: ``c
    delta(epsilon - 2 ln c)``.

    ``P(S) <= c P'(S) <= c (exp(e) Q'(S) + d) <= c^2 exp(e) Q(S) + c d``, with ``e = epsilon - 2 ln c``.
    """
    require_exact(epsilon, closeness)
    reduced = epsilon - 2 * ln_upper(closeness) if closeness >= 1 else Fraction(-1)
    if reduced < 0:
        raise LapwingError("theory-argument", "the factor must be at least 1 and cost no more than epsilon")
    return min(Fraction(1), closeness * delta_upper(mu_squared=mu_squared, epsilon=reduced))


def discrete_least_mu_lower(sigma: Fraction) -> Fraction:
    """A lower bound on the mu of discrete Gaussian noise on a count (sensitivity 1): ``2 Q^-1((1 - p) / 2)``, p its probability of 0. Above
    ``1/sigma``.

    The test that accuses when the value is at least 1 has false alarms and misses both equal to ``(1 - p) / 2``.
    """
    require_exact(sigma)
    if sigma <= 0:
        raise LapwingError("theory-argument", "sigma must be positive")
    if sigma <= SUMMED_SCALE_MAX:
        total = gaussian_total(Fraction(sigma))[1]
    else:
        # sigma sqrt(2 pi) (1 + 2 sum exp(-2 pi^2 sigma^2 k^2)), the bracket at most 1 + 3 exp(-19 sigma^2)
        total = sigma * sqrt_upper(2 * PI_UPPER) * (1 + 3 * exp_upper(-19 * Fraction(sigma) ** 2))
    return 2 * _quantile((1 - 1 / total) / 2)[0]


def _quantile(probability: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds on ``Q^-1(probability)``, close to each other; refuses probabilities whose quantile is outside the search range."""
    require_exact(probability)
    low, high = Fraction(-_QUANTILE_MAX), Fraction(_QUANTILE_MAX)
    if not tail_upper(high) < probability < tail_lower(low):
        raise LapwingError("theory-argument", "a false-alarm rate must be between 10^-56 and 1 - 10^-56")
    while high - low > _QUANTILE_STEP:
        middle = (low + high) / 2
        if tail_upper(middle) < probability:
            high = middle
        elif tail_lower(middle) > probability:
            low = middle
        else:
            # the tail bounds cannot separate the middle from the quantile; stop with the certain bounds
            break
    return low, high


def _mu_squared(square: Fraction) -> Fraction:
    require_exact(square)
    if square < 0:
        raise LapwingError("theory-argument", "the square of mu must not be negative")
    return Fraction(square)


def _mu_bounds(square: Fraction, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    require_exact(epsilon)
    if epsilon < 0:
        raise LapwingError("theory-argument", "epsilon must not be negative")
    exact = _mu_squared(square)
    return sqrt_lower(exact), sqrt_upper(exact)
