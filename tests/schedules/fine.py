"""Inside a statement: one client is stopped at a gate within a function of the database, and another acts meanwhile.

What is expected of two operations A and B at every gate of A: if A holds the row of the data set, B waits for it, and the results and the
final state are those of A before B. If A has not locked it yet, B goes on, and all is as if B had come first; after A's change is
committed (A may still wait for the disk), B goes on as well, and all is as if A had come first. Nothing else can happen.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from lapwing.errors import LapwingError
from lapwing.ledger.postgres.ledger import PostgresLedger
from tests.ledger.support import pure_budget
from tests.schedules.scenarios import Violated
from tests.schedules.world import Pool, World

WAIT_SECONDS_MAX = 300.0
POLL_SECONDS = 0.001

Act = Callable[[], str]
"""What one client does; the word says what came of it."""
Operation = Callable[[World, str], Act]
"""Prepared for the client of that name (also the name of its connection): what is done before the other is there."""


def _said(act: Callable[[], object]) -> str:
    try:
        return type(act()).__name__
    except LapwingError as error:
        return error.code


def reserve(world: World, name: str) -> Act:
    worker = world.open(name)
    return lambda: _said(lambda: worker.reserve(world.request(f"of {name}", loss=6)))


def reserve_many(world: World, name: str) -> Act:
    """Two at once, which together pass what is left after another's."""
    worker = world.open(name)

    def act() -> str:
        outcomes = worker.reserve_many([world.request(f"{number} of {name}", loss=3) for number in range(2)])
        return ", ".join(outcome.code if isinstance(outcome, LapwingError) else type(outcome).__name__ for outcome in outcomes)

    return act


def reserve_across(world: World, name: str) -> Act:
    """Of this data set and of another in one statement; what is left out of it is asked alone."""
    elsewhere = World(world.pool, world.directory)
    workers = world.open(name), elsewhere.open(name)
    across, batches = (world.pool.subject.module(f"postgres.{module}") for module in ("across", "batch"))

    def act() -> str:
        sent = across.CrossDataSetBatch(across._RESERVE, world.pool.subject.dsn, 20.0)
        sent._connection = workers[0]._connection
        asked = [batches.Batch.of([where.request(f"of {name}", loss=6)]) for where in (world, elsewhere)]
        parts = [
            across.LedgerPart(worker.ledger_id, worker.epoch, worker._known, [*batch.columns, batch.purchases])
            for worker, batch in zip(workers, asked, strict=True)
        ]
        decided = sent._send(parts)[0]
        if decided is None:
            [outcome] = workers[0]._reserve_batch(asked[0])
            return outcome.code if isinstance(outcome, LapwingError) else type(outcome).__name__
        workers[0]._advance(world.pool.subject.module("postgres.rows").state_of_texts(decided.state))
        return type(asked[0].permits(decided.marks)[0]).__name__

    return act


def reserve_elsewhere(world: World, name: str) -> Act:
    """From another data set, which has nothing to do with this one."""
    elsewhere = World(world.pool, world.directory)
    return reserve(elsewhere, name)


def reserve_shared_key(world: World, name: str) -> Act:
    worker = world.open(name)
    return lambda: _said(lambda: worker.reserve(world.request("shared", loss=6)))


def _with_permit(world: World, name: str) -> tuple[PostgresLedger, Any]:
    worker = world.open(name)
    permit = worker.reserve(world.request(f"of {name}", loss=2))
    world.permits[name] = (worker, permit)
    return worker, permit


def commit(world: World, name: str) -> Act:
    worker, permit = _with_permit(world, name)
    return lambda: _said(lambda: worker.commit(permit, b"answer"))


def commit_many(world: World, name: str) -> Act:
    """Two answers at once."""
    worker, permit = _with_permit(world, name)
    other: Any = worker.reserve(world.request(f"other of {name}", loss=2))

    def act() -> str:
        outcomes = worker.commit_many([(permit, b"answer"), (other, b"other answer")])
        return ", ".join("stored" if outcome is None else outcome.code for outcome in outcomes)

    return act


def incident(world: World, name: str) -> Act:
    worker, permit = _with_permit(world, name)
    return lambda: _said(lambda: worker.forfeit(permit, incident=True))


def begin_after_a_death(world: World, name: str) -> Act:
    """Everyone who holds a permit is taken for dead by the one who begins."""

    def act() -> str:
        for worker, _ in world.permits.values():
            world.declare_dead(worker)
        return _said(lambda: world.open(name))

    return act


def lower(world: World, name: str) -> Act:
    owner = world.open(name)
    return lambda: _said(lambda: owner.set_budget(pure_budget(6), reason="less"))


def close(world: World, name: str) -> Act:
    owner = world.open(name)
    return lambda: _said(lambda: owner.close("asked"))


def reopen(world: World, name: str) -> Act:
    owner = world.open(name)
    owner.close("asked")
    return lambda: _said(lambda: owner.reopen("asked"))


PAIRS: list[tuple[Operation, Operation]] = [
    (reserve, reserve),
    (reserve_shared_key, reserve_shared_key),
    (reserve, lower),
    (reserve, close),
    (commit, begin_after_a_death),
    (begin_after_a_death, commit),
    (commit, reserve),
    (incident, reserve),
    (lower, reserve),
    (close, reserve),
    (reopen, reserve),
    (reserve, reserve_elsewhere),
    (reserve_many, reserve),
    (reserve, reserve_many),
    (reserve_across, reserve),
    (reserve, reserve_across),
    (reserve_across, close),
    (reserve_across, reserve_across),
    (commit_many, begin_after_a_death),
    (begin_after_a_death, commit_many),
    (commit_many, reserve),
]


