"""How long a ledger is waited for: not at all where waiting cannot help, not for ever where it could, and not in silence."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from lapwing.errors import LedgerError
from lapwing.kernel.permit import Permit
from lapwing.ledger.postgres import connection as connections
from lapwing.ledger.postgres.connection import Connection
from lapwing.ledger.postgres.install import SCHEMA_VERSION
from lapwing.ledger.postgres.verify import verify
from tests.faults.failover import followed
from tests.ledger.cluster import MONITOR_ROLE, Cluster
from tests.ledger.pg import Place, new_place
from tests.ledger.support import pure_budget, request

FOR_EVER = 10_000.0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("dbname=", "dbname=not_"), "there is no such database"),
        (("user=lapwing_app", "user=nobody_here"), "refused the login of this role"),
        (("user=", "usr="), "the connection string is invalid"),
        (("host=", "service=nowhere host="), "the connection string is invalid"),
    ],
)
def test_what_cannot_get_better_is_said_at_once(place: Place, change: tuple[str, str], said: str) -> None:
    """It would be tried for hours."""
    connection = Connection(place.dsn.replace(*change), schema_version=SCHEMA_VERSION, retry_seconds=FOR_EVER)
    with pytest.raises(LedgerError, match=said) as refusal:
        connection.ask("SELECT 1", again=True)
    assert refusal.value.code == "ledger-unreachable"


def test_a_server_that_is_not_there_is_waited_for_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connections, "NOTICE_SECONDS", 0.05)
    connection = Connection(f"host={tmp_path} dbname=x user=y", schema_version=SCHEMA_VERSION, retry_seconds=0.5)
    with caplog.at_level(logging.WARNING), pytest.raises(LedgerError, match="could not be reached in time"):
        connection.ask("SELECT 1", again=True)
    assert [record.getMessage() for record in caplog.records] == [
        "the database of the ledger cannot be reached; trying for up to 0 seconds"
    ]


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    running = Cluster()
    yield running
    running.close()


@pytest.mark.slow
def test_a_lost_standby_is_not_waited_for_for_ever(
    own_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    place = new_place(own_cluster, own_cluster.new_database(), tmp_path)
    ledger = place.create(pure_budget(10))
    _wait_for_standby(own_cluster, "gone")
    monkeypatch.setattr(connections, "REPLY_SECONDS", 2.0)
    monkeypatch.setattr(connections, "NOTICE_SECONDS", 0.5)
    ledger._connection._retry_seconds = 1.0
    with caplog.at_level(logging.WARNING), pytest.raises(LedgerError, match="did not answer in time") as refusal:
        ledger.reserve(request("one", loss=3))
    assert refusal.value.code == "ledger-unreachable" and "a synchronous standby may be missing" in caplog.text
    # An operator who ends the wait makes it look like success to a client that does not listen to warnings. This one does.
    monkeypatch.setattr(connections, "REPLY_SECONDS", 60.0)
    monkeypatch.setattr(connections, "NOTICE_SECONDS", 30.0)
    ended = threading.Event()

    def end_the_wait() -> None:
        with own_cluster.superuser() as connection:
            while not ended.wait(0.05):
                connection.execute("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")

    helper = threading.Thread(target=end_the_wait)
    helper.start()
    try:
        with pytest.raises(LedgerError) as refusal:
            ledger.reserve(request("two", loss=3))
    finally:
        ended.set()
        helper.join()
    assert refusal.value.code == "ledger-not-durable"
    _wait_for_standby(own_cluster, "")
    # Both were charged once, nobody was given a permit, and the ledger goes on.
    assert ledger.balance().spent.loss == 6
    assert isinstance(ledger.reserve(request("three", loss=4)), Permit)
    ledger.disconnect()


def _wait_for_standby(cluster: Cluster, name: str) -> None:
    with cluster.superuser() as connection:
        connection.execute("SET synchronous_commit = local")
        connection.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'".encode())
        connection.execute("SELECT pg_reload_conf()")
    with psycopg.connect(cluster.dsn("postgres", role="postgres"), autocommit=True) as connection:
        while connection.execute("SHOW synchronous_standby_names").fetchone() != (name,):
            pass


@pytest.mark.slow
def test_a_standby_can_be_verified(own_cluster: Cluster, tmp_path: Path) -> None:
    place = new_place(own_cluster, own_cluster.new_database(), tmp_path)
    with place.create(pure_budget(10)) as ledger:
        permit = ledger.reserve(request("one", loss=3))
        assert isinstance(permit, Permit)
        ledger.commit(permit, b"answer")
        standby = followed(own_cluster, synchronous=True)
        try:
            on_standby = replace(place, cluster=standby, role=MONITOR_ROLE)
            reading = Connection(on_standby.dsn, schema_version=SCHEMA_VERSION, standby=True)
            report = verify(reading, place.source_id, anchors=place.anchors)
            assert report.problems == () and report.answers == 1
            reading.close()
            asking = Connection(on_standby.dsn, schema_version=SCHEMA_VERSION, retry_seconds=0.3)
            with pytest.raises(LedgerError) as refusal:
                asking.ask("SELECT 1", again=True)
            assert refusal.value.code == "ledger-unreachable"
            _wait_for_standby(own_cluster, "")
        finally:
            standby.close()
