"""What is said about charges in the database: in a receipt, and of what was bought."""

from __future__ import annotations

from lapwing.kernel.accounting import Cost
from lapwing.ledger.postgres.connection import Connection
from lapwing.ledger.protocol import Bought
from lapwing.ledger.receipts import Statement, statement_of_row


def statement_of(connection: Connection, *, source_id: str, ledger_id: str, charge_id: int) -> Statement:
    """The statement about a committed charge, from its rows; refuses any other (``receipt-missing``)."""
    found = connection.ask(
        "SELECT analyst, request_id, digest, payload_digest, loss::pg_catalog.text, delta::pg_catalog.text, entry_id, chained, at"
        " FROM lapwing.committed(%s, %s::pg_catalog.int8)",
        [ledger_id, charge_id],
        again=True,
    )
    return statement_of_row(found[0] if found else None, source_id=source_id, ledger_id=ledger_id, charge_id=charge_id, amount=int)


def bought_of(connection: Connection, *, ledger_id: str, version: int, limit: int, analyst: str | None) -> tuple[Bought, ...]:
    """The newest committed charges of a version, newest first; with ``analyst``, not those of others unless they are shared."""
    found = connection.ask(
        "SELECT summary, loss::pg_catalog.text, delta::pg_catalog.text, digest"
        " FROM lapwing.bought(%s, %s::pg_catalog.int8, %s, %s::pg_catalog.int8)",
        [ledger_id, version, analyst, limit],
        again=True,
    )
    return tuple(Bought(summary, Cost(loss=int(loss), delta=int(delta)), digest) for summary, loss, delta, digest in found)
