"""The results of an enumeration, and verdicts on claims about them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeAlias, TypeVar

from lapwing.errors import LapwingError
from lapwing.games.exponentials import ExactNumber, power_of_e
from lapwing.games.witnesses import Deviation, LawWitness, LossWitness
from lapwing.kernel.numbers import require_exact

Type = TypeVar("Type", bound=Hashable)
Outcome = TypeVar("Outcome", bound=Hashable)


@dataclass(frozen=True, slots=True)
class PrivateFor:
    """ "No report changes the chance of an outcome by more than a factor exp(epsilon)", for one liar; exp(t epsilon) for t."""

    epsilon: Fraction


@dataclass(frozen=True, slots=True)
class LiesMultiplyBy:
    """ "No lie multiplies an expected utility by more than exp(epsilon)", for one liar; exp(t epsilon) for t. Utilities are >= 0."""

    epsilon: Fraction


@dataclass(frozen=True, slots=True)
class LiesGainAtMost:
    """ "No lie gains more than this." With 0: truth is a dominant strategy."""

    gain: Fraction


@dataclass(frozen=True, slots=True)
class LiesLose:
    """ "Every lie costs something": truth is strictly dominant."""


@dataclass(frozen=True, slots=True)
class LosesAtMost:
    """ "The designer expects to lose at most this", against the best outcome for the true reports."""

    loss: Fraction


GameClaim: TypeAlias = PrivateFor | LiesMultiplyBy | LiesGainAtMost | LiesLose | LosesAtMost


@dataclass(frozen=True, slots=True)
class GameHolds:
    """The claim holds for every profile of the game that was enumerated."""

    claim: GameClaim
    found: ExactNumber

    def __str__(self) -> str:
        return f"holds: {self.claim}; the worst case has {self.found}"


@dataclass(frozen=True, slots=True)
class GameRefuted(Generic[Type, Outcome]):
    """The claim is false, as this case shows."""

    claim: GameClaim
    witness: Deviation[Type, Outcome] | LawWitness[Type, Outcome] | LossWitness[Type, Outcome]

    def __str__(self) -> str:
        return f"refuted: {self.claim}\n{self.witness.by_hand()}"


@dataclass(frozen=True, slots=True)
class GameReport(Generic[Type, Outcome]):
    """The worst cases of a mechanism over all profiles of reports, each with its witness."""

    name: str
    types: tuple[Type, ...]
    outcomes: tuple[Outcome, ...]
    n: int
    liars: int
    profiles: int
    best_lie: Deviation[Type, Outcome]
    """The lie with the largest gain, which may be negative."""
    worst_ratio: Deviation[Type, Outcome] | None
    """The lie with the largest ratio; None if a utility is negative, because then ratios mean nothing."""
    worst_law: LawWitness[Type, Outcome]
    """The outcome whose chance one report changes by the largest factor."""
    worst_loss: LossWitness[Type, Outcome]
    """The profile on which the designer loses most."""

    @property
    def largest_gain(self) -> ExactNumber:
        """The most that anybody gains by a lie; exactly 0 if every lie costs, because everybody can be honest."""
        gain = self.best_lie.gain
        return gain if gain.sign() > 0 else ExactNumber.of(0)

    @property
    def lie_ratio(self) -> ExactNumber | None:
        """The largest factor by which a lie multiplies an expected utility, at least 1; None if it is infinite (:attr:`ratio_known`)."""
        if self.worst_ratio is None:
            raise LapwingError("game-invalid", "some utility is negative, so ratios of utilities mean nothing")
        ratio = self.worst_ratio.ratio
        return ratio if ratio is None or ratio > 1 else ExactNumber.of(1)

    @property
    def law_ratio(self) -> ExactNumber | None:
        """The largest factor by which the chance of an outcome changes: exp(epsilon) of the mechanism, exactly. None if it is infinite."""
        return self.worst_law.ratio

    @property
    def loss(self) -> ExactNumber:
        """The largest expected loss of the designer."""
        return self.worst_loss.loss

    def check(self, claim: GameClaim) -> GameHolds | GameRefuted[Type, Outcome]:
        """Decide a claim about this game, exactly. A refutation carries a case that can be checked by hand."""
        match claim:
            case PrivateFor(epsilon):
                ratio, witness = self.law_ratio, self.worst_law
                return self._factor(claim, epsilon, ratio, witness)
            case LiesMultiplyBy(epsilon):
                ratio = self.lie_ratio
                assert self.worst_ratio is not None, "there is a ratio"
                return self._factor(claim, epsilon, ratio, self.worst_ratio)
            case LiesGainAtMost(gain):
                require_exact(gain)
                return GameHolds(claim, self.largest_gain) if self.largest_gain <= gain else GameRefuted(claim, self.best_lie)
            case LiesLose():
                return GameHolds(claim, self.best_lie.gain) if self.best_lie.gain < 0 else GameRefuted(claim, self.best_lie)
            case LosesAtMost(loss):
                require_exact(loss)
                return GameHolds(claim, self.loss) if self.loss <= loss else GameRefuted(claim, self.worst_loss)

    def _factor(
        self,
        claim: GameClaim,
        epsilon: Fraction,
        ratio: ExactNumber | None,
        witness: Deviation[Type, Outcome] | LawWitness[Type, Outcome],
    ) -> GameHolds | GameRefuted[Type, Outcome]:
        require_exact(epsilon)
        if ratio is not None and ratio <= ExactNumber.of(power_of_e(self.liars * epsilon)):
            return GameHolds(claim, ratio)
        return GameRefuted(claim, witness)

    def __str__(self) -> str:
        ratio = "none (some utility is negative)" if self.worst_ratio is None else _shown(self.lie_ratio)
        return "\n".join(
            (
                f"{self.name}: {self.n} people, {len(self.types)} types, {len(self.outcomes)} outcomes, {self.profiles} profiles,"
                f" {self.liars} {'liar' if self.liars == 1 else 'liars'}",
                f"  largest gain of a lie     {self.largest_gain}",
                f"  largest ratio of a lie    {ratio}",
                f"  largest change of a law   {_shown(self.law_ratio)}",
                f"  largest expected loss     {self.loss}",
            )
        )


def _shown(ratio: ExactNumber | None) -> str:
    return "infinite" if ratio is None else str(ratio)
