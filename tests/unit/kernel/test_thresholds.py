"""The key threshold: the least that keeps delta, by an independent exact computation."""

from __future__ import annotations

import time
from fractions import Fraction
from functools import lru_cache
from typing import Any

import mpmath
import pytest

from lapwing.errors import LapwingError, Refused
from lapwing.kernel import thresholds
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law

LAWS = [
    make(scale) for make in (DiscreteLaplace, DiscreteGaussian) for scale in (Fraction(1, 2), Fraction(1), Fraction(11, 4), Fraction(20))
]
DELTAS = [Fraction(1, 10), Fraction(1, 2**20), Fraction(1, 2**41), Fraction(3, 10**25)]
GROUPS = [1, 2, 10, 1000]


@lru_cache
def reference_weights(law: Law) -> tuple[list[mpmath.mpf], mpmath.mpf]:
    """Unnormalised probabilities of 0, 1, 2, ... and the total over all integers, from the definition of the law."""
    with mpmath.workdps(120):
        scale = mpmath.mpf(law.scale.numerator) / law.scale.denominator
        if isinstance(law, DiscreteLaplace):
            weights = [mpmath.exp(-z / scale) for z in range(int(290 * scale) + 10)]
        else:
            weights = [mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * scale**2)) for z in range(int(25 * scale) + 60)]
        return weights, 2 * mpmath.fsum(weights) - 1


def exact_delta(law: Law, *, groups_per_unit: int, threshold: int) -> mpmath.mpf:
    """Probability that a lone unit shows any of its keys; it leaves out tails below 10^-120."""
    with mpmath.workdps(120):
        weights, total = reference_weights(law)
        # the key's count is 1 + Z, shown when it reaches the threshold
        shown = mpmath.fsum(weight for z, weight in enumerate(weights) if 1 + z >= threshold) / total
        return -mpmath.expm1(groups_per_unit * mpmath.log1p(-shown))


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_threshold_is_the_least_that_keeps_delta(law: Law) -> None:
    """And so a threshold lower by one is caught: its exact delta is above the one granted."""
    for delta in DELTAS:
        for groups in GROUPS:
            threshold = thresholds.least_threshold(law, groups_per_unit=groups, delta=delta)
            granted = mpmath.mpf(delta.numerator) / delta.denominator
            assert exact_delta(law, groups_per_unit=groups, threshold=threshold) <= granted
            if threshold > 2:  # the reference above counts from threshold 1 up
                assert exact_delta(law, groups_per_unit=groups, threshold=threshold - 1) > granted


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_delta_equals_the_exact_one_and_is_never_below(law: Law) -> None:
    for groups in GROUPS:
        for threshold in (2, 5, 30):
            bound = thresholds.threshold_delta(law, groups_per_unit=groups, threshold=threshold)
            with mpmath.workdps(120):
                real = exact_delta(law, groups_per_unit=groups, threshold=threshold)
                value = mpmath.mpf(bound.numerator) / bound.denominator
                if real > mpmath.mpf(10) ** -100:
                    assert real * (1 - mpmath.mpf(10) ** -60) <= value <= real * (1 + mpmath.mpf(10) ** -30)
                else:
                    assert value >= real * (1 - mpmath.mpf(10) ** -10)


@pytest.mark.parametrize("law", [DiscreteLaplace(Fraction(2)), DiscreteGaussian(Fraction(2))], ids=str)
def test_counting_the_noise_from_t_instead_of_t_minus_one_is_caught(law: Law) -> None:
    """A unit that alone carries a key makes its count 1, so it is shown when Z reaches T - 1. Forgetting that gives T - 1 for T."""
    delta = Fraction(1, 10**6)
    right = thresholds.least_threshold(law, groups_per_unit=3, delta=delta)
    forgetful = next(t for t in range(1, 200) if thresholds.threshold_delta(law, groups_per_unit=3, threshold=t + 1) <= delta)
    assert forgetful == right - 1
    assert exact_delta(law, groups_per_unit=3, threshold=forgetful) > mpmath.mpf(1) / 10**6


def test_opendp_threshold_understatement_is_not_ours() -> None:
    """At scale 1 and threshold 5 a lone unit is shown with probability e^-4 / (1 + e^-1) = 0.0134."""
    bound = thresholds.threshold_delta(DiscreteLaplace(Fraction(1)), groups_per_unit=1, threshold=5)
    assert abs(float(bound) - 0.013390) < 1e-6


