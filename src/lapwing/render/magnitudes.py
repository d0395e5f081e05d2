"""How small the doubles of an expression can become without being 0.

Some engines raise where a product or a quotient of doubles underflows. A guard costs several times as much as the product, and almost no
product needs one: prices and counts are far from 2^-1074. These bounds, from the expression alone, show which ones do.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import assert_never

from lapwing.kernel.domains import IntegerDomain, RealDomain, double_bounds
from lapwing.kernel.expression_domains import Domains
from lapwing.kernel.expressions import Call, Case, Column, Expression, Function, Literal

LEAST_EXPONENT = -1074
"""The least positive double is 2 to this power."""
_GUARDED_BELOW = -1020
"""A product or quotient that may be smaller than 2 to this power is guarded; larger ones do not underflow."""
_EXP, _LOGARITHM, _SINE, _ROUNDED = -290, -60, -64, -31
"""exp(-200) > 2^-289; the logarithm of the double next to 1 is above 2^-57; no double is nearer to a multiple of pi/2 than 2^-61; 10^-9."""


def may_underflow(operation: Call, domains: Domains) -> bool:
    """Whether a product or a quotient of doubles could be smaller than the least positive double without being 0."""
    return _unlimited(operation, domains) < _GUARDED_BELOW


def least_exponent(expression: Expression, domains: Domains) -> int:
    """An e such that, as a double, every value of a numeric expression that is not 0 has a magnitude of at least 2^e."""
    return max(_unlimited(expression, domains), LEAST_EXPONENT)


def _unlimited(expression: Expression, domains: Domains) -> int:
    match domains.of(expression):
        case IntegerDomain():
            return 0
        case RealDomain(steps=int(steps)):
            return -steps.bit_length() - 1
        case _:
            pass
    match expression:
        case Literal(value):
            number = float(value) if isinstance(value, int | Fraction) else 0.0
            return math.frexp(number)[1] - 1 if number else 0
        case Column():
            return LEAST_EXPONENT
        case Case(branches, otherwise):
            return min(least_exponent(value, domains) for value in (otherwise, *(value for _, value in branches)))
        case Call(function, arguments):
            return _call(function, arguments, domains)
        case _:
            assert_never(expression)


def _call(function: Function, arguments: tuple[Expression, ...], domains: Domains) -> int:
    exponents = [least_exponent(argument, domains) for argument in arguments[: 1 if function is Function.ROUND else None]]
    match function:
        case Function.ADD | Function.SUBTRACT:
            # both are multiples of the last bit of the smaller one
            return min(exponents) - 53
        case Function.MULTIPLY:
            return exponents[0] + exponents[1] - 1
        case Function.DIVIDE:
            largest = max(abs(end) for end in double_bounds(domains.of(arguments[1])))
            return exponents[0] - _exponent_above(largest) - 1
        case Function.NEGATE | Function.ABS | Function.TO_REAL | Function.NULL_IF:
            return exponents[0]
        case Function.LEAST | Function.GREATEST | Function.COALESCE:
            return min(exponents)
        case Function.SQRT:
            return exponents[0] // 2 - 1
        case Function.EXP:
            return _EXP
        case Function.LN | Function.LOG_2 | Function.LOG_10:
            return _LOGARITHM
        case Function.SIN:
            return min(exponents[0] - 1, _SINE)
        case Function.COS:
            return _SINE
        case Function.ROUND:
            return _ROUNDED
        case _:
            return LEAST_EXPONENT


def _exponent_above(number: Fraction) -> int:
    """An e with number <= 2^e."""
    return max(int(number).bit_length(), 0)
