"""Connections that break before, in the middle of and after a statement, at every step of the protocol."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from lapwing.errors import LedgerError, Refused
from tests.faults.proxy import LATE_SECONDS, STEPS, Cut, Proxy, cut_connections
from tests.ledger.cluster import Cluster
from tests.ledger.pg import new_place
from tests.ledger.support import request
from tests.support.sizes import spread

EVERY = [(1, 1, 60), (1, 10, 60), (4, 1, 25), (4, 10, 25), (32, 1, 6), (32, 10, 6)]
"""Clients, data sets and acts of each."""

CUTS_OF_A_KIND = 4
"""At least so often each kind of cut hits a reservation, and a commit, with each of the six numbers of clients and sources: 24 in all."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    running = Cluster()
    yield running
    running.close()


@pytest.fixture(scope="module")
def database(cluster: Cluster) -> str:
    return cluster.new_database()


@pytest.mark.parametrize("cut", Cut)
def test_the_proxy_does_what_it_says(cluster: Cluster, database: str, tmp_path: Path, cut: Cut) -> None:
    """A statement that is not sent again, so that what came of it can be seen."""
    place = new_place(cluster, database, tmp_path)
    with place.create() as ledger, Proxy(cluster.home, lambda step: cut if step == "reopen" else None) as proxy:
        ledger.close("for now")
        before = ledger.state().entries
        dsn = place.dsn.replace(str(cluster.home), str(proxy.directory))
        with psycopg.connect(dsn, autocommit=True) as client:
            try:
                client.execute("SELECT lapwing.set_closed(%s, false, '')", [ledger.ledger_id])
                told = True
            except psycopg.OperationalError:
                told = False
        assert told is (cut is Cut.SLOW)
        assert proxy.done == Counter({("reopen", cut): 1})
        if cut is Cut.LATE:
            assert ledger.state().entries == before
        deadline = time.monotonic() + 20 * LATE_SECONDS
        while cut in (Cut.LATE, Cut.IN_FLIGHT) and ledger.state().entries == before:
            assert time.monotonic() < deadline
        assert ledger.state().entries == before + (cut is not Cut.BEFORE)


@pytest.mark.slow
@pytest.mark.parametrize(("clients", "sources", "acts"), spread(EVERY, "crowds that faults are tried on"))
def test_a_cut_connection_costs_nothing_twice_and_nothing_unpaid(
    cluster: Cluster, database: str, tmp_path: Path, clients: int, sources: int, acts: int
) -> None:
    outcome, done = cut_connections(
        cluster, database, tmp_path, seed=clients + sources, clients=clients, sources=sources, acts=acts, often=30, seldom=6
    )
    assert outcome.violations == []
    assert min(done[step, cut] for step in ("reserve", "commit") for cut in Cut) >= CUTS_OF_A_KIND, done
    assert {step for step, _ in done} >= STEPS.keys() - {"reopen", "flush"}  # those two only if something was closed, or found


def test_an_act_that_is_not_sent_twice_says_that_its_reply_was_lost(cluster: Cluster, database: str, tmp_path: Path) -> None:
    place = new_place(cluster, database, tmp_path)
    place.create().disconnect()
    cuts = iter([Cut.BEFORE, Cut.AFTER])
    with (
        Proxy(cluster.home, lambda step: next(cuts) if step == "reopen" else None) as proxy,
        replace(place, via=proxy.directory).open() as ledger,
    ):
        for made in (0, 1):
            before = ledger.state().entries
            with pytest.raises(LedgerError) as lost:
                ledger.close("perhaps")
            assert lost.value.code == "reply-lost"
            assert ledger.state().entries == before + made
        with pytest.raises(Refused) as refusal:
            ledger.reserve(request("next"))
        assert refusal.value.code == "data-set-closed"
