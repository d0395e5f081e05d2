"""A process that asks a ledger on PostgreSQL. Run as a script: ``python pg_client.py`` reads one JSON command from standard input.

The command names the server, the source, the anchors, and lists of requests; each list is asked by a process of its own, all at once.
What a process does is appended to a log with one system call an event; a killed process cannot take that back.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from lapwing.errors import LapwingError
from lapwing.kernel.accounting import Cost
from lapwing.kernel.permit import Permit
from lapwing.ledger.postgres.anchors import FileAnchors
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.protocol import Request


def main() -> None:
    command = json.loads(sys.stdin.read())
    start_read, start_write = os.pipe()
    ready_read, ready_write = os.pipe()
    children = []
    for requests in command["requests"]:
        pid = os.fork()
        if pid == 0:
            os.close(start_write)
            ask_all(command, requests, ready_write, start_read)
        children.append(pid)
    os.close(start_read)
    os.close(ready_write)
    for _ in children:
        os.read(ready_read, 1)
    os.close(start_write)  # the end of the pipe is the starting shot
    for pid in children:
        os.waitpid(pid, 0)


def ask_all(command: dict[str, Any], requests: list[list[Any]], ready: int, start: int) -> NoReturn:
    log = os.open(command["log"], os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)

    def write(**event: object) -> None:
        os.write(log, (json.dumps(event) + "\n").encode())

    status = 1
    try:
        ledger = PostgresLedger.open(command["dsn"], source_id=command["source_id"], anchors=FileAnchors(Path(command["anchors"])))
        os.write(ready, b"r")
        os.read(start, 1)
        for analyst, key, loss, stop in requests:
            ask(ledger, analyst, key, loss, stop, write)
        ledger.disconnect()
        status = 0
    except LapwingError as error:
        write(event="stopped", code=error.code)
    finally:
        os._exit(status)


def ask(ledger: PostgresLedger, analyst: str, key: str, loss: int, stop: str, write: Any) -> None:
    """One request; ``stop`` names the step after which the process kills itself, or falls asleep until it is woken."""

    def step(name: str) -> None:
        if name == stop:
            os.kill(os.getpid(), signal.SIGKILL)
        if f"sleep {name}" == stop:
            write(event="asleep", pid=os.getpid())
            os.kill(os.getpid(), signal.SIGSTOP)

    step("before reserve")
    request = Request(analyst=analyst, request_id=key, digest=f"plan of {key}", cost=Cost(loss=loss, delta=0), version=1, summary=key)
    try:
        outcome = ledger.reserve(request)
    except LapwingError as error:
        write(event="refused", analyst=analyst, key=key, code=error.code)
        return
    if not isinstance(outcome, Permit):
        write(event="answer", analyst=analyst, key=key, payload=outcome.payload.hex(), loss=loss)
        return
    write(event="permit", analyst=analyst, key=key, loss=loss)
    step("after reserve")
    payload = os.urandom(8)
    ledger.commit(outcome, payload)
    step("after commit")
    write(event="answer", analyst=analyst, key=key, payload=payload.hex(), loss=loss)


if __name__ == "__main__":
    main()
