"""Derives the state of a ledger again from all of its entries."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import assert_never

from lapwing.kernel.accounting import Cost
from lapwing.ledger.amounts import cost_value
from lapwing.ledger.local import rows
from lapwing.ledger.local.rows import LedgerState
from lapwing.ledger.protocol import EntryKind, State


def verified_state(connection: sqlite3.Connection) -> LedgerState:
    """The state row, checked against the state derived from all entries; any difference is a damaged ledger. Linear in the entries."""
    state = rows.read_state(connection)
    head, count, spent, closed, budgets = rows.first_head(state.ledger_id, state.source_id), 0, Cost.zero(), False, ""
    ends: dict[int, tuple[State, str]] = {}
    reserved: dict[int, str] = {}
    for *fields, pure, chained in connection.execute("SELECT * FROM entry ORDER BY entry_id"):
        entry_id, _, kind, _, charge_id, loss, delta, _, evidence = fields
        count += 1
        head = rows.chained_to(head, rows.with_pure(fields, pure))
        if entry_id != count or chained != head:
            rows.damaged()
        spent += cost_value(loss, delta, pure)
        match kind := rows.kind_of(kind):
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
            case EntryKind.OVERRIDE | EntryKind.VERSION | EntryKind.RETIRE | EntryKind.POLICY | EntryKind.PROPOSE | EntryKind.DENY:
                pass
            case never:
                assert_never(never)
    derived = replace(state, spent=spent, closed=closed, entries=count, head=head)
    if derived != state or budgets != rows.budgets_digest(state) or not _totals_agree(connection, state):
        rows.damaged()
    for *fields, pure, purchase, charge_state, payload_digest in connection.execute(
        "SELECT charge_id, analyst, request_id, digest, version, summary, loss, delta, pure, purchase, state, payload_digest FROM charge"
    ):
        charge_id = fields[0]
        if reserved.pop(charge_id, None) != rows.digest_of(rows.with_purchase(fields, pure, purchase)) or ends[charge_id] != (
            State(charge_state),
            payload_digest or "",
        ):
            rows.damaged()
    if reserved:
        rows.damaged()
    return state


def _totals_agree(connection: sqlite3.Connection, state: LedgerState) -> bool:
    """The totals the constraints compare are those of the budget the code decides by."""
    expected = rows.state_columns(state)
    names = ("loss_total", "loss_ceiling", "delta_total", "delta_ceiling", "pure_total", "pure_ceiling")
    row = connection.execute(f"SELECT {', '.join(names)} FROM ledger").fetchone()
    return bool(tuple(expected[name] for name in names) == row)
