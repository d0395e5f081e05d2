"""The continuous Gaussian mechanism: enclosures against a high-precision reference, calibrations against their definition, GDP against
dp-accounting."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from math import exp, fsum, pi, sqrt

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.errors import LapwingError
from lapwing.theory import gaussian
from lapwing.theory.guarantees import Guarantee

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


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("z", [0, 1, 4])
def test_discrete_noise_is_a_rounded_gaussian_but_for_the_stated_factor(z: int, shift: int) -> None:
    """The random rounding of the proof, by the trapezium rule (exact to about 1e-15 here): sigma^2 = 3 = 2 + 1, smoothing 1."""
    closeness = gaussian.discrete_closeness_upper(cells=1, smoothing_squared=Fraction(1))
    assert 1 + Fraction(1, 10**9) < closeness < 1 + Fraction(1, 10**7)

    def integrand(y: float) -> float:
        total = fsum(exp(-((k - y) ** 2) / 2) for k in range(-30, 31))
        return exp(-((y - shift) ** 2) / 4) / sqrt(4 * pi) * exp(-((z - y) ** 2) / 2) / total

    rounded = fsum(integrand(k / 16) / 16 for k in range(-15 * 16, 17 * 16))
    discrete = exp(-((z - shift) ** 2) / 6) / fsum(exp(-(k**2) / 6) for k in range(-60, 61))
    assert 1 / float(closeness) <= rounded / discrete <= float(closeness)
    assert gaussian.discrete_mu_squared(sensitivity_squared=1, sigma_squared=Fraction(3), smoothing_squared=Fraction(1)) == Fraction(1, 2)


def normal_quantiles(sigma: Fraction, count: int) -> list[mpmath.mpf]:
    """``Q^-1(P[Z >= t])`` for t = 1, ..., count: where the corners of the discrete curve would lie on a normal scale."""
    reach = count + 40 * int(sigma) + 60
    weights = [mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * mp(sigma) ** 2)) for z in range(reach)]
    total = 2 * mpmath.fsum(weights) - 1
    found: list[mpmath.mpf] = []
    for t in range(1, count + 1):
        goal = mpmath.log(mpmath.fsum(weights[t:]) / total)
        guess = (t - mpmath.mpf("0.5")) / mp(sigma)
        found.append(mpmath.findroot(lambda x, goal=goal: mpmath.log(mpmath.erfc(x / mpmath.sqrt(2)) / 2) - goal, guess))
    return found


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(1), Fraction(2), Fraction(5)])
def test_the_discrete_curve_lies_below_the_gaussian_one_most_at_the_centre(sigma: Fraction) -> None:
    with mpmath.workdps(40):
        quantiles = normal_quantiles(sigma, 25)
        steps = [2 * quantiles[0], *(b - a for a, b in pairwise(quantiles))]
        # a step above 1/sigma is a corner below G: not (1/sigma)-GDP
        assert all(step * mp(sigma) > 1 for step in steps)
        assert max(steps) == steps[0]
        assert abs(steps[0] - mp(gaussian.discrete_least_mu_lower(sigma))) < mpmath.mpf(10) ** -20


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(1), Fraction(3), Fraction(30), Fraction(200), Fraction(1000)])
def test_discrete_noise_is_not_what_the_continuous_law_would_be(sigma: Fraction) -> None:
    excess = gaussian.discrete_least_mu_lower(sigma) * sigma - 1
    assert excess > 0
    if sigma >= 3:
        assert abs(excess * 24 * sigma**2 - 1) < Fraction(1, 50)
        # and the provable mu is on the other side
        assert gaussian.discrete_least_mu_lower(sigma) ** 2 < gaussian.discrete_mu_squared(sensitivity_squared=1, sigma_squared=sigma**2)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1)])
def test_the_discrete_bound_against_dp_accounting(epsilon: Fraction) -> None:
    """Forty counts with discrete noise, sigma 20: their optimistic distribution of the very law is below ours, and near."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    square = 40 * gaussian.discrete_mu_squared(sensitivity_squared=1, sigma_squared=Fraction(400), smoothing_squared=Fraction(2))
    closeness = gaussian.discrete_closeness_upper(cells=40, smoothing_squared=Fraction(2))
    ours = float(gaussian.discrete_delta_upper(mu_squared=square, epsilon=epsilon, closeness=closeness))
    theirs = pld.from_discrete_gaussian_mechanism(20.0, pessimistic_estimate=False, value_discretization_interval=1e-5).self_compose(40)
    assert theirs.get_delta_for_epsilon(float(epsilon)) <= ours <= 1.1 * theirs.get_delta_for_epsilon(float(epsilon))


def test_the_discrete_count_of_how_many_fit() -> None:
    """The 1,120 counts of the continuous law (variance 20,000, budget (1, 1e-6)) fit with discrete noise too."""
    square = gaussian.discrete_mu_squared(sensitivity_squared=1, sigma_squared=Fraction(20_000))
    closeness = gaussian.discrete_closeness_upper(cells=1121)
    deltas = [gaussian.discrete_delta_upper(mu_squared=k * square, epsilon=Fraction(1), closeness=closeness) for k in (1120, 1121)]
    assert deltas[0] <= Fraction(1, 10**6) < deltas[1]


@pytest.mark.parametrize("odds", [Fraction(1), Fraction(11, 10), Fraction(3), Fraction(50)])
def test_a_pure_guarantee_is_gaussian_at_its_corner(odds: Fraction) -> None:
    mu = gaussian.pure_mu_upper(Guarantee(odds))
    corner = 1 / (1 + odds)
    assert gaussian.trade_off_lower(mu_squared=mu**2, false_alarm=corner) <= corner
    if odds > 1:
        assert gaussian.trade_off_lower(mu_squared=(mu * Fraction(999, 1000)) ** 2, false_alarm=corner) > corner
    if odds == Fraction(11, 10):
        # pi/2 times the square of epsilon, where zCDP counts it once
        assert abs(float(mu**2 / Guarantee(odds).epsilon_upper() ** 2) - 1.5708) < 0.01


@pytest.mark.parametrize(
    "call",
    [
        lambda: gaussian.delta_upper(mu_squared=Fraction(-1), epsilon=Fraction(1)),
        lambda: gaussian.delta_upper(mu_squared=Fraction(1), epsilon=Fraction(-1)),
        lambda: gaussian.mu_squared(sensitivity=Fraction(1), sigma_squared=Fraction(0)),
        lambda: gaussian.sigma_analytic(epsilon=Fraction(1), delta=Fraction(0), sensitivity=Fraction(1)),
        lambda: gaussian.trade_off_lower(mu_squared=Fraction(1), false_alarm=Fraction(0)),
        lambda: gaussian.pure_mu_upper(Guarantee(Fraction(2), Fraction(1, 9))),
        lambda: gaussian.discrete_mu_squared(sensitivity_squared=1, sigma_squared=Fraction(4)),
        lambda: gaussian.discrete_closeness_upper(cells=-1),
        lambda: gaussian.discrete_delta_upper(mu_squared=Fraction(1), epsilon=Fraction(1), closeness=Fraction(9)),
        lambda: gaussian.discrete_least_mu_lower(Fraction(0)),
    ],
)
def test_refusals(call: Callable[[], object]) -> None:
    with pytest.raises(LapwingError) as refusal:
        call()
    assert refusal.value.code == "theory-argument"
