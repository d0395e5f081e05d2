"""Ends a connection on which no reply comes. One thread of the process watches all of them, so that a statement costs no thread of its own.

The connection is ended, not the statement: cancelling a wait for a standby would look like success.
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
"""Interval of the watcher while requests wait."""
_log = logging.getLogger("lapwing.ledger.postgres.connection")


@dataclass(slots=True, eq=False)
class _Waiting:
    """A reply that is waited for; moments are lengths of time, whatever happens to the clock."""

    line: socket.socket
    said_at: float
    ended_at: float


class _Watcher:
    """What is waited for in this process."""

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
            with self._gate:  # the caller with the reply waits for this, so that no connection is closed meanwhile
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
            except OSError:  # it is broken already
                return


_watcher = _Watcher()


def _watch_anew() -> None:
    """In a forked child: its parent's thread is not here, and what the parent waits for is not waited for here."""
    global _watcher
    _watcher = _Watcher()


os.register_at_fork(after_in_child=_watch_anew)


@contextmanager
def patience(descriptor: int, *, notice_seconds: float, reply_seconds: float) -> Iterator[None]:
    """What waits for a reply on this connection waits so long at most: then the connection is ended."""
    now, watcher = time.monotonic(), _watcher
    one = _Waiting(socket.socket(fileno=os.dup(descriptor)), now + notice_seconds, now + reply_seconds)
    watcher.begin(one)
    try:
        yield
    finally:
        watcher.end(one)
