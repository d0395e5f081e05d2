"""Mechanisms as the people who report to them see them.

Each of ``n`` people has a *type* and reports one, true or not. The mechanism draws one of finitely many outcomes; how likely each is
depends on the multiset of reports, never on who reported what. What an outcome is worth to a person depends on the person's type, on what
the person may do with it, and, in some games, on the others.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Protocol, TypeVar, runtime_checkable

from lapwing.errors import LapwingError
from lapwing.games.exponentials import SumOfExponentials, power_of_e, rational
from lapwing.kernel.numbers import require_exact

Type = TypeVar("Type", bound=Hashable)
Type_contra = TypeVar("Type_contra", contravariant=True, bound=Hashable)
Outcome_co = TypeVar("Outcome_co", covariant=True, bound=Hashable)


@runtime_checkable
class ReportMechanism(Protocol[Type_contra, Outcome_co]):
    """A mechanism with a law that is known exactly. Lists of weights and utilities are in the order of ``outcomes``."""

    @property
    def name(self) -> str:
        """The name of the mechanism in reports."""
        ...

    @property
    def outcomes(self) -> Sequence[Outcome_co]:
        """The outcomes that it can draw."""
        ...

    def weights(self, reports: Sequence[Type_contra]) -> Sequence[SumOfExponentials]:
        """Non-negative weights of the outcomes, which are drawn in proportion to them. The order of reports does not matter."""
        ...

    def honest(self, type_: Type_contra, others: Sequence[Type_contra]) -> Sequence[Fraction]:
        """The utility of each outcome to a person who is honest and follows the recommendation; the others have and report these types."""
        ...

    def lying(self, type_: Type_contra, report: Type_contra, others: Sequence[Type_contra]) -> Sequence[Fraction]:
        """The utility of each outcome to a person of this type who made this report (perhaps the truth) and then acts in their interest."""
        ...

    def objective(self, reports: Sequence[Type_contra]) -> Sequence[Fraction]:
        """The value of each outcome to the designer (revenue, welfare), if the reports are true."""
        ...


def exponential_weights(scores: Sequence[Fraction], *, rate: Fraction) -> tuple[SumOfExponentials, ...]:
    """``exp(rate * score)`` for each score: the exponential mechanism. With ``rate = epsilon / (2 sensitivity)`` it is epsilon-private."""
    require_exact(rate, *scores)
    return tuple(power_of_e(rate * score) for score in scores)


def rational_weights(scores: Sequence[Fraction], *, factor: Fraction) -> tuple[SumOfExponentials, ...]:
    """``factor ** score`` for integer scores: the exponential mechanism with ``exp(rate) = factor``. All its chances are fractions."""
    require_exact(factor, *scores)
    if factor <= 0 or any(Fraction(score).denominator != 1 for score in scores):
        raise LapwingError("game-invalid", "weights by a rational factor need a positive factor and integer scores")
    return tuple(rational(Fraction(factor) ** int(score)) for score in scores)


class ExponentialChoice:
    """How scores become weights: by ``epsilon`` and the sensitivity of a score, or by a rational factor for each unit of score.

    Pre: one report replaced moves each score by at most ``sensitivity``. Post: the choice is epsilon-private for replaced reports. The
    second form is the same mechanism at ``epsilon = 2 sensitivity ln(factor)``; its laws are fractions that can be checked by hand.
    """

    __slots__ = ("factor", "rate")

    def __init__(self, *, epsilon: Fraction | None = None, sensitivity: Fraction = Fraction(1), factor: Fraction | None = None) -> None:
        require_exact(sensitivity)
        self.rate: Fraction | None = None
        self.factor = factor
        if (epsilon is None) == (factor is None) or sensitivity <= 0:
            raise LapwingError("game-invalid", "a choice needs either an epsilon or a factor, and a positive sensitivity")
        if epsilon is not None:
            require_exact(epsilon)
            if epsilon < 0:
                raise LapwingError("game-invalid", "epsilon must not be negative")
            self.rate = Fraction(epsilon) / (2 * sensitivity)

    def weights(self, scores: Sequence[Fraction]) -> tuple[SumOfExponentials, ...]:
        """The weights of candidates with these scores."""
        if self.rate is not None:
            return exponential_weights(scores, rate=self.rate)
        assert self.factor is not None, "a choice has one of the two"
        return rational_weights(scores, factor=self.factor)


def require_types(types: Sequence[Type], n: int) -> tuple[Type, ...]:
    """The types; refuses (``game-invalid``) fewer than two distinct types, or no people."""
    listed = tuple(types)
    if len(set(listed)) != len(listed) or len(listed) < 2:
        raise LapwingError("game-invalid", "a game must have at least two types, each listed once")
    if type(n) is not int or n < 1:
        raise LapwingError("game-invalid", "the number of people must be an integer of at least 1")
    return listed
