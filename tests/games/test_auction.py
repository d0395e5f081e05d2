"""The digital-goods auction: the published figures, exactly."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import pytest

from lapwing.games import DigitalGoodsAuction, GameHolds, GameRefuted, GameReport, LiesMultiplyBy, LosesAtMost, PrivateFor, certify
from lapwing.kernel.numbers import ln_upper
from tests.support.sizes import size

TENTHS = tuple(Fraction(tenth, 10) for tenth in range(1, 11))

FIGURES = {Fraction(1, 10): "1.013", Fraction(1, 2): "1.074", Fraction(1): "1.178", Fraction(2): "1.467"}
"""The largest factor by which a lie multiplies an expected utility: four people, prices and valuations .1, .2, ..., 1."""


@cache
def report(epsilon: Fraction) -> GameReport[Fraction, Fraction]:
    return certify(DigitalGoodsAuction(TENTHS, epsilon=epsilon), TENTHS, 4)


@pytest.mark.parametrize("epsilon", FIGURES, ids=str)
def test_the_best_lie_is_as_published_and_below_e_to_the_epsilon(epsilon: Fraction) -> None:
    found = report(epsilon)
    ratio = found.lie_ratio
    assert ratio is not None
    figure = Fraction(FIGURES[epsilon])
    assert figure - Fraction(1, 2000) <= ratio <= figure + Fraction(1, 2000)
    assert isinstance(found.check(LiesMultiplyBy(epsilon)), GameHolds)


@pytest.mark.parametrize("epsilon", FIGURES, ids=str)
def test_half_of_epsilon_is_enough_and_a_third_is_not(epsilon: Fraction) -> None:
    """All revenues move the same way when a report is replaced by a lower one, so the 2 in the exponent is not needed."""
    found = report(epsilon)
    assert isinstance(found.check(PrivateFor(epsilon / 2)), GameHolds)
    assert isinstance(found.check(PrivateFor(epsilon / 3)), GameRefuted)


@pytest.mark.parametrize("epsilon", FIGURES, ids=str)
def test_the_loss_is_within_the_bound_of_the_exponential_mechanism(epsilon: Fraction) -> None:
    """2 ln(prices) / epsilon: true here, and empty, because four people cannot pay more than 4 and the bound is larger."""
    bound = 2 * ln_upper(Fraction(10)) / epsilon
    found = report(epsilon)
    assert isinstance(found.check(LosesAtMost(bound)), GameHolds)
    assert found.loss < 2 < bound or epsilon == 2


def test_the_witness_lies_low() -> None:
    """The best lie of somebody who would pay .2 is to say .1, where all the others say 1; the price drops."""
    lie = report(Fraction(1)).worst_ratio
    assert lie is not None
    assert lie.liars > lie.reports
    assert lie.law_lying.expected(TENTHS) < lie.law_honest.expected(TENTHS)


def test_two_liars_stay_below_e_to_the_two_epsilon() -> None:
    prices = TENTHS[1::3]
    found = certify(DigitalGoodsAuction(prices, epsilon=Fraction(1)), prices, 4, liars=2)
    alone = certify(DigitalGoodsAuction(prices, epsilon=Fraction(1)), prices, 4)
    assert isinstance(found.check(LiesMultiplyBy(Fraction(1))), GameHolds)
    assert found.lie_ratio is not None and alone.lie_ratio is not None and found.lie_ratio > alone.lie_ratio


def test_more_people() -> None:
    n = size("people of the auction")
    found = certify(DigitalGoodsAuction(TENTHS, epsilon=Fraction(1)), TENTHS, n)
    assert isinstance(found.check(LiesMultiplyBy(Fraction(1))), GameHolds)
    assert isinstance(found.check(PrivateFor(Fraction(1, 2))), GameHolds)
