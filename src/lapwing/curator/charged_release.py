"""From a certified plan to a stored answer: the only lines above the engines that hold exact values.

The order is fixed: certify (public facts only) -> reserve (durable) -> run -> noise -> commit (durable) -> return. A fault of the engine
after the reservation is an incident: it forfeits the charge and closes the data set. Trouble of the ledger is not: an answer that cannot be
stored is kept, unseen, until it can be (``lapwing.ledger.settling``).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from lapwing.curator.cost_estimate import Hold, noted
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
    """A release, as it is stored in the ledger and signed for."""

    released: Released
    free: bool
    """The very same plan was answered before."""
    stored: StoredAnswer


def charged_release(
    certified: Certified, request: Request, *, ledger: Ledger, snapshot: Snapshot, settling: PendingCommits, sampler: Sampler, hold: Hold
) -> ChargedRelease:
    """Charge for a plan and answer it; or what the ledger stored for the same request before. Pre: the request is for this plan.

    Nobody hears what came of it, the ledger included, before ``hold`` comes back.
    """
    permit = ledger.reserve(request)
    noted(permit.charge_id)
    if isinstance(permit, StoredAnswer):
        return replayed(permit)
    try:
        released = release(certified, permit, snapshot.run(certified), sampler=sampler)
        payload = encode(released)
    except Exception as error:
        # Whatever fails here fails after rows were read, so it may depend on them: an incident, not an ordinary error.
        hold()
        settling.incident(ledger, permit)
        if isinstance(error, Incident):
            raise
        raise Incident() from None  # which fault it was may depend on rows too: all of them have one name
    except BaseException:  # the process is being stopped from outside
        with contextlib.suppress(LedgerError):
            ledger.forfeit(permit, incident=False)
        raise
    hold()
    return ChargedRelease(released, False, settling.store(ledger, request, permit, payload))


def replayed(stored: StoredAnswer) -> ChargedRelease:
    """What was released before, from the bytes that the ledger keeps."""
    return ChargedRelease(decode(stored.payload), True, stored)
