"""Counts that are compared with public numbers: the core of private multiplicative weights, with its exact law.

For each count there is a public number, which may depend on all earlier answers: in private multiplicative weights, the estimate of the
weights. If sparse vector finds the count near its number, only that fact is released. Otherwise a fresh noisy count is released, and the
next start begins. ``lapwing.kernel.count_stream`` is the same over protected rows; this module is for lessons, exact verification and
audits.

Proof: ``docs/proofs/above-threshold.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from lapwing.errors import Refused
from lapwing.kernel.event import Event
from lapwing.mechanisms.above_threshold import AboveThreshold, SparseVector, require_stream
from lapwing.mechanisms.additive import LaplaceMechanism
from lapwing.mechanisms.geometric import OUTPUTS_MAX

Transcript: TypeAlias = tuple[int | None, ...]
"""The answers so far, one per count: None if it is near its number, else a noisy count."""


@dataclass(frozen=True, slots=True)
class StreamedCounts:
    """Releases at most ``starts`` noisy counts, of those counts that are far from their public numbers.

    Pre: between neighbours each count moves by at most the sensitivity of ``above``; ``near`` gives the public number of the next count
    from the answers so far, and from nothing else. Post: differentially private at ``starts`` times the price of one start of ``above`` and
    one answer, however many counts there are. The output is the list of answers, up to the last start.
    """

    above: AboveThreshold
    starts: int
    scale_answer: Fraction
    near: Callable[[Transcript], int]
    clamp: tuple[int, int] | None = None
    """Ends of the released noisy counts, for an exact law."""

    def __post_init__(self) -> None:
        SparseVector(self.above, self.starts)  # checks the starts
        if self.above.monotone:
            raise Refused("mechanism-invalid", "distances from public numbers can move both ways, so they are not monotone")
        self.answer()

    def answer(self) -> LaplaceMechanism:
        """The mechanism that releases a count that is not near its number."""
        return LaplaceMechanism(self.scale_answer, self.above.sensitivity, clamp=self.clamp)

    def event(self) -> Event:
        """``starts`` times the epsilon, and the rho, of one start with its answer: adaptive composition."""
        one, answer = self.above.epsilon(), self.answer().event()
        assert answer.epsilon is not None and answer.rho is not None
        return Event(epsilon=self.starts * (one + answer.epsilon), rho=self.starts * (one**2 / 2 + answer.rho))

    def odds(self, *, decay: Fraction) -> Fraction:
        """``exp(epsilon)`` at this decay of the common scale of ``above``."""
        return (self.above.odds(decay=decay) * self.answer().odds(decay=decay ** self._exponent())) ** self.starts

    def law(self, value: tuple[int, ...], *, decay: Fraction) -> Mapping[Transcript, Fraction]:
        """The exact law of the answers to these counts, at this decay (see :meth:`AboveThreshold.exponents`)."""
        counts, answers = require_stream(value), self.answer()
        self._require_few(len(counts))
        outputs: dict[Transcript, Fraction] = {}
        begun: dict[Transcript, Fraction] = {(): Fraction(1)}
        for _ in range(self.starts):
            after: dict[Transcript, Fraction] = {}
            for told, chance in begun.items():
                near = tuple(self.near((*told, *([None] * ahead))) for ahead in range(len(counts) - len(told)))
                distances = tuple(abs(count - number) for count, number in zip(counts[len(told) :], near, strict=True))
                for index, probability in self.above.law(distances, decay=decay).items():
                    if index is None:
                        outputs[*told, *([None] * len(distances))] = chance * probability
                        continue
                    law = answers.law(counts[len(told) + index], decay=decay ** self._exponent())
                    for noisy, mass in law.items():
                        after[*told, *([None] * index), noisy] = chance * probability * mass
            begun = after
        return outputs | begun

    def _require_few(self, length: int) -> None:
        if self.clamp is not None:
            values = self.clamp[1] - self.clamp[0] + 1
            if sum(math.comb(length, answers) * values**answers for answers in range(self.starts + 1)) > OUTPUTS_MAX:
                raise Refused("law-unavailable", f"the law has more than {OUTPUTS_MAX} outputs")

    def error(self, *, confidence: Fraction, questions: int = 1) -> int:
        """The distance within which all ``questions`` are answered: by the public number where it is near, else by the noisy count.

        Half of the failure probability is for the comparisons, the other half for the answers, of which there are at most ``starts``.
        """
        half = 1 - (1 - Fraction(confidence)) / 2
        compared = SparseVector(self.above, self.starts).error(confidence=half, queries=questions)
        return max(self.above.threshold + compared, self.answer().error(confidence=half, coordinates=self.starts))

    def _exponent(self) -> int:
        """The decay of an answer's noise as a power of the common decay."""
        power = self.above.exponents()[0] * self.above.scale_threshold / self.scale_answer
        if power.denominator != 1:
            raise Refused(
                "law-unavailable",
                "the scale of the answers does not divide the common scale",
                hint="divide the common scale by a whole number",
            )
        return power.numerator
