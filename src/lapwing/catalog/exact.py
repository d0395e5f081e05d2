"""Numbers of the catalogue, read and shown exactly.

A privacy parameter never passes through a float: ``0.1`` in the file is the fraction 1/10, not the nearest double.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

_POWER = re.compile(r"([0-9]{1,4})\^([+-]?[0-9]{1,4})")
_DECIMAL = re.compile(r"[+-]?[0-9]{1,60}(?:\.[0-9]{1,60})?(?:[eE][+-]?[0-9]{1,3})?")
_MAGNITUDE_MAX = 400
"""Decimal exponents beyond this are refused: 10^400 has no use here, and 10^(10^9) would fill the memory."""
_DIGITS_MAX = 60


def read_exact(raw: object) -> Fraction | None:
    """The exact value of a TOML number (integer, or float kept as ``Decimal``) or of a string such as ``"2^-40"`` or ``"1e-9"``.

    ``None`` when it is not a finite number of a sensible size.
    """
    match raw:
        case bool():
            return None
        case int():
            return Fraction(raw) if abs(raw) < 10**_DIGITS_MAX else None
        case Decimal():
            return _from_decimal(raw)
        case str():
            text = raw.strip()
            if power := _POWER.fullmatch(text):
                return _from_power(base=int(power[1]), exponent=int(power[2]))
            return _from_decimal(Decimal(text)) if _DECIMAL.fullmatch(text) else None
        case _:
            return None


def _from_decimal(number: Decimal) -> Fraction | None:
    if not number.is_finite():
        return None
    if number and (abs(number.adjusted()) > _MAGNITUDE_MAX or len(number.as_tuple().digits) > 2 * _DIGITS_MAX):
        return None
    return Fraction(number)


def _from_power(*, base: int, exponent: int) -> Fraction | None:
    if base < 2 or abs(exponent) > _MAGNITUDE_MAX:
        return None
    return Fraction(base) ** exponent


def show(number: Fraction | int) -> str:
    """A number as an owner would write it: a whole number, a short decimal, a power of two, or else a fraction."""
    number = Fraction(number)
    if number.denominator == 1:
        return str(number.numerator) if abs(number) < 100_000 else f"{number.numerator:_}"
    power = number.denominator.bit_length() - 1
    if number.numerator == 1 and number.denominator == 1 << power and power > 10:
        return f"2^-{power}"
    digits = _decimal_places(number.denominator)
    if digits is None or digits > 40:
        return f"{number.numerator}/{number.denominator}"
    scaled = number.numerator * 10**digits // number.denominator
    sign, body = ("-", str(-scaled)) if scaled < 0 else ("", str(scaled))
    if digits > 6 and len(body) <= 3:
        return f"{sign}{body}e-{digits}"
    body = body.rjust(digits + 1, "0")
    return f"{sign}{body[:-digits]}.{body[-digits:]}"


def _decimal_places(denominator: int) -> int | None:
    """How many decimals write 1/denominator exactly, if finitely many do."""
    twos = fives = 0
    while denominator % 2 == 0:
        denominator //= 2
        twos += 1
    while denominator % 5 == 0:
        denominator //= 5
        fives += 1
    return max(twos, fives) if denominator == 1 else None
