"""Causes faults at random for hours: ``python -m tests.faults.campaign --minutes N`` (or ``--kills N``), ``make lapwing-faults``.

Each round takes one fault from the table, with a new database and the next seed. Every minute it prints how often each kind happened, and
the violations. The counts go on where the last run ended (``build/faults.json``). Ends with status 1 after a violation, whose history it
keeps beside the counts, with the seed that a round can be done again with (``--only NAME --seed S --rounds 1``).
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.table import FAULTS, WEIGHTS, Outcome
from tests.ledger.cluster import Cluster

MODULES = tuple(
    f"tests.faults.{name}" for name in ("server", "proxy", "disk", "clock", "backup", "failover", "retries", "pooler", "served")
)
"""Modules that add their faults to the table when they are imported."""
COUNTS = Path("build/faults.json")
ROUNDS_OF_A_SERVER = 25
"""Then a new one: its databases are not dropped, so that a violation can be looked at."""
PRINT_EVERY_SECONDS = 60.0


@dataclass
class Counts:
    """What all runs together did."""

    path: Path
    faults: Counter[str] = field(default_factory=Counter)
    rounds: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    seconds: float = 0.0
    seed: int = 0
    """Of the next round."""

    @classmethod
    def read(cls, path: Path) -> Counts:
        stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return cls(
            path,
            faults=Counter(stored.get("faults", {})),
            rounds=Counter(stored.get("rounds", {})),
            violations=stored.get("violations", []),
            seconds=stored.get("seconds", 0.0),
            seed=stored.get("seed", 0),
        )

    def write(self) -> None:
        """Whole or not at all."""
        fields = {name: getattr(self, name) for name in ("faults", "rounds", "violations", "seconds", "seed")}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(fields, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        new.replace(self.path)

    def text(self) -> str:
        counts = ", ".join(f"{name} {count}" for name, count in sorted(self.faults.items()))
        return (
            f"{self.seconds / 60:.0f} minutes, {self.rounds.total()} rounds: {counts or 'nothing yet'}; violations {len(self.violations)}"
        )


def one_round(cluster: Cluster, name: str, seed: int, kept: Path) -> Outcome:
    """One fault. An error of the harness itself counts as a violation too: nothing may pass unseen."""
    directory = Path(tempfile.mkdtemp(prefix="lapwing-faults-"))
    try:
        try:
            outcome = FAULTS[name](cluster, directory, seed)
        except Exception:
            outcome = Outcome(violations=[traceback.format_exc()], histories=list(directory.rglob("*.jsonl")))
        for history in outcome.histories if outcome.violations else []:
            kept.mkdir(parents=True, exist_ok=True)
            shutil.copy(history, kept / f"{name.replace(' ', '-')}-{seed}-{history.name}")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return outcome


def campaign(*, minutes: float, kills: int, rounds: int, seed: int | None, only: str, counts: Counts) -> int:
    """Rounds until there were so many minutes, kills or rounds in this run; the number of violations in it."""
    names = [name for name in FAULTS if only in name]
    assert names, f"no fault has {only!r} in its name"
    started = printed = time.monotonic()
    before, violations_before, seconds_before = counts.faults.total(), len(counts.violations), counts.seconds
    cluster: Cluster | None = None
    try:
        for number in itertools.count():
            used = time.monotonic() - started
            if used > 60 * minutes or number >= rounds or counts.faults.total() - before >= kills:
                break
            if cluster is None or number % ROUNDS_OF_A_SERVER == 0:
                if cluster is not None:
                    cluster.close()
                cluster = Cluster(["wal_writer_delay=10s"])
            this = counts.seed if seed is None else seed + number
            name = random.Random(this).choices(names, [WEIGHTS[one] for one in names])[0]
            outcome = one_round(cluster, name, this, counts.path.parent / "faults")
            counts.faults.update(outcome.counts)
            counts.rounds[name] += 1
            counts.violations += [f"{name}, seed {this}: {text}" for text in outcome.violations]
            counts.seconds = seconds_before + time.monotonic() - started
            if seed is None:
                counts.seed += 1
            counts.write()
            for text in outcome.violations:
                print(f"VIOLATION in {name}, seed {this}: {text}", flush=True)
            if time.monotonic() > printed + PRINT_EVERY_SECONDS:
                printed = time.monotonic()
                print(counts.text(), flush=True)
    finally:
        if cluster is not None:
            cluster.close()
    print(counts.text(), flush=True)
    return len(counts.violations) - violations_before


def main() -> None:
    parser = argparse.ArgumentParser(prog="lapwing-faults", description="faults at random, against the ledger on PostgreSQL")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--kills", type=int, default=sys.maxsize, help="end after so many faults")
    parser.add_argument("--rounds", type=int, default=sys.maxsize)
    parser.add_argument("--seed", type=int, help="of the first round; else where the last run ended")
    parser.add_argument("--only", default="", help="faults that have this in their name")
    parser.add_argument("--counts", type=Path, default=COUNTS)
    options = parser.parse_args()
    for module in MODULES:
        importlib.import_module(module)
    counts = Counts.read(options.counts)
    found = campaign(
        minutes=options.minutes, kills=options.kills, rounds=options.rounds, seed=options.seed, only=options.only, counts=counts
    )
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
