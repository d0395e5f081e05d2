"""Fair scheduling in a thread pool: one person has at most half of it, and the work of different people is interleaved."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

Result = TypeVar("Result")


@dataclass(slots=True)
class _OfPerson:
    """A person's waiting work, and the number of threads in use."""

    waiting: deque[tuple[Future[Any], Callable[[], Any]]] = field(default_factory=deque)
    placed: int = 0


class FairThreadPool:
    """A pool of ``running_max`` threads. Any thread may call ``begin``; if it returns None, the client must retry later."""

    def __init__(self, running_max: int, waiting_max: int) -> None:
        self._share = max(running_max // 2, 1)
        self._most = running_max + waiting_max
        self._pool = ThreadPoolExecutor(running_max, thread_name_prefix="lapwing-ask")
        self._gate = threading.Lock()
        self._people: dict[str, _OfPerson] = {}
        self._left_to_others = running_max - self._share

    @property
    def inside(self) -> int:
        """The number of pieces of work that run or wait."""
        with self._gate:
            return self._inside()

    def _inside(self) -> int:
        return sum(one.placed + len(one.waiting) for one in self._people.values())

    def begin(self, person: str, work: Callable[[], Result]) -> Future[Result] | None:
        """The future result; None if too much waits, either in total or of this person, since others need room too."""
        future: Future[Result] = Future()
        with self._gate:
            inside, own = self._inside(), self._people.get(person, _OfPerson())
            if inside >= self._most or own.placed + len(own.waiting) >= self._most - self._left_to_others:
                return None
            self._people[person] = own
            if own.placed < self._share:
                own.placed += 1
                self._pool.submit(self._turn, person, future, work)
            else:
                own.waiting.append((future, work))
        return future

    def _turn(self, person: str, future: Future[Any], work: Callable[[], Any]) -> None:
        """One piece of work. Its thread is free before its result is visible, so a new request finds it."""
        following: tuple[Future[Any], Callable[[], Any]] | None = (future, work)
        while following is not None:
            future, work = following
            if not future.set_running_or_notify_cancel():
                following = self._following(person)
                continue
            try:
                result = work()
            except BaseException as error:
                following = self._following(person)
                future.set_exception(error)
            else:
                following = self._following(person)
                future.set_result(result)

    def _following(self, person: str) -> tuple[Future[Any], Callable[[], Any]] | None:
        """Queue the person's next waiting work behind that of others; without any, give up the person's thread."""
        with self._gate:
            own = self._people[person]
            if not own.waiting:
                own.placed -= 1
                if not own.placed:
                    del self._people[person]
                return None
            following = own.waiting.popleft()
            try:
                self._pool.submit(self._turn, person, *following)
            except RuntimeError:
                return following  # the pool takes no new work, and what is inside must finish
            return None

    def close(self, *, wait: bool) -> None:
        """Take no new work; with ``wait``, wait for what is inside to finish."""
        self._pool.shutdown(wait=wait)
