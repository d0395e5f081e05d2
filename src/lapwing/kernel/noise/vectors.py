"""Vectors of discrete Laplace and discrete Gaussian noise: exactly the law, in integers throughout, millions of draws a second.

A proposal is a cell of the envelope, a place in the cell and a sign; it is kept with the chance that the law needs, and minus zero is
never kept. Whether it is kept is a comparison of a uniform number V with a real number. 32 bits of V and integer bounds decide nearly all
of them, many at once; the rest get more bits of V and more digits of the real number until they are decided. No float takes part.

Proof: ``docs/proofs/drawing-noise.md``.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.kernel.laws import Law
from lapwing.kernel.noise import entropy
from lapwing.kernel.noise.envelope import WORD_BITS, WORDS, Envelope, Integers, envelope, exponent
from lapwing.kernel.numbers import exp_lower, exp_upper

BATCH_MAX = 1 << 14
"""Proposals made at once: their arrays fit a processor's cache."""

SMALL_MAX = 1 << 62
"""Draws up to this size are 64-bit integers, and so is their sum with a value of at most this size."""

_MORE_BITS = 64


def draw_noise(law: Law, number: int) -> npt.NDArray[Any]:
    """This many independent draws of the law: 64-bit integers, or Python's own where one is larger than ``SMALL_MAX``."""
    shape = envelope(law)
    drawn: list[npt.NDArray[Any]] = []
    left = number
    while left > 0:
        kept = _batch(shape, min(BATCH_MAX, left + left // 32 + 16))[:left]
        drawn.append(kept)
        left -= len(kept)
    return np.concatenate(drawn) if drawn else np.empty(0, dtype=np.int64)


def _batch(shape: Envelope, proposals: int) -> npt.NDArray[Any]:
    """The accepted draws among this many proposals, in order."""
    words = np.frombuffer(entropy.random_bytes(8 * proposals), dtype="<u8")
    cell = shape.cell_of((words & np.uint64(WORDS - 1)).view(np.int64))
    v = (words >> np.uint64(WORD_BITS)).view(np.int64)
    rest, negative = _places(shape.width_bits, proposals)
    magnitude = (cell << shape.width_bits) + rest

    kept, refused = _quick(shape, cell, rest, v)
    far: dict[int, int] = {}
    for index in np.flatnonzero(~(kept | refused)).tolist():
        z = settled(shape, int(cell[index]), int(rest[index]), int(v[index]))
        if z is not None:
            kept[index] = True
            magnitude[index] = min(z, SMALL_MAX)
            if z > SMALL_MAX:
                far[index] = z
    kept &= (magnitude != 0) | ~negative
    signed = np.where(negative, -magnitude, magnitude)
    if far:
        signed = signed.astype(object)
        for index, z in far.items():
            signed[index] = -z if negative[index] else z
    return signed[kept]


def _places(width_bits: int, proposals: int) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """Uniform places in a cell, and signs: the low bits and the highest bit of a random number."""
    bits, kind = (32, "<u4") if width_bits < 32 else (64, "<u8")
    places = np.frombuffer(entropy.random_bytes(bits // 8 * proposals), dtype=kind)
    rest = (places & places.dtype.type((1 << width_bits) - 1)).astype(np.int64)
    return rest, places >> places.dtype.type(bits - 1) == 1


def _quick(shape: Envelope, cell: Integers, rest: Integers, v: Integers) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which proposals are surely kept, and which are surely not, whatever bits of V follow.

    With x the growth of the exponent in the cell, below 1, ``1 - x + x^2 / 3 <= exp(-x) <= 1 - x + x^2 / 2``. All is counted in
    ``2 ** -WORD_BITS``. The first bound is tried without its square on all proposals, and with it on the few left.
    """
    offset = rest >> shape.offset_shift
    x_upper = _grown(shape, cell, offset + 1 if shape.offset_shift else offset, shape.slope_upper)
    kept = v + x_upper < shape.kept_lower[cell]
    refused = np.zeros(len(v), dtype=np.bool_)
    open_ = np.flatnonzero(~kept)
    cell, v, x_upper = cell[open_], v[open_], x_upper[open_]
    x_lower = _grown(shape, cell, offset[open_], shape.slope_lower) - 1
    chance, fall_upper = shape.kept_lower[cell], x_upper - (x_lower * x_lower >> WORD_BITS) // 3
    kept[open_] = v + (chance * fall_upper >> WORD_BITS) + 2 <= chance
    chance, fall_lower = shape.kept_upper[cell], np.maximum(x_lower - (x_upper * x_upper >> (WORD_BITS + 1)) - 1, 0)
    refused[open_] = v >= chance - (chance * fall_lower >> WORD_BITS)
    return kept, refused


def _grown(shape: Envelope, cell: Integers, offset: Integers, slope: int) -> Integers:
    """The growth of the exponent rounded down, plus 1."""
    return (shape.growth(cell, offset) * slope >> (64 - WORD_BITS)) + 1


def settled(shape: Envelope, cell: int, rest: int, v: int) -> int | None:
    """The magnitude of a proposal that the quick bounds left open, or None if it is not kept. ``v``: the first ``WORD_BITS`` bits of V."""
    if cell < shape.cells:
        z, share = (cell << shape.width_bits) + rest, Fraction(1)
    else:
        block = 0
        while entropy.random_bits(1):
            block += 1
        z = shape.beyond_start() + (block << shape.beyond_bits) + entropy.random_bits(shape.beyond_bits)
        share = Fraction(2 ** (block + 1 + shape.beyond_bits), 2**shape.width_bits)
    factor = shape.mass * share / int(shape.weights[cell])
    return z if is_below(v, WORD_BITS, factor, exponent(shape.law, z)) else None


def is_below(v: int, bits: int, factor: Fraction, power: Fraction) -> bool:
    """Whether V is below ``factor * exp(-power)``, given its first bits; the others are drawn as they are needed."""
    while True:
        if v + 1 <= factor * exp_lower(-power, digits=bits) * 2**bits:
            return True
        if v >= factor * exp_upper(-power, digits=bits) * 2**bits:
            return False
        v, bits = v << _MORE_BITS | entropy.random_bits(_MORE_BITS), bits + _MORE_BITS
