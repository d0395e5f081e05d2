"""Randomised response: one draw for each person's answer."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

from lapwing.errors import LapwingError
from lapwing.kernel.noise.reference import opendp_library
from lapwing.kernel.numbers import require_exact


def respond(answers: Sequence[int], *, categories: int, truth: Fraction, epsilon_charged: Fraction) -> list[int]:
    """Each answer unchanged with probability ``truth``, else one of the other categories, independently.

    Pre: ``truth`` is above ``1 / categories`` and below 1, and a float represents it exactly; answers are from 0 to ``categories - 1``; the
    caller charged ``epsilon_charged``. The sampler's own map must not exceed it, or nothing is drawn (``noise-undercharged``).
    """
    require_exact(epsilon_charged)
    measurement = _measurement(categories, float(truth))
    if Fraction(float(truth)) != truth or Fraction(measurement.map(1)) > epsilon_charged:
        raise LapwingError("noise-undercharged", "the noise would cost more than was charged")
    return [int(measurement(answer)) for answer in answers]


@lru_cache(maxsize=64)
def _measurement(categories: int, truth: float) -> Any:
    """OpenDP's mechanism on the numbers of the categories."""
    dp = opendp_library()
    return dp.m.make_randomized_response(list(range(categories)), truth, T="i64")
