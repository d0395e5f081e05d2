"""Private choice of an equilibrium of a large game.

People drive to work. The type of a person says how long a detour each road is. A road is slower the more people take it, so the best road
depends on what the others do, and there may be many equilibria: somebody must recommend one. Everybody reports a type. The recommender uses
the exponential mechanism to choose a *rule* (for each type, the share of its people on each road) that nobody regrets much to follow, and
recommends to each person a road drawn by the rule. Because the rule is private, a false report hardly changes it; because it is nearly an
equilibrium, deviating from the recommendation gains little. So honest reporting and following the recommendation are nearly an equilibrium
themselves, the more so the more people there are (Kearns, Pai, Roth and Ullman 2014; Dwork and Roth 2014, section 10.2.1).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Generic, TypeAlias, TypeVar

from lapwing.errors import LapwingError
from lapwing.games.exponentials import SumOfExponentials
from lapwing.games.mechanism import ExponentialChoice
from lapwing.kernel.numbers import require_exact

Type = TypeVar("Type", bound=Hashable)

Shares: TypeAlias = tuple[Fraction, ...]
"""How likely each road is recommended."""


WORTHS_REMEMBERED_MAX = 2**10
"""Most tables of the worths of roads that are cached."""


class RoadGame(Generic[Type]):
    """The worth of a road: ``1 - detour - slope * (share of the others on it)``. Utilities are in [0, 1].

    One person more or less on a road changes its worth to others by ``slope / (n - 1)``: the game is *large* if ``n`` is.
    """

    def __init__(self, detours: Mapping[Type, Sequence[Fraction]], *, slope: Fraction) -> None:
        require_exact(slope, *(detour for own in detours.values() for detour in own))
        self.detours = {type_: tuple(Fraction(detour) for detour in own) for type_, own in detours.items()}
        self.slope = Fraction(slope)
        numbers = {len(own) for own in self.detours.values()}
        worst = max((detour for own in self.detours.values() for detour in own), default=Fraction(2))
        if len(numbers) != 1 or numbers < {1} or min(numbers) < 2 or slope < 0 or worst + slope > 1:
            raise LapwingError(
                "game-invalid", "all types must have the same roads, at least two, and the worth of a road must be between 0 and 1"
            )
        if any(detour < 0 for own in self.detours.values() for detour in own):
            raise LapwingError("game-invalid", "a detour must not be negative")
        self.roads = numbers.pop()

    def worth(self, type_: Type, road: int, load: Fraction) -> Fraction:
        """The worth of a road if this share of the others takes it."""
        return 1 - self.detours[type_][road] - self.slope * load

    def payoff(self, types: Sequence[Type], player: int, roads: Sequence[int]) -> Fraction:
        """The payoff to a player if the players take these roads, for :mod:`lapwing.games.equilibria`."""
        others = [road for other, road in enumerate(roads) if other != player]
        return self.worth(types[player], roads[player], Fraction(others.count(roads[player]), max(1, len(others))))


class EquilibriumSelection(Generic[Type]):
    """The recommender. An outcome is a rule: for each type, in the order of the game, the chance of each road.

    Chances are multiples of ``1 / steps``. One report replaced moves the share of people on a road by at most ``1 / n``, and so the regret
    of each type, which is a difference of two averages, by at most ``2 slope / n``. ``obedient`` liars follow the recommendation after a
    false report; others then take the road that is best for them, given the rule.
    """

    def __init__(self, game: RoadGame[Type], n: int, *, epsilon: Fraction, steps: int = 2, obedient: bool = False) -> None:
        if type(n) is not int or n < 2 or type(steps) is not int or steps < 1:
            raise LapwingError("game-invalid", "the game needs at least two people, and steps must be at least 1")
        self.game = game
        self.n = n
        self.obedient = obedient
        self.types = tuple(game.detours)
        splits = [split for split in product(range(steps + 1), repeat=game.roads) if sum(split) == steps]
        shares: list[Shares] = [tuple(Fraction(part, steps) for part in split) for split in splits]
        self.outcomes: tuple[tuple[Shares, ...], ...] = tuple(product(shares, repeat=len(self.types)))
        self._known: dict[tuple[Type, tuple[int, ...]], list[tuple[Fraction, ...]]] = {}
        sensitivity = 2 * game.slope / n
        self.choice = ExponentialChoice(epsilon=epsilon, sensitivity=sensitivity if sensitivity else Fraction(1))

    @property
    def name(self) -> str:
        """The name of the mechanism in reports."""
        return f"choice among {len(self.outcomes)} rules for {self.game.roads} roads"

    def _worths(self, type_: Type, people: Sequence[Type]) -> list[tuple[Fraction, ...]]:
        """For each rule, the worth of each road to a type if these people follow the rule."""
        key = type_, tuple(sorted(self.types.index(other) for other in people))
        known = self._known.get(key)
        if known is None:
            counts, number = [people.count(other) for other in self.types], max(1, len(people))
            known = [
                tuple(
                    self.game.worth(
                        type_, road, sum((count * own[road] for count, own in zip(counts, rule, strict=True)), Fraction(0)) / number
                    )
                    for road in range(self.game.roads)
                )
                for rule in self.outcomes
            ]
            if len(self._known) >= WORTHS_REMEMBERED_MAX:
                self._known.clear()
            self._known[key] = known
        return known

    def _followed(self, type_: Type, rule: tuple[Shares, ...], worths: Sequence[Fraction]) -> Fraction:
        shares = rule[self.types.index(type_)]
        return sum((share * worth for share, worth in zip(shares, worths, strict=True) if share), Fraction(0))

    def regrets(self, reports: Sequence[Type]) -> tuple[Fraction, ...]:
        """For each rule, the most that a person of any type would gain by not following it, if all others do."""
        worst = [Fraction(0)] * len(self.outcomes)
        for type_ in self.types:
            for place, (rule, worths) in enumerate(zip(self.outcomes, self._worths(type_, reports), strict=True)):
                worst[place] = max(worst[place], max(worths) - self._followed(type_, rule, worths))
        return tuple(worst)

    def objective(self, reports: Sequence[Type]) -> tuple[Fraction, ...]:
        """The score of a rule: less regret is better."""
        return tuple(-regret for regret in self.regrets(reports))

    def weights(self, reports: Sequence[Type]) -> tuple[SumOfExponentials, ...]:
        """The exponential mechanism over the score."""
        return self.choice.weights(self.objective(reports))

    def honest(self, type_: Type, others: Sequence[Type]) -> tuple[Fraction, ...]:
        """Drivers follow the recommendation."""
        return tuple(self._followed(type_, rule, worths) for rule, worths in zip(self.outcomes, self._worths(type_, others), strict=True))

    def lying(self, type_: Type, report: Type, others: Sequence[Type]) -> tuple[Fraction, ...]:
        """Drivers follow the recommendation for the reported type or, if not obedient, choose the best road given the rule."""
        rules = zip(self.outcomes, self._worths(type_, others), strict=True)
        return tuple(self._followed(report, rule, worths) if self.obedient else max(worths) for rule, worths in rules)
