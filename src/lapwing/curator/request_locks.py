"""Locks by name: equal questions wait for one another, so that one is charged, and so do plans for the same analyst."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager


class QuestionQueue:
    """Serialises threads of this process that use the same name; other threads run concurrently."""

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._named: dict[Hashable, tuple[threading.Lock, int]] = {}

    @contextmanager
    def one_by_one(self, name: Hashable) -> Iterator[None]:
        """Hold the lock of this name."""
        with self._gate:
            turn, waiting = self._named.get(name, (threading.Lock(), 0))
            self._named[name] = turn, waiting + 1
        try:
            with turn:
                yield
        finally:
            with self._gate:
                turn, waiting = self._named.pop(name)
                if waiting > 1:
                    self._named[name] = turn, waiting - 1