@dataclass(frozen=True)
class Seen:
    """What two operations led to."""

    first: str
    second: str
    spent: tuple[int, int]
    budget: int
    is_closed: bool
    charges: tuple[tuple[str, str, int], ...]
    problems: tuple[str, ...] = ()


@dataclass
class Pair:
    """Two operations on worlds of their own, made anew for each try."""

    pool: Pool
    directory: Path
    first: Operation
    second: Operation
    waited: int = 0
    tries: int = 0
    gates: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.first.__name__} and {self.second.__name__}"

    def check(self) -> None:
        """At every gate of the first; :class:`Violated` says what is not as it must be."""
        first_then_second, self.gates = self._in_turn(first_goes_first=True)
        second_then_first, _ = self._in_turn(first_goes_first=False)
        phase = "before"
        for gate in self.gates:
            self.tries += 1
            seen, locked, waited = self._at(gate)
            self.waited += waited
            phase = "locked" if locked else {"before": "before", "locked": "after", "after": "after"}[phase]
            expected = second_then_first if phase == "before" else first_then_second
            at = f"{self.name}, at {gate}"
            if self.second is reserve_elsewhere and waited:
                raise Violated(f"{at}: another data set waited")
            if locked and not waited and self.second is not reserve_elsewhere:
                raise Violated(f"{at}: the other did not wait for the lock")
            if not locked and waited:
                raise Violated(f"{at}: the other waited and need not")
            if seen != expected:
                raise Violated(f"{at}: as in no order, or the wrong one: {seen} instead of {expected}")
        if phase == "before":
            raise Violated(f"{self.name}: the row of the data set was locked at no gate")

    def _in_turn(self, *, first_goes_first: bool) -> tuple[Seen, list[str]]:
        world = World(self.pool, self.directory)
        first, second = self.first(world, "A"), self.second(world, "B")
        connection = self.pool.connection("A")
        if first_goes_first:
            connection.ask("SELECT set_config('lapwing.passed', '', false)", again=False)
            said_first = first()
            [(passed,)] = connection.ask("SELECT current_setting('lapwing.passed', true)", again=False)
            said_second = second()
        else:
            said_second, said_first = second(), first()
            passed = ""
        return self._seen(world, said_first, said_second), list(dict.fromkeys(passed.split()))

    def _at(self, gate: str) -> tuple[Seen, bool, bool]:
        """The first is stopped at the gate while the second acts: what is seen, whether the row was locked, whether the second waited."""
        world = World(self.pool, self.directory)
        first, second = _Doing(self.first(world, "A")), _Doing(self.second(world, "B"))
        [(first_pid,)] = self.pool.connection("A").ask("SELECT pg_backend_pid()", again=False)
        [(second_pid,)] = self.pool.connection("B").ask("SELECT pg_backend_pid()", again=False)
        with self._shut(gate):
            first.start()
            self._until(lambda: self._waits_at_gate(first_pid), f"{self.name}: {gate} is not reached")
            locked = self._is_locked(world)
            second.start()
            self._until(lambda: second.done or self._waits_for(second_pid, first_pid), f"{self.name}, at {gate}: the other hangs")
            waited = not second.done
        first.join()
        second.join()
        return self._seen(world, first.said, second.said), locked, waited

    def _shut(self, gate: str) -> _Shut:
        return _Shut(self.pool.superuser, f"A {gate}")

    def _until(self, reached: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while not reached():
            assert time.monotonic() < deadline, otherwise
            time.sleep(POLL_SECONDS)

    def _waits_at_gate(self, pid: int) -> bool:
        return self._is("EXISTS (SELECT FROM pg_locks WHERE pid = %s AND locktype = 'advisory' AND NOT granted)", pid)

    def _waits_for(self, pid: int, other: int) -> bool:
        return self._is("%s = ANY (pg_blocking_pids(%s))", other, pid)

    def _is(self, condition: str, *parameters: int) -> bool:
        row = self.pool.superuser.execute(f"SELECT {condition}".encode(), parameters).fetchone()
        return row is not None and bool(row[0])

    def _is_locked(self, world: World) -> bool:
        try:
            self.pool.superuser.execute(
                "SELECT FROM lapwing.data_set WHERE ledger_id = %s FOR NO KEY UPDATE NOWAIT", [world.ledger_id]
            ).fetchall()
        except psycopg.errors.LockNotAvailable:
            return True
        return False

    def _seen(self, world: World, first: str, second: str) -> Seen:
        state = world.state()
        charges = sorted((charge.key, charge.state, charge.loss) for charge in state.charges)
        return Seen(
            first,
            second,
            (state.loss_spent, state.delta_spent),
            state.loss_total,
            state.closed,
            tuple(charges),
            tuple(world.problems(state)),
        )


class _Doing(threading.Thread):
    """An operation in a thread of its own."""

    def __init__(self, act: Act) -> None:
        super().__init__(daemon=True)
        self.act, self.said, self.done = act, "", False

    def run(self) -> None:
        try:
            self.said = self.act()
        except BaseException as error:
            self.said = f"{type(error).__name__}: {error}"
        finally:
            self.done = True

    def join(self, timeout: float | None = WAIT_SECONDS_MAX) -> None:
        super().join(timeout)
        assert self.done, "an operation hangs after its gate was opened"


class _Shut:
    """A gate that is shut for a while."""

    def __init__(self, connection: psycopg.Connection[tuple[object, ...]], name: str) -> None:
        self.connection, self.name = connection, name

    def __enter__(self) -> None:
        self.connection.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [self.name])

    def __exit__(self, *error: object) -> None:
        self.connection.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", [self.name])
