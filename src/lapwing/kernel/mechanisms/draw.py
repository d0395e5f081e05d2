"""Running a mechanism once, for what was charged.

It takes no permit, so nothing that answers a statement may import it (an import contract says so): it is for lessons, for audits, and for
data that no ledger protects.
"""

from __future__ import annotations

from lapwing.errors import LapwingError
from lapwing.kernel.accounting import Account, Cost
from lapwing.kernel.mechanisms.shape import Event


def require_paid(event: Event, account: Account, charged: Cost) -> None:
    """Stop (code ``noise-undercharged``) a run that costs more than was charged for it."""
    cost = event.cost(account)
    if cost.loss > charged.loss or cost.delta > charged.delta:
        raise LapwingError("noise-undercharged", "the noise would cost more than was charged for it")
