"""Ends connections whose reply does not arrive. One thread per process watches all of them, so a statement needs no thread.

It ends the connection, not the statement: cancelling a wait for a standby would look like success.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

LOOK_SECONDS = 0.25
"""Interval of the watcher while replies are awaited."""
_log = logging.getLogger("lapwing.ledger.postgres.connection")


@dataclass(slots=True, eq=False)
class _Waiting:
    """A reply that a thread awaits; times are of the monotonic clock."""

    line: socket.socket
    said_at: float
    ended_at: float


class _Watcher:
    """The replies that this process awaits."""

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._waiting: set[_Waiting] = set()
        self._somebody = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, one: _Waiting) -> None:
        with self._gate:
            self._waiting.add(one)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="lapwing-ledger-patience", daemon=True)
                self._thread.start()
        self._somebody.set()

    def end(self, one: _Waiting) -> None:
        with self._gate:
            self._waiting.discard(one)
        one.line.close()

    def _watch(self) -> None:
        while True:
            self._somebody.wait()
            time.sleep(LOOK_SECONDS)
            now = time.monotonic()
            with self._gate:  # a caller whose reply arrives waits for this lock, so that no connection is closed meanwhile
                if not self._waiting:
                    self._somebody.clear()
                for one in self._waiting:
                    self._look(one, now)

    def _look(self, one: _Waiting, now: float) -> None:
        if now >= one.said_at:
            one.said_at = one.ended_at + LOOK_SECONDS
            _log.warning("the database of the ledger has not answered yet; a synchronous standby may be missing")
        if now >= one.ended_at:
            one.ended_at = one.said_at = float("inf")
            try:
                one.line.shutdown(socket.SHUT_RDWR)
            except OSError:  # the connection is broken already
                return


_watcher = _Watcher()


def _watch_anew() -> None:
    """In a forked child: start without the parent's watcher thread and without its awaited replies."""
    global _watcher
    _watcher = _Watcher()


os.register_at_fork(after_in_child=_watch_anew)


@contextmanager
def patience(descriptor: int, *, notice_seconds: float, reply_seconds: float) -> Iterator[None]:
    """Limit the wait for a reply on this connection: after ``reply_seconds`` the connection is ended."""
    now, watcher = time.monotonic(), _watcher
    one = _Waiting(socket.socket(fileno=os.dup(descriptor)), now + notice_seconds, now + reply_seconds)
    watcher.begin(one)
    try:
        yield
    finally:
        watcher.end(one)
