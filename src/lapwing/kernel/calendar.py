"""Dates as integers: days (or microseconds) since 1970-01-01, in the proleptic Gregorian calendar, without time zones."""

from __future__ import annotations

import datetime

EPOCH = datetime.date(1970, 1, 1)
DAY_MICROSECONDS = 86_400_000_000
DAYS_MIN = (datetime.date(1, 1, 1) - EPOCH).days
DAYS_MAX = (datetime.date(9999, 12, 31) - EPOCH).days


def to_date(days: int) -> datetime.date:
    """The date of a day number."""
    return EPOCH + datetime.timedelta(days=days)


def to_days(date: datetime.date) -> int:
    """The day number of a date."""
    return (date - EPOCH).days


def truncate_days(days: int, unit: str) -> int:
    """First day of the year, quarter, month, ISO week or day that ``days`` lies in."""
    date = to_date(days)
    match unit:
        case "year":
            return to_days(date.replace(month=1, day=1))
        case "quarter":
            return to_days(date.replace(month=(date.month - 1) // 3 * 3 + 1, day=1))
        case "month":
            return to_days(date.replace(day=1))
        case "week":
            return max(days - date.weekday(), DAYS_MIN)
        case "day":
            return days
        case _:
            raise ValueError(unit)
