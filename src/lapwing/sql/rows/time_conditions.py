"""Whether a condition can be true, or surely is, of values in these domains: for conditions on the time of a row within a block."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from fractions import Fraction

from lapwing.errors import Refused
from lapwing.kernel.calendar import to_date
from lapwing.kernel.date_functions import days_of
from lapwing.kernel.domains import DateDomain, Domain, IntegerDomain, Kind, RealDomain, TimestampDomain, bounds
from lapwing.kernel.expressions import Call, Expression, Function, Literal
from lapwing.kernel.stability import domain_of
from lapwing.statements import MIRRORED

Ends = tuple[Fraction, Fraction]
"""The least and the largest value that is possible."""
_PARTS: dict[Function, Callable[[datetime.date], int]] = {
    Function.QUARTER: lambda date: (date.month + 2) // 3,
    Function.MONTH: lambda date: date.month,
    Function.DAY: lambda date: date.day,
    Function.DAY_OF_WEEK: lambda date: date.isoweekday() % 7,
    Function.DAY_OF_YEAR: lambda date: date.timetuple().tm_yday,
    Function.WEEK: lambda date: date.isocalendar().week,
}
"""The parts of a date that a range of dates says nothing of."""


def may_be_true(condition: Expression, columns: Mapping[str, Domain]) -> bool:
    """Whether a condition on these columns can be true: never False where it can."""
    match condition:
        case Call(Function.AND, arguments):
            return all(may_be_true(each, columns) for each in arguments)
        case Call(Function.OR, arguments):
            return any(may_be_true(each, columns) for each in arguments)
        case Call(Function.IN | Function.EQUAL, (value, *options)):
            both = (Function.GREATER_EQUAL, Function.LESS_EQUAL)
            return any(all(_may_be(side, value, each, columns) for side in both) for each in options)
        case Call(function, (left, right)) if function in MIRRORED:
            return _may_be(function, left, right, columns)
        case _:
            return True


def is_surely_true(condition: Expression, columns: Mapping[str, Domain]) -> bool:
    """Whether a condition is true of all values of these columns, none of which is NULL: never True where it is not."""
    match condition:
        case Call(Function.AND, arguments):
            return all(is_surely_true(each, columns) for each in arguments)
        case Call(Function.OR, arguments):
            return any(is_surely_true(each, columns) for each in arguments)
        case Call(Function.IN | Function.EQUAL, (value, *options)):
            both = (Function.GREATER_EQUAL, Function.LESS_EQUAL)
            return any(all(_surely_is(side, value, each, columns) for side in both) for each in options)
        case Call(function, (left, right)) if function in MIRRORED:
            return _surely_is(function, left, right, columns)
        case _:
            return False


def ends_of(value: Expression, columns: Mapping[str, Domain]) -> Ends | None:
    """The ends of a date, a time or a number; None of anything else, and where it may be NULL or cannot be computed."""
    domain = _domain(value, columns)
    return None if domain is None or domain.nullable else _ends_of(domain)


def _domain(value: Expression, columns: Mapping[str, Domain]) -> Domain | None:
    """The possible values; None where they cannot be computed."""
    try:
        return domain_of(_with_parts_of_days(value, columns), columns)
    except Refused:
        return None


def _with_parts_of_days(value: Expression, columns: Mapping[str, Domain]) -> Expression:
    """The value with parts of dates as constants, where the dates are of one day: of a range, most parts can be anything."""
    match value:
        case Call(function, (date,)) if function in _PARTS and isinstance(known := domain_of(date, columns), DateDomain | TimestampDomain):
            first, last = days_of(known)
            return Literal(_PARTS[function](to_date(first)), Kind.INTEGER) if first == last and not known.nullable else value
        case Call(function, arguments):
            return Call(function, tuple(_with_parts_of_days(argument, columns) for argument in arguments))
        case _:
            return value


def _may_be(function: Function, left: Expression, right: Expression, columns: Mapping[str, Domain]) -> bool:
    """Whether a comparison can be true."""
    domains = _domain(left, columns), _domain(right, columns)
    ends = [_ends_of(domain) for domain in domains if domain is not None]
    if len(ends) < len(domains) or None in ends:
        return True
    ((low, high), (other_low, other_high)) = (each for each in ends if each is not None)
    match function:
        case Function.LESS:
            return low < other_high
        case Function.LESS_EQUAL:
            return low <= other_high
        case Function.GREATER:
            return high > other_low
        case _:
            return high >= other_low


def _surely_is(function: Function, left: Expression, right: Expression, columns: Mapping[str, Domain]) -> bool:
    """Whether a comparison is true of all values."""
    mine, others = ends_of(left, columns), ends_of(right, columns)
    if mine is None or others is None:
        return False
    match function:
        case Function.LESS:
            return mine[1] < others[0]
        case Function.LESS_EQUAL:
            return mine[1] <= others[0]
        case Function.GREATER:
            return mine[0] > others[1]
        case _:
            return mine[0] >= others[1]


def _ends_of(domain: Domain) -> Ends | None:
    if isinstance(domain, DateDomain | TimestampDomain):
        return Fraction(domain.lo), Fraction(domain.hi)
    return bounds(domain) if isinstance(domain, IntegerDomain | RealDomain) else None
