"""What values a column or expression can take: kinds, bounds, enumerations, NULL.

A domain is a promise made by preparation (for columns) or by the propagation rules in ``functions`` (for expressions): every value is
inside it, for any data. Bounds are exact. Real numbers live on a public grid: a stored real column holds integers k that stand for
k / ``steps``, so its sums are integer sums. A computed real is a double, and its domain holds the double that the engine computes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from typing import TypeAlias, assert_never

from lapwing.errors import Refused

INTEGER_LIMIT = 2**62
"""No integer value or sum may reach this magnitude: it must survive 64-bit arithmetic and 64-bit noise."""

DOUBLE_EXACT_LIMIT = 2**52
"""Grid integers stay below this, where doubles still resolve halves."""

OPEN_TEXT_BYTES = 1_024
"""Longest open text and longest text identifier, in UTF-8 bytes: preparation makes NULL of a longer one."""

REAL_LIMIT = Fraction(2**300)
"""Reals above this are refused, so that no double can overflow."""


class Kind(Enum):
    """The closed list of value types."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    REAL = "real"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"
    KEY = "key"


class NumberType(Enum):
    """The type that SQL gives a number. It decides what a statement means; no rule of the kernel looks at it."""

    INTEGER = "integer"
    """Of at most 32 bits."""
    BIGINT = "bigint"
    DECIMAL = "decimal"
    DOUBLE = "double"


@dataclass(frozen=True, slots=True)
class BooleanDomain:
    """True, false and, if nullable, NULL."""

    nullable: bool = True


@dataclass(frozen=True, slots=True)
class IntegerDomain:
    """Integers from ``lo`` to ``hi``, ends included."""

    lo: int
    hi: int
    nullable: bool = True
    number: NumberType | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RealDomain:
    """Real numbers from ``lo`` to ``hi``; ``steps`` per 1 when they are stored on a grid, None for a computed expression.

    A declared end need not lie on the grid; the values then end at the grid point nearest to it (see ``bounds``).
    """

    lo: Fraction
    hi: Fraction
    nullable: bool = True
    steps: int | None = None
    number: NumberType | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TextDomain:
    """Text: one of ``values``, or anything when ``values`` is None. Compared by bytes, never by collation."""

    values: tuple[str, ...] | None
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class DateDomain:
    """Days since 1970-01-01, ends included."""

    lo: int
    hi: int
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class TimestampDomain:
    """Microseconds since 1970-01-01 00:00:00 without time zone, ends included."""

    lo: int
    hi: int
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class KeyDomain:
    """An identifier: it can be compared with another identifier and counted, nothing else."""

    nullable: bool = True
    text: bool = False


Domain: TypeAlias = BooleanDomain | IntegerDomain | RealDomain | TextDomain | DateDomain | TimestampDomain | KeyDomain


def kind_of(domain: Domain) -> Kind:
    """The value type of a domain."""
    match domain:
        case BooleanDomain():
            return Kind.BOOLEAN
        case IntegerDomain():
            return Kind.INTEGER
        case RealDomain():
            return Kind.REAL
        case TextDomain():
            return Kind.TEXT
        case DateDomain():
            return Kind.DATE
        case TimestampDomain():
            return Kind.TIMESTAMP
        case KeyDomain():
            return Kind.KEY
        case _:
            assert_never(domain)


def with_null(domain: Domain, nullable: bool) -> Domain:
    """The same values, with or without NULL."""
    return replace(domain, nullable=nullable)


def is_numeric(domain: Domain) -> bool:
    """Integer or real."""
    return isinstance(domain, IntegerDomain | RealDomain)


def number_type(domain: Domain) -> NumberType | None:
    """The type of a number; where none is known, integers are integers and reals doubles. None if it is not a number."""
    match domain:
        case IntegerDomain(number=number):
            return number or NumberType.INTEGER
        case RealDomain(number=number):
            return number or NumberType.DOUBLE
        case _:
            return None


def with_number(domain: Domain, number: NumberType | None) -> Domain:
    """The same values, as numbers of this type."""
    return replace(domain, number=number) if isinstance(domain, IntegerDomain | RealDomain) else domain


