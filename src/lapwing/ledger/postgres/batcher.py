"""Batches the requests of many threads: those that arrive while a statement is running go together into the next one.

The first request is sent alone, and all that arrive before its reply are sent as one. The order is first come, first served. One thread
sends for all; when it has its own result, it hands its turn to the thread that has waited longest. After a large batch, its threads are
about to send again, so the next statement waits for them, for a fraction of the time that a statement takes.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

from lapwing.errors import LapwingError, LedgerError

COMPANY_SHARE = 0.25
"""The longest wait for other requests, as a share of the time that the last statement took."""
COMPANY_SECONDS_MAX = 0.005
Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def _closed() -> Lock:
    gate = Lock()
    gate.acquire()
    return gate


@dataclass(slots=True, eq=False)
class _Waiting(Generic[Item, Outcome]):
    """A waiting item, and later its result."""

    item: Item
    result: tuple[Outcome] | LapwingError | None = None
    woken: Lock = field(default_factory=_closed)
    """Released once: when the result is there, or when it is this thread's turn to send."""


class Batcher(Generic[Item, Outcome]):
    """Sends items of many threads in few statements, without delay.

    ``send`` returns one outcome for each item, in order; a returned error concerns only its item, a raised error concerns all items.
    ``weight`` says how much of ``weight_max`` an item takes; a single item is sent whatever its weight.
    """

    def __init__(
        self,
        send: Callable[[Sequence[Item]], Sequence[Outcome | LapwingError]],
        *,
        count_max: int,
        weight: Callable[[Item], int] = lambda _: 0,
        weight_max: int = 0,
    ) -> None:
        self._send = send
        self._count_max = count_max
        self._weight = weight
        self._weight_max = weight_max
        self._gate = Lock()
        self._queue: deque[_Waiting[Item, Outcome]] = deque()
        self._busy = False
        self._sent_last, self._took_last = 0, 0.0

    def outcome(self, item: Item) -> Outcome:
        """Send an item, perhaps with others, and return its outcome; raises the error of the item."""
        mine: _Waiting[Item, Outcome] = _Waiting(item)
        with self._gate:
            self._queue.append(mine)
            leads, self._busy = not self._busy, True
        if not leads:
            self._wait(mine)
        if mine.result is None:
            try:
                while mine.result is None:  # older items may fill a statement
                    self._send_what_waits()
            finally:
                self._hand_over()
        if isinstance(mine.result, LapwingError):
            raise mine.result
        return mine.result[0]

    def _wait(self, mine: _Waiting[Item, Outcome]) -> None:
        try:
            mine.woken.acquire()
        except BaseException:  # interrupted: pass on a turn that was handed over meanwhile
            with self._gate:
                if mine in self._queue:
                    self._queue.remove(mine)
                has_turn = mine.woken.acquire(blocking=False) and mine.result is None
            if has_turn:
                self._hand_over()
            raise

    def _hand_over(self) -> None:
        with self._gate:
            self._busy = bool(self._queue)
            if self._queue:
                self._queue[0].woken.release()

    def _send_what_waits(self) -> None:
        """Send the oldest items; each caller gets its outcome. Pre: it is this thread's turn."""
        if len(self._queue) < self._sent_last // 2:
            time.sleep(min(self._took_last * COMPANY_SHARE, COMPANY_SECONDS_MAX))
        begun = time.monotonic()
        with self._gate:
            chosen = self._taken()
        results: Sequence[Outcome | LapwingError] = (LedgerError("ledger-unreachable", "the process is being stopped"),) * len(chosen)
        try:
            results = self._send([one.item for one in chosen])
        except LapwingError as error:
            results = (error,) * len(chosen)
        finally:  # even if the sender fails, no caller waits forever
            for one, result in zip(chosen, results, strict=True):
                one.result = result if isinstance(result, LapwingError) else (result,)
                one.woken.release()
            self._sent_last, self._took_last = len(chosen), time.monotonic() - begun

    def _taken(self) -> list[_Waiting[Item, Outcome]]:
        chosen: list[_Waiting[Item, Outcome]] = []
        weight = 0
        while self._queue and len(chosen) < self._count_max:
            weight += self._weight(self._queue[0].item)
            if chosen and weight > self._weight_max:
                break
            chosen.append(self._queue.popleft())
        return chosen
