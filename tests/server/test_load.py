"""Many analysts on two replicas, whose workers die, with a database that is restarted: the small form of ``benchmarks/server_load.py``."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ledger.cluster import Cluster
from tests.server.campaign import Plan, campaign
from tests.support.sizes import size

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("server: load")]


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    running = Cluster()
    yield running
    running.close()


def test_nothing_is_overspent_uncharged_or_lost_whatever_dies(own_cluster: Cluster, tmp_path: Path) -> None:
    plan = Plan(
        seconds=float(size("server under load, seconds")),
        analysts=8,
        worker_kills=2,
        restart=signal.SIGQUIT,
        scarce_epsilon="0.25",  # pays for two or three
        again_max=30,
        seed=1,
    )
    result = campaign(own_cluster, tmp_path, plan)
    counts = result.reckoning.counts
    print(dict(counts), dict(result.crowd.troubles), result.growths)
    assert result.reckoning.wrong == []
    assert dict(result.crowd.surprises) == {}
    assert result.kills["database restarted"] == result.kills["replicas killed and started again"] == 1
    assert (
        counts["charges, committed"] >= 5
        and counts["paid requests had again"] >= 5
        and counts["answers"] > counts["charges, committed"] / 2
    )
