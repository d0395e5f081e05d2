"""Blocks of time: a period of a public calendar, and the number of the block that a row is in.

Blocks are numbered one after the other: days since 1970-01-01, weeks from Monday to Sunday since the one of that day, months since year 0.
A row's block follows from the row alone, and a day's from the calendar alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lapwing.kernel.calendar import to_date
from lapwing.kernel.date_functions import days_of
from lapwing.kernel.domains import Domain, Kind
from lapwing.kernel.expressions import Column, Expression, Function, Literal, call

MONDAY = 3
"""Days from the first Monday before 1970-01-01, a Thursday, to that day."""


class Period(Enum):
    """How long a block is."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


@dataclass(frozen=True, slots=True)
class BlockDecl:
    """The blocks of a table: the column of dates or timestamps that they are periods of."""

    column: str
    every: Period


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


def blocks_of_domain(blocks: BlockDecl, domain: Domain) -> tuple[int, int]:
    """The first and the last block that the declared values of the column lie in."""
    first, last = days_of(domain)
    return block_of_day(first, blocks.every), block_of_day(last, blocks.every)


def number_of_block(blocks: BlockDecl) -> Expression:
    """The number of a row's block, as an expression over its columns."""
    time = Column(blocks.column)
    match blocks.every:
        case Period.DAY:
            return call(Function.DAY_NUMBER, time)
        case Period.WEEK:
            # The Monday of the week: a multiple of seven days, so no quotient is rounded.
            monday = call(Function.DAY_NUMBER, call(Function.TRUNCATE_WEEK, time))
            return call(Function.INTEGER_DIVIDE, call(Function.ADD, monday, _number(MONDAY)), _number(7))
        case Period.MONTH:
            months = call(Function.MULTIPLY, call(Function.YEAR, time), _number(12))
            return call(Function.ADD, months, call(Function.SUBTRACT, call(Function.MONTH, time), _number(1)))


def _number(value: int) -> Expression:
    return Literal(value, Kind.INTEGER)
