"""From an epsilon to the loss that a statement may use and back, and from a loss to the noise that it buys. For planning and views.

The gate does not use it: ``certify`` computes the cost of noise itself, so a mistake here makes an answer more expensive or a plan refused.

Proofs: ``docs/proofs/accounting.md``, ``docs/proofs/discrete-laplace.md`` and ``docs/proofs/discrete-gaussian.md``.
"""

from __future__ import annotations

import math
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import assert_never

from lapwing.errors import CatalogueError, Refused
from lapwing.kernel.accounting import (
    EPSILON_MAX,
    GRID,
    LOSS_UNITS,
    ORDER_MAX,
    Account,
    Budget,
    best_excess,
    polished,
    rho_at_order,
    rho_for,
    slack,
    slack_lower,
)
from lapwing.kernel.laws import (
    LOSS_MARGIN,
    SCALE_MAX,
    SCALE_MIN,
    DiscreteGaussian,
    DiscreteLaplace,
    Law,
    gaussian_needs_delta,
    require_sensitivity,
)
from lapwing.kernel.numbers import float_at_least, ln_lower, require_exact, sqrt_upper


class Family(Enum):
    """Which of the two laws."""

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"


def statement_loss(budget: Budget, epsilon: Fraction) -> Fraction:
    """The loss a statement asked at this epsilon may use.

    Alone, a statement of this loss is (epsilon, delta_conversion + its delta for keys)-differentially private. Rounded down to whole
    ledger units, so that a statement asked at the whole epsilon fits the whole budget; a loss below one unit stays as it is, and its
    charge rounds up to one unit.
    """
    require_exact(epsilon)
    epsilon = Fraction(epsilon)
    if not 0 < epsilon <= EPSILON_MAX:
        raise Refused("epsilon-invalid", f"epsilon must be above 0 and at most {EPSILON_MAX}")
    match budget.account:
        case Account.PURE:
            loss = epsilon
        case Account.APPROXIMATE:
            loss = rho_for(epsilon=epsilon, delta=budget.delta_conversion)
            if budget.order is not None and epsilon <= budget.epsilon:
                loss = min(loss, Fraction(budget.loss_total, LOSS_UNITS))  # at one order the budget may hold a little less than at the best
        case never:
            assert_never(never)
    whole_units = math.floor(loss * LOSS_UNITS)
    return Fraction(whole_units, LOSS_UNITS) if whole_units else loss


def best_order(*, epsilon: Fraction, delta: Fraction) -> int:
    """The Rényi order at which an account with an order holds most rho; ``delta`` without the part that is set aside for keys.

    What an order holds rises up to the best one and falls beyond it, so the search halves the orders between.
    """
    low, high = 2, ORDER_MAX
    while low < high:
        middle = (low + high) // 2
        if rho_at_order(middle, epsilon=epsilon, delta=delta) < rho_at_order(middle + 1, epsilon=epsilon, delta=delta):
            low = middle + 1
        else:
            high = middle
    return low


def epsilon_for(*, rho: Fraction, delta: Fraction) -> Fraction:
    """The least epsilon, rounded up and at least 0, for which rho-zCDP implies (epsilon, delta)-differential privacy.

    The same formula as :func:`lapwing.kernel.accounting.rho_for`, solved for epsilon. Refuses (``budget-invalid``)
    unless ``rho >= 0`` and ``0 < delta < 1``.
    """
    require_exact(rho, delta)
    return _epsilon_for(Fraction(rho), Fraction(delta))


@lru_cache(maxsize=4096)
def _epsilon_for(rho: Fraction, delta: Fraction) -> Fraction:
    if not (rho >= 0 and 0 < delta < 1):
        raise CatalogueError("budget-invalid", "rho must be at least 0, and delta above 0 and below 1")
    if rho == 0:
        return Fraction(0)
    ln_delta = ln_lower(delta)
    rho_float, ln_delta_float = float(rho), float(ln_delta)
    near = best_excess(lambda b: slack(b, ln_delta_float) - (1.0 + b) * rho_float)
    excess = polished(near, rho=rho_float, ln_delta=ln_delta_float)
    epsilon = (1 + excess) * rho - slack_lower(excess, ln_delta)
    return max(Fraction(0), Fraction(math.ceil(epsilon * GRID), GRID))


def law_for(account: Account, *, loss: Fraction, l1: int, l2_squared: int, family: Family) -> Law:
    """The law of this family with the least scale whose cost, by :func:`lapwing.kernel.laws.loss`, is at most the loss given.

    Refuses with ``loss-invalid`` a loss that is not positive, and with ``scale-invalid`` one that needs more noise than ``SCALE_MAX``.
    """
    require_sensitivity(l1=l1, l2_squared=l2_squared)
    require_exact(loss)
    if loss <= 0:
        raise Refused("loss-invalid", "noise needs a positive loss")
    match family:
        case Family.LAPLACE:
            if account is Account.PURE:
                return DiscreteLaplace(scale_at_least(LOSS_MARGIN * l1 / loss))
            return DiscreteLaplace(scale_root_at_least(LOSS_MARGIN * l1**2 / (2 * loss)))
        case Family.GAUSSIAN:
            if account is Account.PURE:
                raise gaussian_needs_delta()
            return DiscreteGaussian(scale_root_at_least(LOSS_MARGIN * l2_squared / (2 * loss)))
        case never:
            assert_never(never)


def float_at_most(x: Fraction) -> float:
    """The greatest float that is at most ``x``; negative infinity below the least float."""
    return -float_at_least(-x)


def scale_at_least(bound: Fraction) -> Fraction:
    """The least scale that is at least ``bound``; refuses with ``scale-invalid`` a bound above ``SCALE_MAX``."""
    scale = max(float_at_least(bound), float(SCALE_MIN))
    if scale > SCALE_MAX:
        raise Refused("scale-invalid", "the loss is too small for this sensitivity: it needs noise above the largest scale")
    return Fraction(scale)


def scale_root_at_least(square_bound: Fraction) -> Fraction:
    """The least scale whose square is at least ``square_bound``.

    ``sqrt_upper`` is exact when the root is a float, and otherwise above it by less than 2^-400 of it, so no float lies between.
    """
    return scale_at_least(sqrt_upper(square_bound))
