"""Numbers as SQL computes with them: integers, decimals and doubles, by the types of columns and constants.

A decimal is never rounded on the way: it is an integer number of steps, k / steps, and sums, products, comparisons and roundings of
decimals are those of integers, whose rules the kernel has. With a double as the other operand SQL converts it to a double, and so do we.
The quotient of a decimal by anything but a constant is a double too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

from sqlglot import exp

from lapwing.kernel.domains import IntegerDomain, Kind, NumberType, RealDomain, is_numeric, number_type, with_number
from lapwing.kernel.expressions import Call, Column, Expression, Function, Literal
from lapwing.kernel.grid_functions import STEPS_MAX
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.text.reader import Session

_ORDER = (NumberType.INTEGER, NumberType.BIGINT, NumberType.DECIMAL, NumberType.DOUBLE)
INTEGERS = frozenset({NumberType.INTEGER, NumberType.BIGINT})
_COMPARISONS = frozenset(
    {Function.EQUAL, Function.NOT_EQUAL, Function.LESS, Function.LESS_EQUAL, Function.GREATER, Function.GREATER_EQUAL, Function.IN}
)
_ALIKE = frozenset(
    {Function.LEAST, Function.GREATEST, Function.COALESCE, Function.NULL_IF, Function.ADD, Function.SUBTRACT, Function.MODULO}
)
"""Functions whose result has the steps of their arguments, if all of these have the same."""
_ROUNDINGS = frozenset({Function.FLOOR, Function.CEILING, Function.ROUND, Function.SIGN})
_OF_NUMBERS = _ALIKE | _ROUNDINGS | {Function.MULTIPLY, Function.INTEGER_DIVIDE, Function.NEGATE, Function.ABS}


class NumberComposer(Protocol):
    """Composes expressions, whatever the types of numbers."""

    @property
    def session(self) -> Session:
        """The statement being bound."""
        ...

    def plain_call(self, node: exp.Expr, called: Function, *arguments: Typed) -> Typed:
        """A function of the kernel's closed list."""
        ...

    def constant(self, node: exp.Expr, literal: Literal) -> Typed:
        """A constant."""
        ...

    def case(self, node: exp.Expr, branches: list[tuple[Typed, Typed]], otherwise: Typed | None) -> Typed:
        """The first branch whose condition is true."""
        ...


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """A number as a whole number of steps of 1 / ``steps``."""

    integer: Typed
    steps: int


def widest(numbers: Sequence[NumberType | None]) -> NumberType | None:
    """The type in which SQL computes with numbers of these types; None if one is not a number."""
    known = [number for number in numbers if number is not None]
    return max(known, key=_ORDER.index) if known and len(known) == len(numbers) else None


def literal_type(literal: Literal, written: str, dialect: str) -> NumberType | None:
    """The type of a number as it is written: with an exponent it is a double, but for PostgreSQL a decimal."""
    match literal.kind, literal.value:
        case Kind.INTEGER, int(number):
            return NumberType.INTEGER if abs(number) < 2**31 else NumberType.BIGINT
        case Kind.REAL, _:
            return NumberType.DOUBLE if "e" in written.lower() and dialect != "postgres" else NumberType.DECIMAL
        case _:
            return None


def typed_as(value: Typed, number: NumberType | None) -> Typed:
    """The same value, as a number of this type."""
    return replace(value, domain=with_number(value.domain, number))


def stepped(scalars: NumberComposer, value: Typed) -> FixedPoint | None:
    """An integer or a decimal in steps; None for a double."""
    match value.expression, value.domain:
        case _, IntegerDomain():
            return FixedPoint(value, 1)
        case Literal(int() | Fraction() as number), RealDomain():
            exact = Fraction(number)
            return FixedPoint(scalars.constant(value.node, Literal(exact.numerator, Kind.INTEGER)), exact.denominator)
        case Call(Function.OF_STEPS, (integer, Literal(int(steps)))), RealDomain(lo, hi, nullable):
            domain = IntegerDomain(int(lo * steps), int(hi * steps), nullable)
            return FixedPoint(replace(value, expression=integer, domain=domain, parts=value.parts - 2), steps)
        case _, RealDomain(steps=int(steps)):
            return FixedPoint(scalars.plain_call(value.node, Function.STEPS, value), steps)
        case _:
            return None


def of_steps(scalars: NumberComposer, node: exp.Expr, integer: Typed, steps: int) -> Typed:
    """The decimal integer / steps."""
    if steps == 1:
        return typed_as(replace(integer, node=node), NumberType.DECIMAL)
    if steps > STEPS_MAX:
        raise scalars.session.refuse("range-too-wide", "this has too many digits after the point", node=node, hint="CAST it to DOUBLE")
    return typed_as(scalars.plain_call(node, Function.OF_STEPS, integer, _constant(scalars, node, steps)), NumberType.DECIMAL)


