"""Checks that a local ledger is the one in the registry, in its newest state."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from lapwing.errors import CatalogueError, LapwingError, LedgerError
from lapwing.ledger.local import registry, rows


def disagreements(
    registered: sqlite3.Connection, connection: sqlite3.Connection, *, path: Path, source_id: str, fingerprint: str | None
) -> list[LapwingError]:
    """Every way in which this ledger differs from the one that the registry has for this data, in its newest state."""
    hint = "if this is intended, the data owner can accept it with `lapwing ledger accept REASON`"
    anchor = registry.find_anchor(registered, source_id)
    if anchor is None:
        return [LedgerError("ledger-unregistered", "the registry of this user has no record of this source's ledger", hint=hint)]
    problems: list[LapwingError] = []
    if anchor.ledger_path == rows.ON_SERVER and rows.moved_to(connection) is None:
        raise elsewhere(rows.ON_SERVER)  # no override: this file lacks the charges made in the database
    if rows.read_state(connection).ledger_id != anchor.ledger_id:
        problems.append(LedgerError("ledger-superseded", "the source now has another ledger", hint=hint))
    else:
        if anchor.ledger_path not in (str(path), rows.ON_SERVER):
            problems.append(LedgerError("ledger-moved", f"the ledger was copied or moved from {anchor.ledger_path}", hint=hint))
        if rows.head_at(connection, anchor.entries) != anchor.head:
            problems.append(LedgerError("ledger-rolled-back", "the ledger is missing entries that were written to it", hint=hint))
    if fingerprint is not None:
        known = registry.sources_with(registered, fingerprint)
        if source_id not in known:
            problems.append(CatalogueError("source-changed", "the source was registered for other data", hint=hint))
            if known:
                problems.append(CatalogueError("source-registered", "another source is registered for the same data", hint=hint))
    return problems


def elsewhere(where: str) -> LedgerError:
    """The error for a local ledger that was moved into a database."""
    hint = f"set database, anchors and keys under [ledger] in the catalogue; the ledger was last in {where}"
    return LedgerError("ledger-elsewhere", "the ledger of this data set is in a database", hint=hint)
