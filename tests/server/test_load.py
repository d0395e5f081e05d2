"""Many analysts on two replicas, whose workers die, with a database that is restarted: the small form of ``benchmarks/server_load.py``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ledger.cluster import Cluster
from tests.server.campaign import Harm, Plan, campaign
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
        harms={Harm.WORKER: 2, Harm.REPLICA: 1, Harm.QUIT: 1},
        analysts=6,
        wire_analysts=2,
        scarce_epsilon="0.25",  # pays for two or three
        again_max=30,
        seed=1,
    )
    result = campaign(own_cluster, tmp_path, plan)
    counts = result.reckoning.counts
    print(dict(counts), dict(result.crowd.troubles), result.growths)
    assert result.reckoning.wrong == []
    assert dict(result.crowd.surprises) == {}
    assert result.harms[Harm.QUIT] == result.harms[Harm.REPLICA] == 1
    assert counts["answers on the wire"] >= 2
    assert (
        counts["charges, committed"] >= 5
        and counts["paid requests had again"] >= 5
        and counts["answers"] > counts["charges, committed"] / 2
    )
