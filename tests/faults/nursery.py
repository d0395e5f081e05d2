"""A process that has imported everything, and forks clients to be killed.

Run as ``python -m tests.faults.nursery``; it reads one order a line (JSON), and writes one answer a line. A process of its own, because
the one that runs the tests may have threads, and forking such a process is a risk of its own. It ends when its input does, and takes its
clients along. Every client also has a time limit from the kernel.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from tests.faults.history import writer
from tests.faults.worker import Act, Mode, Plan, Steps, live, watched

LIFE_SECONDS_MAX = 600
"""A client that lives longer is ended by the kernel, and reported."""
_MODES = (Mode.ANSWER,) * 10 + (Mode.FAIL, Mode.INCIDENT, Mode.LEAVE, Mode.FIND, Mode.RENEW, Mode.MANY)
_MODE_OF_PHASE = {
    "forfeit": Mode.FAIL,
    "incident": Mode.INCIDENT,
    "reopen": Mode.INCIDENT,
    "find": Mode.FIND,
    "renew": Mode.RENEW,
    "reserve many": Mode.MANY,
}


@dataclass
class Round:
    """What is to be done, and how far it is."""

    order: dict[str, Any]
    generator: random.Random
    kills: Counter[str] = field(default_factory=Counter)
    """By step; ``at random`` are those from outside."""
    attempts: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    """How clients ended that were not killed: ``done``, or what went wrong."""
    lives: int = 0
    clients: dict[int, tuple[str, float]] = field(default_factory=dict)
    """Running ones: the step at which each stops, and when it is killed from outside."""
    recent: list[Act] = field(default_factory=list)

    def plan(self, stop_at: str) -> Plan:
        """The life of the next client, on one or two data sets. A step to be reached decides how its first request goes."""
        order, generator = self.order, self.generator
        self.lives += 1
        mode = _MODE_OF_PHASE.get(stop_at.partition(":")[0], Mode.ANSWER) if stop_at else None
        sources = generator.sample(order["sources"], min(generator.choice((1, 1, 2)), len(order["sources"])))
        acts = [self._act(generator.choice(sources), number, mode) for number in range(generator.randint(1, order["acts_max"]))]
        if mode == Mode.FIND:
            # To be found, the answer must be there: ask, and look for it then.
            acts[:1] = [replace(acts[0], mode=Mode.ANSWER), acts[0]]
        # There is something to anchor on opening only if somebody was forfeited just before.
        twice = stop_at.startswith("register: anchor")
        if twice:
            acts = [replace(acts[0], mode=Mode.LEAVE)]
        return Plan(
            dsn=order["dsn"],
            anchors=Path(order["anchors"]),
            acts=tuple(acts),
            engine_seconds=generator.choice((0.0, 0.001, 0.004)),
            lease_seconds=order["lease_seconds"],
            lives=2 if twice else 1,
            stop_at=stop_at,
            package=order["package"],
        )

    def _act(self, source: list[Any], number: int, mode: Mode | None) -> Act:
        source_id, loss_unit, delta_unit = source
        generator = self.generator
        if self.order["share"]:
            return Act(source_id, f"{self.order['name']}.{self.lives}.{number}", 0, 0, Mode.SHARE)
        if self.recent and (number > 0 or mode is None) and generator.random() < 0.35:
            old = generator.choice(self.recent[-8:])
            return Act(old.source_id, old.key, old.loss, old.delta, old.mode, other_plan=generator.random() < 0.05)
        times = generator.randint(1, 3)
        if mode is None or number > 0:
            mode = generator.choice(_MODES)
        act = Act(source_id, f"{self.order['name']}.{self.lives}.{number}", times * loss_unit, times * delta_unit, mode)
        self.recent.append(act)
        return act

    def missing(self) -> list[str]:
        """Steps with too few kills."""
        return [step for step in self.order["steps"] if self.kills[step] < self.order["kills_of_a_step_min"]]

    def next_step(self) -> str:
        """The step with the fewest kills and attempts so far; empty for a client that is killed from outside, or not at all."""
        missing = self.missing() if self.kills.total() >= self.order["kills"] else []
        if not self.order["steps"] or (not missing and self.generator.random() < self.order["outside_share"]):
            return ""
        step: str = min(missing or self.order["steps"], key=lambda one: (4 * self.kills[one] + self.attempts[one], self.generator.random()))
        self.attempts[step] += 1
        return step


def run(order: dict[str, Any]) -> dict[str, Any]:
    """Keep so many clients alive until there were so many kills, then let the rest finish; or until the next line, then kill the rest."""
    current = Round(order, random.Random(order["seed"]))
    deadline = time.monotonic() + order["seconds_max"]
    stopping = False
    try:
        while True:
            now = time.monotonic()
            enough = current.kills.total() >= order["kills"] and current.lives >= order["lives"]
            # Some steps are not reached for sure, such as writing an anchor, which another may have written. There is an end to trying.
            enough = enough and (not current.missing() or current.lives > 4 * order["kills"])
            if order["until_told"]:
                enough = stopping
            if now > deadline:
                current.ends["the round took too long"] += 1
                break
            while not enough and len(current.clients) < order["clients"]:
                _start(current)
                _kill_due(current, time.monotonic())
            if enough and not current.clients:
                break
            _kill_due(current, now)
            _reap(current)
            if not stopping and _told_to_stop():
                stopping = True
                current.clients = dict.fromkeys(current.clients, ("at random", 0.0))  # lives may be long: they end here
    finally:
        for pid in current.clients:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return {"kills": current.kills, "ends": current.ends, "lives": current.lives}


def _start(current: Round) -> None:
    step = current.next_step()
    plan = current.plan(step)
    kill_at = float("inf")
    if not step and current.generator.random() < current.order["outside_kills"]:
        kill_at = time.monotonic() + current.generator.uniform(0.0, current.order["outside_seconds_max"])
    pid = os.fork()
    if pid == 0:
        _client(plan, Path(current.order["history"]), crowded=current.order["clients"] > 4)
    current.clients[pid] = (step, kill_at)


def _client(plan: Plan, history: Path, *, crowded: bool = False) -> NoReturn:
    status = 70
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        signal.alarm(LIFE_SECONDS_MAX)
        if crowded:
            os.nice(5)  # the nursery comes first, so that it kills when it means to
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        write = writer(history)
        steps = Steps(plan, write)
        with watched(steps):
            live(plan, write, steps)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _kill_due(current: Round, now: float) -> None:
    for pid, (step, kill_at) in current.clients.items():
        if now >= kill_at:
            os.kill(pid, signal.SIGKILL)
            current.clients[pid] = (step or "at random", float("inf"))


def _reap(current: Round) -> None:
    """Wait a moment for a client to end, and take down how each did."""
    signal.sigtimedwait([signal.SIGCHLD], 0.004)
    while current.clients:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        step, _ = current.clients.pop(pid)
        code = os.waitstatus_to_exitcode(status)
        if code == -signal.SIGKILL:
            current.kills[step] += 1
        elif code == 0:
            current.ends["done"] += 1
        else:
            current.ends[f"ended with {code}"] += 1


def _told_to_stop() -> bool:
    """Whether there is a line (or the end) on the input. The end ends everything."""
    if not select.select([0], [], [], 0)[0]:
        return False
    if os.read(0, 100) == b"":
        raise SystemExit("the one that gave the order is gone")
    return True


def rehearse(order: dict[str, Any]) -> dict[str, Any]:
    """Two undisturbed lives, here, with every mode: the names of all the steps."""
    [(source_id, loss, delta), *_] = order["sources"]
    modes = (Mode.ANSWER, Mode.FAIL, Mode.INCIDENT, Mode.FIND, Mode.RENEW, Mode.MANY, Mode.LEAVE)
    acts = [Act(source_id, f"{order['name']}.rehearsal.{mode}", loss, delta, mode) for mode in modes]
    # What is looked for the second time is found, and what the first life left behind is anchored by the second.
    acts.append(Act(source_id, acts[0].key, loss, delta, Mode.FIND))
    write = writer(Path(order["history"]))
    plan = Plan(dsn=order["dsn"], anchors=Path(order["anchors"]), acts=tuple(acts), package=order["package"])
    steps = Steps(plan, write)
    with watched(steps):
        live(plan, write, steps)
        live(plan, write, steps)
    return {"steps": list(steps.seen)}


def put_to_sleep(order: dict[str, Any]) -> dict[str, Any]:
    """Clients that stop (SIGSTOP) at given steps, are taken for dead by another when their leases are over, and are then woken."""
    current = Round(order, random.Random(order["seed"]))
    deadline = time.monotonic() + order["seconds_max"]
    history = Path(order["history"])
    asleep: list[int] = []
    for step in order["steps"]:
        plan = replace(current.plan(step), how=signal.SIGSTOP)
        pid = os.fork()
        if pid == 0:
            _client(plan, history)
        current.clients[pid] = (step, float("inf"))
    try:
        while set(current.clients) - set(asleep):
            assert time.monotonic() < deadline, "clients did not reach their steps in time"
            pid, status = os.waitpid(-1, os.WUNTRACED | os.WNOHANG)
            if pid == 0:
                time.sleep(0.005)
            elif os.WIFSTOPPED(status):
                asleep.append(pid)
            else:
                del current.clients[pid]
                current.ends[f"did not sleep: {status}"] += 1
        time.sleep(order["lease_seconds"] + 0.1)
        for number, (source_id, loss, delta) in enumerate(order["sources"]):
            act = Act(source_id, f"{order['name']}.finder.{number}", loss, delta, Mode.ANSWER)
            finder = Plan(order["dsn"], Path(order["anchors"]), (act,), package=order["package"])
            pid = os.fork()
            if pid == 0:
                _client(finder, history)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        for pid in asleep:
            os.kill(pid, signal.SIGCONT)
        while current.clients:
            assert time.monotonic() < deadline, "clients did not end in time"
            _reap(current)
    finally:
        for pid in current.clients:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return {"slept": len(asleep), "ends": current.ends, "lives": current.lives}


ACTS = {"rehearse": rehearse, "run": run, "put to sleep": put_to_sleep}


def main() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    line = b""
    while piece := os.read(0, 65536):
        line += piece
        if line.endswith(b"\n"):
            order = json.loads(line)
            line = b""
            print(json.dumps(ACTS[order["act"]](order)), flush=True)


if __name__ == "__main__":
    main()