def called(scalars: NumberComposer, node: exp.Expr, function: Function, arguments: Sequence[Typed]) -> Typed | None:
    """A function of numbers, by their types; None where types do not matter."""
    if function not in _OF_NUMBERS | _COMPARISONS | {Function.TO_INTEGER}:
        return None
    numbers = [number_type(argument.domain) for argument in arguments]
    number = widest(numbers[:1] if function is Function.ROUND else numbers)
    if number is NumberType.DECIMAL:
        exact = _exact(scalars, node, function, arguments)
        if exact is not None:
            return exact
        number = NumberType.DOUBLE
    if number is None or function not in _OF_NUMBERS:
        return None
    if number in INTEGERS:
        number = rounded_integer(function, number, scalars.session.dialect)
    elif function is Function.SIGN and scalars.session.dialect != "postgres":
        number = NumberType.INTEGER
    return typed_as(scalars.plain_call(node, function, *arguments), number)


def rounded_integer(function: Function, number: NumberType, dialect: str) -> NumberType:
    """The type of a function of an integer: PostgreSQL gives a double for every rounding, DuckDB only for FLOOR and CEIL."""
    is_double = function in (Function.FLOOR, Function.CEILING) or (function in _ROUNDINGS and dialect == "postgres")
    return NumberType.DOUBLE if is_double else number


def chosen(scalars: NumberComposer, node: exp.Expr, values: Sequence[Typed]) -> tuple[list[Typed], int | None, NumberType | None]:
    """Alternative values of a row, perhaps NULL, as integers with common steps; the number of steps; and the type."""
    number = widest([number_type(value.domain) for value in values if not value.is_null])
    if number is NumberType.DECIMAL:
        found = [stepped(scalars, value) for value in values if not value.is_null]
        known = [item for item in found if item is not None]
        if len(known) == len(found):
            steps = math.lcm(*(item.steps for item in known))
            counted = iter([_in_steps(scalars, node, item, steps) for item in known])
            null = scalars.constant(node, Literal(None, Kind.INTEGER))
            return [null if value.is_null else next(counted) for value in values], steps, number
        number = NumberType.DOUBLE
    return list(values), None, number


def divided(scalars: NumberComposer, node: exp.Expr, left: Typed, right: Typed) -> Typed | None:
    """An integer or a decimal divided by a constant that is not 0, exactly; None for anything else."""
    constant = right.expression
    if not isinstance(constant, Literal) or not isinstance(constant.value, int | Fraction) or not constant.value:
        return None
    if widest([number_type(left.domain), number_type(right.domain)]) in (None, NumberType.DOUBLE):
        return None
    dividend = stepped(scalars, left)
    if dividend is None:
        return None
    factor = 1 / Fraction(constant.value)
    steps = dividend.steps * factor.denominator
    if steps > STEPS_MAX:
        return None
    integer = scalars.plain_call(node, Function.MULTIPLY, dividend.integer, _constant(scalars, node, factor.numerator))
    return of_steps(scalars, node, integer, steps)


def rounded(scalars: NumberComposer, node: exp.Expr, value: Typed, digits: int) -> Typed | None:
    """A decimal rounded to this many digits after the point, or zeros before it, halves away from 0; None for anything else."""
    found = stepped(scalars, value) if number_type(value.domain) is NumberType.DECIMAL else None
    if found is None:
        return None
    places, zeros = 10 ** max(digits, 0), 10 ** max(-digits, 0)
    # k / steps = (k * places) / (steps * places); a multiple of zeros / places is a whole number of this many
    if digits >= 0 and places % found.steps == 0:
        return value
    integer = scalars.plain_call(node, Function.MULTIPLY, found.integer, _constant(scalars, node, places))
    whole = _nearest(scalars, node, integer, found.steps * zeros)
    return of_steps(scalars, node, scalars.plain_call(node, Function.MULTIPLY, whole, _constant(scalars, node, zeros)), places)


def _exact(scalars: NumberComposer, node: exp.Expr, function: Function, arguments: Sequence[Typed]) -> Typed | None:
    """A function of decimals, and perhaps integers; None if an argument is a double, or for functions without exact results."""
    if function is Function.ROUND:
        digits = arguments[1].expression
        return rounded(scalars, node, arguments[0], digits.value) if isinstance(digits, Literal) and isinstance(digits.value, int) else None
    if _is_of_one_grid(function, arguments):
        return None  # the kernel compares stored values with such constants exactly
    found = [stepped(scalars, argument) for argument in arguments]
    known = [item for item in found if item is not None]
    if len(known) < len(found):
        return None
    first = known[0]
    match function:
        case Function.NEGATE | Function.ABS:
            return of_steps(scalars, node, scalars.plain_call(node, function, first.integer), first.steps)
        case Function.SIGN:
            sign = scalars.plain_call(node, function, first.integer)
            return typed_as(sign, NumberType.DECIMAL if scalars.session.dialect == "postgres" else NumberType.INTEGER)
        case Function.FLOOR:
            return typed_as(_floor(scalars, node, first.integer, first.steps), NumberType.DECIMAL)
        case Function.CEILING:
            last = _constant(scalars, node, first.steps - 1)
            above = first.integer if first.steps == 1 else scalars.plain_call(node, Function.ADD, first.integer, last)
            return typed_as(_floor(scalars, node, above, first.steps), NumberType.DECIMAL)
        case Function.TO_INTEGER:
            return typed_as(_nearest(scalars, node, first.integer, first.steps), NumberType.INTEGER)
        case Function.MULTIPLY:
            product = scalars.plain_call(node, function, first.integer, known[1].integer)
            return of_steps(scalars, node, product, first.steps * known[1].steps)
        case _ if function in _ALIKE | _COMPARISONS:
            steps = math.lcm(*(item.steps for item in known))
            integers = [_in_steps(scalars, node, item, steps) for item in known]
            result = scalars.plain_call(node, function, *integers)
            return of_steps(scalars, node, result, steps) if function in _ALIKE else result
        case _:
            return None


