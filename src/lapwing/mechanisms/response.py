"""Randomised response: each person's own answer, made deniable before anybody sees it.

A person whose true answer is one of ``categories`` answers truthfully with probability ``truth``, and otherwise gives one of the other
answers, all equally likely. The counts of the noisy answers still show how many people truly gave each answer, up to a known error.

Proof: ``docs/proofs/randomised-response.md``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, overload

from lapwing.errors import LapwingError, Refused
from lapwing.kernel.event import Event
from lapwing.kernel.laws import LOSS_MARGIN
from lapwing.kernel.numbers import exp_lower, ln_upper, require_exact, sqrt_upper
from lapwing.mechanisms.geometric import OUTPUTS_MAX
from lapwing.prices import float_at_most
from lapwing.spread import require_confidence

CATEGORIES_MAX = 4096
"""Most possible answers."""

Answers: TypeAlias = int | tuple[int, ...]
"""One person's answer, a number from 0 to ``categories - 1``; or one answer for each of several people."""


@dataclass(frozen=True, slots=True)
class RandomisedResponse:
    """Gives the true answer with probability ``truth`` (more often than by chance), and otherwise one of the other answers.

    Pre: neighbours differ in the answer of one person. Post: epsilon-differentially private with ``exp(epsilon) = odds``, whether one
    person answers or many: each person's answer is a separate draw, so a neighbour changes only one draw. ``truth`` is a fraction that a
    float represents exactly, because the sampler takes a float.
    """

    categories: int
    truth: Fraction

    def __post_init__(self) -> None:
        if type(self.categories) is not int or not 2 <= self.categories <= CATEGORIES_MAX:
            raise Refused("mechanism-invalid", f"randomised response takes 2 to {CATEGORIES_MAX} categories")
        if type(self.truth) is not Fraction or Fraction(float(self.truth)) != self.truth or not 0 < self.truth < 1:
            raise Refused(
                "mechanism-invalid", "the probability of the truth must be a fraction below 1 that a 64-bit float represents exactly"
            )
        if self.truth * self.categories <= 1:
            raise Refused("mechanism-invalid", "the true answer must be more likely than each other answer")

    def lie(self) -> Fraction:
        """The probability of each answer that is not true."""
        return (1 - self.truth) / (self.categories - 1)

    def epsilon(self) -> Fraction:
        """``ln(odds)``, rounded up, with a margin on the odds so that the sampler's own map, which rounds up in floats, stays below."""
        return LOSS_MARGIN * ln_upper(self.odds() * LOSS_MARGIN)

    def event(self) -> Event:
        """``epsilon = ln(odds)`` and ``rho = epsilon (odds - 1) / (odds + 1)``, which is at most ``epsilon^2 / 2``; both rounded up.

        For two categories rho is the exact one; for more it is an upper bound.
        """
        odds = self.odds() * LOSS_MARGIN
        return Event(epsilon=self.epsilon(), rho=self.epsilon() * (odds - 1) / (odds + 1))

    @overload
    def law(self, value: int, *, decay: Fraction | None = None) -> Mapping[int, Fraction]: ...
    @overload
    def law(self, value: tuple[int, ...], *, decay: Fraction | None = None) -> Mapping[tuple[int, ...], Fraction]: ...
    def law(self, value: Answers, *, decay: Fraction | None = None) -> Mapping[int, Fraction] | Mapping[tuple[int, ...], Fraction]:
        """The exact law of the noisy answers. It is rational already, so ``decay`` is not needed; it may be given, and changes nothing."""
        answers = self.require_answers(value)
        if self.categories ** len(answers) > OUTPUTS_MAX:
            raise Refused("law-unavailable", f"the law has more than {OUTPUTS_MAX} outputs")
        if not isinstance(value, tuple):
            return {answer: self._chance(answer, value) for answer in range(self.categories)}
        return {
            given: math.prod((self._chance(response, true) for response, true in zip(given, answers, strict=True)), start=Fraction(1))
            for given in itertools.product(range(self.categories), repeat=len(answers))
        }

    def _chance(self, response: int, true: int) -> Fraction:
        return self.truth if response == true else self.lie()

    def odds(self, *, decay: Fraction | None = None) -> Fraction:
        """``truth / lie``, exactly; ``decay`` changes nothing."""
        return self.truth / self.lie()

    def error(self, *, confidence: Fraction, people: int = 1) -> int:
        """How far :meth:`estimate` may be, with this confidence, from the number of these people who truly gave one answer (Hoeffding)."""
        require_confidence(confidence)
        if type(people) is not int or people < 1:
            raise Refused("mechanism-invalid", "the number of people must be a positive integer")
        return math.ceil(self._half_width(people, confidence=Fraction(confidence)))

    def _half_width(self, people: int, *, confidence: Fraction) -> Fraction:
        """At least ``sqrt(n ln(2 / (1 - confidence)) / 2) / (truth - lie)``."""
        return sqrt_upper(people * ln_upper(2 / (1 - confidence)) / 2) / (self.truth - self.lie())

    def estimate(self, counts: Sequence[int]) -> tuple[Fraction, ...]:
        """From the count of each noisy answer, how many people truly gave each: unbiased, adding up to their number, possibly negative."""
        people = self._require_counts(counts)
        return tuple((count - people * self.lie()) / (self.truth - self.lie()) for count in counts)

    def interval(self, counts: Sequence[int], *, confidence: Fraction) -> tuple[tuple[int, int], ...]:
        """For each answer, the lowest and highest number of people who may truly have given it.

        Each interval holds the true number with at least this confidence, for all data (Hoeffding, rounded outwards; numbers of people
        are whole, so the ends are then rounded inwards). For all intervals at once, ask for ``1 - (1 - confidence) / categories``.
        """
        require_confidence(confidence)
        people = self._require_counts(counts)
        width = self._half_width(people, confidence=Fraction(confidence))
        ends = ((math.ceil(centre - width), math.floor(centre + width)) for centre in self.estimate(counts))
        # the true number is inside by assumption of the event, and always from 0 to people
        return tuple((min(max(low, 0), people), max(min(high, people), 0)) for low, high in ends)

    def _require_counts(self, counts: Sequence[int]) -> int:
        if len(counts) != self.categories or any(type(count) is not int or count < 0 for count in counts):
            raise LapwingError("value-invalid", "there must be one count for each category, a non-negative integer")
        return sum(counts)

    def require_answers(self, value: Answers) -> tuple[int, ...]:
        """The answers as a tuple; raises ``value-invalid`` for anything that is not a category."""
        answers = value if isinstance(value, tuple) else (value,)
        if any(type(answer) is not int or not 0 <= answer < self.categories for answer in answers):
            raise LapwingError("value-invalid", "an answer must be the number of a category, counted from 0")
        return answers


