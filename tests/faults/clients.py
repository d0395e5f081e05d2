"""Client processes for a fault: forked from a process that has imported everything, and judged by the oracle when they are gone."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from lapwing.ledger.postgres import policy
from lapwing.ledger.postgres.anchors import FileAnchors
from lapwing.ledger.postgres.policy import Limits
from tests.faults import history
from tests.faults.history import Event, What
from tests.faults.oracle import LedgerState, recovered
from tests.faults.rounds import EXPECTED_CODES
from tests.faults.worker import Act, Mode, Plan, Steps, live
from tests.ledger.cluster import Cluster
from tests.ledger.pg import Place, new_place
from tests.ledger.support import pure_budget

SOURCES_OF_CLIENT = 3
"""How many sources one client asks at most."""

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.faults.clients", "psycopg"])

ORDINARY = (*[Mode.ANSWER] * 5, Mode.FAIL, Mode.LEAVE, Mode.FIND, Mode.RENEW, Mode.MANY, Mode.INCIDENT)


@dataclass(frozen=True, slots=True)
class Field:
    """Some sources in one database, with the anchors of all of them and one history of what clients saw."""

    places: tuple[Place, ...]
    log: Path

    @property
    def anchors(self) -> FileAnchors:
        anchors = self.places[0].anchors
        assert isinstance(anchors, FileAnchors)
        return anchors

    def events(self) -> list[Event]:
        return history.read(self.log)

    def number_of_events(self) -> int:
        """About so many; without reading what they are."""
        return self.log.read_bytes().count(b"\n{") if self.log.exists() else 0

    def wait_for_events(self, number: int, *, seconds_max: float) -> None:
        """Until there are so many."""
        deadline = time.monotonic() + seconds_max
        while self.number_of_events() < number:
            assert time.monotonic() < deadline, "clients do not go on"
            time.sleep(0.02)

    def judged(self, *, codes: frozenset[str] = frozenset(), on: Cluster | None = None) -> tuple[list[LedgerState], list[str]]:
        """When all clients are gone: the settled state of every source, and every violation.

        ``codes`` are what clients may have been told besides what an undisturbed server tells them; ``on`` is the server that has the
        sources by now.
        """
        events = self.events()
        told = Counter(event.code for event in events if event.what in (What.REFUSED, What.LOST))
        states, found = [], [f"told {code} ({told[code]} times)" for code in sorted(told.keys() - EXPECTED_CODES - codes)]
        for place in self.places:
            direct = (place.cluster if on is None else on).dsn(place.database)
            state, problems = recovered(direct, place.source_id, anchors=self.anchors, history=events)
            states.append(state)
            found += [f"{place.source_id}: {problem}" for problem in problems]
        return states, found


def new_field(cluster: Cluster, database: str, directory: Path, *, sources: int, loss_total: int) -> Field:
    """Sources with this budget each, made without whatever stands between clients and server."""
    directory.mkdir(parents=True, exist_ok=True)
    places = []
    for _ in range(sources):
        place = new_place(cluster, database, directory)
        with place.create(pure_budget(loss_total)) as ledger:
            policy.set_limits(ledger, Limits(lost_workers_max=10**6))
        places.append(place)
    return Field(tuple(places), directory / "history.jsonl")


def scarce_loss(*, clients: int, sources: int, acts: int) -> int:
    """A budget for each source that ends a little before the clients do: an act of a random plan costs two units on average."""
    return max(4, clients * acts * 16 // (10 * min(sources, clients * SOURCES_OF_CLIENT)))


def random_plans(
    field: Field, dsn: str, *, clients: int, acts: int, seed: int, modes: Sequence[Mode] = ORDINARY, generation: int = 0
) -> list[Plan]:
    """What each client asks, where: most keys are its own, some are those of another, sometimes for another plan.

    Generations that follow each other on one field share no key.
    """
    chance = random.Random(seed)
    prefix = f"{generation}/" if generation else ""
    plans = []
    for client in range(clients):
        sources = chance.sample(field.places, min(len(field.places), SOURCES_OF_CLIENT))
        asked = []
        for number in range(acts):
            source_id = chance.choice(sources).source_id
            if chance.random() < 0.15:
                other = chance.randrange(clients)
                asked.append(Act(source_id, f"{prefix}{other}.{number}", 1 + number % 3, 0, Mode.ANSWER, other_plan=chance.random() < 0.2))
            else:
                asked.append(Act(source_id, f"{prefix}{client}.{number}", 1 + number % 3, 0, chance.choice(list(modes))))
        plans.append(Plan(dsn=dsn, anchors=field.anchors.directory, acts=tuple(asked)))
    return plans


def started(field: Field, plans: Sequence[Plan]) -> list[ForkServerProcess]:
    """A process for each plan."""
    processes = [_context.Process(target=lived, args=(plan, field.log), daemon=True) for plan in plans]
    for process in processes:
        process.start()
    return processes


def ended(processes: Sequence[ForkServerProcess], *, seconds_max: float) -> None:
    """Wait until all have ended by themselves."""
    deadline = time.monotonic() + seconds_max
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
        assert process.exitcode is not None, f"a client is not done after {seconds_max} seconds"
        assert process.exitcode == 0, f"a client ended with {process.exitcode}"


def lived(plan: Plan, log: Path) -> None:
    """What such a process does."""
    write = history.writer(log)
    live(plan, write, Steps(plan, write))
