"""What must hold of an envelope and of the draws made from it, for the law to be exact; in integers, against the law at 200 digits.

Each check speaks about all random numbers, not about a sample of them: a decision is a step in the random number, so that being right on
both sides of each step is being right everywhere.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from lapwing.kernel.laws import Law
from lapwing.kernel.noise import entropy, vectors
from lapwing.kernel.noise.envelope import GUIDE_BITS, WORD_BITS, WORDS, Envelope, Integers, exponent
from tests.unit.kernel.reference_laws import REFERENCE_DIGITS, exact, reference_weight

EXPONENT_MAX = 5_000
"""Numbers further out than this have too many digits to be looked at."""


def curve(law: Law, z: int) -> Fraction:
    """``exp(-E(z))`` at 200 digits."""
    with mpmath.workdps(REFERENCE_DIGITS):
        return exact(reference_weight(law, z))


def chance(shape: Envelope, z: int) -> Fraction:
    """The chance of keeping ``z`` that makes the law exact: its height over the height at which it is proposed, in units of the mass."""
    return shape.mass * curve(shape.law, z) / (proposed(shape, z) * (WORDS << shape.width_bits))


def proposed(shape: Envelope, z: int) -> Fraction:
    """The chance of proposing ``z``, from the weights."""
    cell = z >> shape.width_bits
    if cell < shape.cells:
        return Fraction(int(shape.weights[cell]), WORDS << shape.width_bits)
    block = (z - (shape.cells << shape.width_bits)) >> shape.beyond_bits
    return Fraction(int(shape.weights[shape.cells]), WORDS << (block + 1 + shape.beyond_bits))


def check_weights(shape: Envelope) -> None:
    """Weights add up, and no proposal would have to be kept with a chance above 1."""
    weights = shape.weights.tolist()
    assert sum(weights) == WORDS and min(weights) > 0 and len(weights) == shape.cells + 2
    for cell in range(shape.cells):
        assert chance(shape, cell << shape.width_bits) <= 1
    start = shape.cells << shape.width_bits
    assert start >= shape.law.scale and 2**shape.beyond_bits >= shape.law.scale, "each block beyond is at most half as high"
    for block in (0, 1, 2, 3, 10, 200):
        z = start + (block << shape.beyond_bits)
        assert exponent(shape.law, z) > EXPONENT_MAX or chance(shape, z) <= 1


def check_cells(shape: Envelope) -> None:
    """Every random number gets the cell in whose share it lies. The guide is constant, or a search, on each of its parts."""
    ends = np.cumsum(shape.weights)[:-1].tolist()
    part = 1 << (WORD_BITS - GUIDE_BITS)
    words = {word for start in range(0, WORDS, part) for word in (start, start + part - 1)}
    words |= {word for end in ends for word in (end - 1, end)}
    listed = sorted(words)
    assert shape.cell_of(np.array(listed, dtype=np.int64)).tolist() == [bisect.bisect_right(ends, word) for word in listed]


def places(shape: Envelope) -> Iterator[tuple[int, int]]:
    """Cells and places in them: all where they are few, else ends and some between, early ones too, where the bounds are tightest."""
    width = 1 << shape.width_bits
    rests = sorted({0, 1, (width - 1) >> 9, (width >> 6) + 1, width // 3, width - 1}) if width > 8 else range(width)
    step = max(1, shape.cells // 30)
    for cell in sorted({*range(0, shape.cells, step), 1, shape.cells - 1} & set(range(shape.cells))):
        for rest in rests:
            yield cell, rest


def quick(shape: Envelope, cell: int, rest: int, v: int) -> bool | None:
    """Kept, refused, or left open by the quick bounds."""
    one = [np.array([number], dtype=np.int64) for number in (cell, rest, v)]
    kept, refused = vectors._quick(shape, *one)
    assert not (kept[0] and refused[0])
    return True if kept[0] else False if refused[0] else None


def check_quick(shape: Envelope) -> None:
    """What 32 bits of V decide is what all its bits would decide; and they decide nearly always."""
    cells, rests, values, expected = [], [], [], []
    for cell, rest in places(shape):
        step = chance(shape, (cell << shape.width_bits) + rest) * WORDS
        for v in {math.floor(step) - 1, math.floor(step), math.floor(step) + 1, 0, WORDS - 1}:
            if 0 <= v < WORDS:
                cells.append(cell)
                rests.append(rest)
                values.append(v)
                expected.append(True if v + 1 <= step else False if v >= step else None)
    kept, refused = vectors._quick(shape, _array(cells), _array(rests), _array(values))
    for index, wanted in enumerate(expected):
        assert not (kept[index] and refused[index])
        assert not kept[index] or wanted is True, (cells[index], rests[index], values[index])
        assert not refused[index] or wanted is False, (cells[index], rests[index], values[index])
    for v in (0, 1, WORDS - 1):
        assert quick(shape, shape.cells, 0, v) is None, "beyond the cells nothing is known yet"
        assert quick(shape, shape.cells + 1, 0, v) is False, "the share of nothing gives nothing"


def check_settled(shape: Envelope) -> None:
    """Proposals left open, in a cell and beyond: kept exactly when V is below the chance, to as many bits as that takes."""
    for cell, rest in list(places(shape))[:: max(1, shape.cells // 20)]:
        _check_step(shape, (cell << shape.width_bits) + rest, cell, rest, [])
    start = shape.cells << shape.width_bits
    for block in (0, 1, 2, 5, 80):
        for place in {0, 2**shape.beyond_bits // 3, 2**shape.beyond_bits - 1}:
            z = start + (block << shape.beyond_bits) + place
            if exponent(shape.law, z) > EXPONENT_MAX:
                continue
            written = [(1, 1)] * block + [(0, 1), (place, shape.beyond_bits)]
            _check_step(shape, z, shape.cells, 0, written)


def _check_step(shape: Envelope, z: int, cell: int, rest: int, written: list[tuple[int, int]]) -> None:
    """V equal to the chance for 32, 96 and 160 bits, and then on either side of it; ``written`` are random numbers asked for before V's."""
    step = chance(shape, z)
    for bits in (WORD_BITS, WORD_BITS + 64, WORD_BITS + 128):
        for number, wanted in ((math.floor(step * 2**bits) - 1, z), (math.floor(step * 2**bits) + 1, None)):
            if not 0 <= number < 2**bits:
                continue
            words = [(number >> shift & (2**64 - 1), 64) for shift in range(bits - WORD_BITS - 64, -1, -64)]
            v = number >> (bits - WORD_BITS)
            assert scripted(Script([*written, *words]), vectors.settled, shape, cell, rest, v) == wanted, (z, bits)


