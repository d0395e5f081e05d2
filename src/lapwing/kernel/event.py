"""The event that says what a run of a mechanism costs."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from lapwing.errors import LapwingError, Refused
from lapwing.kernel.accounting import Account, Cost, charge_delta, charge_loss, pure_at_order
from lapwing.kernel.numbers import require_exact


@dataclass(frozen=True, slots=True)
class Event:
    """What one run reveals, at most. Each bound that is not None holds on its own; all are rounded up.

    ``epsilon``: the run is (epsilon, delta)-differentially private. ``rho``: it is delta-approximate rho-zCDP. Both for the neighbours that
    the mechanism's own parameters (its sensitivities) are stated for.
    """

    epsilon: Fraction | None
    rho: Fraction | None
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        for amount in (self.epsilon, self.rho, self.delta):
            if amount is not None:
                require_exact(amount)
                if amount < 0:
                    raise LapwingError("cost-invalid", "an event's amounts are not negative")
        if self.delta >= 1:
            raise LapwingError("cost-invalid", "an event's delta is below 1")

    @staticmethod
    def pure(epsilon: Fraction) -> Event:
        """An event of epsilon-differential privacy, which is also epsilon^2/2-zCDP."""
        return Event(epsilon=epsilon, rho=epsilon**2 / 2)

    def loss(self, account: Account) -> Fraction:
        """The loss an account is charged: epsilon (pure) or rho (approximate). Refuses what the account cannot express."""
        match account:
            case Account.PURE:
                if self.epsilon is None or self.delta:
                    raise Refused("event-needs-delta", "this mechanism is never private with delta = 0")
                return self.epsilon
            case Account.APPROXIMATE:
                if self.rho is None:
                    raise Refused("event-not-concentrated", "no bound on this mechanism's rho is known")
                return self.rho
            case never:
                assert_never(never)

    def cost(self, account: Account, *, order: int | None = None) -> Cost:
        """The charge in ledger units, rounded up; for an account with an ``order`` if one is given."""
        loss, delta = self.loss(account), charge_delta(self.delta)
        if order is None or self.epsilon is None or self.delta:
            return Cost(loss=charge_loss(loss), delta=delta)
        return Cost(loss=charge_loss(min(loss, pure_at_order(order, self.epsilon))), delta=delta, pure=charge_loss(self.epsilon))
