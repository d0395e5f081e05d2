"""The public calendar of blocks of time: their periods, their numbers, and their days.

Blocks are numbered one after the other: days since 1970-01-01, weeks from Monday to Sunday since the one of that day, months since year 0.
"""

from __future__ import annotations

import datetime
from dataclasses import replace
from enum import Enum

from lapwing.kernel.calendar import DAY_MICROSECONDS, to_date, to_days
from lapwing.kernel.domains import DateDomain, Domain, TimestampDomain

MONDAY = 3
"""Days from the first Monday before 1970-01-01, a Thursday, to that day."""


class Period(Enum):
    """How long a block is."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


def block_of_day(day: int, every: Period) -> int:
    """The number of the block that a day is in."""
    match every:
        case Period.DAY:
            return day
        case Period.WEEK:
            return (day + MONDAY) // 7
        case Period.MONTH:
            date = to_date(day)
            return 12 * date.year + date.month - 1


def days_of_block(block: int, every: Period) -> tuple[int, int]:
    """The first and the last day of a block."""
    match every:
        case Period.DAY:
            return block, block
        case Period.WEEK:
            return 7 * block - MONDAY, 7 * block - MONDAY + 6
        case Period.MONTH:
            starts = (to_days(datetime.date(month // 12, month % 12 + 1, 1)) for month in (block, block + 1))
            first, after = starts
            return first, after - 1


def within_blocks(domain: Domain, first: int, last: int, every: Period) -> Domain:
    """The values of a column of dates or timestamps in rows of these blocks."""
    low, high = days_of_block(first, every)[0], days_of_block(last, every)[1]
    match domain:
        case DateDomain(lo, hi):
            return replace(domain, lo=max(lo, low), hi=min(hi, high), nullable=False)
        case TimestampDomain(lo, hi):
            low, high = low * DAY_MICROSECONDS, (high + 1) * DAY_MICROSECONDS - 1
            return replace(domain, lo=max(lo, low), hi=min(hi, high), nullable=False)
        case _:
            raise ValueError("blocks are periods of dates or timestamps")
