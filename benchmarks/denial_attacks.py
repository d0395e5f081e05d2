"""Ten ways to deny the server to others, each as a process of its own: ``python -m benchmarks.denial_attacks NAME`` with a target on stdin.

Attackers are on the machine of the server and share its processors, so they go at a stated pace, at ``nice`` 5, and every count is bounded:
what is measured is what the server does with what it gets, not who has more processors. A refusal is a success of the server; the attack
waits a moment and goes on. The process prints ``ready`` once it has opened or sent what it means to, or was refused first; it ends when its
stdin does, and prints what it sent and what became of it. Its connections end with it.
"""

from __future__ import annotations

import http.client
import json
import os
import resource
import select
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from typing import Protocol

import psycopg

COLUMNS = ",".join(str(10 + column) for column in range(40))
HELD_CURSORS = 6
LARGE_ROWS, CURSOR_ROWS = 100_000, 160_000
LARGE_EXPLAINS = 11
REFUSED_PAUSE = 0.2
WAIT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Target:
    """Where the server is, an analyst who may ask it, and how long a denial goes on at most."""

    port: int
    wire_port: int
    data_set: str
    name: str
    key: str
    seconds_max: float

    def session(self, password: str | None = None) -> psycopg.Connection:
        """A session on the wire, of the analyst."""
        return psycopg.connect(
            host="127.0.0.1",
            port=self.wire_port,
            user=self.name,
            password=password or self.key,
            dbname=self.data_set,
            autocommit=True,
            connect_timeout=int(WAIT_SECONDS),
        )


@dataclass(frozen=True, slots=True)
class Denial:
    """One of them: who does it, at which pace, and how."""

    by: str
    pace: str
    act: Callable[[Target, Counter[str]], None]


class _Held(Protocol):
    def fileno(self) -> int: ...

    def close(self) -> None: ...


_over, _ready = threading.Event(), threading.Event()


def _paced(target: Target, per_second: float) -> Iterator[int]:
    """Numbers at this pace until it is over; what was late is not made up for."""
    begun, number = time.monotonic(), 0
    while time.monotonic() < begun + target.seconds_max and not _over.is_set():
        yield number
        number += 1
        time.sleep(1 / per_second)


def _is_ready() -> None:
    if not _ready.is_set():
        _ready.set()
        print("ready", flush=True)


def _hold(target: Target, counts: Counter[str], opened: Callable[[], _Held], many: int, per_second: float) -> None:
    """Hold so many connections; open those anew that the server ends. Half a dozen are opened at a time, ten times a second or slower."""
    held: dict[int, _Held] = {}
    poll = select.poll()
    together = max(6, int(per_second / 10))
    with ThreadPoolExecutor(6) as openers:
        for _ in _paced(target, per_second / together):
            for number, _event in poll.poll(0):
                poll.unregister(number)
                held.pop(number).close()
                counts["ended by the server"] += 1
                _is_ready()
            attempts = [openers.submit(opened) for _ in range(min(together, many - len(held)))]
            for attempt in attempts:
                try:
                    one = attempt.result()
                except (OSError, psycopg.Error):
                    counts["refused"] += 1
                    _is_ready()
                    continue
                held[one.fileno()] = one
                poll.register(one.fileno(), select.POLLRDHUP | select.POLLHUP | select.POLLERR)
                counts["opened"] += 1
            if len(held) >= many:
                _is_ready()
    counts["held at the end"] = len(held)


def _half_sent(port: int, beginning: bytes) -> Callable[[], _Held]:
    def opened() -> _Held:
        one = socket.create_connection(("127.0.0.1", port), timeout=2)
        one.sendall(beginning)
        return one

    return opened


def _call(target: Target, path: str, credential: str | None, sql: str | None = None) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=WAIT_SECONDS)
    headers = {"Content-Type": "application/json"} | ({} if credential is None else {"Authorization": f"Bearer {credential}"})
    try:
        connection.request("GET" if sql is None else "POST", path, None if sql is None else json.dumps({"sql": sql}), headers)
        reply = connection.getresponse()
        reply.read()
        return reply.status
    finally:
        connection.close()


def _calls_without_credentials(target: Target, counts: Counter[str]) -> None:
    for _ in _paced(target, 50):
        _count_call(counts, lambda: _call(target, "/v1/me", None))


def _wrong_credentials(target: Target, counts: Counter[str]) -> None:
    wrong = "lw_" + "a" * (len(target.key) - 3)
    for number in _paced(target, 30):
        if number % 6:
            _count_call(counts, lambda: _call(target, "/v1/me", wrong))
        else:
            try:
                target.session(wrong).close()
            except psycopg.Error:
                counts["wire refused"] += 1


def _count_call(counts: Counter[str], call: Callable[[], int]) -> int:
    try:
        status = call()
    except (OSError, http.client.HTTPException) as error:
        counts[type(error).__name__] += 1
        return 0
    counts[str(status)] += 1
    _is_ready()
    return status


def _half_sent_requests(target: Target, counts: Counter[str]) -> None:
    _hold(target, counts, _half_sent(target.port, b"GET /v1/me HTTP/1.1\r\nHost: a\r\nX: "), 1_100, 500)


def _silent_wire_sockets(target: Target, counts: Counter[str]) -> None:
    _hold(target, counts, _half_sent(target.wire_port, b""), 305, 200)


def _idle_sessions(target: Target, counts: Counter[str]) -> None:
    _hold(target, counts, target.session, 320, 60)


