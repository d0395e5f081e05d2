"""Randomised response: the textbook's odds, the exact rho, estimates that are unbiased and intervals that hold."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from lapwing.errors import LapwingError
from lapwing.mechanisms.response import CATEGORIES_MAX, RandomisedResponse, response_for, two_coin
from tests.unit.mechanisms.ratios import worst_ratio

UNUSED = Fraction(1, 2)
"""The decay, which changes nothing."""

RESPONSES = [
    two_coin(),
    RandomisedResponse(2, Fraction(5, 8)),
    RandomisedResponse(3, Fraction(1, 2)),
    RandomisedResponse(5, Fraction(7, 8)),
]


def test_two_coins_are_the_textbook_s() -> None:
    """Heads: the truth. Tails: a second coin decides. A yes is said by 3/4 of those whose answer is yes and by 1/4 of the others."""
    assert two_coin().law(1) == {0: Fraction(1, 4), 1: Fraction(3, 4)}
    assert two_coin().odds() == 3
    epsilon = two_coin().event().epsilon
    assert epsilon is not None and math.isclose(epsilon, math.log(3), rel_tol=1e-11) and epsilon > Fraction(math.log(3))


@pytest.mark.parametrize("response", RESPONSES, ids=str)
def test_odds_are_attained_by_one_person_and_by_three(response: RandomisedResponse) -> None:
    answers = range(response.categories)
    assert worst_ratio(response, [(a, b) for a in answers for b in answers], decay=UNUSED) == response.odds()
    pairs = [((a, 0, 1), (b, 0, 1)) for a in answers for b in answers]
    assert worst_ratio(response, pairs, decay=UNUSED) == response.odds()
    both_moved = [((0, 0, 1), (1, 1, 1))]
    assert worst_ratio(response, both_moved, decay=UNUSED) == response.odds() ** 2  # two people are no neighbours: the claim is not idle


@pytest.mark.parametrize("response", RESPONSES, ids=str)
def test_rho_bounds_every_order_and_is_exact_for_two_answers(response: RandomisedResponse) -> None:
    """The Renyi divergence of order a is at most a rho, from the definition; for two answers it tends to a rho as a tends to 1."""
    rho, epsilon = response.event().rho, response.event().epsilon
    assert rho is not None and epsilon is not None
    assert rho < epsilon**2 / 2
    one, other = response.law(0), response.law(1)
    with mpmath.workdps(60):

        def per_order(a: mpmath.mpf) -> mpmath.mpf:
            total = mpmath.fsum(_mpf(one[said]) ** a * _mpf(other[said]) ** (1 - a) for said in one)
            return mpmath.log(total) / (a - 1) / a

        for a in (mpmath.mpf(1) + mpmath.mpf(10) ** -15, 1.1, 1.5, 2, 3, 8, 50, 1000):
            assert per_order(mpmath.mpf(a)) <= _mpf(rho)
        if response.categories == 2:
            assert per_order(1 + mpmath.mpf(10) ** -15) > _mpf(rho) * (1 - mpmath.mpf(10) ** -11)


def _mpf(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


@pytest.mark.parametrize("response", RESPONSES, ids=str)
def test_the_estimate_is_unbiased(response: RandomisedResponse) -> None:
    """Its expectation under the exact law of four people's answers is the true number, exactly."""
    true = (0, 1, 1, 1)
    expected = [Fraction(0)] * response.categories
    for said, chance in response.law(true).items():
        estimates = response.estimate([said.count(category) for category in range(response.categories)])
        assert sum(estimates) == len(true)
        expected = [total + chance * estimate for total, estimate in zip(expected, estimates, strict=True)]
    assert expected == [true.count(category) for category in range(response.categories)]


