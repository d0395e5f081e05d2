"""Proof that a charge is durable.

Only a ledger makes permits, after the reservation is on disk; ``release`` draws no noise without one, and takes each one once.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from lapwing.kernel.accounting import Cost


@dataclass(frozen=True, slots=True)
class Permit:
    """A durable reservation of ``cost`` for the plan with this ``digest``."""

    charge_id: int
    digest: str
    cost: Cost
    nonce: str = field(default_factory=lambda: secrets.token_hex(16))
    """Tells one reservation from every other, of this ledger and of others."""
