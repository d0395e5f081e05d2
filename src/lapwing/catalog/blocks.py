"""Blocks of time as owners declare them, and the number of the block that a row is in: it follows from the row alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from lapwing.kernel.block_calendar import MONDAY, Period, block_of_day
from lapwing.kernel.date_functions import days_of
from lapwing.kernel.domains import Domain, Kind
from lapwing.kernel.expressions import Column, Expression, Function, Literal, call


@dataclass(frozen=True, slots=True)
class BlockDecl:
    """The blocks of a table: the column of dates or timestamps that they are periods of."""

    column: str
    every: Period


@dataclass(frozen=True, slots=True)
class BlocksDecl:
    """``[blocks]``: what holds for the blocks of all tables."""

    every: Period
    grace_days: int
    """A block closes this many days after its last day; rows that arrive later are left out."""
    person_cap: Fraction | None
    """The most epsilon that one person may lose over a year; None if the owner sets no cap."""
    keep: int | None = None
    """How many closed blocks keep their rows; None for all."""

    def last_closed(self, today: int) -> int:
        """The last block that is closed on a day: a fact of the calendar, whatever rows there are."""
        return block_of_day(today - self.grace_days, self.every) - 1

    def range_of(self, declared: tuple[int, int], last: int) -> tuple[int, int]:
        """The first and the last block whose rows are kept, of the ``declared`` ones, if ``last`` is the last closed one.

        The first is behind the last if there is none.
        """
        last = min(last, declared[1])
        return max(declared[0], declared[0] if self.keep is None else last - self.keep + 1), last


@dataclass(frozen=True, slots=True)
class PreparedBlocks:
    """The blocks of time that a version holds, from ``first`` to ``last``; none if the first is behind the last."""

    first: int
    last: int
    corrected: tuple[tuple[int, int], ...] = ()
    """Those that were corrected, in order, each with the number of its newest correction."""

    def body(self) -> dict[str, Any]:
        """For a file."""
        return {"first": self.first, "last": self.last, "corrected": [list(item) for item in self.corrected]}

    @classmethod
    def of(cls, body: Mapping[str, Any] | None) -> PreparedBlocks | None:
        """Inverse of :meth:`body`; None of a version without blocks."""
        if body is None:
            return None
        return cls(int(body["first"]), int(body["last"]), tuple((int(block), int(number)) for block, number in body["corrected"]))

    def with_corrections(self, first: int, last: int) -> PreparedBlocks:
        """After one more correction of the blocks of a range."""
        known = dict(self.corrected)
        known |= {block: known.get(block, 0) + 1 for block in range(first, last + 1)}
        return replace(self, corrected=tuple(sorted(known.items())))


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
