"""Bad days of a server with several workers: its database is away, workers die or are paused, and nobody has to start it again."""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

import lapwing
from lapwing.demo import write_demo
from lapwing.errors import LapwingError
from tests.ledger.cluster import Cluster
from tests.server.fleet import Fleet, Offered

pytestmark = pytest.mark.xdist_group("server: supervisor")

SILENT_SECONDS = 12
BORNE_SECONDS = 6.5
"""A pause that is borne; uvicorn's own supervisor killed after five seconds, without a word."""
PATIENCE_SECONDS = 240.0
CHARGES = (
    "SELECT state::text, count(*) FROM lapwing.charge JOIN lapwing.worker USING (ledger_id, epoch)"
    " WHERE pid = coalesce(%(pid)s, pid) GROUP BY state"
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A database server of its own, because it is stopped."""
    cluster = Cluster()
    yield cluster
    cluster.close()


@contextmanager
def _served(cluster: Cluster, directory: Path) -> Iterator[Fleet]:
    """One server with two workers; ledger and identities are in the database."""
    os.chmod(directory, 0o700)
    offered = [Offered("clinic", "6", {"ada": None})]
    fleet = Fleet(cluster, directory, offered, ["ada"], replicas=1, limits=[f"silent_seconds = {SILENT_SECONDS}.0"])
    try:
        fleet.start()
        yield fleet
    finally:
        fleet.close()


def _ask(fleet: Fleet) -> list[Any]:
    """The rows of an answer that nobody has asked for before."""
    sql = f"SELECT region, COUNT(*) AS n FROM patients WHERE birth_year <> {-secrets.randbelow(10**9)} GROUP BY region"
    with lapwing.connect(fleet.replicas[0].url, token=fleet.keys["ada"]) as remote:
        return list(remote.ask(sql, epsilon="0.01").to_dict()["rows"])


def _wait_until(is_so: Callable[[], Any], what: str) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < until, what
        time.sleep(0.2)


def _answers(fleet: Fleet) -> bool:
    with suppress(LapwingError, OSError):
        return bool(_ask(fleet))
    return False


def _is_there(pid: int) -> bool:
    """Whether a process runs: not one that has ended and that nobody has looked at."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_while_the_database_is_away_workers_that_die_are_tried_again(cluster: Cluster, tmp_path: Path) -> None:
    with _served(cluster, tmp_path) as fleet:
        one = fleet.replicas[0]
        assert one.process is not None
        assert _ask(fleet)
        first = one.workers()
        assert len(first) == 2
        cluster.stop()
        os.kill(first[0], signal.SIGKILL)
        _wait_until(lambda: one.log().count("cannot be replaced") == 1, "the log says why there is no new worker")
        with pytest.raises(LapwingError) as away:
            _ask(fleet)
        assert away.value.code == "unavailable", "the worker that is left says so"
        cluster.start()
        _wait_until(lambda: one.log().count("the problem is over") == 1, "the other one is replaced")
        assert _ask(fleet)
        second = one.workers()
        assert len(second) == 2 and first[1] in second
        cluster.stop()
        for pid in second:
            os.kill(pid, signal.SIGKILL)
        _wait_until(lambda: one.log().count("cannot be replaced") == 2, "nor is there one now")
        time.sleep(6)  # several more tries
        assert one.process.poll() is None, "the server is there while its database is not"
        log = one.log()
        assert log.count("[identities-unreachable]") == 2 and "Traceback" not in log, log
        for pid in (first[0], *second):
            assert len(re.findall(rf"worker {pid} was ended by SIGKILL; it is replaced ", log)) == 1
        cluster.start()
        _wait_until(lambda: _answers(fleet), "questions are answered again, by the same server")
        _wait_until(lambda: len(set(one.workers()) - set(second)) == 2, "both workers are there again")
        _wait_until(lambda: one.log().count("the problem is over") >= 2, "the log says that it is over")
        one.process.terminate()
        assert one.process.wait(PATIENCE_SECONDS) == 0, "told to stop, it ends with 0"
        over = one.log().count("the problem is over")
        assert over in (2, 3), "one line for each worker that could not start; on a slow machine the second tries when all is well again"
        assert one.log().count("\n") == 5 + over, one.log()


def test_a_worker_that_is_paused_is_borne_and_then_replaced_with_a_word(cluster: Cluster, tmp_path: Path) -> None:
    with _served(cluster, tmp_path) as fleet:
        one = fleet.replicas[0]
        assert one.process is not None
        paused, other = one.workers()
        os.kill(paused, signal.SIGSTOP)
        time.sleep(BORNE_SECONDS)
        os.kill(paused, signal.SIGCONT)
        assert _ask(fleet)
        assert sorted(one.workers()) == sorted([paused, other]) and one.log() == ""
        reserved = _paused_with_a_charge(fleet, paused)
        _wait_until(lambda: not _is_there(paused), "it is taken for dead")
        _wait_until(lambda: "replaced" in one.log(), "the log says so")
        told = re.fullmatch(
            rf"worker {paused} did not respond for (\d+) seconds and was killed; it is replaced by worker (\d+)\n", one.log()
        )
        assert told is not None and SILENT_SECONDS <= int(told[1]) <= SILENT_SECONDS + 5, one.log()
        _wait_until(lambda: int(told[2]) in one.workers(), "the one that replaces it is there")
        os.kill(other, signal.SIGTERM)  # so that whoever is asked next is new: who registers forfeits what the dead have reserved
        _wait_until(lambda: not _is_there(other), "told to stop, it ends")
        _wait_until(lambda: _answers(fleet), "questions are answered")
        settled = _charges(fleet, of=paused)
        assert settled["forfeited"] == reserved and "reserved" not in settled, "paid for and not answered: nothing else comes of it"
        with lapwing.connect(one.url, token=fleet.keys["ada"]) as remote:
            assert not remote.budget.closed
        os.kill(one.process.pid, signal.SIGKILL)
        last = one.workers()
        one.process.wait()
        _wait_until(lambda: not any(map(_is_there, last)), "workers do not outlive the process that looks after them")


def _charges(fleet: Fleet, of: int | None = None) -> dict[str, int]:
    """How many charges there are in each state; ``of`` one worker."""
    with psycopg.connect(fleet.cluster.dsn(fleet.database, role="postgres")) as connection:
        return {str(state): int(count) for state, count in connection.execute(CHARGES, {"pid": of})}


def _paused_with_a_charge(fleet: Fleet, pid: int) -> int:
    """Pause a worker at a moment at which it has charges reserved; how many."""
    is_over = threading.Event()

    def ask_on() -> None:
        while not is_over.is_set():
            _answers(fleet)

    threads = [threading.Thread(target=ask_on, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    until = time.monotonic() + PATIENCE_SECONDS
    try:
        while time.monotonic() < until:
            os.kill(pid, signal.SIGSTOP)
            if _charges(fleet, of=pid).get("reserved"):
                time.sleep(0.5)  # the database still carries out what it was told before
                if reserved := _charges(fleet, of=pid).get("reserved"):
                    return reserved
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.05)
        raise AssertionError("no charge was seen while it was reserved")
    finally:
        is_over.set()


def test_a_server_none_of_whose_workers_can_start_says_why_and_ends_with_a_status(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o700)
    write_demo(tmp_path / "clinic", patients=50)
    home = tmp_path / "lapwing-server"
    home.mkdir(mode=0o700)
    text = f'[server]\nport = 0\nworkers = 2\naudit_log = "."\n[[data_set]]\ncatalogue = "{tmp_path / "clinic"}"\n'
    (home / "lapwing-server.toml").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "lapwing.interfaces.cli", "serve"], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert done.returncode == 1
    assert "IsADirectoryError" in done.stderr
    assert done.stderr.count("no worker can start: a worker ended with status 1 before it served anything") == 1
