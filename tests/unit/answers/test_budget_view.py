"""What a budget shows of an account with an order."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lapwing.answers.display.budget import epsilon_of_all, epsilon_of_loss
from lapwing.kernel.accounting import LOSS_UNITS, Budget, Cost, budget_for, rho_at_order

BUDGET = budget_for(epsilon=Fraction(1), delta=Fraction(1, 10**8), order=32)


def shown(spent: Cost, budget: Budget = BUDGET) -> float:
    return epsilon_of_all(budget, spent)


@pytest.mark.parametrize("share", [Fraction(1, 100), Fraction(1, 2), Fraction(1)])
def test_what_is_spent_without_a_pure_amount_is_converted_at_the_order_of_the_account(share: Fraction) -> None:
    """Of what is known at one order, no other order may be used: the epsilon shown pays, at that order, for what was spent."""
    loss = int(BUDGET.loss_total * share)
    epsilon = Fraction(shown(Cost(loss=loss, delta=0))) + Fraction(1, 10**9)
    assert rho_at_order(32, epsilon=epsilon, delta=BUDGET.delta_conversion) * LOSS_UNITS >= loss
    assert shown(Cost(loss=loss, delta=0)) >= epsilon_of_loss(BUDGET, loss) - 1e-9  # the best order, which is right for zCDP alone


def test_all_of_the_budget_is_its_epsilon_and_nothing_is_nothing() -> None:
    assert shown(Cost(loss=BUDGET.loss_total, delta=0)) == pytest.approx(1)
    assert shown(Cost.zero()) == 0
    assert shown(Cost(loss=5 * BUDGET.loss_total, delta=0, pure=LOSS_UNITS // 4)) == 0.25
    assert shown(Cost(loss=BUDGET.loss_total, delta=0, pure=5 * LOSS_UNITS)) == pytest.approx(1)


def test_an_account_without_an_order_shows_what_it_showed() -> None:
    budget = budget_for(epsilon=Fraction(1), delta=Fraction(1, 10**8))
    spent = Cost(loss=budget.loss_total // 3, delta=0)
    assert shown(spent, budget) == epsilon_of_loss(budget, spent.loss)