@pytest.mark.parametrize(("people", "truly"), [(1, 0), (1, 1), (12, 5), (60, 0), (60, 31), (200, 77)])
@pytest.mark.parametrize("confidence", [Fraction(1, 2), Fraction(19, 20)])
@pytest.mark.parametrize("response", RESPONSES[:2], ids=str)
def test_intervals_cover_by_the_exact_law(response: RandomisedResponse, people: int, truly: int, confidence: Fraction) -> None:
    """The number of noisy ones is a sum of two binomials: the probability that its interval holds the truth is computed, not sampled."""
    said_law = [Fraction(1)]
    for person in range(people):
        one = response.truth if person < truly else response.lie()
        said_law = [a * (1 - one) + b * one for a, b in zip([*said_law, Fraction(0)], [Fraction(0), *said_law], strict=True)]
    assert sum(said_law) == 1
    covered = near = Fraction(0)
    for ones, chance in enumerate(said_law):
        none_interval, one_interval = response.interval([people - ones, ones], confidence=confidence)
        assert 0 <= one_interval[0] <= one_interval[1] <= people
        assert none_interval == (people - one_interval[1], people - one_interval[0])
        if one_interval[0] <= truly <= one_interval[1]:
            covered += chance
        if abs(response.estimate([people - ones, ones])[1] - truly) <= response.error(confidence=confidence, people=people):
            near += chance
    assert covered >= confidence
    assert near >= confidence


def test_intervals_narrow_with_people_and_are_not_everything() -> None:
    low, high = two_coin().interval([5_000, 5_000], confidence=Fraction(19, 20))[1]
    assert 4_700 < low < 5_000 < high < 5_300
    assert two_coin().error(confidence=Fraction(19, 20), people=10_000) < 300 < two_coin().error(confidence=Fraction(19, 20), people=20_000)


@pytest.mark.parametrize("categories", [2, 3, 100, CATEGORIES_MAX])
@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1, 2), Fraction(1), Fraction(5)])
def test_response_for_fits_and_more_truth_would_not(categories: int, epsilon: Fraction) -> None:
    response = response_for(epsilon=epsilon, categories=categories)
    more = RandomisedResponse(categories, Fraction(float(response.truth * (1 + Fraction(1, 2**30)))))
    spent, spent_more = response.event().epsilon, more.event().epsilon
    assert spent is not None and spent_more is not None
    assert spent <= epsilon < spent_more


def test_any_epsilon_event_is_fitted() -> None:
    chance = random.Random(5)
    for _ in range(300):
        epsilon = Fraction(math.exp(chance.uniform(-8, 4)))
        spent = response_for(epsilon=epsilon, categories=chance.randrange(2, 50)).event().epsilon
        assert spent is not None and epsilon * Fraction(9, 10) < max(spent, epsilon * (epsilon > 30))
        assert spent <= epsilon


def _code(call: Any) -> str:
    with pytest.raises(LapwingError) as refusal:
        call()
    return refusal.value.code


def test_refusals() -> None:
    half = Fraction(1, 2)
    a_float: Any = 0.75
    assert _code(lambda: RandomisedResponse(1, half)) == "mechanism-invalid"
    assert _code(lambda: RandomisedResponse(2, half)) == "mechanism-invalid"
    assert _code(lambda: RandomisedResponse(2, Fraction(2, 3))) == "mechanism-invalid"
    assert _code(lambda: RandomisedResponse(2, a_float)) == "mechanism-invalid"
    assert _code(lambda: RandomisedResponse(CATEGORIES_MAX + 1, half)) == "mechanism-invalid"
    assert _code(lambda: two_coin().law(2)) == "value-invalid"
    assert _code(lambda: two_coin().law((0, -1))) == "value-invalid"
    assert _code(lambda: two_coin().law((0,) * 30)) == "law-unavailable"
    assert _code(lambda: two_coin().estimate([1])) == "value-invalid"
    assert _code(lambda: two_coin().interval([1, -1], confidence=half)) == "value-invalid"
    assert _code(lambda: two_coin().error(confidence=half, people=0)) == "mechanism-invalid"
    assert _code(lambda: two_coin().interval([1, 1], confidence=Fraction(1))) == "confidence-invalid"
    assert _code(lambda: response_for(epsilon=Fraction(0), categories=2)) == "loss-invalid"
    assert _code(lambda: response_for(epsilon=Fraction(1, 2**60), categories=2)) == "loss-invalid"
    assert _code(lambda: response_for(epsilon=half, categories=1)) == "mechanism-invalid"
