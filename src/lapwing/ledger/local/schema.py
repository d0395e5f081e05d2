"""The tables of the local ledger and of the registry, with the rules the database itself enforces.

The rules repeat what the code decides, so that a bug in the code leads to a refused change, not to a wrong ledger: what is spent never
exceeds the total and never decreases, a key has one charge, a charge moves once, and entries are only ever appended.
Amounts are texts of forty digits (``lapwing.ledger.amounts``), which the database compares byte by byte. A pure amount of NULL
exceeds every total, and a pure total of NULL means that there is none: only an account that is a union of filters has one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from lapwing.ledger.amounts import AMOUNT_DIGITS
from lapwing.ledger.local import format_1
from lapwing.ledger.local.sqlite_file import Format, statements


def _digits(column: str) -> str:
    """The rule for an amount column: forty digits and nothing else."""
    return f"length({column}) = {AMOUNT_DIGITS} AND {column} NOT GLOB '*[^0-9]*'"


def _digits_or_null(column: str) -> str:
    return f"{column} IS NULL OR ({_digits(column)})"


_PURCHASE = ", purchase TEXT CHECK (length(purchase) > 0)"
"""The column of format 3, spelled as SQLite stores a column that was added to a table."""
_STAYS = " OR NEW.purchase IS NOT OLD.purchase"
_BLOCKS = ", blocks TEXT CHECK (length(blocks) > 0)"
"""The column of format 4, of the ledger row and of entries, spelled like the one before."""
_OF_BLOCK = 'substr(purchase, 1, 15) = \'{"kind":"block"\''
NAMED = f"state = 'committed' AND {_OF_BLOCK}"
"""The condition of the index of format 5, and of the queries that use it."""
NOT_NAMED = f"({_OF_BLOCK}) IS NOT TRUE"
"""Of a charge that bought something else, or has no record."""
_NAMED_INDEX = f"""
CREATE INDEX charge_by_name ON charge (version, substr(purchase, 1, 200)) WHERE {NAMED};
"""
_DECLARED = " OR (OLD.blocks IS NOT NULL AND NEW.blocks IS NULL)"
_LEDGER_TABLES = f"""
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
    pure_spent TEXT CHECK ({_digits_or_null("pure_spent")}),
    pure_total TEXT CHECK ({_digits_or_null("pure_total")}),
    pure_ceiling TEXT CHECK ({_digits_or_null("pure_ceiling")}),
    closed INTEGER NOT NULL CHECK (closed IN (0, 1)),
    entries INTEGER NOT NULL CHECK (entries >= 0),
    head TEXT NOT NULL{_BLOCKS},
    CHECK (loss_spent <= loss_total OR (pure_spent IS NOT NULL AND pure_total IS NOT NULL AND pure_spent <= pure_total)),
    CHECK (loss_total <= loss_ceiling),
    CHECK ((pure_total IS NULL) = (pure_ceiling IS NULL) AND (pure_total IS NULL OR pure_total <= pure_ceiling)),
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
    pure TEXT CHECK ({_digits_or_null("pure")}),
    worker_id INTEGER NOT NULL REFERENCES worker (worker_id),
    state TEXT NOT NULL CHECK (state IN ('reserved', 'committed', 'forfeited')),
    payload BLOB,
    payload_digest TEXT{_PURCHASE},
    UNIQUE (analyst, request_id),
    CHECK ((state = 'committed') = (payload IS NOT NULL)),
    CHECK ((state = 'committed') = (payload_digest IS NOT NULL))
) STRICT;

CREATE INDEX charge_by_digest ON charge (digest, charge_id) WHERE state = 'committed';

CREATE INDEX charge_open ON charge (worker_id) WHERE state = 'reserved';
{_NAMED_INDEX}
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
    pure TEXT CHECK ({_digits_or_null("pure")}),
    chained TEXT NOT NULL
{_BLOCKS}) STRICT;
"""

_LEDGER_RULES = f"""
CREATE TRIGGER ledger_kept BEFORE DELETE ON ledger
BEGIN SELECT RAISE(ABORT, 'the ledger row is never deleted'); END;

CREATE TRIGGER ledger_only_grows BEFORE UPDATE ON ledger
WHEN NEW.ledger_id <> OLD.ledger_id OR NEW.source_id <> OLD.source_id
    OR NEW.loss_spent < OLD.loss_spent OR NEW.delta_spent < OLD.delta_spent
    OR NEW.loss_ceiling < OLD.loss_ceiling OR NEW.delta_ceiling < OLD.delta_ceiling
    OR (OLD.pure_spent IS NULL AND NEW.pure_spent IS NOT NULL) OR NEW.pure_spent < OLD.pure_spent
    OR (NEW.pure_ceiling IS NULL) <> (OLD.pure_ceiling IS NULL) OR NEW.pure_ceiling < OLD.pure_ceiling
    OR NEW.entries < OLD.entries{_DECLARED}
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
    OR NEW.pure IS NOT OLD.pure{_STAYS}
    OR NEW.worker_id <> OLD.worker_id
BEGIN SELECT RAISE(ABORT, 'a charge moves once, from reserved to its end'); END;

