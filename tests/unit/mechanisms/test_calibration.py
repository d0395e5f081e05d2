"""The exact delta of the discrete Gaussian: against the definition, over all movements and all events; and the sigmas it decides about."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import mpmath
import pytest
from dp_accounting.pld.privacy_loss_mechanism import DiscreteGaussianPrivacyLoss
from scipy import stats

from lapwing.errors import LapwingError
from lapwing.kernel.accounting import rho_for
from lapwing.kernel.laws import SCALE_MAX, DiscreteGaussian
from lapwing.kernel.tails import gaussian_tail_upper
from lapwing.mechanisms.calibration import certify_gaussian, gaussian_delta, gaussian_sigma, gaussian_sigma_classic, gaussian_tail_lower


@lru_cache
def weights(sigma: Fraction, reach: int) -> dict[int, mpmath.mpf]:
    """Probabilities from the definition of the law, at 70 digits; beyond the reach nothing is left at that precision."""
    with mpmath.workdps(70):
        scale = mpmath.mpf(sigma.numerator) / sigma.denominator
        raw = {z: mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * scale**2)) for z in range(-reach, reach + 1)}
        total = mpmath.fsum(raw.values())
        return {z: w / total for z, w in raw.items()}


def defined_delta(sigma: Fraction, *, moved: int, epsilon: Fraction) -> mpmath.mpf:
    """The sum over all outputs of what one law has above exp(epsilon) times the other: the least delta, with no formula."""
    reach = int(18 * sigma) + moved + 30
    law = weights(sigma, reach)
    with mpmath.workdps(70):
        odds = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
        return mpmath.fsum(max(mpmath.mpf(0), law[z - moved] - odds * law[z]) for z in range(-reach + moved, reach + 1))


POINTS = [
    (sigma, sensitivity, epsilon)
    for sigma in (Fraction(1, 2), Fraction(1), Fraction(11, 4), Fraction(20), Fraction(128))
    for sensitivity in (1, 4)
    for epsilon in (Fraction(0), Fraction(1, 3), Fraction(5, 2))
]


@pytest.mark.parametrize(("sigma", "sensitivity", "epsilon"), POINTS)
def test_it_is_the_delta_of_the_definition(sigma: Fraction, sensitivity: int, epsilon: Fraction) -> None:
    """Never below, to 30 digits equal; and the largest movement is the worst."""
    bound = gaussian_delta(DiscreteGaussian(sigma), sensitivity=sensitivity, epsilon=epsilon)
    with mpmath.workdps(70):
        value = mpmath.mpf(bound.numerator) / bound.denominator
        deltas = [defined_delta(sigma, moved=moved, epsilon=epsilon) for moved in range(1, sensitivity + 1)]
        assert max(deltas) == deltas[-1]
        assert -(mpmath.mpf(10) ** -60) <= value - deltas[-1] <= mpmath.mpf(10) ** -35


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, Fraction(1, 100)), (30, Fraction(1)), (200, Fraction(1, 10)), (500, Fraction(2))])
def test_above_the_summed_scales_it_is_an_upper_bound_that_is_near(sensitivity: int, epsilon: Fraction) -> None:
    sigma = Fraction(150)
    bound = gaussian_delta(DiscreteGaussian(sigma), sensitivity=sensitivity, epsilon=epsilon)
    with mpmath.workdps(70):
        exact = defined_delta(sigma, moved=sensitivity, epsilon=epsilon)
        ratio = mpmath.mpf(bound.numerator) / bound.denominator / exact
        assert 1 <= ratio < 1.06


def test_it_tends_to_the_continuous_one() -> None:
    """At large sigma the closed form of Balle and Wang (2018), in floats, for a movement of the same number of sigmas."""
    for epsilon in (0.1, 1.0):
        sigma, moved = 1e6, 10**6
        continuous = stats.norm.sf(epsilon - 0.5) - math.exp(epsilon) * stats.norm.sf(epsilon + 0.5)
        bound = gaussian_delta(DiscreteGaussian(Fraction(sigma)), sensitivity=moved, epsilon=Fraction(epsilon))
        assert 1 - 1e-9 < bound / Fraction(continuous) < 1 + 1e-5


@pytest.mark.parametrize(("sigma", "sensitivity", "epsilon"), [(1.5, 1, 1.0), (8.0, 3, 0.5), (40.0, 7, 0.3)])
def test_another_implementation_agrees(sigma: float, sensitivity: int, epsilon: float) -> None:
    """dp-accounting's discrete Gaussian, in floats."""
    theirs = DiscreteGaussianPrivacyLoss(sigma=sigma, sensitivity=sensitivity).get_delta_for_epsilon(epsilon)
    ours = gaussian_delta(DiscreteGaussian(Fraction(sigma)), sensitivity=sensitivity, epsilon=Fraction(epsilon))
    assert math.isclose(ours, theirs, rel_tol=1e-6)


