"""Above threshold and the sparse vector: exact laws, odds that hold on every small stream and are approached by a witness."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.errors import LapwingError
from lapwing.mechanisms.above_threshold import AboveThreshold, SparseVector, above_threshold_for
from tests.unit.mechanisms.ratios import worst_ratio

HALF = Fraction(1, 2)
ONE = Fraction(1)
TWICE = AboveThreshold(1, 0, ONE, 2 * ONE)
"""The textbook's scales: query noise twice the threshold noise."""
MECHANISMS = [TWICE, AboveThreshold(1, 0, ONE, ONE), AboveThreshold(1, 0, 2 * ONE, 3 * ONE), AboveThreshold(1, 0, 2 * ONE, ONE)]


def summed(mechanism: AboveThreshold, stream: tuple[int, ...], decay: Fraction) -> dict[int | None, mpmath.mpf]:
    """The law from its definition: a sum over the threshold noise, cut off where less than 10^-40 is left."""
    of_threshold, of_query = mechanism.exponents()
    with mpmath.workdps(50):
        slow, fast = (
            (mpmath.mpf(decay.numerator) / decay.denominator) ** of_threshold,
            (mpmath.mpf(decay.numerator) / decay.denominator) ** of_query,
        )
        noise = {z: (1 - fast) / (1 + fast) * fast ** abs(z) for z in range(-400, 401)}
        above_from = {t: mpmath.fsum(p for z, p in noise.items() if z >= t) for t in range(-200, 201)}
        law: dict[int | None, mpmath.mpf] = dict.fromkeys([*range(len(stream)), None], mpmath.mpf(0))
        for r in range(-150, 151):
            chance = (1 - slow) / (1 + slow) * slow ** abs(r)
            for index, item in enumerate(stream):
                above = above_from[mechanism.threshold + r - item]
                law[index] += chance * above
                chance *= 1 - above
            law[None] += chance
        return law


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@pytest.mark.parametrize("stream", [(), (0,), (4,), (-3, 5), (1, -2, 3), (5, 5, -5, 0), (-7, -7)])
def test_the_law_is_the_sum_over_the_noise(mechanism: AboveThreshold, stream: tuple[int, ...]) -> None:
    law, reference = mechanism.law(stream, decay=HALF), summed(mechanism, stream, HALF)
    assert sum(law.values()) == 1
    assert law.keys() == reference.keys()
    with mpmath.workdps(50):
        for output, chance in law.items():
            assert abs(mpmath.mpf(chance.numerator) / chance.denominator - reference[output]) < mpmath.mpf(10) ** -35


def test_a_law_written_out() -> None:
    """One value at the threshold, equal scales, decay 1/2: above iff N >= R, and P[N = R] = sum of squared masses = 5/27."""
    equal = sum((Fraction(1, 3) * HALF ** abs(z)) ** 2 for z in range(-200, 201))
    assert abs(equal - Fraction(5, 27)) < Fraction(1, 10**100)
    assert AboveThreshold(1, 0, ONE, ONE).law((0,), decay=HALF) == {0: HALF + Fraction(5, 54), None: HALF - Fraction(5, 54)}


def neighbours(length: int, *, sensitivity: int, monotone: bool) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    moves = range(sensitivity + 1) if monotone else range(-sensitivity, sensitivity + 1)
    streams = itertools.product(range(-2, 3), repeat=length)
    return [
        (stream, tuple(map(int.__add__, stream, move)))
        for stream in streams
        for move in itertools.product(moves, repeat=length)
        if any(move)
    ]


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(("scale_query", "length"), [(2, 2), (1, 2), (1, 3)])
@pytest.mark.parametrize("decay", [HALF, Fraction(2, 3)])
def test_no_small_stream_passes_the_odds(scale_query: int, length: int, monotone: bool, decay: Fraction) -> None:
    mechanism = AboveThreshold(1, 0, ONE, Fraction(scale_query), monotone)
    pairs = neighbours(length, sensitivity=1, monotone=monotone)
    if length == 3:
        pairs = pairs[:: 7 if monotone else 29]
    assert 1 < worst_ratio(mechanism, pairs, decay=decay) <= mechanism.odds(decay=decay)


