"""Derives the state of a ledger again from all of its entries."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import assert_never

from lapwing.kernel.accounting import Budget
from lapwing.ledger.block_balances import BlockBalances, BlockTerms
from lapwing.ledger.local import rows
from lapwing.ledger.local.block_book import BlockBook
from lapwing.ledger.local.block_state import Tally
from lapwing.ledger.local.rows import LedgerState
from lapwing.ledger.protocol import EntryKind, State


def verified_state(connection: sqlite3.Connection, book: BlockBook | None = None) -> LedgerState:
    """The state row, checked against the state derived from all entries; any difference is a damaged ledger. Linear in the entries.

    The balances of blocks go into ``book``.
    """
    state = rows.read_state(connection)
    head, count, closed, budgets, tally = rows.first_head(state.ledger_id, state.source_id), 0, False, "", Tally()
    ends: dict[int, tuple[State, str]] = {}
    reserved: dict[int, str] = {}
    for *fields, pure, chained, blocks in connection.execute("SELECT * FROM entry ORDER BY entry_id"):
        entry_id, _, kind, _, charge_id, loss, delta, _, evidence = fields
        count += 1
        head = rows.chained_to(head, rows.with_last(fields, pure, blocks))
        if entry_id != count or chained != head:
            rows.damaged()
        kind = rows.kind_of(kind)
        tally.add(kind, (loss, delta, pure), evidence, blocks)
        match kind:
            case EntryKind.RESERVE:
                reserved[charge_id], ends[charge_id] = evidence, (State.RESERVED, "")
            case EntryKind.COMMIT | EntryKind.FORFEIT:
                if ends.get(charge_id) != (State.RESERVED, ""):
                    rows.damaged()
                ends[charge_id] = (State.COMMITTED if kind == EntryKind.COMMIT else State.FORFEITED, evidence)
            case EntryKind.CLOSE | EntryKind.REOPEN:
                closed = kind == EntryKind.CLOSE
            case EntryKind.REGISTER | EntryKind.BUDGET | EntryKind.CEILING | EntryKind.RESTORE:
                budgets = evidence
            case EntryKind.OVERRIDE | EntryKind.VERSION | EntryKind.RETIRE | EntryKind.BLOCKS:
                pass
            case EntryKind.POLICY | EntryKind.PROPOSE | EntryKind.DENY:
                pass
            case never:
                assert_never(never)
    derived = replace(state, spent=tally.spent, closed=closed, entries=count, head=head, blocks=tally.blocks)
    if derived != state or budgets != rows.budgets_digest(state) or not _totals_agree(connection, state):
        rows.damaged()
    for *fields, pure, purchase, charge_state, payload_digest in connection.execute(
        "SELECT charge_id, analyst, request_id, digest, version, summary, loss, delta, pure, purchase, state, payload_digest FROM charge"
    ):
        charge_id = fields[0]
        if reserved.pop(charge_id, None) != rows.digest_of(rows.with_last(fields, pure, purchase)) or ends[charge_id] != (
            State(charge_state),
            payload_digest or "",
        ):
            rows.damaged()
    if reserved:
        rows.damaged()
    if tally.blocks is not None:
        balances = _admitted(state.budget, tally.blocks.terms, tally)
        if book is not None:
            book.keep(state, balances)
    return state


def _admitted(budget: Budget, terms: BlockTerms, tally: Tally) -> BlockBalances:
    """All balances. Every block is within the budget and every person within the cap, but for what was charged again: that may be more."""
    balances = BlockBalances(terms, tally.admitted)
    if not (balances.fit(budget) and balances.fit_cap(budget, terms)):
        rows.damaged()
    for charge in tally.restored:
        balances.add(charge)
    return balances


def _totals_agree(connection: sqlite3.Connection, state: LedgerState) -> bool:
    """The totals the constraints compare are those of the budget the code decides by."""
    expected = rows.state_columns(state)
    names = ("loss_total", "loss_ceiling", "delta_total", "delta_ceiling", "pure_total", "pure_ceiling")
    row = connection.execute(f"SELECT {', '.join(names)} FROM ledger").fetchone()
    return bool(tuple(expected[name] for name in names) == row)
