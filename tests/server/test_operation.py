"""Metrics and readiness of a server with two workers, while its ledger, its shadow and a worker are down in turn."""

from __future__ import annotations

import re
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

import lapwing
from lapwing.curator.curator import Curator
from lapwing.data_set import DataSet
from lapwing.interfaces.http.identity.identities import Identities
from lapwing.interfaces.http.identity.rights import Grant, Role
from lapwing.interfaces.http.operation.dependencies import KEPT_SECONDS
from lapwing.owner.policies import admit_share
from tests.ledger.cluster import Cluster, server_programs
from tests.ledger.wired import new_wired
from tests.server.fleet import Replica
from tests.server.process import free_port
from tests.wire.world import shadow_url

pytestmark = [
    pytest.mark.xdist_group("server: operation"),
    pytest.mark.skipif(server_programs() is None, reason="PostgreSQL is not installed"),
]
SCRAPES = 12
BACK_SECONDS = 60.0
"""For a part that is there again to be seen."""
REPLY_SECONDS = 4.0
"""A reply is promised within two; the machine of the tests does other work too."""


@dataclass
class Operated:
    """A server with its two workers, and the servers of its ledger and its shadow."""

    replica: Replica
    ledger: Cluster
    shadow: Cluster
    data_set: str
    keys: dict[str, str]
    wire_port: int

    def get(self, path: str, by: str | None = None) -> tuple[int, str]:
        """Status and body of a reply, over a connection of its own: whichever worker takes it."""
        headers = {} if by is None else {"Authorization": f"Bearer {self.keys[by]}"}
        begun = time.monotonic()
        try:
            with urllib.request.urlopen(urllib.request.Request(f"{self.replica.url}{path}", headers=headers), timeout=30) as reply:
                status, text = reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                status, text = error.code, error.read().decode()
        assert time.monotonic() - begun < REPLY_SECONDS, path
        return status, text

    def metrics(self) -> dict[str, float]:
        """All samples of a scrape."""
        status, text = self.get("/metrics", "ops")
        assert status == 200, text
        lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
        return {sample: float(value) for sample, _, value in lines}

    def of_data_set(self, family: str) -> str:
        return f'{family}{{data_set="{self.data_set}"}}'

    def is_ready(self) -> bool:
        """All workers are, as far as so many calls tell."""
        return all(self.get("/health/ready")[0] == 200 for _ in range(4))

    def wait_until_down(self) -> None:
        """One worker hears of it, then what the others saw before is not kept any more."""
        wait_until(lambda: self.get("/health/ready")[0] == 503)
        time.sleep(2 * KEPT_SECONDS)


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + BACK_SECONDS
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.2)


