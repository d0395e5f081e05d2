"""Rows on a line as a measure: one unit of mass between each two neighbouring rows, so that quantiles are where the mass reaches a level.

The rows are integers from ``lower`` to ``upper``; one fixed point stands just below and one just above, whatever the rows are. Between two
neighbouring points the mass 1 is spread evenly, and where rows are equal it lies in the one point. N rows make a mass of N + 1. The value
at which the mass below reaches ``1 + q (N - 1)`` is the q-quantile as SQL interpolates it.

This suits privacy: one more row adds a measure that is nowhere negative and has mass 1. All numbers are exact.

Proof: ``docs/proofs/quantiles.md``.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import TypeAlias

from lapwing.errors import LapwingError

SHARES = 2**32
"""The number of equal shares into which the mass in one point can be cut."""


class RankLine:
    """The measure of some rows. It holds rows, so its text form shows nothing of them."""

    __slots__ = ("_before", "_values", "lower", "upper")

    def __init__(self, values: Sequence[int], counts: Sequence[int], *, lower: int, upper: int) -> None:
        """From distinct increasing values and the number of rows with each; refuses (code ``value-invalid``) anything else."""
        inside = not values or (lower <= values[0] and values[-1] <= upper)
        if not inside or len(values) != len(counts) or any(a >= b for a, b in pairwise(values)) or any(count < 1 for count in counts):
            raise LapwingError("value-invalid", "the rows of a quantile are counts of distinct increasing values inside its bounds")
        self.lower = lower
        self.upper = upper
        self._values = values
        self._before = [0, *accumulate(counts)]

    def __repr__(self) -> str:
        return "<RankLine: redacted>"

    @property
    def mass(self) -> int:
        """The mass of the whole line: the number of rows plus 1."""
        return self._before[-1] + 1

    def _gap(self, place: int) -> tuple[int, int]:
        """The point before value number ``place``, and that value; the fixed points at both ends."""
        start = self._values[place - 1] if place else self.lower - 1
        return start, self._values[place] if place < len(self._values) else self.upper + 1

    def below(self, value: int) -> Fraction:
        """The mass below a value, without the mass in it."""
        place = bisect_left(self._values, value)
        start, end = self._gap(place)
        return self._before[place] + Fraction(value - start, end - start)

    def through(self, value: int) -> Fraction:
        """The mass up to a value, with the mass in it."""
        place = bisect_left(self._values, value)
        if place < len(self._values) and self._values[place] == value:
            return Fraction(self._before[place + 1])
        return self.below(value)

    def first_through(self, level: Fraction) -> int:
        """The least value up to which the mass reaches a level above 0; ``upper + 1`` where none does."""
        place = bisect_left(self._before, math.ceil(level), 1) - 1
        start, end = self._gap(place)
        return min(end, start + max(1, math.ceil((level - self._before[place]) * (end - start))))

    def first_below_over(self, level: Fraction) -> int:
        """The least value below which there is more mass than a level; ``upper + 1`` where there is none."""
        place = min(bisect_left(self._before, math.floor(level)), len(self._values))
        start, end = self._gap(place)
        return min(end, start + max(1, math.floor((level - self._before[place]) * (end - start)) + 1))


@dataclass(frozen=True, slots=True, order=True)
class Cut:
    """A place that splits the line: all below ``value``, and this share of the mass in it (in units of 1 / SHARES), lie to the left."""

    value: int
    share: int = 0

    def mass(self, line: RankLine) -> Fraction:
        """The mass to the left."""
        below = line.below(self.value)
        return below if not self.share else below + (line.through(self.value) - below) * Fraction(self.share, SHARES)


@dataclass(frozen=True, slots=True)
class Segment:
    """What lies between two cuts of a line: the values there, and the mass to the left of either end."""

    line: RankLine
    start: Cut
    end: Cut
    low: Fraction = field(repr=False)
    high: Fraction = field(repr=False)

    @staticmethod
    def between(line: RankLine, start: Cut, end: Cut) -> Segment:
        """The part between two cuts, the first of which is not to the right of the second."""
        return Segment(line, start, end, start.mass(line), end.mass(line))

    @staticmethod
    def whole(line: RankLine) -> Segment:
        """The whole line, both fixed points included."""
        return Segment.between(line, Cut(line.lower - 1), Cut(line.upper + 1))

    @property
    def values(self) -> range:
        """The values in it; they follow from the cuts alone."""
        return range(max(self.start.value, self.line.lower), min(self.end.value, self.line.upper) + 1)

    def inside(self, cut: Cut) -> Cut:
        """The cut, or the end of the part if it lies beyond that end."""
        return max(self.start, min(self.end, cut))


@dataclass(frozen=True, slots=True)
class ValueCandidates:
    """The values of a part as candidates for a quantile, in increasing order. Levels of mass are counted from the start of the line."""

    part: Segment

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.part.values)

    def value(self, index: int) -> int:
        """The candidate."""
        return self.part.values[index]

    def ends(self, index: int) -> tuple[Fraction, Fraction]:
        """The level below a candidate and the level up to it, as far as the part goes."""
        part, value = self.part, self.value(index)
        return min(max(part.line.below(value), part.low), part.high), min(max(part.line.through(value), part.low), part.high)

    def under(self, level: Fraction) -> int:
        """How many candidates have less than this level up to them; these are the first ones."""
        if level <= self.part.low:
            return 0
        if level > self.part.high:
            return self.size
        return _within(self.part.line.first_through(level) - self.part.values[0], self.size)

    def over(self, level: Fraction) -> int:
        """How many candidates have more than this level below them; these are the last ones."""
        if level < self.part.low:
            return self.size
        if level >= self.part.high:
            return 0
        return self.size - _within(self.part.line.first_below_over(level) - self.part.values[0], self.size)


@dataclass(frozen=True, slots=True)
class CutCandidates:
    """The cuts of a part as candidates, ``SHARES`` per value, in increasing order."""

    part: Segment

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.part.values) * SHARES

    def cut(self, index: int) -> Cut:
        """The candidate. Those beyond an end of the part, with none of its mass on one side, all stand for that end."""
        place, share = divmod(index, SHARES)
        return self.part.inside(Cut(self.part.values[place], share))

    def ends(self, index: int) -> tuple[Fraction, Fraction]:
        """The level to the left of a cut, twice."""
        level = self.cut(index).mass(self.part.line)
        return level, level

    def under(self, level: Fraction) -> int:
        """How many cuts have less than this level to the left; these are the first ones."""
        if level <= self.part.low:
            return 0
        if level > self.part.high:
            return self.size
        return self._first(self.part.line.first_through(level), level, reached=True)

    def over(self, level: Fraction) -> int:
        """How many cuts have more than this level to the left; these are the last ones."""
        if level < self.part.low:
            return self.size
        if level >= self.part.high:
            return 0
        value = self.part.line.first_below_over(level)
        if self.part.line.through(value - 1) > level:
            value -= 1  # the mass in the point before passes the level
        return self.size - self._first(value, level, reached=False)

    def _first(self, value: int, level: Fraction, *, reached: bool) -> int:
        """The number of the first cut at ``value`` whose level is at least (``reached``) or above this; the next value's where none is."""
        below, through = self.part.line.below(value), self.part.line.through(value)
        share = 0
        if through > below:
            exact = (level - below) / (through - below) * SHARES
            share = max(0, math.ceil(exact) if reached else math.floor(exact) + 1)
        return _within((value - self.part.values[0]) * SHARES + min(share, SHARES), self.size)


Candidates: TypeAlias = ValueCandidates | CutCandidates


def _within(count: int, size: int) -> int:
    return min(max(count, 0), size)
