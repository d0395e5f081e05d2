"""A stream of counts with one charge in the ledger and a stored log. Like ``charged_release``, it holds exact values.

The order is fixed: certify (public facts only) -> reserve the whole (durable) -> run and answer each question -> commit the answers.
A fault of the engine is an incident, which forfeits the charge and closes the data set. A process that dies leaves a reservation, which is
forfeited when the ledger is next opened. Nothing is refunded.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from lapwing.curator.cost_estimate import announce_charge, note_reservation
from lapwing.curator.version_use import VersionLease
from lapwing.errors import Incident, LedgerError, Refused
from lapwing.kernel.count_stream import CountStream, StreamPlan
from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Expression, Literal
from lapwing.ledger.protocol import Ledger, Request, StoredAnswer
from lapwing.ledger.settling import PendingCommits


class ChargedStream:
    """An opened stream whose whole price is charged. ``rows`` gives the public number of rows of a table.

    It reads one version and releases it when it ends.
    """

    def __init__(
        self,
        plan: StreamPlan,
        request: Request,
        *,
        ledger: Ledger,
        version: VersionLease,
        settling: PendingCommits,
        rows: Callable[[str], float],
    ) -> None:
        self._plan, self._request, self._rows = plan, request, rows
        self._ledger, self._version, self._settling = ledger, version, settling
        snapshot = self._snapshot = version.snapshot
        every = plan.question(Literal(True, Kind.BOOLEAN), snapshot.facts)
        snapshot.check(every)
        announce_charge(every, rows)  # a watcher can stop the charge here by raising
        permit = ledger.reserve(request)
        note_reservation(permit.charge_id)
        if isinstance(permit, StoredAnswer):
            raise Refused("session-ended", "this session was closed before", hint="open another one")
        self._permit, self._process = permit, os.getpid()
        self._stream: CountStream | None = CountStream(plan, snapshot.facts, permit)

    @property
    def starts_left(self) -> int:
        """How many fresh counts are left; 0 once the stream has ended."""
        return 0 if self._stream is None else self._stream.starts_left

    def tell(self, condition: Expression, *, near: int) -> int | None:
        """None if the count of the rows that meet a condition is near the number, otherwise a fresh noisy count."""
        question = self._plan.question(condition, self._snapshot.facts)
        if self._stream is None or self.starts_left < 1 or os.getpid() != self._process:
            raise Refused("session-ended", "the session has used up its starts, or was closed", hint="open another one, at its price")
        self._snapshot.check(question)
        if self._ledger.balance().closed:
            raise Refused("data-set-closed", "the data set is closed", hint="the data owner can re-open it")
        hold = announce_charge(question, self._rows)
        try:
            told = self._stream.tell(condition, self._snapshot.run(question), near=near)
        except Exception as error:
            # As in ``charged_release``: a failure here happens after rows were read.
            hold()
            self._end()
            self._settling.incident(self._ledger, self._permit)
            if isinstance(error, Incident):
                raise
            raise Incident() from None
        except BaseException:  # the process is being stopped from outside
            self._end()
            with contextlib.suppress(LedgerError):
                self._ledger.forfeit(self._permit, incident=False)
            raise
        hold()
        return told

    def close(self, log: bytes) -> StoredAnswer | None:
        """Store the answers; None if the stream is already closed."""
        if self._stream is None:
            return None
        self._end()
        return self._settling.store(self._ledger, self._request, self._permit, log)

    def _end(self) -> None:
        self._stream = None
        self._version.give_back()
