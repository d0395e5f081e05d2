"""A server and a standby that follows it, and the change from the one to the other when the first is lost."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import psycopg

from tests.faults.clients import ended, new_field, random_plans, started
from tests.faults.table import Outcome, fault
from tests.ledger.cluster import APP_ROLE, Cluster

FOLLOW_SECONDS_MAX = 300.0
ROUND_SECONDS_MAX = 600.0
SETTINGS = ("wal_writer_delay=10s",)
"""Nothing is on a disk unless somebody waited for that."""


def any_of(clusters: list[Cluster], database: str) -> str:
    """Connects to the first of these that can be written to."""
    hosts = ",".join(str(cluster.home) for cluster in clusters)
    return f"host={hosts} dbname={database} user={APP_ROLE} target_session_attrs=read-write"


def followed(primary: Cluster, *, synchronous: bool) -> Cluster:
    """A standby of ``primary``, in step with it. ``synchronous``: the primary waits for it with every commit."""
    standby = Cluster(SETTINGS, standby_of=primary)
    try:
        with primary.superuser() as connection:
            connection.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{'*' if synchronous else ''}'".encode())
            connection.execute("SELECT pg_reload_conf()")
            follows = "SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'"
            _wait(connection, f"{follows} AND flush_lsn >= pg_current_wal_flush_lsn()")
            if synchronous:
                _wait(connection, f"{follows} AND sync_state = 'sync'")
    except BaseException:
        standby.close()
        raise
    return standby


def promote(standby: Cluster) -> None:
    """Make it one that can be written to; it waits for nobody."""
    with standby.superuser() as connection:
        assert connection.execute("SELECT pg_promote()").fetchone() == (True,)
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = ''")
        connection.execute("SELECT pg_reload_conf()")


def fail_over_while_clients_work(directory: Path, *, seed: int, clients: int, sources: int, times: int) -> Outcome:
    """Kill the primary, promote its synchronous standby, make a standby of that one, and so on, while clients ask."""
    primary = Cluster(SETTINGS)
    running = [primary]
    try:
        field = new_field(primary, primary.new_database(), directory, sources=sources, loss_total=10**6)
        database = field.places[0].database
        outcome = Outcome(histories=[field.log])
        for number in range(times):
            primary = running[-1]
            standby = followed(primary, synchronous=True)
            running.append(standby)
            plans = random_plans(field, any_of(running[-2:], database), clients=clients, acts=96 // clients, seed=seed + number)
            seen = field.number_of_events()
            processes = started(field, plans)
            field.wait_for_events(seen + 60, seconds_max=ROUND_SECONDS_MAX)
            primary.stop(signal.SIGKILL)
            promote(standby)
            outcome.counts["failover"] += 1
            ended(processes, seconds_max=ROUND_SECONDS_MAX)
            _, violations = field.judged(codes=frozenset({"reply-lost"}), on=standby)
            outcome.violations += violations
        return outcome
    finally:
        for cluster in running:
            cluster.close()


@fault("failover")
def fail_over_somewhere(cluster: Cluster, directory: Path, seed: int) -> Outcome:
    """One round of the campaign, with servers of its own."""
    clients, sources = random.Random(seed).choice([(1, 1), (4, 10), (16, 1)])
    return fail_over_while_clients_work(directory, seed=seed, clients=clients, sources=sources, times=3)


def _wait(connection: psycopg.Connection[tuple[object, ...]], condition: str) -> None:
    deadline = time.monotonic() + FOLLOW_SECONDS_MAX
    while connection.execute(condition.encode()).fetchone() != (True,):
        assert time.monotonic() < deadline, "the standby does not follow"
        time.sleep(0.02)