@pytest.fixture(scope="module")
def operated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operated]:
    """Its ledger, its shadow and its identities are at three places."""
    base = tmp_path_factory.mktemp("operated")
    ledger, shadow = Cluster(), Cluster()
    try:
        wired = new_wired(base, ledger.dsn(ledger.new_database()))
        with DataSet(Curator(wired.directory, home=wired.home)) as data_set:
            data_set.prepare()
            admit_share(data_set.curator, "ada", 0.9, by="owner", reason="asks")
            name = data_set.curator.declaration.dataset.id
        replica = Replica(base / "server", {"LAPWING_HOME": str(wired.home)})
        replica.home.mkdir(mode=0o700)
        lines = ["[server]", f"port = {replica.port}", "workers = 2", "[wire]", f"port = {(wire_port := free_port())}"]
        lines += [f'shadow = "{shadow_url(shadow, "postgres")}"', "[[data_set]]", f'catalogue = "{wired.directory}"']
        (replica.home / "lapwing-server.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (replica.home / "lapwing-server.toml").chmod(0o600)
        identities = Identities(f"sqlite:///{replica.home / 'identities.db'}")
        for person, role in (("ada", Role.ANALYST), ("ops", Role.OPERATOR)):
            identities.grant(person, Grant(role, "*"))
        keys = {person: identities.new_key(person)[0] for person in ("ada", "ops")}
        identities.close()
        replica.start()
        yield Operated(replica, ledger, shadow, name, keys, wire_port)
        replica.stop()
    finally:
        ledger.close()
        shadow.close()


def test_every_scrape_sees_what_all_workers_counted(operated: Operated) -> None:
    for number in range(6):
        with lapwing.connect(operated.replica.url, token=operated.keys["ada"]) as data_set:
            data_set.ask(f"SELECT COUNT(*) AS n FROM patients WHERE birth_year > {1950 + number}", epsilon="0.001")
    scrapes = [operated.metrics() for _ in range(SCRAPES)]
    asked = [sample for sample in scrapes[0] if re.match(r'lapwing_requests_total\{method="POST",route="[^"]*/ask",status="200"\}', sample)]
    assert len(asked) == 1
    assert {one[asked[0]] for one in scrapes} == {6.0}
    assert {one[operated.of_data_set("lapwing_answers_total")] for one in scrapes} == {6.0}
    moments = f'lapwing_answer_moment_seconds_bucket{{data_set="{operated.data_set}",le="'
    assert {(one[f'{moments}0.125"}}'], one[f'{moments}+Inf"}}']) for one in scrapes} == {(0.0, 6.0)}
    assert {one["lapwing_workers"] for one in scrapes} == {2.0}
    left = {one[operated.of_data_set("lapwing_budget_left_ratio")] for one in scrapes}
    assert len(left) == 1 and 0.0 < left.pop() < 1.0
    assert {one[operated.of_data_set("lapwing_data_set_closed")] for one in scrapes} == {0.0}
    assert all(0.0 < one[operated.of_data_set("lapwing_version_age_seconds")] < 3_600 for one in scrapes)
    own = 'lapwing_requests_total{method="GET",route="/metrics",status="200"}'
    assert [one.get(own, 0.0) for one in scrapes] == [float(number) for number in range(SCRAPES)], "each sees those before it"


def test_the_counts_of_a_worker_that_was_killed_are_kept(operated: Operated) -> None:
    for path in ("/health/live", "/health/ready"):
        assert operated.get(path)[0] == 200
    before = operated.metrics()
    operated.replica.kill_worker(0)
    wait_until(lambda: operated.metrics()["lapwing_workers_lost_total"] == before["lapwing_workers_lost_total"] + 1)
    after = operated.metrics()
    counters = [sample for sample in before if "_total" in sample or "_moment_seconds" in sample]
    assert len(counters) > 20
    assert [sample for sample in counters if after[sample] < before[sample]] == []
    wait_until(lambda: operated.metrics()["lapwing_workers"] == 2.0)
    wait_until(operated.is_ready)
    assert operated.metrics()["lapwing_workers_lost_total"] == before["lapwing_workers_lost_total"] + 1, "counted once"
    assert len(list((operated.replica.home / "counts").glob("*.counts"))) == 2, "the file of the one that is gone is removed"


def test_a_ledger_that_is_down_is_named_and_seen_when_it_is_back(operated: Operated) -> None:
    wait_until(operated.is_ready)
    operated.ledger.stop()
    try:
        operated.wait_until_down()
        for _ in range(SCRAPES):
            status, text = operated.get("/health/ready")
            assert (status, "the ledger" in text, "catalogue" in text, "identities" in text) == (503, True, False, False)
            assert str(operated.ledger.home) not in text and "lapwing_app" not in text
            assert operated.get("/health/live")[0] == 200
            seen = operated.metrics()
            assert (seen[operated.of_data_set("lapwing_ledger_up")], seen["lapwing_shadow_up"]) == (0.0, 1.0)
            assert operated.of_data_set("lapwing_budget_left_ratio") not in seen
            assert operated.of_data_set("lapwing_answers_total") in seen
    finally:
        operated.ledger.start()
    wait_until(operated.is_ready)
    wait_until(lambda: operated.metrics()[operated.of_data_set("lapwing_ledger_up")] == 1.0)  # of all workers: each looks for itself
    seen = operated.metrics()
    assert operated.of_data_set("lapwing_budget_left_ratio") in seen


def test_a_ledger_that_says_nothing_holds_up_neither(operated: Operated) -> None:
    """Its server takes connections, and does not go on: connecting hangs, instead of being refused."""
    wait_until(operated.is_ready)
    assert operated.ledger.server is not None
    operated.ledger.server.send_signal(signal.SIGSTOP)
    try:
        operated.wait_until_down()
        assert "the ledger" in operated.get("/health/ready")[1]
        assert operated.metrics()[operated.of_data_set("lapwing_ledger_up")] == 0.0
    finally:
        operated.ledger.server.send_signal(signal.SIGCONT)
    wait_until(operated.is_ready)


def test_a_shadow_that_is_down_is_named_and_seen_when_it_is_back(operated: Operated) -> None:
    wait_until(operated.is_ready)
    operated.shadow.stop()
    try:
        operated.wait_until_down()
        status, text = operated.get("/health/ready")
        assert (status, "catalogue" in text, "the ledger" in text) == (503, True, False)
        assert str(operated.shadow.home) not in text and "lapwing_wire" not in text
        assert operated.get("/health/live")[0] == 200
        seen = operated.metrics()
        assert (seen[operated.of_data_set("lapwing_ledger_up")], seen["lapwing_shadow_up"]) == (1.0, 0.0)
    finally:
        operated.shadow.start()
    wait_until(operated.is_ready)
    wait_until(lambda: operated.metrics()["lapwing_shadow_up"] == 1.0)  # of all workers: each looks for itself


def test_strangers_who_ask_whether_it_is_ready_do_not_load_the_ledger(operated: Operated) -> None:
    wait_until(operated.is_ready)
    with operated.ledger.superuser() as connection:
        logged = "SELECT sum(sessions) FROM pg_stat_database WHERE datname LIKE 'ledger%'"

        def sessions() -> int:
            time.sleep(1.0)  # statistics are written when a session ends, or a little later
            connection.execute("SELECT pg_stat_clear_snapshot()")
            return int(str((connection.execute(logged.encode()).fetchone() or (0,))[0]))

        before, begun = sessions(), time.monotonic()
        threads = [threading.Thread(target=lambda: [operated.get("/health/ready") for _ in range(50)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        most = 2 * (time.monotonic() - begun + 2)  # one a second of each worker
        assert sessions() - before <= most < 100


def test_connections_of_all_workers_are_counted(operated: Operated) -> None:
    def open_now() -> tuple[float, float]:
        seen = operated.metrics()
        return seen.get('lapwing_connections{face="http"}', 0.0), seen.get('lapwing_connections{face="wire"}', 0.0)

    wait_until(lambda: open_now() == (1.0, 0.0))  # the one that asks
    with ExitStack() as held:
        for port, count in ((operated.replica.port, 5), (operated.wire_port, 3)):
            for _ in range(count):
                held.enter_context(socket.create_connection(("127.0.0.1", port)))
        wait_until(lambda: open_now() == (6.0, 3.0))
    wait_until(lambda: open_now() == (1.0, 0.0))


def test_counts_are_for_the_user_of_the_server_alone(operated: Operated) -> None:
    directory: Path = operated.replica.home / "counts"
    assert directory.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o077 for path in directory.glob("*.counts")} == {0}


def test_a_server_that_starts_again_begins_at_nothing(operated: Operated) -> None:
    before = operated.metrics()
    operated.replica.kill()
    operated.replica.start()
    wait_until(lambda: operated.metrics()["lapwing_workers"] == 2.0)
    after = operated.metrics()
    answers = operated.of_data_set("lapwing_answers_total")
    assert (after[answers], after["lapwing_workers_lost_total"]) == (0.0, 0.0)
    assert before[answers] > 0.0