@settings(max_examples=150, deadline=None)
@given(
    values=st.lists(st.tuples(st.integers(-9, 9), st.integers(-2, 2)), min_size=1, max_size=6),
    scales=st.sampled_from([(1, 1), (1, 2), (2, 1), (3, 2)]),
    monotone=st.booleans(),
    decay=st.sampled_from([HALF, Fraction(1, 3), Fraction(7, 8)]),
    starts=st.integers(1, 3),
)
def test_no_random_stream_passes_the_odds(
    values: list[tuple[int, int]], scales: tuple[int, int], monotone: bool, decay: Fraction, starts: int
) -> None:
    above = AboveThreshold(2, 1, Fraction(scales[0]), Fraction(scales[1]), monotone)
    here = tuple(value for value, _ in values)
    there = tuple(value + (abs(move) if monotone else move) for value, move in values)
    mechanism = SparseVector(above, starts)
    assert worst_ratio(mechanism, [(here, there)], decay=decay) <= mechanism.odds(decay=decay)


@pytest.mark.parametrize("sensitivity", [1, 2])
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("scale_query", [2, 1])
def test_the_odds_are_approached(scale_query: int, monotone: bool, sensitivity: int) -> None:
    """Many values far above that were called below, then one far below that was called above: the ratio tends to the odds.

    So no smaller epsilon is true, and the law itself is not smoother than it should be.
    """
    mechanism = AboveThreshold(sensitivity, 0, ONE, Fraction(scale_query), monotone)
    far, odds = 20, mechanism.odds(decay=HALF)
    last = -far if monotone else -far - sensitivity
    witness = ((far,) * 5 + (-far,), (far + sensitivity,) * 5 + (last,))
    ratio = worst_ratio(mechanism, [witness], decay=HALF)
    assert odds * (1 - Fraction(1, 10**6)) < ratio <= odds


def test_a_monotone_claim_on_values_that_move_both_ways_is_wrong() -> None:
    wrong = AboveThreshold(1, 0, ONE, ONE, monotone=True)
    witness = ((20,) * 5 + (-20,), (21,) * 5 + (-21,))
    assert worst_ratio(wrong, [witness], decay=HALF) > wrong.odds(decay=HALF)


def test_the_price_does_not_depend_on_the_number_of_values_below() -> None:
    long = ((20,) * 40 + (-20,), (21,) * 40 + (-21,))
    assert worst_ratio(TWICE, [long], decay=HALF) <= TWICE.odds(decay=HALF) == 16


def test_without_noise_on_the_values_no_epsilon_would_do() -> None:
    """The textbook's warning (Lyu, Su and Li 2017): with noise on the threshold alone, an output can become impossible."""

    def law(stream: tuple[int, ...]) -> set[int | None]:
        firsts = (next((i for i, item in enumerate(stream) if item >= r), None) for r in range(-50, 51))
        return set(firsts)

    assert 1 in law((0, 1)) and 1 not in law((1, 0))


@pytest.mark.parametrize("starts", [1, 2, 3])
def test_the_sparse_vector_is_above_threshold_again_and_again(starts: int) -> None:
    """Its law from the definition: each answer in turn, given those before, from the law of the start it belongs to."""
    stream = (1, -2, 3, 0)
    law = SparseVector(TWICE, starts).law(stream, decay=HALF)
    assert sum(law.values()) == 1
    assert set(law) == {said for count in range(starts + 1) for said in itertools.combinations(range(4), count)}
    for said, chance in law.items():
        first, product = 0, ONE
        for index in said:
            product *= TWICE.law(stream[first:], decay=HALF)[index - first]
            first = index + 1
        if len(said) < starts:
            product *= TWICE.law(stream[first:], decay=HALF)[None]
        assert chance == product


@pytest.mark.parametrize("starts", [1, 2, 3])
def test_the_sparse_vector_s_odds(starts: int) -> None:
    """The witness of one start, repeated, approaches the odds of all of them; one start fewer would be too few."""
    one, other = (12,) * 5 + (-12,), (13,) * 5 + (-13,)
    mechanism = SparseVector(AboveThreshold(1, 0, ONE, ONE), starts)
    ratio = worst_ratio(mechanism, [(one * starts, other * starts)], decay=HALF)
    odds = mechanism.odds(decay=HALF)
    assert odds * Fraction(999, 1000) < ratio <= odds == Fraction(8) ** starts


