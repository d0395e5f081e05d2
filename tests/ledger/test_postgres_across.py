"""Reservations and answers of several data sets in one statement: each comes out as it would alone, whatever becomes of the others."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest

from lapwing.errors import LapwingError
from lapwing.kernel.accounting import Cost
from lapwing.kernel.permit import Permit, issue
from lapwing.ledger.postgres import across, policy
from lapwing.ledger.postgres.batch import Batch, commit_columns
from lapwing.ledger.postgres.connection import RETRY_SECONDS, Connection
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.postgres.shared import SharedPostgresLedger
from lapwing.ledger.postgres.verify import verify
from lapwing.ledger.protocol import Request
from tests.ledger.cluster import Cluster
from tests.ledger.pg import Place, new_place
from tests.ledger.support import pure_budget, request
from tests.ledger.test_postgres_batch import Told, one_by_one, told

ROOT = Path(__file__).parents[2]
SHARED_SECONDS_MAX = 240


def places_of(cluster: Cluster, database: str, directory: Path, count: int) -> list[Place]:
    return [new_place(cluster, database, directory) for _ in range(count)]


@contextmanager
def shared(places: Sequence[Place], units: int = 1000) -> Iterator[list[SharedPostgresLedger]]:
    """New ledgers, opened as a server opens them."""
    with ExitStack() as opened:
        for place in places:
            place.create(pure_budget(units)).disconnect()
        yield [
            opened.enter_context(SharedPostgresLedger.open(place.dsn, source_id=place.source_id, anchors=place.anchors)) for place in places
        ]


@contextmanager
def crossing(dsn: str) -> Iterator[across.Crossing]:
    reserve, commit = (across.CrossDataSetBatch(kind, dsn, RETRY_SECONDS) for kind in (across._RESERVE, across._COMMIT))
    try:
        yield across.Crossing(reserve, commit)
    finally:
        reserve.close()
        commit.close()


def part_of(ledger: PostgresLedger, batch: Batch) -> across.LedgerPart:
    return across.LedgerPart(ledger.ledger_id, ledger.epoch, ledger._known, [*batch.columns, batch.purchases])


def answers_of(ledger: PostgresLedger, answers: Sequence[tuple[Permit, bytes]]) -> across.LedgerPart:
    return across.LedgerPart(ledger.ledger_id, ledger.epoch, ledger._known, commit_columns(answers))


def threads_of(acts: Sequence[Callable[[], None]]) -> None:
    gate = threading.Barrier(len(acts))

    def one(act: Callable[[], None]) -> None:
        gate.wait()
        act()

    threads = [threading.Thread(target=one, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def require_sound(place: Place, ledger: PostgresLedger) -> None:
    assert verify(ledger.connection, place.source_id, anchors=place.anchors).problems == ()


FATES = (
    *("one too many", "closed", "used key", "suspended", "ended worker", "rolled back", "broken rule", "superseded"),
    "same key twice",
)
"""Of a data set that is asked for two requests, beside "fits"."""


def with_fate(place: Place, fate: str) -> PostgresLedger:
    ledger = place.create(pure_budget(20))
    permit = ledger.reserve(request("before", loss=3))
    assert isinstance(permit, Permit)
    match fate:
        case "one too many":
            ledger.set_budget(pure_budget(6), reason="less")
        case "closed":
            ledger.close("asked")
        case "used key":
            ledger.commit(permit, b"answer")
        case "suspended":
            policy.admit(ledger, "ana", suspended=True)
        case "ended worker":
            assert place.declare_dead(permit.charge_id)
            place.open().disconnect()
        case "rolled back":
            place.execute(
                "SET session_replication_role = replica",
                f"DELETE FROM lapwing.entry WHERE ledger_id = '{ledger.ledger_id}' AND kind = 'reserve'",
                f"UPDATE lapwing.data_set SET entries = entries - 1, head = 'older' WHERE ledger_id = '{ledger.ledger_id}'",
            )
        case "broken rule":
            place.execute(
                "SET session_replication_role = replica",
                f"UPDATE lapwing.data_set SET charges = charges - 1 WHERE ledger_id = '{ledger.ledger_id}'",
            )
        case "superseded":
            place.execute(f"UPDATE lapwing.data_set SET superseded = true WHERE ledger_id = '{ledger.ledger_id}'")
    return ledger


def asked(fate: str) -> list[Request]:
    second = {"used key": "before", "same key twice": "one"}.get(fate, "two")
    return [request("one", loss=2), request(second, loss=2)]


def result_of(batch: Batch, ledger: PostgresLedger, decided: across.PartOutcome | None) -> list[Told]:
    """As :class:`SharedPostgresLedger` goes on: what was left out is asked alone."""
    if decided is not None:
        return [told(one) for one in batch.permits(decided.marks)]
    try:
        return [told(one) for one in ledger._reserve_batch(batch)]
    except LapwingError as error:
        return [error.code] * len(batch.requests)


@pytest.mark.parametrize("fate", FATES)
def test_what_becomes_of_one_data_set_does_not_concern_the_others(cluster: Cluster, database: str, tmp_path: Path, fate: str) -> None:
    """A data set with some fate between two that are well, against each of them asked alone."""
    fates = ("fits", fate, "fits")
    places, twins = places_of(cluster, database, tmp_path, 3), places_of(cluster, database, tmp_path, 3)
    with ExitStack() as opened, crossing(places[0].dsn) as both:
        ledgers = [with_fate(place, one) for place, one in zip(places, fates, strict=True)]
        alone = [with_fate(place, one) for place, one in zip(twins, fates, strict=True)]
        for ledger in (*ledgers, *alone):
            opened.callback(ledger._connection.close)
        batches = [Batch.of(asked(one)) for one in fates]
        parts = [part_of(ledger, batch) for ledger, batch in zip(ledgers, batches, strict=True)]
        decided = both.reservations._send(parts)
        if fate == "broken rule":
            assert decided == [None] * 3, "the statement is undone, and each is asked alone"
        else:
            assert [one is not None for one in decided] == [True, False, True]
        for batch, ledger, said, twin, one in zip(batches, ledgers, decided, alone, fates, strict=True):
            if one == "broken rule":
                assert result_of(batch, ledger, said) == ["ledger-rule"] * 2
            else:
                assert result_of(batch, ledger, said) == one_by_one(twin, list(batch.requests))
            assert ledger.balance() == twin.balance()
        assert ledgers[0].balance().spent == ledgers[2].balance().spent == Cost(loss=7, delta=0)


def test_a_data_set_that_is_unknown_is_left_out(cluster: Cluster, database: str, tmp_path: Path) -> None:
    places = places_of(cluster, database, tmp_path, 2)
    with places[0].create() as one, places[1].create() as other, crossing(places[0].dsn) as both:
        batches = [Batch.of([request("a")]) for _ in range(3)]
        parts = [
            part_of(one, batches[0]),
            across.LedgerPart("nothing", "e", one._known, [*batches[1].columns, [None]]),
            part_of(other, batches[2]),
        ]
        assert [said is not None for said in both.reservations._send(parts)] == [True, False, True]
        assert both.reservations._send(parts[1:2]) == [None]
        assert one.balance().spent == other.balance().spent == Cost(loss=1, delta=0)


def test_two_uses_of_one_data_set_in_one_statement_share_its_budget(cluster: Cluster, database: str, tmp_path: Path) -> None:
    [place] = places_of(cluster, database, tmp_path, 1)
    with place.create(pure_budget(5)) as one, place.open() as other, crossing(place.dsn) as both:
        batches = [Batch.of([request("a", loss=2)]), Batch.of([request("b", loss=2)]), Batch.of([request("c", loss=2)])]
        assert both.reservations._send([part_of(use, batch) for use, batch in zip((one, other, one), batches, strict=True)]) == [None] * 3
        decided = both.reservations._send([part_of(use, batch) for use, batch in zip((one, other), batches, strict=False)])
        assert [said.marks for said in decided if said is not None] == [[1], [2]]
        assert one.balance().spent == Cost(loss=4, delta=0)
        permits = [batch.permits(said.marks)[0] for batch, said in zip(batches, decided, strict=False) if said is not None]
        wrong = answers_of(one, [(permits[1], b"of the other")])
        right = answers_of(one, [(permits[0], b"own")])
        assert both.answers._send([right, wrong]) == [None, None], "a charge of another worker is not settled"
        assert both.answers._send([wrong]) == [None]


@pytest.mark.parametrize("size", [1, 2])
def test_what_is_sent_again_is_charged_once_and_found_alone(cluster: Cluster, database: str, tmp_path: Path, size: int) -> None:
    places = places_of(cluster, database, tmp_path, 2)
    with places[0].create() as one, places[1].create() as other, crossing(places[0].dsn) as both:
        ledgers = [one, other][:size]
        batches = [Batch.of([request("a", loss=2)]) for _ in ledgers]
        parts = [part_of(ledger, batch) for ledger, batch in zip(ledgers, batches, strict=True)]
        first = both.reservations._send(parts)
        again = both.reservations._send(parts)
        for ledger, batch, before, after in zip(ledgers, batches, first, again, strict=True):
            assert before is not None
            found = batch.permits(after.marks) if after is not None else ledger._reserve_batch(batch)
            assert found == batch.permits(before.marks)
            assert ledger.balance().spent == Cost(loss=2, delta=0)
        answers = [
            [(permit, b"answer") for permit in batch.permits(said.marks)] for batch, said in zip(batches, first, strict=True) if said
        ]
        stored = [answers_of(ledger, own) for ledger, own in zip(ledgers, answers, strict=True)]
        assert None not in both.answers._send(stored)
        before_again = [ledger.state() for ledger in ledgers]
        for ledger, own, after in zip(ledgers, answers, both.answers._send(stored), strict=True):
            assert after is not None or ledger.commit_many(own) == (None,)
        assert [ledger.state() for ledger in ledgers] == before_again


ANSWER_FATES = ("open", "same answer stored", "other answer stored", "forfeited", "other digest")


@pytest.mark.parametrize("fate", ANSWER_FATES[1:])
def test_answers_of_one_data_set_do_not_concern_the_others(cluster: Cluster, database: str, tmp_path: Path, fate: str) -> None:
    places = places_of(cluster, database, tmp_path, 3)
    with ExitStack() as opened, crossing(places[0].dsn) as both:
        ledgers = [opened.enter_context(place.create()) for place in places]
        answers = []
        for ledger, one in zip(ledgers, ("open", fate, "open"), strict=True):
            permit, beside = (ledger.reserve(request(key, loss=2)) for key in ("one", "two"))
            assert isinstance(permit, Permit) and isinstance(beside, Permit)
            if one == "same answer stored":
                ledger.commit(permit, b"answer")
            if one == "other answer stored":
                ledger.commit(permit, b"another")
            if one == "forfeited":
                ledger.forfeit(permit, incident=False)
            if one == "other digest":
                permit = issue(permit.charge_id, "another plan", permit.cost, nonce=permit.nonce)
            answers.append([(permit, b"answer"), (beside, b"answer beside")])
        parts = [answers_of(ledger, own) for ledger, own in zip(ledgers, answers, strict=True)]
        decided = both.answers._send(parts)
        assert [said is not None for said in decided] == [True, False, True]
        said = [None if one is None else one.code for one in ledgers[1].commit_many(answers[1])]
        assert said == [None if fate == "same answer stored" else "charge-not-open", None]
        for place, ledger, done in zip(places, ledgers, decided, strict=True):
            if done is not None:
                assert ledger.find("plan of one") is not None and ledger.find("plan of two") is not None
                assert done.state[2] == str(ledger.state().entries)
                ledger._advance(ledger.state())
            require_sound(place, ledger)


@pytest.mark.parametrize("beside", [False, True])
def test_answers_of_a_data_set_that_was_put_back_are_left_out(cluster: Cluster, database: str, tmp_path: Path, beside: bool) -> None:
    """Whoever asks alone then finds that the anchored entry is missing, and sends nothing."""
    places = places_of(cluster, database, tmp_path, 2)
    with places[0].create() as one, places[1].create() as other, crossing(places[0].dsn) as both:
        permits = [ledger.reserve(request("a")) for ledger in (one, other)]
        answers = [[(permit, b"answer")] for permit in permits if isinstance(permit, Permit)]
        places[0].execute(
            "SET session_replication_role = replica",
            f"DELETE FROM lapwing.entry WHERE ledger_id = '{one.ledger_id}' AND kind = 'reserve'",
            f"UPDATE lapwing.data_set SET head = 'older' WHERE ledger_id = '{one.ledger_id}'",
        )
        parts = [answers_of(one, answers[0]), *([answers_of(other, answers[1])] if beside else [])]
        assert [said is not None for said in both.answers._send(parts)] == [False, True][: len(parts)]
        with pytest.raises(LapwingError) as refusal:
            one.commit_many(answers[0])
        assert refusal.value.code == "ledger-rolled-back"


def test_threads_of_several_data_sets_go_together_and_each_is_told_its_own(
    cluster: Cluster, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some data sets have enough, one is closed, and one has room for three: as one by one, and in few statements."""
    sizes: list[int] = []
    plain = across.CrossDataSetBatch._send

    def counting(self: across.CrossDataSetBatch, parts: Sequence[across.LedgerPart]) -> list[across.PartOutcome | None]:
        sizes.append(len(parts))
        return plain(self, parts)

    monkeypatch.setattr(across.CrossDataSetBatch, "_send", counting)
    places = places_of(cluster, database, tmp_path, 6)
    with shared(places) as ledgers:
        ledgers[4].close("asked")
        ledgers[5].set_budget(pure_budget(7), reason="less")
        found: Counter[tuple[int, str]] = Counter()

        def asks(which: int, number: int) -> Callable[[], None]:
            def act() -> None:
                for again in range(3):
                    try:
                        permit = ledgers[which].reserve(request(f"{number} {again}", loss=2))
                        assert isinstance(permit, Permit)
                        ledgers[which].commit(permit, f"{which} {number} {again}".encode())
                        found[which, "stored"] += 1
                    except LapwingError as error:
                        found[which, error.code] += 1

            return act

        threads_of([asks(number % 6, number) for number in range(24)])
        assert found == {
            **{(which, "stored"): 12 for which in range(4)},
            (4, "data-set-closed"): 12,
            (5, "stored"): 3,
            (5, "budget-exceeded"): 9,
        }
        assert max(sizes) >= 3, "they went together"
        for which, (place, ledger) in enumerate(zip(places, ledgers, strict=True)):
            assert ledger.balance().spent.loss == (24, 24, 24, 24, 0, 6)[which]
            kept = place.anchors.newest(place.source_id)
            assert kept is not None and kept.entries == ledger.state().entries, "anchored before anybody hears of it"
            require_sound(place, ledger)
        for number in range(4):
            answer = ledgers[number].find(f"plan of {number} 0")
            assert answer is not None and answer.payload == f"{number} {number} 0".encode()


