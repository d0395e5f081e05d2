"""A process that dies while it answers forfeits its charge, and too many such deaths close the data set.

A process may die because of the rows it was reading, and the analyst, who paid almost nothing, can observe its death. No one can
tell such a death from that of a process that was killed by hand. So the ledger counts deaths until the owner re-opens the data set: a few
kills do not close it, and their number bounds what an analyst learns by provoking deaths. A process that receives a stop signal (SIGTERM,
SIGHUP, an interrupt) forfeits its charge itself and does not count; neither does a process that ended because its machine restarted.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from lapwing.ledger.local import rows
from lapwing.ledger.local.rows import LedgerState
from lapwing.ledger.protocol import EntryKind
from lapwing.ledger.workers import Worker, went_with_its_machine

DEATHS_MAX = 10
"""The number of processes that died with an open reservation, since the data set was last re-opened, at which it closes."""
_DIED = "the process that reserved it is gone"
_REBOOTED = "the machine was started anew since"


def forfeit_of(connection: sqlite3.Connection, state: LedgerState, charge_id: int, worker: Worker) -> LedgerState:
    """Forfeit what a dead process had reserved; at the last tolerated death, close the data set."""
    if went_with_its_machine(worker):
        return rows.settle(connection, state, charge_id, payload=None, detail=_REBOOTED)
    state = rows.settle(connection, state, charge_id, payload=None, detail=_DIED)
    if state.closed or _deaths(connection) < DEATHS_MAX:
        return state
    return rows.append(connection, replace(state, closed=True), kind=EntryKind.CLOSE, detail="too many processes died while answering")


def _deaths(connection: sqlite3.Connection) -> int:
    row = connection.execute(
        "SELECT count(DISTINCT charge.worker_id) FROM entry JOIN charge USING (charge_id) WHERE entry.kind = ? AND entry.detail = ?"
        " AND entry.entry_id > (SELECT coalesce(max(entry_id), 0) FROM entry WHERE kind = ?)",
        [EntryKind.FORFEIT.value, _DIED, EntryKind.REOPEN.value],
    ).fetchone()
    return int(row[0])
