"""The first format of the local ledger, from before accounts had orders, and its upgrade to the second.

A file of this format is upgraded when it is opened, in one transaction. Its charges have no pure amount, so the account continues
unchanged: in rho and delta, or in epsilon. Its entries and the chain over them stay as they are.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from lapwing.ledger.amounts import AMOUNT_DIGITS


def _digits(column: str) -> str:
    return f"length({column}) = {AMOUNT_DIGITS} AND {column} NOT GLOB '*[^0-9]*'"


_TABLES = f"""
CREATE TABLE ledger (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    ledger_id TEXT NOT NULL,
    source_id TEXT NOT NULL,
    budget TEXT NOT NULL,
    ceiling TEXT NOT NULL,
    loss_spent TEXT NOT NULL CHECK ({_digits("loss_spent")}),
    loss_total TEXT NOT NULL CHECK ({_digits("loss_total")}),
    loss_ceiling TEXT NOT NULL CHECK ({_digits("loss_ceiling")}),
    delta_spent TEXT NOT NULL CHECK ({_digits("delta_spent")}),
    delta_total TEXT NOT NULL CHECK ({_digits("delta_total")}),
    delta_ceiling TEXT NOT NULL CHECK ({_digits("delta_ceiling")}),
    closed INTEGER NOT NULL CHECK (closed IN (0, 1)),
    entries INTEGER NOT NULL CHECK (entries >= 0),
    head TEXT NOT NULL,
    CHECK (loss_spent <= loss_total AND loss_total <= loss_ceiling),
    CHECK (delta_spent <= delta_total AND delta_total <= delta_ceiling)
) STRICT;

CREATE TABLE worker (
    worker_id INTEGER PRIMARY KEY,
    epoch TEXT NOT NULL UNIQUE,
    boot TEXT NOT NULL,
    namespace TEXT NOT NULL,
    pid INTEGER NOT NULL,
    started TEXT NOT NULL
) STRICT;

CREATE TABLE charge (
    charge_id INTEGER PRIMARY KEY,
    analyst TEXT NOT NULL,
    request_id TEXT NOT NULL,
    digest TEXT NOT NULL,
    version INTEGER NOT NULL,
    summary TEXT NOT NULL,
    loss TEXT NOT NULL CHECK ({_digits("loss")}),
    delta TEXT NOT NULL CHECK ({_digits("delta")}),
    worker_id INTEGER NOT NULL REFERENCES worker (worker_id),
    state TEXT NOT NULL CHECK (state IN ('reserved', 'committed', 'forfeited')),
    payload BLOB,
    payload_digest TEXT,
    UNIQUE (analyst, request_id),
    CHECK ((state = 'committed') = (payload IS NOT NULL)),
    CHECK ((state = 'committed') = (payload_digest IS NOT NULL))
) STRICT;

CREATE INDEX charge_by_digest ON charge (digest, charge_id) WHERE state = 'committed';

CREATE INDEX charge_open ON charge (worker_id) WHERE state = 'reserved';

CREATE TABLE entry (
    entry_id INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    kind TEXT NOT NULL,
    analyst TEXT NOT NULL,
    charge_id INTEGER REFERENCES charge (charge_id),
    loss TEXT NOT NULL CHECK ({_digits("loss")}),
    delta TEXT NOT NULL CHECK ({_digits("delta")}),
    detail TEXT NOT NULL,
    evidence TEXT NOT NULL,
    chained TEXT NOT NULL
) STRICT;
"""

_RULES = """
CREATE TRIGGER ledger_kept BEFORE DELETE ON ledger
BEGIN SELECT RAISE(ABORT, 'the ledger row is never deleted'); END;

CREATE TRIGGER ledger_only_grows BEFORE UPDATE ON ledger
WHEN NEW.ledger_id <> OLD.ledger_id OR NEW.source_id <> OLD.source_id
    OR NEW.loss_spent < OLD.loss_spent OR NEW.delta_spent < OLD.delta_spent
    OR NEW.loss_ceiling < OLD.loss_ceiling OR NEW.delta_ceiling < OLD.delta_ceiling
    OR NEW.entries < OLD.entries
BEGIN SELECT RAISE(ABORT, 'what is spent never goes down'); END;

CREATE TRIGGER charge_kept BEFORE DELETE ON charge
BEGIN SELECT RAISE(ABORT, 'a charge is never deleted'); END;

CREATE TRIGGER charge_starts_reserved BEFORE INSERT ON charge
WHEN NEW.state <> 'reserved'
BEGIN SELECT RAISE(ABORT, 'a charge starts reserved'); END;

CREATE TRIGGER charge_moves_once BEFORE UPDATE ON charge
WHEN OLD.state <> 'reserved' OR NEW.state = 'reserved'
    OR NEW.charge_id <> OLD.charge_id OR NEW.analyst <> OLD.analyst OR NEW.request_id <> OLD.request_id OR NEW.digest <> OLD.digest
    OR NEW.version <> OLD.version OR NEW.summary <> OLD.summary OR NEW.loss <> OLD.loss OR NEW.delta <> OLD.delta
    OR NEW.worker_id <> OLD.worker_id
BEGIN SELECT RAISE(ABORT, 'a charge moves once, from reserved to its end'); END;

CREATE TRIGGER entry_kept BEFORE DELETE ON entry
BEGIN SELECT RAISE(ABORT, 'an entry is never deleted'); END;

CREATE TRIGGER entry_fixed BEFORE UPDATE ON entry
BEGIN SELECT RAISE(ABORT, 'an entry is never changed'); END;
"""

SCHEMA = _TABLES + _RULES

_NOTHING = "0" * AMOUNT_DIGITS
_GROWN = ("entry", "charge", "ledger")
"""Tables to which the second format adds columns, in an order in which each can be dropped."""


def upgrade(connection: sqlite3.Connection, *, tables: Iterable[str], rules: Iterable[str]) -> None:
    """Convert the file to the second format, which these statements define. Runs inside a transaction."""
    for kind, name in connection.execute("SELECT type, name FROM sqlite_schema WHERE sql IS NOT NULL AND type <> 'table'").fetchall():
        connection.execute(f"DROP {kind} {name}")
    for table in _GROWN:
        connection.execute(f"ALTER TABLE {table} RENAME TO earlier_{table}")
    for statement in tables:
        if not statement.startswith("CREATE TABLE worker"):
            connection.execute(statement)
    connection.execute(
        "INSERT INTO ledger SELECT only_row, ledger_id, source_id, budget, ceiling, loss_spent, loss_total, loss_ceiling, delta_spent,"
        f" delta_total, delta_ceiling, CASE WHEN loss_spent = '{_NOTHING}' AND delta_spent = '{_NOTHING}' THEN '{_NOTHING}' END,"
        " NULL, NULL, closed, entries, head FROM earlier_ledger"
    )
    connection.execute(
        "INSERT INTO charge SELECT charge_id, analyst, request_id, digest, version, summary, loss, delta, NULL, worker_id, state, payload,"
        " payload_digest FROM earlier_charge"
    )
    connection.execute(
        "INSERT INTO entry SELECT entry_id, at, kind, analyst, charge_id, loss, delta, detail, evidence, NULL, chained FROM earlier_entry"
    )
    for table in _GROWN:
        connection.execute(f"DROP TABLE earlier_{table}")
    for statement in rules:
        connection.execute(statement)
