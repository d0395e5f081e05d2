"""The ledger behind a real pgbouncer in transaction mode: the whole set of protocol tests once more, and what a pooler could spoil."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from lapwing.errors import LedgerError
from lapwing.kernel.accounting import Cost
from lapwing.kernel.permit import Permit
from tests.faults.pooler import Pooler, kill_while_clients_work, pooler_program
from tests.ledger import test_postgres
from tests.ledger.cluster import Cluster
from tests.ledger.pg import Place, new_place
from tests.ledger.support import pure_budget, request

SERVER_CONNECTIONS = 5

OF_A_SESSION = frozenset(
    {
        "test_a_lost_connection_is_opened_again_and_the_call_finds_its_own_charge",  # a pooler hides that an idle connection was lost
        "test_a_server_that_forgets_is_not_used",  # changes settings of a session, and expects to meet the same session again
    }
)
"""Tests that speak about one session of the server. What they say about the ledger is said below with several."""

# pytest finds tests by name in this module; they get the fixture ``place`` of this file.
globals().update({name: test for name, test in vars(test_postgres).items() if name.startswith("test_") and name not in OF_A_SESSION})


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    running = Cluster()
    yield running
    running.close()


@pytest.fixture(scope="module")
def pooler(cluster: Cluster) -> Iterator[Pooler]:
    if pooler_program() is None and not os.environ.get("CI"):
        pytest.skip("pgbouncer is not installed")
    with Pooler(cluster, server_connections=SERVER_CONNECTIONS) as running:
        yield running


@pytest.fixture(scope="module")
def database(cluster: Cluster) -> str:
    return cluster.new_database()


@pytest.fixture
def place(cluster: Cluster, pooler: Pooler, database: str, tmp_path: Path) -> Place:
    """A source of the test's own, behind the pooler: what the tests of the protocol get here."""
    return new_place(cluster, database, tmp_path, via=pooler.directory)


def test_the_tests_left_out_are_tests() -> None:
    assert all(hasattr(test_postgres, name) for name in OF_A_SESSION)


def pinned(place: Place, stack: ExitStack) -> list[psycopg.Connection[tuple[object, ...]]]:
    """A transaction on each of the pooler's server connections at once."""
    clients = [stack.enter_context(psycopg.connect(place.dsn, prepare_threshold=None)) for _ in range(SERVER_CONNECTIONS)]
    pids = {client.execute("SELECT pg_backend_pid()").fetchone() for client in clients}
    assert len(pids) == SERVER_CONNECTIONS
    return clients


def test_a_setting_of_a_charge_does_not_stay_in_a_shared_session(place: Place) -> None:
    """The procedures turn the wait for the disk off for the length of one transaction, and commit inside."""
    with place.create(pure_budget(1000)) as ledger:
        for number in range(4 * SERVER_CONNECTIONS):
            permit = ledger.reserve(request(f"{number}"))
            assert isinstance(permit, Permit)
            ledger.commit(permit, b"answer")
        with ExitStack() as stack:
            for client in pinned(place, stack):
                settings = "SELECT current_setting('synchronous_commit'), current_setting('lapwing.flush_follows', true)"
                found = client.execute(settings).fetchone()
                assert found in (("on", ""), ("on", None))


def test_a_session_that_somebody_spoiled_charges_nothing(place: Place) -> None:
    """One of the shared sessions would not wait for the disk: what meets it is refused, and all else is charged."""
    with place.create(pure_budget(1000)) as ledger:
        with ExitStack() as stack:
            clients = pinned(place, stack)
            clients[0].execute("SET synchronous_commit = off")
            clients[0].commit()
        seen: Counter[str] = Counter()
        try:
            for number in range(8 * SERVER_CONNECTIONS):
                try:
                    assert isinstance(ledger.reserve(request(f"{number}")), Permit)
                    seen["charged"] += 1
                except LedgerError as error:
                    seen[error.code] += 1
        finally:
            place.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'lapwing_app'")
        assert seen.keys() == {"charged", "ledger-not-durable"}
        assert ledger.balance().spent == Cost(loss=seen["charged"], delta=0)


def test_a_server_that_forgets_is_not_opened(place: Place) -> None:
    place.create().disconnect()
    place.execute(
        f"ALTER ROLE lapwing_app IN DATABASE {place.database} SET synchronous_commit = off",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'lapwing_app'",
    )
    try:
        with pytest.raises(LedgerError) as refusal:
            place.open()
        assert refusal.value.code == "ledger-not-durable"
    finally:
        place.execute(
            f"ALTER ROLE lapwing_app IN DATABASE {place.database} RESET ALL",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'lapwing_app'",
        )


@pytest.mark.slow
@pytest.mark.parametrize("sources", [1, 10])
def test_32_clients_share_few_sessions_and_the_pooler_is_killed(cluster: Cluster, database: str, tmp_path: Path, sources: int) -> None:
    outcome = kill_while_clients_work(cluster, database, tmp_path, seed=sources, clients=32, sources=sources, acts=6, kills=5)
    assert outcome.violations == []
    assert outcome.counts["kill -9 pooler"] == 5
