"""Dates as integers: days (or microseconds) since 1970-01-01, in the proleptic Gregorian calendar, without time zones."""

from __future__ import annotations

import datetime
from calendar import monthrange

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


def add_months(days: int, months: int) -> int | None:
    """The same day that many months later, or the last day of that month if the month is too short; None outside the years 1 to 9999."""
    date = to_date(days)
    year, month = divmod(date.year * 12 + date.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        return None
    return to_days(datetime.date(year, month + 1, min(date.day, monthrange(year, month + 1)[1])))
