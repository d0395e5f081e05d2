"""The balance of a ledger for an operator's metrics, read without registering as a worker. No decision depends on it.

Reading it takes bounded time. Opening a ledger does not: that checks the whole ledger, and retries for long.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from lapwing.ledger.local import rows as local_rows
from lapwing.ledger.local.schema import LEDGER_FORMAT
from lapwing.ledger.local.sqlite_file import exclusive
from lapwing.ledger.protocol import Balance

REPLY_SECONDS = 2.0
"""How long to wait for a database."""
BUSY_SECONDS = 0.2
"""How long to wait for a file that another process writes."""


def local_balance(path: Path) -> Balance | None:
    """The balance in a file; None if its format would be upgraded by opening it. Raises ``sqlite3.Error`` if it cannot be read."""
    # Like every transaction: the process does not fork meanwhile.
    with exclusive(path), closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)) as connection:
        if connection.execute("PRAGMA user_version").fetchone() != (LEDGER_FORMAT.version,):
            return None
        return local_rows.read_state(connection).balance


def postgres_balances(dsn: str, source_ids: Sequence[str]) -> dict[str, Balance]:
    """The balances of those sources that have a ledger in this database; refuses as any use of a ledger does."""
    from lapwing.ledger.postgres import rows
    from lapwing.ledger.postgres.connection import Connection, require_extra
    from lapwing.ledger.postgres.install import SCHEMA_VERSION

    require_extra()
    connection = Connection(dsn, schema_version=SCHEMA_VERSION, retry_seconds=0.0, reply_seconds=REPLY_SECONDS)
    try:
        found = connection.ask(
            f"SELECT {rows.STATE_OF_OUTCOME} FROM pg_catalog.unnest(%s::pg_catalog.text[]) AS one (source),"
            " LATERAL lapwing.find_ledger(one.source, NULL)",
            [list(source_ids)],
            again=False,
        )
    finally:
        connection.close()
    return {state.source_id: state.balance for state in map(rows.state_of, found)}
