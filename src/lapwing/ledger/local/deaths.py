"""What is left behind by a process that died while it was answering: its charge is forfeited, and too many such deaths close the data set.

A process may die because of the rows it was reading, and the analyst sees that it died, at almost no cost. Nobody can
tell such a death from that of a process that was killed by hand. So they are counted, until the owner re-opens the data set: a few kills
close nothing, and what can be learnt by provoking deaths is bounded by their number. A process that is told to stop (SIGTERM, SIGHUP,
an interrupt) forfeits its charge itself and does not count; neither does one that went with its machine.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from lapwing.ledger.local import rows
from lapwing.ledger.local.rows import LedgerState
from lapwing.ledger.protocol import EntryKind
from lapwing.ledger.workers import Worker, went_with_its_machine

DEATHS_MAX = 10
"""How many processes may die with something reserved, since the data set was last re-opened, before it closes."""
_DIED = "the process that reserved it is gone"
_REBOOTED = "the machine was started anew since"


def forfeit_of(connection: sqlite3.Connection, state: LedgerState, charge_id: int, worker: Worker) -> LedgerState:
    """Forfeit what a dead process had reserved; with the last death that is borne, close the data set."""
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
