"""A process that forks while its threads hold what a ledger on PostgreSQL locks.

Run as a script by ``test_postgres_forks``: ``python forking_postgres.py SCENARIO DSN SOURCE ANCHORS``. A script, because the process
that runs the tests may have threads of its own. A child that waits for ever is ended by an alarm, and then its exit status is not 0.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from lapwing.kernel.permit import Permit
from lapwing.ledger.postgres import across
from lapwing.ledger.postgres.anchors import AnchorPoint, FileAnchors
from lapwing.ledger.postgres.connection import Connection
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.postgres.shared import SharedPostgresLedger
from tests.ledger.support import request

CHILD_SECONDS_MAX = 120


def in_child(act: Callable[[], None]) -> None:
    pid = os.fork()
    if pid == 0:
        signal.alarm(CHILD_SECONDS_MAX)
        act()
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, status


def charge(ledger: PostgresLedger, key: str) -> None:
    permit = ledger.reserve(request(key))
    assert isinstance(permit, Permit)
    ledger.commit(permit, key.encode())


def while_a_thread_holds_the_gate(ledger: PostgresLedger, anchors: FileAnchors) -> None:
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with ledger._gate:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    in_child(lambda: charge(ledger, "the child's"))
    done.set()
    thread.join()
    charge(ledger, "the parent's")
    assert ledger.balance().spent.loss == 2


def while_a_thread_waits_for_the_server(ledger: PostgresLedger, anchors: FileAnchors) -> None:
    asked = threading.Event()

    def ask() -> None:
        asked.set()
        assert ledger.connection.ask("SELECT 1 FROM pg_sleep(2)", again=True) == [(1,)]

    thread = threading.Thread(target=ask)
    thread.start()
    asked.wait()
    in_child(lambda: charge(ledger, "the child's"))
    in_child(ledger.disconnect)
    thread.join()
    charge(ledger, "the parent's")
    assert ledger.balance().spent.loss == 2


def while_a_thread_writes_the_anchor(ledger: PostgresLedger, anchors: FileAnchors) -> None:
    """The child lives on; the lock on the file is the parent's to give back all the same."""
    locked, forked = threading.Event(), threading.Event()
    here = anchors.newest(ledger.state().source_id)
    assert here is not None

    def wait_inside(point: AnchorPoint) -> bool:
        locked.set()
        forked.wait()
        return True

    thread = threading.Thread(target=lambda: anchors.advance(replace(here, closed=False), holds=wait_inside))
    thread.start()
    locked.wait()
    child = os.fork()
    if child == 0:
        signal.pause()
    forked.set()
    thread.join()
    signal.alarm(CHILD_SECONDS_MAX)
    charge(ledger, "with the child alive")
    signal.alarm(0)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


class _Slow:
    """A connection whose replies come when they are let."""

    def __init__(self, inner: Connection) -> None:
        self.inner, self.asked, self.let = inner, threading.Event(), threading.Event()

    def ask(self, statement: str, parameters: Sequence[object], *, again: bool) -> list[tuple[object, ...]]:
        self.asked.set()
        self.let.wait()
        return self.inner.ask(statement, parameters, again=again)

    def close(self) -> None:
        self.inner.close()


def while_threads_send_together(ledger: PostgresLedger, anchors: FileAnchors) -> None:
    """One thread has the turn to send for all data sets, and others wait for it."""
    opened = [SharedPostgresLedger.open(ledger._dsn, source_id=ledger._source_id, anchors=anchors) for _ in range(2)]
    crossing = across.crossing_of(opened[0]._database)
    assert crossing is not None
    slow = _Slow(crossing.reservations._connection)
    crossing.reservations._connection = slow  # type: ignore[assignment]
    threads = [threading.Thread(target=charge, args=(opened[number % 2], f"of thread {number}")) for number in range(3)]
    for thread in threads:
        thread.start()
    slow.asked.wait()
    in_child(lambda: charge(opened[0], "the child's"))
    in_child(opened[1].disconnect)
    slow.let.set()
    for thread in threads:
        thread.join()
    charge(opened[1], "the parent's")
    assert ledger.balance().spent.loss == 5
    for one in opened:
        one.disconnect()


if __name__ == "__main__":
    scenario, dsn, source_id, directory = sys.argv[1:]
    sink = FileAnchors(Path(directory))
    with PostgresLedger.open(dsn, source_id=source_id, anchors=sink) as opened:
        globals()[scenario](opened, sink)
    print("passed")
