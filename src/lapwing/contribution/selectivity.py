"""The estimated share of the rows that a filter keeps, from declared domains only: values are assumed uniform. It affects accuracy
only.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from lapwing.kernel.domains import DateDomain, Domain, IntegerDomain, RealDomain, TextDomain, TimestampDomain
from lapwing.kernel.expressions import Call, Expression, Function, Literal, columns_of
from lapwing.kernel.stability import domain_of
from lapwing.statements import MIRRORED

UNKNOWN = 0.5
RARE = 0.1


def kept_share(predicate: Expression, columns: Mapping[str, Domain]) -> float:
    """Estimated share of rows for which the predicate is true."""
    if not isinstance(predicate, Call) or not columns_of(predicate):
        return UNKNOWN
    arguments = predicate.arguments
    match predicate.function:
        case Function.AND:
            return _conjunction(arguments, columns)
        case Function.OR:
            missed = 1.0
            for argument in arguments:
                missed *= 1 - kept_share(argument, columns)
            return 1 - missed
        case Function.NOT:
            return 1 - kept_share(arguments[0], columns)
        case Function.IS_NULL:
            return RARE
        case Function.IN:
            domain = domain_of(arguments[0], columns)
            return min(1.0, sum(_can_be(domain, option) for option in arguments[1:]) * _one_value(domain))
        case Function.EQUAL:
            return _one_value(domain_of(arguments[0] if isinstance(arguments[1], Literal) else arguments[1], columns))
        case Function.NOT_EQUAL:
            return 1 - _one_value(domain_of(arguments[0], columns))
        case Function.LESS | Function.LESS_EQUAL | Function.GREATER | Function.GREATER_EQUAL:
            low, high = _range(predicate, columns)
            return max(high - low, 0.0)
        case Function.STARTS_WITH:
            return RARE
        case _:
            return UNKNOWN


def _conjunction(arguments: tuple[Expression, ...], columns: Mapping[str, Domain]) -> float:
    """Ranges of one column are intersected; the shares of other conditions are multiplied."""
    share = 1.0
    ranges: dict[Expression, tuple[float, float]] = {}
    for argument in arguments:
        if isinstance(argument, Call) and argument.function in MIRRORED:
            subject = argument.arguments[0] if isinstance(argument.arguments[1], Literal) else argument.arguments[1]
            low, high = _range(argument, columns)
            before = ranges.get(subject, (0.0, 1.0))
            ranges[subject] = (max(low, before[0]), min(high, before[1]))
        else:
            share *= kept_share(argument, columns)
    for low, high in ranges.values():
        share *= max(high - low, 0.0)
    return share


def _range(comparison: Call, columns: Mapping[str, Domain]) -> tuple[float, float]:
    """Part of the domain [0, 1] that a comparison with a constant keeps."""
    function, (left, right) = comparison.function, comparison.arguments
    if isinstance(left, Literal):
        function, left, right = MIRRORED[function], right, left
    if not isinstance(right, Literal) or not isinstance(right.value, int | Fraction) or isinstance(left, Literal):
        return 0.0, UNKNOWN
    domain = domain_of(left, columns)
    if not isinstance(domain, IntegerDomain | RealDomain | DateDomain | TimestampDomain):
        return 0.0, UNKNOWN
    width = float(domain.hi - domain.lo) + (0.0 if isinstance(domain, RealDomain) else 1.0)
    closed = 1.0 if function in (Function.LESS_EQUAL, Function.GREATER) and not isinstance(domain, RealDomain) else 0.0
    at = min(max((float(right.value) - float(domain.lo) + closed) / width, 0.0), 1.0) if width else UNKNOWN
    return (0.0, at) if function in (Function.LESS, Function.LESS_EQUAL) else (at, 1.0)


def _can_be(domain: Domain, option: Expression) -> bool:
    """Whether a constant lies in the domain, as far as the domain is known."""
    value = option.value if isinstance(option, Literal) else None
    match domain:
        case TextDomain(values) if values is not None:
            return value in values
        case IntegerDomain(lo, hi) | RealDomain(lo, hi) | DateDomain(lo, hi) | TimestampDomain(lo, hi):
            return not isinstance(value, int | Fraction) or lo <= value <= hi
        case _:
            return True


def _one_value(domain: Domain) -> float:
    """Share of one value of a domain."""
    match domain:
        case TextDomain(values) if values:
            return 1 / len(values)
        case IntegerDomain(lo, hi) | DateDomain(lo, hi) | TimestampDomain(lo, hi):
            return 1 / (hi - lo + 1)
        case RealDomain(lo, hi, steps=int(steps)):
            return float(1 / ((hi - lo) * steps + 1))
        case TextDomain(_):
            return RARE
        case _:
            return UNKNOWN