def test_the_continuous_formula_would_understate_delta_at_small_sigma() -> None:
    """Why the discrete formula is needed: at sigma 1/2 the normal law's delta is 14 % too small."""
    mu = 2.0
    continuous = stats.norm.sf(0.1 / mu - mu / 2) - math.exp(0.1) * stats.norm.sf(0.1 / mu + mu / 2)
    exact = defined_delta(Fraction(1, 2), moved=1, epsilon=Fraction(1, 10))
    assert float(continuous) < 0.87 * float(exact)


TARGETS = [
    (Fraction(1, 2), Fraction(1, 10**6), 1),
    (Fraction(9, 10), Fraction(1, 2**40), 1),
    (Fraction(1, 10), Fraction(1, 10**9), 3),
    (Fraction(1, 100), Fraction(1, 10**8), 1),
    (Fraction(1, 2), Fraction(9, 10), 1),
    (Fraction(3, 4), Fraction(1, 10**5), 10**6),
]


@pytest.mark.parametrize(("epsilon", "delta", "sensitivity"), TARGETS)
def test_the_least_sigma_is_enough_and_less_is_not_and_the_textbook_s_is_more(epsilon: Fraction, delta: Fraction, sensitivity: int) -> None:
    law = gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    certify_gaussian(law, sensitivity=sensitivity, epsilon=epsilon, delta=delta)
    less = DiscreteGaussian(Fraction(float(law.scale * (1 - Fraction(1, 2**28)))))
    assert gaussian_delta(less, sensitivity=sensitivity, epsilon=epsilon) > delta
    assert _code(lambda: certify_gaussian(less, sensitivity=sensitivity, epsilon=epsilon, delta=delta)) == "calibration-uncertified"
    classic = gaussian_sigma_classic(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    assert classic.scale > law.scale * Fraction(110, 100)
    assert gaussian_delta(classic, sensitivity=sensitivity, epsilon=epsilon) <= delta


def test_it_needs_less_noise_than_the_way_through_rho() -> None:
    """One answer at epsilon 1/2, delta 10^-6: the exact delta asks for 7 % less noise than zCDP's conversion."""
    epsilon, delta = Fraction(1, 2), Fraction(1, 10**6)
    sigma = float(gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=1).scale)
    through_rho = math.sqrt(1 / (2 * rho_for(epsilon=epsilon, delta=delta)))
    assert 0.92 < sigma / through_rho < 0.94


def test_a_large_epsilon() -> None:
    law = gaussian_sigma(epsilon=Fraction(8), delta=Fraction(1, 10**9), sensitivity=1)
    assert 0.7 < law.scale < 0.8
    exact = defined_delta(law.scale, moved=1, epsilon=Fraction(8))
    assert 0.99e-9 < float(exact) <= 1e-9


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(3), Fraction(100), Fraction(200)])
def test_the_lower_tail_bound_is_below_the_upper(sigma: Fraction) -> None:
    law = weights(sigma, int(20 * sigma) + 30)
    with mpmath.workdps(70):
        for t in (-int(4 * sigma), -1, 0, 1, 2, int(sigma) + 1, int(5 * sigma)):
            exact = mpmath.fsum(p for z, p in law.items() if z >= t)
            lower, upper = (
                mpmath.mpf(bound.numerator) / bound.denominator for bound in (gaussian_tail_lower(sigma, t), gaussian_tail_upper(sigma, t))
            )
            assert lower <= exact + mpmath.mpf(10) ** -60
            assert exact <= upper + mpmath.mpf(10) ** -60
            assert sigma > 128 or upper - lower < mpmath.mpf(10) ** -38


def _code(call: Callable[[], object]) -> str:
    with pytest.raises(LapwingError) as refusal:
        call()
    return refusal.value.code


def test_refusals() -> None:
    law, half, a_float = DiscreteGaussian(Fraction(1)), Fraction(1, 2), 0.5
    not_exact: Any = a_float
    assert gaussian_delta(law, sensitivity=0, epsilon=half) == 0
    assert _code(lambda: gaussian_delta(law, sensitivity=-1, epsilon=half)) == "sensitivity-invalid"
    assert _code(lambda: gaussian_delta(law, sensitivity=1, epsilon=not_exact)) == "number-invalid"
    assert _code(lambda: gaussian_delta(law, sensitivity=1, epsilon=-half)) == "calibration-invalid"
    assert _code(lambda: gaussian_sigma_classic(epsilon=Fraction(1), delta=half, sensitivity=1)) == "calibration-invalid"
    assert _code(lambda: gaussian_sigma(epsilon=Fraction(0), delta=half, sensitivity=1)) == "calibration-invalid"
    assert _code(lambda: gaussian_sigma(epsilon=half, delta=Fraction(0), sensitivity=1)) == "calibration-invalid"
    assert _code(lambda: gaussian_sigma(epsilon=half, delta=Fraction(1), sensitivity=1)) == "calibration-invalid"
    assert _code(lambda: gaussian_sigma(epsilon=half, delta=Fraction(1, 10**9), sensitivity=int(SCALE_MAX))) == "scale-invalid"
    assert _code(lambda: gaussian_sigma_classic(epsilon=Fraction(1, 10**400), delta=half, sensitivity=1)) == "scale-invalid"
