"""Running a mechanism once, for what was charged.

It takes no permit, so nothing that answers a statement may import it (an import contract says so): it is for lessons, for audits, and for
data that no ledger protects.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeAlias, assert_never, overload

from lapwing.errors import LapwingError
from lapwing.kernel.accounting import LOSS_UNITS, Account, Cost
from lapwing.kernel.mechanisms.additive import GaussianMechanism, Integers, LaplaceMechanism, clamped, require_integers
from lapwing.kernel.mechanisms.response import Answers, RandomisedResponse
from lapwing.kernel.mechanisms.shape import Event
from lapwing.kernel.noise.additive import add_noise
from lapwing.kernel.noise.response import respond

Additive: TypeAlias = LaplaceMechanism | GaussianMechanism
Drawable: TypeAlias = Additive | RandomisedResponse
"""Every mechanism that can be run."""


def require_paid(event: Event, account: Account, charged: Cost) -> None:
    """Stop (code ``noise-undercharged``) a run that costs more than was charged for it."""
    cost = event.cost(account)
    if cost.loss > charged.loss or cost.delta > charged.delta:
        raise LapwingError("noise-undercharged", "the noise would cost more than was charged for it")


@overload
def draw(mechanism: Additive | RandomisedResponse, value: int, *, account: Account, charged: Cost) -> int: ...
@overload
def draw(mechanism: Additive | RandomisedResponse, value: tuple[int, ...], *, account: Account, charged: Cost) -> tuple[int, ...]: ...
def draw(mechanism: Drawable, value: Any, *, account: Account, charged: Cost) -> Any:
    """One run of the mechanism on this value: an output drawn from ``mechanism.law`` of that value, at the mechanism's own scale.

    Pre: neighbours move the value by no more than the mechanism's sensitivities say, and ``charged`` is already in the ledger (or there is
    none). A run that costs more than ``charged`` is stopped with ``noise-undercharged`` before anything is drawn.
    """
    require_paid(mechanism.event(), account, charged)
    match mechanism:
        case LaplaceMechanism():
            return clamped(_with_noise(mechanism, value, account=account, charged=charged), mechanism.clamp)
        case GaussianMechanism():
            return _with_noise(mechanism, value, account=account, charged=charged)
        case RandomisedResponse():
            return _responded(mechanism, value)
        case never:
            assert_never(never)


def _with_noise(mechanism: Additive, value: Integers, *, account: Account, charged: Cost) -> Any:
    # The price of Laplace noise depends on l1 alone, that of Gaussian noise on l2 alone.
    l1, l2_squared = (mechanism.l1, 0) if isinstance(mechanism, LaplaceMechanism) else (0, mechanism.l2_squared)
    amount = Fraction(charged.loss, LOSS_UNITS)
    noisy = add_noise(mechanism.noise(), require_integers(value), account=account, l1=l1, l2_squared=l2_squared, charged=amount)
    return tuple(noisy) if isinstance(value, tuple) else noisy[0]


def _responded(mechanism: RandomisedResponse, value: Answers) -> Answers:
    # On either account the sampler's map is held against the event's epsilon, from which rho was derived.
    epsilon = mechanism.event().epsilon or Fraction(0)
    answers = mechanism.require_answers(value)
    said = respond(answers, categories=mechanism.categories, truth=mechanism.truth, epsilon_charged=epsilon)
    return tuple(said) if isinstance(value, tuple) else said[0]
