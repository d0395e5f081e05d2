"""What a charge costs, what a budget holds, and whether the budget covers the charge.

A *pure* data set (delta = 0) is charged in epsilon. An *approximate* one is charged in rho (zero-concentrated differential privacy) and,
for keys that are not public, in delta. An approximate one with a Rényi *order* is a union of two filters: it is also charged in epsilon
where a statement is pure, its rho is the Rényi divergence at that order divided by the order, and a charge is admitted while the sum of
epsilons **or** the sum of rhos is within its total. Both sums count every charge.

Amounts in the ledger are integers: ``LOSS_UNITS`` per 1 of rho or epsilon, ``DELTA_UNITS`` per 1 of delta. Charges round up, budgets round
down, and sums of integers are exact, so what was spent is never above what was granted.

The guarantee: if every charge is fixed from the past before the data is read, and each is admitted by :func:`admits`, the whole
interaction is (epsilon, delta)-differentially private for the epsilon and delta that :func:`budget_for` was given.

Proofs: ``docs/proofs/accounting.md`` and, with an order, ``docs/proofs/union-of-filters.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache

from lapwing.errors import CatalogueError, LapwingError
from lapwing.kernel.numbers import EXP_ARGUMENT_MAX, ceil_div, exp_lower, exp_upper, ln_lower, ln_upper, require_exact

LOSS_UNITS = 10**15
"""Ledger units per 1 of rho (approximate data set) or epsilon (pure data set)."""

DELTA_UNITS = 10**30
"""Ledger units per 1 of delta."""

EPSILON_MAX = 10**9
"""Largest epsilon of a budget or a statement."""

ORDER_MAX = 10**6
"""Largest Rényi order of an account; the least is 2."""

GRID = 10**40
"""Converted values are multiples of 1/GRID, rounded against us, so that fractions stay short."""

_LOG_EXCESS_MAX = 80.0
"""Search range of the order: ln(a - 1) between minus and plus this. Outside it the bound is valid too, only never best."""

_INVERSE_GOLDEN_RATIO = (math.sqrt(5.0) - 1.0) / 2.0


class Account(Enum):
    """How a data set is charged."""

    PURE = "pure"
    """In epsilon; delta is 0."""

    APPROXIMATE = "approximate"
    """In rho, and in delta for keys that are not public."""


@dataclass(frozen=True, slots=True)
class Cost:
    """A charge, in ledger units. All amounts are non-negative integers; costs add exactly."""

    loss: int
    delta: int
    pure: int | None = None
    """The cost in pure epsilon, where the account has an order. None means unbounded: more than any budget holds."""

    def __post_init__(self) -> None:
        amounts = (self.loss, self.delta, 0 if self.pure is None else self.pure)
        if any(type(amount) is not int or amount < 0 for amount in amounts):
            raise LapwingError("cost-invalid", "the amounts of a cost are integers that are not negative")
        if amounts == (0, 0, 0):
            object.__setattr__(self, "pure", 0)  # without loss and delta the two laws are equal

    def __add__(self, other: Cost) -> Cost:
        pure = None if self.pure is None or other.pure is None else self.pure + other.pure
        return Cost(loss=self.loss + other.loss, delta=self.delta + other.delta, pure=pure)

    def covers(self, other: Cost) -> bool:
        """Whether every amount of ``other`` is at most this one's."""
        pure = self.pure is None or (other.pure is not None and other.pure <= self.pure)
        return other.loss <= self.loss and other.delta <= self.delta and pure

    @staticmethod
    def zero() -> Cost:
        """The zero cost."""
        return Cost(loss=0, delta=0, pure=0)


@dataclass(frozen=True, slots=True)
class Budget:
    """What a data set may spend in its whole life. Made only by :func:`budget_for`, which derives the totals from the promise."""

    account: Account
    epsilon: Fraction
    delta: Fraction
    delta_conversion: Fraction
    """Part of delta that turns rho into epsilon."""
    delta_keys: Fraction
    """Part of delta that statements may spend on keys that are not public."""
    loss_total: int
    """rho (approximate) or epsilon (pure), in ledger units, rounded down."""
    delta_total: int
    """``delta_keys`` in ledger units, rounded down."""
    order: int | None = None
    """The Rényi order of a union of filters; None for an account that adds up one loss."""
    pure_total: int | None = None
    """With an order: epsilon in ledger units, rounded down."""


