"""All mechanisms with an exact law have one shape, checked by the type checker (the annotations below) and here by use."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import pytest

from lapwing.kernel.accounting import Account
from lapwing.kernel.laws import DiscreteLaplace
from lapwing.kernel.neighbours import Neighbours
from lapwing.mechanisms.above_threshold import AboveThreshold, SparseVector
from lapwing.mechanisms.additive import LaplaceMechanism
from lapwing.mechanisms.key_set import KeySet
from lapwing.mechanisms.mechanism import Mechanism
from lapwing.mechanisms.noisy_max import NoisyMax
from lapwing.mechanisms.quantiles import QuantileSelection
from lapwing.mechanisms.response import RandomisedResponse
from lapwing.mechanisms.selection import ExponentialMechanism, PermuteAndFlip
from lapwing.mechanisms.streamed_counts import StreamedCounts, Transcript
from lapwing.mechanisms.top_k import TopK

TWO = Fraction(2)
SCORES = (3, 1, 2)

count: Mechanism[int, int] = LaplaceMechanism(TWO, 1, clamp=(0, 5))
counts: Mechanism[tuple[int, ...], tuple[int, ...]] = LaplaceMechanism(TWO, 2, clamp=(0, 5))
answer: Mechanism[int, int] = RandomisedResponse(3, Fraction(1, 2))
answers: Mechanism[tuple[int, ...], tuple[int, ...]] = RandomisedResponse(3, Fraction(1, 2))
first: Mechanism[tuple[int, ...], int | None] = AboveThreshold(1, 2, TWO, 2 * TWO)
several: Mechanism[tuple[int, ...], tuple[int, ...]] = SparseVector(AboveThreshold(1, 2, TWO, 2 * TWO), 2)
streamed: Mechanism[tuple[int, ...], Transcript] = StreamedCounts(AboveThreshold(1, 2, TWO, 2 * TWO), 2, TWO, len, clamp=(0, 5))
keys: Mechanism[tuple[int, ...], frozenset[int]] = KeySet(DiscreteLaplace(TWO), 1, 4)
exponential: Mechanism[tuple[int, ...], int] = ExponentialMechanism(TWO, 1, 3)
flipped: Mechanism[tuple[int, ...], int] = PermuteAndFlip(TWO, 1, 3)
noisiest: Mechanism[tuple[int, ...], int] = NoisyMax(TWO, 1, 3)
top: Mechanism[tuple[int, ...], tuple[int, ...]] = TopK(2, TWO, 1, 3)
median: Mechanism[tuple[int, ...], int] = QuantileSelection((1, 2, 5), Fraction(1, 2), 1, Neighbours.UNBOUNDED, TWO)

ALL: list[tuple[Mechanism[Any, Any], Any]] = [
    (count, 3),
    (counts, (3, 4)),
    (answer, 1),
    (answers, (1, 2)),
    (first, SCORES),
    (several, SCORES),
    (streamed, SCORES),
    (keys, SCORES),
    (exponential, SCORES),
    (flipped, SCORES),
    (noisiest, SCORES),
    (top, SCORES),
    (median, SCORES),
]


@pytest.mark.parametrize(("mechanism", "value"), ALL, ids=[f"{type(m).__name__}-{v}" for m, v in ALL])
def test_what_every_mechanism_says_of_itself(mechanism: Mechanism[Any, Any], value: Any) -> None:
    event = mechanism.event()
    assert event.epsilon is not None and event.rho is not None
    assert 0 < event.rho <= event.epsilon**2 / 2
    assert event.cost(Account.APPROXIMATE).loss > 0
    for decay in (Fraction(1, 2), Fraction(2, 3)):
        law = mechanism.law(value, decay=decay)
        assert sum(law.values()) == 1 and min(law.values()) > 0 and len(law) > 1
        assert all(type(chance) is Fraction for chance in law.values())
        assert mechanism.odds(decay=decay) > 1
    widths = [mechanism.error(confidence=confidence) for confidence in (Fraction(1, 2), Fraction(9, 10), Fraction(999, 1000))]
    assert widths == sorted(widths) and widths[-1] > 0 and all(type(width) is int for width in widths)


@pytest.mark.parametrize(("mechanism", "value"), ALL, ids=[f"{type(m).__name__}-{v}" for m, v in ALL])
def test_a_mechanism_is_a_frozen_record(mechanism: Any, value: Any) -> None:
    name = dataclasses.fields(mechanism)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(mechanism, name, value)
    assert not hasattr(mechanism, "__dict__")
