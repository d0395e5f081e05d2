"""Differencing (D1): everybody, minus everybody else. Exact counts give the target away; paid-for noise leaves what the bound says.

A thousand towns with one target each make a thousand attacks out of two statements. Each test fails by chance with at most 1e-6.
"""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path

import pytest
from scipy import stats

import lapwing as lw
from lapwing.kernel.laws import DiscreteLaplace
from lapwing.spread import pmf
from lapwing.theory.attacks.bounds import alarm_at, success_max
from lapwing.theory.attacks.differencing import guess_by_difference
from lapwing.theory.guarantees import Guarantee
from tests.attacks.street import FALSE_ALARM, Street, coins, make_street, told

TOWNS = 1_000
EVERYBODY = "SELECT town, ROUND(COUNT(*) FILTER (WHERE ill = 1)) AS n FROM people GROUP BY town ORDER BY town"
EVERYBODY_ELSE = "SELECT town, ROUND(COUNT(*) FILTER (WHERE ill = 1 AND job <> 1)) AS n FROM people GROUP BY town ORDER BY town"
"""Job 1 is the mayor's, and everybody knows the mayor."""


@pytest.fixture(scope="module")
def mayors() -> list[bool]:
    return coins(TOWNS)


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory, mayors: list[bool]) -> Street:
    rng = random.Random(21)
    rows = [{"town": town, "job": 1, "ill": int(ill)} for town, ill in enumerate(mayors)]
    rows += [{"town": rng.randrange(TOWNS), "job": rng.randint(2, 9), "ill": int(rng.random() < 0.3)} for _ in range(5_000)]
    columns = {
        "town": f'{{ type = "integer", min = 0, max = {TOWNS - 1}, null = false }}',
        "job": '{ type = "integer", min = 1, max = 9, null = false }',
        "ill": '{ type = "integer", min = 0, max = 1, null = false }',
    }
    return make_street(tmp_path_factory.mktemp("differencing"), rows, columns)


def _right(everybody: list[dict[str, int]], others: list[dict[str, int]], mayors: list[bool]) -> int:
    pairs = zip(everybody, others, mayors, strict=True)
    assert [row["town"] for row in everybody] == [row["town"] for row in others] == list(range(TOWNS))
    return sum(guess_by_difference(all_of["n"], rest["n"]) == ill for all_of, rest, ill in pairs)


def _right_through_lapwing(street: Street, mayors: list[bool], *, epsilon: int, delta: str = "0") -> int:
    """How many mayors are guessed right from two statements that use up the whole of a budget."""
    with street.open(epsilon=epsilon, delta=delta) as data:
        half = Fraction(epsilon, 2)
        right = _right(told(data.ask(EVERYBODY, epsilon=half)), told(data.ask(EVERYBODY_ELSE, epsilon=half)), mayors)
        if delta == "0":
            with pytest.raises(lw.BudgetRefused, match="budget-exceeded"):
                data.ask("SELECT COUNT(*) AS n FROM people", epsilon="0.001")
    return right


def test_exact_counts_give_every_target_away(street: Street, mayors: list[bool]) -> None:
    assert _right(street.exact(EVERYBODY), street.exact(EVERYBODY_ELSE), mayors) == TOWNS


@pytest.mark.parametrize("delta", ["0", '"2^-40"'])
def test_through_lapwing_no_more_targets_are_guessed_than_the_budget_allows(street: Street, mayors: list[bool], delta: str) -> None:
    """Epsilon 1 in all: any attack is right with a chance of at most 73 %."""
    allowed = alarm_at(Guarantee.of_epsilon(Fraction(1), Fraction(delta != "0", 2**40)), people=TOWNS, false_alarm=FALSE_ALARM)
    assert TOWNS * success_max(Guarantee.of_epsilon(Fraction(1))) < allowed < TOWNS
    assert _right_through_lapwing(street, mayors, epsilon=1, delta=delta) < allowed


def test_the_same_test_sees_answers_that_are_less_private_than_claimed(street: Street, mayors: list[bool]) -> None:
    """Answers of epsilon 12 held against a claim of 1: were the noise too small, the test above would fail."""
    allowed = alarm_at(Guarantee.of_epsilon(Fraction(1)), people=TOWNS, false_alarm=FALSE_ALARM)
    assert _right_through_lapwing(street, mayors, epsilon=12) >= allowed


def test_the_attack_gains_what_its_noise_predicts(street: Street, mayors: list[bool]) -> None:
    """Two sides: not more than the law of the noise says, and not less either. A mayor who is replaced moves two cells: scale 2 / (8/2)."""
    law = DiscreteLaplace(Fraction(1, 2))
    chance = [pmf(law, z) for z in range(-60, 61)]
    nearer = sum(p * sum(chance[: i + 1]) for i, p in enumerate(chance))  # P[Z2 <= Z1], the chance of "ill" for a mayor who is
    assert 0.65 < nearer < float(success_max(Guarantee.of_epsilon(Fraction(8))))
    low, high = stats.binom.ppf([float(FALSE_ALARM) / 2, 1 - float(FALSE_ALARM) / 2], TOWNS, nearer)
    assert low <= _right_through_lapwing(street, mayors, epsilon=8) <= high


def test_the_guess_is_the_nearer_of_the_two_counts() -> None:
    assert guess_by_difference(8, 7) and not guess_by_difference(7, 7)
    assert guess_by_difference(Fraction(38, 5), 7) and not guess_by_difference(7.4, 7) and not guess_by_difference(3, 9)


def test_a_question_that_differs_in_one_person_is_not_refused(tmp_path: Path) -> None:
    """Refusing such pairs would be an answer too, and could be got around: what protects is the price."""
    rows = [{"town": 0, "job": job, "ill": 1} for job in range(1, 10)]
    columns = {
        "town": '{ type = "integer", min = 0, max = 0, null = false }',
        "job": '{ type = "integer", min = 1, max = 9, null = false }',
        "ill": '{ type = "integer", min = 0, max = 1, null = false }',
    }
    with make_street(tmp_path / "small", rows, columns).open(epsilon=1) as data:
        first, second = data.ask(EVERYBODY, epsilon="0.5"), data.ask(EVERYBODY_ELSE, epsilon="0.5")
    assert not first.cost.free and not second.cost.free
