"""Clients are killed (kill -9) at every step of the protocol and at random moments, by the thousand; nothing may come of it.

The steps are those that an undisturbed life passes: before and after each call, after each statement was sent, after each was answered,
and within the writing of an anchor. Opening a ledger is its recovery, so kills while registering are kills in recovery.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.faults.history import What
from tests.faults.rounds import Bench, kill_workers, new_bench
from tests.ledger.cluster import Cluster
from tests.support.sizes import TIER, Tier, size, spread

MANY = size("kills of clients")
KILLS = dict(
    spread(
        [((1, 1), 100), ((1, 10), 100), ((4, 1), MANY), ((4, 10), MANY), ((32, 1), MANY), ((32, 10), MANY)],
        "crowds that faults are tried on",
    )
)
"""By number of clients and of data sets. A client alone waits for itself, so each of its kills takes longest."""
KILLS_OF_A_STEP_MIN = {1: 1, 4: MANY // 230, 32: MANY // 230}
"""By number of clients: one alone is killed at each step, and in ``soak`` each crowd too; whatever is armed by chance besides."""
KILLS_TOTAL_MIN = size("kills of clients in all")
PHASES = {"register", "reserve", "reserve many", "engine", "commit", "forfeit", "incident", "reopen", "find", "renew", "disconnect"}
NAMED = (
    "reserve: before",
    "reserve: statement 1 sent",
    "reserve: statement 1 answered",
    "reserve: anchor locked",
    "reserve: anchor torn",
    "reserve: anchor written",
    "reserve: anchor kept",
    "reserve: after",
    "engine: running",
    "engine: ran",
    "reserve many: statement 1 sent",
    "reserve many: anchor written",
    "commit: before",
    "commit: statement 1 sent",
    "commit: statement 1 answered",
    "commit: after",
    "commit: sent",
    "forfeit: statement 1 sent",
    "incident: statement 1 sent",
    "register: statement 1 sent",
    "register: anchor torn",
    "disconnect: statement 1 sent",
)
"""Steps that must be among those that were found: a watch that sees nothing would otherwise pass."""


def test_there_are_enough_kills() -> None:
    assert sum(KILLS.values()) >= KILLS_TOTAL_MIN


@pytest.mark.slow
@pytest.mark.parametrize(("clients", "data_sets"), KILLS)
def test_killed_clients_leave_a_sound_ledger(fault_cluster: Cluster, tmp_path: Path, clients: int, data_sets: int) -> None:
    kill(new_bench(fault_cluster, tmp_path, data_sets=data_sets), clients, data_sets)


@pytest.mark.slow
@pytest.mark.parametrize(("clients", "data_sets"), list(KILLS)[-1:])
def test_killed_clients_that_charge_blocks_leave_a_sound_ledger(
    fault_cluster: Cluster, tmp_path: Path, clients: int, data_sets: int
) -> None:
    """Both trees are compared with the entries each time the oracle looks."""
    kill(new_bench(fault_cluster, tmp_path, data_sets=data_sets, blocks=True), clients, data_sets)


def kill(bench: Bench, clients: int, data_sets: int) -> None:
    least = KILLS_OF_A_STEP_MIN[clients]
    kills = KILLS[clients, data_sets]
    steps = kill_workers(bench, clients=clients, kills=kills, seed=100 * clients + data_sets, kills_of_a_step_min=least)
    bench.settle()
    print(f"kills: {bench.kills.total()}; by step: {dict(sorted(bench.kills.items()))}; ends: {dict(bench.ends)}; looks: {bench.looks}")
    assert bench.found == [], f"{bench.found[:20]}; history: {bench.history_file}"
    assert bench.looks >= (2 if TIER is Tier.SOAK else 1), "the oracle looks every so many seconds, and at the end"
    assert set(NAMED) <= set(steps)
    assert {step.partition(":")[0] for step in steps} == PHASES
    assert bench.kills.total() >= kills
    assert {step: bench.kills[step] for step in steps if bench.kills[step] < least} == {}
    assert bench.kills["at random"] >= 15
    # The history is one in which much happened; a bench on which nothing goes through would be sound too.
    seen = Counter(event.what for event in bench.events())
    assert min(seen[what] for what in (What.PERMIT, What.RAN, What.SENT)) > 30
    assert min(seen[what] for what in (What.REFUSED, What.FORFEITED)) > 5
