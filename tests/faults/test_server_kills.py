"""The server is killed while clients work, in part and as a whole; and workers sleep until they are taken for dead, and wake."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.faults.history import What
from tests.faults.rounds import EXPECTED_CODES, SERVER_CODES, Bench, new_bench, nursery
from tests.faults.server import SLEEP_STEPS, SLEEPERS_REFUSED, kill_backends, kill_postmasters, put_workers_to_sleep
from tests.ledger.cluster import Cluster
from tests.support.sizes import TIER, Tier, spread

BACKEND_KILLS = 4
POSTMASTER_KILLS = 8
"""Of each of the six tests."""
SLEEPS = 2
"""At each step, of both tests."""
EVERY = spread([(1, 1), (1, 10), (4, 1), (4, 10), (32, 1), (32, 10)], "crowds that faults are tried on")
"""Clients and data sets."""


def test_there_are_enough_kills() -> None:
    assert len(EVERY) * BACKEND_KILLS >= (20 if TIER is Tier.SOAK else 10)
    assert len(EVERY) * POSTMASTER_KILLS >= (40 if TIER is Tier.SOAK else 20)
    assert 2 * SLEEPS * len(SLEEP_STEPS) >= 20


def require_sound(bench: Bench, *, sent_min: int) -> None:
    """Nothing is wrong, and enough went on while it could have gone wrong."""
    bench.settle(EXPECTED_CODES | SERVER_CODES)
    seen = Counter(event.what for event in bench.events())
    print(f"kills: {dict(bench.kills)}; ends: {dict(bench.ends)}; seen: {dict(seen)}")
    assert bench.found == [], f"{bench.found[:20]}; history: {bench.history_file}"
    assert seen[What.SENT] >= sent_min


@pytest.mark.slow
@pytest.mark.parametrize(("clients", "data_sets"), EVERY)
def test_killed_server_processes_change_nothing(fault_cluster: Cluster, tmp_path: Path, clients: int, data_sets: int) -> None:
    bench = new_bench(fault_cluster, tmp_path, data_sets=data_sets)
    with nursery() as one:
        kill_backends(bench, one, random.Random(100 * clients + data_sets), kills=BACKEND_KILLS, clients=clients)
    assert bench.kills["kill -9 backend"] == BACKEND_KILLS
    require_sound(bench, sent_min=BACKEND_KILLS)


@pytest.mark.slow
@pytest.mark.parametrize(("clients", "data_sets"), EVERY)
def test_a_killed_server_keeps_what_it_promised(fault_cluster: Cluster, tmp_path: Path, clients: int, data_sets: int) -> None:
    bench = new_bench(fault_cluster, tmp_path, data_sets=data_sets)
    with nursery() as one:
        kill_postmasters(bench, one, random.Random(100 * clients + data_sets), kills=POSTMASTER_KILLS, clients=clients)
    assert bench.kills["kill -9 postmaster"] == POSTMASTER_KILLS
    require_sound(bench, sent_min=POSTMASTER_KILLS)


@pytest.mark.slow
@pytest.mark.parametrize("data_sets", [1, 10])
def test_a_worker_that_wakes_after_its_lease_cannot_commit(fault_cluster: Cluster, tmp_path: Path, data_sets: int) -> None:
    bench = new_bench(fault_cluster, tmp_path, data_sets=data_sets)
    with nursery() as one:
        put_workers_to_sleep(bench, one, random.Random(data_sets), times=SLEEPS)
    assert bench.kills["SIGSTOP, lease over, SIGCONT"] == SLEEPS * len(SLEEP_STEPS)
    events = bench.events()
    stopped = {event.client: event.code for event in events if event.what == What.STOPPED}
    assert Counter(stopped.values()) == Counter(dict.fromkeys(SLEEP_STEPS, SLEEPS))
    # What each heard first after it woke, about the request it slept in.
    refused = 0
    for client, step in stopped.items():
        own = [event for event in events if event.client == client]
        woke = own.index(next(event for event in own if event.what == What.STOPPED))
        slept_in = next(event.key for event in reversed(own[:woke]) if event.what == What.ASKED)
        later = [(event.what, event.code) for event in own[woke + 1 :] if event.key == slept_in]
        if step in SLEEPERS_REFUSED:
            assert (What.REFUSED, "charge-not-open") in later and What.SENT not in dict(later), (step, later)
            refused += 1
    assert refused == SLEEPS * len(SLEEPERS_REFUSED)
    require_sound(bench, sent_min=SLEEPS)
