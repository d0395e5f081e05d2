"""Reconstruction (D1): 640 counts of overlapping sets and linear programming give every bit away, unless the budget stops them.

Each statistical test fails by chance with at most 1e-6.
"""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from scipy import optimize

import lapwing as lw
from lapwing.errors import LapwingError
from lapwing.theory.attacks.bounds import alarm_at, success_max
from lapwing.theory.attacks.reconstruction import SubsetQuestion, agreements, reconstruct, subset_questions
from lapwing.theory.guarantees import Guarantee
from tests.attacks.street import FALSE_ALARM, Street, coins, make_street, told

PEOPLE = 211
STATEMENTS = 10
COUNTS_EACH = 64
HOUSES = range(PEOPLE)
QUESTIONS = subset_questions(modulus=PEOPLE, count=STATEMENTS * COUNTS_EACH)


def _statement(number: int) -> str:
    asked = QUESTIONS[number * COUNTS_EACH : (number + 1) * COUNTS_EACH]
    counts = (f"ROUND(COUNT(*) FILTER (WHERE {question.condition('house')} AND ill = 1)) AS q{i}" for i, question in enumerate(asked))
    return f"SELECT {', '.join(counts)} FROM people"


TEXTS = tuple(_statement(number) for number in range(STATEMENTS))


@pytest.fixture(scope="module")
def ill() -> list[bool]:
    return coins(PEOPLE)


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory, ill: list[bool]) -> Street:
    columns = {
        "house": f'{{ type = "integer", min = 0, max = {PEOPLE - 1}, null = false }}',
        "ill": '{ type = "integer", min = 0, max = 1, null = false }',
    }
    return make_street(tmp_path_factory.mktemp("reconstruction"), [{"house": h, "ill": int(ill[h])} for h in HOUSES], columns)


@pytest.fixture(scope="module")
def exact(street: Street) -> list[int]:
    return [count for text in TEXTS for count in street.exact(text)[0].values()]


def _answers(street: Street, *, epsilon: int, delta: str, share: Fraction) -> list[int]:
    """The same statements through Lapwing, each at a share of the budget's epsilon; afterwards there is nothing left for an eleventh."""
    with street.open(epsilon=epsilon, delta=delta) as data:
        found = [count for text in TEXTS for count in told(data.ask(text, epsilon=epsilon * share))[0].values()]
        with pytest.raises(lw.BudgetRefused, match="budget-exceeded"):
            data.ask("SELECT COUNT(*) AS n FROM people", epsilon=epsilon * share)
    return found


def test_exact_answers_give_every_bit_away(exact: list[int], ill: list[bool]) -> None:
    assert agreements(reconstruct(QUESTIONS, exact, attributes=HOUSES), ill) == PEOPLE


@pytest.mark.parametrize(("error", "share"), [(1, 0.97), (2, 0.92)])
def test_small_errors_do_not_help(exact: list[int], ill: list[bool], error: int, share: float) -> None:
    """Rounding, or a little noise of any kind, on every answer: nearly all bits come out (measured: 100 % and 97 to 99 %)."""
    rng = random.Random(51)
    blurred = [answer + rng.randint(-error, error) for answer in exact]
    assert blurred != exact
    assert agreements(reconstruct(QUESTIONS, blurred, attributes=HOUSES), ill) >= share * PEOPLE


@pytest.mark.parametrize(("delta", "share"), [("0", Fraction(1, 10)), ('"2^-40"', Fraction(3, 10))], ids=["pure", "approximate"])
def test_through_lapwing_the_same_statements_give_no_more_than_the_budget_allows(
    street: Street, ill: list[bool], delta: str, share: Fraction
) -> None:
    """One budget of epsilon 1 for all 640 counts: any attack is right about each bit with a chance of at most 73 %."""
    allowed = alarm_at(Guarantee.of_epsilon(Fraction(1), Fraction(delta != "0", 2**40)), people=PEOPLE, false_alarm=FALSE_ALARM)
    assert PEOPLE * success_max(Guarantee.of_epsilon(Fraction(1))) < allowed < 0.95 * PEOPLE
    answers = _answers(street, epsilon=1, delta=delta, share=share)
    assert agreements(reconstruct(QUESTIONS, answers, attributes=HOUSES), ill) < allowed


