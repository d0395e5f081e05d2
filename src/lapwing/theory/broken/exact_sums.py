"""Probabilities about several two-sided geometric draws, as exact rational numbers.

Noise here has ``P[Z = z]`` proportional to ``decay ** (steepness * |z|)``: the discrete Laplace law of scale
``1 / (steepness * ln(1 / decay))``, so laws of commensurable scales share one decay. A question such as "is every noisy value below a
noisy threshold" is an infinite sum, over the threshold's value, of products of point masses and tails. Left and right
of all centres, each factor is a polynomial in a power of the decay, so the two ends of the sum are geometric series and the middle is
finite.

This code is deliberately independent of the kernel's code.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import TypeAlias, assert_never

_Polynomial: TypeAlias = dict[int, Fraction]
"""Coefficient of each power."""


def point_mass(z: int, decay: Fraction) -> Fraction:
    """``P[Z = z]`` for noise of steepness 1."""
    return (1 - decay) / (1 + decay) * decay ** abs(z)


def tail(z: int, decay: Fraction) -> Fraction:
    """``P[Z >= z]`` for noise of steepness 1."""
    return decay**z / (1 + decay) if z >= 0 else 1 - decay ** (1 - z) / (1 + decay)


def clamped(centre: int, decay: Fraction, *, low: int, high: int) -> dict[int, Fraction]:
    """The law of ``centre + Z``, moved to the nearer end when it falls outside [low, high] (``low < high``)."""
    inside = {value: point_mass(value - centre, decay) for value in range(low + 1, high)}
    return {low: 1 - tail(low + 1 - centre, decay), **inside, high: tail(high - centre, decay)}


class Relation(Enum):
    """The condition of a factor on ``centre + Z`` at the summation value ``v``."""

    EQUALS = "equals v"
    BELOW = "is below v"
    AT_LEAST = "is at least v"


@dataclass(frozen=True, slots=True)
class Factor:
    """``P[centre + Z <relation> v]`` as a function of ``v``; ``steepness`` 0 means no noise at all."""

    relation: Relation
    centre: int
    steepness: int

    def at(self, v: int, decay: Fraction) -> Fraction:
        """The probability at this value."""
        z = v - self.centre
        match self.relation:
            case Relation.EQUALS:
                return point_mass(z, decay**self.steepness) if self.steepness else Fraction(z == 0)
            case Relation.AT_LEAST:
                return tail(z, decay**self.steepness) if self.steepness else Fraction(z <= 0)
            case Relation.BELOW:
                return 1 - tail(z, decay**self.steepness) if self.steepness else Fraction(z > 0)
            case never:
                assert_never(never)

    def beyond(self, edge: int, direction: int, decay: Fraction) -> _Polynomial:
        """The factor at ``edge + direction * u`` for all u >= 0, as a polynomial in ``decay ** u``. Pre: the edge is past the centre."""
        own, k = decay**self.steepness, self.steepness
        gap = abs(edge - self.centre)
        match self.relation:
            case Relation.EQUALS:
                return {k: (1 - own) / (1 + own) * own**gap} if k else {}
            case Relation.AT_LEAST | Relation.BELOW:
                # To the right, "at least v" tends to 0; to the left, "below v" does. The other one is 1 minus that.
                dies = (self.relation is Relation.AT_LEAST) == (direction > 0)
                fading = {k: own ** (gap if direction > 0 else gap + 1) / (1 + own)} if k else {}
                return fading if dies else {0: Fraction(1), **{power: -share for power, share in fading.items()}}
            case never:
                assert_never(never)


def _times(left: _Polynomial, right: _Polynomial) -> _Polynomial:
    result: _Polynomial = {}
    for i, a in left.items():
        for j, b in right.items():
            result[i + j] = result.get(i + j, Fraction(0)) + a * b
    return result


def total(factors: Iterable[Factor], decay: Fraction) -> Fraction:
    """The sum over all integers ``v`` of the product of the factors, exactly.

    Pre: one factor is ``EQUALS`` (so the sum converges): the law of the quantity that ``v`` stands for.
    """
    terms = tuple(factors)
    low = min(factor.centre for factor in terms) - 1
    high = max(factor.centre for factor in terms) + 1
    result = sum((math.prod((factor.at(v, decay) for factor in terms), start=Fraction(1)) for v in range(low, high + 1)), Fraction(0))
    for edge, direction in ((low, -1), (high, 1)):
        ends: _Polynomial = {0: Fraction(1)}
        for factor in terms:
            ends = _times(ends, factor.beyond(edge, direction, decay))
        # u = 0 is the edge itself and has been counted; the powers are positive because of the EQUALS factor
        result += sum((share * decay**power / (1 - decay**power) for power, share in ends.items() if share), Fraction(0))
    return result


def noisy_max(scores: tuple[int, ...], decay: Fraction) -> dict[int, Fraction]:
    """The law of the index of the largest noisy score; the lowest index wins ties."""

    def rival(index: int, winner: int) -> Factor:
        # An earlier index must stay strictly below the winner; a later one may tie, which is "below v" for the score less one.
        return Factor(Relation.BELOW, scores[index] - (index > winner), 1)

    return {
        winner: total(
            (Factor(Relation.EQUALS, score, 1), *(rival(index, winner) for index in range(len(scores)) if index != winner)), decay
        )
        for winner, score in enumerate(scores)
    }