class Script:
    """Random bytes as a test wants them: numbers of given bits, in the order in which they are asked for."""

    def __init__(self, numbers: Sequence[tuple[int, int]]) -> None:
        self._left = list(numbers)

    def __call__(self, size: int) -> bytes:
        number, bits = self._left.pop(0)
        assert size == (bits + 7) // 8, "asked for other bits than written"
        return (number << (8 * size - bits)).to_bytes(size, "little")


def scripted(source: Callable[[int], bytes], draw: Callable[..., Any], *arguments: object) -> Any:
    """What is drawn if the random bytes are those of the source."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entropy, "random_bytes", source)
        return draw(*arguments)


def check_stream(shape: Envelope) -> None:
    """A whole batch: what is kept, with its sign, in the order of the proposals, open ones in their places, and minus nothing never."""
    proposals: list[tuple[int, int, int, bool]] = []
    wanted: list[int] = []
    more: list[bytes] = []
    ends = np.cumsum(shape.weights).tolist()
    for cell, rest in list(places(shape))[::4]:
        z = (cell << shape.width_bits) + rest
        step = math.floor(chance(shape, z) * WORDS)
        for v, kept in ((0, True), (step, True), (step, False), (WORDS - 1, False)):
            if not 0 < step < WORDS - 1:
                continue
            for negative in (False, True):
                proposals.append((ends[cell] - 1, v, rest, negative))
                if v == step:
                    more.append(_bits_after(chance(shape, z), kept))
                if kept and (z or not negative):
                    wanted.append(-z if negative else z)
    bits, kind = (32, "<u4") if shape.width_bits < 32 else (64, "<u8")
    words = np.array([u | v << WORD_BITS for u, v, _, _ in proposals], dtype="<u8").tobytes()
    spots = np.array([rest | negative << (bits - 1) for _, _, rest, negative in proposals], dtype=kind).tobytes()
    left = [words, spots, *more]
    assert scripted(lambda size: _exactly(left.pop(0), size), vectors._batch, shape, len(proposals)).tolist() == wanted
    assert not left, "random bytes that nobody asked for"


def _bits_after(step: Fraction, below: bool) -> bytes:
    """64 bits that take V, equal to the step so far, to the wanted side of it."""
    number = math.floor(step * 2 ** (WORD_BITS + 64)) % 2**64
    after: int = number - 1 if below else number + 1
    return after.to_bytes(8, "little")


def _exactly(written: bytes, size: int) -> bytes:
    assert len(written) == size, "asked for other bytes than written"
    return written


def _array(numbers: Sequence[int]) -> Integers:
    return np.array(numbers, dtype=np.int64)


CHECKS = (check_weights, check_cells, check_quick, check_settled, check_stream)
"""Together: each magnitude is proposed with the chance said, and kept with the chance that makes the law exact."""
