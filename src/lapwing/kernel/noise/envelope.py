"""The envelope of a noise law: finitely many integer weights over the law's curve, from which magnitudes are proposed.

Magnitudes lie in cells of ``width`` integers, a power of two near a hundredth of the scale. Cell ``q`` weighs at least ``mass`` times the
curve at its start, and all magnitudes beyond the last cell weigh at least ``mass`` times an envelope of theirs. A proposal lies above the
curve, therefore, and is kept with the chance that brings it down to the curve; ``lapwing.kernel.noise.vectors`` does both.

Nothing here has to be close for the law to be right. What must hold: weights are integers rounded up, and bounds lie on the sides that they
name. Proof: ``docs/proofs/drawing-noise.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law
from lapwing.kernel.numbers import ceil_div, exp_lower, exp_upper

Integers: TypeAlias = npt.NDArray[np.int64]

WORD_BITS = 32
"""Bits of the random number that chooses a cell, and of the one that decides whether a proposal is kept."""

WORDS = 1 << WORD_BITS

CELLS_PER_SCALE = 16
"""At least so many cells to one scale, once cells are wider than one integer."""

GUIDE_BITS = 13
"""A table of this many leading bits gives the cell of most random numbers without a search."""

SEARCHED = -1
"""In the guide: these leading bits do not decide the cell."""

OFFSET_BITS = 16
"""Leading bits of the offset in a cell that the quick bounds use."""

_FIXED_BITS = 128
_ONE = 1 << _FIXED_BITS
_NEGLIGIBLE = _ONE >> (WORD_BITS + 2)


def exponent(law: Law, z: int) -> Fraction:
    """``E(z)``, where the law is proportional to ``exp(-E(z))``."""
    match law:
        case DiscreteLaplace():
            return abs(z) / law.scale
        case DiscreteGaussian():
            return z**2 / (2 * law.scale**2)
        case never:
            assert_never(never)


@dataclass(frozen=True, slots=True, eq=False)
class Envelope:
    """Weights of the cells ``0 .. cells - 1``, then of all that lies beyond, then of nothing: together ``2 ** WORD_BITS``."""

    law: Law
    width_bits: int
    """A cell has ``2 ** width_bits`` integers."""
    cells: int
    beyond_bits: int
    """What lies beyond is in blocks of ``2 ** beyond_bits`` integers, at least a scale, each block half as likely as the one before."""
    mass: Fraction
    weights: Integers
    ends: Integers
    """Cumulative weights of the cells, the one beyond included: the cell of a random number is the count of sums that it reaches."""
    guide: Integers
    kept_lower: Integers
    """At most ``2 ** WORD_BITS`` times the chance of keeping the first integer of a cell; 0 for what lies beyond, and for nothing."""
    kept_upper: Integers
    """At least as much; for what lies beyond the chance is not known here, and bounded by 1."""
    slope_lower: int
    """``2 ** 64`` times how much the exponent grows in a cell, per unit of the product that ``growth`` forms; rounded down."""
    slope_upper: int
    """The same, rounded up."""

    @property
    def offset_shift(self) -> int:
        """How many low bits of the offset in a cell the quick bounds ignore."""
        return max(0, self.width_bits - OFFSET_BITS)

    def growth(self, cell: Integers, offset: Integers) -> Integers:
        """What the exponent's growth from the start of the cell to the offset is proportional to, in integers."""
        match self.law:
            case DiscreteLaplace():
                return offset
            case DiscreteGaussian():
                # (z^2 - start^2) = rest (2 start + rest), both counted in offsets
                return offset * ((cell << (self.width_bits - self.offset_shift + 1)) + offset)
            case never:
                assert_never(never)

    def beyond_start(self) -> int:
        """The least magnitude beyond the cells."""
        return self.cells << self.width_bits

    def cell_of(self, word: Integers) -> Integers:
        """The cell of each random number below ``2 ** WORD_BITS``."""
        cell: Integers = self.guide[word >> (WORD_BITS - GUIDE_BITS)]
        searched = np.flatnonzero(cell == SEARCHED)
        cell[searched] = np.searchsorted(self.ends, word[searched], side="right")
        return cell


