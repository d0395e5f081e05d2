"""Whether a local ledger is the one that the registry knows, in its newest state."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from lapwing.errors import CatalogueError, LapwingError, LedgerError
from lapwing.ledger.local import registry, rows


def disagreements(
    registered: sqlite3.Connection, connection: sqlite3.Connection, *, path: Path, source_id: str, fingerprint: str | None
) -> list[LapwingError]:
    """Everything in which this ledger is not the one the registry knows, in its newest state, for this data."""
    hint = "if this is meant, the data owner accepts it: `lapwing ledger accept REASON`"
    anchor = registry.find_anchor(registered, source_id)
    if anchor is None:
        return [LedgerError("ledger-unregistered", "the registry of this user does not know the ledger of this source", hint=hint)]
    problems: list[LapwingError] = []
    if anchor.ledger_path == rows.ON_SERVER and rows.moved_to(connection) is None:
        raise elsewhere(rows.ON_SERVER)  # no override: there are charges that are not in this file
    if rows.read_state(connection).ledger_id != anchor.ledger_id:
        problems.append(LedgerError("ledger-superseded", "the source has another ledger by now", hint=hint))
    else:
        if anchor.ledger_path not in (str(path), rows.ON_SERVER):
            problems.append(LedgerError("ledger-moved", f"the ledger is a copy, or was moved: it was {anchor.ledger_path}", hint=hint))
        if rows.head_at(connection, anchor.entries) != anchor.head:
            problems.append(LedgerError("ledger-rolled-back", "the ledger lacks entries that were made in it", hint=hint))
    if fingerprint is not None:
        known = registry.sources_with(registered, fingerprint)
        if source_id not in known:
            problems.append(CatalogueError("source-changed", "the source was registered for other data", hint=hint))
            if known:
                problems.append(CatalogueError("source-registered", "another source is registered for the same data", hint=hint))
    return problems


def elsewhere(where: str) -> LedgerError:
    """The error for a local ledger that goes on in a database."""
    hint = f"write into the catalogue, under [ledger], where it is: database, anchors and keys; it was last in {where}"
    return LedgerError("ledger-elsewhere", "the ledger of this data set is in a database", hint=hint)
