"""All interleavings of a few clients with a few steps, on a real server: the oracle finds nothing.

How many there are is part of the test: an exploration that shrinks tests less than it says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.schedules.scenarios import SCENARIOS, Scenario
from tests.schedules.scheduler import Client, Died, Programs, explore, run, sample
from tests.schedules.subject import Subject
from tests.schedules.world import Pool
from tests.support.sizes import TIER, Tier, size

SCHEDULES_MIN = {
    "three for two": 100 if TIER is Tier.SOAK else 50,
    "lost replies": 80 if TIER is Tier.SOAK else 50,
    "batch": 50 if TIER is Tier.SOAK else 30,
    "batch of answers": 50 if TIER is Tier.SOAK else 30,
    "zombie": 250 if TIER is Tier.SOAK else 50,
    "believed dead goes on": 40 if TIER is Tier.SOAK else 30,
    "dies after reserve": 40,
    "dies after commit": 50,
    "incident": 30,
    "owner closes": 50 if TIER is Tier.SOAK else 30,
    "owner lowers and closes": size("schedules, sampled orders"),
    "two begin after one died": 80 if TIER is Tier.SOAK else 20,
    "restored": 200 if TIER is Tier.SOAK else 40,
}
"""The others have at least 6: two workers, of which the one that comes second is refused at its first step."""


@pytest.fixture(scope="module")
def pool(shipped: Subject) -> Iterator[Pool]:
    made = Pool(shipped)
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_no_order_of_steps_breaks_the_promise(scenario: Scenario, pool: Pool, tmp_path: Path) -> None:
    schedules = scenario.run(pool, tmp_path)
    assert schedules >= SCHEDULES_MIN.get(scenario.name, 6)


def orders_of(programs: dict[str, int], switches_max: int | None = None) -> list[str]:
    """All orders in which clients with so many steps can go."""
    seen: list[str] = []

    def walk(steps: int) -> Callable[[Client], None]:
        def program(client: Client) -> None:
            for _ in range(steps):
                client.step("a step")

        return program

    count = explore(lambda: {name: walk(steps) for name, steps in programs.items()}, seen.append, switches_max=switches_max)
    assert count == len(seen)
    return seen


def test_every_order_is_tried_once() -> None:
    orders = orders_of({"a": 2, "b": 3})
    assert len(orders) == len(set(orders)) == 10  # 5 over 2
    assert len(orders_of({"a": 2, "b": 2, "c": 2})) == 90  # 6! / 2!^3
    assert "a b a b b" in orders


def test_switches_are_counted_only_where_a_client_could_have_gone_on() -> None:
    assert orders_of({"a": 2, "b": 2}, switches_max=0) == ["a a b b", "b b a a"]
    assert sorted(orders_of({"a": 2, "b": 2}, switches_max=1)) == ["a a b b", "a b b a", "b a a b", "b b a a"]


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    def make() -> Programs:
        def program(client: Client) -> None:
            client.step("one")
            client.step("two")

        return {"a": program, "b": program}

    seen: list[list[str]] = [[], []]
    for orders in seen:
        assert sample(make, orders.append, schedules=8, seed=1) == 8
    assert seen[0] == seen[1] and len(set(seen[0])) > 1


def test_one_that_dies_does_nothing_more_and_an_error_is_not_lost() -> None:
    done: list[str] = []

    def dies(client: Client) -> None:
        client.step("one")
        raise Died

    def lives(client: Client) -> None:
        client.step("one")
        done.append("lived")

    run({"a": dies, "b": lives}, lambda index, able: 0)
    assert done == ["lived"]

    def fails(client: Client) -> None:
        client.step("one")
        raise ValueError("of a client")

    with pytest.raises(ValueError, match="of a client"):
        run({"a": fails}, lambda index, able: 0)