def test_a_budget_that_protects_nobody_protects_nobody(street: Street, ill: list[bool]) -> None:
    """Epsilon 1,000 is a promise of nothing: the bits come out, and the test above would see it."""
    answers = _answers(street, epsilon=1_000, delta="0", share=Fraction(1, 10))
    right = agreements(reconstruct(QUESTIONS, answers, attributes=HOUSES), ill)
    assert right >= 0.95 * PEOPLE
    assert right >= alarm_at(Guarantee.of_epsilon(Fraction(1)), people=PEOPLE, false_alarm=FALSE_ALARM)


DIRECT = "SELECT house, ROUND(COUNT(*) FILTER (WHERE ill = 1)) AS n FROM people GROUP BY house ORDER BY house"


def _right_directly(street: Street, ill: list[bool], *, epsilon: int) -> int:
    with street.open(epsilon=epsilon) as data:
        counts = [row["n"] for row in told(data.ask(DIRECT, epsilon=epsilon))]
    return agreements([count >= 1 for count in counts], ill)


def test_asking_for_each_person_is_accepted_and_gains_no_more_either(street: Street, ill: list[bool]) -> None:
    """No question is forbidden. One cell per person is a better attack on noisy answers than the linear program, and has the same bound."""
    allowed = alarm_at(Guarantee.of_epsilon(Fraction(1)), people=PEOPLE, false_alarm=FALSE_ALARM)
    assert [row["n"] for row in street.exact(DIRECT)] == [int(bit) for bit in ill]
    assert _right_directly(street, ill, epsilon=1) < allowed <= _right_directly(street, ill, epsilon=12)


def test_questions_are_sets_of_about_half_in_sql_as_in_python(street: Street) -> None:
    assert len(set(QUESTIONS)) == len(QUESTIONS)
    assert len(set(subset_questions(modulus=7, count=42))) == 42
    for question in QUESTIONS[:: len(QUESTIONS) // 7]:
        inside = [house for house in HOUSES if question.contains(house)]
        assert len(inside) == question.below == PEOPLE // 2
        assert [
            row["house"] for row in street.exact(f"SELECT house FROM people WHERE {question.condition('house')} ORDER BY house")
        ] == inside


def test_a_hand_made_world() -> None:
    """Three people; the sets {0, 1}, {1, 2} and {0, 2} determine everybody. With one wild answer, the least error still fits the rest."""
    questions = [SubsetQuestion(1, 0, 3, 2), SubsetQuestion(1, 2, 3, 2), SubsetQuestion(1, 1, 3, 2)]
    assert [[q.contains(i) for i in range(3)] for q in questions] == [[True, True, False], [False, True, True], [True, False, True]]
    assert reconstruct(questions, [1, 1, 2], attributes=range(3)) == (True, False, True)
    assert reconstruct([*questions, *questions, questions[0]], [1, 1, 2, 1, 1, 2, 50], attributes=range(3)) == (True, False, True)


def test_senseless_input_is_refused() -> None:
    wrong = (
        lambda: subset_questions(modulus=9, count=3),
        lambda: subset_questions(modulus=2, count=1),
        lambda: subset_questions(modulus=5, count=21),
        lambda: subset_questions(modulus=5, count=0),
        lambda: reconstruct(QUESTIONS[:2], [1], attributes=HOUSES),
        lambda: reconstruct(QUESTIONS[:1], [1], attributes=()),
        lambda: agreements([True], []),
    )
    for attempt in wrong:
        with pytest.raises(LapwingError, match="attack-input"):
            attempt()


def test_an_attack_whose_program_is_not_solved_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program always has a solution, so a solver that gives up is put in the place of a real one."""
    monkeypatch.setattr(optimize, "linprog", lambda *given, **more: optimize.OptimizeResult(status=1, x=None))
    questions = subset_questions(modulus=7, count=3)
    with pytest.raises(LapwingError) as error:
        reconstruct(questions, [1, 1, 1], attributes=[0, 1, 2])
    assert error.value.code == "attack-unsolved"
