"""Exact constants of a statement: numbers as fractions, dates as days, timestamps as microseconds."""

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
_TIME = re.compile(
    r"(\d{4}-\d{1,2}-\d{1,2})(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?(?:Z|([+-](?:0\d|1[0-5])):?([0-5]\d)?)?)?", re.ASCII
)
_OFFSET = re.compile(r":.*[+-]")
_ZONED = re.compile(r":.*[Z+-]")


def number(written: str, session: Session, node: exp.Expr) -> Literal:
    """A number as written: whole numbers are integers, any other is an exact real."""
    if _INTEGER.fullmatch(written):
        return Literal(int(written), Kind.INTEGER)
    if _REAL.fullmatch(written) and any(character.isdigit() for character in re.split("[eE]", written)[0]):
        mantissa, _, exponent = written.lower().partition("e")
        whole, _, digits = mantissa.partition(".")
        return Literal(Fraction(int(f"{whole}{digits}"), 10 ** len(digits)) * Fraction(10) ** int(exponent or 0), Kind.REAL)
    raise session.refuse(
        "number-unreadable", "this is not a valid number", node=node, hint="write digits, a point and an exponent below 1000"
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
    days = _days(written)
    if days is None:
        raise session.refuse("date-unreadable", "this is not a date", node=node, hint="write it as '2025-03-31'")
    return Literal(days, Kind.DATE)


def _days(written: str) -> int | None:
    match = _DATE.fullmatch(written)
    try:
        return None if match is None else calendar.to_days(datetime.date(*(int(part) for part in match.groups())))
    except ValueError:
        return None  # a month or day that does not exist


def timestamp(written: str, session: Session, node: exp.Expr) -> Literal:
    """A moment without time zone; the time of day may be missing. Declared timestamps are UTC, so Z changes nothing."""
    moment = _moment(written)
    if moment is None:
        raise session.refuse("date-unreadable", "this is not a timestamp", node=node, hint="write it as '2025-03-31 08:30:00'")
    if _OFFSET.search(written):  # engines accept the offset and ignore it
        in_utc = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=moment)
        message = "timestamps are in UTC and have no offset"
        raise session.refuse("date-unreadable", message, node=node, hint=f"write it as '{in_utc}'")
    return Literal(moment, Kind.TIMESTAMP)


def _moment(written: str) -> int | None:
    """Microseconds since 1970, in UTC."""
    match = _TIME.fullmatch(written)
    days = None if match is None else _days(match[1])
    if match is None or days is None:
        return None
    _, hour, minute, second, fraction, hours_east, minutes_east = match.groups(default="0")
    try:
        datetime.time(int(hour), int(minute), int(second))
    except ValueError:
        return None
    east = int(hours_east) * 60 + int(minutes_east) * (-1 if hours_east.startswith("-") else 1)
    seconds = (int(hour) * 60 + int(minute) - east) * 60 + int(second)
    moment = days * calendar.DAY_MICROSECONDS + seconds * 1_000_000 + int(fraction.ljust(6, "0"))
    return moment if calendar.DAYS_MIN <= moment // calendar.DAY_MICROSECONDS <= calendar.DAYS_MAX else None


def beside(literal: Literal, kind: Kind, session: Session, node: exp.Expr) -> Literal:
    """A constant converted for use beside a value of ``kind``: text beside dates is a date, a date beside timestamps is its midnight.

    A text with a time zone, as tools write the bounds of a chart, is that moment in UTC; beside dates it is the day of that moment.
    """
    match literal.kind, kind, literal.value:
        case Kind.TEXT, Kind.DATE | Kind.TIMESTAMP, str(text) if _ZONED.search(text) and (found := _moment(text)) is not None:
            return Literal(found, kind) if kind is Kind.TIMESTAMP else Literal(found // calendar.DAY_MICROSECONDS, kind)
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
