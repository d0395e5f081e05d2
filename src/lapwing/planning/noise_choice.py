"""Laplace or Gaussian noise: the choice for each statement of an account that is a union of a pure and a Rényi filter.

Such an account has two sides, and every charge counts on both. A statement with Laplace noise alone has a finite epsilon; one with Gaussian
noise, or one that discovers keys, has none and closes the pure side for good. A price is a share of the account: the Gaussian plan takes
that share of the rho, the Laplace plan the same share of the epsilon. For one count at (1, 10^-8) Laplace noise is smaller while the share
is above about 1/15. Statements with groups are bounded by norms with Gaussian noise only, and then use it: by measurement, the other choice
is up to eight times worse. Public facts and charges decide, never a value from the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from lapwing.errors import Refused
from lapwing.kernel.accounting import LOSS_UNITS, Account, Budget, Cost, admits
from lapwing.kernel.certify import certify
from lapwing.kernel.facts import Facts
from lapwing.planning.planned import PlannedStatement, Price
from lapwing.spread import variance

CLOSING_MAX = Fraction(1, 20)
"""Gaussian noise is not chosen if closing the pure side would lose more of the account than this."""

PlanWith = Callable[[Facts, Price], PlannedStatement]
"""Plans a statement over these facts at this price."""


def with_better_noise(
    plan: PlanWith, facts: Facts, price: Price, *, scale: Budget, budget: Budget, spent: Cost, was_bought: Callable[[str], bool]
) -> PlannedStatement:
    """The plan with the better noise for this price; the other one if only that can still be paid.

    ``budget`` is the amount that may be spent; ``scale``, which does not change when the budget is raised, defines shares of the account.
    ``was_bought`` tells from a digest whether its plan was answered before: such a plan is chosen, because it is free.
    """
    gaussian = plan(facts, price)
    if budget.order is None or gaussian.measured is None or gaussian.discovers_keys:
        return gaussian
    laplace = _laplace(plan, facts, pure_share(scale, price.loss))
    if laplace is None or was_bought(gaussian.certified.digest):
        return gaussian
    if was_bought(laplace.certified.digest):
        return laplace
    if not _within_pure(budget, spent, laplace.certified.cost):
        return gaussian
    if not admits(budget, spent=spent, cost=gaussian.certified.cost):
        return laplace
    if _lost_by_closing(budget, spent) > CLOSING_MAX:
        return laplace
    if gaussian.wanted and not laplace.wanted:
        return gaussian  # its bounds will come from norms: predictions without them are not informative
    return gaussian if relative_error(gaussian, laplace) < 1 else laplace


def pure_share(budget: Budget, loss: Fraction) -> Fraction:
    """The epsilon that is the same share of the account as this loss, in whole ledger units; at least one."""
    units = math.floor(loss * LOSS_UNITS * (budget.pure_total or 0) / budget.loss_total)
    return Fraction(max(units, 1), LOSS_UNITS)


def loss_of_price(budget: Budget, cost: Cost) -> int:
    """The loss, in ledger units, of the price that a plan of this cost was made for: the charge of a Laplace plan differs."""
    if budget.pure_total is None or cost.pure is None:
        return cost.loss
    return -(-cost.pure * budget.loss_total // budget.pure_total)


def pure_facts(facts: Facts) -> Facts:
    """The same facts for planning with Laplace noise alone."""
    return replace(facts, account=Account.PURE, order=None)


def _laplace(plan: PlanWith, facts: Facts, epsilon: Fraction) -> PlannedStatement | None:
    """The plan with Laplace noise, certified in the account's own terms; None if there is none."""
    try:
        planned = plan(pure_facts(facts), Price(epsilon, Fraction(0)))
    except Refused:
        return None
    return replace(planned, measured=certify(planned.certified.plan, facts), facts=facts)


def _lost_by_closing(budget: Budget, spent: Cost) -> Fraction:
    """The loss of remaining account by closing its pure side, as a share of the whole."""
    if budget.pure_total is None or spent.pure is None:
        return Fraction(0)
    return Fraction(spent.loss, budget.loss_total) - Fraction(spent.pure, budget.pure_total)


def _within_pure(budget: Budget, spent: Cost, cost: Cost) -> bool:
    pure = (spent + cost).pure
    return pure is not None and budget.pure_total is not None and pure <= budget.pure_total


def relative_error(first: PlannedStatement, second: PlannedStatement) -> float:
    """The ratio of the geometric means of the plans' predicted errors: the two may measure different vectors."""
    ours, theirs = ([math.log(error) for error in _errors(planned)] for planned in (first, second))
    return math.exp(sum(ours) / len(ours) - sum(theirs) / len(theirs))


def _errors(planned: PlannedStatement) -> list[float]:
    """Noise of each vector and set of quantiles, combined with the predicted loss of the bound."""
    errors: list[float] = []
    for part in planned.parts_and_totals:
        if part.number is None:
            continue
        query, choice = planned.certified.queries[part.number], part.choice
        bias = math.hypot(1, choice.truncation / choice.noise) if choice.noise else 1.0
        errors += [math.sqrt(variance(item.vector.law)) * float(item.step) * bias for item in query.vectors]
        errors += [float(item.quantiles.scale) * bias for item in query.quantiles]
    return errors
