"""The delta for keys of a statement: the share that it asks of the loss, and never more than there is."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lapwing.kernel.accounting import DELTA_UNITS, LOSS_UNITS, Budget, budget_for
from lapwing.planning.key_delta import delta_for_keys

BUDGET = budget_for(epsilon=Fraction(3), delta=Fraction(1, 10**8), delta_keys_share=Fraction(1, 2))
WHOLE = Fraction(BUDGET.loss_total, LOSS_UNITS)


@pytest.mark.parametrize("parts", [1, 2, 7, 1000])
def test_statements_that_use_up_the_loss_do_not_use_up_more_than_the_delta(parts: int) -> None:
    delta = delta_for_keys(BUDGET, WHOLE / parts) * DELTA_UNITS
    assert delta.denominator == 1
    assert BUDGET.delta_total - parts < parts * delta <= BUDGET.delta_total


def test_a_statement_that_asks_for_more_than_there_is_gets_no_more_than_all() -> None:
    assert delta_for_keys(BUDGET, 5 * WHOLE) * DELTA_UNITS == BUDGET.delta_total


def test_the_smallest_loss_gets_some() -> None:
    assert delta_for_keys(BUDGET, Fraction(1, 10**60)) == Fraction(1, DELTA_UNITS)


@pytest.mark.parametrize(
    "without",
    [
        budget_for(epsilon=Fraction(3), delta=Fraction(0), delta_keys_share=Fraction(0)),
        budget_for(epsilon=Fraction(3), delta=Fraction(1, 10**8), delta_keys_share=Fraction(0)),
    ],
    ids=["pure", "no share"],
)
def test_where_none_is_set_aside_there_is_none(without: Budget) -> None:
    assert delta_for_keys(without, Fraction(1)) == 0
