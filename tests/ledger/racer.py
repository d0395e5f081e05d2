"""A process that asks a ledger, and is killed while it does. Run as a script by ``tests.ledger.crashes``.

``python racer.py PACKAGE DIRECTORY LOSS_UNIT DELTA_UNIT`` reads one JSON command a line, forks a child that carries it out, and answers how
the child ended. The child kills itself with SIGKILL at the step it was told, or the parent kills it after so many seconds. A command with
``crowd`` forks a child for each list of keys in it, and lets all of them loose at once when each has opened the ledger. With ``blocks`` the
requests read ranges of so many blocks of time.

A *step* is a mark in this file or the start of an SQL statement (SQLite's own trace), counted within each phase of each request, so every
gap between two statements can be hit. What the child does is appended to a log with one system call an event; a killed process cannot
take that back.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from lapwing.errors import LapwingError
from lapwing.kernel.permit import Permit
from tests.ledger.support import FINGERPRINT, SOURCE, cost_of_key, ledger_path, ranges_of_key

Command = dict[str, Any]


def main() -> None:
    package, directory, loss_unit, delta_unit = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    for name in ("local.ledger", "protocol"):
        importlib.import_module(f"{package}.{name}")
    # A race of killed processes goes on; a test of its own counts deaths.
    setattr(importlib.import_module(f"{package}.local.deaths"), "DEATHS_MAX", 10**6)  # noqa: B010
    for line in sys.stdin:
        command = json.loads(line)
        if "crowd" in command:
            release_crowd(command, lambda one: Child(package, directory, loss_unit, delta_unit, one))
            print("{}", flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            Child(package, directory, loss_unit, delta_unit, command).run()
        if command.get("kill_after_seconds") is not None:
            time.sleep(command["kill_after_seconds"])
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        ended = {"killed": os.WIFSIGNALED(status), "journal": Path(f"{ledger_path(directory)}-journal").exists()}
        print(json.dumps(ended), flush=True)


def release_crowd(command: Command, make: Callable[[Command], Child]) -> None:
    ready_read, ready_write = os.pipe()
    start_read, start_write = os.pipe()
    pids = []
    for keys in command["crowd"]:
        pid = os.fork()
        if pid == 0:
            os.close(start_write)
            make({"keys": keys, "order": command["order"], "ready": ready_write, "start": start_read}).run()
        pids.append(pid)
    os.close(start_read)
    for _ in pids:
        os.read(ready_read, 1)
    os.close(start_write)  # the end of the pipe is the starting shot
    os.close(ready_read)
    os.close(ready_write)
    for pid in pids:
        os.waitpid(pid, 0)


class Child:
    def __init__(self, package: str, directory: Path, loss_unit: int, delta_unit: int, command: Command) -> None:
        self.local = importlib.import_module(f"{package}.local.ledger")
        self.store = importlib.import_module(f"{package}.protocol")
        self.directory = directory
        self.units = (loss_unit, delta_unit)
        self.command = command
        self.log = os.open(directory / "log", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        self.request, self.phase, self.number = 0, "open", 0
        self.steps: dict[str, int] = {}

    def run(self) -> NoReturn:
        connect: Any = sqlite3.connect

        def traced(path: str, **options: Any) -> Any:
            connection = connect(path, **options)
            if path != ":memory:":
                connection.set_trace_callback(lambda statement: self.step())
            return connection

        setattr(sqlite3, "connect", traced)  # noqa: B010  (the type of the real one is overloaded)
        try:
            self.ask_everything()
        except LapwingError as error:
            self.write(event="stopped", code=error.code)
            os._exit(3)
        self.write(event="steps", steps=self.steps)
        os._exit(0)

    def step(self) -> None:
        self.number += 1
        self.steps[self.phase] = self.number
        if [self.request, self.phase, self.number] == self.command.get("kill"):
            os.kill(os.getpid(), signal.SIGKILL)

    def enter(self, request: int, phase: str) -> None:
        self.request, self.phase, self.number = request, phase, 0
        self.step()

    def write(self, **event: object) -> None:
        os.write(self.log, (json.dumps(event) + "\n").encode())

    def ask_everything(self) -> None:
        self.enter(0, "open")
        ledger = self.local.LocalLedger.open(
            ledger_path(self.directory), source_id=SOURCE, source_fingerprint=FINGERPRINT, home=self.directory / "home"
        )
        if "start" in self.command:
            os.write(self.command["ready"], b"r")
            os.read(self.command["start"], 1)
        for number, key in enumerate(self.command["keys"]):
            self.ask(ledger, number, key)
        self.enter(0, "disconnect")
        ledger.disconnect()

    def ask(self, ledger: Any, number: int, key: str) -> None:
        order = self.command["order"]
        cost, blocks = cost_of_key(key, self.units), self.command.get("blocks", 0)
        over = {"ranges": ranges_of_key(key, self.units, blocks), "person": cost} if blocks else {}
        request = self.store.Request(analyst="ana", request_id=key, digest=f"plan of {key}", cost=cost, version=1, summary=key, **over)
        if order == "read before reserve":
            self.write(event="read", key=key)
            self.step()
        self.enter(number, "reserve")
        try:
            outcome = ledger.reserve(request)
        except LapwingError as error:
            self.write(event="refused", key=key, code=error.code)
            return
        if not isinstance(outcome, Permit):
            self.write(event="answer", key=key, payload=outcome.payload.hex())
            return
        self.write(event="permit", key=key, charge_id=outcome.charge_id)
        self.enter(number, "run")
        if order != "read before reserve":
            self.write(event="read", key=key)
        payload = os.urandom(12)
        self.step()
        if order == "send before commit":
            self.write(event="answer", key=key, payload=payload.hex())
        self.enter(number, "commit")
        ledger.commit(outcome, payload)
        self.enter(number, "send")
        if order != "send before commit":
            self.write(event="answer", key=key, payload=payload.hex())
        self.step()


if __name__ == "__main__":
    main()
