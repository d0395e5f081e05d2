"""Proof that a charge is durable.

Only a ledger makes permits, after the reservation is on disk; ``release`` draws no noise without one, and takes each one once.
"""

from __future__ import annotations

from dataclasses import dataclass

from lapwing.kernel.accounting import Cost


@dataclass(frozen=True, slots=True)
class Permit:
    """A durable reservation of ``cost`` for the plan with this ``digest``."""

    charge_id: int
    digest: str
    cost: Cost
