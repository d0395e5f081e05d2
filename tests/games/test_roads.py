"""Equilibria: regret, and what truth and obedience leave to regret when one is chosen privately."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement

import pytest

from lapwing.errors import LapwingError
from lapwing.games import EquilibriumSelection, ExactNumber, GameHolds, PrivateFor, RoadGame, certify
from lapwing.games.equilibria import Payoff, is_equilibrium, pure_equilibria, regret
from lapwing.games.exponentials import power_of_e

DETOURS = {"west": (Fraction(0), Fraction(1, 4)), "east": (Fraction(1, 4), Fraction(0)), "any": (Fraction(0), Fraction(0))}
GAME = RoadGame(DETOURS, slope=Fraction(1, 2))


def of(*types: str) -> tuple[Payoff[int], list[tuple[int, int]]]:
    return (lambda player, roads: GAME.payoff(types, player, roads)), [(0, 1)] * len(types)


def test_everybody_on_the_near_road_is_an_equilibrium_and_all_on_one_road_is_not() -> None:
    payoff, actions = of("west", "east")
    assert is_equilibrium(payoff, actions, (0, 1))
    # Both on the western road: east would gain a half by the empty road and a quarter by the way; west would gain a quarter.
    assert regret(payoff, actions, (0, 0)) == Fraction(3, 4)
    assert is_equilibrium(payoff, actions, (0, 0), slack=Fraction(3, 4))
    assert not is_equilibrium(payoff, actions, (0, 0), slack=Fraction(1, 2))


def test_there_may_be_many_equilibria_or_one() -> None:
    payoff, actions = of("any", "any")
    assert list(pure_equilibria(payoff, actions)) == [(0, 1), (1, 0)]
    payoff, actions = of("west", "west", "east")
    assert (0, 0, 1) in list(pure_equilibria(payoff, actions, slack=Fraction(1, 10)))


@pytest.mark.parametrize("n", [2, 5, 9])
def test_one_report_moves_a_score_by_no_more_than_claimed_and_some_by_nearly_that(n: int) -> None:
    selection = EquilibriumSelection(GAME, n, epsilon=Fraction(1))
    moves = [
        abs(one - other)
        for others in combinations_with_replacement(selection.types, n - 1)
        for first, second in combinations_with_replacement(selection.types, 2)
        for one, other in zip(selection.objective((*others, first)), selection.objective((*others, second)), strict=True)
    ]
    assert GAME.slope / n < max(moves) <= 2 * GAME.slope / n


@pytest.mark.parametrize("n", [3, 6])
def test_truth_and_obedience_are_within_the_theorem(n: int) -> None:
    """Lies and disobedience gain at most exp(epsilon) (honest + what disobedience alone would gain) - honest."""
    epsilon = Fraction(1, 2)
    selection = EquilibriumSelection(GAME, n, epsilon=epsilon)
    found = certify(selection, selection.types, n)
    assert isinstance(found.check(PrivateFor(epsilon)), GameHolds)
    lie = found.best_lie
    (truth,) = lie.liars
    disobedient = lie.law_honest.expected(selection.lying(truth, truth, lie.others))
    assert lie.expected_lying <= ExactNumber.of(power_of_e(epsilon)) * disobedient
    obedient = EquilibriumSelection(GAME, n, epsilon=epsilon, obedient=True)
    assert certify(obedient, obedient.types, n).largest_gain < found.largest_gain


def test_regret_falls_with_the_number_of_people() -> None:
    gains = []
    for n in (2, 4, 8):
        selection = EquilibriumSelection(GAME, n, epsilon=Fraction(1))
        gains.append(certify(selection, selection.types, n).largest_gain)
    assert gains[0] > gains[1] > gains[2]


def test_obeying_may_be_regretted_without_any_lie() -> None:
    """The worst deviation may be to report the truth and then to drive elsewhere; the witness says so."""
    one_type_each = RoadGame({"a": (Fraction(0), Fraction(1, 2)), "b": (Fraction(0), Fraction(1, 2))}, slope=Fraction(1, 10))
    selection = EquilibriumSelection(one_type_each, 2, epsilon=Fraction(0))
    found = certify(selection, selection.types, 2)
    assert found.best_lie.liars == found.best_lie.reports and "does not do as recommended" in found.best_lie.by_hand()


@pytest.mark.parametrize(
    "act",
    [
        lambda: RoadGame({}, slope=Fraction(0)),
        lambda: RoadGame({"a": (Fraction(0),)}, slope=Fraction(0)),
        lambda: RoadGame({"a": (Fraction(0), Fraction(1)), "b": (Fraction(0),) * 3}, slope=Fraction(0)),
        lambda: RoadGame({"a": (Fraction(0), Fraction(1))}, slope=Fraction(1, 2)),
        lambda: RoadGame({"a": (Fraction(0), Fraction(-1))}, slope=Fraction(1, 2)),
        lambda: EquilibriumSelection(GAME, 1, epsilon=Fraction(1)),
        lambda: EquilibriumSelection(GAME, 3, epsilon=Fraction(1), steps=0),
        lambda: regret(lambda player, profile: Fraction(0), [(0, 1)], (2,)),
    ],
)
def test_what_is_no_game_is_stopped(act: object) -> None:
    assert callable(act)
    with pytest.raises(LapwingError) as error:
        act()
    assert error.value.code == "game-invalid"