def _is_of_one_grid(function: Function, arguments: Sequence[Typed]) -> bool:
    """Whether a stored column is compared with constants of its own grid, or ordered against any: the kernel does that exactly."""
    columns = [argument for argument in arguments if isinstance(argument.expression, Column)]
    constants = [argument.expression.value for argument in arguments if isinstance(argument.expression, Literal)]
    if function not in _COMPARISONS or len(columns) != 1 or len(columns) + len(constants) != len(arguments):
        return False
    domain = columns[0].domain
    if not isinstance(domain, RealDomain) or domain.steps is None:
        return False
    if function not in (Function.EQUAL, Function.NOT_EQUAL, Function.IN):
        return True
    return all(isinstance(value, int | Fraction) and (Fraction(value) * domain.steps).denominator == 1 for value in constants)


def _in_steps(scalars: NumberComposer, node: exp.Expr, item: FixedPoint, steps: int) -> Typed:
    """The number in finer steps. Pre: ``steps`` is a multiple of its own."""
    factor = steps // item.steps
    if factor == 1:
        return item.integer
    constant: Expression = item.integer.expression
    if isinstance(constant, Literal) and isinstance(constant.value, int):
        return _constant(scalars, node, constant.value * factor)
    return scalars.plain_call(node, Function.MULTIPLY, item.integer, _constant(scalars, node, factor))


def _floor(scalars: NumberComposer, node: exp.Expr, integer: Typed, divisor: int) -> Typed:
    """floor(k / divisor): integer division rounds towards 0, so k is first made non-negative by adding a multiple of the divisor."""
    if divisor == 1:
        return integer
    assert isinstance(integer.domain, IntegerDomain)
    moved = max(-(integer.domain.lo // divisor), 0)
    if moved:
        integer = scalars.plain_call(node, Function.ADD, integer, _constant(scalars, node, moved * divisor))
    whole = scalars.plain_call(node, Function.INTEGER_DIVIDE, integer, _constant(scalars, node, divisor))
    return scalars.plain_call(node, Function.SUBTRACT, whole, _constant(scalars, node, moved)) if moved else whole


def _nearest(scalars: NumberComposer, node: exp.Expr, integer: Typed, divisor: int) -> Typed:
    """k / divisor to the nearest whole number, halves away from 0: (2k + divisor) / 2 divisor towards 0, mirrored below 0."""
    if divisor == 1:
        return integer
    assert isinstance(integer.domain, IntegerDomain)
    twice = scalars.plain_call(node, Function.MULTIPLY, integer, _constant(scalars, node, 2))
    above = scalars.plain_call(node, Function.ADD, twice, _constant(scalars, node, divisor))
    below = scalars.plain_call(node, Function.SUBTRACT, twice, _constant(scalars, node, divisor))
    if integer.domain.lo >= 0:
        further = above
    elif integer.domain.hi < 0:
        further = below
    else:
        is_negative = scalars.plain_call(node, Function.LESS, integer, _constant(scalars, node, 0))
        further = scalars.case(node, [(is_negative, below)], above)
    return scalars.plain_call(node, Function.INTEGER_DIVIDE, further, _constant(scalars, node, 2 * divisor))


def _constant(scalars: NumberComposer, node: exp.Expr, value: int) -> Typed:
    return scalars.constant(node, Literal(value, Kind.INTEGER))


def sum_type(number: NumberType | None, dialect: str) -> NumberType | None:
    """The type of a sum. That of 64-bit integers is a decimal for PostgreSQL; for DuckDB it is an integer of any size."""
    if number is NumberType.BIGINT and dialect == "postgres":
        return NumberType.DECIMAL
    return NumberType.BIGINT if number in INTEGERS else number


def average_type(number: NumberType | None, dialect: str) -> NumberType:
    """The type of an average: a double, but for PostgreSQL only that of doubles."""
    return NumberType.DOUBLE if number is NumberType.DOUBLE or dialect != "postgres" else NumberType.DECIMAL


def is_exact(value: Typed) -> bool:
    """Whether a number is an integer or a decimal."""
    return is_numeric(value.domain) and number_type(value.domain) is not NumberType.DOUBLE
