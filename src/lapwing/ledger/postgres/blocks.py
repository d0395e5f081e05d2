"""What a ledger on PostgreSQL is told about blocks of time, and says of them. The balances are a tree in the database: ``sql/blocks.sql``.

A cap on what one person may lose is a promise: one owner may set or lower it, and two people raise or remove it, as they raise a budget
(:func:`lapwing.ledger.postgres.policy.propose_cap`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple
from fractions import Fraction
from typing import Any

from lapwing.errors import LedgerError, Refused
from lapwing.kernel.accounting import Budget, Cost
from lapwing.kernel.blocks import BlockCost, exchange_cost
from lapwing.ledger import limits
from lapwing.ledger.amounts import budget_text, ranges_text
from lapwing.ledger.block_balances import BLOCK_MAX, BLOCK_MIN, BLOCKS_IN_YEAR, BlockSpending, BlockTerms, Steps
from lapwing.ledger.postgres import rows
from lapwing.ledger.postgres.anchors import AnchorPoint
from lapwing.ledger.protocol import Request

_DECLARE = "lapwing.declare_blocks(%s, %s, %s, %s, %s::pg_catalog.numeric, %s::pg_catalog.numeric, %s::pg_catalog.numeric, %s)"
SPENDING = (
    "SELECT first_block, last_block, loss::pg_catalog.text, delta::pg_catalog.text, pure::pg_catalog.text FROM lapwing.block_spending(%s)"
)
"""What blocks have spent in a ledger, for :func:`spending_of`."""
_ATTEMPTS_MAX = 20


def require_request(request: Request) -> None:
    """Refuse a request that costs nothing, that cannot be stored in full, or whose ranges of blocks overlap."""
    limits.require_request(request)
    charged_text(request)


def charged_text(request: Request) -> str | None:
    """What the database is told of the blocks that a request pays; None if the tables without time pay all of it."""
    return parts_text(request.ranges, request.person, request.cost)


def parts_text(ranges: Sequence[BlockCost], person: Cost | None, cost: Cost) -> str | None:
    """The same from its parts. Refuses (``request-invalid``) ranges that overlap or cannot be kept, and parts that cost nothing."""
    if not ranges and person is None:
        return None
    ranges = sorted(ranges or [BlockCost(None, None, cost)], key=lambda each: (each.first is None, each.first or 0))
    end = BLOCK_MIN - 1
    for place, each in enumerate(ranges):
        if each.first is None or each.last is None:
            is_valid = each.first is each.last and place == len(ranges) - 1
        else:
            is_valid = end < each.first <= each.last <= BLOCK_MAX
            end = each.last
        if not is_valid or each.cost.loss == 0:
            raise Refused("request-invalid", "ranges of blocks must not overlap, and each of them must have a cost above zero")
    return ranges_text(ranges, cost if person is None else person)


_newest: dict[str, tuple[str, BlockSpending]] = {}
"""By ledger: the head of the newest state whose balances were read, and those. They may be thousands, and a question asks often."""


def spending_at(state: AnchorPoint, ask: Callable[[], Sequence[tuple[Any, ...]]]) -> BlockSpending | None:
    """What blocks have spent in a state, from the rows of ``SPENDING`` if they were not read since; None of a data set without blocks."""
    if state.blocks is None:
        return None
    head, spending = _newest.get(state.ledger_id, ("", None))
    if spending is None or head != state.head:
        spending = spending_of(ask(), state.blocks.terms)
        _newest[state.ledger_id] = state.head, spending
    return spending


def spending_of(found: Sequence[tuple[Any, ...]], terms: BlockTerms) -> BlockSpending:
    """What blocks have spent, from the rows of ``SPENDING``."""
    person = next((rows.cost_of(*amounts) for first, _, *amounts in found if first is None), Cost.zero())
    of_blocks = Steps((first, last, rows.cost_of(*amounts)) for first, last, *amounts in found if first is not None)
    return BlockSpending(terms, of_blocks.ranges(), person)


def cap_text(terms: BlockTerms, budget: Budget) -> str | None:
    """The cap on what one person may lose as a budget; None if there is none."""
    cap = terms.person_budget(budget)
    return None if cap is None else budget_text(cap)


def declare(
    state_now: Callable[[], AnchorPoint],
    act: Callable[[str, Sequence[object]], object],
    terms: BlockTerms,
    *,
    read: tuple[int, int] | None,
    units: int,
    reason: str,
) -> None:
    """As :meth:`lapwing.ledger.protocol.Ledger.declare_blocks`; again if analysts were charged since what is inherited was computed."""
    if terms.every not in BLOCKS_IN_YEAR or units < 1 or (read is not None and not BLOCK_MIN <= read[0] <= read[1] <= BLOCK_MAX):
        raise LedgerError("block-invalid", "the period or the numbers of blocks are not those that a ledger keeps")
    for attempt in range(_ATTEMPTS_MAX):
        state = state_now()
        step = step_text(None if state.blocks is None else state.blocks.terms, terms)
        inherited = _inherited(read, units, state.budget, state.spent)
        detail = f"{step}: {reason}" if reason else step
        try:
            act(_DECLARE, [terms.every, cap_text(terms, state.budget), inherited, *astuple(state.spent), detail])
            return
        except LedgerError as error:
            if error.code != "ledger-busy" or attempt == _ATTEMPTS_MAX - 1:
                raise


def step_text(before: BlockTerms | None, to: BlockTerms) -> str:
    """The old and the new terms, for an entry."""
    if before is None:
        return f"a budget for every {to.every}, cap of a person {_cap(to.person_cap)}"
    return f"cap of a person {_cap(before.person_cap)} to {_cap(to.person_cap)}"


def _inherited(read: tuple[int, int] | None, units: int, budget: Budget, spent: Cost) -> str | None:
    """What blocks and the tables without time inherit of what was spent for whole persons; None of nothing."""
    if spent == Cost.zero():
        return None
    whole = exchange_cost(spent, units, budget.account)
    pure = None if whole.pure is None or spent.pure is None else whole.pure - spent.pure
    more = Cost(loss=whole.loss - spent.loss, delta=whole.delta - spent.delta, pure=pure)
    ranges = [] if read is None else [BlockCost(*read, whole)]
    return ranges_text([*ranges, BlockCost(None, None, more)], whole)


def _cap(cap: Fraction | None) -> str:
    return "none" if cap is None else f"{float(cap):g}"