def test_a_data_set_that_others_hold_keeps_only_its_own_waiting(cluster: Cluster, database: str, tmp_path: Path) -> None:
    places = places_of(cluster, database, tmp_path, 3)
    with shared(places) as ledgers, psycopg.connect(cluster.dsn(database, role="postgres")) as holder:
        holder.execute("SELECT FROM lapwing.data_set WHERE ledger_id = %s FOR UPDATE", [ledgers[0].ledger_id])
        ended: dict[str, float] = {}
        begun = time.monotonic()

        def asks(which: int, number: int) -> Callable[[], None]:
            def act() -> None:
                for again in range(1 if which == 0 else 5):
                    permit = ledgers[which].reserve(request(f"{number} {again}"))
                    assert isinstance(permit, Permit)
                    ledgers[which].commit(permit, b"answer")
                ended[f"{which} {number}"] = time.monotonic() - begun

            return act

        held_up = threading.Thread(target=asks(0, 0))
        held_up.start()
        threads_of([asks(1 + number % 2, number) for number in range(6)])
        assert held_up.is_alive() and not any(name.startswith("0 ") for name in ended)
        assert len(ended) == 6
        holder.rollback()
        held_up.join(SHARED_SECONDS_MAX)
        assert "0 0" in ended
        assert [ledger.balance().spent.loss for ledger in ledgers] == [1, 15, 15]