def budget_for(*, epsilon: Fraction, delta: Fraction, delta_keys_share: Fraction = Fraction(1, 2), order: int | None = None) -> Budget:
    """The budget whose full use is (epsilon, delta)-differentially private.

    ``delta_keys_share`` is the part of delta set aside for keys that are not public; the rest converts rho into epsilon. With an ``order``
    the account is a union of filters. Refuses with ``budget-invalid`` what is not a budget, and what is too small to pay for anything.
    """
    require_exact(epsilon, delta, delta_keys_share)
    epsilon, delta, delta_keys_share = Fraction(epsilon), Fraction(delta), Fraction(delta_keys_share)
    _require_parameters(epsilon=epsilon, delta=delta)
    if not 0 <= delta_keys_share < 1:
        raise CatalogueError("budget-invalid", "the share of delta for keys must be at least 0 and below 1")
    if order is not None and (not delta or type(order) is not int or not 2 <= order <= ORDER_MAX):
        message = f"an order is a whole number from 2 to {ORDER_MAX}, of a budget with a delta above 0"
        raise CatalogueError("budget-invalid", message)
    delta_keys = delta * delta_keys_share
    delta_conversion = delta - delta_keys
    if order is not None:
        loss = rho_at_order(order, epsilon=epsilon, delta=delta_conversion)
    else:
        loss = rho_for(epsilon=epsilon, delta=delta_conversion) if delta else epsilon
    budget = Budget(
        account=Account.APPROXIMATE if delta else Account.PURE,
        epsilon=epsilon,
        delta=delta,
        delta_conversion=delta_conversion,
        delta_keys=delta_keys,
        loss_total=math.floor(loss * LOSS_UNITS),
        delta_total=math.floor(delta_keys * DELTA_UNITS),
        order=order,
        pure_total=None if order is None else math.floor(epsilon * LOSS_UNITS),
    )
    if budget.loss_total == 0:
        hint = "raise epsilon or delta" if order is None else "raise epsilon, delta or the order"
        raise CatalogueError("budget-invalid", "the budget is smaller than one ledger unit", hint=hint)
    return budget


def charge_loss(amount: Fraction) -> int:
    """A loss (rho or epsilon) in ledger units, rounded up."""
    return _charge(amount, LOSS_UNITS)


def charge_delta(amount: Fraction) -> int:
    """A delta in ledger units, rounded up."""
    return _charge(amount, DELTA_UNITS)


def admits(budget: Budget, *, spent: Cost, cost: Cost) -> bool:
    """Whether ``cost`` may be charged after ``spent``: neither total is exceeded, not even by one unit.

    With an order it is enough that the loss or the pure epsilon, of all charges together, is within its total.
    """
    total = spent + cost
    within_loss = total.loss <= budget.loss_total
    within_pure = budget.pure_total is not None and total.pure is not None and total.pure <= budget.pure_total
    return (within_loss or within_pure) and total.delta <= budget.delta_total


def left_of(budget: Budget, spent: Cost) -> Cost:
    """What remains of each amount of a budget; nothing of the pure amount once its spending is unbounded."""
    pure = None if budget.pure_total is None else 0 if spent.pure is None else max(0, budget.pure_total - spent.pure)
    return Cost(loss=max(0, budget.loss_total - spent.loss), delta=max(0, budget.delta_total - spent.delta), pure=pure)


