"""The continuous Gaussian mechanism: enclosures against a high-precision reference, calibrations against their definition, GDP against
dp-accounting."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import sqrt

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.errors import LapwingError
from lapwing.theory import gaussian

mus = st.fractions(min_value=Fraction(1, 50), max_value=6, max_denominator=50)
epsilons = st.fractions(min_value=0, max_value=8, max_denominator=20)
DIGITS = 60


def mp(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


def tail(x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.erfc(x / mpmath.sqrt(2)) / 2


@given(st.fractions(min_value=-12, max_value=12, max_denominator=100))
def test_tails_enclose_the_reference(x: Fraction) -> None:
    with mpmath.workdps(DIGITS):
        lower, upper = mp(gaussian.tail_lower(x)), mp(gaussian.tail_upper(x))
        slack = mpmath.mpf(10) ** -50
        assert lower - slack <= tail(mp(x)) <= upper + slack
        assert upper - lower < slack


@settings(max_examples=60, deadline=None)
@given(mus, epsilons)
def test_delta_encloses_the_reference(mu: Fraction, epsilon: Fraction) -> None:
    lower = gaussian.delta_lower(mu_squared=mu**2, epsilon=epsilon)
    upper = gaussian.delta_upper(mu_squared=mu**2, epsilon=epsilon)
    with mpmath.workdps(DIGITS):
        m, e = mp(mu), mp(epsilon)
        reference = tail(e / m - m / 2) - mpmath.exp(e) * tail(e / m + m / 2)
        slack = mpmath.mpf(10) ** -40
        assert mp(lower) - slack <= reference <= mp(upper) + slack
        assert mp(upper) - mp(lower) < slack
    assert lower <= upper


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1, 2), Fraction(99, 100)])
@pytest.mark.parametrize("delta", [Fraction(1, 10**3), Fraction(1, 10**6), Fraction(1, 2**40)])
def test_the_classic_calibration_is_sound_and_never_better_than_the_analytic(epsilon: Fraction, delta: Fraction) -> None:
    classic = gaussian.sigma_classic(epsilon=epsilon, delta=delta, sensitivity=Fraction(3))
    analytic = gaussian.sigma_analytic(epsilon=epsilon, delta=delta, sensitivity=Fraction(3))
    assert gaussian.delta_upper(mu_squared=(3 / classic) ** 2, epsilon=epsilon) <= delta
    assert analytic < classic
    assert abs(float(classic) - sqrt(2 * float(mpmath.log(1.25 / float(delta)))) * 3 / float(epsilon)) < 1e-9 * float(classic)


def test_the_classic_formula_is_false_for_large_epsilon_and_refused_there() -> None:
    delta = Fraction(1, 10)
    epsilon = Fraction(20)
    with mpmath.workdps(30):
        formula = Fraction(str(mpmath.sqrt(2 * mpmath.log(mpmath.mpf("12.5"))) / 20))
    assert gaussian.delta_lower(mu_squared=1 / formula**2, epsilon=epsilon) > delta
    with pytest.raises(LapwingError) as refusal:
        gaussian.sigma_classic(epsilon=epsilon, delta=delta, sensitivity=Fraction(1))
    assert refusal.value.code == "theory-argument"


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(1, 100), Fraction(1), Fraction(10)])
@pytest.mark.parametrize("delta", [Fraction(1, 10), Fraction(1, 10**6)])
def test_the_analytic_sigma_is_enough_and_least(epsilon: Fraction, delta: Fraction) -> None:
    sigma = gaussian.sigma_analytic(epsilon=epsilon, delta=delta, sensitivity=Fraction(1))
    assert gaussian.delta_upper(mu_squared=1 / sigma**2, epsilon=epsilon) <= delta
    smaller = sigma * (1 - Fraction(1, 10**9))
    assert gaussian.delta_lower(mu_squared=1 / smaller**2, epsilon=epsilon) > delta


def test_the_analytic_sigma_against_dp_accounting() -> None:
    from dp_accounting.pld import privacy_loss_mechanism as mechanism

    target = mechanism.common.DifferentialPrivacyParameters(1.0, 1e-6)
    theirs = mechanism.GaussianPrivacyLoss.from_privacy_guarantee(target).standard_deviation
    ours = float(gaussian.sigma_analytic(epsilon=Fraction(1), delta=Fraction(1, 10**6), sensitivity=Fraction(1)))
    assert abs(theirs - ours) < 1e-5 * ours


@settings(max_examples=40, deadline=None)
@given(mus, st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(999, 1000), max_denominator=1000))
def test_the_trade_off_curve_encloses_the_reference(mu: Fraction, alpha: Fraction) -> None:
    lower = gaussian.trade_off_lower(mu_squared=mu**2, false_alarm=alpha)
    upper = gaussian.trade_off_upper(mu_squared=mu**2, false_alarm=alpha)
    assert lower <= upper <= lower + Fraction(1, 10**20)
    with mpmath.workdps(DIGITS):
        quantile = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mp(alpha))
        reference = tail(mp(mu) - quantile)
        assert mp(lower) <= reference + mpmath.mpf(10) ** -20 and reference <= mp(upper) + mpmath.mpf(10) ** -20


@settings(max_examples=30, deadline=None)
@given(mus, epsilons, st.fractions(min_value=Fraction(1, 100), max_value=Fraction(99, 100), max_denominator=100))
def test_curve_and_delta_are_two_views_of_one_guarantee(mu: Fraction, epsilon: Fraction, alpha: Fraction) -> None:
    """(epsilon, delta) says: misses >= 1 - delta - exp(epsilon) alpha. The curve is the upper envelope of these lines, so no line is above
    it."""
    from lapwing.kernel.numbers import exp_upper

    line = 1 - gaussian.delta_upper(mu_squared=mu**2, epsilon=epsilon) - exp_upper(epsilon) * alpha
    assert line <= gaussian.trade_off_upper(mu_squared=mu**2, false_alarm=alpha)


def test_composition_adds_squares_like_one_larger_gaussian() -> None:
    parts = [gaussian.mu_squared(sensitivity=Fraction(s), sigma_squared=Fraction(v)) for s, v in ((3, 90), (1, 10), (2, 8))]
    assert gaussian.composed(parts) == Fraction(1, 10) + Fraction(1, 10) + Fraction(1, 2)
    # ten counts with variance 40 are one count with variance 4
    assert gaussian.composed([Fraction(1, 40)] * 10) == gaussian.mu_squared(sensitivity=Fraction(1), sigma_squared=Fraction(4))


@pytest.mark.parametrize(
    "call",
    [
        lambda: gaussian.delta_upper(mu_squared=Fraction(-1), epsilon=Fraction(1)),
        lambda: gaussian.delta_upper(mu_squared=Fraction(1), epsilon=Fraction(-1)),
        lambda: gaussian.mu_squared(sensitivity=Fraction(1), sigma_squared=Fraction(0)),
        lambda: gaussian.sigma_analytic(epsilon=Fraction(1), delta=Fraction(0), sensitivity=Fraction(1)),
        lambda: gaussian.trade_off_lower(mu_squared=Fraction(1), false_alarm=Fraction(0)),
    ],
)
def test_refusals(call: Callable[[], object]) -> None:
    with pytest.raises(LapwingError) as refusal:
        call()
    assert refusal.value.code == "theory-argument"
