"""Small situations, each a few clients with a few steps, in which a mistake of the protocol could show in some order of the steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lapwing.errors import LapwingError
from lapwing.ledger.postgres.anchors import FileAnchors
from tests.ledger.support import approximate_budget, pure_budget, union_budget
from tests.schedules.scheduler import Programs, explore, sample
from tests.schedules.world import Pool, World, step
from tests.support.sizes import size


class Violated(AssertionError):
    """The oracle found something."""


@dataclass(frozen=True)
class Scenario:
    """How a world is made and who acts in it; gone through in full, or with at most so many switches, or so many times by chance."""

    name: str
    clients: Callable[[World], Programs]
    world: Callable[[Pool, Path], World] = World
    switches_max: int | None = None
    sampled: int = 0
    judged: Callable[[World], list[str]] = World.judged

    def run(self, pool: Pool, directory: Path, change: Callable[[World], None] = lambda world: None) -> int:
        """How many schedules there were; the first in which something is wrong is raised as :class:`Violated`."""
        worlds: list[World] = []

        def make() -> Programs:
            world = self.world(pool, directory)
            change(world)
            worlds.append(world)
            return self.clients(world)

        def check(order: str) -> None:
            wrong = self.judged(worlds.pop())
            if wrong:
                raise Violated(f"{self.name}: {'; '.join(wrong)} (in the order {order})")

        if self.sampled:
            return sample(make, check, schedules=self.sampled, seed=6)
        return explore(make, check, switches_max=self.switches_max)


def last_unit(world: World) -> Programs:
    """Two workers ask for one unit more, together, than there is."""
    one, two = world.open("A"), world.open("B")
    return {
        "A": world.client(lambda: world.ask(one, world.request("a", loss=5))),
        "B": world.client(lambda: world.ask(two, world.request("b", loss=6, analyst="bo"))),
    }


def last_delta(world: World) -> Programs:
    """The same with the other amount: each asks for a unit more than half of it."""
    one, two = world.open("A"), world.open("B")
    delta = world.budget.delta_total // 2 + 1
    return {
        "A": world.client(lambda: world.ask(one, world.request("a", delta=delta))),
        "B": world.client(lambda: world.ask(two, world.request("b", delta=delta, analyst="bo"))),
    }


def last_pure_unit(world: World) -> Programs:
    """Each takes all the loss there is and half of the pure epsilon, together a unit more than there is; then a little on the pure side
    alone, and, in one statement with some more of it, something that has no pure amount and fits neither."""
    one, two = world.open("A"), world.open("B")
    loss, pure = world.budget.loss_total, world.budget.pure_total or 0

    def three() -> None:
        world.ask(two, world.request("b", loss=loss, pure=pure - pure // 2, analyst="bo"))
        world.ask(two, world.request("c", loss=5, pure=1, analyst="bo"))
        world.ask_many(two, [world.request("d", loss=1, analyst="bo"), world.request("e", loss=1, pure=1, analyst="bo")])

    return {"A": world.client(lambda: world.ask(one, world.request("a", loss=loss, pure=pure // 2 + 1))), "B": world.client(three)}


def three_for_two(world: World) -> Programs:
    """Three workers, each for a third and a bit."""
    workers = [world.open(name) for name in "ABC"]
    return {
        name: world.client(lambda worker=worker, name=name: world.ask(worker, world.request(name, loss=4)))  # type: ignore[misc]
        for name, worker in zip("ABC", workers, strict=True)
    }


def same_key(world: World) -> Programs:
    """Two workers, one request."""
    one, two = world.open("A"), world.open("B")
    return {
        "A": world.client(lambda: world.ask(one, world.request("a", loss=3))),
        "B": world.client(lambda: world.ask(two, world.request("a", loss=3))),
    }


def same_key_in_one_worker(world: World) -> Programs:
    """Two threads of one worker, one request, asked twice by the second."""
    worker = world.open("A")

    def twice() -> None:
        world.ask(worker, world.request("a", loss=3))
        world.ask(worker, world.request("a", loss=3))

    return {"A": world.client(lambda: world.ask(worker, world.request("a", loss=3))), "B": world.client(twice)}


def other_request_same_key(world: World) -> Programs:
    """One key, two requests that differ."""
    one, two = world.open("A"), world.open("B")
    return {
        "A": world.client(lambda: world.ask(one, world.request("a", loss=3))),
        "B": world.client(lambda: world.ask(two, world.request("a", loss=3, digest="another plan"))),
    }


def lost_replies(world: World) -> Programs:
    """Each reply is lost once, and a copy of each statement arrives when it likes."""
    worker = world.open("A")

    def asks() -> None:
        connection = worker._connection
        connection.lose = "reserve_durably"  # type: ignore[attr-defined]
        world.ask(worker, world.request("a", loss=3))
        connection.lose = "commit_durably"  # type: ignore[attr-defined]
        world.ask(worker, world.request("b", loss=3))

    return {
        "A": world.client(asks),
        "reserve": world.client(lambda: world.send_again(worker, "reserve_durably")),
        "commit": world.client(lambda: world.send_again(worker, "commit_durably")),
    }


def batch(losing: str) -> Callable[[World], Programs]:
    """Several at once by one worker, of which one reply is lost; another asks for one of them, and for what is left."""

    def programs(world: World) -> Programs:
        one, two = world.open("A"), world.open("B")

        def asks_many() -> None:
            one._connection.lose = losing  # type: ignore[attr-defined]
            world.ask_many(one, [world.request("a", loss=3), world.request("b", loss=3, analyst="bo")])

        def asks() -> None:
            world.ask(two, world.request("b", loss=3, analyst="bo"))
            world.ask(two, world.request("c", loss=5))

        return {"A": world.client(asks_many), "B": world.client(asks)}

    return programs


def zombie(world: World) -> Programs:
    """One is taken for dead while it works; another begins, and asks for the same."""
    sleeper = world.open("A")

    def successor() -> None:
        world.declare_dead(sleeper)
        worker = world.open("B")
        world.ask(worker, world.request("a", loss=3))

    return {"A": world.client(lambda: world.ask(sleeper, world.request("a", loss=3))), "B": world.client(successor)}


def believed_dead_goes_on(world: World) -> Programs:
    """The lease of one has run out. Another that is there already asks for the same; the first goes on with something else."""
    sleeper, other = world.open("A"), world.open("B")

    def goes_on() -> None:
        world.ask(sleeper, world.request("a", loss=3))
        world.ask(sleeper, world.request("b", loss=3))

    def takes_over() -> None:
        world.declare_dead(sleeper)
        world.ask(other, world.request("a", loss=3))

    return {"A": world.client(goes_on), "B": world.client(takes_over)}


def dies(at: str) -> Callable[[World], Programs]:
    """One dies at this step; another finds out, and asks for the same."""

    def clients(world: World) -> Programs:
        mortal = world.open("A")

        def successor() -> None:
            world.declare_dead(mortal)
            worker = world.open("B")
            world.ask(worker, world.request("a", loss=3))
            world.ask(worker, world.request("b", loss=9))

        return {"A": world.client(lambda: world.ask(mortal, world.request("a", loss=3), dies=at)), "B": world.client(successor)}

    return clients


def faults_and_retries(world: World) -> Programs:
    """An engine fails; the same key is asked again, and something dear by another."""
    one, two = world.open("A"), world.open("B")

    def fails() -> None:
        world.ask(one, world.request("a", loss=3), fault="plain")
        world.ask(one, world.request("a", loss=3))

    return {"A": world.client(fails), "B": world.client(lambda: world.ask(two, world.request("b", loss=6)))}


def incident(world: World) -> Programs:
    """The data made an engine fail: whoever begins to ask after that is refused."""
    one, two = world.open("A"), world.open("B")

    def asks() -> None:
        world.ask(two, world.request("b", loss=3))
        world.ask(two, world.request("c", loss=3))

    return {"A": world.client(lambda: world.ask(one, world.request("a", loss=3), fault="incident")), "B": world.client(asks)}


def owner_lowers_and_closes(world: World) -> Programs:
    """The owner lowers the budget to what one request costs, then closes and re-opens, while two ask."""
    owner, one, two = world.open("owner"), world.open("A"), world.open("B")

    def acts() -> None:
        try:
            owner.set_budget(pure_budget(6), reason="less")
        except LapwingError as error:
            if error.code != "budget-below-spent":
                raise
        world.close(owner)
        world.reopen(owner)

    def asks() -> None:
        world.ask(one, world.request("a", loss=5))
        world.ask(one, world.request("c", loss=1))

    return {
        "owner": world.client(acts),
        "A": world.client(asks),
        "B": world.client(lambda: world.ask(two, world.request("b", loss=5, analyst="bo"))),
    }


def owner_closes(world: World) -> Programs:
    """The owner closes and re-opens; whoever begins to ask in between is refused."""
    owner, one = world.open("owner"), world.open("A")

    def acts() -> None:
        world.close(owner)
        world.reopen(owner)

    def asks() -> None:
        step("about to ask")
        world.ask(one, world.request("a", loss=5))

    return {"owner": world.client(acts), "A": world.client(asks)}


def two_begin_after_one_died(world: World) -> Programs:
    """Two workers begin at once after one died with something reserved, which nobody asks for again."""
    mortal = world.open("A")
    world.ask_until_permit(mortal, world.request("a", loss=3))
    world.declare_dead(mortal)

    def begins(name: str) -> Callable[[], None]:
        def program() -> None:
            worker = world.open(name)
            world.ask(worker, world.request(f"of {name}", loss=3))

        return program

    return {name: world.client(begins(name)) for name in "BC"}


def restored(world: World) -> Programs:
    """An older state of the source is put back at any step of one that asks; another knows nothing and begins."""
    asking = world.open("A")
    world.ask(asking, world.request("before", loss=2))
    world.keep()

    def asks() -> None:
        world.ask(asking, world.request("a", loss=3))

    def puts_back() -> None:
        world.put_back()
        try:
            worker = world.open("B")
        except LapwingError as error:
            assert error.code == "ledger-rolled-back"
            return
        world.ask(worker, world.request("b", loss=4))

    return {"A": world.client(asks), "B": world.client(puts_back)}


def judged_after_restore(world: World) -> list[str]:
    """Either nothing that was permitted is missing; or the ledger is refused, and an override charges all of it again."""
    kept = FileAnchors(world.directory / "anchors")
    try:
        world.open("judge").disconnect()
    except LapwingError as error:
        if error.code != "ledger-rolled-back":
            return [f"refused as {error.code}"]
        with world.open("judge", override=True) as opened:
            spent = opened.balance().spent
        permitted = {event.key: event.loss for event in world.history if event.what == "permit"}
        return world.found + (["a permit that nobody paid for"] if spent.loss < sum(permitted.values()) else [])
    assert kept.newest(world.source_id) is not None
    return world.judged()


def approximate(pool: Pool, directory: Path) -> World:
    return World(pool, directory, budget=approximate_budget())


def with_order(pool: Pool, directory: Path) -> World:
    return World(pool, directory, budget=union_budget())


FEW = size("schedules, switches")
FEWER = size("schedules, switches where there are most orders")

SCENARIOS = [
    Scenario("last unit", last_unit),
    Scenario("last delta", last_delta, world=approximate),
    Scenario("last pure unit", last_pure_unit, world=with_order, switches_max=2),
    Scenario("three for two", three_for_two, switches_max=FEWER),
    Scenario("same key", same_key),
    Scenario("same key in one worker", same_key_in_one_worker),
    Scenario("other request, same key", other_request_same_key),
    Scenario("lost replies", lost_replies, switches_max=FEWER),
    Scenario("batch", batch("reserve_many_durably"), switches_max=FEW),
    Scenario("batch of answers", batch("commit_many_durably"), switches_max=FEW),
    Scenario("zombie", zombie, switches_max=FEW),
    Scenario("believed dead goes on", believed_dead_goes_on, switches_max=FEW),
    Scenario("dies after reserve", dies("after reserve"), switches_max=2),
    Scenario("dies after commit", dies("after commit"), switches_max=2),
    Scenario("faults and retries", faults_and_retries, switches_max=FEW),
    Scenario("incident", incident, switches_max=2),
    Scenario("owner closes", owner_closes, switches_max=FEW),
    Scenario("owner lowers and closes", owner_lowers_and_closes, sampled=size("schedules, sampled orders")),
    Scenario("two begin after one died", two_begin_after_one_died, switches_max=min(FEWER, 2)),
    Scenario("restored", restored, switches_max=FEW, judged=judged_after_restore),
]
