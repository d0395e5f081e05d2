"""The noise laws from their definitions, at 200 digits: what the laws of the kernel are compared with."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath

from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law

REFERENCE_DIGITS = 200


def mp(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


def exact(x: mpmath.mpf) -> Fraction:
    sign, mantissa, exponent, _ = x._mpf_
    return Fraction(-int(mantissa) if sign else int(mantissa)) * Fraction(2) ** int(exponent)


def reference_weight(law: Law, z: int) -> mpmath.mpf:
    """Unnormalised probability at z, from the definition of the law."""
    match law:
        case DiscreteLaplace():
            return mpmath.exp(-abs(z) / mp(law.scale))
        case DiscreteGaussian():
            return mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * mp(law.scale) ** 2))


def reference_reach(law: Law, digits: int = 150) -> int:
    """Beyond this, all weight together is below 10^-digits."""
    factor = digits * math.log(10) + 10
    scale = float(law.scale)
    return math.ceil(scale * (factor if isinstance(law, DiscreteLaplace) else math.sqrt(2 * factor))) + 2


def reference_tail(law: Law, t: int) -> Fraction:
    """P[Z >= t] by plain summation at 200 digits: for small scales only."""
    with mpmath.workdps(REFERENCE_DIGITS):
        reach = reference_reach(law) + abs(t)
        weights = [reference_weight(law, z) for z in range(reach + 1)]
        return exact(mpmath.fsum(weights[abs(z)] for z in range(t, reach + 1)) / (2 * mpmath.fsum(weights) - weights[0]))


def laplace_reference_tail(scale: Fraction, t: int) -> Fraction:
    with mpmath.workdps(REFERENCE_DIGITS):
        alpha = mpmath.exp(-1 / mp(scale))
        return exact(alpha**t / (1 + alpha) if t > 0 else 1 - alpha ** (1 - t) / (1 + alpha))


SMALL_SCALES = [Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(5, 2), Fraction(float.fromhex("0x1.d9999999999999p2"))]
