"""A ledger that many threads of one process share: reservations that come while others are on their way go together.

Nobody waits for company: the first request goes alone, and all that arrive until the reply is there go as one statement, with one lock and
one wait for the disk. Who comes first is served first. What one of them is refused, the others are not.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from threading import Lock
from typing import Any

from lapwing.errors import LapwingError, LedgerError
from lapwing.kernel.permit import Permit
from lapwing.ledger import limits
from lapwing.ledger.postgres.batch import REQUESTS_MAX, Result
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.protocol import Request, StoredAnswer


@dataclass(slots=True, eq=False)
class _Waiting:
    """A request that waits for its turn; then what came of it."""

    request: Request
    result: Result | None = None


class SharedPostgresLedger(PostgresLedger):
    """A :class:`PostgresLedger` whose reservations are sent together."""

    __slots__ = ("_queue", "_queue_gate", "_turn")

    def __init__(self, *arguments: Any, **others: Any) -> None:
        super().__init__(*arguments, **others)
        self._queue: deque[_Waiting] = deque()
        self._queue_gate = Lock()
        self._turn = Lock()

    def reserve(self, request: Request) -> Permit | StoredAnswer:
        """As :meth:`PostgresLedger.reserve`, perhaps together with others."""
        limits.require_request(request)  # a request that is not one must not stop those beside it
        mine = _Waiting(request)
        with self._queue_gate:
            self._queue.append(mine)
        with self._turn:
            while mine.result is None:  # older ones may fill a statement
                self._send()
        if isinstance(mine.result, LapwingError):
            raise mine.result
        return mine.result

    def _send(self) -> None:
        """Send what waits, oldest first; each is told what came of it. Pre: this thread has the turn."""
        with self._queue_gate:
            together = [self._queue.popleft() for _ in range(min(len(self._queue), REQUESTS_MAX))]
        results: tuple[Result, ...] = (LedgerError("ledger-unreachable", "the process is being stopped"),) * len(together)
        try:
            results = self.reserve_many([one.request for one in together]) if len(together) > 1 else (self._alone(together[0].request),)
        except LapwingError as error:
            results = (error,) * len(together)
        finally:  # whatever happens to the one who sends, nobody waits for ever
            for one, result in zip(together, results, strict=True):
                one.result = result

    def _alone(self, request: Request) -> Result:
        try:
            return super().reserve(request)
        except LapwingError as error:
            return error
