"""One domain rule per scalar function: which argument kinds it takes and what interval its result lies in.

Guarantee of every rule: if each argument lies in its domain, the exact result lies in the returned domain, and integer results stay
below ``INTEGER_LIMIT`` (else the expression is refused). Doubles may leave the interval by rounding: a sum clamps again as an integer.
A result outside a function's mathematical domain (x/0, ln of 0) is NULL. Proof: docs/proofs/intervals.md.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

from lapwing.errors import Refused
from lapwing.kernel import calendar
from lapwing.kernel.domains import (
    DOUBLE_EXACT_LIMIT,
    INTEGER_LIMIT,
    BooleanDomain,
    DateDomain,
    Domain,
    IntegerDomain,
    Kind,
    RealDomain,
    TextDomain,
    TimestampDomain,
    bounds,
    grid_integer,
    is_numeric,
    kind_of,
    union,
    with_null,
)
from lapwing.kernel.expressions import Expression, Function, Literal
from lapwing.kernel.numbers import exp_upper, ln_lower, ln_upper, sqrt_upper

REAL_LIMIT = Fraction(2**300)
"""Reals above this are refused, so that no double can overflow."""
SMALLEST_DIVISOR = Fraction(1, 2**30)
"""A computed divisor smaller than this counts as zero: the quotient is NULL."""
EXP_LIMIT = 200
"""exp takes arguments in [-EXP_LIMIT, EXP_LIMIT]; smaller ones count as -EXP_LIMIT, larger ones are refused by their interval."""
LN_SMALLEST = -745
"""ln of the smallest positive double, rounded down."""

Rule: TypeAlias = Callable[[tuple[Domain, ...], tuple[Expression, ...]], Domain]


def result_domain(function: Function, domains: tuple[Domain, ...], arguments: tuple[Expression, ...]) -> Domain:
    """Domain of ``function`` applied to arguments with these domains, or refuse."""
    return RULES[function](domains, arguments)


def _wrong(function: str, domains: tuple[Domain, ...]) -> Refused:
    given = ", ".join(kind_of(domain).value for domain in domains)
    return Refused("type-mismatch", f"{function} cannot take ({given})")


def _number(lo: Fraction, hi: Fraction, *, integer: bool, nullable: bool) -> Domain:
    if integer:
        if max(abs(lo), abs(hi)) >= INTEGER_LIMIT:
            raise Refused("range-too-wide", "an integer expression could exceed 62 bits", hint="narrow it with LEAST and GREATEST")
        return IntegerDomain(int(lo), int(hi), nullable)
    if max(abs(lo), abs(hi)) > REAL_LIMIT:
        raise Refused("range-too-wide", "a real expression could become too large", hint="narrow it with LEAST and GREATEST")
    return RealDomain(lo, hi, nullable)


def _any_null(domains: tuple[Domain, ...]) -> bool:
    return any(domain.nullable for domain in domains)


def _all_integer(domains: tuple[Domain, ...]) -> bool:
    return all(isinstance(domain, IntegerDomain) for domain in domains)


def _count(function: Function, domains: tuple[Domain, ...], count: int) -> None:
    if len(domains) != count:
        raise Refused("wrong-arguments", f"{function.value} takes {count} argument(s), not {len(domains)}")


def _logical(function: Function, least: int) -> Rule:
    def rule(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
        if len(domains) < least or (function is Function.NOT and len(domains) != 1):
            raise Refused("wrong-arguments", f"{function.value} takes at least {least} condition(s)")
        if not all(isinstance(domain, BooleanDomain) for domain in domains):
            raise _wrong(function.value, domains)
        return BooleanDomain(_any_null(domains))

    return rule


def _comparable(left: Domain, right: Domain) -> bool:
    if is_numeric(left) and is_numeric(right):
        return True
    return kind_of(left) is kind_of(right) and kind_of(left) is not Kind.KEY


def _comparison(function: Function) -> Rule:
    def rule(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
        _count(function, domains, 2)
        if not _comparable(*domains):
            raise _wrong(function.value, domains)
        return BooleanDomain(_any_null(domains))

    return rule


def _in(domains: tuple[Domain, ...], arguments: tuple[Expression, ...]) -> Domain:
    if len(domains) < 2 or not all(isinstance(option, Literal) and option.value is not None for option in arguments[1:]):
        raise Refused("wrong-arguments", "IN takes a value and a list of constants")
    if not all(_comparable(domains[0], option) for option in domains[1:]):
        raise _wrong("in", domains)
    return BooleanDomain(domains[0].nullable)


def _is_null(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
    _count(Function.IS_NULL, domains, 1)
    return BooleanDomain(nullable=False)


def _starts_with(domains: tuple[Domain, ...], arguments: tuple[Expression, ...]) -> Domain:
    _count(Function.STARTS_WITH, domains, 2)
    if not all(isinstance(domain, TextDomain) for domain in domains) or not isinstance(arguments[1], Literal):
        raise _wrong("starts_with", domains)
    return BooleanDomain(domains[0].nullable)


def _arithmetic(function: Function) -> Rule:
    def rule(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
        _count(function, domains, 2)
        (a, b), (c, d) = bounds(domains[0]), bounds(domains[1])
        match function:
            case Function.ADD:
                lo, hi = a + c, b + d
            case Function.SUBTRACT:
                lo, hi = a - d, b - c
            case _:
                corners = (a * c, a * d, b * c, b * d)
                lo, hi = min(corners), max(corners)
        return _number(lo, hi, integer=_all_integer(domains), nullable=_any_null(domains))

    return rule


def smallest_divisor(domain: Domain) -> Fraction:
    """Least magnitude a divisor may have; anything smaller counts as zero."""
    match domain:
        case IntegerDomain():
            return Fraction(1)
        case RealDomain(steps=int(steps)):
            return Fraction(1, steps)
        case _:
            return SMALLEST_DIVISOR


def _divide(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
    _count(Function.DIVIDE, domains, 2)
    (a, b), (c, d) = bounds(domains[0]), bounds(domains[1])
    least = smallest_divisor(domains[1])
    divisors = [y for y in (c, d, least, -least) if c <= y <= d and abs(y) >= least]
    corners = [x / y for x in (a, b) for y in divisors] or [Fraction(0)]
    # With both signs of divisor possible the extremes are at +-least; with a of one sign and c >= 0 the corners already bound it.
    nullable = _any_null(domains) or (c < least and d > -least)
    return _number(min(corners), max(corners), integer=False, nullable=nullable)


def _integer_divide(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
    _count(Function.INTEGER_DIVIDE, domains, 2)
    if not _all_integer(domains):
        raise _wrong("integer division", domains)
    (a, b), (c, d) = bounds(domains[0]), bounds(domains[1])
    largest = max(abs(a), abs(b))
    lo = Fraction(0) if a >= 0 and c >= 0 else -largest
    if c > 0:
        largest = Fraction(int(largest) // int(c))
        lo = max(lo, -largest)
    return _number(lo, largest, integer=True, nullable=_any_null(domains) or c <= 0 <= d)


def _modulo(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
    _count(Function.MODULO, domains, 2)
    if not _all_integer(domains):
        raise _wrong("mod", domains)
    (a, b), (c, d) = bounds(domains[0]), bounds(domains[1])
    largest = max(max(abs(c), abs(d)) - 1, Fraction(0))
    lo = Fraction(0) if a >= 0 else -min(largest, abs(a))
    hi = Fraction(0) if b <= 0 else min(largest, b)
    return _number(lo, hi, integer=True, nullable=_any_null(domains) or c <= 0 <= d)


def _unary(function: Function) -> Rule:
    def rule(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
        _count(function, domains, 1)
        a, b = bounds(domains[0])
        nullable, integer = domains[0].nullable, _all_integer(domains)
        match function:
            case Function.NEGATE:
                lo, hi = -b, -a
            case Function.ABS:
                lo, hi = (Fraction(0) if a <= 0 <= b else min(abs(a), abs(b))), max(abs(a), abs(b))
            case Function.SIGN:
                lo, hi, integer = Fraction(-1 if a < 0 else 0), Fraction(1 if b > 0 else 0), True
            case Function.FLOOR:
                lo, hi, integer = Fraction(a // 1), Fraction(b // 1), True
            case Function.CEILING:
                lo, hi, integer = Fraction(-(-a // 1)), Fraction(-(-b // 1)), True
            case Function.TO_INTEGER:
                lo, hi, integer = Fraction(a // 1), Fraction(-(-b // 1)), True
            case Function.SQRT:
                lo, hi, integer, nullable = Fraction(0), sqrt_upper(max(b, Fraction(0))), False, nullable or a < 0
            case Function.LN:
                lo = Fraction(LN_SMALLEST) if a <= 0 else ln_lower(a)
                hi = Fraction(LN_SMALLEST) if b <= 0 else max(ln_upper(b), lo)
                integer, nullable = False, nullable or a <= 0
            case Function.EXP:
                if b > EXP_LIMIT:
                    raise Refused("range-too-wide", f"EXP is only taken of values up to {EXP_LIMIT}", hint="narrow it with LEAST")
                lo, hi, integer = Fraction(0), exp_upper(max(b, Fraction(-EXP_LIMIT))), False
            case _:
                lo, hi, integer = a, b, False
        return _number(lo, hi, integer=integer, nullable=nullable)

    return rule


def _round(domains: tuple[Domain, ...], arguments: tuple[Expression, ...]) -> Domain:
    _count(Function.ROUND, domains, 2)
    digits = arguments[1]
    if not isinstance(digits, Literal) or not isinstance(digits.value, int) or not 0 <= digits.value <= 9:
        raise Refused("wrong-arguments", "ROUND takes a number of digits from 0 to 9")
    a, b = bounds(domains[0])
    step = Fraction(1, 10**digits.value)
    return _number(a // step * step, -(-b // step) * step, integer=_all_integer(domains[:1]), nullable=domains[0].nullable)


def _extreme(function: Function) -> Rule:
    def rule(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
        if len(domains) < 2:
            raise Refused("wrong-arguments", f"{function.value} takes at least 2 arguments")
        if not all(is_numeric(domain) for domain in domains):
            raise _wrong(function.value, domains)
        ends = [bounds(domain) for domain in domains]
        always = [bounds(domain) for domain in domains if not domain.nullable]
        lo, hi = min(lo for lo, _ in ends), max(hi for _, hi in ends)
        if always and function is Function.LEAST:
            hi = min(end for _, end in always)
        if always and function is Function.GREATEST:
            lo = max(end for end, _ in always)
        return _number(lo, hi, integer=_all_integer(domains), nullable=not always)

    return rule


def _null_if(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
    _count(Function.NULL_IF, domains, 2)
    if not _comparable(*domains):
        raise _wrong("nullif", domains)
    return with_null(domains[0], nullable=True)


def _coalesce(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
    if not domains:
        raise Refused("wrong-arguments", "coalesce takes at least 1 argument")
    result = domains[0]
    for domain in domains[1:]:
        result = union(result, domain)
    return with_null(result, nullable=all(domain.nullable for domain in domains))


def _to_grid(domains: tuple[Domain, ...], arguments: tuple[Expression, ...]) -> Domain:
    _count(Function.TO_GRID, domains, 2)
    steps = arguments[1]
    if not isinstance(steps, Literal) or not isinstance(steps.value, int) or steps.value < 1:
        raise Refused("wrong-arguments", "a grid has a positive whole number of steps per 1")
    lo, hi = (grid_integer(end, steps.value) for end in bounds(domains[0]))
    if max(abs(lo), abs(hi)) >= DOUBLE_EXACT_LIMIT:
        raise Refused("range-too-wide", "the grid is too fine for so wide a range", hint="narrow it with LEAST and GREATEST")
    return RealDomain(Fraction(lo, steps.value), Fraction(hi, steps.value), domains[0].nullable, steps.value)


_DATE_PARTS: dict[Function, tuple[int, int]] = {
    Function.QUARTER: (1, 4),
    Function.MONTH: (1, 12),
    Function.DAY: (1, 31),
    Function.DAY_OF_WEEK: (0, 6),
    Function.HOUR: (0, 23),
    Function.MINUTE: (0, 59),
}
TRUNCATIONS: dict[Function, str] = {
    Function.TRUNCATE_YEAR: "year",
    Function.TRUNCATE_QUARTER: "quarter",
    Function.TRUNCATE_MONTH: "month",
    Function.TRUNCATE_WEEK: "week",
    Function.TRUNCATE_DAY: "day",
}


def _days(domain: Domain) -> tuple[int, int]:
    match domain:
        case DateDomain(lo, hi):
            return lo, hi
        case TimestampDomain(lo, hi):
            return lo // calendar.DAY_MICROSECONDS, hi // calendar.DAY_MICROSECONDS
        case _:
            raise _wrong("a date function", (domain,))


def _date_part(function: Function) -> Rule:
    def rule(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
        _count(function, domains, 1)
        lo, hi = _days(domains[0])
        if function in (Function.HOUR, Function.MINUTE) and not isinstance(domains[0], TimestampDomain):
            raise _wrong(function.value, domains)
        if function is Function.YEAR:
            return IntegerDomain(calendar.to_date(lo).year, calendar.to_date(hi).year, domains[0].nullable)
        return IntegerDomain(*_DATE_PARTS[function], domains[0].nullable)

    return rule


def _truncate(function: Function) -> Rule:
    def rule(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
        _count(function, domains, 1)
        lo, hi = (calendar.truncate_days(day, TRUNCATIONS[function]) for day in _days(domains[0]))
        if isinstance(domains[0], DateDomain):
            return DateDomain(lo, hi, domains[0].nullable)
        return TimestampDomain(lo * calendar.DAY_MICROSECONDS, hi * calendar.DAY_MICROSECONDS, domains[0].nullable)

    return rule


RULES: dict[Function, Rule] = {
    Function.AND: _logical(Function.AND, 2),
    Function.OR: _logical(Function.OR, 2),
    Function.NOT: _logical(Function.NOT, 1),
    **{f: _comparison(f) for f in (Function.EQUAL, Function.NOT_EQUAL, Function.LESS, Function.LESS_EQUAL)},
    **{f: _comparison(f) for f in (Function.GREATER, Function.GREATER_EQUAL)},
    Function.IN: _in,
    Function.IS_NULL: _is_null,
    Function.STARTS_WITH: _starts_with,
    **{f: _arithmetic(f) for f in (Function.ADD, Function.SUBTRACT, Function.MULTIPLY)},
    Function.DIVIDE: _divide,
    Function.INTEGER_DIVIDE: _integer_divide,
    Function.MODULO: _modulo,
    **{f: _unary(f) for f in (Function.NEGATE, Function.ABS, Function.SIGN, Function.FLOOR, Function.CEILING)},
    **{f: _unary(f) for f in (Function.SQRT, Function.LN, Function.EXP, Function.TO_INTEGER, Function.TO_REAL)},
    Function.TO_GRID: _to_grid,
    Function.ROUND: _round,
    Function.LEAST: _extreme(Function.LEAST),
    Function.GREATEST: _extreme(Function.GREATEST),
    Function.NULL_IF: _null_if,
    Function.COALESCE: _coalesce,
    Function.YEAR: _date_part(Function.YEAR),
    **{f: _date_part(f) for f in _DATE_PARTS},
    **{f: _truncate(f) for f in TRUNCATIONS},
}
