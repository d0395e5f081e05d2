"""A hundred analysts who have agreed to get more than there is: oversubscribed sub-budgets and groups, one data set, a real server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.kernel.accounting import Budget, Cost, budget_for
from lapwing.ledger.postgres import policy
from lapwing.ledger.postgres.anchors import FileAnchors
from tests.faults.history import What, read
from tests.faults.oracle import recovered
from tests.ledger.cluster import Cluster
from tests.ledger.pg import Place, new_place
from tests.ledger.support import pure_budget

ROOT = Path(__file__).resolve().parents[2]
PROCESSES, THREADS, ANALYSTS, GROUPS = 5, 4, 100, 10
SHARE = Cost(loss=9, delta=7)
"""Of each analyst: together far more than the data set has."""
SMALL_SHARE = Cost(loss=2, delta=1)
"""Of every tenth, so that some sub-budgets bind before the cap does."""
GROUP_SHARE = Cost(loss=60, delta=50)


def small_approximate_budget() -> Budget:
    """A few hundred units of rho, and exactly 200 of delta: an epsilon and a delta of no use but to count."""
    budget = budget_for(epsilon=Fraction(8, 10**6), delta=Fraction(400, 10**30))
    assert budget.delta_total == 200 and 220 <= budget.loss_total <= 600
    return budget


def run_crowd(place: Place, requests: list[list[list[object]]], log: Path) -> None:
    """Each list in a thread; the threads shared out over the processes, all at once."""
    assert isinstance(place.anchors, FileAnchors)
    crowd = []
    for number in range(PROCESSES):
        command = {
            "dsn": place.dsn,
            "source_id": place.source_id,
            "anchors": str(place.anchors.directory),
            "log": str(log),
            "threads": requests[number::PROCESSES],
        }
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("crowd.py"))],
            stdin=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        )
        assert process.stdin is not None
        with process.stdin:
            process.stdin.write(json.dumps(command))
        crowd.append(process)
    for process in crowd:
        assert process.wait(120) == 0


@pytest.mark.slow
@pytest.mark.parametrize("budget", [pure_budget(250), small_approximate_budget()], ids=["pure", "approximate"])
def test_a_hundred_colluding_analysts_get_the_last_unit_and_no_more(cluster: Cluster, budget: Budget, tmp_path: Path) -> None:
    place = new_place(cluster, cluster.new_database(), tmp_path)
    names = [f"analyst {number}" for number in range(ANALYSTS)]
    small = set(names[::10])
    delta = min(1, budget.delta_total)
    with place.create(budget) as ledger:
        for group in range(GROUPS):
            policy.set_group(ledger, f"group {group}", loss_total=GROUP_SHARE.loss, delta_total=GROUP_SHARE.delta)
        for number, name in enumerate(names):
            share = SMALL_SHARE if name in small else SHARE
            policy.admit(ledger, name, group=f"group {number % GROUPS}", loss_total=share.loss, delta_total=share.delta)
        assert SHARE.loss * ANALYSTS > 2 * budget.loss_total and GROUP_SHARE.loss * GROUPS > budget.loss_total
        # Larger amounts first, then units: whatever the order, what is left in the end is less than the smallest that is asked for.
        wanted = [(2, 2 * delta), (1, delta), (1, delta), (1, 0), (1, 0), (1, 0)]
        threads: list[list[list[object]]] = [[] for _ in range(PROCESSES * THREADS)]
        for turn, (loss, delta_wanted) in enumerate(wanted):
            for number, name in enumerate(names):
                if turn > 0 or number % 3 == 0:
                    threads[number % len(threads)].append([name, f"request {turn}", loss, delta_wanted])
        log = tmp_path / "history"
        run_crowd(place, threads, log)
        history = read(log)
        state, violations = recovered(place.dsn, place.source_id, anchors=place.anchors, history=history)
        assert violations == []
        assert (state.loss_spent, state.delta_spent) == (budget.loss_total, budget.delta_total)
        permitted = [event for event in history if event.what is What.PERMIT]
        assert sum(event.loss for event in permitted) == budget.loss_total
        assert sum(event.delta for event in permitted) == budget.delta_total
        codes = Counter(event.code for event in history if event.what is What.REFUSED)
        assert (
            codes.keys() <= {"budget-exceeded", "analyst-budget", "group-budget"} and codes["budget-exceeded"] and codes["analyst-budget"]
        )
        for name in names:
            own = policy.analyst_share(ledger, name)
            most = SMALL_SHARE if name in small else SHARE
            assert own is not None and own.spent.loss <= most.loss and own.spent.delta <= most.delta
        groups = [policy.group_share(ledger, f"group {number}") for number in range(GROUPS)]
        assert sum(group.spent.loss for group in groups if group is not None) == budget.loss_total
        assert all(group is not None and group.spent.loss <= GROUP_SHARE.loss for group in groups)
