"""The one shape of a mechanism, and the event that says what a run of it costs.

A mechanism is a frozen record of *public* parameters. It never holds data: the exact value (scores, counts, one person's answer) is an
argument. All inputs are integers, so every law but the Gaussian's is a rational function of one number, ``decay = exp(-1 / scale)``. The
law can therefore be evaluated exactly at any rational decay, which is the law of the same mechanism at the scale ``1 / ln(1 / decay)``.
That is what lets :mod:`lapwing.theory` verify epsilon to the last digit: ``exp(epsilon)`` is a power of the decay.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, TypeVar, assert_never

from lapwing.errors import LapwingError, Refused
from lapwing.kernel.accounting import Account, Cost, charge_delta, charge_loss
from lapwing.kernel.numbers import require_exact

Value_contra = TypeVar("Value_contra", contravariant=True)
Output = TypeVar("Output", bound=Hashable)


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

    def cost(self, account: Account) -> Cost:
        """The charge in ledger units, rounded up."""
        return Cost(loss=charge_loss(self.loss(account)), delta=charge_delta(self.delta))


class Mechanism(Protocol[Value_contra, Output]):
    """What every mechanism can say of itself, without data or with data the caller holds. Implementations are frozen records."""

    def event(self) -> Event:
        """What one run costs."""
        ...

    def law(self, value: Value_contra, *, decay: Fraction) -> Mapping[Output, Fraction]:
        """The exact law of the output on this input, were ``exp(-1 / scale)`` equal to ``decay``; probabilities are positive and sum to 1.

        Mechanisms with infinitely many outputs need their output clamped for this, and say so in their parameters.
        """
        ...

    def odds(self, *, decay: Fraction) -> Fraction:
        """The claimed ``exp(epsilon)`` at this decay, exactly."""
        ...

    def error(self, *, confidence: Fraction) -> int:
        """A bound on the error (documented by each mechanism: distance of a value, or loss of score) that holds with this confidence."""
        ...


def require_decay(decay: Fraction) -> None:
    """Stop (code ``decay-invalid``) what is not ``exp(-1 / scale)`` for any scale: laws are evaluated at fractions between 0 and 1."""
    # type() and not isinstance(): a float would make the law a float, and a comparison of laws a comparison of floats
    if type(decay) is not Fraction or not 0 < decay < 1:
        raise LapwingError("decay-invalid", "a decay is a fraction above 0 and below 1")


def require_confidence(confidence: Fraction) -> None:
    """Stop (code ``confidence-invalid``) what is not a probability strictly between 0 and 1."""
    require_exact(confidence)
    if not 0 < confidence < 1:
        raise Refused("confidence-invalid", "a confidence must be above 0 and below 1")
