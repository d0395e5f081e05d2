"""Several reservations, or several answers, in one statement, for a process that serves many analysts: they share one lock and one disk
write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from typing import ClassVar, Self

from lapwing.errors import LapwingError, LedgerError
from lapwing.kernel.permit import Permit, issue, new_nonce
from lapwing.ledger import limits
from lapwing.ledger.postgres import rows
from lapwing.ledger.postgres.blocks import charged_text, require_request
from lapwing.ledger.postgres.outcomes import refusal
from lapwing.ledger.protocol import Request, StoredAnswer
from lapwing.ledger.purchases import stored_text

REQUESTS_MAX = 256
"""Most requests in one statement; others wait for the data set meanwhile."""

COMMIT_STATEMENT = (
    "CALL lapwing.commit_many_durably(%s, %s, %s::pg_catalog.text[], %s::pg_catalog.int8[], %s::pg_catalog.text[],"
    " %s::pg_catalog.numeric[], %s::pg_catalog.numeric[], %s::pg_catalog.numeric[], %b::pg_catalog.bytea[], NULL, NULL)"
)
"""Stores several answers; may be sent again after a lost reply, because the nonce of its charge identifies each answer."""

Result = Permit | StoredAnswer | LapwingError
"""The outcome of one request; an error is what ``reserve`` would have raised."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Requests, each with a nonce, so that the statement may be sent again after a lost reply."""

    STATEMENT: ClassVar[str] = (
        "CALL lapwing.reserve_many_durably(%s, %s, %s::pg_catalog.text[], %s::pg_catalog.text[], %s::pg_catalog.text[],"
        " %s::pg_catalog.text[], %s::pg_catalog.int8[], %s::pg_catalog.text[], %s::pg_catalog.numeric[], %s::pg_catalog.numeric[],"
        " %s::pg_catalog.numeric[], %s::pg_catalog.int8, %s, %s::pg_catalog.text[], NULL, NULL, NULL, NULL, NULL, %s::pg_catalog.text[])"
    )
    requests: tuple[Request, ...]
    nonces: tuple[str, ...]

    @classmethod
    def of(cls, requests: Sequence[Request]) -> Self:
        """Pre: at least one request, at most ``REQUESTS_MAX``, each within the limits of a single one."""
        if not 1 <= len(requests) <= REQUESTS_MAX:
            raise LedgerError("batch-size", f"between 1 and {REQUESTS_MAX} requests can be reserved together")
        for request in requests:
            require_request(request)
        return cls(tuple(requests), tuple(new_nonce() for _ in requests))

    @property
    def columns(self) -> list[list[object]]:
        """The parameters of the statement that describe the requests."""
        asked = [
            (nonce, one.analyst, one.request_id, one.digest, one.version, one.summary, *astuple(one.cost))
            for nonce, one in zip(self.nonces, self.requests, strict=True)
        ]
        return [list(column) for column in zip(*asked, strict=True)]

    @property
    def purchases(self) -> list[str | None]:
        """The purchase record of each request."""
        return [stored_text(one.purchase) for one in self.requests]

    @property
    def blocks(self) -> list[str | None]:
        """What blocks of time pay for each request; None of those that only tables without time pay."""
        return [charged_text(one) for one in self.requests]

    def permits(self, charge_ids: Sequence[int]) -> tuple[Permit, ...]:
        """The permits for the charges that were made. Pre: their state is anchored."""
        asked = zip(charge_ids, self.requests, self.nonces, strict=True)
        return tuple(issue(charge_id, one.digest, one.cost, nonce=nonce, ranges=one.ranges) for charge_id, one, nonce in asked)

    def results(
        self,
        outcomes: Sequence[str],
        charge_ids: Sequence[int],
        payloads: Sequence[bytes | None] | None,
        payload_digests: Sequence[str | None] | None,
        *,
        alone: Callable[[Request, str], Permit | StoredAnswer],
    ) -> tuple[Result, ...]:
        """The decisions of the statement. ``alone`` reserves again each request whose worker had ended, as a new worker."""
        results: list[Result] = []
        for place, (request, nonce, outcome) in enumerate(zip(self.requests, self.nonces, outcomes, strict=True)):
            try:
                match outcome:
                    case "permit":
                        results.append(issue(charge_ids[place], request.digest, request.cost, nonce=nonce, ranges=request.ranges))
                    case "stored":
                        assert payloads is not None and payload_digests is not None
                        results.append(rows.answer_of(charge_ids[place], payloads[place], payload_digests[place]))
                    case "worker-ended":
                        results.append(alone(request, nonce))
                    case _:
                        raise refusal(outcome, analyst=request.analyst)
            except LapwingError as error:
                results.append(error)
        return tuple(results)


def commit_columns(answers: Sequence[tuple[Permit, bytes]]) -> list[list[object]]:
    """The parameters of ``COMMIT_STATEMENT`` that describe the answers; ``batch-size`` for none, or more than ``REQUESTS_MAX``."""
    if not 1 <= len(answers) <= REQUESTS_MAX:
        raise LedgerError("batch-size", f"between 1 and {REQUESTS_MAX} answers can be stored together")
    for _, payload in answers:
        limits.require_payload(payload)
    stored = [(permit.nonce, permit.charge_id, permit.digest, *astuple(permit.cost), payload) for permit, payload in answers]
    return [list(column) for column in zip(*stored, strict=True)]
