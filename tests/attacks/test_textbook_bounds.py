"""What any attack may gain: closed forms, mechanisms that attain them, and an exact count over a small world."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction

import pytest
from scipy import stats

from lapwing.errors import LapwingError
from lapwing.theory.attacks.bounds import alarm_at, chance_max, success_max
from lapwing.theory.guarantees import Guarantee
from lapwing.theory.meaning import advantage_max

ONE = Fraction(1)
ODDS = (ONE, Fraction(11, 10), Fraction(2), Fraction(20))


@pytest.mark.parametrize("odds", ODDS)
@pytest.mark.parametrize("choices", [2, 3, 10])
def test_randomised_response_attains_the_chance_of_one_guess(odds: Fraction, choices: int) -> None:
    """It says each value but the truth with probability p and the truth with p times the odds; believing it is right that often."""
    lie = 1 / (odds + choices - 1)
    assert success_max(Guarantee(odds), choices=choices) == 1 - (choices - 1) * lie >= Fraction(1, choices)


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 1000), Fraction(1, 3), ONE])
@pytest.mark.parametrize("odds", ODDS)
@pytest.mark.parametrize("choices", [2, 5])
def test_leaking_with_probability_delta_attains_it_too(odds: Fraction, delta: Fraction, choices: int) -> None:
    """With probability delta the secret itself is published, else randomised response answers."""
    leaking = delta + (1 - delta) * odds / (odds + choices - 1)
    assert success_max(Guarantee(odds, delta), choices=choices) == leaking
    assert 2 * success_max(Guarantee(odds, delta)) - 1 == advantage_max(Guarantee(odds, delta))


def test_the_chance_of_many_right_guesses_is_a_binomial_tail_rounded_up() -> None:
    for people, odds, choices in ((1, Fraction(3), 2), (40, Fraction(5, 3), 2), (211, Fraction(27, 10), 2), (2_000, Fraction(11, 10), 4)):
        single = float(odds / (odds + choices - 1))
        for correct in {0, 1, people // 2, int(people * single) + 1, people}:
            bound = chance_max(Guarantee(odds), correct=correct, people=people, choices=choices)
            assert float(bound) == pytest.approx(stats.binom.sf(correct - 1, people, single), rel=1e-9, abs=1e-140)
    assert chance_max(Guarantee(Fraction(2)), correct=3, people=3) >= Fraction(8, 27)


def test_no_attack_on_a_noisy_total_guesses_more_bits_than_the_binomial_law_says() -> None:
    """Four bits, their total with geometric noise of odds 2, and the attacker's best guess of every bit: all counted exactly."""
    people, decay = 4, Fraction(1, 2)

    def noisy(total: int) -> dict[int, Fraction]:
        """The total plus noise with ``P[z]`` proportional to ``decay^|z|``, clamped to 0..4: odds of 2 for one bit."""
        law: dict[int, Fraction] = {}
        for output in range(1, people):
            law[output] = (1 - decay) / (1 + decay) * decay ** abs(output - total)
        law[0] = decay**total / (1 + decay)
        law[people] = decay ** (people - total) / (1 + decay)
        assert sum(law.values()) == 1
        return law

    worlds = list(itertools.product((False, True), repeat=people))
    laws = {world: noisy(sum(world)) for world in worlds}
    joint = {output: {world: laws[world][output] / len(worlds) for world in worlds} for output in range(people + 1)}
    right = [Fraction(0)] * (people + 1)
    for weights in joint.values():
        guess = [2 * sum(w for world, w in weights.items() if world[i]) > sum(weights.values()) for i in range(people)]
        for world, weight in weights.items():
            right[sum(a == b for a, b in zip(guess, world, strict=True))] += weight
    assert sum(right) == 1
    for correct in range(people + 1):
        assert sum(right[correct:]) <= chance_max(Guarantee(1 / decay), correct=correct, people=people)
        smaller = chance_max(Guarantee(ONE), correct=correct, people=people)
        if correct in (2, 3):
            assert sum(right[correct:]) > smaller, "the attack gains something, or the comparison would be idle"


def test_the_alarm_is_the_least_count_that_is_rare_enough() -> None:
    claim, rare = Guarantee.of_epsilon(ONE, Fraction(1, 2**40)), Fraction(1, 10**6)
    alarm = alarm_at(claim, people=211, false_alarm=rare)
    assert chance_max(claim, correct=alarm, people=211) <= rare < chance_max(claim, correct=alarm - 1, people=211)
    assert alarm_at(Guarantee.of_epsilon(Fraction(20)), people=5, false_alarm=rare) == 6, "five people cannot refute so weak a claim"


def test_delta_is_added_for_every_person() -> None:
    odds = Guarantee.of_epsilon(ONE).odds
    pure = chance_max(Guarantee(odds), correct=180, people=211)
    assert chance_max(Guarantee(odds, Fraction(1, 10**4)), correct=180, people=211) == pure + Fraction(2 * 211, 10**4)
    assert chance_max(Guarantee(odds, ONE), correct=180, people=211) == 1


def test_senseless_input_is_refused() -> None:
    claim = Guarantee(Fraction(2))
    wrong: tuple[Callable[[], object], ...] = (
        lambda: success_max(claim, choices=1),
        lambda: chance_max(claim, correct=4, people=3),
        lambda: chance_max(claim, correct=0, people=0),
        lambda: chance_max(Guarantee(Fraction(2), Fraction(1, 100)), correct=1, people=3, choices=3),
        lambda: alarm_at(claim, people=3, false_alarm=Fraction(0)),
    )
    for attempt in wrong:
        with pytest.raises(LapwingError, match="attack-input"):
            attempt()
    with pytest.raises(LapwingError, match="number-invalid"):
        alarm_at(claim, people=3, false_alarm=0.5)  # type: ignore[arg-type]
