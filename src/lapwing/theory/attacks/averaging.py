"""Averaging: independent noise on the same answer cancels out.

A tool that draws fresh noise for each question, and keeps no account, reveals the truth to an analyst who asks often enough: the mean of
``n`` answers has ``1/n`` of the variance of one. Accounting stops this attack, not larger noise: the same question gets the stored answer,
and every fresh answer is charged until the budget is spent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from lapwing.errors import LapwingError
from lapwing.kernel.numbers import require_exact


def guess_by_averaging(answers: Sequence[int | Fraction]) -> int:
    """The integer nearest to the mean of answers whose noise has mean 0; of two equally near integers, the larger."""
    if not answers:
        raise LapwingError("attack-input", "averaging needs at least one answer")
    require_exact(*answers)
    mean = Fraction(sum(answers, Fraction(0)), len(answers))
    return math.floor(mean + Fraction(1, 2))


def answers_needed(*, variance: Fraction, confidence: Fraction) -> int:
    """How many independent answers are enough for :func:`guess_by_averaging` to be right with this confidence.

    Pre: the noise of one answer has mean 0 and at most this variance, and the exact value is an integer. By Chebyshev's inequality the mean
    of ``n`` is off by 1/2 or more with probability at most ``4 variance / n``. For most laws far fewer are enough.
    """
    require_exact(variance, confidence)
    if variance < 0 or not 0 < confidence < 1:
        raise LapwingError("attack-input", "a variance must be at least 0, and a confidence must be between 0 and 1")
    return max(1, math.ceil(4 * variance / (1 - confidence)))
