"""Report noisy max: discrete Laplace noise on each score, and the index of the largest; ties go to the lowest index.

Scores and noise are integers, so ties happen, and the rule that breaks them is part of the mechanism.

Proof: ``docs/proofs/noisy-max.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from lapwing.errors import Refused
from lapwing.kernel.accounting import Account
from lapwing.kernel.event import Event
from lapwing.kernel.numbers import exp_lower, exp_upper
from lapwing.mechanisms.mechanism import require_decay
from lapwing.mechanisms.selection import (
    PURE_DIVISOR,
    losses_below_best,
    movement_max,
    require_selection,
    selection_event,
    selection_scale,
)
from lapwing.spread import require_confidence

NOISY_MAX_SCALE_MAX = Fraction(2**50)
"""Largest scale here: far more than scores of 64 bits can use."""


@dataclass(frozen=True, slots=True)
class NoisyMax:
    """The index of the largest ``score + Z``, with independent discrete Laplace ``Z`` of this scale; ties go to the lowest index.

    Pre: between neighbours each score moves by at most ``score_sensitivity``, all the same way if ``monotone``. Post: the choice is
    epsilon-differentially private for ``epsilon = 2 score_sensitivity / scale`` (half of that if monotone), whatever the number of
    candidates, and ``epsilon^2 / 2``-zCDP. Only the index may be published: the noisy score beside it would cost more. Dwork and Roth 2014.
    """

    scale: Fraction
    score_sensitivity: int
    candidates: int
    monotone: bool = False

    def __post_init__(self) -> None:
        require_selection(scale=self.scale, score_sensitivity=self.score_sensitivity, candidates=self.candidates, monotone=self.monotone)
        if self.scale > NOISY_MAX_SCALE_MAX:
            raise Refused("scale-invalid", "the scale of a noisy max must be at most 2^50")

    @property
    def movement(self) -> int:
        """How far the difference of two scores can move between neighbours."""
        return movement_max(score_sensitivity=self.score_sensitivity, monotone=self.monotone)

    def event(self) -> Event:
        """The cost of one run."""
        return selection_event(self.scale, movement=self.movement, divisor=PURE_DIVISOR)

    def law(self, value: Sequence[int], *, decay: Fraction) -> Mapping[int, Fraction]:
        """The exact law of the chosen index on these scores, in time polynomial in their number and independent of their spread."""
        require_decay(decay)
        scores = [-loss for loss in losses_below_best(value, candidates=self.candidates)]
        return {index: _chance(scores, index, decay) for index in range(len(scores))}

    def odds(self, *, decay: Fraction) -> Fraction:
        """The claimed ``exp(epsilon)``; the supremum over all score vectors, which none attains."""
        require_decay(decay)
        return decay**-self.movement

    def error(self, *, confidence: Fraction) -> int:
        """With this confidence the chosen score is at most this far below the best."""
        require_confidence(confidence)
        failure, others = 1 - Fraction(confidence), self.candidates - 1

        def enough(t: int) -> bool:
            # another candidate, too bad by at least t + 1, must overtake the best one
            return others * difference_tail_upper(self.scale, t + 1) <= failure

        if enough(0):
            return 0
        low, high = 0, 1
        while not enough(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high


def difference_tail_upper(scale: Fraction, t: int) -> Fraction:
    """At least ``P[Z - Z' >= t]`` for two independent discrete Laplace draws of this scale and ``t >= 0``.

    The probability is ``a**t / (1 + a)**2 * (t (1 - a) + (1 + a + 2 a**2) / (1 + a))`` with ``a = exp(-1 / scale)``.
    """
    low, high = exp_lower(-1 / scale), exp_upper(-1 / scale)
    return exp_upper(-t / scale) / (1 + low) ** 2 * (t * (1 - low) + (1 + high + 2 * high**2) / (1 + low))


def noisy_max_for(account: Account, *, loss: Fraction, score_sensitivity: int, candidates: int, monotone: bool = False) -> NoisyMax:
    """Report noisy max with the least scale whose event costs at most ``loss`` (epsilon if pure, rho if approximate)."""
    movement = movement_max(score_sensitivity=score_sensitivity, monotone=monotone)
    scale = selection_scale(account, loss=loss, movement=movement, divisor=PURE_DIVISOR)
    return NoisyMax(scale, score_sensitivity, candidates, monotone)


def _chance(scores: Sequence[int], chosen: int, decay: Fraction) -> Fraction:
    """The probability that ``chosen`` wins: over all x, that its noisy score is x, every earlier one below x and every later one at most x.

    Cut the line at the scores and just below them. Inside a piece each of these probabilities is ``a + b v`` or ``c / v`` with
    ``v = decay ** (x - start)``, so their product is a polynomial in v over a power of v, and the sum over x is a few geometric series.
    """
    cuts = sorted({cut for score in scores for cut in (score - 1, score)})
    # below all cuts every factor is c / v: one series, from the highest x downwards
    lowest = Fraction(1)
    for factor in _factors(scores, chosen, decay, start=cuts[0], below=cuts[0] - 1):
        lowest *= factor.inverse
    total = lowest / (1 - decay ** len(scores))
    for below, last in zip(cuts, [*cuts[1:], None], strict=True):
        start = below + 1
        polynomial, inverse_power = [Fraction(1)], 0
        for factor in _factors(scores, chosen, decay, start=start, below=below):
            if factor.inverse:
                polynomial, inverse_power = [factor.inverse * coefficient for coefficient in polynomial], inverse_power + 1
            else:
                shifted, padded = [Fraction(0), *polynomial], [*polynomial, Fraction(0)]
                polynomial = [factor.constant * here + factor.linear * before for here, before in zip(padded, shifted, strict=True)]
        length = None if last is None else last - below
        for power, coefficient in enumerate(polynomial, start=-inverse_power):
            if coefficient:
                total += coefficient * _geometric_sum(decay, power=power, length=length)
    return total


@dataclass(frozen=True, slots=True)
class _Factor:
    """``constant + linear * v + inverse / v``; either the inverse or the other two are 0."""

    constant: Fraction
    linear: Fraction
    inverse: Fraction


def _factors(scores: Sequence[int], chosen: int, decay: Fraction, *, start: int, below: int) -> list[_Factor]:
    """The factors of :func:`_chance` on the piece after ``below``, with ``v = decay ** (x - start)``.

    P[s + Z <= y] is ``decay ** (s - y) / (1 + decay)`` for ``y <= s - 1`` and ``1 - decay ** (y - s + 1) / (1 + decay)`` from there on.
    """
    zero = Fraction(0)
    factors = []
    for index, score in enumerate(scores):
        if index == chosen:
            peak = (1 - decay) / (1 + decay)
            above = below >= score
            factors.append(
                _Factor(zero, peak * decay ** (start - score), zero) if above else _Factor(zero, zero, peak * decay ** (score - start))
            )
        else:
            tie = 1 if index < chosen else 0
            above = below >= score - 1 + tie
            factors.append(
                _Factor(Fraction(1), -(decay ** (start - tie - score + 1)) / (1 + decay), zero)
                if above
                else _Factor(zero, zero, decay ** (score + tie - start) / (1 + decay))
            )
    return factors


def _geometric_sum(decay: Fraction, *, power: int, length: int | None) -> Fraction:
    """The sum of ``decay ** (power * i)`` over i from 0 below ``length``; without a length, over all i (then the power is positive)."""
    if length is None:
        return 1 / (1 - decay**power)
    return Fraction(length) if power == 0 else (1 - decay ** (power * length)) / (1 - decay**power)
