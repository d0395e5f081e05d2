"""How far noise spreads, against high-precision references."""

from __future__ import annotations

import itertools
import math
import time
from fractions import Fraction

import mpmath
import pytest

from lapwing.errors import Refused
from lapwing.kernel.laws import SCALE_MIN, DiscreteGaussian, DiscreteLaplace, Law
from lapwing.spread import half_width, pmf, variance
from tests.unit.kernel.reference_laws import SMALL_SCALES, mp, reference_reach, reference_weight


@pytest.mark.parametrize("law", [make(scale) for make in (DiscreteLaplace, DiscreteGaussian) for scale in SMALL_SCALES], ids=str)
def test_the_half_width_is_the_least_that_covers(law: Law) -> None:
    with mpmath.workdps(60):
        weight = [reference_weight(law, z) for z in range(reference_reach(law, 40))]
        inside = [2 * w - weight[0] for w in itertools.accumulate(weight)]  # weight of |Z| <= t
        for confidence in (Fraction(1, 2), Fraction(9, 10), Fraction(95, 100), 1 - Fraction(1, 10**12)):
            width = half_width(law, confidence=confidence)
            assert inside[width] / inside[-1] >= mp(confidence)
            assert width == 0 or inside[width - 1] / inside[-1] < mp(confidence)


@pytest.mark.parametrize("exponent", [10, 30, 50])
def test_the_half_width_at_large_scales(exponent: int) -> None:
    gaussian = half_width(DiscreteGaussian(Fraction(2**exponent)), confidence=Fraction(95, 100))
    laplace = half_width(DiscreteLaplace(Fraction(2**exponent)), confidence=Fraction(95, 100))
    with mpmath.workdps(40):
        assert abs(gaussian + mpmath.mpf(1) / 2 - mpmath.sqrt(2) * mpmath.erfinv(mpmath.mpf(95) / 100) * 2**exponent) <= 1
        assert abs(laplace + mpmath.mpf(1) / 2 - mpmath.log(20) * 2**exponent) <= 1


def test_half_widths_and_tails_are_fast() -> None:
    chosen = [
        make(n * scale)
        for make in (DiscreteLaplace, DiscreteGaussian)
        for scale in (Fraction(1, 16), Fraction(11), Fraction(2**40 + 1))
        for n in (1, 3, 9)
    ]
    start = time.perf_counter()
    for law in chosen:
        half_width(law, confidence=Fraction(95, 100))
    assert (time.perf_counter() - start) / len(chosen) < 0.05


@pytest.mark.parametrize("confidence", [Fraction(0), Fraction(1), Fraction(-1), Fraction(2)])
def test_what_is_no_confidence_is_refused(confidence: Fraction) -> None:
    with pytest.raises(Refused) as refusal:
        half_width(DiscreteLaplace(Fraction(1)), confidence=confidence)
    assert refusal.value.code == "confidence-invalid"


@pytest.mark.parametrize("law", [make(scale) for make in (DiscreteLaplace, DiscreteGaussian) for scale in SMALL_SCALES], ids=str)
def test_pmf_and_variance_match_the_definition(law: Law) -> None:
    with mpmath.workdps(40):
        points = range(-reference_reach(law, 30), reference_reach(law, 30) + 1)
        weight = {z: reference_weight(law, z) for z in points}
        total = mpmath.fsum(weight.values())
        for z in (-7, -1, 0, 1, 2, 12):
            assert math.isclose(pmf(law, z), float(weight.get(z, mpmath.mpf(0)) / total), rel_tol=1e-12, abs_tol=1e-40)
        assert math.isclose(variance(law), float(mpmath.fsum(z * z * w for z, w in weight.items()) / total), rel_tol=1e-12)


def test_variance_and_pmf_at_the_ends() -> None:
    assert variance(DiscreteLaplace(SCALE_MIN)) == variance(DiscreteGaussian(SCALE_MIN)) == 0.0
    assert math.isclose(variance(DiscreteGaussian(Fraction(2**30))), 2.0**60, rel_tol=1e-12)
    assert math.isclose(variance(DiscreteLaplace(Fraction(2**30))), 2.0**61, rel_tol=1e-12)
    assert math.isclose(pmf(DiscreteGaussian(Fraction(2**30)), 0), 2.0**-30 / math.sqrt(2 * math.pi), rel_tol=1e-12)
