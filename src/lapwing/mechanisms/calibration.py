"""How much Gaussian noise an (epsilon, delta) needs, for one integer value.

The exact delta of the discrete Gaussian at an epsilon (:func:`gaussian_delta`) decides; the least sigma (:func:`gaussian_sigma`) and the
textbook's (:func:`gaussian_sigma_classic`) are both checked against it. All of this is for a single value: for vectors use rho, which is
proven for them (:class:`lapwing.mechanisms.additive.GaussianMechanism`).

Proof: ``docs/proofs/gaussian-calibration.md``.
"""

from __future__ import annotations

import math
from fractions import Fraction

from lapwing.errors import LapwingError, Refused
from lapwing.kernel.laws import SCALE_MAX, SCALE_MIN, DiscreteGaussian
from lapwing.kernel.numbers import exp_lower, exp_upper, ln_upper, require_exact, sqrt_lower
from lapwing.kernel.tails import (
    PI_LOWER,
    SUMMED_SCALE_MAX,
    gaussian_tail_upper,
    normal_tail_lower,
    normal_tail_upper,
    positive_tail_lower,
)
from lapwing.prices import scale_root_at_least

RELATIVE_WIDTH = Fraction(1, 2**30)
"""The relative precision of the least sigma."""


def gaussian_tail_lower(sigma: Fraction, t: int) -> Fraction:
    """At most ``P[Z >= t]`` for the discrete Gaussian law of parameter sigma, and at least 0."""
    return positive_tail_lower(sigma, t) if t >= 1 else max(Fraction(0), 1 - gaussian_tail_upper(sigma, 1 - t))


def gaussian_delta(law: DiscreteGaussian, *, sensitivity: int, epsilon: Fraction) -> Fraction:
    """An upper bound of the least delta for which one integer value with this noise is (epsilon, delta)-differentially private.

    Pre: between neighbours the value moves by at most ``sensitivity``; ``epsilon >= 0``. Up to rounding it is the exact
    ``P[Z > c - D] - exp(epsilon) P[Z > c]`` with ``c = epsilon sigma^2 / D + D / 2`` (Canonne, Kamath and Steinke 2020, theorem 7): to 40
    digits while sigma is at most ``SUMMED_SCALE_MAX``; above it, too large by a few hundredths (by more below ``10**-57``).
    """
    _require_point(sensitivity=sensitivity, epsilon=epsilon)
    if sensitivity == 0:
        return Fraction(0)
    sigma = law.scale
    crossing = epsilon * sigma**2 / sensitivity + Fraction(sensitivity, 2)
    if sigma <= SUMMED_SCALE_MAX:
        first = math.floor(crossing) + 1  # the least output that is more than exp(epsilon) times as likely under the neighbour
        delta = gaussian_tail_upper(sigma, first - sensitivity) - exp_lower(epsilon) * gaussian_tail_lower(sigma, first)
    else:
        # A sum over integers of a function that rises and then falls is at most its integral and its maximum.
        integral = _normal_tail_upper((crossing - sensitivity) / sigma) - exp_lower(epsilon) * normal_tail_lower(crossing / sigma)
        nearest = max(crossing - sensitivity, Fraction(0))
        maximum = exp_upper(-(nearest**2) / (2 * sigma**2)) * min(Fraction(1), sensitivity / crossing)
        delta = integral + maximum / (sigma * sqrt_lower(2 * PI_LOWER))
    return min(Fraction(1), max(Fraction(0), delta))


def certify_gaussian(law: DiscreteGaussian, *, sensitivity: int, epsilon: Fraction, delta: Fraction) -> None:
    """Raise ``calibration-uncertified`` unless we can show that one value with this noise is (epsilon, delta)-private."""
    if gaussian_delta(law, sensitivity=sensitivity, epsilon=epsilon) > delta:
        raise Refused("calibration-uncertified", "this Gaussian noise cannot be shown to satisfy the requested epsilon and delta")


def gaussian_sigma(*, epsilon: Fraction, delta: Fraction, sensitivity: int) -> DiscreteGaussian:
    """The Gaussian noise with the least sigma, to nine digits, at which :func:`gaussian_delta` is at most ``delta``.

    Balle and Wang (2018) call it the analytic calibration. Privacy depends only on :func:`gaussian_delta` at the result.
    """
    _require_target(epsilon=epsilon, delta=delta, sensitivity=sensitivity)

    def enough(sigma: Fraction) -> bool:
        return gaussian_delta(DiscreteGaussian(sigma), sensitivity=sensitivity, epsilon=epsilon) <= delta

    # A bracket of powers of two, then bisection between floats of few digits.
    high = max(SCALE_MIN, min(SCALE_MAX, Fraction(2) ** math.ceil(math.log2(sensitivity))))
    while not enough(high):
        high *= 2
        if high > SCALE_MAX:
            raise Refused("scale-invalid", "the privacy loss is too small for this sensitivity: it needs noise above the largest scale")
    while high > SCALE_MIN and enough(high / 2):
        high /= 2
    low, high = high / 2, high
    step = high * RELATIVE_WIDTH
    while high - low > step and high > SCALE_MIN:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return DiscreteGaussian(high)


def gaussian_sigma_classic(*, epsilon: Fraction, delta: Fraction, sensitivity: int) -> DiscreteGaussian:
    """The textbook ``sigma^2 = 2 ln(1.25 / delta) sensitivity^2 / epsilon^2`` (Dwork and Roth 2014, theorem A.1), rounded up.

    The theorem is about the normal law and ``epsilon < 1``; a larger epsilon is refused with ``calibration-invalid``. The exact delta is
    used to check that the discrete law satisfies it, too. Never less noise than :func:`gaussian_sigma` finds.
    """
    _require_target(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    if epsilon >= 1:
        raise Refused("calibration-invalid", "the textbook calibration holds only below epsilon = 1", hint="use gaussian_sigma")
    square = 2 * ln_upper(Fraction(5, 4) / delta) * sensitivity**2 / Fraction(epsilon) ** 2
    law = DiscreteGaussian(scale_root_at_least(square))
    certify_gaussian(law, sensitivity=sensitivity, epsilon=epsilon, delta=delta)
    return law


def _normal_tail_upper(x: Fraction) -> Fraction:
    return normal_tail_upper(x) if x >= 0 else 1 - normal_tail_lower(-x)


def _require_point(*, sensitivity: int, epsilon: Fraction) -> None:
    if type(sensitivity) is not int or sensitivity < 0:
        raise LapwingError("sensitivity-invalid", "a sensitivity must be a non-negative integer")
    require_exact(epsilon)
    if epsilon < 0:
        raise Refused("calibration-invalid", "epsilon must not be negative")


def _require_target(*, epsilon: Fraction, delta: Fraction, sensitivity: int) -> None:
    _require_point(sensitivity=sensitivity, epsilon=epsilon)
    require_exact(delta)
    if epsilon == 0 or sensitivity == 0 or not 0 < delta < 1:
        raise Refused("calibration-invalid", "calibration needs a positive epsilon and sensitivity, and a delta above 0 and below 1")
