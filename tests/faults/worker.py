"""The life of one client process: it opens ledgers, asks, and may be stopped at any step of the protocol.

The ledger, its connection and its anchors are the real ones. They are only watched: a connection says when a statement has been sent (and
nothing of the reply was read) and when its reply is there, and the two system calls that write an anchor say when they are reached. The
engine is a stand-in that takes a little time. Its answer depends on the permit, so that data read twice for one key would show.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import signal
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import psycopg

from lapwing.errors import BudgetRefused, LapwingError, Refused
from lapwing.kernel.accounting import Cost
from lapwing.kernel.blocks import BlockCost
from lapwing.kernel.permit import Permit
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.protocol import Request
from tests.faults.history import Event, What, Write
from tests.faults.oracle import answer_digest

ANALYST = "ana"
OF_BLOCKS = "blocks"
"""How the ids of sources begin whose requests read ranges of blocks, beside tables without time."""
_TORN_BYTES = 300
"""So much of an anchor is written when the process is stopped in the middle of it: less than any anchor has."""
_T = TypeVar("_T")


class Mode(StrEnum):
    """How a client deals with a request."""

    ANSWER = "answer"
    FAIL = "fail"
    """The engine fails before data was read: forfeited."""
    INCIDENT = "incident"
    """The engine fails afterwards: forfeited, the data set closed; the owner opens it again."""
    LEAVE = "leave"
    """The client says good-bye with the charge reserved."""
    FIND = "find"
    """Looks for a stored answer first."""
    RENEW = "renew"
    """Renews its lease first."""
    MANY = "many"
    """Asks for three things at once, in one statement."""
    SHARE = "share"
    """Asks for a share of what is left, whatever the request says: so a budget ends soon, and exactly."""


@dataclass(frozen=True, slots=True)
class Act:
    """One request to be made. The key fixes the cost; a plan other than its own makes it another request with the same key."""

    source_id: str
    key: str
    loss: int
    delta: int
    mode: Mode
    other_plan: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """A life. ``stop_at`` names a step, ``how`` the signal the process sends itself there, the (``skip`` + 1)-th time it is reached."""

    dsn: str
    anchors: Path
    acts: tuple[Act, ...]
    engine_seconds: float = 0.002
    lease_seconds: int = 900
    retry_seconds: float = 30.0
    stop_at: str = ""
    lives: int = 1
    """How often all of it is done, each time with new ledgers."""
    how: int = signal.SIGKILL
    skip: int = 0
    package: str = "lapwing.ledger"
    """Another name is a copy with a deliberate mistake."""


class Steps:
    """Which step of the protocol a process is at."""

    def __init__(self, plan: Plan, write: Write) -> None:
        self._plan = plan
        self._write = write
        self._left = plan.skip
        self.phase = ""
        self._statements = 0
        self.seen: dict[str, None] = {}
        """Every step that was reached, in order."""

    def enter(self, phase: str) -> None:
        """The calls that follow belong to this part of the protocol."""
        self.phase = phase
        self._statements = 0

    def next_statement(self) -> int:
        self._statements += 1
        return self._statements

    def is_next(self, point: str) -> bool:
        """Whether the process will stop at this point."""
        return self._plan.stop_at == f"{self.phase}: {point}" and self._left == 0

    def reach(self, point: str) -> None:
        """Stop here, if this is where to stop."""
        name = f"{self.phase}: {point}"
        self.seen[name] = None
        if name != self._plan.stop_at:
            return
        self._left -= 1
        if self._left == -1:
            self._write(Event(What.STOPPED, "", "", "", "", 0, 0, client=os.getpid(), code=name))
            os.kill(os.getpid(), self._plan.how)


class _Watched(psycopg.Connection[tuple[Any, ...]]):
    """A connection that says when a statement is sent and when the reply is read."""

    steps: Steps

    def wait(self, gen: Generator[Any, Any, _T], *arguments: Any, **named: Any) -> _T:
        number = self.steps.next_statement()
        result = super().wait(self._watched(gen, number), *arguments, **named)
        self.steps.reach(f"statement {number} answered")
        return result

    def _watched(self, gen: Generator[Any, Any, _T], number: int) -> Generator[Any, Any, _T]:
        try:
            wanted = next(gen)
            told = False
            while True:
                # Once it only wants to read, everything was written.
                if wanted == psycopg.waiting.WAIT_R and not told:
                    told = True
                    self.steps.reach(f"statement {number} sent")
                wanted = gen.send((yield wanted))
        except StopIteration as end:
            result: _T = end.value
            return result


def watched(steps: Steps) -> ExitStack:
    """Have every connection of this process, and the writing of anchors, tell ``steps``; until the result is closed."""
    pwrite, fdatasync = os.pwrite, os.fdatasync

    def write(descriptor: int, content: bytes, offset: int) -> int:
        steps.reach("anchor locked")
        if steps.is_next("anchor torn"):
            pwrite(descriptor, content[:_TORN_BYTES], offset)
        steps.reach("anchor torn")
        return pwrite(descriptor, content, offset)

    def sync(descriptor: int) -> None:
        steps.reach("anchor written")
        fdatasync(descriptor)
        steps.reach("anchor kept")

    _Watched.steps = steps
    stack = ExitStack()
    stack.enter_context(patch.object(psycopg, "connect", _Watched.connect))
    stack.enter_context(patch.object(os, "pwrite", write))
    stack.enter_context(patch.object(os, "fdatasync", sync))
    return stack


def live(plan: Plan, write: Write, steps: Steps) -> None:
    """Carry out a plan. What the ledger decides or cannot tell is an event; any other error is raised."""
    for _ in range(plan.lives):
        _live_once(plan, write, steps)


def _live_once(plan: Plan, write: Write, steps: Steps) -> None:
    file_anchors = importlib.import_module(f"{plan.package}.postgres.anchors").FileAnchors
    postgres_ledger = importlib.import_module(f"{plan.package}.postgres.ledger").PostgresLedger
    ledgers: dict[str, PostgresLedger] = {}
    for act in plan.acts:
        if act.source_id not in ledgers:
            steps.enter("register")
            steps.reach("before")
            try:
                ledgers[act.source_id] = postgres_ledger.open(
                    plan.dsn,
                    source_id=act.source_id,
                    anchors=file_anchors(plan.anchors),
                    lease_seconds=plan.lease_seconds,
                    retry_seconds=plan.retry_seconds,
                )
            except LapwingError as error:
                write(_event(What.LOST, act, code=error.code))
                continue
            steps.reach("after")
        if act.mode == Mode.MANY:
            ask_many(ledgers[act.source_id], act, write, steps, engine_seconds=plan.engine_seconds)
        else:
            ask(ledgers[act.source_id], act, write, steps, engine_seconds=plan.engine_seconds)
    for source_id, ledger in ledgers.items():
        steps.enter("disconnect")
        steps.reach("before")
        try:
            ledger.disconnect()
        except LapwingError as error:
            write(Event(What.LOST, source_id, "", "", "", 0, 0, client=os.getpid(), code=error.code))
        steps.reach("after")


def ask(ledger: PostgresLedger, act: Act, write: Write, steps: Steps, *, engine_seconds: float) -> None:
    """One request, as the curator does it: reserve, run, commit, send."""

    def call(phase: str, function: Callable[[], _T]) -> _T | None:
        return _call(phase, function, ledger, act, write, steps)

    if act.mode == Mode.RENEW:
        call("renew", ledger.renew)
    if act.mode == Mode.FIND:
        found = call("find", lambda: ledger.find(_digest(act), analyst=ANALYST))
        if found is not None:
            write(_event(What.SENT, act, answer=answer_digest(found.payload)))
    if act.mode == Mode.SHARE:
        balance = call("balance", ledger.balance)
        if balance is None:
            return
        left = balance.remaining
        loss, delta = max(1, left.loss // 6), left.delta // 6
        act = Act(act.source_id, f"{act.key}:{loss}", loss, delta, act.mode)
    write(_event(What.ASKED, act))
    outcome = call("reserve", lambda: ledger.reserve(_request(act)))
    if outcome is None:
        return
    if not isinstance(outcome, Permit):
        write(_event(What.SENT, act, answer=answer_digest(outcome.payload)))
        return
    write(_event(What.PERMIT, act, charge_id=outcome.charge_id))
    steps.reach("permit told")
    _use(ledger, outcome, act, write, steps, engine_seconds=engine_seconds)


def ask_many(ledger: PostgresLedger, act: Act, write: Write, steps: Steps, *, engine_seconds: float) -> None:
    """The request and two more like it, reserved together and then answered in turn."""
    acts = [replace(act, key=f"{act.key}{suffix}", mode=Mode.ANSWER) for suffix in ("", "+", "++")]
    for one in acts:
        write(_event(What.ASKED, one))
    results = _call("reserve many", lambda: ledger.reserve_many([_request(one) for one in acts]), ledger, act, write, steps)
    permits = []
    for one, result in zip(acts, results or (), strict=results is not None):
        if isinstance(result, LapwingError):
            write(_event(What.REFUSED if _is_decision(result) else What.LOST, one, code=result.code))
        elif isinstance(result, Permit):
            write(_event(What.PERMIT, one, charge_id=result.charge_id))
            permits.append((one, result))
        else:
            write(_event(What.SENT, one, answer=answer_digest(result.payload)))
    steps.reach("permits told")
    for one, permit in permits:
        _use(ledger, permit, one, write, steps, engine_seconds=engine_seconds)


def _use(ledger: PostgresLedger, permit: Permit, act: Act, write: Write, steps: Steps, *, engine_seconds: float) -> None:
    """What is done with a permit."""
    done: list[str] = []
    if act.mode in (Mode.FAIL, Mode.INCIDENT):
        incident = act.mode == Mode.INCIDENT
        phase = "incident" if incident else "forfeit"
        _call(phase, lambda: ledger.forfeit(permit, incident=incident), ledger, act, write, steps, done)
        if done:
            write(_event(What.FORFEITED, act, charge_id=permit.charge_id))
            if incident:
                _reopen(ledger, act, write, steps)
        return
    if act.mode == Mode.LEAVE:
        return
    steps.enter("engine")
    write(_event(What.RUNNING, act, charge_id=permit.charge_id))
    steps.reach("running")
    time.sleep(engine_seconds)
    payload = hashlib.sha512(f"{act.key} {permit.nonce}".encode()).digest()
    write(_event(What.RAN, act, charge_id=permit.charge_id, answer=answer_digest(payload)))
    steps.reach("ran")
    _call("commit", lambda: ledger.commit(permit, payload), ledger, act, write, steps, done)
    if done:
        write(_event(What.SENT, act, charge_id=permit.charge_id, answer=answer_digest(payload)))
        steps.reach("sent")


def _call(
    phase: str,
    function: Callable[[], _T],
    ledger: PostgresLedger,
    act: Act,
    write: Write,
    steps: Steps,
    done: list[str] | None = None,
) -> _T | None:
    """None if the ledger refused, or could not tell; a call that returned is written into ``done``."""
    steps.enter(phase)
    steps.reach("before")
    try:
        result = function()
    except LapwingError as error:
        write(_event(What.REFUSED if _is_decision(error) else What.LOST, act, code=error.code))
        if error.code == "data-set-closed":
            _reopen(ledger, act, write, steps)
        return None
    if done is not None:
        done.append(phase)
    steps.reach("after")
    return result


def _is_decision(error: LapwingError) -> bool:
    """A decision is final; anything else says nothing about what came of the call."""
    return isinstance(error, (Refused, BudgetRefused)) or error.code == "charge-not-open"


def _reopen(ledger: PostgresLedger, act: Act, write: Write, steps: Steps) -> None:
    """What the owner does after an incident, once it is understood."""
    steps.enter("reopen")
    steps.reach("before")
    try:
        ledger.reopen("understood")
    except LapwingError as error:
        write(_event(What.LOST, act, code=error.code))
    steps.reach("after")


def _digest(act: Act) -> str:
    return f"another plan of {act.key}" if act.other_plan else f"plan of {act.key}"


def _request(act: Act) -> Request:
    cost = Cost(loss=act.loss, delta=act.delta)
    plain = Request(analyst=ANALYST, request_id=act.key, digest=_digest(act), cost=cost, version=1, summary=f"SELECT '{act.key}'")
    if not act.source_id.startswith(OF_BLOCKS):
        return plain
    first = sum(act.key.encode()) % 500
    return replace(plain, ranges=(BlockCost(first, first + len(act.key) * 7, cost), BlockCost(None, None, cost)), person=cost)


def _event(what: What, act: Act, **fields: Any) -> Event:
    return Event(what, act.source_id, ANALYST, act.key, _digest(act), act.loss, act.delta, client=os.getpid(), **fields)
