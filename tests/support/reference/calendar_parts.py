"""Parts and truncations of dates from Python's own calendar."""

from __future__ import annotations

import datetime
from collections.abc import Callable

from lapwing.kernel.expressions import Function

DAY_MICROSECONDS = 24 * 60 * 60 * 1_000_000
_EPOCH = datetime.date(1970, 1, 1)


def _date(days: int) -> datetime.date:
    return _EPOCH + datetime.timedelta(days=days)


def _days(date: datetime.date) -> int:
    return (date - _EPOCH).days


def _of_date(part: Callable[[datetime.date], int]) -> Callable[[int], int]:
    return lambda microseconds: part(_date(microseconds // DAY_MICROSECONDS))


def _quarter(date: datetime.date) -> int:
    return 1 + (date.month - 1) // 3


def _thursday(date: datetime.date) -> datetime.date:
    """The Thursday of the date's week: its year is the week's year, and weeks are numbered by their Thursdays."""
    return date + datetime.timedelta(days=4 - date.isoweekday())


def _iso_week(date: datetime.date) -> int:
    thursday = _thursday(date)
    return 1 + (thursday - datetime.date(thursday.year, 1, 1)).days // 7


def add_months(days: int, months: int) -> int:
    """The same day of another month, or the nearest earlier day that exists there."""
    date = _date(days)
    count = date.year * 12 + (date.month - 1) + months
    for day in range(date.day, 0, -1):
        try:
            return _days(datetime.date(count // 12, count % 12 + 1, day))
        except ValueError:
            continue
    raise AssertionError("every month has a first day")


PARTS: dict[Function, Callable[[int], int]] = {
    Function.YEAR: _of_date(lambda date: date.year),
    Function.QUARTER: _of_date(_quarter),
    Function.MONTH: _of_date(lambda date: date.month),
    Function.DAY: _of_date(lambda date: date.day),
    Function.DAY_OF_WEEK: _of_date(lambda date: date.isoweekday() % 7),
    Function.DAY_OF_YEAR: _of_date(lambda date: date.toordinal() - datetime.date(date.year, 1, 1).toordinal() + 1),
    Function.WEEK: _of_date(_iso_week),
    Function.ISO_YEAR: _of_date(lambda date: _thursday(date).year),
    Function.HOUR: lambda microseconds: microseconds % DAY_MICROSECONDS // 3_600_000_000,
    Function.MINUTE: lambda microseconds: microseconds % 3_600_000_000 // 60_000_000,
    Function.SECOND: lambda microseconds: microseconds % 60_000_000 // 1_000_000,
    Function.DAY_NUMBER: lambda microseconds: microseconds // DAY_MICROSECONDS,
    Function.MICROSECONDS: lambda microseconds: microseconds,
}
"""Part of a moment, given in microseconds since 1970-01-01; Sunday is day 0 of the week."""

TRUNCATIONS: dict[Function, Callable[[int], int]] = {
    Function.TRUNCATE_YEAR: lambda days: _days(datetime.date(_date(days).year, 1, 1)),
    Function.TRUNCATE_QUARTER: lambda days: _days(datetime.date(_date(days).year, 3 * _quarter(_date(days)) - 2, 1)),
    Function.TRUNCATE_MONTH: lambda days: _days(datetime.date(_date(days).year, _date(days).month, 1)),
    # 1970-01-01 was a Thursday
    Function.TRUNCATE_WEEK: lambda days: days - (days + 3) % 7,
    Function.TRUNCATE_DAY: lambda days: days,
}
"""First day of the period that a day lies in, in days since 1970-01-01; weeks start on Monday."""

TIME_TRUNCATIONS: dict[Function, int] = {Function.TRUNCATE_HOUR: 3_600_000_000, Function.TRUNCATE_MINUTE: 60_000_000}
"""Microseconds of the part of a day that a moment goes back to the start of."""
