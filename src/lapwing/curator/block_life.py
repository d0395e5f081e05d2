"""The life of blocks of time: which of them are closed, and their budgets in the ledger."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date

from lapwing.catalog import Declaration
from lapwing.catalog.blocks import BlocksDecl, PreparedBlocks
from lapwing.catalog.facts import blocks_of_table
from lapwing.engines.base import BlockWrite, Engine, Progress
from lapwing.engines.losses import Witness
from lapwing.engines.state import StateDirectory
from lapwing.errors import BudgetRefused, CatalogueError, PreparationError, Refused
from lapwing.kernel.accounting import Budget, Cost, admits
from lapwing.kernel.block_calendar import block_of_day, days_of_block
from lapwing.kernel.blocks import BlockCost, BlocksRead
from lapwing.kernel.calendar import to_date, to_days
from lapwing.kernel.certify import Certified
from lapwing.kernel.count_stream import CertifiedStream
from lapwing.kernel.facts import Facts
from lapwing.kernel.neighbours import Neighbours
from lapwing.ledger.block_balances import BlockSpending, BlockTerms, most_of
from lapwing.ledger.connect import apply_cap, system_user
from lapwing.ledger.protocol import Balance, Ledger

_DAY_SECONDS = 86_400


def today() -> int:
    """The present day in UTC, counted from 1970-01-01. Blocks close by it, and by nothing that rows could show."""
    return int(time.time()) // _DAY_SECONDS


@dataclass(frozen=True, slots=True)
class HeldBlocks:
    """The blocks of time of a version, as days."""

    version: int
    every: str
    first: date
    """The first day of the first block."""
    last: date
    """The last day of the last block; before ``first`` if no block is closed."""
    number: int


def held_blocks(engine: Engine, declared: BlocksDecl | None) -> HeldBlocks | None:
    """The blocks of the newest version; None if there is no version, or one without blocks."""
    versions = engine.versions()
    held = engine.prepared_blocks(versions[-1]) if versions and declared is not None else None
    if held is None or declared is None:
        return None
    days = days_of_block(held.first, declared.every)[0], days_of_block(held.last, declared.every)[1]
    return HeldBlocks(versions[-1], declared.every.value, to_date(days[0]), to_date(days[1]), max(0, held.last - held.first + 1))


def declared_blocks(declaration: Declaration) -> tuple[int, int]:
    """The first and the last block that any table can have rows in."""
    ends = [blocks_of_table(table) for table in declaration.tables if table.blocks is not None]
    return min(first for first, _ in ends), max(last for _, last in ends)


def closed_blocks(declaration: Declaration, declared: BlocksDecl, held: PreparedBlocks | None = None) -> PreparedBlocks:
    """The closed blocks whose rows are kept: those of ``held`` that were closed stay so, and what was retired does not come back."""
    first, last = declared.range_of(declared_blocks(declaration), declared.last_closed(today()))
    if held is None:
        return PreparedBlocks(first, last)
    first, last = max(first, held.first), max(last, held.last)
    return PreparedBlocks(first, last, tuple(item for item in held.corrected if item[0] >= first))


def apply_blocks(ledger: Ledger, declaration: Declaration, *, reason: str) -> None:
    """Give the blocks of a declaration their budgets in the ledger, or another cap on what one person may lose.

    What was spent before is inherited by the standing block and by every block that could hold rows by now: statements read the rows of a
    unit in all of them at once. Where neighbours add or remove a unit, exchanging its rows of one block is two such steps.
    """
    known, declared = ledger.blocks(), declaration.blocks
    if declared is None:
        if known is not None:
            hint = "declare [blocks] again: their balances are kept"
            raise CatalogueError("blocks-kept", "a data set whose blocks have budgets keeps its blocks", hint=hint)
        return
    terms = BlockTerms(declared.every.value, declared.person_cap)
    if known is None:
        first, last = declared_blocks(declaration)
        read = first, max(first, min(last, block_of_day(today(), declared.every)))
        units = 2 if declaration.dataset.neighbours is Neighbours.UNBOUNDED else 1
        ledger.declare_blocks(terms, read=read, units=units, reason=reason or "declared in the catalogue")
    elif known.terms != terms:
        apply_cap(ledger, terms, by=system_user(), reason=reason or "declared in the catalogue")


def charged_blocks(certified: Certified | CertifiedStream, facts: Facts) -> tuple[tuple[BlockCost, ...], Cost | None]:
    """What each block pays for a plan, and one person; nothing on a version without blocks, whose plans a ledger with blocks refuses."""
    if isinstance(certified, Certified) and certified.blocks:
        return certified.blocks, certified.person
    ranges = standing_part(certified.cost, facts)
    return ranges, certified.cost if ranges else None


def standing_part(cost: Cost, facts: Facts) -> tuple[BlockCost, ...]:
    """What the standing block pays for a plan that reads tables without time alone; nothing on a version without blocks."""
    return (BlockCost(None, None, cost),) if any(table.blocks is not None for table in facts.tables.values()) else ()


def spent_by(reads: Iterable[BlocksRead], balance: Balance, spending: BlockSpending | None) -> Cost:
    """The most that any block has spent of those that queries read."""
    if spending is None:
        return balance.spent
    read = tuple(reads)
    costs = [spending.most(each.first, each.last) for one in read for each in one.blocks]
    return most_of([*costs, *([balance.spent] if any(one.standing for one in read) else [])])


@contextmanager
def payable_days_named(declared: BlocksDecl | None, ledger: Ledger, ranges: Sequence[BlockCost]) -> Iterator[None]:
    """A refusal because a block cannot pay names the longest stretch of days, of those that were asked, whose blocks all can."""
    try:
        yield
    except BudgetRefused as error:
        spending = ledger.blocks() if error.code == "block-budget" else None
        if declared is not None and spending is not None:
            error.hint = payable_days(declared, ledger.balance().budget, spending, ranges)
        raise


def payable_days(declared: BlocksDecl, budget: Budget, spending: BlockSpending, ranges: Sequence[BlockCost]) -> str:
    """The hint: which days can pay."""
    stretches: list[tuple[int, int]] = []
    for each in ranges:
        if each.first is None or each.last is None:
            continue
        spent = {block: Cost.zero() for block in range(each.first, each.last + 1)}
        for known in spending.ranges:
            first, last = max(known.first or 0, each.first), min(known.last or 0, each.last)
            spent |= dict.fromkeys(range(first, last + 1), known.cost)
        for block in sorted(block for block, before in spent.items() if admits(budget, spent=before, cost=each.cost)):
            if stretches and stretches[-1][1] == block - 1:
                stretches[-1] = stretches[-1][0], block
            else:
                stretches.append((block, block))
    if not stretches:
        return "none of these days can pay it: ask for less, or ask the data owner"
    first, last = max(stretches, key=lambda stretch: (stretch[1] - stretch[0], stretch[1]))
    days = to_date(days_of_block(first, declared.every)[0]), to_date(days_of_block(last, declared.every)[1])
    return f"ask for {days[0]} to {days[1]}: their blocks can pay it"


def _days_asked(declared: BlocksDecl, held: PreparedBlocks, first: int, last: int) -> tuple[int, int]:
    """The blocks of the days from ``first`` to ``last``; refuses (``blocks-open``) days that no prepared block holds."""
    blocks = block_of_day(first, declared.every), block_of_day(last, declared.every)
    if not held.first <= blocks[0] <= blocks[1] <= held.last:
        start, end = (to_date(day) for day in (days_of_block(held.first, declared.every)[0], days_of_block(held.last, declared.every)[1]))
        raise Refused("blocks-open", "only blocks that are prepared can be corrected", hint=f"name days from {start} to {end}")
    return blocks


def write_closed(
    engine: Engine,
    state: StateDirectory,
    declaration: Declaration,
    version: int,
    *,
    correct: tuple[date, date] | None,
    progress: Progress,
    witness: Witness,
) -> str | None:
    """Write the blocks that have closed since into a version, or those of the days ``correct`` again; what was done, as text.

    None if there was nothing to do.
    """
    declared, held = declaration.blocks, engine.prepared_blocks(version)
    if declared is None or held is None:
        raise PreparationError("blocks-missing", "the newest version has no blocks of time", hint="run prepare first")
    if correct is None:
        after = closed_blocks(declaration, declared, held)
        write = held.last + 1, after.last
    else:
        write = _days_asked(declared, held, to_days(correct[0]), to_days(correct[1]))
        after = held.with_corrections(*write)
    if after == held:
        return None
    engine.write_blocks(version, BlockWrite(declaration, write, after, state.ranking_key(), progress, witness))
    state.remember_blocks(version, after)
    days = days_of_block(write[0], declared.every)[0], days_of_block(write[1], declared.every)[1]
    named = f"{to_date(days[0])} to {to_date(days[1])}" if write[0] <= write[1] else "none"
    return f"blocks {'prepared' if correct is None else 'corrected'}: {named}"
