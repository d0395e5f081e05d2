"""A standby takes over: what a synchronous one took over is complete, and what an asynchronous one lacks is seen."""

from __future__ import annotations

import signal
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from lapwing.errors import LapwingError, LedgerError
from lapwing.kernel.accounting import Cost
from lapwing.kernel.permit import Permit
from lapwing.ledger.postgres.verify import verify
from tests.faults.failover import SETTINGS, fail_over_while_clients_work, followed, promote
from tests.ledger.cluster import Cluster
from tests.ledger.pg import new_place
from tests.ledger.support import pure_budget, request


@pytest.mark.slow
@pytest.mark.parametrize(("clients", "sources", "times"), [(4, 3, 2), (16, 1, 1)])
def test_clients_go_on_with_a_synchronous_standby(tmp_path: Path, clients: int, sources: int, times: int) -> None:
    outcome = fail_over_while_clients_work(tmp_path, seed=clients, clients=clients, sources=sources, times=times)
    assert outcome.violations == []
    assert outcome.counts["failover"] == times


@pytest.mark.slow
def test_what_an_asynchronous_standby_lacks_is_seen(tmp_path: Path) -> None:
    """The case in which a database forgets without anybody restoring anything."""
    primary = Cluster(SETTINGS)
    servers = [primary]
    try:
        place = new_place(primary, primary.new_database(), tmp_path)
        with place.create(pure_budget(100)) as ledger:
            assert isinstance(ledger.reserve(request("before", loss=2)), Permit)
            standby = followed(primary, synchronous=False)
            servers.append(standby)
            standby.stop()
            assert isinstance(ledger.reserve(request("not copied", loss=5)), Permit)
            primary.stop(signal.SIGKILL)
            standby.start()
            promote(standby)
            taken_over = replace(place, cluster=standby)
            with pytest.raises(LedgerError) as refusal:
                taken_over.open()
            assert refusal.value.code == "ledger-rolled-back"
            with taken_over.open(override=True, reason="the first server is lost") as accepted:
                assert accepted.balance().spent == Cost(loss=2 + 5, delta=0)
                assert isinstance(accepted.reserve(request("after")), Permit)
                assert verify(accepted.connection, place.source_id, anchors=place.anchors).problems == ()
            primary.start()  # so that the first worker can say good-bye
    finally:
        for server in servers:
            server.close()


@pytest.mark.slow
def test_of_two_primaries_only_one_is_served(tmp_path: Path) -> None:
    """A standby is promoted while the first server still runs: both have the budget, and workers of each ask. They share the anchor."""
    primary = Cluster(SETTINGS)
    servers = [primary]
    try:
        place = new_place(primary, primary.new_database(), tmp_path)
        with place.create(pure_budget(10)) as first:
            assert isinstance(first.reserve(request("before", loss=4)), Permit)
            standby = followed(primary, synchronous=False)
            servers.append(standby)
            promote(standby)
            with replace(place, cluster=standby).open() as second:
                permits, refused = Counter[str](), Counter[tuple[str, str]]()
                for number in range(10):
                    for name, ledger in (("second", second), ("first", first)):
                        try:
                            assert isinstance(ledger.reserve(request(f"{name} {number}")), Permit)
                            permits[name] += 1
                        except LapwingError as error:
                            refused[name, error.code] += 1
        # The first to move the anchor goes on to the end of the budget. The other spends what it has left on nothing.
        assert permits == Counter(second=6)
        assert refused == Counter(
            {
                ("second", "budget-exceeded"): 4,
                ("first", "ledger-rolled-back"): 6,
                ("first", "budget-exceeded"): 4,
            }
        )
    finally:
        for server in servers:
            server.close()
