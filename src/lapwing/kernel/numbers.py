"""Directed rational bounds: numbers that are never on the wrong side.

Every function here returns an exact ``Fraction`` (or a float) together with a promise about its side: ``..._upper`` is never below the
real value, ``..._lower`` never above it. Nothing in the kernel rounds in any other way, so a chain of bounds is itself a bound.

``exp`` and ``ln`` come from :mod:`decimal`, whose results are correctly rounded; we bound the argument in the wanted direction, take the
function at ``PRECISION_DIGITS`` digits and step one unit in the last place outwards. Relative error: about ``10**-118`` (``exp`` loses the
digits that its argument has before the point). Square roots use integer square roots and trust no library.

Proof: ``docs/proofs/directed-rounding.md``.
"""

from __future__ import annotations

import math
import sys
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from fractions import Fraction

from lapwing.errors import LapwingError

PRECISION_DIGITS = 120
"""Decimal digits carried by ``exp`` and ``ln``."""

EXP_ARGUMENT_MAX = 2**16
"""Beyond this the result of ``exp`` would fill memory: bounds saturate on their safe side, or refuse when there is none."""

SQRT_BITS = 400
"""Significant bits of a square root."""


def require_exact(*amounts: object) -> None:
    """Stop a float before it can decide anything (code ``number-invalid``)."""
    for amount in amounts:
        if not isinstance(amount, (int, Fraction)) or isinstance(amount, bool):
            raise LapwingError("number-invalid", "privacy amounts are integers or fractions, never floats")


def _context(rounding: str, digits: int = PRECISION_DIGITS) -> Context:
    # A fresh context per call: contexts are mutable, and the thread's default one belongs to the importing program.
    return Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[DivisionByZero, InvalidOperation, Overflow])


def _quotient(x: Fraction, context: Context) -> Decimal:
    """``x`` as a decimal, rounded in the direction of the context."""
    return context.divide(Decimal(x.numerator), Decimal(x.denominator))


def exp_upper(x: Fraction, *, digits: int = PRECISION_DIGITS) -> Fraction:
    """A rational at least ``e**x``; refuses (code ``number-too-large``) when ``x`` is above ``EXP_ARGUMENT_MAX``."""
    if x == 0:
        return Fraction(1)
    if x > EXP_ARGUMENT_MAX:
        raise LapwingError("number-too-large", "an exponential has no upper bound of manageable size")
    # For very negative x the bound stays at e**-EXP_ARGUMENT_MAX: larger than needed, never smaller. More digits reach further.
    context = _context(ROUND_CEILING, digits)
    return Fraction(context.next_plus(context.exp(_quotient(max(x, Fraction(-max(EXP_ARGUMENT_MAX, digits))), context))))


def exp_lower(x: Fraction, *, digits: int = PRECISION_DIGITS) -> Fraction:
    """A rational at most ``e**x`` and at least 0."""
    if x == 0:
        return Fraction(1)
    if x < -max(EXP_ARGUMENT_MAX, digits):
        return Fraction(0)
    context = _context(ROUND_FLOOR, digits)
    return Fraction(context.next_minus(context.exp(_quotient(min(x, Fraction(EXP_ARGUMENT_MAX)), context))))


def _ln(x: Fraction, *, rounding: str) -> Fraction:
    if x <= 0:
        raise LapwingError("number-invalid", "the logarithm of a number that is not positive")
    context = _context(rounding)
    quotient = _quotient(x, context)
    if quotient == 1:
        # ln 1 = 0 exactly. When x itself is not 1 the quotient was rounded to 1 in our direction, so 0 is on the right side. (Stepping
        # outwards from 0 would give a number with 10**18 digits.)
        return Fraction(0)
    nearest = context.ln(quotient)
    return Fraction(context.next_plus(nearest) if rounding == ROUND_CEILING else context.next_minus(nearest))


def ln_upper(x: Fraction) -> Fraction:
    """A rational at least ``ln x``, for ``x > 0``."""
    return _ln(x, rounding=ROUND_CEILING)


def ln_lower(x: Fraction) -> Fraction:
    """A rational at most ``ln x``, for ``x > 0``."""
    return _ln(x, rounding=ROUND_FLOOR)


def _sqrt_floor(x: Fraction) -> tuple[Fraction, Fraction]:
    """``(root, step)`` with ``root <= sqrt(x) < root + step``; ``step`` is 0 when the root is exact."""
    if x < 0:
        raise LapwingError("number-invalid", "the square root of a negative number")
    # shift so that the integer under the root has at least 2 * SQRT_BITS bits
    shift = max(0, SQRT_BITS - (x.numerator.bit_length() - x.denominator.bit_length()) // 2 + 1)
    scaled, remainder = divmod(x.numerator << (2 * shift), x.denominator)
    root = math.isqrt(scaled)
    exact = remainder == 0 and root * root == scaled
    return Fraction(root, 1 << shift), Fraction(0) if exact else Fraction(1, 1 << shift)


def sqrt_upper(x: Fraction) -> Fraction:
    """A rational at least ``sqrt(x)``, for ``x >= 0``; exact when the root is a dyadic rational of at most ``SQRT_BITS`` bits."""
    root, step = _sqrt_floor(x)
    return root + step


def sqrt_lower(x: Fraction) -> Fraction:
    """A rational at most ``sqrt(x)``, for ``x >= 0``; exact when the root is a dyadic rational of at most ``SQRT_BITS`` bits."""
    return _sqrt_floor(x)[0]


def float_at_least(x: Fraction) -> float:
    """The least float that is at least ``x``; positive infinity above the largest float."""
    if x > Fraction(sys.float_info.max):
        return math.inf
    nearest = float(max(x, Fraction(-sys.float_info.max)))
    return nearest if Fraction(nearest) >= x else math.nextafter(nearest, math.inf)


def ceil_div(numerator: int, denominator: int) -> int:
    """``numerator / denominator`` rounded up, for a positive denominator."""
    if denominator <= 0:
        raise LapwingError("number-invalid", "division by a number that is not positive")
    return -(-numerator // denominator)