def rho_for(*, epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho, rounded down, for which rho-zCDP implies (epsilon, delta)-differential privacy.

    By Canonne, Kamath and Steinke (2020) it does as soon as, for some order a > 1,
    ``exp((a-1)(a rho - epsilon)) (1 - 1/a)**a / (a-1) <= delta``. Any order is sound: a float search chooses it, then the rho it allows is
    computed with directed rounding. Refuses (``budget-invalid``) unless ``epsilon > 0`` and ``0 < delta < 1``.
    """
    require_exact(epsilon, delta)
    return _rho_for(Fraction(epsilon), Fraction(delta))


def rho_at_order(order: int, *, epsilon: Fraction, delta: Fraction) -> Fraction:
    """At most the r for which a Rényi divergence of ``order * r`` at this order, in both directions, implies (epsilon, delta)-privacy.

    The formula of :func:`rho_for` at one order. Rounded down, and at least 0.
    """
    require_exact(epsilon, delta)
    slack = slack_lower(Fraction(order - 1), ln_lower(Fraction(delta)))
    return max(Fraction(0), Fraction(math.floor((epsilon + slack) / order * GRID), GRID))


def pure_at_order(order: int, epsilon: Fraction) -> Fraction:
    """At least the Rényi divergence at this order, divided by the order, of any two laws whose densities differ by at most ``e**epsilon``.

    The greatest is that of randomised response, ``ln((e^(a epsilon) + e^((1-a) epsilon)) / (1 + e^epsilon)) / (a - 1)`` for the order a;
    it is never above epsilon, nor above ``a epsilon^2 / 2``.
    """
    require_exact(epsilon)
    return _pure_at_order(order, Fraction(epsilon))


@lru_cache(maxsize=4096)
def _pure_at_order(order: int, epsilon: Fraction) -> Fraction:
    simple = min(epsilon / order, epsilon**2 / 2)
    if order * epsilon > EXP_ARGUMENT_MAX:
        return simple
    moment = (exp_upper(order * epsilon) + exp_upper((1 - order) * epsilon)) / (1 + exp_lower(epsilon))
    divergence = ln_upper(moment) / (order - 1)
    return min(simple, Fraction(math.ceil(divergence / order * GRID), GRID))


def _require_parameters(*, epsilon: Fraction, delta: Fraction) -> None:
    if not 0 < epsilon <= EPSILON_MAX:
        raise CatalogueError("budget-invalid", f"epsilon must be above 0 and at most {EPSILON_MAX}")
    if not 0 <= delta < 1:
        raise CatalogueError("budget-invalid", "delta must be at least 0 and below 1")


def _charge(amount: Fraction, units: int) -> int:
    require_exact(amount)
    if amount < 0:
        raise LapwingError("cost-invalid", "a charge is not negative")
    exact = Fraction(amount) * units
    return ceil_div(exact.numerator, exact.denominator)


def slack_lower(excess: Fraction, ln_delta: Fraction) -> Fraction:
    """At most ``(ln delta + ln(a-1) - a ln(1 - 1/a)) / (a-1)``, for a = 1 + excess.

    Written with b = a - 1 it is ``ln(1 + 1/b) + (ln delta + ln(1 + b)) / b``: three logarithms, each to be bounded from below.
    """
    return ln_lower(1 + 1 / excess) + (ln_delta + ln_lower(1 + excess)) / excess


def slack(excess: float, ln_delta: float) -> float:
    """The same in floats; it only chooses the order."""
    return math.log1p(1.0 / excess) + (ln_delta + math.log1p(excess)) / excess


def best_excess(objective: Callable[[float], float]) -> float:
    """Near the a - 1 > 0 at which a quasi-concave objective is greatest: golden section on ln(a - 1)."""
    low, high = -_LOG_EXCESS_MAX, _LOG_EXCESS_MAX
    left = high - _INVERSE_GOLDEN_RATIO * (high - low)
    right = low + _INVERSE_GOLDEN_RATIO * (high - low)
    at_left, at_right = objective(math.exp(left)), objective(math.exp(right))
    while high - low > 1e-9:
        if at_left < at_right:
            low, left, at_left = left, right, at_right
            right = low + _INVERSE_GOLDEN_RATIO * (high - low)
            at_right = objective(math.exp(right))
        else:
            high, right, at_right = right, left, at_left
            left = high - _INVERSE_GOLDEN_RATIO * (high - low)
            at_left = objective(math.exp(left))
    return math.exp((low + high) / 2.0)


def polished(excess: float, *, rho: float, ln_delta: float) -> Fraction:
    """The order again, from about 8 correct digits to about 15, so that the bound has about 30; exact to the ledger unit.

    The bound is flat at its best order, which limits any comparison of its values; its derivative vanishes where
    ``rho b^2 + ln delta + ln(1 + b) = 0``, and Newton's method finds that point. A step that increases the distance is rejected.
    """
    polished = excess
    for _ in range(3):
        value = rho * polished**2 + ln_delta + math.log1p(polished)
        polished -= value / (2.0 * rho * polished + 1.0 / (1.0 + polished))
        if not abs(polished - excess) < 1e-4 * excess:
            return Fraction(excess)
    return Fraction(polished)


@lru_cache(maxsize=4096)
def _rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    _require_parameters(epsilon=epsilon, delta=delta)
    if delta == 0:
        raise CatalogueError("budget-invalid", "a budget without delta is charged in epsilon, not in rho")
    ln_delta = ln_lower(delta)
    epsilon_float, ln_delta_float = float(epsilon), float(ln_delta)

    def rho_at(b: float) -> float:
        return (epsilon_float + slack(b, ln_delta_float)) / (1.0 + b)

    near = best_excess(rho_at)
    excess = polished(near, rho=rho_at(near), ln_delta=ln_delta_float)
    rho = (epsilon + slack_lower(excess, ln_delta)) / (1 + excess)
    return max(Fraction(0), Fraction(math.floor(rho * GRID), GRID))