def test_a_lost_reply_charges_and_stores_once(cluster: Cluster, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The statement was carried out, and the connection broke before anybody read what it said."""
    places = places_of(cluster, database, tmp_path, 4)
    lost = Counter[str]()
    plain = Connection._result

    def losing(self: Connection, connection: psycopg.Connection[tuple[object, ...]], statement: str, *others: object) -> object:
        result = plain(self, connection, statement, *others)  # type: ignore[arg-type]
        kind = next((kind for kind in ("reserve_across", "commit_across") if kind in statement), "")
        if kind and lost[kind] < 2:
            lost[kind] += 1
            connection.close()
            raise psycopg.OperationalError("the connection is lost")
        return result

    with shared(places) as ledgers:
        monkeypatch.setattr(Connection, "_result", losing)

        def asks(number: int) -> Callable[[], None]:
            def act() -> None:
                permit = ledgers[number % 4].reserve(request(f"{number}", loss=2))
                assert isinstance(permit, Permit)
                ledgers[number % 4].commit(permit, f"{number}".encode())

            return act

        threads_of([asks(number) for number in range(12)])
        assert lost == {"reserve_across": 2, "commit_across": 2}
        for place, ledger in zip(places, ledgers, strict=True):
            assert ledger.balance().spent.loss == 6
            require_sound(place, ledger)


def test_the_connections_end_with_the_last_use(cluster: Cluster, database: str, tmp_path: Path) -> None:
    places = places_of(cluster, database, tmp_path, 2)
    with shared(places[:1]) as [alone]:
        assert isinstance(alone.reserve(request("a")), Permit)
        assert across.crossing_of(alone._database) is None, "one data set needs no others"
        with shared(places[1:]) as [other]:
            made = across.crossing_of(alone._database)
            assert made is not None and isinstance(other.reserve(request("a")), Permit)
        assert across.crossing_of(alone._database) is None
        assert isinstance(alone.reserve(request("b")), Permit)
    assert not across._crossings
    with pytest.raises(LapwingError) as refusal:
        made.reservations._connection.ask("SELECT 1", again=True)
    assert refusal.value.code == "ledger-disconnected"


def start_client(places: Sequence[Place], log: Path, name: str, *, threads: int, answers: int) -> subprocess.Popen[bytes]:
    anchors = getattr(places[0].anchors, "directory")  # noqa: B009
    command = [sys.executable, "-m", "tests.ledger.across_client", places[0].dsn, str(anchors), str(log), name, str(threads), str(answers)]
    return subprocess.Popen([*command, *(place.source_id for place in places)], cwd=ROOT)


def told_to(log: Path) -> list[tuple[str, str, int, str]]:
    lines = [line.split("|") for line in log.read_text(encoding="utf-8").splitlines()]
    return [(what, source, int(charge), key) for what, source, charge, key in lines]


def require_kept(places: Sequence[Place], events: Sequence[tuple[str, str, int, str]]) -> None:
    """Everything that anybody was told is in the database, each key has one charge, and the sums agree."""
    for place in places:
        with place.open() as ledger:  # forfeits what the dead have left
            rows = ledger.connection.look(
                "SELECT charge_id, request_id, state::pg_catalog.text, payload, loss::pg_catalog.int8 FROM lapwing.charge"
                " WHERE ledger_id = %s",
                [ledger.ledger_id],
            )
            charges = {charge: (key, state, payload) for charge, key, state, payload, _ in rows}
            assert ledger.balance().spent.loss == sum(loss for *_, loss in rows) <= ledger.balance().budget.loss_total
            for what, source, charge, key in events:
                if source == place.source_id and what in {"permit", "stored"}:
                    assert charges[charge][0] == key
                if source == place.source_id and what == "stored":
                    assert charges[charge][1:] == ("committed", f"answer to {key}".encode())
            assert all(state != "reserved" for _, state, _ in charges.values())
            require_sound(place, ledger)


def test_two_processes_whose_data_sets_cross_do_not_lock_each_other_out(cluster: Cluster, tmp_path: Path) -> None:
    database = cluster.new_database()
    places = places_of(cluster, database, tmp_path, 8)
    for place in places:
        place.create(pure_budget(10_000)).disconnect()
    log = tmp_path / "log"
    clients = [start_client(order, log, name, threads=8, answers=12) for order, name in ((places, "a"), (places[::-1], "b"))]
    assert [client.wait(SHARED_SECONDS_MAX) for client in clients] == [0, 0]
    events = told_to(log)
    assert Counter(what for what, *_ in events) == {"permit": 192, "stored": 192}
    require_kept(places, events)
    with cluster.superuser(database) as superuser:
        assert superuser.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = %s", [database]).fetchall() == [(0,)]


def test_a_process_that_is_killed_leaves_every_data_set_sound(cluster: Cluster, database: str, tmp_path: Path) -> None:
    places = places_of(cluster, database, tmp_path, 5)
    for place in places:
        place.create(pure_budget(400)).disconnect()
        with place.open() as owner:  # kills are not what is to close it
            policy.set_limits(owner, policy.Limits(lost_workers_max=1000))
    log, dice = tmp_path / "log", random.Random(5)
    log.touch()
    for number in range(4):
        before = len(told_to(log))
        client = start_client(places, log, f"{number}", threads=12, answers=400)
        until = time.monotonic() + SHARED_SECONDS_MAX
        while len(told_to(log)) < before + 20 + dice.randrange(60) and client.poll() is None:
            assert time.monotonic() < until
            time.sleep(0.01)
        client.kill()
        client.wait()
    events = told_to(log)
    assert len([event for event in events if event[0] == "stored"]) > 20
    require_kept(places, events)
