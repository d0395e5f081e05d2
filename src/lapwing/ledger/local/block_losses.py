"""What a restored ledger file has lost of the spending of blocks of time, according to an anchor.

The anchor has no balance of each block: it has the first and the last block that was ever charged, and the sum of all charges. The
difference of two sums is at least what any block has lost, so every block between is charged it. A block of the anchored ledger had not
spent more than its budget, so no block needs to be charged more than it had left. Proof: ``docs/proofs/ledger.md``.
"""

from __future__ import annotations

import sqlite3

from lapwing.errors import LedgerError
from lapwing.kernel.accounting import Budget, Cost, left_of
from lapwing.kernel.blocks import BlockCost
from lapwing.ledger.amounts import ranges_text
from lapwing.ledger.block_balances import BlockBalances, BlockCharge
from lapwing.ledger.local import block_acts, rows
from lapwing.ledger.local.block_state import BlockState, Tally
from lapwing.ledger.local.rows import LedgerState
from lapwing.ledger.protocol import EntryKind


def joined(
    connection: sqlite3.Connection, state: LedgerState, anchored: BlockState, *, held: Tally, whole: Tally, is_same: bool
) -> LedgerState:
    """The state with blocks like those of the anchored ledger, whose terms it gets if it is the same ledger.

    ``held`` is what the file has of the anchored history, ``whole`` is all that it has. Refuses (``ledger-superseded``) what cannot be
    added up: what one of the two spent for whole persons, before it had blocks, after they parted; other periods; and charges that the
    anchored ledger would not have admitted.
    """
    if state.blocks is None:
        if whole.spent != held.spent:
            raise apart("this ledger has spent budget without blocks of time, which the one in the registry has")
        return block_acts.record_terms(connection, state, BlockState(anchored.terms), anchored.terms, detail=_TERMS)
    if state.blocks.terms.every != anchored.terms.every:
        raise apart("this ledger and the one in the registry have blocks of different periods")
    if not is_same or state.blocks.terms == anchored.terms:
        return state
    balances = BlockBalances(anchored.terms, whole.admitted)
    if not (balances.fit(state.budget) and balances.fit_cap(state.budget, anchored.terms)):
        raise apart("this ledger has spent more of a block or a person than the one in the registry allows")
    return block_acts.record_terms(connection, state, state.blocks, anchored.terms, detail=_TERMS)


def apart(message: str) -> LedgerError:
    """The refusal of two ledgers whose spending cannot be added up."""
    return LedgerError("ledger-superseded", message, hint="use the other ledger, or restore its newest backup")


def charge_again(
    connection: sqlite3.Connection, state: LedgerState, anchored: BlockState, held: Tally, budget: Budget, *, standing: Cost, detail: str
) -> LedgerState:
    """Charge to blocks and persons what the anchored ledger had charged them beyond what the file ``held`` of it.

    One entry for what the standing block has lost, with what concerns a person in every year, and one for blocks of time. Pre: the state is
    ``joined``; ``budget`` is that of the anchored ledger.
    """
    before = BlockState(anchored.terms) if held.blocks is None else held.blocks
    always = anchored.always.since(before.always)
    blocks = None if standing == always == Cost.zero() else ranges_text([BlockCost(None, None, standing)], always)
    state = _append(connection, state, standing, blocks, detail)
    lost, person = anchored.charged.since(before.charged), anchored.person.since(before.person)
    if anchored.hull is None or lost == person == Cost.zero():
        return state
    balances, ranges = BlockBalances(anchored.terms, held.charges), list[BlockCost]()
    # In an account with an order one of two sums may be above its total; and what was charged again may be more than was left.
    is_capped = budget.order is None and not anchored.restored
    for each in balances.over(*anchored.hull):
        cost = _within(budget, each.cost, lost) if is_capped else lost
        if ranges and ranges[-1].cost == cost:
            ranges[-1] = BlockCost(ranges[-1].first, each.last, cost)
        else:
            ranges.append(BlockCost(each.first, each.last, cost))
    cap = anchored.terms.person_budget(budget)
    if is_capped and cap is not None:
        years = BlockCharge.of(ranges, person, person).years(anchored.terms.every)
        person = _within(cap, balances.least_of_a_person(years) + always, person)
    return _append(connection, state, Cost.zero(), ranges_text(ranges, person), f"{detail}, to blocks of time")


_TERMS = "declared before the ledger was restored"


def _within(budget: Budget, spent: Cost, lost: Cost) -> Cost:
    """The cost, but of each amount at most what is left after ``spent``."""
    left = left_of(budget, spent)
    return Cost(loss=min(lost.loss, left.loss), delta=min(lost.delta, left.delta), pure=lost.pure)


def _append(connection: sqlite3.Connection, state: LedgerState, cost: Cost, blocks: str | None, detail: str) -> LedgerState:
    evidence = rows.budgets_digest(state)
    return rows.append(connection, state, kind=EntryKind.RESTORE, detail=detail, cost=cost, evidence=evidence, blocks=blocks)
