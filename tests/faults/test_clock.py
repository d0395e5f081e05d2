"""Clocks that are put forwards and back: a day is paid for once, leases do not come back, the chain holds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from lapwing.errors import BudgetRefused, LedgerError
from lapwing.kernel.permit import Permit
from lapwing.ledger.postgres import policy
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.postgres.policy import Limits
from lapwing.ledger.postgres.verify import verify
from tests.faults.clock import JUMPS_MIN, TEN_YEARS, Clock, clock_library, jump_while_clients_work
from tests.ledger.cluster import Cluster
from tests.ledger.pg import Place, new_place
from tests.ledger.support import pure_budget, request

DAY_LOSS = 3
ERRORS = (0, -1, 0, -1, 1, 0, 1, -1, 1, 2, 1, 2, -TEN_YEARS, 2, 0, 3, 2, -1, 3, 4, 0, 4, 5, TEN_YEARS, 0, TEN_YEARS, TEN_YEARS + 1, -1, 0)
"""By how many days the clock is wrong, one after the other."""


@pytest.fixture(scope="module")
def clock() -> Iterator[Clock]:
    if clock_library() is None and not os.environ.get("CI"):
        pytest.skip("libfaketime is not installed")
    made = Clock()
    yield made
    made.close()


@pytest.fixture(scope="module")
def cluster(clock: Clock) -> Iterator[Cluster]:
    running = Cluster(environment=clock.environment)
    yield running
    running.close()


@pytest.fixture
def place(cluster: Cluster, clock: Clock, tmp_path: Path) -> Place:
    clock.set(0)
    return new_place(cluster, cluster.new_database(), tmp_path)


def spent_until_refused(ledger: PostgresLedger, number: int) -> int:
    """How much of a day is left, by spending it."""
    for spent in range(DAY_LOSS + 1):
        try:
            ledger.reserve(request(f"{number}.{spent}"))
        except BudgetRefused as refusal:
            assert refusal.code == "day-limit"
            return spent
    raise AssertionError("the limit of a day does not hold")


def test_a_clock_that_jumps_gives_no_day_twice(place: Place, clock: Clock) -> None:
    """To the unit: a day pays when the clock first reaches it, and never again."""
    assert sum(days != before for before, days in pairwise(ERRORS)) >= 20
    with place.create(pure_budget(10**6)) as ledger:
        policy.set_limits(ledger, Limits(day_loss_max=DAY_LOSS))
        latest = min(ERRORS) - 1
        for number, days in enumerate(ERRORS):
            clock.set(days)
            assert spent_until_refused(ledger, number) == (DAY_LOSS if days > latest else 0), (number, days)
            latest = max(latest, days)
        assert verify(ledger.connection, place.source_id, anchors=place.anchors).problems == ()


@pytest.mark.parametrize("days", [1, TEN_YEARS])
def test_a_lease_that_ran_out_does_not_come_back(place: Place, clock: Clock, days: int) -> None:
    """Ten times: the clock goes forwards, another worker takes this one for dead, the clock goes back."""
    with place.create(pure_budget(10**6)) as ledger:
        policy.set_limits(ledger, Limits(lost_workers_max=10**6))
        for number in range(10):
            clock.set(0)
            permit = ledger.reserve(request(f"{number}"))
            assert isinstance(permit, Permit)
            clock.set(days)
            place.open().disconnect()
            clock.set(0)
            with pytest.raises(LedgerError) as refusal:
                ledger.commit(permit, b"late")
            assert refusal.value.code == "charge-not-open"
            assert ledger.find(f"plan of {number}") is None
        # It goes on as a new worker, and a clock that goes back takes nothing from it.
        permit = ledger.reserve(request("afterwards"))
        assert isinstance(permit, Permit)
        clock.set(-1)
        place.open().disconnect()
        ledger.commit(permit, b"in time")
        assert ledger.balance().spent.loss == 11
        assert verify(ledger.connection, place.source_id, anchors=place.anchors).problems == ()


@pytest.mark.slow
@pytest.mark.parametrize(("clients", "sources"), [(1, 1), (4, 10), (16, 1)])
def test_clients_go_on_while_clocks_jump(cluster: Cluster, clock: Clock, tmp_path: Path, clients: int, sources: int) -> None:
    outcome = jump_while_clients_work(
        cluster, clock, cluster.new_database(), tmp_path, seed=clients, clients=clients, sources=sources, day_loss_max=12
    )
    assert outcome.violations == []
    assert outcome.counts["clock jump"] >= JUMPS_MIN
