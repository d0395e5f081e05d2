"""Many processes on one data set, killed processes and servers, and older backups: what clients saw against what the ledger says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lapwing.errors import LedgerError
from lapwing.kernel.accounting import Cost
from lapwing.kernel.permit import Permit
from lapwing.ledger.postgres import policy
from lapwing.ledger.postgres.anchors import FileAnchors
from lapwing.ledger.postgres.verify import verify
from tests.ledger.cluster import Cluster
from tests.ledger.pg import Place, new_place
from tests.ledger.support import pure_budget, request

ROOT = Path(__file__).resolve().parents[2]
Event = dict[str, Any]


Requests = list[list[tuple[str, str, int, str]]]
"""For each process: analyst, key, cost, and the step at which it is to stop."""


def run_clients(place: Place, requests: Requests, log: Path) -> list[Event]:
    clients = start_clients(place, requests, log)
    assert clients.wait(120) == 0
    return events_of(log)


def events_of(log: Path) -> list[Event]:
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []


def start_clients(place: Place, requests: Requests, log: Path) -> subprocess.Popen[str]:
    assert isinstance(place.anchors, FileAnchors)
    command = {
        "dsn": place.dsn,
        "source_id": place.source_id,
        "anchors": str(place.anchors.directory),
        "log": str(log),
        "requests": requests,
    }
    clients = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("pg_client.py"))],
        stdin=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
    )
    assert clients.stdin is not None
    with clients.stdin:
        clients.stdin.write(json.dumps(command))
    return clients


def violations(place: Place, events: list[Event], budget: int) -> list[str]:
    """What clients saw and the ledger does not bear out. It trusts neither the code nor the balance."""
    with place.cluster.superuser(place.database) as connection:
        rows = connection.execute(
            "SELECT analyst, request_id, state, encode(payload, 'hex'), loss::text FROM lapwing.charge"
            " JOIN lapwing.data_set USING (ledger_id) WHERE source_id = %s",
            [place.source_id],
        ).fetchall()
    charges = {(analyst, key): (state, payload, int(str(loss))) for analyst, key, state, payload, loss in rows}
    found = []
    if sum(loss for _, _, loss in charges.values()) > budget:
        found.append("overspent")
    answers: dict[tuple[str, str], set[str]] = {}
    for event in events:
        key = (event.get("analyst", ""), event.get("key", ""))
        if event["event"] == "permit" and (key not in charges or charges[key][2] != event["loss"]):
            found.append(f"permit without its charge: {key}")
        if event["event"] == "answer":
            answers.setdefault(key, set()).add(event["payload"])
            if key not in charges or charges[key][:2] != ("committed", event["payload"]):
                found.append(f"answer without its committed charge: {key}")
    found += [f"several answers: {key}" for key, given in answers.items() if len(given) > 1]
    with place.open() as ledger:
        found += verify(ledger.connection, place.source_id, anchors=place.anchors).problems
    return found


@pytest.mark.slow
def test_32_clients_spend_a_hot_data_set_to_the_last_unit(place: Place, tmp_path: Path) -> None:
    with place.create(pure_budget(100)) as ledger:
        events = run_clients(place, [[("ana", f"{client}.{n}", 1, "") for n in range(6)] for client in range(32)], tmp_path / "log")
        assert violations(place, events, 100) == []
        seen = Counter(event["event"] for event in events)
        assert seen == Counter(permit=100, answer=100, refused=92)
        assert {event["code"] for event in events if event["event"] == "refused"} == {"budget-exceeded"}
        assert ledger.balance().remaining == Cost.zero()


@pytest.mark.slow
def test_a_hundred_colluding_analysts_do_not_pass_the_cap(place: Place, tmp_path: Path) -> None:
    with place.create(pure_budget(250)) as ledger:
        names = [f"analyst {number}" for number in range(100)]
        for name in names:
            policy.admit(ledger, name, loss_total=200)
        # 100 analysts in 10 processes, one to three units at a time: the cap is reached exactly, because single units are asked for too.
        requests = [[(name, f"{n}", 1 + n % 3, "") for n in (2, 1, 0, 3) for name in names[start::10]] for start in range(10)]
        events = run_clients(place, requests, tmp_path / "log")
        assert violations(place, events, 250) == []
        assert ledger.balance().remaining == Cost.zero()
        assert sum(event["loss"] for event in events if event["event"] == "permit") == 250


@pytest.mark.slow
def test_one_key_is_charged_once_however_many_ask(place: Place, tmp_path: Path) -> None:
    with place.create(pure_budget(100)) as ledger:
        events = run_clients(place, [[("ana", "same", 7, "")] * 3] * 8, tmp_path / "log")
        assert violations(place, events, 100) == []
        assert Counter(event["event"] for event in events)["permit"] == 1
        assert ledger.balance().spent == Cost(loss=7, delta=0)


@pytest.mark.slow
def test_clients_killed_at_every_step_leave_a_sound_ledger(place: Place, tmp_path: Path) -> None:
    place.create(pure_budget(1000)).disconnect()
    with place.open() as ledger:
        policy.set_limits(ledger, policy.Limits(lost_workers_max=1000))
    stops = ["before reserve", "after reserve", "after commit"]
    events: list[Event] = []
    for round_number in range(3):
        requests = [
            [("ana", f"{round_number}.{client}.{n}", 2, stops[client % 3] if n == 2 else "") for n in range(3)] for client in range(6)
        ]
        events = run_clients(place, requests, tmp_path / "log")
    assert violations(place, events, 1000) == []
    # The same keys again: whoever got an answer, or whose answer was stored, gets the same; whoever was killed before that, none.
    again = run_clients(place, [[("ana", f"{r}.{c}.{n}", 2, "") for n in range(3)] for r in range(3) for c in range(6)], tmp_path / "log")
    assert violations(place, again, 1000) == []
    codes = Counter(event["code"] for event in again if event["event"] == "refused")
    assert codes == Counter({"request-forfeited": 6})


@pytest.mark.slow
@pytest.mark.parametrize("step", ["after reserve", "after commit"])
def test_a_worker_that_slept_and_was_taken_for_dead_cannot_commit(place: Place, tmp_path: Path, step: str) -> None:
    with place.create(pure_budget(10)) as ledger:
        clients = start_clients(place, [[("ana", "one", 3, f"sleep {step}")]], tmp_path / "log")
        deadline = time.monotonic() + 60
        while not (asleep := [event for event in events_of(tmp_path / "log") if event["event"] == "asleep"]):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert place.declare_dead(1)
        place.open().disconnect()
        os.kill(asleep[0]["pid"], signal.SIGCONT)
        assert clients.wait(60) == 0
        events = events_of(tmp_path / "log")
        assert violations(place, events, 10) == []
        if step == "after reserve":
            assert [event for event in events if event["event"] == "answer"] == []
            assert events[-1] == {"event": "stopped", "code": "charge-not-open"}
        else:
            assert events[-1]["event"] == "answer"
        assert ledger.balance().spent == Cost(loss=3, delta=0)


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[Cluster]:
    """A server that is stopped and restored without disturbing other tests; nothing is on its disk unless somebody waited for that."""
    running = Cluster(["wal_writer_delay=10s"])
    yield running
    running.close()


@pytest.mark.slow
def test_a_killed_server_keeps_every_charge_and_workers_go_on(own_cluster: Cluster, tmp_path: Path) -> None:
    place = new_place(own_cluster, own_cluster.new_database(), tmp_path)
    with place.create(pure_budget(100)) as ledger:
        permits = []
        for number in range(4):
            permit = ledger.reserve(request(f"{number}", loss=3))
            assert isinstance(permit, Permit)
            permits.append(permit)
            own_cluster.crash()
        for permit in permits:
            ledger.commit(permit, b"answer")
        assert ledger.balance().spent == Cost(loss=12, delta=0)
        assert verify(ledger.connection, place.source_id, anchors=place.anchors).problems == ()


@pytest.mark.slow
@pytest.mark.parametrize("steps", ["reserve", "commit"])
def test_without_the_wait_for_the_disk_a_killed_server_forgets(own_cluster: Cluster, tmp_path: Path, steps: str) -> None:
    """What the test above would see if the wait were missing: that it can fail. The server writes on its own every ten seconds, which may
    be just then; not time after time."""
    assert any(_forgets(own_cluster, tmp_path / f"{attempt}", steps) for attempt in range(5))


def _forgets(own_cluster: Cluster, directory: Path, steps: str) -> bool:
    directory.mkdir()
    place = new_place(own_cluster, own_cluster.new_database(), directory)
    with place.create(pure_budget(100)) as ledger:
        permit = ledger.reserve(request("kept"))
        assert isinstance(permit, Permit)
        place.execute("CREATE OR REPLACE PROCEDURE lapwing.wait_for_disk() LANGUAGE plpgsql AS $$ BEGIN END $$")
        if steps == "reserve":
            assert isinstance(ledger.reserve(request("forgotten")), Permit)
            own_cluster.crash()
            if ledger.balance().spent != Cost(loss=1, delta=0):
                return False
            # The charge is gone, and the anchor knows.
            with pytest.raises(LedgerError) as refusal:
                ledger.reserve(request("next"))
            assert refusal.value.code == "ledger-rolled-back"
            return True
        ledger.commit(permit, b"forgotten")
        assert ledger.find("plan of kept") is not None
        own_cluster.crash()
        return ledger.find("plan of kept") is None


@pytest.mark.slow
def test_an_answer_that_was_found_is_on_the_disk(own_cluster: Cluster, tmp_path: Path) -> None:
    """Another worker committed it without waiting, and died; whoever was shown it can rely on it."""
    place = new_place(own_cluster, own_cluster.new_database(), tmp_path)
    with place.create(pure_budget(100)) as ledger, place.open() as other:
        permit = ledger.reserve(request("one"))
        assert isinstance(permit, Permit)
        with own_cluster.superuser(place.database) as connection:
            connection.autocommit = False
            connection.execute(
                "SELECT set_config('synchronous_commit', 'off', true),"
                " set_config('lapwing.flush_follows', pg_current_xact_id()::text, true)"
            )
            connection.execute(
                "SELECT lapwing.commit(%s, %s, %s, 1, 'plan of one', 1, 0, NULL, 'answer')", [ledger.ledger_id, ledger.epoch, permit.nonce]
            )
        found = other.find("plan of one")
        assert found is not None
        own_cluster.crash()
        assert other.find("plan of one") == found == other.reserve(request("one"))


@pytest.mark.slow
def test_an_older_backup_is_always_detected(own_cluster: Cluster, tmp_path: Path) -> None:
    """At once, or with the next reservation, or when it is opened; and nobody goes on with it who has other anchors."""
    place = new_place(own_cluster, own_cluster.new_database(), tmp_path)
    backups = []
    with place.create(pure_budget(1000)) as ledger:
        for number in range(3):
            backup = tmp_path / f"backup {number}"
            own_cluster.backup(backup)
            backups.append(backup)
            assert isinstance(ledger.reserve(request(f"{number}", loss=number + 1)), Permit)
        for backup in backups:
            own_cluster.restore(backup)
            with pytest.raises(LedgerError) as refusal:
                ledger.reserve(request("next"))
            assert refusal.value.code == "ledger-rolled-back"
            with pytest.raises(LedgerError) as refusal:
                place.open()
            assert refusal.value.code == "ledger-rolled-back"
    # Another host that has other anchors is not let in, whatever it says: it cannot know what it does not see.
    other = Place(own_cluster, place.database, FileAnchors(tmp_path / "other host"), place.source_id)
    for override in (False, True):
        with pytest.raises(LedgerError) as refusal:
            other.open(override=override, reason="does not know better")
        assert refusal.value.code == "anchor-missing"
    # The owner accepts it: the newest backup had 1 + 2 of our 1 + 2 + 3.
    with place.open(override=True, reason="restored after a disk failure") as restored:
        assert restored.balance().spent == Cost(loss=3 + 3, delta=0)
        assert isinstance(restored.reserve(request("after")), Permit)
        assert verify(restored.connection, place.source_id, anchors=place.anchors).problems == ()
