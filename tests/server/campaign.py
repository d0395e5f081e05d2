"""Many analysts ask replicas of the server for a while; workers, a replica and the database die meanwhile. Then everything is compared."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.ledger.cluster import Cluster
from tests.server.crowd import Crowd
from tests.server.fleet import Fleet, Offered
from tests.server.reckoning import Growth, Reckoning, growth, reckoned

SCARCE_ANALYSTS = 4
"""So many of the analysts have so small a share that it is used up."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How large a campaign is."""

    seconds: float
    analysts: int = 64
    replicas: int = 2
    workers: int = 2
    worker_kills: int = 20
    replica_kills: int = 1
    restart: signal.Signals = signal.SIGINT
    """How the database is stopped, once: SIGINT as an operator does, SIGQUIT at once."""
    epsilons: tuple[str, str] = ("0.01", "0.1")
    """Of a statement on the roomy data set, and on the scarce one."""
    scarce_epsilon: str = "3"
    scarce_share: float = 0.0005
    again_max: int | None = None
    seed: int = 0


@dataclass(slots=True)
class Result:
    """What a campaign showed."""

    reckoning: Reckoning
    crowd: Crowd
    kills: Counter[str] = field(default_factory=Counter)
    growths: list[Growth] = field(default_factory=list)
    seconds: float = 0.0


def campaign(cluster: Cluster, directory: Path, plan: Plan, *, say: Callable[[str], None] = lambda _: None) -> Result:
    """Carry it out. The cluster is restarted once; it must not be anybody else's."""
    analysts = [f"analyst-{number:02}" for number in range(plan.analysts)]
    shares = {name: plan.scarce_share if number < SCARCE_ANALYSTS else None for number, name in enumerate(analysts)}
    offered = [Offered("roomy", "3", shares), Offered("scarce", plan.scarce_epsilon, dict.fromkeys(analysts))]
    fleet = Fleet(cluster, directory, offered, analysts, replicas=plan.replicas, workers=plan.workers)
    try:
        fleet.start()
        say(f"{plan.replicas} replicas with {plan.workers} workers each answer")
        crowd = Crowd(fleet, analysts, plan.epsilons, seed=plan.seed)
        result = Result(Reckoning(), crowd)
        begun = time.monotonic()
        crowd.start()
        try:
            _faults(fleet, plan, result.kills, say)
        finally:
            crowd.join()
        result.seconds = time.monotonic() - begun
        say(f"everybody has a decision after {result.seconds:.0f} s; comparing with the ledger")
        warm = min(60.0, plan.seconds / 4)
        result.growths = [one for memory in fleet.memory.values() if (one := growth(memory, warm_seconds=warm)) is not None]
        result.reckoning = reckoned(crowd, again_max=plan.again_max)
        return result
    finally:
        fleet.close()


def _faults(fleet: Fleet, plan: Plan, kills: Counter[str], say: Callable[[str], None]) -> None:
    """At moments by chance, within the time; the first and the last tenth are quiet."""
    dice = random.Random(plan.seed)

    def at() -> float:
        return plan.seconds * dice.uniform(0.1, 0.9)

    acts: list[tuple[float, str]] = [(at(), "worker") for _ in range(plan.worker_kills)]
    acts += [(plan.seconds * dice.uniform(0.25, 0.45), "replica") for _ in range(plan.replica_kills)]
    acts.append((plan.seconds * dice.uniform(0.6, 0.75), "database"))
    begun = time.monotonic()
    for moment, what in sorted(acts):
        time.sleep(max(0.0, begun + moment - time.monotonic()))
        if what == "worker":
            killed = dice.choice(fleet.replicas).kill_worker(dice.randrange(100))
            kills["workers killed"] += killed is not None
        elif what == "replica":
            fleet.replicas[-1].kill()
            time.sleep(min(2.0, plan.seconds / 20))
            fleet.replicas[-1].start()
            kills["replicas killed and started again"] += 1
        else:
            fleet.cluster.stop(plan.restart)
            fleet.cluster.start()
            kills["database restarted"] += 1
        say(f"{time.monotonic() - begun:.0f} s: {what}")
    time.sleep(max(0.0, begun + plan.seconds - time.monotonic()))
