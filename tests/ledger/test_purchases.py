"""What a charge bought is stored beside it, in its hash, in both ledgers and on the way between them."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from lapwing.errors import LapwingError
from lapwing.kernel.permit import Permit
from lapwing.ledger.local.ledger import LocalLedger
from lapwing.ledger.local.schema import LEDGER_FORMAT
from lapwing.ledger.local.sqlite_file import statements
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.postgres.transfer import move
from lapwing.ledger.postgres.verify import verify
from lapwing.ledger.protocol import Request
from lapwing.ledger.purchases import AskedTerms, PurchaseKind, PurchaseRecord
from tests.ledger.pg import Place
from tests.ledger.support import ledger_path, new_ledger, open_ledger, pure_budget, request

TERMS = AskedTerms(epsilon="0.1", confidence="0.9", dialect="spark", reuse="auto", scaled_groups=True)
NORMS = PurchaseRecord(PurchaseKind.NORMS, parent="asked", name="abc", terms=TERMS)
WHOLE = PurchaseRecord(PurchaseKind.STATEMENT, terms=TERMS, histograms=("one", "two"))
PARTS = {
    "asked/norms": NORMS,
    "asked": WHOLE,
    "older": None,
    "session": PurchaseRecord(PurchaseKind.WEIGHTS),
}


def recorded(key: str) -> Request:
    return replace(request(key), purchase=PARTS[key])


def buy(ledger: LocalLedger | PostgresLedger) -> None:
    for key in PARTS:
        permit = ledger.reserve(recorded(key))
        assert isinstance(permit, Permit)
        ledger.commit(permit, key.encode())


def require_kept(ledger: LocalLedger | PostgresLedger) -> None:
    assert [ledger.purchase(number) for number in range(1, 6)] == [*PARTS.values(), None]
    assert [one.purchase for one in ledger.bought(version=1, limit=9)] == list(reversed(PARTS.values()))
    assert [one.purchase for one in ledger.bought(version=1, limit=9, kind=PurchaseKind.NORMS, begins="norms ")] == [NORMS]
    of_lines = ledger.bought(version=1, limit=9, kind=PurchaseKind.NORMS, begins="SELECT")
    assert [one.purchase for one in of_lines] == [None, NORMS], "the line counts where there is no record"


def test_a_record_is_read_back_as_it_was_and_nothing_else_is_one() -> None:
    for record in (NORMS, WHOLE, PurchaseRecord(PurchaseKind.FIRST, parent="x")):
        assert PurchaseRecord.of_text(record.text()) == record
    for text in ("", "[]", "{}", '{"kind":"other"}', '{"kind":"norms","more":1}', '{"name":"a","kind":"norms"}', '{"kind": "norms"}'):
        with pytest.raises(LapwingError) as refusal:
            PurchaseRecord.of_text(text)
        assert refusal.value.code == "ledger-damaged"


def test_a_record_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger, pytest.raises(LapwingError) as refusal:
        ledger.reserve(replace(request("long"), purchase=replace(NORMS, name="x" * 200_000)))
    assert refusal.value.code == "request-invalid"


def test_the_local_ledger_keeps_what_was_bought(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        buy(ledger)
    with open_ledger(tmp_path) as ledger:
        require_kept(ledger)


def test_the_ledger_on_a_server_keeps_what_was_bought(place: Place) -> None:
    with place.create(pure_budget(20)) as ledger:
        buy(ledger)
        require_kept(ledger)
        batch = [replace(request(f"many {key}"), purchase=record) for key, record in PARTS.items()]
        assert all(isinstance(permit, Permit) for permit in ledger.reserve_many(batch))
        assert [ledger.purchase(number) for number in range(5, 9)] == [*PARTS.values()]
        assert verify(ledger.connection, place.source_id, anchors=place.anchors).problems == ()


def test_a_move_to_a_server_takes_records_along(tmp_path: Path, place: Place) -> None:
    with new_ledger(tmp_path) as local:
        buy(local)
    with open_ledger(tmp_path) as local:
        moved = move(local, place.dsn, source_id=place.source_id, source_fingerprint="files", anchors=place.anchors, was_closed=False)
    with moved as ledger:
        require_kept(ledger)
        assert verify(ledger.connection, place.source_id, anchors=place.anchors).problems == ()


CHANGES = {
    "another kind": "purchase = replace(purchase, 'norms', 'pilot') WHERE charge_id = 1",
    "another epsilon": "purchase = replace(purchase, '0.1', '0.2') WHERE charge_id = 2",
    "a removed record": "purchase = NULL WHERE charge_id = 1",
    "an added record": 'purchase = \'{"kind":"weights"}\' WHERE charge_id = 3',
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_record_is_found_in_a_file(tmp_path: Path, what: str) -> None:
    with new_ledger(tmp_path) as ledger:
        buy(ledger)
    with closing(sqlite3.connect(ledger_path(tmp_path), isolation_level=None)) as connection:
        with pytest.raises(sqlite3.IntegrityError, match="moves once"):
            connection.execute(f"UPDATE charge SET {CHANGES[what]}")
        [(rule,)] = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'charge_moves_once'").fetchall()
        for statement in ("DROP TRIGGER charge_moves_once", f"UPDATE charge SET {CHANGES[what]}", rule):
            connection.execute(statement)
    with pytest.raises(LapwingError) as refusal:
        open_ledger(tmp_path)
    assert refusal.value.code == "ledger-damaged"


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_record_is_found_on_a_server(place: Place, what: str) -> None:
    with place.create() as ledger:
        buy(ledger)
        place.execute(
            "ALTER TABLE lapwing.charge DISABLE TRIGGER ALL",
            f"UPDATE lapwing.charge SET {CHANGES[what]} AND ledger_id = '{ledger.ledger_id}'",
            "ALTER TABLE lapwing.charge ENABLE TRIGGER ALL",
        )
        problems = verify(ledger.connection, place.source_id, anchors=place.anchors).problems
        assert [problem for problem in problems if "a charge is not the one that was reserved" in problem], problems


def test_a_file_of_format_2_goes_on_with_its_charges_and_hashes_as_they_are(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        permit = ledger.reserve(request("old", loss=3))
        assert isinstance(permit, Permit)
        ledger.commit(permit, b"answer")
    before = LEDGER_FORMAT
    while before.version > 2:
        assert before.earlier is not None
        before = before.earlier
    assert before.version == 2 and "purchase" not in before.schema
    with closing(sqlite3.connect(ledger_path(tmp_path), isolation_level=None)) as connection:
        evidence = connection.execute("SELECT evidence FROM entry WHERE kind = 'reserve'").fetchall()
        fields = [1, "ana", "old", "plan of old", 1, "SELECT 'old'", f"{3:040}", f"{0:040}"]
        assert evidence == [(hashlib.sha256(json.dumps(fields, separators=(",", ":")).encode()).hexdigest(),)], "as before records"
        connection.execute("DROP INDEX charge_by_name")
        changed = "charge_moves_once", "ledger_only_grows"
        for name in changed:
            connection.execute(f"DROP TRIGGER {name}")
        for table, column in (("charge", "purchase"), ("entry", "blocks"), ("ledger", "blocks")):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        for rule in statements(before.schema):
            if rule.startswith(tuple(f"CREATE TRIGGER {name}" for name in changed)):
                connection.execute(rule)
        connection.execute("PRAGMA user_version = 2")
    with open_ledger(tmp_path) as ledger:
        assert ledger.purchase(1) is None and ledger.find("plan of old") is not None
        permit = ledger.reserve(recorded("asked/norms"))
        assert isinstance(permit, Permit) and ledger.purchase(permit.charge_id) == NORMS
    open_ledger(tmp_path).disconnect()