def test_events() -> None:
    event = AboveThreshold(3, 0, Fraction(12), Fraction(24)).event()
    assert event.epsilon is not None and HALF < event.epsilon < HALF + Fraction(1, 10**9)
    assert event.rho == event.epsilon**2 / 2
    monotone = AboveThreshold(3, 0, Fraction(12), Fraction(12), monotone=True).event()
    assert monotone.epsilon == event.epsilon
    several = SparseVector(AboveThreshold(3, 0, Fraction(12), Fraction(24)), 4).event()
    assert several.epsilon == 4 * event.epsilon
    assert several.rho == 4 * event.rho


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(5)])
@pytest.mark.parametrize("monotone", [False, True])
def test_above_threshold_for_fits_and_one_decay_serves(epsilon: Fraction, monotone: bool) -> None:
    mechanism = above_threshold_for(epsilon=epsilon, sensitivity=3, threshold=10, monotone=monotone)
    spent = mechanism.event().epsilon
    assert spent is not None and epsilon * (1 - Fraction(1, 2**50)) < spent <= epsilon
    assert mechanism.exponents() == ((1, 1) if monotone else (2, 1))


@pytest.mark.parametrize("confidence", [HALF, Fraction(19, 20)])
@pytest.mark.parametrize("queries", [1, 3, 6])
def test_the_error_bound_holds_under_the_exact_law(confidence: Fraction, queries: int) -> None:
    """Streams just beyond the bound: the mechanism must say below to values far below, and above to one far above."""
    mechanism = AboveThreshold(1, 5, Fraction(2), Fraction(4))
    decay = Fraction(math.exp(-1 / 4))  # of the common scale, 2 * 2 = 4
    alpha = mechanism.error(confidence=confidence, queries=queries)
    stream = (5 - alpha - 1,) * (queries - 1) + (5 + alpha,)
    assert mechanism.law(stream, decay=decay)[queries - 1] >= confidence
    # not everything is within the bound: a tenth of it would be far too little for the longest stream
    tenth = alpha // 10
    if queries == 6 and confidence > HALF:
        assert mechanism.law((5 - tenth - 1,) * 5 + (5 + tenth,), decay=decay)[5] < confidence


def _code(call: Callable[[], object]) -> str:
    with pytest.raises(LapwingError) as refusal:
        call()
    return refusal.value.code


def test_refusals() -> None:
    a_float: Any = 1.0
    assert _code(lambda: AboveThreshold(0, 0, ONE, ONE)) == "sensitivity-invalid"
    assert _code(lambda: AboveThreshold(1, a_float, ONE, ONE)) == "mechanism-invalid"
    assert _code(lambda: AboveThreshold(1, 0, Fraction(0), ONE)) == "scale-invalid"
    assert _code(lambda: AboveThreshold(1, 0, ONE, Fraction(1, 3))) == "scale-invalid"
    assert _code(lambda: SparseVector(TWICE, 0)) == "mechanism-invalid"
    assert _code(lambda: TWICE.law((a_float,), decay=HALF)) == "value-invalid"
    assert _code(lambda: TWICE.law((2**62,), decay=HALF)) == "law-unavailable"
    assert _code(lambda: AboveThreshold(1, 0, ONE, ONE + Fraction(1, 2**40)).odds(decay=HALF)) == "law-unavailable"
    assert _code(lambda: TWICE.law((0,), decay=a_float)) == "decay-invalid"
    assert _code(lambda: TWICE.error(confidence=HALF, queries=0)) == "mechanism-invalid"
    assert _code(lambda: TWICE.error(confidence=ONE)) == "confidence-invalid"
    assert _code(lambda: above_threshold_for(epsilon=Fraction(0), sensitivity=1, threshold=0)) == "loss-invalid"
    assert _code(lambda: above_threshold_for(epsilon=ONE, sensitivity=0, threshold=0)) == "sensitivity-invalid"
    assert _code(lambda: SparseVector(TWICE, 20).law((0,) * 40, decay=HALF)) == "law-unavailable"
    assert _code(lambda: above_threshold_for(epsilon=Fraction(1, 10**400), sensitivity=1, threshold=0)) == "scale-invalid"
