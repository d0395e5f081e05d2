"""What is left in each of the newest blocks of time, and when the next one closes: for pages and programs that show it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lapwing.answers.display.budget import share_of_cost
from lapwing.curator import block_life
from lapwing.curator.curator import Curator
from lapwing.kernel.block_calendar import block_of_day, days_of_block
from lapwing.kernel.calendar import to_date, to_days

NEWEST_MAX = 60


def newest_blocks(curator: Curator) -> dict[str, Any]:
    """The newest prepared blocks, oldest first, each with the share of its budget that is left; how many closed ones are not prepared yet;
    and the next block that closes. Nothing without blocks of time.

    It depends on the ledger and the calendar alone.
    """
    declared, spending = curator.declaration.blocks, curator.block_spending()
    if declared is None or spending is None:
        return {}
    every, held = declared.every, curator.newest_blocks()
    first, end = block_life.declared_blocks(curator.declaration)
    last = block_of_day(to_days(held.last), every) if held is not None and held.number else first - 1
    number = min(NEWEST_MAX, held.number) if held is not None else 0
    near = tuple(each for each in spending.ranges if (each.last or 0) > last - number)
    spending, budget = replace(spending, ranges=near), curator.balance().budget
    newest = [
        _days(curator, block) | {"left": max(0.0, 1 - share_of_cost(budget, spending.most(block, block)))}
        for block in range(last - number + 1, last + 1)
    ]
    closed = declared.last_closed(block_life.today())
    coming = max(closed + 1, first)
    closes = to_date(days_of_block(coming, every)[1] + 1 + declared.grace_days).isoformat()
    return {
        "newest": newest,
        "waiting": max(0, min(closed, end) - last),
        "next": None if coming > end else _days(curator, coming) | {"closes": closes},
    }


def _days(curator: Curator, block: int) -> dict[str, Any]:
    assert curator.declaration.blocks is not None
    first, last = (to_date(day).isoformat() for day in days_of_block(block, curator.declaration.blocks.every))
    return {"first": first, "last": last}
