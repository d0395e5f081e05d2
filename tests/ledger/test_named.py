"""What was bought for blocks of time is found again by its name, in both ledgers and on the way between them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from lapwing.errors import LapwingError
from lapwing.kernel.permit import Permit
from lapwing.ledger.local.ledger import LocalLedger
from lapwing.ledger.local.rows import NAMED_ANSWERS
from lapwing.ledger.local.schema import LEDGER_FORMAT
from lapwing.ledger.local.verify import verify as verify_local
from lapwing.ledger.postgres import policy
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.postgres.policy import Limits
from lapwing.ledger.postgres.transfer import move
from lapwing.ledger.postgres.verify import verify
from lapwing.ledger.protocol import NamedAnswer, Request
from lapwing.ledger.purchases import AskedTerms, PurchaseKind, PurchaseRecord, name_in, named_range
from tests.ledger.cluster import CURATOR_ROLE, Cluster
from tests.ledger.pg import Place, new_place
from tests.ledger.support import FINGERPRINT, SOURCE, execute, ledger_path, new_ledger, open_ledger, pure_budget, request

TERMS = AskedTerms(epsilon="0.1", confidence="0.9")
NAMES = ("k/-1", "k/1", "k/1/a", "k/10", "k/2", "k/A", "k/a")
"""In the order of their bytes."""


def part(key: str, name: str, *, version: int = 1, analyst: str = "ana", terms: AskedTerms | None = None) -> Request:
    return replace(request(key, version=version, analyst=analyst), purchase=PurchaseRecord(PurchaseKind.BLOCK, name=name, terms=terms))


def reserved(ledger: LocalLedger | PostgresLedger, one: Request) -> Permit:
    permit = ledger.reserve(one)
    assert isinstance(permit, Permit)
    return permit


def bought(ledger: LocalLedger | PostgresLedger, one: Request) -> int:
    permit = reserved(ledger, one)
    ledger.commit(permit, f"answer of {one.request_id}".encode())
    return permit.charge_id


def said(found: Sequence[NamedAnswer]) -> list[tuple[str, str]]:
    return [(one.name, one.stored.payload.decode().removeprefix("answer of ")) for one in found]


@pytest.fixture(params=["local", "server"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalLedger | PostgresLedger]:
    if request.param == "local":
        with new_ledger(tmp_path, budget=pure_budget(100)) as local:
            yield local
    else:
        place: Place = request.getfixturevalue("place")
        with place.create(pure_budget(100)) as server:
            yield server


def test_names_are_found_in_their_order_up_to_the_end_of_a_range(ledger: LocalLedger | PostgresLedger) -> None:
    for name in ("k/2", "k/a", "k/1/a", "k/-1", "k/10", "k/A", "k/1"):
        bought(ledger, part(name, name, terms=TERMS if name == "k/1" else None))
    bought(ledger, part("other", "j/1"))
    bought(ledger, part("longest", "z" * 120, terms=TERMS))

    def names(first: str, after: str) -> tuple[str, ...]:
        return tuple(one.name for one in ledger.named(first, after, version=1))

    assert names("k/", "k0") == names("k/", "k/~") == NAMES, "an end need not be a name"
    assert names("k/1", "k/2") == ("k/1", "k/1/a", "k/10"), "the first is in it, the end is not"
    assert names("k/1", "k/1") == names("k/2", "k/1") == names("", "") == names("k/1/b", "k/10") == ()
    assert names("k/10", "k/10#") == ("k/10",)
    assert names("", "~") == ("j/1", *NAMES, "z" * 120)
    [one] = ledger.named("k/1/", "k/1/~", version=1)
    assert one.stored == ledger.find("plan of k/1/a")


def test_of_two_with_one_name_the_first_that_was_committed_is_found(ledger: LocalLedger | PostgresLedger) -> None:
    slow, quick = reserved(ledger, part("slow", "k/1")), reserved(ledger, part("quick", "k/1", analyst="bo", terms=TERMS))
    assert ledger.named("k/", "k0", version=1) == ()
    ledger.commit(quick, b"answer of quick")
    ledger.commit(slow, b"answer of slow")
    bought(ledger, part("alone", "k/2"))
    assert said(ledger.named("k/", "k0", version=1)) == [("k/1", "quick"), ("k/2", "alone")]


def test_nothing_else_is_found(ledger: LocalLedger | PostgresLedger) -> None:
    kinds = [kind for kind in PurchaseKind if kind is not PurchaseKind.BLOCK]
    for kind in kinds:
        bought(ledger, replace(request(kind), purchase=PurchaseRecord(kind, name="k/1")))
    bought(ledger, request("k/1"))
    bought(ledger, part("older version", "k/1", version=2))
    ledger.forfeit(reserved(ledger, part("gone", "k/1")), incident=False)
    reserved(ledger, part("open", "k/1"))
    assert ledger.named("", "~", version=1) == ledger.named("", "~", version=3) == ()
    assert said(ledger.named("", "~", version=2)) == [("k/1", "older version")]


def test_what_was_bought_for_blocks_hides_nothing_else_that_was_bought(ledger: LocalLedger | PostgresLedger) -> None:
    bought(ledger, request("old"))
    bought(ledger, replace(request("release"), purchase=PurchaseRecord(PurchaseKind.RELEASE, name="r")))
    for number in range(3):
        bought(ledger, part(f"part {number}", f"k/{number}"))
    assert [one.summary for one in ledger.bought(version=1, limit=2)] == ["SELECT 'release'", "SELECT 'old'"]
    assert [one.summary for one in ledger.bought(version=1, limit=1, kind=PurchaseKind.RELEASE)] == ["SELECT 'release'"]
    assert ledger.bought(version=1, limit=9, kind=PurchaseKind.BLOCK, begins="-") == ()
    assert len(ledger.named("", "~", version=1)) == 3


def test_a_name_that_cannot_be_compared_is_refused(ledger: LocalLedger | PostgresLedger) -> None:
    for name in ("", "a b", 'a"', "a\\", "é", "a_b", "a\n", "x" * 121):
        with pytest.raises(LapwingError) as refusal:
            PurchaseRecord(PurchaseKind.BLOCK, name=name)
        assert refusal.value.code == "request-invalid", name
    with pytest.raises(LapwingError) as refusal:
        PurchaseRecord(PurchaseKind.BLOCK, name="a", parent="asked")
    assert refusal.value.code == "request-invalid"
    for end in ("a b", 'a"', "é", "x" * 121, "a\n"):
        for ends in ((end, "~"), ("a", end)):
            with pytest.raises(LapwingError) as refusal:
                ledger.named(*ends, version=1)
            assert refusal.value.code == "request-invalid", end


def test_the_text_of_a_record_begins_with_its_name() -> None:
    record = PurchaseRecord(PurchaseKind.BLOCK, name="z" * 120, terms=TERMS, histograms=("one",))
    assert record.text().startswith('{"kind":"block","name":"' + "z" * 120 + '",') and PurchaseRecord.of_text(record.text()) == record
    assert name_in(record.text()) == name_in(record.text()[:200]) == record.name
    first, after = named_range("k/1", "k/2")
    assert first <= PurchaseRecord(PurchaseKind.BLOCK, name="k/1").text() < after
    for text in ('{"kind":"block"}', '{"kind":"block","name":"a b"}', '{"kind":"block","parent":"x","name":"a"}'):
        with pytest.raises(LapwingError) as refusal:
            PurchaseRecord.of_text(text)
        assert refusal.value.code == "ledger-damaged", text
        with pytest.raises(LapwingError) as refusal:
            name_in(text)
        assert refusal.value.code == "ledger-damaged", text


def test_a_damaged_answer_in_a_file_is_refused(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        bought(ledger, part("k/1", "k/1"))
        bought(ledger, part("k/2", "k/2"))
        with closing(sqlite3.connect(ledger_path(tmp_path))) as connection:
            [(rule,)] = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'charge_moves_once'").fetchall()
        execute(ledger_path(tmp_path), "DROP TRIGGER charge_moves_once", "UPDATE charge SET payload = x'00' WHERE charge_id = 2", rule)
        assert said(ledger.named("k/1", "k/2", version=1)) == [("k/1", "k/1")]
        with pytest.raises(LapwingError) as refusal:
            ledger.named("k/", "k0", version=1)
        assert refusal.value.code == "ledger-damaged"


def test_a_file_looks_names_up_in_its_index(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        bought(ledger, part("k/1", "k/1"))
        bought(ledger, request("other"))
    with closing(sqlite3.connect(ledger_path(tmp_path))) as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {NAMED_ANSWERS}", [1, *named_range("k/", "k0")]).fetchall()
        assert len(plan) == 1 and "USING INDEX charge_by_name (version=? AND <expr>>? AND <expr><?)" in plan[0][3], plan


def as_format_4(path: Path) -> None:
    """The same ledger as a file of the fourth format, as an earlier version wrote it."""
    execute(path, "DROP INDEX charge_by_name", "PRAGMA user_version = 4")


def test_a_file_of_format_4_goes_on_in_place(tmp_path: Path) -> None:
    assert LEDGER_FORMAT.version == 5
    with new_ledger(tmp_path) as ledger:
        bought(ledger, request("old"))
        entries = ledger.history()
    as_format_4(ledger_path(tmp_path))
    with open_ledger(tmp_path) as ledger:
        assert ledger.history() == entries and ledger.find("plan of old") is not None
        bought(ledger, part("new", "k/1"))
        assert said(ledger.named("", "~", version=1)) == [("k/1", "new")]
    assert verify_local(ledger_path(tmp_path), source_id=SOURCE, fingerprint=FINGERPRINT, home=tmp_path / "home").problems == ()
    with closing(sqlite3.connect(ledger_path(tmp_path))) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (5,)


def test_a_changed_file_of_format_4_is_not_upgraded(tmp_path: Path) -> None:
    new_ledger(tmp_path).disconnect()
    as_format_4(ledger_path(tmp_path))
    execute(ledger_path(tmp_path), "CREATE INDEX charge_by_name ON charge (version)")
    kept = ledger_path(tmp_path).read_bytes()
    with pytest.raises(LapwingError) as refusal:
        open_ledger(tmp_path)
    assert refusal.value.code == "ledger-damaged" and ledger_path(tmp_path).read_bytes() == kept


def test_a_damaged_answer_on_a_server_is_refused(place: Place) -> None:
    with place.create() as ledger:
        bought(ledger, part("k/1", "k/1"))
        bought(ledger, part("k/2", "k/2"))
        place.execute(
            "ALTER TABLE lapwing.charge DISABLE TRIGGER ALL",
            f"UPDATE lapwing.charge SET payload = 'changed' WHERE charge_id = 2 AND ledger_id = '{ledger.ledger_id}'",
            "ALTER TABLE lapwing.charge ENABLE TRIGGER ALL",
        )
        assert said(ledger.named("k/1", "k/2", version=1)) == [("k/1", "k/1")]
        with pytest.raises(LapwingError) as refusal:
            ledger.named("k/", "k0", version=1)
        assert refusal.value.code == "ledger-damaged"


def test_answers_of_blocks_go_only_to_those_who_may_see_them(place: Place) -> None:
    with place.create() as ledger, replace(place, role=CURATOR_ROLE).open() as curator:
        slow = reserved(ledger, part("of ana", "k/1"))
        bought(ledger, part("of bo", "k/1", analyst="bo"))
        bought(ledger, part("of bo too", "k/2", analyst="bo"))
        ledger.commit(slow, b"answer of of ana")
        everything = [("k/1", "of bo"), ("k/2", "of bo too")]

        def seen(analyst: str | None) -> list[tuple[str, str]]:
            return said(curator.named("k/", "k0", version=1, analyst=analyst))

        assert seen(None) == seen("ana") == seen("bo") == everything and seen("eve") == []
        policy.set_limits(ledger, Limits(answers_shared=False))
        assert (seen(None), seen("ana"), seen("bo"), seen("eve")) == (everything, [("k/1", "of ana")], everything, [])
        policy.admit(ledger, "ana", suspended=True, reason="left")
        assert (seen("ana"), seen("bo")) == ([], everything)
        ledger.close("closed")
        assert (seen(None), seen("bo")) == (everything, [])


def test_a_move_to_a_server_takes_names_along(tmp_path: Path, place: Place) -> None:
    with new_ledger(tmp_path) as local:
        for name in ("k/2", "k/1"):
            bought(local, part(name, name, terms=TERMS))
        before = said(local.named("", "~", version=1))
        moved = move(local, place.dsn, source_id=place.source_id, source_fingerprint="named", anchors=place.anchors, was_closed=False)
    with moved as ledger:
        assert said(ledger.named("", "~", version=1)) == before == [("k/1", "k/1"), ("k/2", "k/2")]
        assert verify(ledger.connection, place.source_id, anchors=place.anchors).problems == ()


MANY = (
    "INSERT INTO lapwing.charge (ledger_id, charge_id, analyst, request_id, digest, version, summary, loss, delta, epoch, nonce, state,"
    " payload, payload_digest, purchase) SELECT '{ledger_id}', 1000 + n, 'ana', 'many ' || n, 'plan of many ' || n, 1, '', 1, 0, '', '',"
    " 'committed', 'a', encode(sha256('a'), 'hex'), CASE WHEN n % 10 = 0 THEN '{{\"kind\":\"block\",\"name\":\"m/' || n || '\"}}' END"
    " FROM generate_series(1, 5000) AS n",
    "INSERT INTO lapwing.entry (ledger_id, entry_id, at, kind, analyst, charge_id, loss, delta, detail, evidence, chained)"
    " SELECT '{ledger_id}', 1000 + n, '', 'commit', 'ana', 1000 + n, 0, 0, '', '', '' FROM generate_series(1, 5000) AS n",
)


@pytest.mark.parametrize("is_analysed", [False, True])
def test_a_server_looks_names_up_in_its_index(cluster: Cluster, tmp_path: Path, is_analysed: bool) -> None:
    """Also before the server has statistics, when it expects few rows. The plan is that of the function while it runs."""
    place = new_place(cluster, cluster.new_database(), tmp_path)
    with place.create() as ledger:
        bought(ledger, part("k/1", "k/1"))
        with cluster.superuser(place.database) as connection:
            connection.execute("SET session_replication_role = replica")  # no triggers
            for statement in MANY:
                connection.execute(statement.format(ledger_id=ledger.ledger_id).encode())
            connection.execute("VACUUM ANALYZE" if is_analysed else "SELECT")
        heard: list[str] = []
        with cluster.superuser(place.database) as connection:
            connection.add_notice_handler(lambda notice: heard.append(notice.message_primary or ""))
            for setting in ("log_min_duration = 0", "log_nested_statements = on", "log_level = notice"):
                connection.execute(f"LOAD 'auto_explain'; SET auto_explain.{setting}".encode())
            asked = [ledger.ledger_id, *named_range("m/", "m/2")]
            found = connection.execute("SELECT begins FROM lapwing.named(%s, 1, %s, %s, 'ana')", asked).fetchall()
            size = "SELECT reltuples FROM pg_class WHERE relname = 'charge_by_name'"
            connection.execute("VACUUM ANALYZE lapwing.charge")
            assert connection.execute(size.encode()).fetchone() == (501,), "only what was bought for blocks is in it"
        assert len(found) == 111
        [plan] = [text for text in heard if "DISTINCT ON" in text]
        assert "charge_by_name" in plan and "Seq Scan on charge" not in plan, plan
        [condition] = [line for line in plan.splitlines() if "Index Cond" in line and '"left"(purchase' in line]
        assert all(name in condition for name in ("ledger_id", "version", ">=", "<")), plan
        assert "Index Cond: ((ledger_id = c.ledger_id) AND (charge_id = c.charge_id))" in plan, "one entry of each charge is read"
