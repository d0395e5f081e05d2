"""The anchors of a ledger, and the removal of a lost one. The state in a missing anchor is unknown, so a
ledger is not opened without it. Removing it accepts the loss of charges that only that anchor recorded: that takes
two owners, in sessions of two roles of the database, and is an entry.
"""

from __future__ import annotations

from lapwing.ledger import limits
from lapwing.ledger.amounts import budget_text
from lapwing.ledger.postgres import rows
from lapwing.ledger.postgres.connection import Connection
from lapwing.ledger.postgres.opening import ledger_in_database
from lapwing.ledger.postgres.outcomes import refusal


def anchor_names(connection: Connection, source_id: str) -> tuple[str, ...]:
    """The anchors that a worker of this source has to write to."""
    return ledger_in_database(connection, source_id=source_id, fingerprint=None).anchors


def report_lost(connection: Connection, source_id: str, anchor: str, *, by: str, reason: str) -> int | None:
    """Say that an anchor is lost. The first of two owners proposes it, and gets a number; the second carries it out, and gets None.

    Refuses ``second-person`` to the first, and ``anchor-unknown`` for one that the ledger does not have. Needs no anchor.
    """
    limits.require_name(by)
    limits.require_reason(True, reason)
    state = ledger_in_database(connection, source_id=source_id, fingerprint=None).state
    open_ones = connection.look(
        "SELECT proposal_id FROM lapwing.proposal WHERE ledger_id = %s AND kind = 'anchor' AND target = %s AND state = 'open'",
        [state.ledger_id, anchor],
    )
    if open_ones:
        call = "lapwing.decide(%s, %s::pg_catalog.int8, %s, true, %s, %s)"
        parameters = [open_ones[0][0], by, budget_text(state.ceiling), reason]
        result = "NULL"
    else:
        call = "lapwing.propose(%s, 'anchor', %s, %s, '', 0, 0, %s)"
        parameters, result = [anchor, by, reason], "o_proposal_id"
    statement = f"SELECT outcome, {result}, {rows.STATE_OF_OUTCOME} FROM {call}"
    [(outcome, number, *_)] = connection.ask(statement, [state.ledger_id, *parameters], again=False)
    if outcome != "done":
        raise refusal(outcome)
    return None if number is None else int(number)
