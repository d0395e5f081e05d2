"""Half-widths of sums of noisy cells: against exact tails, and never below what one cell needs."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from lapwing.answers.noise_sums import (
    EXACT_TERMS_MAX,
    gaussian_of_sum,
    gaussian_sum_factor,
    half_width_of_sum,
    laplace_chernoff_width,
)
from lapwing.errors import LapwingError
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law
from lapwing.spread import half_width, pmf

CONFIDENCE = Fraction(95, 100)


def mass_of_sum(law: Law, terms: int) -> dict[int, float]:
    """The law of a sum by convolution."""
    reach = 40 * math.ceil(law.scale)
    one = {z: pmf(law, z) for z in range(-reach, reach + 1)}
    found = {0: 1.0}
    for _ in range(terms):
        added: dict[int, float] = {}
        for a, x in found.items():
            for b, y in one.items():
                added[a + b] = added.get(a + b, 0.0) + x * y
        found = {z: value for z, value in added.items() if value > 1e-18}
    return found


def covered(mass: dict[int, float], width: int) -> float:
    return math.fsum(value for z, value in mass.items() if abs(z) <= width)


@pytest.mark.parametrize("terms", [2, 3, 7])
@pytest.mark.parametrize(
    "law",
    [DiscreteLaplace(Fraction(1, 2)), DiscreteLaplace(Fraction(3)), DiscreteGaussian(Fraction(1, 2)), DiscreteGaussian(Fraction(3))],
    ids=str,
)
def test_the_width_is_the_least_that_holds(law: Law, terms: int) -> None:
    mass = mass_of_sum(law, terms)
    width = half_width_of_sum(law, terms=terms, confidence=CONFIDENCE)
    assert covered(mass, width) >= 0.95
    if law.scale >= 1 or isinstance(law, DiscreteLaplace):
        assert covered(mass, width - 1) < 0.95
    else:  # a discrete Gaussian this narrow is not like the Gaussian of the sum: the sub-Gaussian bound holds instead
        assert width <= math.ceil(float(law.scale) * math.sqrt(2 * terms * math.log(2 / 0.05)))


@pytest.mark.parametrize("law", [DiscreteLaplace(Fraction(10**6)), DiscreteGaussian(Fraction(10**6))], ids=str)
@pytest.mark.parametrize("terms", [20, 400])
def test_many_terms_come_to_two_deviations(law: Law, terms: int) -> None:
    deviation = 10**6 * math.sqrt(terms * (2 if isinstance(law, DiscreteLaplace) else 1))
    assert half_width_of_sum(law, terms=terms, confidence=CONFIDENCE) == pytest.approx(1.96 * deviation, rel=0.01)


def test_one_term_is_the_law_itself() -> None:
    for law in (DiscreteLaplace(Fraction(5)), DiscreteGaussian(Fraction(5))):
        assert half_width_of_sum(law, terms=1, confidence=CONFIDENCE) == half_width(law, confidence=CONFIDENCE)


def test_more_draws_than_are_followed_exactly_use_a_bound_above() -> None:
    law = DiscreteLaplace(Fraction(5))
    below, above = (half_width_of_sum(law, terms=n, confidence=CONFIDENCE) for n in (EXACT_TERMS_MAX, EXACT_TERMS_MAX + 1))
    assert below < above < 1.5 * below
    assert laplace_chernoff_width((5.0,), terms=EXACT_TERMS_MAX, beyond=0.05) >= below


def test_the_factor_of_gaussian_sums_is_next_to_one_from_scale_two_on() -> None:
    assert 1 <= gaussian_sum_factor(Fraction(2), terms=10**5) < 1 + Fraction(1, 10**10)
    assert gaussian_sum_factor(Fraction(1, 4), terms=10) > 10**6
    for terms in (2, 5):
        mass, whole = mass_of_sum(DiscreteGaussian(Fraction(1)), terms), gaussian_of_sum(DiscreteGaussian(Fraction(1)), terms=terms)
        factor = float(gaussian_sum_factor(Fraction(1), terms=terms))
        assert all(value <= factor * pmf(whole, z) * (1 + 1e-9) for z, value in mass.items() if abs(z) <= 8)


@pytest.mark.parametrize("terms", [0, -1])
def test_a_sum_has_terms(terms: int) -> None:
    with pytest.raises(LapwingError) as caught:
        half_width_of_sum(DiscreteLaplace(Fraction(5)), terms=terms, confidence=CONFIDENCE)
    assert caught.value.code == "mechanism-invalid"