def two_coin() -> RandomisedResponse:
    """The textbook yes or no: on heads, tell the truth; on tails, toss again and say yes on heads. Truth 3/4, odds 3 (Warner 1965)."""
    return RandomisedResponse(categories=2, truth=Fraction(3, 4))


def response_for(*, epsilon: Fraction, categories: int) -> RandomisedResponse:
    """The randomised response that tells the truth most often, up to rounding, whose event is at most this epsilon.

    Raises ``loss-invalid`` if epsilon is too small for the truth to be more likely than the other answers in floats.
    """
    require_exact(epsilon)
    if epsilon <= 0:
        raise Refused("loss-invalid", "the privacy loss must be positive")
    if type(categories) is not int or not 2 <= categories <= CATEGORIES_MAX:
        raise Refused("mechanism-invalid", f"randomised response takes 2 to {CATEGORIES_MAX} categories")
    # Solved for the odds from below: the margins of the event are taken off, and everything rounds down.
    odds = exp_lower(min(Fraction(epsilon), Fraction(30)) / LOSS_MARGIN**2) / LOSS_MARGIN
    truth = Fraction(float_at_most(odds / (odds + categories - 1)))
    if truth * categories <= 1:
        raise Refused("loss-invalid", "epsilon is too small for randomised response")
    return RandomisedResponse(categories=categories, truth=truth)
