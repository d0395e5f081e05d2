"""Settles a charge after the engine has run: stores the answer, or records the incident, with a bounded number of retries.

A failure of the ledger is not a fault of the engine. An answer that is ready to be stored is already noisy, so keeping it in memory and
retrying reveals nothing, and no one sees it until it is stored. So a busy or unreachable ledger neither closes the data set nor loses an
answer that is paid for: the same question to the same process returns that answer once it is stored. There is never a second noisy answer
for one charge. Answers that a process still holds when it ends are forfeited like any other reservation.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from lapwing.errors import LedgerError
from lapwing.kernel.permit import Permit
from lapwing.ledger.protocol import Ledger, Request, StoredAnswer

PATIENCE_SECONDS = 60.0
"""How long to retry storing an answer before asking the analyst to retry."""
_PAUSE_SECONDS_MAX = 2.0
_OVER = "charge-not-open"
_NEVER_STORED = frozenset({_OVER, "answer-too-large"})
"""Errors that a retry cannot change; both depend only on the ledger and the noisy answer."""


@dataclass(frozen=True, slots=True)
class _Pending:
    """A noisy answer that is paid for but not yet stored."""

    analyst: str
    request_id: str
    permit: Permit
    payload: bytes


class PendingCommits:
    """Answers and incidents that one process has yet to record in one ledger. Safe to share between threads."""

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._answers: dict[str, _Pending] = {}
        """Keyed by the permit's nonce: two threads may have paid for the same plan, and neither loses its answer."""
        self._incidents: list[Permit] = []

    def store(self, ledger: Ledger, request: Request, permit: Permit, payload: bytes) -> StoredAnswer:
        """Store an answer; when this returns, it may be shown. ``answer-pending`` if the ledger cannot store it; the answer is kept."""
        one = _Pending(request.analyst, request.request_id, permit, payload)
        with self._gate:
            self._answers[permit.nonce] = one
        return self._store(ledger, one, patiently=True)

    def pending(self, ledger: Ledger, *, analyst: str, digest: str) -> StoredAnswer | None:
        """Store and return an answer that this analyst has paid for but not seen; None if there is none, or its charge has ended."""
        with self._gate:
            mine = (one for one in self._answers.values() if (one.analyst, one.permit.digest) == (analyst, digest))
            one = next(mine, None)
        if one is None:
            return None
        try:
            return self._store(ledger, one, patiently=False)
        except LedgerError as error:
            if error.code in _NEVER_STORED:
                return None
            raise

    def incident(self, ledger: Ledger, permit: Permit) -> None:
        """Forfeit the charge and close the data set. If the ledger cannot record this now, this process answers nothing until it has."""
        with self._gate:
            self._incidents.append(permit)
        with contextlib.suppress(LedgerError):
            self._patiently(lambda: self.require_settled(ledger), is_final=lambda error: False)

    def require_settled(self, ledger: Ledger) -> None:
        """Record every pending incident of this process, or refuse to continue."""
        with self._gate:
            while self._incidents:
                try:
                    ledger.forfeit(self._incidents[0], incident=True)
                except LedgerError as error:
                    if error.code != _OVER:  # the data set is closed even if the charge had already ended
                        raise
                del self._incidents[0]

    def finish(self, ledger: Ledger) -> None:
        """Try everything once more before the ledger is closed."""
        with contextlib.suppress(LedgerError):
            self.require_settled(ledger)
        for one in tuple(self._answers.values()):
            with contextlib.suppress(LedgerError):
                self._store(ledger, one, patiently=False)

    def _store(self, ledger: Ledger, one: _Pending, *, patiently: bool) -> StoredAnswer:
        try:
            if patiently:
                self._patiently(lambda: ledger.commit(one.permit, one.payload), is_final=lambda error: error.code in _NEVER_STORED)
            else:
                ledger.commit(one.permit, one.payload)
        except LedgerError as error:
            if error.code not in _NEVER_STORED:
                raise _not_stored(one.request_id) from error
            self._drop(one)
            if error.code != _OVER:
                with contextlib.suppress(LedgerError):
                    ledger.forfeit(one.permit, incident=False)
            raise
        self._drop(one)
        return StoredAnswer(one.permit.charge_id, one.payload)

    def _drop(self, one: _Pending) -> None:
        with self._gate:
            self._answers.pop(one.permit.nonce, None)

    def _patiently(self, act: Callable[[], None], *, is_final: Callable[[LedgerError], bool]) -> None:
        deadline, pause_seconds = time.monotonic() + PATIENCE_SECONDS, 0.05
        while True:
            try:
                return act()
            except LedgerError as error:
                if is_final(error) or time.monotonic() + pause_seconds > deadline:
                    raise
            time.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, _PAUSE_SECONDS_MAX)


def _not_stored(request_id: str) -> LedgerError:
    hint = f"repeat the request (request id {request_id}) before this process ends: it is not charged twice, and the answer is the same"
    return LedgerError("answer-pending", "the answer is paid for, but the ledger cannot store it yet", hint=hint)
