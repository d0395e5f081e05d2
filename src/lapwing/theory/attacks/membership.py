"""Membership: was this person among the rows at all?

Two tests. The first knows everybody else's rows and the law of the noise, and compares the two worlds by their likelihoods; by the lemma of
Neyman and Pearson no test does better at the same rate of false alarms, so its curve describes the answer completely. The second
(Homer et al. 2008; Dwork et al. 2015) knows only the published means and the frequencies of the population: over many attributes, a member
pulls each mean a little towards themselves, and the sum of the pulls shows.

What (epsilon, delta) allows either of them is :func:`lapwing.theory.meaning.power_max`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from lapwing.errors import LapwingError
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law


def evidence(observed: Sequence[int], *, inside: Sequence[int], outside: Sequence[int], law: Law) -> Fraction:
    """The exact logarithm of the likelihood ratio of two worlds: positive values are evidence for ``inside``.

    ``inside`` and ``outside`` are the exact answers with the target and without; ``observed`` is one of them with independent noise of
    this law on each entry. Guessing "inside" above some threshold of this number is the most powerful test (Neyman and Pearson 1933).
    """
    if not len(observed) == len(inside) == len(outside):
        raise LapwingError("attack-input", "observed, inside and outside must have the same length")
    moves = [(seen - there, seen - not_there) for seen, there, not_there in zip(observed, inside, outside, strict=True)]
    match law:
        case DiscreteLaplace():
            return sum(abs(without) - abs(within) for within, without in moves) / law.scale
        case DiscreteGaussian():
            return sum(without**2 - within**2 for within, without in moves) / (2 * law.scale**2)
        case never:
            assert_never(never)


def tracing_score(published: Sequence[float], *, target: Sequence[bool], population: Sequence[float]) -> float:
    """How far published means lie on the target's side of the population's, added up over all attributes.

    ``published[j]`` is the share of members with attribute ``j``, ``population[j]`` that of everybody, ``target[j]`` the target's own. The
    score is the inner product ``sum of (target - population) (published - population)``: 0 on average for a non-member, and
    the sum of ``population (1 - population) / members`` for a member.
    """
    if not len(published) == len(target) == len(population):
        raise LapwingError("attack-input", "published, target and population must have one value for each attribute")
    return sum((own - base) * (seen - base) for own, seen, base in zip(target, published, population, strict=True))


@dataclass(frozen=True, slots=True)
class RocPoint:
    """A test that says "member" from a threshold on, with its numbers of right and wrong results."""

    threshold: float | Fraction
    true_positives: int
    members: int
    false_positives: int
    others: int

    @property
    def true_positive_rate(self) -> Fraction:
        """The share of members recognised."""
        return Fraction(self.true_positives, self.members)

    @property
    def false_positive_rate(self) -> Fraction:
        """The share of non-members taken for members."""
        return Fraction(self.false_positives, self.others)

    @property
    def advantage(self) -> Fraction:
        """The difference of the two rates."""
        return self.true_positive_rate - self.false_positive_rate


def roc(
    members: Sequence[float | Fraction], others: Sequence[float | Fraction], *, thresholds: Sequence[float | Fraction]
) -> tuple[RocPoint, ...]:
    """The results of the test "score >= threshold" on scores of members and non-members, for each threshold.

    If the thresholds are chosen before the scores are seen, each rate is the mean of independent trials; the best of many thresholds
    chosen afterwards looks better than it is.
    """
    if not members or not others:
        raise LapwingError("attack-input", "rates need at least one member and one non-member")
    return tuple(
        RocPoint(
            threshold=threshold,
            true_positives=sum(score >= threshold for score in members),
            members=len(members),
            false_positives=sum(score >= threshold for score in others),
            others=len(others),
        )
        for threshold in thresholds
    )
