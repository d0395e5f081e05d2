"""Kills of the server and its parts, and workers that sleep, while clients work."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import psycopg

from lapwing.errors import LedgerError
from tests.faults.history import What
from tests.faults.rounds import EXPECTED_CODES, ROUND_SECONDS_MAX, SERVER_CODES, Bench, Nursery, kill_workers, new_bench, nursery
from tests.faults.table import Outcome, fault
from tests.ledger.cluster import APP_ROLE, Cluster

_T = TypeVar("_T")
READY_SECONDS_MAX = 300.0
WORK_SECONDS_MAX = 1.5
LEASE_SECONDS = 3
"""Long enough that all get where they are to sleep before it is over."""
SLEEP_STEPS = (
    "reserve: statement 1 sent",
    "reserve: statement 1 answered",
    "reserve: after",
    "engine: running",
    "commit: before",
    "commit: statement 1 sent",
    "commit: after",
)
SLEEPERS_REFUSED = frozenset(SLEEP_STEPS[:5])
"""Who sleeps there has a charge, has not committed, and must not be able to."""


def _start_clients(bench: Bench, one: Nursery, generator: random.Random, clients: int) -> None:
    """Long lives: whoever opens a ledger waits for the disk, and what others did before is then there too, whether they waited or not."""
    one.order(bench, "run", clients=clients, seed=generator.randrange(2**30), until_told=True, outside_kills=0.2, acts_max=15)


def kill_backends(bench: Bench, one: Nursery, generator: random.Random, *, kills: int, clients: int) -> None:
    """Kill server processes of clients. Each makes the server drop all the others and recover."""
    _start_clients(bench, one, generator, clients)
    before = bench.kills["kill -9 backend"]
    deadline = time.monotonic() + ROUND_SECONDS_MAX
    while bench.kills["kill -9 backend"] < before + kills:
        assert time.monotonic() < deadline, "too few clients were connected"
        _let_work(bench, generator)
        bench.kills["kill -9 backend"] += _patiently(lambda: _kill_a_backend(bench, generator))
        if generator.random() < 0.3:
            _patiently(lambda: bench.look(bench.looks))
    _let_answer(bench, times=kills, deadline=deadline)
    one.stop_clients()
    one.answer(bench)
    _patiently(lambda: bench.cluster.superuser().close())


def kill_postmasters(bench: Bench, one: Nursery, generator: random.Random, *, kills: int, clients: int) -> None:
    """Kill the first process of the server, and start it again: it recovers from what was on the disk."""
    _start_clients(bench, one, generator, clients)
    for _ in range(kills):
        _let_work(bench, generator)
        bench.cluster.crash()
        bench.kills["kill -9 postmaster"] += 1
        if generator.random() < 0.3:
            bench.look(bench.looks)
    one.stop_clients()
    one.answer(bench)


def put_workers_to_sleep(bench: Bench, one: Nursery, generator: random.Random, *, times: int) -> None:
    """Stop clients at the steps around running and committing until their leases are over and others took them for dead; wake them."""
    steps = [step for _ in range(times) for step in SLEEP_STEPS]
    one.order(bench, "put to sleep", seed=generator.randrange(2**30), steps=steps, lease_seconds=LEASE_SECONDS)
    bench.kills["SIGSTOP, lease over, SIGCONT"] += one.answer(bench)["slept"]


def _let_answer(bench: Bench, *, times: int, deadline: float) -> None:
    """Until clients have sent so many answers in all: on a busy machine, few may have come so far between two kills."""
    while sum(event.what is What.SENT for event in bench.events()) < times and time.monotonic() < deadline:
        time.sleep(0.05)


def _let_work(bench: Bench, generator: random.Random) -> None:
    """Until clients have got on a little since the server came back, to any point of what they do. All may be waiting, so not for long."""
    deadline = time.monotonic() + WORK_SECONDS_MAX
    written = bench.history_file.stat().st_size if bench.history_file.exists() else 0
    wanted = written + generator.randrange(200, 5000)
    while time.monotonic() < deadline and (not bench.history_file.exists() or bench.history_file.stat().st_size < wanted):
        time.sleep(0.002)
    time.sleep(generator.uniform(0.0, 0.005))


def _kill_a_backend(bench: Bench, generator: random.Random) -> bool:
    """One that serves a client of ours, if there is one at the moment: only ever a child of our own server."""
    with bench.cluster.superuser() as connection:
        found = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND usename = %s AND datname = %s",
            [APP_ROLE, bench.database],
        ).fetchall()
    assert bench.cluster.server is not None
    try:
        pid = int(str(generator.choice(found)[0])) if found else 0
        if pid and _parent_of(pid) == bench.cluster.server.pid:
            os.kill(pid, signal.SIGKILL)
            # Until the server has seen it: whoever connects from then on is told to wait until it has recovered.
            deadline = time.monotonic() + READY_SECONDS_MAX
            while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
                time.sleep(0.002)
            return True
    except (ProcessLookupError, FileNotFoundError):
        pass  # it ended by itself meanwhile
    return False


def _parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])


def _patiently(act: Callable[[], _T]) -> _T:
    """Done again while the server restarts: it takes a moment until it notices that it lost a process, and another to recover."""
    deadline = time.monotonic() + READY_SECONDS_MAX
    while True:
        try:
            return act()
        except (psycopg.OperationalError, LedgerError) as error:
            if time.monotonic() > deadline:
                raise AssertionError("the server does not come back") from error
            time.sleep(0.01)


def outcome_of(bench: Bench, *, server: bool) -> Outcome:
    """Settle a bench, and sum up. Kills of clients are counted together."""
    bench.settle(EXPECTED_CODES | SERVER_CODES if server else EXPECTED_CODES)
    counts = Counter[str]()
    for name, count in bench.kills.items():
        counts[name if name.startswith(("kill -9", "SIGSTOP")) else "kill -9 worker"] += count
    return Outcome(counts, bench.found, [bench.history_file])


@fault("kill workers", weight=10)
def _kill_workers(cluster: Cluster, directory: Path, seed: int) -> Outcome:
    generator = random.Random(seed)
    lost_workers_max = generator.choice((3, 10**6))
    bench = new_bench(cluster, directory, data_sets=generator.choice((1, 1, 3, 10)), lost_workers_max=lost_workers_max)
    kill_workers(bench, clients=generator.choice((1, 2, 4, 8, 32)), kills=300, seed=seed)
    return outcome_of(bench, server=False)


@fault("kill backends")
def _kill_backends(cluster: Cluster, directory: Path, seed: int) -> Outcome:
    generator = random.Random(seed)
    bench = new_bench(cluster, directory, data_sets=generator.choice((1, 10)))
    with nursery() as one:
        kill_backends(bench, one, generator, kills=20, clients=generator.choice((1, 4, 16)))
    return outcome_of(bench, server=True)


@fault("kill postmasters")
def _kill_postmasters(cluster: Cluster, directory: Path, seed: int) -> Outcome:
    generator = random.Random(seed)
    bench = new_bench(cluster, directory, data_sets=generator.choice((1, 10)))
    with nursery() as one:
        kill_postmasters(bench, one, generator, kills=20, clients=generator.choice((1, 4, 16)))
    return outcome_of(bench, server=True)


@fault("sleeping workers")
def _sleeping_workers(cluster: Cluster, directory: Path, seed: int) -> Outcome:
    generator = random.Random(seed)
    bench = new_bench(cluster, directory, data_sets=generator.choice((1, 3)))
    with nursery() as one:
        put_workers_to_sleep(bench, one, generator, times=3)
    return outcome_of(bench, server=False)
