"""The same question asked by several threads at once: one is charged, and the others find its answer."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager


class QuestionQueue:
    """Lets threads of this process ask equal questions one after the other, and others beside each other."""

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._asked: dict[Hashable, tuple[threading.Lock, int]] = {}

    @contextmanager
    def one_by_one(self, question: Hashable) -> Iterator[None]:
        """Wait until nobody else asks this question."""
        with self._gate:
            turn, waiting = self._asked.get(question, (threading.Lock(), 0))
            self._asked[question] = turn, waiting + 1
        try:
            with turn:
                yield
        finally:
            with self._gate:
                turn, waiting = self._asked.pop(question)
                if waiting > 1:
                    self._asked[question] = turn, waiting - 1
