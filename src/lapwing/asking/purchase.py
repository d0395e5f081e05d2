"""What is bought for a statement, and what was charged before it."""

from __future__ import annotations

from dataclasses import dataclass, field

from lapwing.curator.charged_release import ChargedRelease
from lapwing.kernel.accounting import Cost
from lapwing.planning.planned import PlannedStatement


@dataclass(frozen=True, slots=True)
class PriorCharge:
    """What was asked before a statement and belongs to it: what it cost, and what should be said about it."""

    cost: Cost = field(default_factory=Cost.zero)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Purchase:
    """A release, None where nothing had to be measured, with its plan and all that was charged for it."""

    planned: PlannedStatement
    answered: ChargedRelease | None
    cost: Cost
    notes: tuple[str, ...] = ()
