"""Values that can be listed: those of a domain, and representative moments for all moments that a statement cannot distinguish."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from lapwing.kernel.calendar import DAY_MICROSECONDS
from lapwing.kernel.date_functions import DATE_PARTS, TIME_PARTS, TIME_TRUNCATIONS, TRUNCATIONS
from lapwing.kernel.domains import BooleanDomain, DateDomain, Domain, IntegerDomain, RealDomain, TextDomain, TimestampDomain, grid_integer
from lapwing.kernel.expressions import Call, Case, Column, Expression, Function, Literal, Value

LISTED_MAX = 100_000
"""Most values one key may have to be listed, NULL aside, by default."""
ENUMERATED_MAX = 1_000_000
"""Most combinations of column values on which conditions and keys are evaluated."""
MOMENTS_MAX = 200_000
"""Most representative moments of a column of timestamps."""

_SECOND = 1_000_000
_MINUTE = 60 * _SECOND
_WHOLE_DAYS = {*TRUNCATIONS, *DATE_PARTS, Function.YEAR, Function.ISO_YEAR, Function.DAY_NUMBER} - TIME_PARTS
_COMPARISONS = {
    Function.EQUAL,
    Function.NOT_EQUAL,
    Function.LESS,
    Function.LESS_EQUAL,
    Function.GREATER,
    Function.GREATER_EQUAL,
    Function.IN,
}
_STEPS: dict[Function, int] = {
    **dict.fromkeys(_WHOLE_DAYS, DAY_MICROSECONDS),
    **{function: length for function, (_, length) in TIME_TRUNCATIONS.items()},
    Function.HOUR: 60 * _MINUTE,
    Function.MINUTE: _MINUTE,
    Function.SECOND: _SECOND,
}
"""How long each function of a moment stays the same, counted from midnight."""


def listed(domain: Domain, values_max: int = LISTED_MAX) -> tuple[Value, ...] | None:
    """Every value of a domain, NULL last, or None when there are too many; a real's are never listed."""
    null: tuple[Value, ...] = (None,) if domain.nullable else ()
    match domain:
        case BooleanDomain():
            return (False, True, *null)
        case TextDomain(tuple() as values) if len(values) <= values_max:
            return (*values, *null)
        case IntegerDomain(lo, hi) | DateDomain(lo, hi) if hi - lo < values_max:
            return (*range(lo, hi + 1), *null)
        case _:
            return None


def size_of(domain: Domain) -> int | None:
    """How many values a domain has, NULL aside, by declaration; None if the declaration does not distinguish them."""
    match domain:
        case BooleanDomain():
            return 2
        case TextDomain(tuple() as values):
            return len(values)
        case IntegerDomain(lo, hi) | DateDomain(lo, hi):
            return max(hi - lo + 1, 0)
        case _:
            return None


@dataclass(frozen=True, slots=True)
class TooManyGroups:
    """The reason why listable groups are not listed: there are more than a limit allows."""

    what: str
    """The key; empty if it is all keys together."""
    count: int | None
    """How many there are, NULL aside; None if only a lower bound is known."""
    limit: int
    setting: str
    is_list: bool
    """Whether they are a declared list: such groups are never discovered instead."""

    def __str__(self) -> str:
        many = f"more than {self.limit:,}" if self.count is None else f"{self.count:,}"
        whole = f"{self.what} has {many} possible values" if self.what else f"GROUP BY has {many} possible groups"
        return f"{whole}, and at most {self.limit:,} are listed ({self.setting})"


@dataclass(frozen=True, slots=True)
class ListedValues:
    """All values of one column. ``values`` of a real on a grid are the grid's integers where they are a range."""

    values: Sequence[Value] | range
    null: bool = False

    def __len__(self) -> int:
        return len(self.values) + self.null


