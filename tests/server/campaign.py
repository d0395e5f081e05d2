"""Analysts ask replicas of the server for a while, over HTTP and the wire; parts of it and the database die. Then all is compared."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from tests.ledger.cluster import Cluster
from tests.server.crowd import Crowd
from tests.server.fleet import Fleet, Offered
from tests.server.reckoning import Growth, Reckoning, growth, reckoned

SCARCE_ANALYSTS = 4
"""So many of the analysts have so small a share that it is used up."""


class Harm(StrEnum):
    """What is done to the servers while they work."""

    WORKER = "worker killed"
    REPLICA = "replica killed and started again"
    BACKEND = "database backend killed"
    POSTMASTER = "postmaster killed"
    RESTART = "database restarted"
    """As an operator does."""
    QUIT = "database stopped at once and started again"
    WORKER_PAUSE = "worker paused"
    DATABASE_PAUSE = "database paused"


PAUSE_SECONDS = (1.0, 7.0)
"""Shorter and longer than a worker may be silent."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How large a campaign is."""

    seconds: float
    harms: Mapping[Harm, int]
    analysts: int = 64
    wire_analysts: int = 0
    replicas: int = 2
    workers: int = 2
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
    harms: Counter[Harm] = field(default_factory=Counter)
    growths: list[Growth] = field(default_factory=list)
    seconds: float = 0.0


def campaign(cluster: Cluster, directory: Path, plan: Plan, *, say: Callable[[str], None] = lambda _: None) -> Result:
    """Carry it out. The cluster is restarted once; it must not be anybody else's."""
    analysts = [f"analyst-{number:02}" for number in range(plan.analysts)]
    shares = {name: plan.scarce_share if number < SCARCE_ANALYSTS else None for number, name in enumerate(analysts)}
    on_the_wire = [f"wire-{number:02}" for number in range(plan.wire_analysts)]
    shares |= dict.fromkeys(on_the_wire)
    offered = [Offered("roomy", "3", shares), Offered("scarce", plan.scarce_epsilon, dict.fromkeys(analysts))]
    fleet = Fleet(cluster, directory, offered, analysts, on_the_wire=on_the_wire, replicas=plan.replicas, workers=plan.workers)
    try:
        fleet.start()
        say(f"{plan.replicas} replicas with {plan.workers} workers each answer")
        crowd = Crowd(fleet, analysts, plan.epsilons, seed=plan.seed)
        result = Result(Reckoning(), crowd)
        begun = time.monotonic()
        crowd.start()
        try:
            _harm(fleet, plan, result.harms, say)
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


def _harm(fleet: Fleet, plan: Plan, done: Counter[Harm], say: Callable[[str], None]) -> None:
    """At moments by chance, within the time; the first and the last tenth are quiet. What could not be done is not counted."""
    dice = random.Random(plan.seed)
    harms = [harm for harm, count in plan.harms.items() for _ in range(count)]
    acts = sorted((plan.seconds * dice.uniform(0.1, 0.9), harm) for harm in harms)
    begun = time.monotonic()
    for moment, harm in acts:
        time.sleep(max(0.0, begun + moment - time.monotonic()))
        done[harm] += _done(fleet, harm, dice)
        say(f"{time.monotonic() - begun:.0f} s: {harm}")
    time.sleep(max(0.0, begun + plan.seconds - time.monotonic()))


def _done(fleet: Fleet, harm: Harm, dice: random.Random) -> bool:
    cluster, replica = fleet.cluster, dice.choice(fleet.replicas)
    match harm:
        case Harm.WORKER:
            return replica.kill_worker(dice.randrange(100)) is not None
        case Harm.REPLICA:
            fleet.replicas[-1].kill()
            time.sleep(dice.uniform(0.0, 2.0))
            fleet.replicas[-1].start()
        case Harm.BACKEND:
            return _signalled(fleet.backends(), signal.SIGKILL, dice) is not None
        case Harm.POSTMASTER:
            cluster.crash()
        case Harm.RESTART | Harm.QUIT:
            cluster.stop(signal.SIGINT if harm is Harm.RESTART else signal.SIGQUIT)
            cluster.start()
        case Harm.WORKER_PAUSE:
            pid = _signalled(replica.workers(), signal.SIGSTOP, dice)
            time.sleep(dice.uniform(*PAUSE_SECONDS))
            _signalled([pid] if pid is not None else [], signal.SIGCONT, dice)
            return pid is not None
        case Harm.DATABASE_PAUSE:
            paused = [pid for pid in cluster.children() if _signalled([pid], signal.SIGSTOP, dice) is not None]
            time.sleep(dice.uniform(*PAUSE_SECONDS))
            for pid in paused:
                _signalled([pid], signal.SIGCONT, dice)
    return True


def _signalled(pids: list[int], how: signal.Signals, dice: random.Random) -> int | None:
    """One of the processes, after the signal; None where it had ended."""
    if not pids:
        return None
    pid = dice.choice(pids)
    try:
        os.kill(pid, how)
    except ProcessLookupError:
        return None
    return pid
