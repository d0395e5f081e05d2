"""What a ledger must pass: schedules, gates, walks along the model, a killed server. Each raises ``Violated`` at what it sees first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lapwing.errors import LapwingError
from tests.faults.oracle import violations
from tests.schedules import fine
from tests.schedules.policy_machine import policy_walk
from tests.schedules.scenarios import SCENARIOS, Scenario, Violated, dies
from tests.schedules.subject import Subject
from tests.schedules.world import Pool, World

WALKS = 12
WALK_STEPS = 200

BY_NAME = {scenario.name: scenario for scenario in (*SCENARIOS, Scenario("dies before commit", dies("before commit"), switches_max=2))}


def needs_gates(name: str) -> bool:
    """Whether the subject of this check must have been built with gates."""
    return name.startswith("gates ")


def run_check(name: str, subject: Subject, directory: Path, *, use: str = "") -> int:
    """The check of this name; how many schedules, gates or steps it went through. ``use`` is a mistake of the clients."""
    if name == "crash":
        return killed_server(subject, directory)
    with _pool(subject) as pool, _judged():
        kind, _, rest = name.partition(" ")
        match kind:
            case "schedule":
                change: Callable[[World], None] = (lambda world: setattr(world, use, True)) if use else (lambda world: None)
                return BY_NAME[rest].run(pool, directory, change)
            case "gates":
                first, second = rest.split(" ")
                pair = fine.Pair(pool, directory, getattr(fine, first), getattr(fine, second))
                pair.check()
                return pair.tries
            case "model":
                for seed in range(WALKS):
                    for has_order in (False, True):
                        policy_walk(seed, steps=WALK_STEPS, pool=pool, directory=directory, has_order=has_order)
                return 2 * WALKS * WALK_STEPS
            case _:
                raise AssertionError(f"there is no check {name!r}")


def killed_server(subject: Subject, directory: Path) -> int:
    """The server is killed after a permit, and after an answer was sent; what clients saw must be there when it runs again.

    It must be a server that writes nothing on its own (``wal_writer_delay``).
    """
    moments = ("after reserve", "sent")
    for until in moments:
        with _pool(subject) as pool:
            world = World(pool, directory)
            worker = world.open("A")
            if until == "sent":
                world.ask(worker, world.request("a", loss=3))
            else:
                world.ask_until_permit(worker, world.request("a", loss=3))
            subject.cluster.crash()
        with _pool(subject) as pool:
            world.pool = pool
            wrong = violations(world.history, world.state())
        if wrong:
            raise Violated(f"server killed {until}: {'; '.join(wrong)}")
    return len(moments)


@contextmanager
def _pool(subject: Subject) -> Iterator[Pool]:
    pool = Pool(subject)
    try:
        yield pool
    finally:
        pool.close()


@contextmanager
def _judged() -> Iterator[None]:
    """A refusal where none may be, and a difference from the model, are violations too; a server that cannot be used is not."""
    try:
        yield
    except Violated:
        raise
    except AssertionError as error:
        raise Violated(f"not as the model says: {error}") from error
    except LapwingError as error:
        if error.code == "ledger-unreachable":
            raise
        raise Violated(f"refused where it may not be: {error.code}") from error