def enumerated(domain: Domain, uses: Iterable[TimestampUse]) -> ListedValues | None:
    """Values of a column that give every expression all of its possible results; None if they are too many."""
    match domain:
        case BooleanDomain(nullable):
            return ListedValues((False, True), nullable)
        case TextDomain(tuple() as values, nullable):
            return ListedValues(values, nullable)
        case IntegerDomain(lo, hi, nullable) | DateDomain(lo, hi, nullable) if hi - lo < ENUMERATED_MAX:
            return ListedValues(range(lo, hi + 1), nullable)
        case RealDomain(lo, hi, nullable, int(steps)) if (hi - lo) * steps < ENUMERATED_MAX:
            return ListedValues(range(grid_integer(lo, steps), grid_integer(hi, steps) + 1), nullable)
        case TimestampDomain(lo, hi, nullable):
            moments = _moments(lo, hi, list(uses))
            return None if moments is None else ListedValues(moments, nullable)
        case _:
            return None


@dataclass(frozen=True, slots=True)
class TimestampUse:
    """How an expression uses a column of timestamps: its value is constant for ``step`` microseconds, except for changes at
    ``constants``."""

    step: int | None
    """None: no part of a day is used, only comparisons with the constants."""
    constants: frozenset[int] = frozenset()


def uses_of(expression: Expression, name: str, carried: TimestampUse | None = None) -> TimestampUse | None:
    """How an expression uses a column of timestamps; None for any other use. ``carried``: how its own value is used."""
    match expression:
        case Literal():
            return TimestampUse(None)
        case Column(other):
            return carried if other == name else TimestampUse(None)
        case Call(Function.IS_NULL, (value,)):
            return uses_of(value, name, TimestampUse(None))
        case Call(function, (value,)) if function in _STEPS:
            return uses_of(value, name, TimestampUse(_STEPS[function]))
        case Call(Function.FLOOR, (Call(Function.DIVIDE, (Call(Function.DIVIDE, (moment, Literal(1_000_000))), Literal(seconds))),)) if (
            (step := _whole_microseconds(seconds)) and isinstance(moment, Call) and moment.function is Function.MICROSECONDS
        ):
            return uses_of(moment.arguments[0], name, TimestampUse(step))  # periods of seconds since 1970, as tools bucket time
        case Call(Function.COALESCE, arguments):
            return _together(uses_of(argument, name, carried) for argument in arguments)
        case Call(function, (value, *others)) if function in _COMPARISONS and all(isinstance(other, Literal) for other in others):
            return uses_of(value, name, TimestampUse(None, _moments_in(others)))
        case Call(function, (Literal() as other, value)) if function in _COMPARISONS:
            return uses_of(value, name, TimestampUse(None, _moments_in((other,))))
        case Call(_, arguments):
            return _together(uses_of(argument, name) for argument in arguments)
        case Case(branches, otherwise):
            conditions = (uses_of(condition, name) for condition, _ in branches)
            return _together((*conditions, *(uses_of(value, name, carried) for value in (otherwise, *(value for _, value in branches)))))


def _whole_microseconds(seconds: Value) -> int | None:
    """The length of a period in microseconds; None if it is not a whole number."""
    if not isinstance(seconds, int | Fraction) or seconds <= 0:
        return None
    length = Fraction(seconds) * _SECOND
    return int(length) if length.denominator == 1 else None


def _moments_in(literals: Iterable[Expression]) -> frozenset[int]:
    return frozenset(part.value for part in literals if isinstance(part, Literal) and isinstance(part.value, int))


def _together(parts: Iterable[TimestampUse | None]) -> TimestampUse | None:
    step: int | None = None
    constants: frozenset[int] = frozenset()
    for part in parts:
        if part is None:
            return None
        constants |= part.constants
        if part.step is not None:
            step = math.gcd(step or 0, part.step)
    return TimestampUse(step, constants)


def _moments(lo: int, hi: int, uses: Sequence[TimestampUse]) -> tuple[int, ...] | None:
    whole = _together(uses)
    if whole is None or lo > hi:
        return None if whole is None else ()
    near = {moment + shift for moment in whole.constants for shift in (-1, 0, 1)}
    found = {lo, hi, *(moment for moment in near if lo <= moment <= hi)}
    if whole.step is not None:
        first = -(-lo // whole.step) * whole.step
        if (hi - first) // whole.step >= MOMENTS_MAX:
            return None
        found |= set(range(first, hi + 1, whole.step))
    return tuple(sorted(found))


def grid_value(value: int, domain: Domain) -> Value:
    """The value that a listed integer represents."""
    return Fraction(value, domain.steps) if isinstance(domain, RealDomain) and domain.steps is not None else value
