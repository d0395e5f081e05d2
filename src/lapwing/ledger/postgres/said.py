"""What a receipt says about a charge in the database."""

from __future__ import annotations

from lapwing.ledger.postgres.connection import Connection
from lapwing.ledger.receipts import Statement, statement_of_row


def statement_of(connection: Connection, *, source_id: str, ledger_id: str, charge_id: int) -> Statement:
    """The statement about a committed charge, from its rows; refuses any other (``receipt-missing``)."""
    found = connection.ask(
        "SELECT c.analyst, c.request_id, c.digest, c.payload_digest, c.loss::text, c.delta::text, e.entry_id, e.chained, e.at"
        " FROM lapwing.charge c JOIN lapwing.entry e ON e.ledger_id = c.ledger_id AND e.charge_id = c.charge_id AND e.kind = 'commit'"
        " WHERE c.ledger_id = %s AND c.charge_id = %s",
        [ledger_id, charge_id],
        again=True,
    )
    return statement_of_row(found[0] if found else None, source_id=source_id, ledger_id=ledger_id, charge_id=charge_id, amount=int)
