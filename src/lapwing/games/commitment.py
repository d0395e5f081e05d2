"""Exact truthfulness without money: a private mechanism, mixed with one that holds people to their reports.

After an outcome people *react*: they walk to a facility, take a road, buy. The *commitment mechanism* draws an outcome uniformly, and makes
everybody react as if the reported type were the true one. A liar may have to react badly, so a lie costs at least the *gap*, whatever the
others do. With a private mechanism, a lie can gain a little. With probability ``share`` run the first, else the second; if
``share * gap >= (1 - share) * largest gain``, no lie pays (Nissim, Smorodinsky and Tennenholtz 2012; Dwork and Roth 2014, section 10.2.2).

It must be possible to impose a reaction: somebody must be able to keep people away from the facility that they prefer.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import Generic, Protocol, TypeVar

from lapwing.errors import LapwingError
from lapwing.games.exponentials import ExactNumber, SumOfExponentials, rational, total
from lapwing.games.mechanism import require_types
from lapwing.games.witnesses import written
from lapwing.kernel.numbers import require_exact

Type = TypeVar("Type", bound=Hashable)
Type_contra = TypeVar("Type_contra", contravariant=True, bound=Hashable)
Outcome = TypeVar("Outcome", bound=Hashable)
Reaction = TypeVar("Reaction", bound=Hashable)


class ReactionGame(Protocol[Type_contra, Outcome, Reaction]):
    """A mechanism after whose outcome everybody chooses a reaction, on which utilities depend."""

    @property
    def name(self) -> str:
        """The name in reports."""
        ...

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The outcomes that it can draw."""
        ...

    def reaction(self, type_: Type_contra, outcome: Outcome) -> Reaction:
        """The best reaction of this type; ties are broken by a public rule."""
        ...

    def worth(self, type_: Type_contra, outcome: Outcome, reaction: Reaction) -> Fraction:
        """The utility of a reaction."""
        ...

    def weights(self, reports: Sequence[Type_contra]) -> Sequence[SumOfExponentials]:
        """Weights of the outcomes."""
        ...

    def objective(self, reports: Sequence[Type_contra]) -> Sequence[Fraction]:
        """The value of each outcome to the designer."""
        ...


@dataclass(frozen=True, slots=True)
class Gap(Generic[Type]):
    """The smallest cost of a lie when people are held to it, with the truth and the lie that attain it."""

    amount: Fraction
    truth: Type
    lie: Type


def _costs(game: ReactionGame[Type, Outcome, Reaction], truth: Type, lie: Type) -> list[Fraction]:
    """The cost, for each outcome, of having to react as another type would."""
    return [
        game.worth(truth, outcome, game.reaction(truth, outcome)) - game.worth(truth, outcome, game.reaction(lie, outcome))
        for outcome in game.outcomes
    ]


def expected_gap(game: ReactionGame[Type, Outcome, Reaction], types: Sequence[Type]) -> Gap[Type]:
    """The least expected cost of a lie under the commitment mechanism, over all truths and lies. It does not depend on the others."""
    cases = ((truth, lie, _costs(game, truth, lie)) for truth, lie in permutations(require_types(types, 1), 2))
    return min((Gap(sum(costs, Fraction(0)) / len(costs), truth, lie) for truth, lie, costs in cases), key=lambda gap: gap.amount)


def largest_cost_gap(game: ReactionGame[Type, Outcome, Reaction], types: Sequence[Type]) -> Gap[Type]:
    """The least, over truths and lies, of the largest cost over outcomes: what textbooks call the gap of an environment.

    At least one outcome has that cost, and is drawn with probability 1 / |outcomes|; so :func:`expected_gap` is at least that share of it.
    """
    cases = ((truth, lie, _costs(game, truth, lie)) for truth, lie in permutations(require_types(types, 1), 2))
    return min((Gap(max(costs), truth, lie) for truth, lie, costs in cases), key=lambda gap: gap.amount)


def least_share(*, gap: Fraction, gain: ExactNumber) -> ExactNumber:
    """The least share of the commitment mechanism with ``share * gap >= (1 - share) * gain``: ``gain / (gain + gap)``."""
    require_exact(gap)
    if gap <= 0 or gain.sign() < 0:
        raise LapwingError("game-invalid", "the gap must be positive, and the largest gain must not be negative")
    return gain / (gain + gap)


def is_truthful_share(share: Fraction, *, gap: Fraction, gain: ExactNumber) -> bool:
    """Whether ``share * gap >= (1 - share) * gain``, decided exactly."""
    require_exact(share, gap)
    if not 0 <= share <= 1:
        raise LapwingError("game-invalid", "a share must be between 0 and 1")
    return gain * (1 - Fraction(share)) <= share * gap


@dataclass(frozen=True, slots=True)
class HeldToReports(Generic[Outcome]):
    """An outcome after which everybody must react as the reported type would."""

    outcome: Outcome

    def __str__(self) -> str:
        return f"{written(self.outcome)}, held to the report"


class CommitmentMixture(Generic[Type, Outcome, Reaction]):
    """The commitment mechanism with probability ``share``, else ``game``. With share 1 it is the commitment mechanism alone."""

    def __init__(self, game: ReactionGame[Type, Outcome, Reaction], *, share: Fraction) -> None:
        require_exact(share)
        if not 0 <= share <= 1:
            raise LapwingError("game-invalid", "a share must be between 0 and 1")
        self.game = game
        self.share = Fraction(share)
        self.outcomes: tuple[Outcome | HeldToReports[Outcome], ...] = (
            *game.outcomes,
            *(HeldToReports(outcome) for outcome in game.outcomes),
        )
        self._worth: dict[tuple[Type, Type], tuple[Fraction, ...]] = {}

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"{self.game.name}, and with probability {self.share} a random outcome where all are held to their reports"

    def weights(self, reports: Sequence[Type]) -> tuple[SumOfExponentials, ...]:
        """``(1 - share) * w / sum(w)`` and ``share / |outcomes|``, both times the sum and the number of outcomes."""
        if self.share == 1:  # the reports do not matter, so the weights must not depend on them
            return tuple(rational(int(isinstance(outcome, HeldToReports))) for outcome in self.outcomes)
        free = tuple(self.game.weights(reports))
        held = total(free).times(self.share)
        number = Fraction(len(free))
        return (*(weight.times((1 - self.share) * number) for weight in free), *(held for _ in free))

    def honest(self, type_: Type, others: Sequence[Type]) -> tuple[Fraction, ...]:
        """Honest people react as their type would anyway."""
        return self.lying(type_, type_, others)

    def lying(self, type_: Type, report: Type, others: Sequence[Type]) -> tuple[Fraction, ...]:
        """Liars react as they like, unless they are held to the lie."""
        game, known = self.game, self._worth.get((type_, report))
        if known is None:
            free = tuple(game.worth(type_, outcome, game.reaction(type_, outcome)) for outcome in game.outcomes)
            held = tuple(game.worth(type_, outcome, game.reaction(report, outcome)) for outcome in game.outcomes)
            known = self._worth[type_, report] = free + held
        return known

    def objective(self, reports: Sequence[Type]) -> tuple[Fraction, ...]:
        """The objective of the game: holding people to true reports does not reduce it."""
        values = tuple(self.game.objective(reports))
        return values + values


def commitment_mechanism(game: ReactionGame[Type, Outcome, Reaction]) -> CommitmentMixture[Type, Outcome, Reaction]:
    """The commitment mechanism alone: truthful but useless, because its outcome does not depend on the reports."""
    return CommitmentMixture(game, share=Fraction(1))
