"""Noise added to integers: exact laws, the odds they attain, and error bounds that hold under the law."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest

from lapwing.errors import LapwingError, Refused
from lapwing.kernel.accounting import Account
from lapwing.mechanisms.additive import GaussianMechanism, LaplaceMechanism, clamped, gaussian_for, geometric, laplace_for
from lapwing.mechanisms.geometric import OUTPUTS_MAX, mass, tail
from tests.unit.mechanisms.ratios import ratio, worst_ratio

DECAYS = [Fraction(1, 2), Fraction(2, 3), Fraction(9, 10)]
ONE = Fraction(1)


@pytest.mark.parametrize("decay", DECAYS)
def test_tails_are_the_sums_of_masses(decay: Fraction) -> None:
    """P[Z >= t] and P[Z >= t + 1] differ by the mass of t, tails are symmetric, and far out they vanish: so they are the sums."""
    for t in range(-30, 31):
        assert tail(t, decay=decay) - tail(t + 1, decay=decay) == mass(t, decay=decay)
        assert tail(t, decay=decay) + tail(1 - t, decay=decay) == 1
    assert 0 < tail(10**3, decay=decay) < Fraction(1, 10**20)


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("l1", [1, 2, 3])
def test_the_truncated_geometric_attains_its_odds(decay: Fraction, l1: int) -> None:
    mechanism = LaplaceMechanism(ONE, l1, clamp=(0, 5))
    pairs = [(x, y) for x in range(-2, 8) for y in range(-2, 8) if abs(x - y) <= l1]
    assert worst_ratio(mechanism, pairs, decay=decay) == mechanism.odds(decay=decay) == decay**-l1


def test_values_further_apart_than_the_sensitivity_pass_the_odds() -> None:
    """The comparison above can fail: sensitivity 2 under a claim for 1."""
    mechanism = LaplaceMechanism(ONE, 1, clamp=(0, 5))
    assert worst_ratio(mechanism, [(2, 4)], decay=DECAYS[0]) == mechanism.odds(decay=DECAYS[0]) ** 2


@pytest.mark.parametrize("decay", DECAYS)
def test_a_vector_attains_its_odds(decay: Fraction) -> None:
    mechanism = LaplaceMechanism(ONE, 2, clamp=(-1, 2))
    points = list(itertools.product(range(-1, 3), repeat=2))
    pairs = [(x, y) for x in points for y in points if abs(x[0] - y[0]) + abs(x[1] - y[1]) <= 2]
    assert worst_ratio(mechanism, pairs, decay=decay) == mechanism.odds(decay=decay) == decay**-2


def test_a_law_written_out() -> None:
    """Decay 1/2 around 1, clamped to 0..3: 1/3 at the centre, half as much a step away, all beyond in the ends."""
    assert LaplaceMechanism(ONE, 1, clamp=(0, 3)).law(1, decay=Fraction(1, 2)) == {
        0: Fraction(1, 3),
        1: Fraction(1, 3),
        2: Fraction(1, 6),
        3: Fraction(1, 6),
    }
    assert LaplaceMechanism(ONE, 1, clamp=(3, 3)).law(1, decay=Fraction(1, 2)) == {3: Fraction(1)}


def test_renormalising_instead_of_clamping_would_pass_the_odds() -> None:
    """Why the output is clamped: drawing again until it lies in the range changes the total, and with it the odds."""
    decay = Fraction(1, 2)

    def renormalised(value: int) -> dict[Any, Fraction]:
        weights = {output: mass(output - value, decay=decay) for output in range(4)}
        return {output: weight / sum(weights.values()) for output, weight in weights.items()}

    assert ratio(renormalised(0), renormalised(1)) > LaplaceMechanism(ONE, 1, clamp=(0, 3)).odds(decay=decay)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(20)])
@pytest.mark.parametrize("confidence", [Fraction(1, 2), Fraction(19, 20), Fraction(999, 1000)])
def test_the_error_bound_holds_and_is_the_least(scale: Fraction, confidence: Fraction) -> None:
    mechanism = LaplaceMechanism(scale, 1)
    decay = Fraction(math.exp(-1 / scale))  # the law at the mechanism's own scale, to 16 digits
    width = mechanism.error(confidence=confidence)
    assert 1 - 2 * tail(width + 1, decay=decay) >= confidence
    assert width == 0 or 1 - 2 * tail(width, decay=decay) < confidence
    several = mechanism.error(confidence=confidence, coordinates=10)
    assert (1 - 2 * tail(several + 1, decay=decay)) ** 10 >= confidence
    assert several > width


def test_events() -> None:
    laplace = LaplaceMechanism(Fraction(4), 2).event()
    assert laplace.epsilon is not None and laplace.rho is not None
    assert Fraction(1, 2) < laplace.epsilon < Fraction(1, 2) + Fraction(1, 10**9)
    assert Fraction(1, 8) < laplace.rho < Fraction(1, 8) + Fraction(1, 10**9)
    gaussian = GaussianMechanism(Fraction(4), 2).event()
    assert gaussian.epsilon is None and gaussian.rho is not None
    assert Fraction(1, 16) < gaussian.rho < Fraction(1, 16) + Fraction(1, 10**9)
    with pytest.raises(Refused) as refusal:
        gaussian.cost(Account.PURE)
    assert refusal.value.code == "event-needs-delta"


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(7, 3)])
def test_the_least_scale_fits_and_a_smaller_one_does_not(epsilon: Fraction) -> None:
    mechanism = laplace_for(epsilon=epsilon, l1=3)
    below = LaplaceMechanism(Fraction(math.nextafter(float(mechanism.scale), 0.0)), 3)
    spent, spent_below = mechanism.event().epsilon, below.event().epsilon
    assert spent is not None and spent_below is not None
    assert spent <= epsilon < spent_below
    rho, rho_below = gaussian_for(rho=epsilon, l2_squared=5), None
    rho_below = GaussianMechanism(Fraction(math.nextafter(float(rho.scale), 0.0)), 5).event().rho
    assert rho.event().rho is not None and rho_below is not None
    assert (rho.event().rho or 0) <= epsilon < rho_below


@pytest.mark.parametrize("alpha", DECAYS)
def test_the_geometric_mechanism_by_alpha(alpha: Fraction) -> None:
    mechanism = geometric(alpha=alpha, clamp=(0, 10))
    assert math.isclose(math.exp(-1 / mechanism.scale), alpha, rel_tol=1e-15)
    assert mechanism.odds(decay=alpha) == 1 / alpha
    assert mechanism.law(3, decay=alpha)[4] / mechanism.law(3, decay=alpha)[3] == alpha


def test_clamping() -> None:
    assert clamped(7, (0, 5)) == 5
    assert clamped((-7, 3), (0, 5)) == (0, 3)
    assert clamped((-7, 3), None) == (-7, 3)


def _code(call: Any) -> str:
    with pytest.raises(LapwingError) as refusal:
        call()
    return refusal.value.code


def test_refusals() -> None:
    half = Fraction(1, 2)
    a_float: Any = 0.5
    assert _code(lambda: LaplaceMechanism(ONE, -1)) == "sensitivity-invalid"
    assert _code(lambda: LaplaceMechanism(Fraction(1, 3), 1)) == "scale-invalid"
    assert _code(lambda: LaplaceMechanism(ONE, 1, clamp=(1, 0))) == "mechanism-invalid"
    assert _code(lambda: GaussianMechanism(ONE, -1)) == "sensitivity-invalid"
    assert _code(lambda: LaplaceMechanism(ONE, 1).law(0, decay=half)) == "law-unavailable"
    assert _code(lambda: LaplaceMechanism(ONE, 1, clamp=(0, OUTPUTS_MAX)).law(0, decay=half)) == "law-unavailable"
    clamped_one = LaplaceMechanism(ONE, 1, clamp=(0, 1))
    assert _code(lambda: clamped_one.law(0, decay=a_float)) == "decay-invalid"
    assert _code(lambda: clamped_one.law(a_float, decay=half)) == "value-invalid"
    assert _code(lambda: clamped_one.law((1, a_float), decay=half)) == "value-invalid"
    assert _code(lambda: clamped_one.odds(decay=ONE)) == "decay-invalid"
    assert _code(lambda: clamped_one.error(confidence=half, coordinates=0)) == "mechanism-invalid"
    assert _code(lambda: clamped_one.error(confidence=ONE)) == "confidence-invalid"
    assert _code(lambda: geometric(alpha=a_float)) == "decay-invalid"
    assert _code(lambda: geometric(alpha=1 - Fraction(1, 10**130))) == "scale-invalid"
    assert _code(lambda: geometric(alpha=1 - Fraction(1, 10**18))) == "scale-invalid"
    assert _code(lambda: laplace_for(epsilon=Fraction(1, 10**400), l1=1)) == "scale-invalid"
