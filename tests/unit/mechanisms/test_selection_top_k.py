"""Top-k by peeling: the law of the whole list, its neighbours, its error bound."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.errors import LapwingError
from lapwing.kernel.accounting import Account
from lapwing.kernel.numbers import exp_upper, ln_upper
from lapwing.mechanisms.selection import ExponentialMechanism
from lapwing.mechanisms.top_k import TopK, top_k_for

ONE = Fraction(1)
HALF = Fraction(1, 2)


def worst_ratio(mechanism: TopK, scores: Sequence[int], other: Sequence[int], decay: Fraction) -> Fraction:
    p, q = mechanism.law(scores, decay=decay), mechanism.law(other, decay=decay)
    return max(max(p[output] / q[output], q[output] / p[output]) for output in p)


def test_one_of_the_list_is_the_exponential_mechanism() -> None:
    scores = [3, 0, 1, 1]
    one = ExponentialMechanism(ONE, 1, 4).law(scores, decay=HALF)
    assert TopK(1, ONE, 1, 4).law(scores, decay=HALF) == {(index,): chance for index, chance in one.items()}
    assert TopK(1, ONE, 1, 4).event() == ExponentialMechanism(ONE, 1, 4).event()
    for k in (2, 3, 4):
        firsts = dict.fromkeys(range(4), Fraction(0))
        law = TopK(k, ONE, 1, 4).law(scores, decay=HALF)
        assert len(law) == math.perm(4, k)
        assert all(len(set(output)) == k for output in law)
        for output, chance in law.items():
            firsts[output[0]] += chance
        assert firsts == one  # whatever is taken later


def test_peeling_is_the_exponential_mechanism_on_those_left() -> None:
    scores = [3, 0, 1, 1]
    law = TopK(2, ONE, 1, 4).law(scores, decay=HALF)
    first = ExponentialMechanism(ONE, 1, 4).law(scores, decay=HALF)
    for taken in range(4):
        left = [index for index in range(4) if index != taken]
        second = ExponentialMechanism(ONE, 1, 3).law([scores[index] for index in left], decay=HALF)
        assert {index: law[taken, index] for index in left} == {left[i]: first[taken] * second[i] for i in range(3)}


@given(
    scores=st.lists(st.integers(-10, 10), min_size=2, max_size=5),
    k=st.integers(1, 3),
    data=st.data(),
    decay=st.sampled_from([HALF, Fraction(4, 5)]),
)
@settings(max_examples=80, deadline=None)
def test_random_neighbours_are_within_the_claim(scores: list[int], k: int, data: st.DataObject, decay: Fraction) -> None:
    k = min(k, len(scores))
    monotone, sensitivity = data.draw(st.booleans()), data.draw(st.integers(1, 3))
    steps = data.draw(
        st.lists(st.integers(0 if monotone else -sensitivity, sensitivity), min_size=len(scores), max_size=len(scores)), label="steps"
    )
    mechanism = TopK(k, ONE, sensitivity, len(scores), monotone)
    other = [score + step for score, step in zip(scores, steps, strict=True)]
    law = mechanism.law(scores, decay=decay)
    assert sum(law.values()) == 1
    assert worst_ratio(mechanism, scores, other, decay) <= mechanism.odds(decay=decay)
    epsilon_one = ln_upper(decay ** -(sensitivity if monotone else 2 * sensitivity))
    neighbour = mechanism.law(other, decay=decay)
    divergence = sum((chance**2 / neighbour[output] for output, chance in law.items()), Fraction(0))
    assert divergence <= exp_upper(2 * k * epsilon_one**2 / 8)


def test_the_list_costs_nearly_k_times_and_claiming_one_selection_is_seen_to_fail() -> None:
    """Two candidates far below many others: taking both of them has nearly the ratio of two selections."""
    scores, other = [0, 0, 40, 40, 40], [1, 1, 39, 39, 39]
    two = TopK(2, ONE, 1, 5)
    ratio = worst_ratio(two, scores, other, HALF)
    assert two.odds(decay=HALF) * Fraction(999, 1000) < ratio < two.odds(decay=HALF)
    assert ratio > TopK(1, ONE, 1, 5).odds(decay=HALF)
    # and a monotone claim fails on scores that are not
    assert ratio > TopK(2, ONE, 1, 5, True).odds(decay=HALF)


@pytest.mark.parametrize("confidence", [Fraction(1, 5), Fraction(4, 5), Fraction(99, 100)])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_every_place_is_within_the_error_bound(k: int, confidence: Fraction) -> None:
    scale = Fraction(3, 4)
    decay = Fraction(math.ceil(exp_upper(-1 / scale) * 10**12), 10**12)
    mechanism = TopK(k, scale, 1, 4)
    bound = mechanism.error(confidence=confidence)
    worst = Fraction(0)
    for losses in itertools.combinations_with_replacement((0, 1, bound, bound + 1, bound + 2), 4):
        ranked = sorted(-loss for loss in losses)[::-1]
        law = mechanism.law(ranked, decay=decay)
        failed = [chance for output, chance in law.items() if any(ranked[i] - ranked[index] > bound for i, index in enumerate(output))]
        worst = max(worst, sum(failed, Fraction(0)))
    assert worst <= 1 - confidence
    assert worst > 0


def test_the_error_of_one_is_the_exponential_mechanisms() -> None:
    for confidence in (Fraction(1, 5), Fraction(19, 20), Fraction(999, 1000)):
        scale, candidates = Fraction(37), 500
        assert TopK(1, scale, 1, candidates).error(confidence=confidence) == ExponentialMechanism(scale, 1, candidates).error(
            confidence=confidence
        )
    assert TopK(1, Fraction(37), 1, 1).error(confidence=HALF) == 0


@pytest.mark.parametrize("account", Account)
@pytest.mark.parametrize("k", [1, 3, 10])
def test_the_least_scale_that_fits(account: Account, k: int) -> None:
    for loss in (Fraction(1), Fraction(1, 7)):
        mechanism = top_k_for(account, loss=loss, k=k, score_sensitivity=2, candidates=20)
        assert mechanism.event().loss(account) <= loss
        below = Fraction(math.nextafter(float(mechanism.scale), 0.0))
        assert TopK(k, below, 2, 20).event().loss(account) > loss


@pytest.mark.parametrize("k", [0, -1, 4, 1.0, True])
def test_a_k_that_cannot_be_is_refused(k: Any) -> None:
    with pytest.raises(LapwingError) as refusal:
        TopK(k, ONE, 1, 3)
    assert refusal.value.code == "mechanism-invalid"
    with pytest.raises(LapwingError) as refusal:
        top_k_for(Account.PURE, loss=ONE, k=k, score_sensitivity=1, candidates=3)
    assert refusal.value.code == "mechanism-invalid"


def test_a_law_of_too_many_lists_is_refused() -> None:
    with pytest.raises(LapwingError) as refusal:
        TopK(4, ONE, 1, 50).law([0] * 50, decay=HALF)
    assert refusal.value.code == "law-unavailable"
