"""The owner declares blocks of time, or changes the cap on what one person may lose, inside a transaction of a local ledger."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from lapwing.errors import CatalogueError, LedgerError
from lapwing.kernel.accounting import Cost, admits
from lapwing.kernel.blocks import BlockCost, exchange_cost
from lapwing.ledger.amounts import lost_between, ranges_text
from lapwing.ledger.block_balances import BLOCK_MAX, BLOCK_MIN, BLOCKS_IN_YEAR, BlockBalances, BlockTerms
from lapwing.ledger.local import rows
from lapwing.ledger.local.block_state import BlockState, terms_text
from lapwing.ledger.local.rows import LedgerState
from lapwing.ledger.protocol import EntryKind


def declare(
    connection: sqlite3.Connection, state: LedgerState, terms: BlockTerms, *, read: tuple[int, int] | None, units: int, reason: str
) -> LedgerState:
    """Give every block a budget. The standing block and the blocks that were read inherit what was spent, as an exchange of rows."""
    _require_sound(terms, read, units)
    inherited = exchange_cost(state.spent, units, state.budget.account)
    if not admits(state.budget, spent=Cost.zero(), cost=inherited):
        message = "what was spent before there were blocks is more, for all rows of a person, than the budget of one block"
        hint = "raise the budget, or give the data a new id, which is a second budget for the same people"
        raise CatalogueError("blocks-overspent", message, hint=hint)
    cap = terms.person_budget(state.budget)
    if cap is not None and not admits(cap, spent=Cost.zero(), cost=inherited):
        message = "what one person lost before there were blocks is more than the cap on what a person may lose over a year"
        raise CatalogueError("blocks-overspent", message, hint="raise person_cap, or set it to none")
    more = lost_between(state.spent, inherited)
    parts = [BlockCost(None, None, more), *([] if read is None else [BlockCost(*read, inherited)])]
    return rows.append(
        connection,
        replace(state, blocks=BlockState(terms)),
        kind=EntryKind.BLOCKS,
        detail=reason,
        cost=more,
        evidence=terms_text(terms),
        blocks=None if inherited == Cost.zero() else ranges_text(parts, inherited),
    )


def change_cap(
    connection: sqlite3.Connection, state: LedgerState, declared: BlockState, balances: BlockBalances, terms: BlockTerms, *, reason: str
) -> LedgerState:
    """Change the cap on what one person may lose, but not below what a person has lost; the period stays."""
    if terms.every != declared.terms.every:
        message = f"the blocks of this data set are by {declared.terms.every}, and their balances cannot be split or joined"
        raise CatalogueError("blocks-period", message, hint=f'set every = "{declared.terms.every}"')
    if terms.person_cap == declared.terms.person_cap:
        return state
    if not balances.fit_cap(state.budget, terms):
        message = "the cap on what one person may lose over a year is below what a person may have lost already"
        raise CatalogueError("cap-below-spent", message, hint="set a higher person_cap, or none")
    return record_terms(connection, state, declared, terms, detail=reason)


def record_terms(
    connection: sqlite3.Connection, state: LedgerState, declared: BlockState, terms: BlockTerms, *, detail: str
) -> LedgerState:
    """Write these terms, in the place of those that were declared."""
    state = replace(state, blocks=replace(declared, terms=terms))
    return rows.append(connection, state, kind=EntryKind.BLOCKS, detail=detail, evidence=terms_text(terms))


def _require_sound(terms: BlockTerms, read: tuple[int, int] | None, units: int) -> None:
    if terms.every not in BLOCKS_IN_YEAR:
        raise CatalogueError("blocks-period", "blocks of time are by day, week or month", hint='set every = "day"')
    if (read is not None and not BLOCK_MIN <= read[0] <= read[1] <= BLOCK_MAX) or units < 1:
        raise LedgerError("block-invalid", "the blocks that were read are a range of blocks that a ledger can keep, of one unit or more")
