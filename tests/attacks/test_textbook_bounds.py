"""What any attack may gain: closed forms, mechanisms that attain them, and an exact count over a small world."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from scipy import stats

from lapwing.errors import LapwingError
from lapwing.kernel.numbers import ln_upper
from lapwing.theory.attacks.bounds import advantage_upper, alarm_at, chance_upper, success_upper, true_positive_rate_upper

ONE = Fraction(1)
EPSILONS = (Fraction(0), Fraction(1, 10), ONE, Fraction(5, 2), Fraction(10))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("choices", [2, 3, 10])
def test_randomised_response_attains_the_chance_of_one_guess(epsilon: Fraction, choices: int) -> None:
    """It says the truth with odds e^epsilon against each other value; believing it is right that often, and no attack does better."""
    odds = math.exp(epsilon)
    bound = success_upper(epsilon=epsilon, choices=choices)
    assert float(bound) == pytest.approx(odds / (odds + choices - 1), rel=1e-12)
    assert bound >= Fraction(1, choices)


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 1000), Fraction(1, 3), ONE])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_leaking_with_probability_delta_attains_it_too(epsilon: Fraction, delta: Fraction) -> None:
    """With probability delta the secret itself is published, else randomised response of epsilon answers."""
    leaking = float(delta) + (1 - float(delta)) * math.exp(epsilon) / (1 + math.exp(epsilon))
    assert float(success_upper(epsilon=epsilon, delta=delta)) == pytest.approx(leaking, rel=1e-12)
    assert advantage_upper(epsilon=epsilon, delta=delta) == 2 * success_upper(epsilon=epsilon, delta=delta) - 1


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 50)])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_trade_off_curve_is_consistent_with_the_advantage(epsilon: Fraction, delta: Fraction) -> None:
    points = [Fraction(i, 400) for i in range(401)]
    best = [true_positive_rate_upper(point, epsilon=epsilon, delta=delta) for point in points]
    advantage = advantage_upper(epsilon=epsilon, delta=delta)
    assert all(point <= rate <= 1 and rate - point <= advantage for point, rate in zip(points, best, strict=True))
    assert all(a <= b for a, b in itertools.pairwise(best))
    # The corner of the curve, where the advantage is attained, is at (1 - delta) / (1 + e^epsilon); the grid is at most 1/400 away from it.
    assert max(float(rate - point) for point, rate in zip(points, best, strict=True)) >= float(advantage) - math.exp(epsilon) / 400
    assert best[0] == delta and best[-1] == 1


def test_the_chance_of_many_right_guesses_is_a_binomial_tail_rounded_up() -> None:
    for people, epsilon, choices in ((1, ONE, 2), (40, Fraction(1, 2), 2), (211, ONE, 2), (2_000, Fraction(1, 10), 4)):
        single = math.exp(epsilon) / (math.exp(epsilon) + choices - 1)
        for correct in {0, 1, people // 2, int(people * single) + 1, people}:
            bound = chance_upper(correct=correct, people=people, epsilon=epsilon, choices=choices)
            assert float(bound) == pytest.approx(stats.binom.sf(correct - 1, people, single), rel=1e-9, abs=1e-140)


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
    epsilon = ln_upper(Fraction(2))
    for correct in range(people + 1):
        assert sum(right[correct:]) <= chance_upper(correct=correct, people=people, epsilon=epsilon)
        smaller = chance_upper(correct=correct, people=people, epsilon=Fraction(0))
        if correct in (2, 3):
            assert sum(right[correct:]) > smaller, "the attack gains something, or the comparison would be idle"


def test_the_alarm_is_the_least_count_that_is_rare_enough() -> None:
    words = {"people": 211, "epsilon": ONE, "delta": Fraction(1, 2**40)}
    rare = Fraction(1, 10**6)
    alarm = alarm_at(false_alarm=rare, **words)  # type: ignore[arg-type]
    assert chance_upper(correct=alarm, **words) <= rare < chance_upper(correct=alarm - 1, **words)  # type: ignore[arg-type]
    assert alarm_at(people=5, epsilon=Fraction(20), false_alarm=rare) == 6, "nothing can refute so weak a claim with five people"


def test_delta_is_added_for_every_person() -> None:
    words = {"correct": 180, "people": 211, "epsilon": ONE}
    pure = chance_upper(**words)  # type: ignore[arg-type]
    assert chance_upper(delta=Fraction(1, 10**4), **words) == pure + Fraction(2 * 211, 10**4)  # type: ignore[arg-type]
    assert chance_upper(delta=ONE, **words) == 1  # type: ignore[arg-type]


def test_senseless_input_is_refused() -> None:
    wrong = (
        lambda: success_upper(epsilon=Fraction(-1)),
        lambda: success_upper(epsilon=ONE, delta=Fraction(2)),
        lambda: success_upper(epsilon=ONE, choices=1),
        lambda: true_positive_rate_upper(Fraction(3, 2), epsilon=ONE),
        lambda: chance_upper(correct=4, people=3, epsilon=ONE),
        lambda: chance_upper(correct=0, people=0, epsilon=ONE),
        lambda: chance_upper(correct=1, people=3, epsilon=ONE, delta=Fraction(1, 100), choices=3),
        lambda: alarm_at(people=3, epsilon=ONE, false_alarm=Fraction(0)),
    )
    for attempt in wrong:
        with pytest.raises(LapwingError, match="attack-input"):
            attempt()
    with pytest.raises(LapwingError, match="number-invalid"):
        success_upper(epsilon=1.0)  # type: ignore[arg-type]
