"""Maps values to positions on an axis, and chooses round numbers for its ticks."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lapwing.answers.display.number_format import figure
from lapwing.answers.display.time_axis import Tick


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from ``low`` to ``high`` between two positions on the screen."""

    low: float
    high: float
    begin: float
    end: float

    def place(self, value: float) -> float:
        """The position of a value; one outside the axis is placed a little beyond its end, where it is clipped."""
        share = (value - self.low) / (self.high - self.low)
        return self.begin + min(max(share, -0.1), 1.1) * (self.end - self.begin)


def reach(ends: list[float], *, from_zero: bool) -> tuple[float, float]:
    """The range that a scale must show; never empty."""
    finite = [end for end in ends if math.isfinite(end)] + ([0.0] if from_zero else [])
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    if low == high:
        room = abs(low) * 0.1 or 1.0
        low, high = low - (0 if from_zero and low >= 0 else room), high + room
    room = 0.04 * (high - low)
    return (low if from_zero and low == 0 else low - room), (high if from_zero and high == 0 else high + room)


def number_ticks(low: float, high: float, *, most: int) -> list[Tick]:
    """Round numbers in a range, at most ``most``."""
    step = _step((high - low) / max(most, 1))
    first, last = math.ceil(low / step), math.floor(high / step)
    return [Tick(at * step, figure(at * step, digits=6)) for at in range(first, last + 1)]


def _step(least: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is at least ``least``."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))
