"""Threads that wait for one another: those with the same question, of which one is charged, and those that plan for the same person."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager


class QuestionQueue:
    """Lets threads of this process go one after the other where they name the same thing, and others beside each other."""

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._named: dict[Hashable, tuple[threading.Lock, int]] = {}

    @contextmanager
    def one_by_one(self, name: Hashable) -> Iterator[None]:
        """Wait until no other thread is here by this name."""
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
