"""From a certified plan to a stored answer: the only code above the engines that holds exact values.

The order is fixed: certify (public facts only) -> reserve (durable) -> run -> noise -> commit (durable) -> return. A fault of the engine
after the reservation is an incident: it forfeits the charge and closes the data set. A fault of the ledger is not: an answer that cannot be
stored is kept, unseen, until it can be (``lapwing.ledger.settling``).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from lapwing.curator.cost_estimate import Hold, note_reservation
from lapwing.curator.stored_tables import decode, encode
from lapwing.engines.base import Snapshot
from lapwing.errors import Incident, LedgerError
from lapwing.kernel.certify import Certified
from lapwing.kernel.laws import Sampler
from lapwing.kernel.release import Released, release
from lapwing.ledger.protocol import Ledger, Request, StoredAnswer
from lapwing.ledger.settling import PendingCommits


@dataclass(frozen=True, slots=True)
class ChargedRelease:
    """A release as the ledger stores and signs it."""

    released: Released
    free: bool
    """The same plan was answered before."""
    stored: StoredAnswer


def charged_release(
    certified: Certified, request: Request, *, ledger: Ledger, snapshot: Snapshot, settling: PendingCommits, sampler: Sampler, hold: Hold
) -> ChargedRelease:
    """Charge for a plan and answer it, or return what the ledger stored for the same request. Pre: the request is for this plan.

    The outcome is not visible to anyone, nor recorded in the ledger, before ``hold`` returns.
    """
    permit = ledger.reserve(request)
    note_reservation(permit.charge_id)
    if isinstance(permit, StoredAnswer):
        return replayed(permit)
    try:
        released = release(certified, permit, snapshot.run(certified), sampler=sampler)
        payload = encode(released)
    except Exception as error:
        # A failure here happens after rows were read, so it may depend on them: it is an incident, not an ordinary error.
        hold()
        settling.incident(ledger, permit)
        if isinstance(error, Incident):
            raise
        raise Incident() from None  # the kind of fault may depend on rows too, so all faults have one name
    except BaseException:  # the process is being stopped from outside
        with contextlib.suppress(LedgerError):
            ledger.forfeit(permit, incident=False)
        raise
    hold()
    return ChargedRelease(released, False, settling.store(ledger, request, permit, payload))


def replayed(stored: StoredAnswer) -> ChargedRelease:
    """The earlier release, decoded from the bytes in the ledger."""
    return ChargedRelease(decode(stored.payload), True, stored)