@lru_cache(maxsize=64)
def envelope(law: Law) -> Envelope:
    """The envelope of a law. Takes milliseconds, so recent ones are remembered; they depend on public scales alone."""
    width_bits = max(0, (math.floor(law.scale) // CELLS_PER_SCALE).bit_length() - 1)
    beyond_bits = (math.ceil(law.scale) - 1).bit_length()
    lower, upper = _curve(law, width_bits)
    cells = len(upper) - 1
    # Beyond, block j of B integers lies below exp(-E(start)) / 2^j: together 2 B integers at the height of the start, 2 B / width cells.
    heights = [*upper[:-1], upper[-1] << (beyond_bits + 1 - width_bits)]
    total, room = sum(heights), WORDS - cells - 2
    mass = Fraction(room << _FIXED_BITS, total)
    weights = [ceil_div(room * height, total) for height in heights]
    kept_lower = [(room * low << WORD_BITS) // (total * weight) for low, weight in zip(lower[:-1], weights[:-1], strict=True)]
    kept_upper = [ceil_div(room * high << WORD_BITS, total * weight) for high, weight in zip(upper[:-1], weights[:-1], strict=True)]
    slope = _growth_step(law, width_bits) * 2**64 if width_bits else Fraction(0)  # in a cell of one integer nothing grows
    ends = np.cumsum(np.array(weights, dtype=np.int64))
    return Envelope(
        law,
        width_bits,
        cells,
        beyond_bits,
        mass,
        np.array([*weights, WORDS - sum(weights)], dtype=np.int64),
        ends,
        _guide(ends),
        np.array([*kept_lower, 0, 0], dtype=np.int64),
        np.array([*kept_upper, WORDS, 0], dtype=np.int64),
        math.floor(slope),
        math.ceil(slope),
    )


def _growth_step(law: Law, width_bits: int) -> Fraction:
    """What ``Envelope.growth`` is multiplied by to give the growth of the exponent."""
    offset = Fraction(2) ** max(0, width_bits - OFFSET_BITS)
    match law:
        case DiscreteLaplace():
            return offset / law.scale
        case DiscreteGaussian():
            return offset**2 / (2 * law.scale**2)
        case never:
            assert_never(never)


def _curve(law: Law, width_bits: int) -> tuple[list[int], list[int]]:
    """Bounds of ``exp(-E)`` at the starts of the cells, over ``2 ** _FIXED_BITS``, up to the first negligible one.

    Both exponents grow from start to start by steps that themselves grow evenly, so each height is the one before times a ratio, and each
    ratio the one before times a constant.
    """
    first = exponent(law, 1 << width_bits)
    bend = exponent(law, 2 << width_bits) - 2 * first
    ratio_lower, ratio_upper = math.floor(exp_lower(-first) * _ONE), math.ceil(exp_upper(-first) * _ONE)
    bend_lower, bend_upper = math.floor(exp_lower(-bend) * _ONE), math.ceil(exp_upper(-bend) * _ONE)
    lower, upper = [_ONE], [_ONE]
    while upper[-1] > _NEGLIGIBLE:
        lower.append(lower[-1] * ratio_lower >> _FIXED_BITS)
        upper.append(-(-upper[-1] * ratio_upper >> _FIXED_BITS))
        ratio_lower = ratio_lower * bend_lower >> _FIXED_BITS
        ratio_upper = -(-ratio_upper * bend_upper >> _FIXED_BITS)
    return lower, upper


def _guide(ends: Integers) -> Integers:
    """For each choice of leading bits the cell, if the cell of the least number that starts so is also that of the greatest."""
    starts = np.arange(1 << GUIDE_BITS, dtype=np.int64) << (WORD_BITS - GUIDE_BITS)
    first = np.searchsorted(ends, starts, side="right")
    last = np.searchsorted(ends, starts + (1 << (WORD_BITS - GUIDE_BITS)) - 1, side="right")
    return np.where(first == last, first, SEARCHED)
