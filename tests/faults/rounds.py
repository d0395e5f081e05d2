"""Rounds of clients on a real server: who they are, what kills them, and what the oracle says meanwhile and at the end."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lapwing.kernel.accounting import Cost
from lapwing.kernel.permit import Permit
from lapwing.ledger.block_balances import BlockTerms
from lapwing.ledger.postgres import policy
from lapwing.ledger.postgres.anchors import FileAnchors
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.protocol import Request
from tests.faults import history
from tests.faults.oracle import LedgerState, read_state, recovered, refunds, violations
from tests.faults.worker import ANALYST, OF_BLOCKS
from tests.ledger.cluster import Cluster
from tests.ledger.support import approximate_budget, of_standing, pure_budget

ROOT = Path(__file__).resolve().parents[2]
ROUND_SECONDS_MAX = 900.0
LOOK_EVERY_SECONDS = 0.2
"""Of the oracle, while clients work. The smallest crowds need less than two seconds on a fast machine."""
EXPECTED_CODES = frozenset(
    {
        "budget-exceeded",
        "charge-not-open",
        "data-set-closed",
        "request-forfeited",
        "request-in-progress",
        "request-mismatch",
    }
)
"""What a client of an undisturbed server may be told. Anything else is a violation."""
SERVER_CODES = frozenset({"ledger-unreachable", "reply-lost"})
"""What it may be told besides when the server is killed."""
_UNITS = 100_000


@dataclass
class Bench:
    """Data sets in a database of their own, and what was seen of them."""

    cluster: Cluster
    database: str
    directory: Path
    sources: list[tuple[str, int, int]]
    """Source, and the least that a request costs there: loss and delta."""
    package: str = "lapwing.ledger"
    kills: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)
    looks: int = 0
    """How often the oracle looked while clients were working."""
    _before: dict[str, LedgerState] = field(default_factory=dict)

    @property
    def dsn(self) -> str:
        return self.cluster.dsn(self.database)

    @property
    def history_file(self) -> Path:
        return self.directory / "history.jsonl"

    @property
    def anchors(self) -> FileAnchors:
        return FileAnchors(self.directory / "anchors")

    def events(self) -> list[history.Event]:
        return history.read(self.history_file)

    def look(self, number: int) -> None:
        """Judge one data set while clients go on: what they saw until now must be borne out now, and nothing be taken back."""
        events = self.events()
        source_id = self.sources[number % len(self.sources)][0]
        state = read_state(self.dsn, source_id, anchors=self.anchors)
        self.found += violations(events, state)
        if source_id in self._before:
            self.found += refunds(self._before[source_id], state)
        self._before[source_id] = state
        self.looks += 1

    def settle(self, allowed_codes: frozenset[str] = EXPECTED_CODES) -> list[LedgerState]:
        """When no client is left: recover every data set, judge all that was seen, and charge each to the last unit."""
        events = self.events()
        states = []
        for source_id, _, _ in self.sources:
            state, found = recovered(self.dsn, source_id, anchors=self.anchors, history=events)
            self.found += [f"{source_id}: {text}" for text in found]
            if source_id in self._before:
                self.found += refunds(self._before[source_id], state)
            # Only of a ledger that is sound: another may refuse to be opened.
            self.found += [] if self.found else self._to_the_last_unit(source_id, state)
            states.append(state)
        codes = {event.code for event in events if event.what in (history.What.REFUSED, history.What.LOST)}
        self.found += [f"a client was told {code}" for code in sorted(codes - allowed_codes)]
        self.found += [f"a client {end}" for end in sorted(self.ends) if end != "done"]
        self.found = sorted(set(self.found))
        return states

    def _to_the_last_unit(self, source_id: str, state: LedgerState) -> list[str]:
        """What is left can be charged exactly, and then nothing more: no unit was lost, and none is spent twice."""
        with PostgresLedger.open(self.dsn, source_id=source_id, anchors=self.anchors) as ledger:
            if state.closed:
                ledger.reopen("understood")
            left = ledger.balance().remaining
            found = []
            if (left.loss, left.delta) != (state.loss_total - state.loss_spent, state.delta_total - state.delta_spent):
                found.append(f"{source_id}: the balance is not what the rows say")
            if left.loss:
                permit = ledger.reserve(_of_standing(ledger, _request("the rest", left)))
                assert isinstance(permit, Permit)
                ledger.commit(permit, b"the rest")
            try:
                ledger.reserve(_of_standing(ledger, _request("one more", Cost(loss=1, delta=0))))
                found.append(f"{source_id}: charged beyond the last unit")
            except Exception as error:
                if getattr(error, "code", "") != "budget-exceeded":
                    raise
        return found


def new_bench(
    cluster: Cluster,
    directory: Path,
    *,
    data_sets: int,
    database: str | None = None,
    lost_workers_max: int = 10**6,
    blocks: bool = False,
) -> Bench:
    """Data sets with budgets that are not used up by chance; every other one has a delta too. With ``blocks``, requests read ranges."""
    directory.mkdir(parents=True, exist_ok=True)
    bench = Bench(cluster, database or cluster.new_database(), directory, [])
    for number in range(data_sets):
        budget = approximate_budget() if number % 2 else pure_budget(_UNITS)
        source_id = f"{OF_BLOCKS if blocks else 'source'} {number}"
        with PostgresLedger.create(
            bench.dsn,
            source_id=source_id,
            source_fingerprint=f"files of {source_id}",
            budget=budget,
            ceiling=budget,
            anchors=bench.anchors,
        ) as ledger:
            policy.admit(ledger, ANALYST)
            policy.set_limits(ledger, policy.Limits(lost_workers_max=lost_workers_max))
            if blocks:
                ledger.declare_blocks(BlockTerms("day", budget.epsilon), read=None, units=1, reason="blocks")
        bench.sources.append((source_id, budget.loss_total // _UNITS, budget.delta_total // _UNITS))
    return bench


class Nursery:
    """The process that forks clients (:mod:`tests.faults.nursery`), seen from the one that gives orders."""

    def __init__(self, *, code: Path | None = None) -> None:
        path = [str(ROOT / "src"), str(ROOT), *([str(code)] if code else [])]
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.faults.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
            cwd=ROOT,
        )
        self._rounds = 0

    def order(self, bench: Bench, act: str, **fields: Any) -> None:
        """Send an order; :meth:`answer` waits for what came of it."""
        self._rounds += 1
        order = {
            "act": act,
            "name": f"{os.getpid()}.{self._rounds}",
            "dsn": bench.dsn,
            "anchors": str(bench.anchors.directory),
            "history": str(bench.history_file),
            "sources": bench.sources,
            "package": bench.package,
            "clients": 4,
            "kills": 0,
            "lives": 0,
            "acts_max": 3,
            "seed": 0,
            "steps": [],
            "kills_of_a_step_min": 0,
            "outside_share": 0.3,
            "outside_kills": 1.0,
            "outside_seconds_max": 0.08,
            "until_told": False,
            "share": False,
            "lease_seconds": 900,
            "seconds_max": ROUND_SECONDS_MAX,
        }
        assert fields.keys() <= order.keys(), fields.keys()
        self._send(json.dumps({**order, **fields}))

    def answer(self, bench: Bench, *, look_every_seconds: float | None = None) -> dict[str, Any]:
        """What came of the order. Meanwhile the oracle looks, if it is to."""
        assert self._process.stdout is not None
        deadline = time.monotonic() + ROUND_SECONDS_MAX + 30
        while not select.select([self._process.stdout], [], [], look_every_seconds or 1.0)[0]:
            assert time.monotonic() < deadline, "the clients took too long"
            if look_every_seconds is not None:
                bench.look(bench.looks)
        line = self._process.stdout.readline()
        assert line, "the nursery ended"
        answer: dict[str, Any] = json.loads(line)
        bench.kills.update(answer.get("kills", {}))
        bench.ends.update(answer.get("ends", {}))
        return answer

    def stop_clients(self) -> None:
        """End a round that goes on until told."""
        self._send("")

    def _send(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text.encode() + b"\n")
        self._process.stdin.flush()

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(LIMIT_SECONDS)
        self._process.stdout.close()


LIMIT_SECONDS = 300.0


@contextmanager
def nursery(*, code: Path | None = None) -> Iterator[Nursery]:
    """One, ended in any case."""
    one = Nursery(code=code)
    try:
        yield one
    finally:
        one.close()


def kill_workers(
    bench: Bench,
    *,
    clients: int,
    kills: int,
    seed: int,
    kills_of_a_step_min: int = 1,
    steps: Sequence[str] = (),
    code: Path | None = None,
) -> list[str]:
    """Kill so many clients: at all the steps of the protocol in turn, and at random; then use the budgets up while more are killed.

    Gives the names of the steps.
    """
    with nursery(code=code) as one:
        one.order(bench, "rehearse")
        found = list(steps) or one.answer(bench)["steps"]
        one.order(bench, "run", clients=clients, kills=kills, seed=seed, steps=found, kills_of_a_step_min=kills_of_a_step_min)
        one.answer(bench, look_every_seconds=LOOK_EVERY_SECONDS)
        one.order(bench, "run", clients=clients, lives=10 * len(bench.sources), seed=seed, share=True, outside_kills=0.2)
        one.answer(bench, look_every_seconds=LOOK_EVERY_SECONDS)
    return found


def _of_standing(ledger: PostgresLedger, one: Request) -> Request:
    """The request as a plan over tables without time makes it."""
    return one if ledger.blocks() is None else of_standing(one)


def _request(key: str, cost: Cost) -> Request:
    return Request(analyst=ANALYST, request_id=key, digest=f"plan of {key}", cost=cost, version=1, summary=key)
