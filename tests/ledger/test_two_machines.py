"""Two machines on one database, and backups that are put back at any moment: never more than the budget is spent.

A machine has its own anchors, or both share one directory, or both write to both. All orders of questions, of a backup, of its
restoration and
of the owner's acceptance are tried with the code that decides, over a database in memory; a sample of them on PostgreSQL.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import psycopg
import pytest

from lapwing.errors import LapwingError, LedgerError
from lapwing.kernel.accounting import Cost
from lapwing.kernel.permit import Permit
from lapwing.ledger.postgres import opening
from lapwing.ledger.postgres.anchors import (
    AnchorPoint,
    Anchors,
    FileAnchors,
    Milestone,
    SeveralAnchors,
    _Kept,
    _milestones,
    require_follows,
)
from lapwing.ledger.postgres.ledger import PostgresLedger
from tests.ledger.pg import Place
from tests.ledger.support import pure_budget, request

TOTAL, QUESTION = 10, 4
"""Two questions are paid for, a third is too much."""
BUDGET = pure_budget(TOTAL)
SETUPS = ("own", "shared", "both")
BACKUP, RESTORE, ACCEPT_A, ACCEPT_B, ASK_A, ASK_B = "backup", "restore", "accept a", "accept b", "ask a", "ask b"
TABLES = ("data_set", "analyst_group", "analyst", "worker", "charge", "entry", "proposal")


def stories() -> Iterator[tuple[str, ...]]:
    """Questions before a backup, until it is put back, after that, and after it is put back again; with any acceptance after either."""
    asks = (ASK_A, ASK_B)
    words = [word for length in range(3) for word in itertools.product(asks, repeat=length)]
    short = words[:3]
    acceptances: tuple[tuple[str, ...], ...] = ((), (ACCEPT_A,), (ACCEPT_B,), (ACCEPT_A, ACCEPT_B))
    for before, between, accepted, after in itertools.product(words, words, acceptances, words):
        first = (*before, BACKUP, *between, RESTORE, *accepted, *after)
        yield first
        for accepted_again, last in itertools.product(acceptances, short):
            yield (*first, RESTORE, *accepted_again, *last)


@dataclass
class Memory:
    """An anchor in memory, with the rules of the files."""

    name: str
    kept: _Kept | None = None

    def newest(self, source_id: str) -> AnchorPoint | None:
        return None if self.kept is None else self.kept.point

    def milestones(self, source_id: str) -> tuple[Milestone, ...]:
        return () if self.kept is None else self.kept.milestones

    def known(self, source_id: str) -> Mapping[str, AnchorPoint | None]:
        return {self.name: self.newest(source_id)}

    def require_ready(self, source_id: str) -> None:
        pass

    def advance(self, point: AnchorPoint, *, holds: Callable[[AnchorPoint], bool], override: bool = False) -> AnchorPoint:
        if self.kept is not None and not override:
            require_follows(self.kept.point, point, holds)
            if self.kept.point.entries >= point.entries:
                return self.kept.point
        self.kept = _Kept(point, _milestones(self.kept, point, holds, override=override))
        return point


@dataclass
class Database:
    """What the functions of the database decide, in a few lines."""

    anchors: list[str]
    heads: list[str] = field(default_factory=lambda: ["made"])
    spent: int = 0
    anchored: int = 0
    _made: Iterator[int] = field(default_factory=itertools.count)

    def point(self) -> AnchorPoint:
        return AnchorPoint("clinic", "one", len(self.heads), self.heads[-1], BUDGET, BUDGET, Cost(loss=self.spent, delta=0), False)

    def has(self, entries: int, head: str) -> bool:
        return 0 < entries <= len(self.heads) and self.heads[entries - 1] == head

    def holds(self, point: AnchorPoint) -> bool:
        return self.has(point.entries, point.head)

    def charge(self, loss: int) -> None:
        self.heads.append(f"entry {next(self._made)}")
        self.spent = min(TOTAL, self.spent + loss)

    def copy(self) -> Database:
        return replace(self, heads=list(self.heads), anchors=list(self.anchors))


class Machine:
    """A worker, as :class:`PostgresLedger` is one."""

    def __init__(self, world: InMemory, anchors: Anchors) -> None:
        self.world, self.anchors = world, anchors
        self.known: AnchorPoint | None = None
        self.names: list[str] = []

    def open(self, *, override: bool) -> None:
        self.known = None
        database, kept = self.world.database, self.anchors.known("clinic")
        found = opening.LedgerInDatabase(state=database.point(), sources=(), anchors=tuple(database.anchors), anchored=database.anchored)
        opening.require_anchors(found, kept)
        problems = opening.disagreements(found, kept, fingerprint=None, holds=database.holds)
        if problems and not override:
            raise problems[0]
        self.names = sorted(kept)
        if problems:
            memory = self.anchors.newest("clinic")
            if memory is not None and not database.holds(memory):
                lost = opening.lost_since(self.anchors.milestones("clinic"), memory, has=database.has)
                database.charge(lost.loss)
            assert set(database.anchors) <= set(self.names)
            database.anchors = self.names
            self.anchors.advance(database.point(), holds=database.holds, override=True)
        assert database.anchors == self.names
        self.known = self.anchors.advance(database.point(), holds=database.holds)

    def ask(self) -> bool:
        if self.known is None:
            self.open(override=False)
        assert self.known is not None
        database = self.world.database
        if not database.holds(self.known):
            raise LedgerError("ledger-rolled-back", "")
        if self.names != database.anchors or database.spent + QUESTION > TOTAL:
            return False
        database.charge(QUESTION)
        database.anchored = max(database.anchored, self.known.entries)
        self.known = self.anchors.advance(database.point(), holds=database.holds)
        return True


def anchors_of(setup: str, first: Anchors, second: Anchors) -> tuple[Anchors, Anchors]:
    """Where the two machines write to."""
    both = SeveralAnchors([first, second])
    return {"own": (first, second), "shared": (first, first), "both": (both, both)}[setup]


class InMemory:
    def __init__(self, setup: str) -> None:
        first, second = Memory("first"), Memory("second")
        anchors = anchors_of(setup, first, second)
        self.database = Database(sorted(anchors[0].known("clinic")))
        anchors[0].advance(self.database.point(), holds=lambda point: True, override=True)
        self.machines = {"a": Machine(self, anchors[0]), "b": Machine(self, anchors[1])}
        self.backup = self.database.copy()

    def ask(self, name: str) -> bool:
        return self.machines[name].ask()

    def accept(self, name: str) -> None:
        self.machines[name].open(override=True)

    def take_backup(self) -> None:
        self.backup = self.database.copy()

    def restore(self) -> None:
        self.database = self.backup.copy()

    def close(self) -> None:
        pass


class OnPostgres:
    """The same with real workers. A worker stays open until it is refused; then a new one tries."""

    def __init__(self, setup: str, place: Place, directory: Path) -> None:
        first, second = FileAnchors(directory / "first"), FileAnchors(directory / "second")
        anchors = anchors_of(setup, first, second)
        self.places = {"a": replace(place, anchors=anchors[0]), "b": replace(place, anchors=anchors[1])}
        self.open: dict[str, PostgresLedger] = {"a": self.places["a"].create(BUDGET)}
        self.ledger_id, self.superuser = self.open["a"].ledger_id, place.cluster.superuser(place.database)
        self.numbers = itertools.count()
        self.take_backup()

    def ask(self, name: str) -> bool:
        if name not in self.open:
            self.open[name] = self.places[name].open()
        try:
            return isinstance(self.open[name].reserve(request(f"{next(self.numbers)}", loss=QUESTION)), Permit)
        except LedgerError:
            self._leave(name)
            raise

    def accept(self, name: str) -> None:
        self._leave(name)
        self.open[name] = self.places[name].open(override=True, reason="a disk failed")

    def take_backup(self) -> None:
        for table in TABLES:
            self.superuser.execute(f"DROP TABLE IF EXISTS kept_{table}".encode())
            statement = psycopg.sql.SQL(f"CREATE TEMP TABLE kept_{table} AS SELECT * FROM lapwing.{table} WHERE ledger_id = {{}}")
            self.superuser.execute(statement.format(self.ledger_id))

    def restore(self) -> None:
        with self.superuser.transaction():
            self.superuser.execute("SET LOCAL session_replication_role = replica")
            for table in TABLES:
                self.superuser.execute(f"DELETE FROM lapwing.{table} WHERE ledger_id = %s".encode(), [self.ledger_id])
                self.superuser.execute(f"INSERT INTO lapwing.{table} SELECT * FROM kept_{table}".encode())

    def _leave(self, name: str) -> None:
        if name in self.open:
            self.open.pop(name)._connection.close()

    def close(self) -> None:
        for name in ("a", "b"):
            self._leave(name)
        self.superuser.close()


def spent_in(world: InMemory | OnPostgres, story: tuple[str, ...]) -> int:
    """How much was permitted in all, whatever the database remembers."""
    spent = 0
    for event in story:
        try:
            match event.split():
                case ["ask", name]:
                    for _ in range(2):  # once as the worker that it is, and if that is refused as a new one
                        try:
                            spent += QUESTION * world.ask(name)
                            break
                        except LedgerError:
                            continue
                case ["accept", name]:
                    world.accept(name)
                case ["backup"]:
                    world.take_backup()
                case _:
                    world.restore()
        except LapwingError:
            continue
    return spent


@pytest.mark.parametrize("setup", SETUPS)
def test_never_more_than_the_budget_in_any_order(setup: str) -> None:
    most = number = 0
    for story in stories():
        spent = spent_in(InMemory(setup), story)
        assert spent <= TOTAL, (setup, story)
        most, number = max(most, spent), number + 1
    assert most == 2 * QUESTION and number == 7 * 7 * 4 * 7 * 13


@pytest.mark.slow
@pytest.mark.parametrize("setup", SETUPS)
def test_never_more_than_the_budget_on_postgresql(setup: str, place: Place, tmp_path: Path) -> None:
    chosen = random.Random(setup).sample(list(stories()), 12)
    # The one that was reported: b was there before the backup, a spends, the backup is put back, b goes on.
    reported = (ASK_B, BACKUP, ASK_A, RESTORE, ASK_B, ASK_B)
    for number, story in enumerate([reported, *chosen]):
        world = OnPostgres(setup, replace(place, source_id=f"{place.source_id} {number}"), tmp_path / f"{number}")
        try:
            spent = spent_in(world, story)
        finally:
            world.close()
        assert spent <= TOTAL, story
        assert spent == spent_in(InMemory(setup), story), ("the model says something else", story)


def test_what_one_machine_sees_alone_would_not_do() -> None:
    """The rule is needed: with the anchors of each machine registered nowhere, the story that was reported spends too much."""
    world = InMemory("own")
    for machine in world.machines.values():
        machine.names = []
        machine.open = lambda *, override, machine=machine: _without_names(machine)  # type: ignore[method-assign, misc]
    assert spent_in(world, (ASK_B, BACKUP, ASK_A, RESTORE, ASK_B, ASK_B)) > TOTAL


def _without_names(machine: Machine) -> None:
    """How a worker was opened when each machine had anchors of its own: it compared what its own anchor knew."""
    database = machine.world.database
    kept = machine.anchors.newest("clinic")
    if kept is not None and not database.holds(kept):
        raise LedgerError("ledger-rolled-back", "")
    machine.names = database.anchors
    machine.known = machine.anchors.advance(database.point(), holds=database.holds)
