"""A ledger that many threads of one process share: their reservations go together, and so do their answers.

One lock and one wait for the disk for all that wait. What one of them is refused, the others are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lapwing.errors import LapwingError, LedgerError
from lapwing.kernel.permit import Permit
from lapwing.ledger import limits
from lapwing.ledger.postgres.batch import REQUESTS_MAX, Result
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.postgres.together import Together
from lapwing.ledger.protocol import Request, StoredAnswer

ANSWERS_BYTES_MAX = 2**22
"""Of answers that go together: larger ones go alone, so that nobody waits long for another's answer, nor is there a second copy of many."""
Answer = tuple[Permit, bytes]


class SharedPostgresLedger(PostgresLedger):
    """A :class:`PostgresLedger` whose reservations are sent together, and whose answers are stored together."""

    __slots__ = ("_answers", "_reservations")

    def __init__(self, *arguments: Any, **others: Any) -> None:
        super().__init__(*arguments, **others)
        self._reservations: Together[Request, Permit | StoredAnswer] = Together(self._reserve_all, count_max=REQUESTS_MAX)
        self._answers: Together[Answer, None] = Together(
            self._commit_all, count_max=REQUESTS_MAX, weight=lambda answer: len(answer[1]), weight_max=ANSWERS_BYTES_MAX
        )

    def reserve(self, request: Request) -> Permit | StoredAnswer:
        """As :meth:`PostgresLedger.reserve`, perhaps together with others."""
        limits.require_request(request)  # a request that is not one must not stop those beside it
        return self._reservations.outcome(request)

    def commit(self, permit: Permit, payload: bytes) -> None:
        """As :meth:`PostgresLedger.commit`, perhaps together with others."""
        limits.require_payload(payload)
        self._answers.outcome((permit, payload))

    def _reserve_all(self, requests: Sequence[Request]) -> Sequence[Result]:
        return self.reserve_many(requests) if len(requests) > 1 else (super().reserve(requests[0]),)

    def _commit_all(self, answers: Sequence[Answer]) -> Sequence[LapwingError | None]:
        if len(answers) > 1:
            try:
                return self.commit_many(answers)
            except LedgerError as error:
                if error.code != "ledger-rule":
                    raise
        return [self._commit_alone(permit, payload) for permit, payload in answers]  # a rule that one of them breaks is not the others'

    def _commit_alone(self, permit: Permit, payload: bytes) -> LapwingError | None:
        try:
            super().commit(permit, payload)
        except LapwingError as error:
            return error
        return None
