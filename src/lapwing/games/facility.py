"""Facility location: where to build, when people report where they live.

People live at spots on a street. Some facilities are built at distinct spots; everybody walks to the nearest. The spots are chosen
with the exponential mechanism: the score of a choice is the sum over people of ``1 - distance to the nearest facility``, in units of the
length of the street, so one report replaced moves it by at most 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

from lapwing.errors import LapwingError
from lapwing.games.exponentials import SumOfExponentials
from lapwing.games.mechanism import ExponentialChoice
from lapwing.kernel.numbers import require_exact


class FacilityLocation:
    """``spots`` are places on a street, which are also the types; an outcome is a set of ``facilities`` of them.

    With ``epsilon``: weight ``exp(epsilon * score / 2)``. With ``factor``: weight ``factor ** (score * length)``, for integer spots.
    """

    def __init__(
        self, spots: Sequence[Fraction], *, facilities: int, epsilon: Fraction | None = None, factor: Fraction | None = None
    ) -> None:
        require_exact(*spots)
        if len(set(spots)) != len(spots) or len(spots) < 2 or type(facilities) is not int or not 1 <= facilities <= len(spots):
            raise LapwingError("game-invalid", "a street needs at least two distinct spots, and each facility needs its own spot")
        self.spots = tuple(sorted(Fraction(spot) for spot in spots))
        self.length = self.spots[-1] - self.spots[0]
        self.outcomes: tuple[tuple[Fraction, ...], ...] = tuple(combinations(self.spots, facilities))
        self.choice = ExponentialChoice(epsilon=epsilon, factor=factor)
        self._worth: dict[Fraction, tuple[Fraction, ...]] = {}

    @property
    def name(self) -> str:
        """The name of the mechanism in reports."""
        return f"location of {len(self.outcomes[0])} facilities on {len(self.spots)} spots"

    def reaction(self, type_: Fraction, outcome: tuple[Fraction, ...]) -> Fraction:
        """The nearest facility; of two equally near ones, the one at the smaller coordinate."""
        return min(outcome, key=lambda facility: (abs(type_ - facility), facility))

    def worth(self, type_: Fraction, outcome: tuple[Fraction, ...], reaction: Fraction) -> Fraction:
        """``1 - distance / length`` for the chosen facility."""
        return 1 - abs(type_ - reaction) / self.length

    def objective(self, reports: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """The sum of all utilities."""
        return tuple(sum(column, Fraction(0)) for column in zip(*(self.honest(report, ()) for report in reports), strict=True))

    def weights(self, reports: Sequence[Fraction]) -> tuple[SumOfExponentials, ...]:
        """The weights of the exponential mechanism with the objective as score."""
        scores = self.objective(reports)
        return self.choice.weights(scores if self.choice.factor is None else tuple(score * self.length for score in scores))

    def honest(self, type_: Fraction, others: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """The utility of walking to the nearest facility."""
        if type_ not in self._worth:
            self._worth[type_] = tuple(self.worth(type_, outcome, self.reaction(type_, outcome)) for outcome in self.outcomes)
        return self._worth[type_]

    def lying(self, type_: Fraction, report: Fraction, others: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """The same: reports are not binding."""
        return self.honest(type_, others)
