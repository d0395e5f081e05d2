"""Several answers in one statement come out as they would one by one, whatever became of their charges meanwhile."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from lapwing.errors import LapwingError, LedgerError
from lapwing.kernel.permit import Permit, issue
from lapwing.ledger import limits
from lapwing.ledger.postgres import across
from lapwing.ledger.postgres.batch import REQUESTS_MAX
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.postgres.shared import SharedPostgresLedger
from lapwing.ledger.postgres.verify import verify
from lapwing.ledger.protocol import StoredAnswer
from tests.ledger.cluster import Cluster
from tests.ledger.pg import Place, new_place
from tests.ledger.support import pure_budget, request, require_own_first

FATES = ("open", "same answer stored", "other answer stored", "forfeited", "of another worker", "other digest", "named twice")
"""What may have become of a charge whose answer is to be stored."""
Stored = Callable[[PostgresLedger, Sequence[tuple[Permit, bytes]]], list[str]]


def together(ledger: PostgresLedger, answers: Sequence[tuple[Permit, bytes]]) -> list[str]:
    return ["stored" if one is None else one.code for one in ledger.commit_many(answers)]


def one_by_one(ledger: PostgresLedger, answers: Sequence[tuple[Permit, bytes]]) -> list[str]:
    found = []
    for permit, payload in answers:
        try:
            ledger.commit(permit, payload)
            found.append("stored")
        except LapwingError as error:
            found.append(error.code)
    return found


def left_by(place: Place, fates: Sequence[str], store: Stored) -> tuple[list[str], list[tuple[object, ...]], tuple[object, ...]]:
    """What is said of charges with these fates, and the rows that are left."""
    with place.create(pure_budget(100)) as ledger, place.open() as other:
        answers = []
        for number, fate in enumerate(fates):
            by = other if fate == "of another worker" else ledger
            permit = by.reserve(request(f"{number}", analyst=("ana", "bo")[number % 2], loss=2))
            assert isinstance(permit, Permit)
            payload = f"answer {number}".encode()
            if fate == "same answer stored":
                ledger.commit(permit, payload)
            if fate == "other answer stored":
                ledger.commit(permit, b"another")
            if fate == "forfeited":
                ledger.forfeit(permit, incident=False)
            if fate == "other digest":
                permit = issue(permit.charge_id, "another plan", permit.cost, nonce=permit.nonce)
            answers += [(permit, payload)] * (2 if fate == "named twice" else 1)
        said = store(ledger, answers)
        kept = place.anchors.newest(place.source_id)
        assert kept is not None and kept.entries == ledger.state().entries, "anchored before anybody hears of it"
        with place.cluster.superuser(place.database) as superuser:
            charges = superuser.execute(
                "SELECT charge_id, analyst, state::text, payload, payload_digest FROM lapwing.charge WHERE ledger_id = %s ORDER BY 1",
                [ledger.ledger_id],
            ).fetchall()
            entries = superuser.execute(
                "SELECT array_agg((kind, analyst, charge_id, loss, delta, detail)::text ORDER BY entry_id) FROM lapwing.entry"
                " WHERE ledger_id = %s AND kind IN ('reserve', 'commit', 'forfeit')",
                [ledger.ledger_id],
            ).fetchall()
        assert verify(ledger.connection, place.source_id, anchors=place.anchors).problems == ()
        return said, charges, entries[0]


@pytest.mark.parametrize("fate", FATES)
def test_answers_together_leave_what_single_ones_leave(cluster: Cluster, database: str, tmp_path: Path, fate: str) -> None:
    fates = ["open", fate, "open"]
    places = [new_place(cluster, database, tmp_path / f"{number}") for number in range(2)]
    assert left_by(places[0], fates, together) == left_by(places[1], fates, one_by_one)


def test_every_fate_at_once(cluster: Cluster, database: str, tmp_path: Path) -> None:
    places = [new_place(cluster, database, tmp_path / f"{number}") for number in range(2)]
    said, charges, entries = left_by(places[0], FATES, together)
    assert (said, charges, entries) == left_by(places[1], FATES, one_by_one)
    assert said == ["stored", "stored", *["charge-not-open"] * 4, "stored", "stored"]


def test_all_that_are_open_are_stored_at_one_moment(place: Place) -> None:
    with place.create(pure_budget(100)) as ledger:
        permits = [one for one in ledger.reserve_many([request(f"{number}") for number in range(50)]) if isinstance(one, Permit)]
        assert ledger.commit_many([(permit, f"{permit.charge_id}".encode()) for permit in permits]) == (None,) * 50
        assert len({entry.at for entry in ledger.history(limit=50)}) == 1, "written together, not one by one"
        for number in range(50):
            again = ledger.reserve(request(f"{number}"))
            assert isinstance(again, StoredAnswer) and again.payload == f"{again.charge_id}".encode()
        assert verify(ledger.connection, place.source_id, anchors=place.anchors).problems == ()


def test_a_worker_that_was_taken_for_dead_stores_none_of_them(place: Place) -> None:
    with place.create() as ledger:
        permits = [one for one in ledger.reserve_many([request("one"), request("two")]) if isinstance(one, Permit)]
        assert place.declare_dead(permits[0].charge_id)
        place.open().disconnect()
        assert together(ledger, [(permit, b"answer") for permit in permits]) == ["charge-not-open"] * 2
        assert ledger.find("plan of one") is None


def test_answers_sent_again_are_found_stored(place: Place) -> None:
    with place.create() as ledger:
        permits = [one for one in ledger.reserve_many([request("one"), request("two")]) if isinstance(one, Permit)]
        answers = [(permit, f"{permit.charge_id}".encode()) for permit in permits]
        before = [together(ledger, answers), ledger.state()]
        assert [together(ledger, answers), ledger.state()] == before


@pytest.mark.parametrize("size", [0, REQUESTS_MAX + 1])
def test_as_many_answers_as_requests(place: Place, size: int) -> None:
    with place.create() as ledger:
        permit = ledger.reserve(request("one"))
        assert isinstance(permit, Permit)
        with pytest.raises(LedgerError) as refusal:
            ledger.commit_many([(permit, b"answer")] * size)
        assert refusal.value.code == "batch-size"


def _shared(place: Place) -> SharedPostgresLedger:
    with place.create(pure_budget(1_000)):
        pass
    return SharedPostgresLedger.open(place.dsn, source_id=place.source_id, anchors=place.anchors)


def _stored_at_once(ledger: SharedPostgresLedger, answers: Sequence[tuple[Permit, bytes]]) -> Counter[str]:
    gate, found = threading.Barrier(len(answers)), Counter[str]()

    def one(permit: Permit, payload: bytes) -> None:
        gate.wait()
        try:
            ledger.commit(permit, payload)
            found["stored"] += 1
        except LapwingError as error:
            found[error.code] += 1

    threads = [threading.Thread(target=one, args=answer) for answer in answers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_threads_store_together_and_one_that_may_not_stops_nobody(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    plain = PostgresLedger.commit_many

    def counting(self: PostgresLedger, answers: Sequence[tuple[Permit, bytes]]) -> tuple[LapwingError | None, ...]:
        sizes.append(len(answers))
        return plain(self, answers)

    monkeypatch.setattr(PostgresLedger, "commit_many", counting)
    with _shared(place) as ledger:
        permits = [one for one in ledger.reserve_many([request(f"{number}") for number in range(24)]) if isinstance(one, Permit)]
        for permit in permits[::6]:
            ledger.forfeit(permit, incident=False)
        with monkeypatch.context() as patch:
            patch.setattr(limits, "PAYLOAD_BYTES_MAX", 10)
            answers = [(permit, bytes(11) if number % 6 == 1 else b"answer") for number, permit in enumerate(permits)]
            assert _stored_at_once(ledger, answers) == {"stored": 16, "charge-not-open": 4, "answer-too-large": 4}
        assert sum(sizes) >= 10, "they went together"
        assert verify(ledger.connection, place.source_id, anchors=place.anchors).problems == ()


def test_large_answers_go_alone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(across, "BYTES_MAX", 100)
    weights: list[int] = []
    plain = PostgresLedger.commit_many

    def counting(self: PostgresLedger, answers: Sequence[tuple[Permit, bytes]]) -> tuple[LapwingError | None, ...]:
        weights.append(sum(len(payload) for _, payload in answers))
        return plain(self, answers)

    monkeypatch.setattr(PostgresLedger, "commit_many", counting)
    with _shared(place) as ledger:
        permits = [one for one in ledger.reserve_many([request(f"{number}") for number in range(24)]) if isinstance(one, Permit)]
        answers = [(permit, bytes(101 if number % 3 == 0 else 10)) for number, permit in enumerate(permits)]
        assert _stored_at_once(ledger, answers) == {"stored": 24}
        assert all(weight <= 100 for weight in weights), weights


def test_a_rule_that_one_answer_breaks_is_not_the_others(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: PostgresLedger, answers: Sequence[tuple[Permit, bytes]]) -> None:
        raise LedgerError("ledger-rule", "one of them")

    monkeypatch.setattr(PostgresLedger, "commit_many", broken)
    with _shared(place) as ledger:
        permits = [one for one in ledger.reserve_many([request(f"{number}") for number in range(8)]) if isinstance(one, Permit)]
        assert _stored_at_once(ledger, [(permit, b"answer") for permit in permits]) == {"stored": 8}


def test_a_request_finds_what_it_paid_for_itself_before_what_others_paid(place: Place) -> None:
    with place.create(pure_budget(20)) as ledger:
        require_own_first(ledger)
