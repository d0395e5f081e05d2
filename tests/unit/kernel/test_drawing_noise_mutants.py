"""Planted faults of the sampler: each is seen by one of the checks of ``envelope_checks``, which look at no drawn value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law
from lapwing.kernel.noise import entropy, vectors
from lapwing.kernel.noise import envelope as envelopes
from lapwing.kernel.noise.envelope import SEARCHED, WORDS, Envelope, Integers, envelope
from tests.unit.kernel.envelope_checks import CHECKS, scripted

WIDE: tuple[Law, ...] = (DiscreteLaplace(Fraction(10**7)), DiscreteGaussian(Fraction(10**7)))
"""Cells of more integers than the quick bounds tell apart."""
NARROW: tuple[Law, ...] = (DiscreteLaplace(Fraction(6)), DiscreteGaussian(Fraction(6)))

Shaped = Callable[[Envelope], Envelope]


def with_weights(shape: Envelope, weights: Integers) -> Envelope:
    ends = np.cumsum(weights[:-1])
    return replace(shape, weights=weights, ends=ends, guide=envelopes._guide(ends))


def weights_rounded_down(shape: Envelope) -> Envelope:
    weights = shape.weights.copy()
    weights[:-1] -= 1
    weights[-1] = WORDS - weights[:-1].sum()
    return with_weights(shape, weights)


def weight_of_the_next_cell(shape: Envelope) -> Envelope:
    return with_weights(shape, np.concatenate([shape.weights[1:2], shape.weights[1:-1], [WORDS - shape.weights[1:-1].sum()]]))


def ends_off_by_one(shape: Envelope) -> Envelope:
    ends = shape.ends + 1
    return replace(shape, ends=ends, guide=envelopes._guide(ends))


def guide_trusted_everywhere(shape: Envelope) -> Envelope:
    guide = shape.guide.copy()
    for index in np.flatnonzero(guide == SEARCHED):
        guide[index] = guide[index - 1] if index else 0
    return replace(shape, guide=guide)


def bounds_trusted_to_the_last_bit(shape: Envelope) -> Envelope:
    return replace(shape, kept_lower=np.concatenate([shape.kept_upper[:-2] + 1, [0, 0]]))


def blocks_too_small(shape: Envelope) -> Envelope:
    return replace(shape, beyond_bits=shape.beyond_bits - 1)


def tail_cut_off(shape: Envelope) -> Envelope:
    return replace(shape, kept_upper=np.concatenate([shape.kept_upper[:-2], [0, 0]]))


def slope_a_hair_too_flat(shape: Envelope) -> Envelope:
    return replace(shape, slope_upper=shape.slope_upper * 999 // 1000)


SHAPED: dict[str, tuple[Shaped, tuple[Law, ...]]] = {
    "weights rounded down": (weights_rounded_down, NARROW),
    "a table that starts with the second cell": (weight_of_the_next_cell, NARROW),
    "ends off by one": (ends_off_by_one, NARROW),
    "the guide trusted where it does not decide": (guide_trusted_everywhere, NARROW),
    "a bound trusted to the last bit": (bounds_trusted_to_the_last_bit, NARROW),
    "blocks beyond the cells smaller than a scale": (blocks_too_small, WIDE),
    "the tail cut off": (tail_cut_off, NARROW),
    "a slope a hair too flat": (slope_a_hair_too_flat, WIDE),
}


def seen(shape: Envelope) -> bool:
    for check in CHECKS:
        try:
            check(shape)
        except (AssertionError, IndexError):
            return True
    return False


@pytest.mark.parametrize("law", (*NARROW, *WIDE), ids=str)
def test_without_a_fault_nothing_is_seen(law: Law) -> None:
    assert not seen(envelope(law))


@pytest.mark.parametrize("fault", SHAPED)
def test_a_fault_of_the_envelope_is_seen(fault: str) -> None:
    change, laws = SHAPED[fault]
    for law in laws:
        assert seen(change(envelope(law))), law


def first_bits_decide(v: int, bits: int, factor: Fraction, power: Fraction) -> bool:
    """A comparison in floats that asks for no more bits."""
    return bool(v < float(factor) * np.exp(-float(power)) * 2.0**bits)


def more_bits_are_zero(v: int, bits: int, factor: Fraction, power: Fraction) -> bool:
    return bool(scripted(bytes, IS_BELOW, v, bits, factor, power))


def open_ones_refused(shape: Envelope, cell: int, rest: int, v: int) -> int | None:
    return None


def beyond_proposed_twice(shape: Envelope, cell: int, rest: int, v: int) -> int | None:
    return SETTLED(replace(shape, mass=shape.mass / 2) if cell == shape.cells else shape, cell, rest, v)


def places_rounded(shape: Envelope, cell: Integers, rest: Integers, v: Integers) -> Any:
    """The quick bounds look at the start of a part of the cell, and take it for all of the part."""
    return QUICK(shape, cell, np.maximum(rest - (1 << shape.offset_shift), 0), v)


def square_forgotten(shape: Envelope, cell: Integers, rest: Integers, v: Integers) -> Any:
    """``exp(-x)`` taken for ``1 - x``."""
    kept, _ = QUICK(shape, cell, rest, v)
    fall = vectors._grown(shape, cell, rest >> shape.offset_shift, shape.slope_lower)
    return kept, ~kept & (v >= shape.kept_upper[cell] - fall) & (cell != shape.cells)


def minus_nothing_counted(shape: Envelope, proposals: int) -> Any:
    """Both signs of 0 are kept: 0 twice as often as the law says."""
    source = entropy.random_bytes
    words, spots = source(8 * proposals), source((4 if shape.width_bits < 32 else 8) * proposals)
    bits, kind = (32, "<u4") if shape.width_bits < 32 else (64, "<u8")
    places = np.frombuffer(spots, dtype=kind).copy()
    cell = shape.cell_of((np.frombuffer(words, dtype="<u8") & np.uint64(WORDS - 1)).view(np.int64))
    nothing = (cell == 0) & ((places & places.dtype.type((1 << shape.width_bits) - 1)) == 0)
    places[nothing] &= places.dtype.type((1 << (bits - 1)) - 1)
    left = [words, places.tobytes()]
    return scripted(lambda size: left.pop(0) if left else source(size), BATCH, shape, proposals)


def open_ones_last(shape: Envelope, proposals: int) -> Any:
    """Draws that took longer come at the end: the multiset is right, and the law of each place is not."""
    drawn = BATCH(shape, proposals)
    return np.roll(drawn, -1)


def sign_from_the_place(width_bits: int, proposals: int) -> Any:
    rest, _ = PLACES(width_bits, proposals)
    return rest, rest & 1 == 1


IS_BELOW, SETTLED, QUICK, BATCH, PLACES = vectors.is_below, vectors.settled, vectors._quick, vectors._batch, vectors._places
DRAWN: dict[str, tuple[str, Any]] = {
    "32 bits and a float decide": ("is_below", first_bits_decide),
    "later bits of V that are not random": ("is_below", more_bits_are_zero),
    "open proposals refused": ("settled", open_ones_refused),
    "too little kept beyond the cells": ("settled", beyond_proposed_twice),
    "places in a cell rounded": ("_quick", places_rounded),
    "the square forgotten": ("_quick", square_forgotten),
    "minus nothing counted": ("_batch", minus_nothing_counted),
    "open proposals put last": ("_batch", open_ones_last),
    "the sign taken from the place": ("_places", sign_from_the_place),
}


@pytest.mark.parametrize("fault", DRAWN)
def test_a_fault_of_drawing_is_seen(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, faulty = DRAWN[fault]
    monkeypatch.setattr(vectors, name, faulty)
    for law in WIDE:
        assert seen(envelope(law)), law
