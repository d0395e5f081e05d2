"""Amounts of budget as people write them, exact: ``0.5`` and ``epsilon 0.5`` are an epsilon, ``rho 0.01`` a rho, ``10%`` a share of the
whole budget, ``none`` is no limit."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from lapwing.interfaces.cli.exits import usage_error

if TYPE_CHECKING:
    from lapwing.kernel.accounting import Budget
    from lapwing.owner.policies import LossLimit

NO_LIMIT = "none"
FORMS = "an epsilon such as 0.5, 'rho 0.01', or 10% of the budget"
"""How an amount may be written, for help texts."""


def loss_amount(text: str, budget: Budget, *, option: str) -> LossLimit:
    """The limit on the loss, in ledger units, rounded down. An epsilon covers everything that it pays for together, and in an account
    with an order it limits both sides; a rho limits the loss alone.
    """
    from lapwing.kernel.accounting import LOSS_UNITS, Account
    from lapwing.owner.policies import LossLimit, limit_of_share
    from lapwing.prices import statement_loss

    match text.replace("=", " ").lower().split():
        case [percent] if percent.endswith("%"):
            share = _number(percent[:-1], option) / 100
            if share > 1:
                raise usage_error(f"{option} can be 100% at most")
            return limit_of_share(budget, share)
        case [number] | ["epsilon", number]:
            epsilon = _number(number, option)
            loss = math.floor(statement_loss(budget, epsilon) * LOSS_UNITS) if epsilon else 0
            return LossLimit(loss, None if budget.order is None else math.floor(epsilon * LOSS_UNITS))
        case ["rho", number] if budget.account is Account.APPROXIMATE:
            return LossLimit(math.floor(_number(number, option) * LOSS_UNITS))
        case ["rho", _]:
            raise usage_error(f"{option}: this data set has no delta and is charged in epsilon")
        case _:
            raise usage_error(f"{option} must be {FORMS}")


def loss_limit(text: str | None, budget: Budget, *, option: str, otherwise: LossLimit) -> LossLimit:
    """A limit: ``otherwise`` without the option, no limit for ``none``."""
    from lapwing.owner.policies import LossLimit

    if text is None:
        return otherwise
    return LossLimit() if text.strip().lower() == NO_LIMIT else loss_amount(text, budget, option=option)


def delta_limit(text: str | None, *, otherwise: int | None) -> int | None:
    """The same for the delta of partition selection; rounded down."""
    from lapwing.kernel.accounting import DELTA_UNITS

    if text is None:
        return otherwise
    return None if text.strip().lower() == NO_LIMIT else math.floor(_number(text, "--delta") * DELTA_UNITS)


def epsilon_of(text: str, *, option: str) -> Fraction:
    """An epsilon above 0."""
    epsilon = _number(text, option)
    if not epsilon:
        raise usage_error(f"{option} must be above 0")
    return epsilon


def _number(text: str, option: str) -> Fraction:
    from lapwing.catalog.exact import read_exact

    number = read_exact(text)
    if number is None or number < 0:
        raise usage_error(f"{option} must hold a number that is not negative")
    return number