CREATE TRIGGER entry_kept BEFORE DELETE ON entry
BEGIN SELECT RAISE(ABORT, 'an entry is never deleted'); END;

CREATE TRIGGER entry_fixed BEFORE UPDATE ON entry
BEGIN SELECT RAISE(ABORT, 'an entry is never changed'); END;
"""

_REGISTRY_TABLES = """
CREATE TABLE source (
    source_id TEXT PRIMARY KEY,
    ledger_id TEXT NOT NULL,
    ledger_path TEXT NOT NULL,
    entries INTEGER NOT NULL CHECK (entries >= 1),
    head TEXT NOT NULL,
    state TEXT NOT NULL
) STRICT;

CREATE TABLE fingerprint (
    fingerprint TEXT NOT NULL,
    source_id TEXT NOT NULL REFERENCES source (source_id),
    PRIMARY KEY (fingerprint, source_id)
) STRICT;

CREATE TABLE act (
    act_id INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('register', 'override')),
    source_id TEXT NOT NULL REFERENCES source (source_id),
    ledger_id TEXT NOT NULL,
    ledger_path TEXT NOT NULL,
    detail TEXT NOT NULL
) STRICT;

CREATE TRIGGER source_kept BEFORE DELETE ON source
BEGIN SELECT RAISE(ABORT, 'a source is never forgotten'); END;

CREATE TRIGGER source_named_once BEFORE UPDATE ON source
WHEN NEW.source_id <> OLD.source_id
BEGIN SELECT RAISE(ABORT, 'a source keeps its name'); END;

CREATE TRIGGER fingerprint_kept BEFORE DELETE ON fingerprint
BEGIN SELECT RAISE(ABORT, 'a fingerprint is never forgotten'); END;

CREATE TRIGGER fingerprint_fixed BEFORE UPDATE ON fingerprint
BEGIN SELECT RAISE(ABORT, 'a fingerprint is never changed'); END;

CREATE TRIGGER act_kept BEFORE DELETE ON act
BEGIN SELECT RAISE(ABORT, 'an act is never deleted'); END;

CREATE TRIGGER act_fixed BEFORE UPDATE ON act
BEGIN SELECT RAISE(ABORT, 'an act is never changed'); END;
"""


_TABLES_4 = _LEDGER_TABLES.replace(_NAMED_INDEX, "")
"""The statements of format 4, where nothing was bought for blocks."""
_TABLES_3, _RULES_3 = _TABLES_4.replace(_BLOCKS, ""), _LEDGER_RULES.replace(_DECLARED, "")
"""The statements of format 3, which knew no blocks of time."""
_TABLES_2, _RULES_2 = _TABLES_3.replace(_PURCHASE, ""), _RULES_3.replace(_STAYS, "")
"""The statements of format 2, whose charges had no records."""


def _from_format_1(connection: sqlite3.Connection) -> None:
    format_1.upgrade(connection, tables=statements(_TABLES_2), rules=statements(_RULES_2))


def _from_format_2(connection: sqlite3.Connection) -> None:
    """No row changes: existing charges have no record."""
    _add(connection, _PURCHASE, to=["charge"], rule="charge_moves_once", rules=_RULES_3)


def _from_format_3(connection: sqlite3.Connection) -> None:
    """No row changes: no blocks were declared, and every charge was paid by the data set as a whole."""
    _add(connection, _BLOCKS, to=["ledger", "entry"], rule="ledger_only_grows", rules=_LEDGER_RULES)


def _from_format_4(connection: sqlite3.Connection) -> None:
    """No row changes, and the index is empty: nothing was bought for blocks."""
    connection.execute(next(statements(_NAMED_INDEX)))


def _add(connection: sqlite3.Connection, column: str, *, to: Sequence[str], rule: str, rules: str) -> None:
    """Add a column to tables, and replace the trigger that guards it."""
    for table in to:
        connection.execute(f"ALTER TABLE {table} ADD COLUMN {column.removeprefix(', ')}")
    connection.execute(f"DROP TRIGGER {rule}")
    for statement in statements(rules):
        if statement.startswith(f"CREATE TRIGGER {rule} "):
            connection.execute(statement)


_FORMAT_1 = Format(name="ledger", application_id=0x4C415031, version=1, schema=format_1.SCHEMA)
_FORMAT_2 = replace(_FORMAT_1, version=2, schema=_TABLES_2 + _RULES_2, earlier=_FORMAT_1, upgrade=_from_format_1)
_FORMAT_3 = replace(_FORMAT_2, version=3, schema=_TABLES_3 + _RULES_3, earlier=_FORMAT_2, upgrade=_from_format_2)
_FORMAT_4 = replace(_FORMAT_3, version=4, schema=_TABLES_4 + _LEDGER_RULES, earlier=_FORMAT_3, upgrade=_from_format_3)
LEDGER_FORMAT = replace(_FORMAT_4, version=5, schema=_LEDGER_TABLES + _LEDGER_RULES, earlier=_FORMAT_4, upgrade=_from_format_4)
REGISTRY_FORMAT = Format(name="registry", application_id=0x4C415052, version=1, schema=_REGISTRY_TABLES)
