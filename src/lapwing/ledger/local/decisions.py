"""Decides about requests inside a transaction of a local ledger, and refuses them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import assert_never

from lapwing.errors import BudgetRefused, LapwingError, LedgerError, Refused
from lapwing.kernel.accounting import Cost, admits
from lapwing.kernel.blocks import BlockCost
from lapwing.ledger.block_balances import BlockBalances, BlockCharge
from lapwing.ledger.local import deaths, rows
from lapwing.ledger.local.rows import LedgerState
from lapwing.ledger.protocol import State, StoredAnswer
from lapwing.ledger.workers import Worker, is_dead


def require_open(state: LedgerState) -> None:
    """Refuse if the data set is closed to analysts."""
    if state.closed:
        raise Refused("data-set-closed", "the data set is closed", hint="the data owner can re-open it")


def require_within(state: LedgerState, cost: Cost) -> None:
    """Refuse if the budget cannot pay."""
    if not admits(state.budget, spent=state.spent, cost=cost):
        raise BudgetRefused("budget-exceeded", "the budget cannot pay for this", hint="ask for less, or ask the data owner")


def require_blocks_pay(
    state: LedgerState, balances: BlockBalances | None, cost: Cost, ranges: Sequence[BlockCost], person: Cost | None
) -> None:
    """Refuse if a block of time cannot pay its part, or if a person would lose more over a year than the owner allows."""
    if balances is None:
        if ranges:
            raise Refused("request-invalid", "the data set has no blocks of time", hint="the data owner can declare them")
        return
    if not ranges:
        raise without_ranges()
    charge = BlockCharge.of(ranges, person, cost)
    if not balances.can_pay(state.budget, charge):
        hint = "ask for less, ask about other blocks, or ask the data owner"
        raise BudgetRefused("block-budget", "the budget of a block of time that this reads cannot pay for it", hint=hint)
    if not balances.within_cap(state.budget, charge):
        hint = "ask for less, ask about another year, or ask the data owner"
        raise BudgetRefused("person-cap", "one person would lose more over a year than the data owner allows", hint=hint)


def without_ranges() -> Refused:
    """The refusal of a request that does not say which blocks pay: its plan was certified for a version from before there were any, and may
    read the rows of all of them.
    """
    return Refused(
        "blocks-missing", "the data set has blocks of time since this was planned", hint="open the data set again, and ask again"
    )


def forfeit_at_the_end(connection: sqlite3.Connection, state: LedgerState, charge_id: int, _worker: Worker) -> LedgerState:
    """Forfeit what a process had reserved that ends its use of the ledger."""
    return rows.settle(connection, state, charge_id, payload=None, detail="the process ended its use of the ledger")


def seen_before(connection: sqlite3.Connection, state: LedgerState, charge: rows.Charge, digest: str) -> StoredAnswer | LapwingError:
    """The outcome for a key that was used before. A refusal is returned, not raised, so that the forfeit of a dead process is kept."""
    if charge.digest != digest:
        return Refused("request-mismatch", "this request id was used for another request", hint="use a new request id")
    forfeited = Refused("request-forfeited", "this request was charged and ended without an answer", hint="use a new request id")
    match charge.state:
        case State.COMMITTED:
            return rows.stored_answer(connection, charge.charge_id)
        case State.FORFEITED:
            return forfeited
        case State.RESERVED:
            if is_dead(charge.worker):
                deaths.forfeit_of(connection, state, charge.charge_id, charge.worker)
                return forfeited
            return Refused("request-in-progress", "this request is being answered", hint="ask again later")
        case never:
            assert_never(never)


def not_open() -> LedgerError:
    """The refusal of a process that settles a charge which is not its own, or not open."""
    return LedgerError("charge-not-open", "this process has no such open charge; its answer must not be sent")