def bounds(domain: Domain) -> tuple[Fraction, Fraction]:
    """Least and greatest value of a numeric domain. On a grid these are grid points: 0.9 on a grid of whole numbers is stored as 1."""
    match domain:
        case IntegerDomain(lo, hi):
            return Fraction(lo), Fraction(hi)
        case RealDomain(lo, hi, steps=int(steps)):
            return Fraction(grid_integer(lo, steps), steps), Fraction(grid_integer(hi, steps), steps)
        case RealDomain(lo, hi):
            return lo, hi
        case _:
            raise Refused("type-mismatch", f"a number is needed here, not a {kind_of(domain).value}")


def nearest_double(value: Fraction) -> Fraction:
    """The double nearest to a value of at most ``REAL_LIMIT``, halves to even: what IEEE arithmetic makes of an exact result.

    Monotone: so it maps the ends of an interval to the ends of an interval that holds every rounded value.
    """
    return Fraction(value.numerator / value.denominator)  # the division of two Python integers is correctly rounded


def double_bounds(domain: Domain) -> tuple[Fraction, Fraction]:
    """Ends of a numeric domain whose values are read as doubles, as the renderer reads them: k / steps is two rounded steps."""
    lo, hi = bounds(domain)
    steps = (domain.steps if isinstance(domain, RealDomain) else None) or 1
    return nearest_double(nearest_double(lo * steps) / steps), nearest_double(nearest_double(hi * steps) / steps)


def union(left: Domain, right: Domain) -> Domain:
    """The least domain that holds both, for CASE, COALESCE and UNION ALL."""
    nullable = left.nullable or right.nullable
    match left, right:
        case BooleanDomain(), BooleanDomain():
            return BooleanDomain(nullable)
        case IntegerDomain(a, b), IntegerDomain(c, d):
            return IntegerDomain(min(a, c), max(b, d), nullable)
        case TextDomain(a), TextDomain(b):
            if (a is None) != (b is None) and bytes_max(left if b is None else right) > OPEN_TEXT_BYTES:
                message = f"a text of more than {OPEN_TEXT_BYTES} bytes cannot stand beside text without declared values"
                raise Refused("range-too-wide", message)
            values = None if a is None or b is None else tuple(dict.fromkeys((*a, *b)))
            return TextDomain(values, nullable)
        case DateDomain(a, b), DateDomain(c, d):
            return DateDomain(min(a, c), max(b, d), nullable)
        case TimestampDomain(a, b), TimestampDomain(c, d):
            return TimestampDomain(min(a, c), max(b, d), nullable)
        case KeyDomain(text=a), KeyDomain(text=b) if a == b:
            return KeyDomain(nullable, a)
        case ((IntegerDomain() | RealDomain()), (IntegerDomain() | RealDomain())):
            steps = left.steps if isinstance(left, RealDomain) and isinstance(right, RealDomain) and left.steps == right.steps else None
            ends = [bounds(side) if steps else double_bounds(side) for side in (left, right)]
            return RealDomain(min(lo for lo, _ in ends), max(hi for _, hi in ends), nullable, steps)
        case _:
            raise Refused("type-mismatch", f"{kind_of(left).value} and {kind_of(right).value} cannot be mixed")


def grid_integer(value: Fraction, steps: int) -> int:
    """The grid point of an exact value: floor(value * steps + 1/2). Monotone in ``value``."""
    scaled = value * steps + Fraction(1, 2)
    return scaled.numerator // scaled.denominator


def bytes_max(domain: Domain) -> int:
    """Most bytes one value takes up; an open text in another case may take up half as much again."""
    match domain:
        case TextDomain(tuple() as values):
            return max((len(value.encode("utf-8", "surrogatepass")) for value in values), default=0)
        case TextDomain() | KeyDomain(text=True):
            return OPEN_TEXT_BYTES
        case BooleanDomain() | IntegerDomain() | RealDomain() | DateDomain() | TimestampDomain() | KeyDomain():
            return 8
        case _:
            assert_never(domain)
