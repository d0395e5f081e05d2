"""A ledger that many threads of one process share: it batches their reservations, and it batches their answers.

Waiting requests share one lock and one disk write, and one statement for all data sets of the database that the process uses
(:mod:`lapwing.ledger.postgres.across`). A refusal affects only its own request.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from lapwing.errors import LapwingError, LedgerError
from lapwing.kernel.permit import Permit
from lapwing.ledger import limits
from lapwing.ledger.postgres import across, rows
from lapwing.ledger.postgres.batch import REQUESTS_MAX, Batch, Result, commit_columns
from lapwing.ledger.postgres.batcher import Batcher
from lapwing.ledger.postgres.blocks import require_request
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.protocol import Request, StoredAnswer

Answer = tuple[Permit, bytes]


class SharedPostgresLedger(PostgresLedger):
    """A :class:`PostgresLedger` whose reservations are sent together, and whose answers are stored together."""

    __slots__ = ("_answers", "_reservations", "_used_by")

    def _start(self, *, override_reason: str | None) -> None:
        self._reservations: Batcher[Request, Permit | StoredAnswer] = Batcher(self._reserve_all, count_max=REQUESTS_MAX)
        self._answers: Batcher[Answer, None] = Batcher(
            self._commit_all, count_max=REQUESTS_MAX, weight=lambda answer: len(answer[1]), weight_max=across.BYTES_MAX
        )
        super()._start(override_reason=override_reason)
        across.begin_use(self._database)
        self._used_by = os.getpid()

    def disconnect(self) -> None:
        """As :meth:`PostgresLedger.disconnect`."""
        if self._used_by == os.getpid():
            self._used_by = 0
            across.end_use(self._database)
        super().disconnect()

    def reserve(self, request: Request) -> Permit | StoredAnswer:
        """As :meth:`PostgresLedger.reserve`, possibly in a batch."""
        require_request(request)  # an invalid request must not fail its batch
        self._require_own_process()
        return self._reservations.outcome(request)

    def commit(self, permit: Permit, payload: bytes) -> None:
        """As :meth:`PostgresLedger.commit`, possibly in a batch."""
        limits.require_payload(payload)
        self._require_own_process()
        self._answers.outcome((permit, payload))

    @property
    def _database(self) -> across.Database:
        return self._dsn, self._retry_seconds

    def _reserve_all(self, requests: Sequence[Request]) -> Sequence[Result]:
        self._make_ready()
        batch, known, crossing = Batch.of(requests), self._known, across.crossing_of(self._database)
        if crossing is not None and known.blocks is None and not any(batch.blocks):  # a data set with blocks is charged alone
            part = across.LedgerPart(self.ledger_id, self.epoch, known, [*batch.columns, batch.purchases])
            decided = crossing.reservations.decided(part)
            if decided is not None:
                self._advance(rows.state_of_texts(decided.state), known=known)
                return batch.permits(decided.marks)
        return self._reserve_batch(batch) if len(requests) > 1 else (self._reserve(requests[0], batch.nonces[0]),)

    def _commit_all(self, answers: Sequence[Answer]) -> Sequence[LapwingError | None]:
        known, crossing = self._known, across.crossing_of(self._database)
        if crossing is not None:
            payload_bytes = sum(len(payload) for _, payload in answers)
            part = across.LedgerPart(self.ledger_id, self.epoch, known, commit_columns(answers), payload_bytes)
            decided = crossing.answers.decided(part)
            if decided is not None:
                self._advance(rows.state_of_texts(decided.state), known=known)
                return (None,) * len(answers)
        if len(answers) > 1:
            try:
                return self.commit_many(answers)
            except LedgerError as error:
                if error.code != "ledger-rule":
                    raise
        return [self._commit_alone(permit, payload) for permit, payload in answers]  # an answer that breaks a rule must not fail others

    def _commit_alone(self, permit: Permit, payload: bytes) -> LapwingError | None:
        try:
            super().commit(permit, payload)
        except LapwingError as error:
            return error
        return None
