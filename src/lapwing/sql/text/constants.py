"""Constants of a statement, exactly: numbers as fractions, dates as days, timestamps as microseconds."""

from __future__ import annotations

import datetime
import operator
import re
from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from lapwing.kernel import calendar
from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Expression, Function, Literal
from lapwing.sql.text.reader import Session

_EXACT: dict[Function, Callable[[Fraction, Fraction], Fraction]] = {
    Function.ADD: operator.add,
    Function.SUBTRACT: operator.sub,
    Function.MULTIPLY: operator.mul,
}
_FOLDED_MAX = 10**12
"""Largest number, and largest denominator, of constants that are computed with exactly."""
_INTEGER = re.compile(r"[0-9]{1,40}")
_REAL = re.compile(r"(?=[0-9.])[0-9]{0,400}(?:\.[0-9]{0,400})?(?:[eE][+-]?[0-9]{1,3})?")
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)
_TIME = re.compile(r"(\d{4}-\d{1,2}-\d{1,2})(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?)?", re.ASCII)


def number(written: str, session: Session, node: exp.Expr) -> Literal:
    """A number as written: whole numbers are integers, any other is an exact real."""
    if _INTEGER.fullmatch(written):
        return Literal(int(written), Kind.INTEGER)
    if _REAL.fullmatch(written) and any(character.isdigit() for character in re.split("[eE]", written)[0]):
        mantissa, _, exponent = written.lower().partition("e")
        whole, _, digits = mantissa.partition(".")
        return Literal(Fraction(int(f"{whole}{digits}"), 10 ** len(digits)) * Fraction(10) ** int(exponent or 0), Kind.REAL)
    raise session.refuse(
        "number-unreadable", "this number cannot be read", node=node, hint="write digits, a point and an exponent below 1000"
    )


def folded(called: Function, arguments: tuple[Expression, ...]) -> Literal | None:
    """A sum, difference or product of two constants of which one is a real, exactly: 0.06 + 0.01 is 0.07. None for anything else."""
    if called not in _EXACT or len(arguments) != 2:
        return None
    numbers = []
    for argument in arguments:
        if (
            not isinstance(argument, Literal)
            or argument.kind not in (Kind.INTEGER, Kind.REAL)
            or not isinstance(argument.value, int | Fraction)
        ):
            return None
        numbers.append(Fraction(argument.value))
    if Kind.REAL not in (argument.kind for argument in arguments if isinstance(argument, Literal)):
        return None
    if any(abs(number) > _FOLDED_MAX or number.denominator > _FOLDED_MAX for number in numbers):
        return None
    return Literal(_EXACT[called](*numbers), Kind.REAL)


def date(written: str, session: Session, node: exp.Expr) -> Literal:
    """A date written as year, month and day."""
    match = _DATE.fullmatch(written)
    try:
        if match is not None:
            return Literal(calendar.to_days(datetime.date(*(int(part) for part in match.groups()))), Kind.DATE)
    except ValueError:
        pass  # a month or day that does not exist
    raise session.refuse("date-unreadable", "this is not a date", node=node, hint="write it as '2025-03-31'")


def timestamp(written: str, session: Session, node: exp.Expr) -> Literal:
    """A moment without time zone; the time of day may be missing."""
    match = _TIME.fullmatch(written)
    if match is not None:
        day, hour, minute, second, fraction = match.groups(default="0")
        try:
            datetime.time(int(hour), int(minute), int(second))
        except ValueError:
            match = None
        else:
            days = date(day, session, node).value
            assert isinstance(days, int)
            seconds = (int(hour) * 60 + int(minute)) * 60 + int(second)
            return Literal(days * calendar.DAY_MICROSECONDS + seconds * 1_000_000 + int(fraction.ljust(6, "0")), Kind.TIMESTAMP)
    raise session.refuse("date-unreadable", "this is not a timestamp", node=node, hint="write it as '2025-03-31 08:30:00'")


def beside(literal: Literal, kind: Kind, session: Session, node: exp.Expr) -> Literal:
    """A constant as it is meant beside a value of ``kind``: text beside dates is a date, a date beside timestamps is its midnight."""
    match literal.kind, kind, literal.value:
        case Kind.TEXT, Kind.DATE, str(text):
            return date(text, session, node)
        case Kind.TEXT, Kind.TIMESTAMP, str(text):
            return timestamp(text, session, node)
        case Kind.DATE, Kind.TIMESTAMP, int(days):
            return Literal(days * calendar.DAY_MICROSECONDS, Kind.TIMESTAMP)
        case Kind.TIMESTAMP, Kind.DATE, int(moment) if moment % calendar.DAY_MICROSECONDS == 0:
            return Literal(moment // calendar.DAY_MICROSECONDS, Kind.DATE)
        case _:
            return literal
