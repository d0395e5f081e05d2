"""Domains of columns under conditions that compare them with constants."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from lapwing.kernel.domains import (
    BooleanDomain,
    DateDomain,
    Domain,
    IntegerDomain,
    KeyDomain,
    Kind,
    RealDomain,
    TextDomain,
    TimestampDomain,
)
from lapwing.kernel.expressions import Call, Column, Expression, Function, Literal, Value
from lapwing.statements import MIRRORED

_MIRRORED = {**MIRRORED, Function.EQUAL: Function.EQUAL, Function.NOT_EQUAL: Function.NOT_EQUAL}


def narrowed(conditions: Iterable[Expression], domains: Mapping[str, Domain]) -> tuple[dict[str, Domain], tuple[Expression, ...]]:
    """The domains of values that meet every condition on a single column, and the conditions that remain."""
    narrow, left = dict(domains), []
    for condition in conditions:
        compared = _compared(condition)
        if compared is None or compared[0] not in narrow:
            left.append(condition)
            continue
        name, function, values = compared
        narrow[name], whole = _narrow(narrow[name], function, values)
        if not whole:
            left.append(condition)
    return narrow, tuple(left)


def _compared(condition: Expression) -> tuple[str, Function, tuple[Value, ...]] | None:
    """The column, the comparison and the constants of a condition of that form."""
    match condition:
        case Column(name):
            return name, Function.EQUAL, (True,)
        case Call(Function.NOT, (Column(name),)):
            return name, Function.EQUAL, (False,)
        case Call(Function.NOT, (Call(Function.IS_NULL, (Column(name),)),)):
            return name, Function.NOT, ()
        case Call(Function.IN, (Column(name), *options)):
            return name, Function.IN, tuple(option.value for option in options if isinstance(option, Literal))
        case Call(function, (Column(name), Literal(value, kind))) if function in _MIRRORED and value is not None and _exact(value, kind):
            return name, function, (value,)
        case Call(function, (Literal(value, kind), Column(name))) if function in _MIRRORED and value is not None and _exact(value, kind):
            return name, _MIRRORED[function], (value,)
        case _:
            return None


def _exact(value: Value, kind: Kind) -> bool:
    """Whether the engine compares with exactly this constant: a real constant is rounded to a double."""
    return kind is not Kind.REAL or Fraction(float(Fraction(value or 0))) == value


def _narrow(domain: Domain, function: Function, values: tuple[Value, ...]) -> tuple[Domain, bool]:
    """A superset of the values that pass, and whether it is exact."""
    if function is Function.NOT:
        return replace(domain, nullable=False), True
    match domain:
        case TextDomain(known):
            return _narrow_text(known, function, values)
        case IntegerDomain() | DateDomain() | TimestampDomain():
            return _narrow_whole(domain, function, values)
        case RealDomain(steps=int(steps)):
            lo, hi = _ends(function, [Fraction(value) for value in values if isinstance(value, int | Fraction)])
            room = Fraction(1, steps)  # an end between two grid points is stored as the nearest; the condition itself decides
            first = domain.lo if lo is None else max(domain.lo, lo - room)
            last = domain.hi if hi is None else min(domain.hi, hi + room)
            return replace(domain, lo=first, hi=max(first, last), nullable=False), False
        case BooleanDomain() | RealDomain() | KeyDomain():
            return replace(domain, nullable=False), False
    raise AssertionError("every domain was named")


def _narrow_text(known: tuple[str, ...] | None, function: Function, values: tuple[Value, ...]) -> tuple[Domain, bool]:
    texts = tuple(value for value in values if isinstance(value, str))
    if function in (Function.EQUAL, Function.IN):
        return TextDomain(tuple(dict.fromkeys(texts)) if known is None else tuple(each for each in known if each in texts), False), True
    if function is Function.NOT_EQUAL and known is not None:
        return TextDomain(tuple(each for each in known if each not in texts), False), True
    return TextDomain(known, False), False


def _narrow_whole(
    domain: IntegerDomain | DateDomain | TimestampDomain, function: Function, values: tuple[Value, ...]
) -> tuple[Domain, bool]:
    lo, hi = _ends(function, [Fraction(value) for value in values if isinstance(value, int | Fraction)])
    first = domain.lo if lo is None else max(domain.lo, math.ceil(lo))
    last = domain.hi if hi is None else min(domain.hi, math.floor(hi))
    if function is Function.GREATER and lo is not None and lo.denominator == 1:
        first = max(domain.lo, int(lo) + 1)
    if function is Function.LESS and hi is not None and hi.denominator == 1:
        last = min(domain.hi, int(hi) - 1)
    return replace(domain, lo=first, hi=last, nullable=False), function not in (Function.IN, Function.NOT_EQUAL)


def _ends(function: Function, numbers: Sequence[Fraction]) -> tuple[Fraction | None, Fraction | None]:
    """The ends of the interval that passes, included."""
    match function:
        case Function.LESS | Function.LESS_EQUAL:
            return None, numbers[0]
        case Function.GREATER | Function.GREATER_EQUAL:
            return numbers[0], None
        case Function.EQUAL | Function.IN:
            return min(numbers), max(numbers)
        case _:
            return None, None
