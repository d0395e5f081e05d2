"""What a restored file has lost, charged again from the memory of the registry."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from lapwing.ledger.amounts import lost_between
from lapwing.ledger.local import rows
from lapwing.ledger.local.registry import Anchor
from lapwing.ledger.local.rows import LedgerState
from lapwing.ledger.protocol import EntryKind


def restored(connection: sqlite3.Connection, state: LedgerState, anchor: Anchor) -> LedgerState:
    """Charge again what the file has lost, as one amount: the anchor remembers what was spent, under which budget, and whether closed.

    The state the file is in was reached before the anchor, so nothing it spent is missing from the anchor's amount.
    """
    lost = lost_between(state.spent, anchor.spent)
    state = replace(state, budget=anchor.budget, ceiling=anchor.ceiling)
    detail = "charges made after the restored state"
    state = rows.append(connection, state, kind=EntryKind.RESTORE, detail=detail, cost=lost, evidence=rows.budgets_digest(state))
    if anchor.closed and not state.closed:
        state = rows.append(connection, replace(state, closed=True), kind=EntryKind.CLOSE, detail="closed before the ledger was restored")
    return state
