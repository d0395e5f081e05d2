"""Selection by score: exact laws, every neighbour of small score vectors, what is attained, and what a wrong claim looks like.

A rational decay stands for ``exp(-1 / scale)``; then laws, ratios and ``exp(epsilon)`` are fractions, and nothing here is approximate.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.errors import LapwingError, Refused
from lapwing.kernel.accounting import Account
from lapwing.kernel.laws import SCALE_MAX
from lapwing.kernel.numbers import exp_lower, exp_upper, ln_lower, ln_upper
from lapwing.mechanisms.noisy_max import NoisyMax, difference_tail_upper, noisy_max_for
from lapwing.mechanisms.selection import (
    SPREAD_MAX,
    ExponentialMechanism,
    PermuteAndFlip,
    exponential_for,
    permute_and_flip_for,
)

Selection: TypeAlias = ExponentialMechanism | PermuteAndFlip | NoisyMax
CLASSES: tuple[type[Selection], ...] = (ExponentialMechanism, PermuteAndFlip, NoisyMax)
DECAYS = (Fraction(1, 2), Fraction(2, 3), Fraction(9, 10))
ONE = Fraction(1)


def made(kind: type[Selection], candidates: int, *, sensitivity: int = 1, monotone: bool = False) -> Selection:
    """A mechanism whose scale does not matter: its law is asked for at a decay."""
    return kind(ONE, sensitivity, candidates, monotone)


def moves(candidates: int, *, sensitivity: int, monotone: bool) -> Iterator[tuple[int, ...]]:
    """Every way the scores may move between neighbours."""
    span = range(0 if monotone else -sensitivity, sensitivity + 1)
    yield from itertools.product(span, repeat=candidates)
    if monotone:
        yield from itertools.product(range(-sensitivity, 1), repeat=candidates)


def worst_ratio(mechanism: Selection, scores: Sequence[int], other: Sequence[int], decay: Fraction) -> Fraction:
    """The largest ratio of the two laws, in either direction."""
    p, q = mechanism.law(scores, decay=decay), mechanism.law(other, decay=decay)
    return max(max(p[index] / q[index], q[index] / p[index]) for index in p)


def permute_and_flip_by_definition(scores: Sequence[int], decay: Fraction) -> dict[int, Fraction]:
    """Every order of visit, equally likely, with a coin at each candidate."""
    best, law = max(scores), dict.fromkeys(range(len(scores)), Fraction(0))
    for order in itertools.permutations(range(len(scores))):
        reached = Fraction(1, math.factorial(len(scores)))
        for index in order:
            coin = decay ** (best - scores[index])
            law[index] += reached * coin
            reached *= 1 - coin
    return law


def noisy_max_by_definition(scores: Sequence[int], decay: Fraction, *, reach: int) -> tuple[list[Fraction], Fraction]:
    """Lower bounds on the law by going through all noise up to ``reach`` in size, and the probability left out."""
    mass = {z: (1 - decay) / (1 + decay) * decay ** abs(z) for z in range(-reach, reach + 1)}
    law, seen = [Fraction(0)] * len(scores), Fraction(0)
    for noise in itertools.product(mass, repeat=len(scores)):
        noisy = [score + z for score, z in zip(scores, noise, strict=True)]
        chance = math.prod((mass[z] for z in noise), start=ONE)
        law[noisy.index(max(noisy))] += chance
        seen += chance
    return law, 1 - seen


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("decay", DECAYS)
def test_laws_are_positive_and_sum_to_exactly_one(kind: type[Selection], decay: Fraction) -> None:
    for candidates in (1, 2, 3):
        for scores in itertools.product(range(-1, 3), repeat=candidates):
            law = made(kind, candidates).law(scores, decay=decay)
            assert list(law) == list(range(candidates))
            assert min(law.values()) > 0
            assert sum(law.values()) == 1


@given(
    scores=st.lists(st.integers(-30, 30), min_size=1, max_size=8), decay=st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=50)
)
@settings(max_examples=60, deadline=None)
def test_laws_of_random_scores_sum_to_one_ignore_a_shift_and_prefer_better_scores(scores: list[int], decay: Fraction) -> None:
    for kind in CLASSES:
        mechanism = made(kind, len(scores))
        law = mechanism.law(scores, decay=decay)
        assert sum(law.values()) == 1
        assert law == mechanism.law([score + 1000 for score in scores], decay=decay)
        for one, other in itertools.combinations(range(len(scores)), 2):
            if scores[one] > scores[other]:
                assert law[one] > law[other]
            elif scores[one] == scores[other] and kind is not NoisyMax:
                assert law[one] == law[other]


def test_the_exponential_law_is_its_weights() -> None:
    law = made(ExponentialMechanism, 3).law([4, 2, 3], decay=Fraction(1, 2))
    assert law == {0: Fraction(4, 7), 1: Fraction(1, 7), 2: Fraction(2, 7)}


@pytest.mark.parametrize("scores", [[0], [0, 0, 0], [2, 0, 1], [3, 3, 0, 1], [0, 4, 4, 2, 7, 1]])
@pytest.mark.parametrize("decay", DECAYS)
def test_the_integral_is_permute_and_flip(scores: list[int], decay: Fraction) -> None:
    assert made(PermuteAndFlip, len(scores)).law(scores, decay=decay) == permute_and_flip_by_definition(scores, decay)


@pytest.mark.parametrize("scores", [[0, 0], [3, 1], [1, 3], [0, 0, 0], [2, 0, 1], [0, 2, 2]])
def test_the_series_are_noisy_max(scores: list[int]) -> None:
    decay, reach = Fraction(1, 3), 12 if len(scores) == 2 else 9
    lower, left_out = noisy_max_by_definition(scores, decay, reach=reach)
    assert 0 < left_out < Fraction(1, 10**3)
    law = made(NoisyMax, len(scores)).law(scores, decay=decay)
    for index, at_least in enumerate(lower):
        assert at_least <= law[index] <= at_least + left_out


def test_noisy_max_breaks_ties_for_the_lowest_index() -> None:
    law = made(NoisyMax, 2).law([0, 0], decay=Fraction(1, 2))
    # P[Z = Z'] is the sum of squares: (1/3)^2 * (1 + 2 * (1/4) / (3/4)) = 5/27
    assert law == {0: Fraction(16, 27), 1: Fraction(11, 27)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("sensitivity", [1, 2])
def test_every_neighbour_of_small_scores_is_within_the_claim(kind: type[Selection], monotone: bool, sensitivity: int) -> None:
    decay = Fraction(1, 2)
    mechanism = made(kind, 3, sensitivity=sensitivity, monotone=monotone)
    odds = mechanism.odds(decay=decay)
    assert odds == 2 ** (sensitivity if monotone else 2 * sensitivity)
    worst = Fraction(1)
    for scores in itertools.product(range(3 if sensitivity == 1 else 2), repeat=3):
        for move in moves(3, sensitivity=sensitivity, monotone=monotone):
            other = [score + step for score, step in zip(scores, move, strict=True)]
            worst = max(worst, worst_ratio(mechanism, scores, other, decay))
    assert worst <= odds
    assert worst > odds * Fraction(2, 3)  # the claim is not far from what small vectors show already


@st.composite
def neighbouring_scores(draw: st.DrawFn) -> tuple[list[int], list[int], int, bool]:
    candidates, sensitivity, monotone = draw(st.integers(1, 7)), draw(st.integers(1, 5)), draw(st.booleans())
    scores = draw(st.lists(st.integers(-20, 20), min_size=candidates, max_size=candidates))
    up = draw(st.booleans())
    low, high = (0, sensitivity) if monotone and up else (-sensitivity, 0) if monotone else (-sensitivity, sensitivity)
    steps = draw(st.lists(st.integers(low, high), min_size=candidates, max_size=candidates))
    return scores, [score + step for score, step in zip(scores, steps, strict=True)], sensitivity, monotone


@given(pair=neighbouring_scores(), decay=st.sampled_from(DECAYS))
@settings(max_examples=150, deadline=None)
def test_random_neighbours_are_within_the_claim(pair: tuple[list[int], list[int], int, bool], decay: Fraction) -> None:
    scores, other, sensitivity, monotone = pair
    for kind in CLASSES:
        mechanism = made(kind, len(scores), sensitivity=sensitivity, monotone=monotone)
        assert worst_ratio(mechanism, scores, other, decay) <= mechanism.odds(decay=decay)


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_permute_and_flip_attains_its_epsilon(decay: Fraction, sensitivity: int) -> None:
    """Two candidates: the worse one wins with probability ``decay ** gap / 2``, and the gap moves by the whole movement."""
    plain = made(PermuteAndFlip, 2, sensitivity=sensitivity)
    assert worst_ratio(plain, [10, 0], [10 + sensitivity, -sensitivity], decay) == plain.odds(decay=decay) == decay ** (-2 * sensitivity)
    monotone = made(PermuteAndFlip, 2, sensitivity=sensitivity, monotone=True)
    assert worst_ratio(monotone, [10, 0], [10 + sensitivity, 0], decay) == monotone.odds(decay=decay) == decay**-sensitivity


@pytest.mark.parametrize(("kind", "gap"), [(ExponentialMechanism, 40), (NoisyMax, 10_000)])
@pytest.mark.parametrize("monotone", [False, True])
def test_no_smaller_epsilon_is_true_of_the_others(kind: type[Selection], gap: int, monotone: bool) -> None:
    """Exponential mechanism and noisy max come as near to their epsilon as one likes, and never reach it."""
    decay, step = Fraction(1, 2), 0 if monotone else 1
    mechanism = made(kind, 2, monotone=monotone)
    ratio, odds = worst_ratio(mechanism, [gap, 0], [gap - 1, step], decay), mechanism.odds(decay=decay)
    assert odds * Fraction(999, 1000) < ratio < odds


@pytest.mark.parametrize("kind", CLASSES)
def test_claiming_monotone_of_scores_that_are_not_is_seen_to_fail(kind: type[Selection]) -> None:
    decay = Fraction(1, 2)
    wrong = made(kind, 2, monotone=True)
    assert worst_ratio(wrong, [10, 0], [9, 1], decay) > wrong.odds(decay=decay)


def reversed_ties(scores: Sequence[int], other: Sequence[int], decay: Fraction) -> Fraction:
    """The worst ratio when ties go to the lowest index on one side and to the highest on the other: a rule that looked at the data."""
    mechanism = made(NoisyMax, len(scores))
    p = mechanism.law(scores, decay=decay)
    q = mechanism.law(list(reversed(other)), decay=decay)
    return max(p[index] / q[len(scores) - 1 - index] for index in p)


def test_a_tie_rule_that_depends_on_the_data_breaks_the_claim() -> None:
    decay = Fraction(1, 2)
    scores, other = [9, 1], [10, 0]
    assert worst_ratio(made(NoisyMax, 2), scores, other, decay) <= made(NoisyMax, 2).odds(decay=decay)
    flipped = reversed_ties([1, 9], [0, 10], decay)
    assert flipped > made(NoisyMax, 2).odds(decay=decay)


def expected_loss(mechanism: Selection, scores: Sequence[int], decay: Fraction) -> Fraction:
    return sum((chance * (max(scores) - scores[index]) for index, chance in mechanism.law(scores, decay=decay).items()), Fraction(0))


@pytest.mark.parametrize("decay", DECAYS)
def test_permute_and_flip_is_never_worse_than_the_exponential_mechanism(decay: Fraction) -> None:
    vectors = [[0, *losses] for count in (1, 2, 3, 4) for losses in itertools.combinations_with_replacement(range(5), count)]
    assert len(vectors) == 125
    better = 0
    for scores in vectors:
        flip = expected_loss(made(PermuteAndFlip, len(scores)), [-loss for loss in scores], decay)
        exponential = expected_loss(made(ExponentialMechanism, len(scores)), [-loss for loss in scores], decay)
        assert flip <= exponential
        better += flip < exponential
    assert better == 121  # strictly better but where all scores are equal
    # the gain has no floor but a ceiling: at most half the loss goes
    far = made(PermuteAndFlip, 2), made(ExponentialMechanism, 2)
    ratio = expected_loss(far[0], [60, 0], decay) / expected_loss(far[1], [60, 0], decay)
    assert Fraction(1, 2) < ratio < Fraction(51, 100)


def renyi_two_exponential(p: Sequence[Fraction], q: Sequence[Fraction]) -> Fraction:
    """``exp`` of the Renyi divergence of order 2."""
    return sum((a * a / b for a, b in zip(p, q, strict=True)), Fraction(0))


def test_permute_and_flip_is_not_an_eighth_but_the_exponential_mechanism_is() -> None:
    """At order 2, rho-zCDP allows a divergence of 2 rho. One pair of vectors exceeds 2 epsilon^2/8 fourfold, nearly 2 epsilon^2/2."""
    decay = Fraction(99, 100)
    for kind, scores, other in ((PermuteAndFlip, [0, 0], [1, -1]), (ExponentialMechanism, [0, 0], [1, -1])):
        mechanism = made(kind, 2)
        epsilon_lower, epsilon_upper = ln_lower(mechanism.odds(decay=decay)), ln_upper(mechanism.odds(decay=decay))
        p, q = (list(mechanism.law(value, decay=decay).values()) for value in (scores, other))
        divergence = renyi_two_exponential(p, q)
        if kind is PermuteAndFlip:
            assert divergence > exp_upper(2 * Fraction(9, 10) * epsilon_upper**2 / 2)
            assert divergence <= exp_lower(2 * epsilon_lower**2 / 2)
        else:
            assert exp_upper(2 * Fraction(9, 10) * epsilon_upper**2 / 8) < divergence <= exp_lower(2 * epsilon_lower**2 / 8)


@given(pair=neighbouring_scores(), decay=st.sampled_from(DECAYS))
@settings(max_examples=100, deadline=None)
def test_renyi_divergences_of_order_two_are_within_rho(pair: tuple[list[int], list[int], int, bool], decay: Fraction) -> None:
    scores, other, sensitivity, monotone = pair
    for kind, divisor in ((ExponentialMechanism, 8), (PermuteAndFlip, 2), (NoisyMax, 2)):
        mechanism = made(kind, len(scores), sensitivity=sensitivity, monotone=monotone)
        p, q = (list(mechanism.law(value, decay=decay).values()) for value in (scores, other))
        assert renyi_two_exponential(p, q) <= exp_upper(2 * ln_upper(mechanism.odds(decay=decay)) ** 2 / divisor)


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("confidence", [Fraction(1, 10), Fraction(1, 2), Fraction(9, 10), Fraction(99, 100)])
@pytest.mark.parametrize("scale", [Fraction(1, 4), Fraction(1), Fraction(5, 2)])
def test_the_error_bound_holds_under_the_law(kind: type[Selection], confidence: Fraction, scale: Fraction) -> None:
    """On the worst vectors (all but one candidate just too bad) and others, at a decay just above the real one: more noise, not less."""
    decay = Fraction(math.ceil(exp_upper(-1 / scale) * 10**12), 10**12)
    for candidates in (1, 2, 5):
        mechanism = kind(scale, 1, candidates)
        bound = mechanism.error(confidence=confidence)
        for loss in (bound + 1, bound + 2):
            for others in itertools.combinations_with_replacement((0, 1, loss), candidates - 1):
                scores = [-other for other in (*others, 0)]  # the best one last: ties go against it
                law = mechanism.law(scores, decay=decay)
                failed = sum((law[index] for index in law if -scores[index] > bound), Fraction(0))
                assert failed <= 1 - confidence
        if bound > 0 and candidates == 2 and confidence >= Fraction(1, 2):
            # and it is the least: one less is wrong for the worst vector of two
            law = mechanism.law([-bound, 0], decay=exp_lower(-1 / scale).limit_denominator(10**15))
            assert law[0] > 1 - confidence


def test_the_error_of_permute_and_flip_is_never_above_the_exponential_mechanisms() -> None:
    for candidates, confidence in itertools.product((1, 2, 10, 1000), (Fraction(1, 100), Fraction(1, 2), Fraction(19, 20))):
        scale = Fraction(50)
        flip, exponential = PermuteAndFlip(scale, 1, candidates), ExponentialMechanism(scale, 1, candidates)
        assert flip.error(confidence=confidence) <= exponential.error(confidence=confidence)
    assert ExponentialMechanism(Fraction(50), 1, 1000).error(confidence=Fraction(19, 20)) == math.floor(50 * math.log(999 * 19))
    assert PermuteAndFlip(Fraction(50), 1, 1000).error(confidence=Fraction(19, 20)) == math.floor(50 * math.log(999 * 10))


def test_the_difference_of_two_draws() -> None:
    scale = Fraction(2)
    decay = exp_upper(-1 / scale)
    mass = [(1 - decay) / (1 + decay) * decay ** abs(z) for z in range(-60, 61)]
    for t in (0, 1, 2, 5, 9):
        summed = sum(float(a) * float(b) for i, a in enumerate(mass) for j, b in enumerate(mass) if i - j >= t)
        assert math.isclose(float(difference_tail_upper(scale, t)), summed, rel_tol=1e-9)


MAKERS = ((exponential_for, 8), (permute_and_flip_for, 2), (noisy_max_for, 2))


@pytest.mark.parametrize(("make", "divisor"), MAKERS)
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("account", Account)
def test_the_least_scale_that_fits(make: Any, divisor: int, monotone: bool, account: Account) -> None:
    for loss, sensitivity in itertools.product((Fraction(1), Fraction(1, 3), Fraction(7, 1000), Fraction(12)), (1, 4, 10**6)):
        mechanism = make(account, loss=loss, score_sensitivity=sensitivity, candidates=5, monotone=monotone)
        assert mechanism.event().loss(account) <= loss
        below = Fraction(math.nextafter(float(mechanism.scale), 0.0))
        assert type(mechanism)(below, sensitivity, 5, monotone).event().loss(account) > loss
        epsilon = (1 if monotone else 2) * sensitivity / mechanism.scale
        assert mechanism.event().epsilon == epsilon * Fraction(2**40 + 1, 2**40)
        assert mechanism.event().rho == epsilon**2 / divisor * Fraction(2**40 + 1, 2**40)


def code_of(action: Any) -> str:
    with pytest.raises(LapwingError) as refusal:
        action()
    return refusal.value.code


@pytest.mark.parametrize("kind", CLASSES)
def test_what_is_no_selection_is_refused(kind: Any) -> None:
    assert code_of(lambda: kind(Fraction(1, 3), 1, 2)) == "scale-invalid"
    assert code_of(lambda: kind(1.0, 1, 2)) == "scale-invalid"
    for sensitivity in (0, -1, 1.0, True, 2**61 + 1):
        assert code_of(lambda sensitivity=sensitivity: kind(ONE, sensitivity, 2)) == "sensitivity-invalid"
    for candidates in (0, 2.0, True, 2**20 + 1):
        assert code_of(lambda candidates=candidates: kind(ONE, 1, candidates)) == "mechanism-invalid"
    assert code_of(lambda: kind(ONE, 1, 2, 1)) == "mechanism-invalid"
    mechanism = kind(ONE, 1, 2)
    for scores in ([], [1], [1, 2, 3], [1, 2.0], [True, 1], [None, 1]):
        assert code_of(lambda scores=scores: mechanism.law(scores, decay=Fraction(1, 2))) == "scores-invalid"
    assert code_of(lambda: mechanism.law([0, SPREAD_MAX + 1], decay=Fraction(1, 2))) == "law-unavailable"
    assert sum(mechanism.law([0, SPREAD_MAX], decay=Fraction(1, 2)).values()) == 1
    for decay in (0.5, Fraction(0), Fraction(1), 1):
        assert code_of(lambda decay=decay: mechanism.law([0, 1], decay=decay)) == "decay-invalid"
        assert code_of(lambda decay=decay: mechanism.odds(decay=decay)) == "decay-invalid"
    assert code_of(lambda: mechanism.error(confidence=Fraction(1))) == "confidence-invalid"
    assert code_of(lambda: mechanism.error(confidence=0.9)) == "number-invalid"


def test_noisy_max_has_a_smaller_largest_scale() -> None:
    assert NoisyMax(Fraction(2**50), 1, 2).scale == 2**50
    with pytest.raises(Refused) as refused:
        NoisyMax(SCALE_MAX, 1, 2)
    assert refused.value.code == "scale-invalid"


@pytest.mark.parametrize(("make", "_divisor"), MAKERS)
def test_a_loss_that_buys_nothing_is_refused(make: Any, _divisor: int) -> None:
    assert code_of(lambda: make(Account.PURE, loss=Fraction(0), score_sensitivity=1, candidates=2)) == "loss-invalid"
    assert code_of(lambda: make(Account.PURE, loss=Fraction(1, 2**70), score_sensitivity=1, candidates=2)) == "scale-invalid"
    assert code_of(lambda: make(Account.PURE, loss=0.5, score_sensitivity=1, candidates=2)) == "number-invalid"
