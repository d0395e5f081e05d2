"""The anchors of a ledger, and the removal of a lost one.

The state in a missing anchor is unknown, so a ledger is not opened without it. Its removal accepts the loss of charges that only this
anchor recorded: two owners must decide it, in sessions of two database roles, and the ledger records it.
"""

from __future__ import annotations

from lapwing.ledger import limits
from lapwing.ledger.amounts import budget_text
from lapwing.ledger.postgres import rows
from lapwing.ledger.postgres.connection import Connection
from lapwing.ledger.postgres.opening import ledger_in_database
from lapwing.ledger.postgres.outcomes import refusal


def anchor_names(connection: Connection, source_id: str) -> tuple[str, ...]:
    """The names of the anchors to which a worker of this source must write."""
    return ledger_in_database(connection, source_id=source_id, fingerprint=None).anchors


def report_lost(connection: Connection, source_id: str, anchor: str, *, by: str, reason: str) -> int | None:
    """Report that an anchor is lost. The first owner proposes its removal, and gets a number; the second approves it, and gets None.

    Refuses ``second-person`` if the first owner also tries to approve, and ``anchor-unknown`` for an anchor that the ledger does not have.
    Works without any anchor.
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