def test_many_groups_and_large_scales() -> None:
    for law in (DiscreteLaplace(Fraction(2**40)), DiscreteGaussian(Fraction(2**40)), DiscreteGaussian(Fraction(129))):
        delta = Fraction(1, 10**30)
        threshold = thresholds.least_threshold(law, groups_per_unit=10**9, delta=delta)
        assert thresholds.threshold_delta(law, groups_per_unit=10**9, threshold=threshold) <= delta
        assert thresholds.threshold_delta(law, groups_per_unit=10**9, threshold=threshold - 1) > delta
        more = thresholds.least_threshold(law, groups_per_unit=10**9 + 10**8, delta=delta)
        assert more > threshold


def test_delta_is_a_probability() -> None:
    law = DiscreteLaplace(Fraction(1))
    assert thresholds.threshold_delta(law, groups_per_unit=10**6, threshold=-5) <= 1
    assert thresholds.threshold_delta(law, groups_per_unit=1, threshold=-(10**6)) == 1
    # a huge delta asks for less than one unit
    assert thresholds.least_threshold(law, groups_per_unit=1, delta=Fraction(99, 100)) <= 1


def test_thresholds_are_fast() -> None:
    chosen = [make(Fraction(n) + Fraction(1, 8)) for make in (DiscreteLaplace, DiscreteGaussian) for n in (1, 10, 100, 10**6)]
    start = time.perf_counter()
    for law in chosen:
        thresholds.least_threshold(law, groups_per_unit=7, delta=Fraction(1, 2**41))
    assert (time.perf_counter() - start) / len(chosen) < 0.1


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(-1), Fraction(1)])
def test_unknown_keys_need_delta(delta: Fraction) -> None:
    with pytest.raises(Refused) as refusal:
        thresholds.least_threshold(DiscreteLaplace(Fraction(1)), groups_per_unit=1, delta=delta)
    assert refusal.value.code == "threshold-needs-delta"


@pytest.mark.parametrize("groups", [0, -1, 1.0, True])
def test_groups_per_unit_is_a_positive_integer(groups: Any) -> None:
    law = DiscreteLaplace(Fraction(1))
    with pytest.raises(LapwingError) as refusal:
        thresholds.least_threshold(law, groups_per_unit=groups, delta=Fraction(1, 10))
    assert refusal.value.code == "groups-invalid"
    with pytest.raises(LapwingError) as refusal:
        thresholds.threshold_delta(law, groups_per_unit=groups, threshold=3)
    assert refusal.value.code == "groups-invalid"


def test_a_weight_is_the_largest_whole_number_whose_squares_fit() -> None:
    for bits in (0, 1, 5, 16):
        for groups in (*range(1, 200), 4**bits, 4**bits + 1, 100_000):
            weight = thresholds.spread_weight(bits, groups)
            assert groups * weight**2 <= 4**bits < groups * (weight + 1) ** 2


@pytest.mark.parametrize("law", [DiscreteGaussian(Fraction(scale)) for scale in (1, 30, 200, 3_000)])
@pytest.mark.parametrize("delta", [Fraction(1, 10), Fraction(1, 10**9)])
def test_the_threshold_of_weights_is_the_least_that_serves_every_number_of_groups(law: Law, delta: Fraction) -> None:
    bits, most = 6, 40
    found = thresholds.least_spread_threshold(law, bits=bits, groups_per_unit=most, delta=delta)
    needed = [
        thresholds.least_threshold(law, groups_per_unit=groups, delta=delta) - 1 + thresholds.spread_weight(bits, groups)
        for groups in range(1, most + 1)
    ]
    assert found == max(needed)


def test_the_threshold_of_weights_is_found_with_few_tails(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = 0
    exact = thresholds.threshold_delta

    def counted(law: Law, **asked: int) -> Fraction:
        nonlocal computed
        computed += 1
        return exact(law, **asked)

    monkeypatch.setattr(thresholds, "threshold_delta", counted)
    thresholds.least_spread_threshold(DiscreteGaussian(Fraction(123_456)), bits=16, groups_per_unit=100_000, delta=Fraction(1, 10**10))
    assert 0 < computed < 200
