"""Worst cases, each with everything that a reader needs to check it: the reports, the two laws, and the sums."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Generic, TypeVar

from lapwing.games.exponentials import ExactNumber, SumOfExponentials, total, weighted

Type = TypeVar("Type", bound=Hashable)
Outcome = TypeVar("Outcome", bound=Hashable)


@dataclass(frozen=True)
class WeightedOutcomes(Generic[Outcome]):
    """A law over outcomes, each drawn with a probability proportional to its weight."""

    outcomes: tuple[Outcome, ...]
    weights: tuple[SumOfExponentials, ...]

    @cached_property
    def total(self) -> SumOfExponentials:
        """The sum of all weights."""
        return total(self.weights)

    def chance(self, outcome: Outcome) -> ExactNumber:
        """The probability of one outcome."""
        return ExactNumber(self.weights[self.outcomes.index(outcome)], self.total)

    def chances(self) -> tuple[ExactNumber, ...]:
        """The probability of each outcome, in order."""
        whole = self.total
        return tuple(ExactNumber(weight, whole) for weight in self.weights)

    def expected(self, amounts: Sequence[Fraction]) -> ExactNumber:
        """The expectation of amounts, one for each outcome."""
        return ExactNumber(weighted(amounts, self.weights), self.total)

    def table(self, amounts: Sequence[Fraction], *, of: str) -> str:
        """One line for each outcome with a non-zero product: its chance, the amount, their product; then the sum."""
        rows = [
            (written(outcome), str(chance), str(amount), str(chance * amount))
            for outcome, chance, amount in zip(self.outcomes, self.chances(), amounts, strict=True)
            if amount and chance.sign()
        ]
        heads = ("outcome", "chance", of, "product")
        rows.append(("sum", "", "", str(self.expected(amounts))))
        widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(4)]
        return "\n".join(
            "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (heads, *rows)
        )


@dataclass(frozen=True, slots=True)
class Deviation(Generic[Type, Outcome]):
    """A deviation from honesty: the others report the truth, and people of the types ``liars`` report ``reports`` instead.

    ``member`` is the index of the examined liar. ``honest`` and ``lying`` are that liar's utilities of each outcome.
    """

    others: tuple[Type, ...]
    liars: tuple[Type, ...]
    reports: tuple[Type, ...]
    member: int
    law_honest: WeightedOutcomes[Outcome]
    law_lying: WeightedOutcomes[Outcome]
    honest: tuple[Fraction, ...]
    lying: tuple[Fraction, ...]

    @property
    def expected_honest(self) -> ExactNumber:
        """The expected utility of being honest."""
        return self.law_honest.expected(self.honest)

    @property
    def expected_lying(self) -> ExactNumber:
        """The expected utility of the lie."""
        return self.law_lying.expected(self.lying)

    @property
    def gain(self) -> ExactNumber:
        """What the lie gains; negative if it costs."""
        return self.expected_lying - self.expected_honest

    @property
    def ratio(self) -> ExactNumber | None:
        """The lie's expected utility over that of honesty; 0/0 counts as 1, and None stands for infinity."""
        honest, lying = self.expected_honest, self.expected_lying
        if honest.sign() == 0:
            return ExactNumber.of(1) if lying.sign() == 0 else None
        return lying / honest

    def by_hand(self) -> str:
        """The case written out: both laws, both expectations, gain and ratio."""
        truth, lie = self.liars[self.member], self.reports[self.member]
        together = "" if len(self.liars) == 1 else f" The liars are of types {written(self.liars)} and report {written(self.reports)}."
        said = f"reports {lie}" if lie != truth else "reports the truth, and does not do as recommended"
        ratio = self.ratio
        return "\n".join(
            (
                f"The others report {written(self.others)}. A person of type {truth} {said}.{together}",
                f"Honest, reports {written((*self.others, *self.liars))}:",
                self.law_honest.table(self.honest, of="utility"),
                f"Lying, reports {written((*self.others, *self.reports))}:",
                self.law_lying.table(self.lying, of="utility"),
                f"Gain: {self.gain}. Ratio: {'infinite' if ratio is None else ratio}.",
            )
        )


@dataclass(frozen=True, slots=True)
class LawWitness(Generic[Type, Outcome]):
    """An outcome that is more likely if some people report ``first`` than if they report ``second``."""

    others: tuple[Type, ...]
    first: tuple[Type, ...]
    second: tuple[Type, ...]
    outcome: Outcome
    law_first: WeightedOutcomes[Outcome]
    law_second: WeightedOutcomes[Outcome]

    @property
    def ratio(self) -> ExactNumber | None:
        """The ratio of the two chances; None stands for infinity."""
        chance = self.law_second.chance(self.outcome)
        return None if chance.sign() == 0 else self.law_first.chance(self.outcome) / chance

    def by_hand(self) -> str:
        """The case written out."""
        ratio = self.ratio
        return (
            f"The others report {written(self.others)}. Outcome {written(self.outcome)} has chance {self.law_first.chance(self.outcome)}"
            f" with the further report {written(self.first)}, and {self.law_second.chance(self.outcome)} with {written(self.second)}."
            f" Ratio: {'infinite' if ratio is None else ratio}."
        )


@dataclass(frozen=True, slots=True)
class LossWitness(Generic[Type, Outcome]):
    """A profile of true reports for which the designer loses most against the best outcome for that profile."""

    reports: tuple[Type, ...]
    law: WeightedOutcomes[Outcome]
    objective: tuple[Fraction, ...]

    @property
    def best(self) -> Fraction:
        """The value of the best outcome."""
        return max(self.objective)

    @property
    def expected(self) -> ExactNumber:
        """The expected value."""
        return self.law.expected(self.objective)

    @property
    def loss(self) -> ExactNumber:
        """The best value less the expected value."""
        return -self.expected + self.best

    def by_hand(self) -> str:
        """The case written out."""
        return "\n".join(
            (
                f"All report {written(self.reports)}. The best outcome is worth {self.best}.",
                self.law.table(self.objective, of="value"),
                f"Loss: {self.loss}.",
            )
        )


def written(item: object) -> str:
    """A text for reports: fractions with a slash, also inside tuples."""
    if isinstance(item, tuple):
        return "(" + ", ".join(written(part) for part in item) + ")"
    return str(item)
