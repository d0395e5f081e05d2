"""The budget of a data set with blocks of time as text."""

from __future__ import annotations

from dataclasses import replace

from lapwing.answers.display.blocks import BlocksView
from lapwing.answers.display.budget import BudgetView, epsilon_of_all, share_of_cost
from lapwing.catalog.blocks import BlocksDecl
from lapwing.kernel.accounting import Cost
from lapwing.kernel.block_calendar import days_of_block
from lapwing.kernel.calendar import to_date
from lapwing.kernel.facts import Facts
from lapwing.ledger.block_balances import BlockSpending


def newest_block_view(view: BudgetView, declared: BlocksDecl | None, spending: BlockSpending | None, facts: Facts | None) -> BudgetView:
    """The budget of the newest closed block, from that of the tables without time; unchanged without blocks."""
    if declared is None or spending is None:
        return view
    last = max((last for _, last in _closed(facts)), default=0)
    blocks = _blocks_view(view, declared, facts, spending, place="the newest block")
    return replace(view, spent=spending.most(last, last), blocks=blocks)


def blocks_read_view(
    view: BudgetView, declared: BlocksDecl | None, spending: BlockSpending | None, facts: Facts, left_by: Cost
) -> BudgetView:
    """The budget of the blocks that a statement reads, of which the most is spent that any has; unchanged without blocks."""
    if declared is None or spending is None:
        return view
    blocks = _blocks_view(view, declared, facts, spending, place="the block with the least, of those that it reads")
    return replace(view, spent=left_by, blocks=blocks)


def _closed(facts: Facts | None) -> list[tuple[int, int]]:
    """The closed blocks of each table that has some."""
    ends = [table.blocks for table in facts.tables.values() if table.blocks is not None] if facts is not None else []
    return [(first, last) for first, last in ends if first <= last]


def _blocks_view(view: BudgetView, declared: BlocksDecl, facts: Facts | None, spending: BlockSpending, *, place: str) -> BlocksView:
    budget, every, closed = view.budget, declared.every, _closed(facts)
    return BlocksView(
        every=every.value,
        first=to_date(days_of_block(min(first for first, _ in closed), every)[0]) if closed else None,
        last=to_date(days_of_block(max(last for _, last in closed), every)[1]) if closed else None,
        spending=sum((each.last or 0) - (each.first or 0) + 1 for each in spending.ranges),
        most=max((share_of_cost(budget, each.cost) for each in spending.ranges), default=0.0),
        standing=share_of_cost(budget, view.spent),
        person_year=epsilon_of_all(budget, spending.person),
        person_cap=None if spending.terms.person_cap is None else float(spending.terms.person_cap),
        place=place,
    )
