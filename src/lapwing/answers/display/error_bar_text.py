"""A number with its error bar as text: both to the third digit of the narrowest bar of their column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from lapwing.answers.display.number_format import figure
from lapwing.answers.intervals import Interval

DECIMALS_MAX = 9
LOPSIDED = 1.1
"""An error bar whose longer side is more than this many half-widths is shown with both sides."""


def decimals_of(values: Sequence[Any], intervals: Sequence[Interval | None]) -> int:
    """Decimals of a column: three digits of its narrowest error bar; none for whole numbers."""
    halves = [(interval.hi - interval.lo) / 2 for interval in intervals if interval is not None and interval.hi > interval.lo]
    if not halves or all(isinstance(value, int) or (isinstance(value, Decimal) and value == int(value)) for value in values):
        return 0
    return min(max(2 - math.floor(math.log10(min(halves))), 0), DECIMALS_MAX)


def number_text(value: float | int | Decimal | None, decimals: int) -> str:
    """The value as text; a value that rounds to zero is 0, not -0."""
    rounded: Any = None if value is None else round(value, decimals)
    return "NULL" if rounded is None else f"{rounded + 0:,.{decimals}f}"


def margin_text(value: float | int | Decimal | None, interval: Interval | None, decimals: int) -> str:
    """The half-width of its error bar, or both sides of an asymmetric one."""
    if value is None or interval is None:
        return ""
    half, below, above = (interval.hi - interval.lo) / 2, float(value) - interval.lo, interval.hi - float(value)
    if max(below, above) <= LOPSIDED * half:
        return f"{half:,.{decimals}f}"
    return f"-{max(below, 0.0):,.{decimals}f} +{max(above, 0.0):,.{decimals}f}"


def bars_in_words(name: str, values: Sequence[Any], intervals: Sequence[Interval | None]) -> str:
    """A column's error bars in short: that of its only value, or their range over all groups; empty if there are none."""
    found = [(float(value), bar.lo, bar.hi) for value, bar in zip(values, intervals, strict=True) if value is not None and bar is not None]
    if not found:
        return ""
    if len(values) == 1:
        ((value, lo, hi),), decimals = found, decimals_of(values, intervals)
        margin = margin_text(value, Interval(lo, hi), decimals)
        sides = f"between {number_text(lo, decimals)} and {number_text(hi, decimals)}" if margin.startswith("-") else f"±{margin}"
        return f"{name} {number_text(value, decimals)} {sides}"
    below, above = [value - lo for value, lo, _ in found], [hi - value for value, _, hi in found]
    if 2 * max(max(below), max(above)) > LOPSIDED * (max(below) + max(above)):
        return f"{name} at most -{figure(max(below), digits=3)} +{figure(max(above), digits=3)}"
    # The longer side of each bar: a side cut by a public bound says nothing about the noise.
    longer = list(map(max, below, above))
    least, most = figure(min(longer), digits=3), figure(max(longer), digits=3)
    return f"{name} ±{most} in every group" if least == most else f"{name} ±{least} to ±{most}"
