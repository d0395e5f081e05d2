"""The whole product under faults: `lapwing serve` on a ledger in PostgreSQL, asked over HTTP and the wire while its parts are killed."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from tests.faults.table import Outcome, fault
from tests.ledger.cluster import Cluster
from tests.server.campaign import Harm, Plan, campaign

CLIENTS, WIRE_CLIENTS = 8, 4
HARMS = 60
"""In one round."""
SECONDS_BETWEEN = 1.5
SHARES = {
    Harm.WORKER: 70,
    Harm.POSTMASTER: 14,
    Harm.BACKEND: 6,
    Harm.REPLICA: 2,
    Harm.WORKER_PAUSE: 4,
    Harm.DATABASE_PAUSE: 4,
}


@fault("served over HTTP and the wire", weight=4)
def served(cluster: Cluster, directory: Path, seed: int) -> Outcome:
    """A round of some minutes. Not one thing may be overspent, uncharged, lost or unequal, and nobody may be told what is not expected."""
    harms = Counter(random.Random(seed).choices(list(SHARES), list(SHARES.values()), k=HARMS))
    plan = Plan(HARMS * SECONDS_BETWEEN, harms, CLIENTS, WIRE_CLIENTS, scarce_epsilon="0.25", seed=seed)
    result = campaign(cluster, directory, plan)
    crowd, counts = result.crowd, result.reckoning.counts
    history = directory / "got.jsonl"
    lines = [*map(asdict, crowd.got), *map(asdict, crowd.read)]
    history.write_text("".join(json.dumps(line, default=str) + "\n" for line in lines), encoding="utf-8")
    violations = [*result.reckoning.wrong, *(f"{name}: {count} times" for name, count in crowd.surprises.items())]
    if not (counts["answers"] and counts["answers on the wire"] and counts["charges, committed"]):
        violations.append(f"too little was answered to show anything: {dict(counts)}")
    print(f"served, seed {seed}: {dict(counts)}; on the way: {dict(crowd.troubles)}", flush=True)
    done = {f"served: {harm}": count for harm, count in result.harms.items()}
    return Outcome(Counter(done), violations, [history])
