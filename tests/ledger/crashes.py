"""Two processes race on one ledger and are killed at every step; an oracle then compares what clients saw with what was charged.

``python -m tests.ledger.crashes KILLS DIRECTORY`` runs a long campaign.

The oracle trusts neither the ledger's code nor its state row: it reads the charges from the file and adds them up itself.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import sqlite3
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lapwing.kernel.accounting import Budget
from tests.ledger.support import approximate_budget, ledger_path, new_ledger, open_ledger, ranges_of_key

ROOT = Path(__file__).parents[2]
SAFE = "reserve, read, commit, send"
Point = tuple[int, str, int]
"""Number of the request, phase, step."""


@dataclass
class Report:
    """What happened in one race."""

    violations: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    points: set[Point] = field(default_factory=set)
    """Steps at which a process killed itself."""
    points_missed: set[Point] = field(default_factory=set)
    kills_from_outside: int = 0
    journals_left: int = 0
    """Kills after which the next process had a half-made transaction to undo (or the other one was in the middle of its own)."""
    events: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)


class Racer:
    """One long-lived process that forks the children to be killed."""

    def __init__(self, directory: Path, *, package: str, units: tuple[int, int], code: Path | None) -> None:
        path = [str(ROOT / "src"), str(ROOT), *([str(code)] if code else [])]
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", str(ROOT / "tests" / "ledger" / "racer.py"), package, str(directory), *map(str, units)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        )

    def send(self, **command: object) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps(command), file=self.process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait() == 0


class Keys:
    """New keys and old ones, handed to both racers: often a key is asked for again, sometimes by both at once."""

    def __init__(self, generator: random.Random) -> None:
        self.generator = generator
        self.recent: list[str] = []
        self.numbers = itertools.count()

    def take(self) -> str:
        if self.recent and self.generator.random() < 0.35:
            return self.generator.choice(self.recent[-8:])
        number = next(self.numbers)
        self.recent.append(f"k{number}" + "x" * (number % 6))
        return self.recent[-1]


def race(
    directory: Path,
    budget: Budget,
    *,
    units: tuple[int, int],
    kills: int,
    seed: int,
    order: str = SAFE,
    package: str = "lapwing.ledger",
    code: Path | None = None,
    outside_share: float = 0.2,
    every_step: bool = False,
    blocks: int = 0,
) -> Report:
    """Race until this many kills happened and, if ``every_step``, every step was hit; then let the oracle look.

    With ``blocks`` every request reads ranges of so many blocks of time, which were declared.

    ``outside_share`` of the kills come from outside at a random moment: those also land inside SQLite, between two writes to the disk.
    """
    report, generator, lock = Report(), random.Random(seed), threading.Lock()
    keys = Keys(generator)
    racers = [Racer(directory, package=package, units=units, code=code) for _ in range(2)]
    try:
        racers[0].send(keys=["rehearsal"], order=order, blocks=blocks)
        rehearsed = next(event["steps"] for event in reversed(read_log(directory)) if event["event"] == "steps")
        points: list[Point] = [(0, phase, step) for phase, count in rehearsed.items() for step in range(1, count + 1)]
        points += [(1, phase, step) for phase in ("reserve", "commit") for step in range(1, rehearsed[phase] + 1)]

        def drive(racer: Racer) -> None:
            # The bound on the number of turns only matters when something is wrong and steps stop being reached.
            for _ in range(2 * kills + 2 * len(points)):
                with lock:
                    missed = [point for point in points if point not in report.points]
                    if report.kills >= kills and not (every_step and missed):
                        return
                    asked = [keys.take() for _ in range(3)]
                    point = generator.choice(missed if every_step and missed else points)
                    pause = generator.uniform(0.0, 0.02) if generator.random() < outside_share else None
                if pause is not None:
                    ended = racer.send(keys=asked, order=order, blocks=blocks, kill_after_seconds=pause)
                else:
                    ended = racer.send(keys=asked, order=order, blocks=blocks, kill=point)
                with lock:
                    report.kills += ended["killed"]
                    report.journals_left += ended["killed"] and ended["journal"]
                    if ended["killed"] and pause is None:
                        report.points.add(point)
                    elif ended["killed"]:
                        report.kills_from_outside += 1

        threads = [threading.Thread(target=drive, args=[racer]) for racer in racers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        report.points_missed = set(points) - report.points
        # One last process, which dies of nothing, so that all that the dead left behind is settled.
        racers[0].send(keys=[], order=order)
    finally:
        for racer in racers:
            racer.close()
    examine(directory, budget, report)
    if blocks:
        examine_blocks(directory, budget, report, units=units, blocks=blocks)
    return report


def stampede(
    directory: Path,
    budget: Budget,
    *,
    units: tuple[int, int],
    crowd: list[list[str]],
    package: str = "lapwing.ledger",
    code: Path | None = None,
) -> Report:
    """As many processes as there are lists of keys, all at once; then the oracle looks."""
    report = Report()
    racer = Racer(directory, package=package, units=units, code=code)
    try:
        racer.send(crowd=crowd, order=SAFE)
    finally:
        racer.close()
    examine(directory, budget, report)
    return report


def read_log(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "log").read_text().splitlines()]


def examine(directory: Path, budget: Budget, report: Report) -> None:
    """The oracle: overspent, uncharged, double, unsettled; each violation counted by name."""
    with closing(sqlite3.connect(ledger_path(directory))) as connection:
        rows = connection.execute("SELECT charge_id, request_id, loss, delta, state, payload FROM charge").fetchall()
        stored = connection.execute("SELECT loss_spent, delta_spent FROM ledger").fetchone()
    charges = defaultdict(list)
    for charge_id, key, _, _, state, payload in rows:
        charges[key].append((charge_id, state, payload))
    spent_loss, spent_delta = sum(int(row[2]) for row in rows), sum(int(row[3]) for row in rows)
    if spent_loss > budget.loss_total or spent_delta > budget.delta_total:
        report.violations["overspent"] += 1
    if (spent_loss, spent_delta) != (int(stored[0]), int(stored[1])):
        report.violations["spent does not add up"] += 1
    answers, permits = defaultdict(set), defaultdict(set)
    for event in read_log(directory):
        report.events[event["event"]] += 1
        key = event.get("key", "")
        match event["event"]:
            case "read":
                if not charges[key]:
                    report.violations["read without a charge"] += 1
            case "answer":
                answers[key].add(event["payload"])
                if not any(state == "committed" and payload.hex() == event["payload"] for _, state, payload in charges[key]):
                    report.violations["answer that is not stored"] += 1
            case "permit":
                permits[key].add(event["charge_id"])
            case "refused" | "stopped":
                report.codes[event["code"]] += 1
    report.violations["one key, two answers"] += sum(len(payloads) > 1 for payloads in answers.values())
    report.violations["one key, two charges"] += sum(len(found) > 1 for found in charges.values())
    report.violations["one key, two permits"] += sum(len(found) > 1 for found in permits.values())
    report.violations["left reserved"] += sum(state == "reserved" for found in charges.values() for _, state, _ in found)
    report.violations = +report.violations


def examine_blocks(directory: Path, budget: Budget, report: Report, *, units: tuple[int, int], blocks: int) -> None:
    """The oracle for blocks of time: one sum for each block and one for the standing block, of what the keys of the charges read.

    What :func:`examine` says of the sum of all prices does not apply: a block pays its own part only.
    """
    for violation in ("overspent", "spent does not add up"):
        report.violations.pop(violation, None)
    with closing(sqlite3.connect(ledger_path(directory))) as connection:
        keys = [key for (key,) in connection.execute("SELECT request_id FROM charge")]
        stored = connection.execute("SELECT loss_spent, delta_spent FROM ledger").fetchone()
    spent: defaultdict[int | None, list[int]] = defaultdict(lambda: [0, 0])
    for key in keys:
        for each in ranges_of_key(key, units, blocks):
            for block in [None] if each.first is None or each.last is None else range(each.first, each.last + 1):
                spent[block][0] += each.cost.loss
                spent[block][1] += each.cost.delta
    report.violations["overspent"] += any(loss > budget.loss_total or delta > budget.delta_total for loss, delta in spent.values())
    with open_ledger(directory) as ledger:
        found = ledger.blocks()
    assert found is not None
    known: dict[int | None, list[int]] = {None: [int(stored[0]), int(stored[1])]}
    for each in found.ranges:
        known |= {block: [each.cost.loss, each.cost.delta] for block in range(each.first or 0, (each.last or 0) + 1)}
    if {block: sums for block, sums in known.items() if sums != [0, 0]} != dict(spent):
        report.violations["spent does not add up"] += 1
    report.violations = +report.violations


def campaign(kills: int, directory: Path) -> None:
    """Races of 200 kills, each on a new ledger with another seed and another budget, until there were this many kills; prints the sums."""
    totals, violations = Counter[str](), Counter[str]()
    for seed in itertools.count(1000):
        place = directory / str(seed)
        place.mkdir()
        budget = approximate_budget()
        units = (budget.loss_total // (30 * 4 ** (seed % 4)), budget.delta_total // (10 * 4 ** (seed % 3)))
        new_ledger(place, budget=budget).disconnect()
        report = race(place, budget, units=units, kills=200, seed=seed, outside_share=0.1 * (seed % 8))
        totals.update(report.events)
        totals.update({"kills": report.kills, "from outside": report.kills_from_outside, "journals left": report.journals_left})
        violations.update(report.violations)
        print(dict(totals), dict(violations), flush=True)
        if totals["kills"] >= kills:
            return


if __name__ == "__main__":
    campaign(int(sys.argv[1]), Path(sys.argv[2]))
