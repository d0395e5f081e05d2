"""Averaging (D1): fresh noise without an account cancels out; a stored answer does not, and fresh ones are paid for until refused.

Each statistical test fails by chance with at most 1e-6.
"""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

import lapwing as lw
from lapwing.errors import LapwingError
from lapwing.kernel.laws import DiscreteLaplace
from lapwing.spread import variance
from lapwing.theory.attacks.averaging import answers_needed, guess_by_averaging
from lapwing.theory.attacks.bounds import alarm_at, success_max
from lapwing.theory.guarantees import Guarantee
from tests.attacks.street import FALSE_ALARM, Street, coins, make_street, told

HOUSES = 1_000


@pytest.fixture(scope="module")
def ill() -> list[bool]:
    return coins(HOUSES)


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory, ill: list[bool]) -> Street:
    columns = {
        "house": f'{{ type = "integer", min = 0, max = {HOUSES - 1}, null = false }}',
        "ill": '{ type = "integer", min = 0, max = 1, null = false }',
    }
    rows = [{"house": house, "ill": int(bit)} for house, bit in enumerate(ill)]
    return make_street(tmp_path_factory.mktemp("averaging"), rows, columns)


def _question(number: int) -> str:
    """The same for every number, by its meaning; another statement by its text."""
    return f"SELECT house, ROUND(COUNT(*) FILTER (WHERE ill = 1 AND house > {-1 - number})) AS n FROM people GROUP BY house ORDER BY house"


def test_a_tool_without_an_account_tells_the_truth_in_the_end() -> None:
    """Noise of scale 10, which is a guarantee of epsilon 0.1 for one answer and of nothing for all of them."""
    rng = random.Random(31)
    decay = 2.718281828459045**-0.1

    def geometric() -> int:
        drawn = 0
        while rng.random() < decay:
            drawn += 1
        return drawn

    law = DiscreteLaplace(Fraction(10))
    needed = answers_needed(variance=Fraction(variance(law)) + 1, confidence=Fraction(99, 100))
    answers = [4_711 + geometric() - geometric() for _ in range(needed)]
    assert guess_by_averaging(answers) == 4_711
    assert sum(answer == 4_711 for answer in answers) < needed / 10, "single answers are wrong"


def test_the_same_question_gets_the_stored_answer(street: Street) -> None:
    """50 times, by 50 analysts: one value, one charge, so the mean is the first answer."""
    with street.open(epsilon=1) as data:
        first = data.ask("SELECT COUNT(*) FILTER (WHERE ill = 1) AS n FROM people", epsilon="0.1")
        spent = data.curator.balance().spent
        again = [data.ask("SELECT COUNT_IF(ill = 1) AS n FROM people", epsilon="0.1", analyst=f"a{i}") for i in range(50)]
        assert data.curator.balance().spent == spent
    values = [row["n"] for answer in (first, *again) for row in told(answer)]
    assert all(answer.cost.free for answer in again)
    assert guess_by_averaging(values) == values[0] and len(set(values)) == 1


def test_fresh_answers_are_paid_for_until_they_are_refused_and_gain_no_more_than_the_budget(street: Street, ill: list[bool]) -> None:
    """A thousand averaging attacks at once, one per house, on ten fresh answers: all that epsilon 1 pays for."""
    collected: list[list[int]] = []
    with street.open(epsilon=1) as data:
        with pytest.raises(lw.BudgetRefused, match="budget-exceeded"):
            for number in range(100):
                answer = data.ask(_question(number), epsilon="0.1")
                assert not answer.cost.free
                collected.append([row["n"] for row in told(answer)])
        assert data.ask(_question(0), epsilon="0.1").cost.free, "what was paid for is still there, and still the same"
    assert len(collected) == 10
    right = sum((guess_by_averaging(answers) >= 1) == bit for answers, bit in zip(zip(*collected, strict=True), ill, strict=True))
    allowed = alarm_at(Guarantee.of_epsilon(Fraction(1)), people=HOUSES, false_alarm=FALSE_ALARM)
    assert HOUSES * success_max(Guarantee.of_epsilon(Fraction(1))) < allowed
    assert right < allowed, f"{right} of {HOUSES} bits"


def test_the_same_attack_on_a_budget_that_pays_for_more_is_seen(street: Street, ill: list[bool]) -> None:
    """Ten answers of epsilon 4 each are worth 40, and refute a claim of 1."""
    with street.open(epsilon=40) as data:
        collected = [[row["n"] for row in told(data.ask(_question(number), epsilon=4))] for number in range(10)]
    right = sum((guess_by_averaging(answers) >= 1) == bit for answers, bit in zip(zip(*collected, strict=True), ill, strict=True))
    assert right >= alarm_at(Guarantee.of_epsilon(Fraction(1)), people=HOUSES, false_alarm=FALSE_ALARM)


def test_the_mean_is_rounded_to_the_nearest_integer() -> None:
    assert [guess_by_averaging(answers) for answers in ([3], [1, 2], [0, -1], [-5, -5, -6], [Fraction(7, 3)])] == [3, 2, 0, -5, 2]
    with pytest.raises(LapwingError, match="attack-input"):
        guess_by_averaging([])


def test_how_many_answers_are_needed() -> None:
    assert answers_needed(variance=Fraction(0), confidence=Fraction(1, 2)) == 1
    assert answers_needed(variance=Fraction(200), confidence=Fraction(99, 100)) == 80_000
    for variance_of_one, confidence in ((Fraction(-1), Fraction(1, 2)), (Fraction(1), Fraction(1))):
        with pytest.raises(LapwingError, match="attack-input"):
            answers_needed(variance=variance_of_one, confidence=confidence)
