"""Two libraries of game theory agree: pygambit (exact, any number of players) and nashpy (two players, floats)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

import numpy
import pytest

from lapwing.games import DigitalGoodsAuction, EquilibriumSelection, RoadGame, certify
from lapwing.games.equilibria import pure_equilibria, regret
from lapwing.games.witnesses import WeightedOutcomes
from tests.games.test_roads import DETOURS, GAME

gambit = pytest.importorskip("pygambit")
nashpy = pytest.importorskip("nashpy")


Table: TypeAlias = Callable[[int, tuple[int, ...]], Fraction]


def game_of_gambit(players: int, actions: int, payoff: Table) -> Any:
    tables = [numpy.empty((actions,) * players, dtype=object) for _ in range(players)]
    for profile in product(range(actions), repeat=players):
        for player, table in enumerate(tables):
            table[profile] = payoff(player, profile)
    return gambit.StrategicGame.from_arrays(*tables)


def regret_of_gambit(game: Any, actions: int, profile: tuple[int, ...]) -> Fraction:
    """Everybody plays one action for certain, in exact arithmetic."""
    certain = [[Fraction(int(index == action)) for index in range(actions)] for action in profile]
    return Fraction(str(game.mixed_strategy_profile(data=certain, rational=True).max_regret()))


TYPES = [("west", "east"), ("any", "any"), ("west", "west", "east"), ("any", "any", "east"), ("west", "any", "any", "east")]


@pytest.mark.parametrize("types", TYPES, ids="-".join)
def test_equilibria_and_regrets_are_those_of_gambit(types: tuple[str, ...]) -> None:
    def payoff(player: int, roads: tuple[int, ...]) -> Fraction:
        return GAME.payoff(types, player, roads)

    actions = [(0, 1)] * len(types)
    game = game_of_gambit(len(types), 2, payoff)
    found = {
        tuple([equilibrium[player][strategy] for strategy in game.get_strategies(player)].index(1) for player in game.players)
        for equilibrium in gambit.nash.enumpure_solve(game).equilibria
    }
    assert found == set(pure_equilibria(payoff, actions))
    for profile in product((0, 1), repeat=len(types)):
        assert regret_of_gambit(game, 2, profile) == regret(payoff, actions, profile)


@pytest.mark.parametrize("types", [t for t in TYPES if len(t) == 2], ids="-".join)
def test_equilibria_of_two_players_are_those_of_nashpy(types: tuple[str, ...]) -> None:
    tables = [[[float(GAME.payoff(types, player, (row, column))) for column in (0, 1)] for row in (0, 1)] for player in (0, 1)]
    pure = set()
    for first, second in nashpy.Game(*tables).support_enumeration():
        if max(first) == max(second) == 1:
            pure.add((int(first.argmax()), int(second.argmax())))
        else:  # A mixed one: both roads are equally good to whoever mixes, in our arithmetic too.
            share = Fraction(float(second[0])).limit_denominator(1000)
            assert GAME.worth(types[0], 0, share) == GAME.worth(types[0], 1, 1 - share)
    assert pure == set(pure_equilibria(lambda player, roads: GAME.payoff(types, player, roads), [(0, 1)] * 2))


def test_the_largest_gain_is_the_largest_regret_of_truth_in_the_game_of_reports() -> None:
    """An auction with laws that are fractions, as a game in which reports are the actions, one game for each profile of types."""
    prices = tuple(Fraction(price) for price in (1, 2, 3))
    auction, players = DigitalGoodsAuction(prices, factor=Fraction(3, 2)), 3
    laws = {
        reports: WeightedOutcomes(auction.outcomes, auction.weights([prices[report] for report in reports]))
        for reports in product(range(3), repeat=players)
    }
    largest = Fraction(0)
    for types in product(range(3), repeat=players):

        def payoff(player: int, reports: tuple[int, ...], types: tuple[int, ...] = types) -> Fraction:
            amount = laws[reports].expected(auction.honest(prices[types[player]], ())).fraction
            assert amount is not None
            return amount

        game = game_of_gambit(players, 3, payoff)
        largest = max(largest, regret_of_gambit(game, 3, types))
    assert certify(auction, prices, players).largest_gain == largest > 0


def test_a_rule_without_regret_is_an_equilibrium_for_gambit() -> None:
    """Two people; the rule sends west to the first road and east to the second. Its score is 0, and gambit finds no better road."""
    detours = {name: DETOURS[name] for name in ("west", "east")}
    selection = EquilibriumSelection(RoadGame(detours, slope=Fraction(1, 4)), 2, epsilon=Fraction(1), steps=1)
    scores = dict(zip(selection.outcomes, selection.objective(("west", "east")), strict=True))
    apart = ((Fraction(1), Fraction(0)), (Fraction(0), Fraction(1)))
    assert scores[apart] == 0
    game = game_of_gambit(2, 2, lambda player, roads: selection.game.payoff(("west", "east"), player, roads))
    assert regret_of_gambit(game, 2, (0, 1)) == 0