def _statements(target: Target, counts: Counter[str], per_second: float, run: Callable[[psycopg.Connection, int], None]) -> None:
    """One statement after the other in a session, and a new session where it ends."""
    session: psycopg.Connection | None = None
    for number in _paced(target, per_second):
        try:
            if session is None or session.closed:
                session = target.session()
            run(session, number)
            counts["answered"] += 1
        except psycopg.errors.QueryCanceled:
            counts["over time"] += 1
        except psycopg.Error as error:
            counts[f"refused {error.sqlstate or ''}".strip()] += 1
            time.sleep(REFUSED_PAUSE)
        _is_ready()


def _held_cursors(target: Target, counts: Counter[str]) -> None:
    def run(session: psycopg.Connection, number: int) -> None:
        if number % HELD_CURSORS == 0:
            session.execute("CLOSE ALL")
        name = f"c{number % HELD_CURSORS}"
        session.execute(f"DECLARE {name} CURSOR WITH HOLD FOR SELECT {COLUMNS} FROM generate_series(1, {CURSOR_ROWS})".encode())
        session.execute(f"FETCH 1 FROM {name}".encode()).fetchall()

    _statements(target, counts, 5, run)


def _large_results(target: Target, counts: Counter[str]) -> None:
    def run(session: psycopg.Connection, _: int) -> None:
        session.execute(f"SELECT {COLUMNS} FROM generate_series(1, {LARGE_ROWS})".encode())

    _statements(target, counts, 2, run)


def _timed_out_statements(target: Target, counts: Counter[str]) -> None:
    def run(session: psycopg.Connection, number: int) -> None:
        session.execute("SET statement_timeout = 150")
        if number % 5 == 4:  # the others are over their time; this one is cancelled by the client, which then goes without a word
            threading.Timer(0.05, session.cancel).start()
        session.execute("SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b").fetchall()

    _statements(target, counts, 10, run)


def _unknown_methods(target: Target, counts: Counter[str]) -> None:
    def call(number: int) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=WAIT_SECONDS)
        try:
            connection.request(f"M{number:07d}{'X' * 2_000}", "/health/live")
            return connection.getresponse().status
        finally:
            connection.close()

    for number in _paced(target, 100):
        _count_call(counts, partial(call, number))


def _large_explains(target: Target, counts: Counter[str]) -> None:
    counted = "SELECT COUNT(*) FROM patients WHERE "
    texts = [
        counted + " OR ".join(f"income > {number}" for number in range(4_000)),
        counted + f"birth_year IN ({','.join(str(number) for number in range(9_000))})",
        f"SELECT {','.join(f'COUNT_IF(income > {number}) AS c{number}' for number in range(1_500))} FROM patients",
        counted + "-".join(["income"] * 8_000) + " > 1",
    ]
    path = f"/v1/data-sets/{target.data_set}/explain"

    def go_on(first: int) -> None:
        number = first
        while not _over.is_set():
            if _count_call(counts, partial(_call, target, path, target.key, texts[number % len(texts)])) in (0, 429, 503):
                time.sleep(REFUSED_PAUSE)
            number += 1

    threads = [threading.Thread(target=go_on, args=(first,), daemon=True) for first in range(LARGE_EXPLAINS)]
    for one in threads:
        one.start()
    _is_ready()
    _over.wait(target.seconds_max)


def _nothing(target: Target, counts: Counter[str]) -> None:
    _is_ready()
    _over.wait(target.seconds_max)
    counts["sent"] = 0


NOBODY = "nothing"
STRANGER, ANALYST = "a stranger", "an analyst"
DENIALS = {
    NOBODY: Denial("nobody", "to see what the machine does by itself", _nothing),
    "no-credentials": Denial(STRANGER, "50 calls a second", _calls_without_credentials),
    "wrong-credentials": Denial(STRANGER, "25 calls and 5 logins a second, from the address of the others", _wrong_credentials),
    "half-sent-requests": Denial(STRANGER, "1,100 connections, 500 a second", _half_sent_requests),
    "silent-wire-sockets": Denial(STRANGER, "305 connections, 200 a second", _silent_wire_sockets),
    "idle-sessions": Denial(ANALYST, "320 sessions, at most 60 a second", _idle_sessions),
    "held-cursors": Denial(ANALYST, f"{HELD_CURSORS} cursors of {CURSOR_ROWS:,} rows and 40 columns, again and again", _held_cursors),
    "large-results": Denial(ANALYST, f"results of {LARGE_ROWS:,} rows and 40 columns, at most 2 a second", _large_results),
    "timed-out-statements": Denial(ANALYST, "statements without end, over time after 150 ms, at most 10 a second", _timed_out_statements),
    "unknown-methods": Denial(STRANGER, "100 calls a second, each with a new method", _unknown_methods),
    "large-explains": Denial(ANALYST, f"{LARGE_EXPLAINS} at a time, one after the other", _large_explains),
}


def _until_told() -> None:
    sys.stdin.read()
    _over.set()


def as_input(target: Target) -> bytes:
    """The target as the process of a denial reads it."""
    return json.dumps(asdict(target)).encode() + b"\n"


def main() -> None:
    """Deny, until the time is over."""
    os.nice(5)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most if most != resource.RLIM_INFINITY else 65_536, most))
    target, counts = Target(**json.loads(sys.stdin.readline())), Counter[str]()
    threading.Thread(target=_until_told, daemon=True).start()
    DENIALS[sys.argv[1]].act(target, counts)
    print(json.dumps(counts), flush=True)
    os._exit(0)  # threads may still wait for a reply


if __name__ == "__main__":
    main()
