"""Belief, attacks and harm: every bound on random pairs of laws against the best attacker, exactly, and attained where it is tight."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.errors import LapwingError
from lapwing.kernel.numbers import exp_upper
from lapwing.theory import meaning
from lapwing.theory.divergences import hockey_stick, odds_max, total_variation
from lapwing.theory.guarantees import Guarantee, holds

Law = Mapping[int, Fraction]
HALF = Fraction(1, 2)


def normalised(weights: list[int]) -> Law:
    return {output: Fraction(weight, sum(weights)) for output, weight in enumerate(weights)}


laws = st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any).map(normalised)
full_laws = st.lists(st.integers(1, 9), min_size=4, max_size=4).map(normalised)
probabilities = st.fractions(min_value=0, max_value=1, max_denominator=20)
odds_values = st.fractions(min_value=1, max_value=5, max_denominator=8)


def pure_guarantee(p: Law, q: Law) -> Guarantee:
    there, back = odds_max(p, q), odds_max(q, p)
    assert there is not None and back is not None
    return Guarantee(max(there, back))


def guarantee_at(p: Law, q: Law, odds: Fraction) -> Guarantee:
    return Guarantee(odds, max(hockey_stick(p, q, odds=odds), hockey_stick(q, p, odds=odds)))


@given(full_laws, full_laws, probabilities)
def test_beliefs_stay_within_the_bounds(p: Law, q: Law, prior: Fraction) -> None:
    odds = pure_guarantee(p, q).odds
    for output in p:
        after = meaning.posterior(p, q, prior=prior, output=output)
        assert meaning.posterior_min(prior=prior, odds=odds) <= after <= meaning.posterior_max(prior=prior, odds=odds)


def test_beliefs_under_randomised_response() -> None:
    yes, no = {1: Fraction(3, 4), 0: Fraction(1, 4)}, {1: Fraction(1, 4), 0: Fraction(3, 4)}
    assert meaning.posterior(yes, no, prior=HALF, output=1) == Fraction(3, 4) == meaning.posterior_max(prior=HALF, odds=Fraction(3))
    assert meaning.posterior(yes, no, prior=HALF, output=0) == Fraction(1, 4) == meaning.posterior_min(prior=HALF, odds=Fraction(3))
    assert meaning.posterior_max(prior=Fraction(0), odds=Fraction(99)) == 0 and meaning.posterior_max(prior=Fraction(1), odds=HALF) == 1


@given(laws, laws, odds_values)
def test_advantage_bounds_the_total_variation(p: Law, q: Law, odds: Fraction) -> None:
    assert total_variation(p, q) <= meaning.advantage_max(guarantee_at(p, q, odds))


def test_advantage_is_attained() -> None:
    # randomised response with a leak: odds 3, delta 1/10
    leak, kept = Fraction(1, 10), Fraction(9, 10)
    p = {"sure": leak, "1": kept * Fraction(3, 4), "0": kept / 4}
    q = {"never": leak, "1": kept / 4, "0": kept * Fraction(3, 4)}
    guarantee = Guarantee(Fraction(3), leak)
    assert holds(p, q, guarantee)
    assert total_variation(p, q) == meaning.advantage_max(guarantee) == Fraction(22, 40)


def brute_power(p: Law, q: Law, false_alarm: Fraction) -> Fraction:
    """The best deterministic test."""
    sets = [chosen for size in range(len(p) + 1) for chosen in combinations(p, size)]
    return max(sum((q[o] for o in chosen), Fraction(0)) for chosen in sets if sum(p[o] for o in chosen) <= false_alarm)


@given(laws, laws, probabilities)
def test_the_best_test_is_at_least_every_deterministic_one_and_equal_at_corners(p: Law, q: Law, false_alarm: Fraction) -> None:
    assert meaning.power_of(p, q, false_alarm=false_alarm) >= brute_power(p, q, false_alarm)
    for alarms, power in meaning.roc(p, q):
        best_there = max(other for at, other in meaning.roc(p, q) if at == alarms)
        if power == best_there:
            assert meaning.power_of(p, q, false_alarm=alarms) == power == brute_power(p, q, alarms)


@given(laws, laws, odds_values, probabilities)
def test_no_test_beats_the_guarantee(p: Law, q: Law, odds: Fraction, false_alarm: Fraction) -> None:
    guarantee = guarantee_at(p, q, odds)
    if guarantee.delta < 1:
        assert meaning.power_of(p, q, false_alarm=false_alarm) <= meaning.power_max(guarantee, false_alarm=false_alarm)


@given(laws, laws)
def test_the_curve_is_concave_and_complete(p: Law, q: Law) -> None:
    corners = meaning.roc(p, q)
    assert corners[0] == (Fraction(0), Fraction(0)) and corners[-1] == (Fraction(1), Fraction(1))
    advantage = max(power - alarms for alarms, power in corners)
    assert advantage == total_variation(p, q)
    for (a0, b0), (a1, b1), (a2, b2) in zip(corners, corners[1:], corners[2:], strict=False):
        assert (b1 - b0) * (a2 - a1) >= (b2 - b1) * (a1 - a0)


def test_words_carry_the_numbers() -> None:
    text = meaning.in_words(Guarantee(Fraction(3)))
    assert "3.00 times as likely" in text and "75.0 % sure" in text and "at most 3.0 %" in text and "finds at most 15.0 %" in text
    assert "probability" not in text and "Warning" not in text
    approximate = Guarantee.of_epsilon(Fraction(1), Fraction(15, 10**7))
    assert "2e-6" in meaning.in_words(approximate) and "73.2 % sure" in meaning.in_words(approximate)
    assert "Warning" not in meaning.in_words(approximate, units=60_000)
    assert "Warning" in meaning.in_words(approximate, units=70_000)
    assert "1e-3" in meaning.in_words(Guarantee(Fraction(2), Fraction(99, 10**5)))


@pytest.mark.parametrize("size", [1, 2, 10, 100])
def test_publishing_a_whole_record_passes_with_delta_one_over_n(size: int) -> None:
    database = list(range(size))
    neighbour = ["somebody else", *database[1:]]
    mine, theirs = meaning.one_record_law(database), meaning.one_record_law(neighbour)
    delta = Fraction(1, size)
    both = {**{str(k): v for k, v in mine.items()}}, {**{str(k): v for k, v in theirs.items()}}
    assert holds(*both, Guarantee(Fraction(1), delta))
    assert not holds(*both, Guarantee(Fraction(1000), delta * Fraction(99, 100)))
    # and it does give somebody away, always
    assert sum(share for record, share in mine.items() if record in database) == 1
    assert "Warning" in meaning.in_words(Guarantee(Fraction(1), delta), units=size)


@given(full_laws, full_laws, st.lists(probabilities, min_size=4, max_size=4), odds_values)
def test_expected_utility_changes_by_a_factor(p: Law, q: Law, utilities: list[Fraction], odds: Fraction) -> None:
    here, there = (meaning.expectation(law, lambda o: utilities[o]) for law in (p, q))
    pure = pure_guarantee(p, q)
    assert here / pure.odds <= there <= here * pure.odds
    for guarantee in (pure, guarantee_at(p, q, odds)):
        low, high = meaning.expectation_range(here, guarantee, utility_max=Fraction(1))
        assert low <= there <= high


@given(st.tuples(full_laws, full_laws, full_laws), st.lists(probabilities, min_size=4, max_size=4))
def test_lying_hardly_pays(reports: tuple[Law, Law, Law], utilities: list[Fraction]) -> None:
    law_of = dict(enumerate(reports))
    odds = max(pure_guarantee(p, q).odds for p, q in combinations(reports, 2))
    gain = meaning.gain_from_lying(law_of, truth=0, utility=lambda o: utilities[o])
    assert 0 <= gain <= meaning.lying_bound(Guarantee(odds)) <= odds - 1


@pytest.mark.parametrize("epsilon", [Fraction(n, 10) for n in range(11)])
def test_approximate_truthfulness_of_two_epsilon(epsilon: Fraction) -> None:
    guarantee = Guarantee.of_epsilon(epsilon)
    assert meaning.lying_bound(guarantee) <= exp_upper(epsilon) - 1 <= 2 * epsilon


@pytest.mark.parametrize(
    "call",
    [
        lambda: meaning.posterior_max(prior=Fraction(2), odds=Fraction(1)),
        lambda: meaning.posterior_max(prior=HALF, odds=Fraction(0)),
        lambda: meaning.posterior_min(prior=HALF, odds=Fraction(0)),
        lambda: meaning.posterior({0: Fraction(1)}, {0: Fraction(1)}, prior=HALF, output=1),
        lambda: meaning.trade_off(Guarantee(Fraction(2)), false_alarm=Fraction(-1)),
        lambda: meaning.one_record_law([]),
        lambda: meaning.expectation_range(Fraction(2), Guarantee(Fraction(2)), utility_max=Fraction(1)),
    ],
)
def test_refusals(call: Callable[[], object]) -> None:
    with pytest.raises(LapwingError) as refusal:
        call()
    assert refusal.value.code == "theory-argument"
