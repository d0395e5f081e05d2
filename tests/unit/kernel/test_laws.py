"""The noise laws: what they cost, what they buy, and their tails, against high-precision references."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing import prices
from lapwing.errors import LapwingError, Refused
from lapwing.kernel import laws, tails
from lapwing.kernel.accounting import Account
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law
from lapwing.prices import Family
from tests.unit.kernel.reference_laws import (
    SMALL_SCALES,
    exact,
    laplace_reference_tail,
    mp,
    reference_reach,
    reference_tail,
    reference_weight,
)


@pytest.mark.parametrize("law", [make(scale) for make in (DiscreteLaplace, DiscreteGaussian) for scale in SMALL_SCALES], ids=str)
def test_tails_equal_plain_summation_to_thirty_digits_and_are_never_below(law: Law) -> None:
    for t in (-20, -3, -1, 0, 1, 2, 5, 17, 40):
        real = reference_tail(law, t)
        bound = laws.tail_upper(law, t)
        # the reference itself leaves out 10^-150, which matters only where the tail is that small
        if real > Fraction(1, 10**45):
            assert real * (1 - Fraction(1, 10**100)) <= bound <= real * (1 + Fraction(1, 10**30))
        else:
            assert bound >= real


@settings(max_examples=150, deadline=None)
@given(st.floats(2.0**-10, 2.0**56), st.integers(-(10**6), 10**6), st.integers(1, 200))
def test_laplace_tail_equals_the_closed_form_to_thirty_digits(scale: float, t: int, spread: int) -> None:
    law = DiscreteLaplace(Fraction(scale))
    for where in (t, math.ceil(scale * spread), -math.ceil(scale * spread / 10)):
        if where / scale > 60_000:
            continue  # saturated: see test_numbers
        real = laplace_reference_tail(law.scale, where)
        bound = laws.tail_upper(law, where)
        assert real * (1 - Fraction(1, 10**100)) <= bound <= real * (1 + Fraction(1, 10**30))


def test_the_gaussian_tail_is_never_below_at_medium_scales() -> None:
    """On both sides of the scale where summation ends: term by term at 200 digits."""
    for scale, tolerance in ((Fraction(100), Fraction(1, 10**30)), (Fraction(128), Fraction(1, 10**30)), (Fraction(129), Fraction(1, 100))):
        law = DiscreteGaussian(scale)
        with mpmath.workdps(60):
            weights = [reference_weight(law, z) for z in range(2200)]
            total = 2 * mpmath.fsum(weights) - 1
            for t in (1, 60, 129, 130, 300, 700, 1000):
                real = exact(mpmath.fsum(weights[t:]) / total)
                bound = laws.tail_upper(law, t)
                assert real * (1 - Fraction(1, 10**30)) <= bound
                assert bound <= real * (1 + tolerance)
                # and the mirror: P[Z >= 1 - t] = 1 - P[Z >= t]
                assert 1 - real - Fraction(1, 10**40) <= laws.tail_upper(law, 1 - t) <= (1 - real) * (1 + tolerance)


@pytest.mark.parametrize("exponent", [8, 20, 40, 50, 56])
def test_the_gaussian_tail_at_large_scales_lies_between_two_integrals(exponent: int) -> None:
    scale = Fraction(2**exponent) - Fraction(2 ** max(0, exponent - 53))
    law = DiscreteGaussian(scale)
    for deviations in (Fraction(1, 3), Fraction(1), Fraction(2), Fraction(6), Fraction(12), Fraction(157, 10)):
        t = math.ceil(scale * deviations)
        with mpmath.workdps(80):

            def normal_tail(x: Fraction) -> Fraction:
                return exact(mpmath.erfc(mp(x) / mpmath.sqrt(2)) / 2)

            bound = laws.tail_upper(law, t)
            # the sum is at least the integral from t, and for t above sigma at most the one from t - 1/2 (the total is off by 10^-1000)
            assert bound >= normal_tail(t / scale)
            assert bound <= normal_tail((t - 1) / scale) * (1 + Fraction(1, 10**30))
            if t - Fraction(1, 2) > scale:
                assert bound <= normal_tail((t - Fraction(1, 2)) / scale) * (1 + Fraction(1, 10**30))


@pytest.mark.parametrize(
    "x", [Fraction(0), Fraction(1, 7), Fraction(1), Fraction(6), Fraction(31, 2), Fraction(16), Fraction(161, 10), Fraction(40)]
)
def test_the_normal_tail_is_enclosed(x: Fraction) -> None:
    with mpmath.workdps(150):
        real = exact(mpmath.erfc(mp(x) / mpmath.sqrt(2)) / 2)
    low, high = tails.normal_tail_lower(x), tails.normal_tail_upper(x)
    assert low <= real <= high
    # one series below 16; above it only the first term of the asymptotic one, off by 1/x^2
    assert high <= real * (1 + (Fraction(1, 10**30) if x <= 16 else 1 / x**2 + 3 / x**4))


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 2**400), Fraction(1, 8), Fraction(1), Fraction(25, 4), Fraction(16)])
def test_the_series_of_the_normal_tail_is_enclosed(x: Fraction) -> None:
    low, high = tails._central_series(x)
    with mpmath.workdps(300):
        real = exact(mpmath.erf(mp(x) / mpmath.sqrt(2)) * mpmath.exp(mp(x) ** 2 / 2) * mpmath.sqrt(mpmath.pi / 2)) if x else Fraction(0)
    # fixed point at 2^-400, a few hundred terms, their errors multiplied by up to exp(x^2 / 2)
    assert low <= real <= high <= low + Fraction(2**210, 2**400)


def test_pi_is_enclosed() -> None:
    with mpmath.workdps(200):
        assert tails.PI_LOWER < exact(+mpmath.pi) < tails.PI_UPPER


def test_far_tails_stay_positive_bounds() -> None:
    for law in (DiscreteLaplace(Fraction(1)), DiscreteGaussian(Fraction(1)), DiscreteGaussian(Fraction(1, 2**20))):
        for t in (10**3, 10**6, 10**12):
            assert 0 < laws.tail_upper(law, t) < Fraction(1, 10**190)
            assert 1 - Fraction(1, 10**190) < laws.tail_upper(law, -t) <= 1


SOME_LAWS = [make(scale) for make in (DiscreteLaplace, DiscreteGaussian) for scale in (Fraction(1, 2), Fraction(3))]


@pytest.mark.parametrize("law", SOME_LAWS, ids=str)
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_the_loss_covers_the_real_divergence(law: Law, shift: int) -> None:
    """Between the law and the law shifted: the max-divergence (pure), and Renyi divergences of many orders (approximate)."""
    with mpmath.workdps(40):
        reach = reference_reach(law, 30) + shift
        points = range(-reach, reach + 1)
        weight = {z: reference_weight(law, z) for z in range(-reach - shift, reach + shift + 1)}
        total = mpmath.fsum(weight.values())
        if isinstance(law, DiscreteLaplace):
            epsilon = mp(laws.loss(law, Account.PURE, l1=shift, l2_squared=shift**2))
            worst = max(mpmath.log(weight[z] / weight[z - shift]) for z in points)
            assert worst <= epsilon <= worst * (1 + mpmath.mpf(2) ** -39)
        rho = mp(laws.loss(law, Account.APPROXIMATE, l1=shift, l2_squared=shift**2))
        for order in (mpmath.mpf("1.01"), mpmath.mpf(2), mpmath.mpf(10)):
            renyi = mpmath.log(mpmath.fsum(weight[z] ** order * weight[z - shift] ** (1 - order) for z in points) / total) / (order - 1)
            assert renyi <= order * rho


def test_a_loss_of_half_would_not_cover_the_divergence() -> None:
    """The check above can fail: half the loss is caught."""
    law, shift = DiscreteGaussian(Fraction(3)), 2
    with mpmath.workdps(40):
        points = range(-200, 201)
        weight = {z: reference_weight(law, z) for z in range(-210, 211)}
        renyi = mpmath.log(mpmath.fsum(weight[z] ** 2 / weight[z - shift] for z in points) / mpmath.fsum(weight.values()))
        assert renyi > 2 * mp(laws.loss(law, Account.APPROXIMATE, l1=shift, l2_squared=shift**2) / 2)


def test_the_loss_is_the_formula_with_its_margin() -> None:
    margin = 1 + Fraction(1, 2**40)
    scale = Fraction(7, 4)
    assert laws.loss(DiscreteLaplace(scale), Account.PURE, l1=3, l2_squared=5) == margin * 3 / scale
    assert laws.loss(DiscreteLaplace(scale), Account.APPROXIMATE, l1=3, l2_squared=5) == margin * Fraction(9, 2) / scale**2
    assert laws.loss(DiscreteGaussian(scale), Account.APPROXIMATE, l1=3, l2_squared=5) == margin * Fraction(5, 2) / scale**2
    assert laws.loss(DiscreteGaussian(scale), Account.APPROXIMATE, l1=0, l2_squared=0) == 0


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([(Family.LAPLACE, Account.PURE), (Family.LAPLACE, Account.APPROXIMATE), (Family.GAUSSIAN, Account.APPROXIMATE)]),
    st.fractions(min_value=Fraction(1, 10**12), max_value=10**6, max_denominator=10**12).filter(lambda x: x > 0),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
)
def test_law_for_is_the_least_scale_that_the_loss_pays(kind: tuple[Family, Account], given_loss: Fraction, l1: int, l2: int) -> None:
    family, account = kind
    try:
        law = prices.law_for(account, loss=given_loss, l1=l1, l2_squared=l2, family=family)
    except Refused as refusal:
        assert refusal.code == "scale-invalid"
        largest = (DiscreteLaplace if family is Family.LAPLACE else DiscreteGaussian)(laws.SCALE_MAX)
        assert laws.loss(largest, account, l1=l1, l2_squared=l2) > given_loss
        return
    assert isinstance(law, DiscreteLaplace if family is Family.LAPLACE else DiscreteGaussian)
    assert laws.loss(law, account, l1=l1, l2_squared=l2) <= given_loss
    if law.scale > laws.SCALE_MIN:
        smaller = type(law)(Fraction(math.nextafter(float(law.scale), 0.0)))
        assert laws.loss(smaller, account, l1=l1, l2_squared=l2) > given_loss


@pytest.mark.parametrize(
    "scale",
    [Fraction(1, 3), Fraction(1, 2**21), Fraction(2**56 + 16), Fraction(2**55 + 1), Fraction(0), Fraction(-1), Fraction(1, 10), 1.5, 1],
)
def test_a_scale_the_sampler_would_round_is_refused(scale: Any) -> None:
    for make in (DiscreteLaplace, DiscreteGaussian):
        with pytest.raises(Refused) as refusal:
            make(scale)
        assert refusal.value.code == "scale-invalid"


def test_gaussian_needs_delta() -> None:
    with pytest.raises(Refused) as refusal:
        laws.loss(DiscreteGaussian(Fraction(1)), Account.PURE, l1=1, l2_squared=1)
    assert refusal.value.code == "gaussian-needs-delta"
    with pytest.raises(Refused) as refusal:
        prices.law_for(Account.PURE, loss=Fraction(1), l1=1, l2_squared=1, family=Family.GAUSSIAN)
    assert refusal.value.code == "gaussian-needs-delta"


def test_what_no_law_can_be_found_for_is_refused() -> None:
    for bad_loss, code in ((Fraction(0), "loss-invalid"), (Fraction(-1), "loss-invalid"), (Fraction(1, 10**40), "scale-invalid")):
        with pytest.raises(Refused) as refusal:
            prices.law_for(Account.APPROXIMATE, loss=bad_loss, l1=1, l2_squared=1, family=Family.GAUSSIAN)
        assert refusal.value.code == code
    a_float: Any = 0.5
    with pytest.raises(LapwingError) as wrong:
        prices.law_for(Account.PURE, loss=a_float, l1=1, l2_squared=1, family=Family.LAPLACE)
    assert wrong.value.code == "number-invalid"
    for l1, l2_squared in ((-1, 1), (1, -1), (1, a_float)):
        with pytest.raises(LapwingError) as wrong:
            laws.loss(DiscreteLaplace(Fraction(1)), Account.PURE, l1=l1, l2_squared=l2_squared)
        assert wrong.value.code == "sensitivity-invalid"


def test_what_has_no_quantile_is_refused() -> None:
    for probability in (Fraction(0), Fraction(1), Fraction(1, 2**201)):
        with pytest.raises(Refused) as refusal:
            laws.tail_quantile(DiscreteLaplace(Fraction(1)), probability)
        assert refusal.value.code == "probability-invalid"
    smallest = laws.tail_quantile(DiscreteGaussian(Fraction(2**40)), laws.PROBABILITY_MIN)
    assert laws.tail_upper(DiscreteGaussian(Fraction(2**40)), smallest) <= laws.PROBABILITY_MIN
