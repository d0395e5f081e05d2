"""Directed bounds, against mpmath at 300 digits: on the right side, and close."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing import prices
from lapwing.errors import LapwingError
from lapwing.kernel import numbers

GAP = Fraction(1, 10**105)
"""Relative distance allowed between a bound and the real value."""


def reference(function: Callable[[mpmath.mpf], mpmath.mpf], x: Fraction) -> Fraction:
    """The function at x to about 290 digits: far closer than any bound, so it stands for the real value."""
    with mpmath.workdps(300):
        sign, mantissa, exponent, _ = function(mpmath.mpf(x.numerator) / x.denominator)._mpf_
        return Fraction(-int(mantissa) if sign else int(mantissa)) * Fraction(2) ** int(exponent)


positive = st.builds(
    lambda numerator, denominator, power: Fraction(numerator, denominator) * Fraction(10) ** power,
    st.integers(1, 10**20),
    st.integers(1, 10**20),
    st.integers(-60, 60),
)


@settings(max_examples=200, deadline=None)
@given(st.fractions(min_value=-60_000, max_value=60_000, max_denominator=10**30))
def test_exp_is_enclosed(x: Fraction) -> None:
    real = reference(mpmath.exp, x)
    assert numbers.exp_lower(x) <= real <= numbers.exp_upper(x)
    assert numbers.exp_upper(x) - numbers.exp_lower(x) <= real * GAP


@settings(max_examples=200, deadline=None)
@given(positive)
def test_ln_is_enclosed(x: Fraction) -> None:
    real = reference(mpmath.log, x)
    assert numbers.ln_lower(x) <= real <= numbers.ln_upper(x)
    # near 1 the logarithm itself is small, and what is lost is relative to the argument
    assert numbers.ln_upper(x) - numbers.ln_lower(x) <= max(abs(real), Fraction(1)) * GAP


@settings(max_examples=300, deadline=None)
@given(st.one_of(positive, st.just(Fraction(0))))
def test_sqrt_is_enclosed(x: Fraction) -> None:
    low, high = numbers.sqrt_lower(x), numbers.sqrt_upper(x)
    assert low**2 <= x <= high**2
    assert high - low <= low * GAP


def test_sqrt_is_exact_on_dyadic_squares() -> None:
    for root in (Fraction(3), Fraction(7, 8), Fraction(2**60 + 1, 2**90), Fraction(2**300)):
        assert numbers.sqrt_lower(root**2) == numbers.sqrt_upper(root**2) == root


@pytest.mark.parametrize("power", [1, 50, 119, 120, 121, 200])
def test_ln_next_to_one_stays_on_its_side(power: int) -> None:
    tiny = Fraction(1, 10**power)
    for x in (1 + tiny, 1 - tiny):
        real = reference(mpmath.log, x)
        assert numbers.ln_lower(x) <= real <= numbers.ln_upper(x)
    assert numbers.ln_lower(Fraction(1)) == numbers.ln_upper(Fraction(1)) == 0


def test_exp_saturates_on_the_safe_side() -> None:
    limit = numbers.EXP_ARGUMENT_MAX
    far = Fraction(10) ** 15
    assert numbers.exp_upper(-far) == numbers.exp_upper(Fraction(-limit)) > 0
    assert numbers.exp_lower(-far) == 0
    assert numbers.exp_lower(far) == numbers.exp_lower(Fraction(limit))
    with pytest.raises(LapwingError) as refusal:
        numbers.exp_upper(far)
    assert refusal.value.code == "number-too-large"
    assert numbers.exp_lower(Fraction(0)) == numbers.exp_upper(Fraction(0)) == 1


@settings(max_examples=500, deadline=None)
@given(st.one_of(positive, positive.map(lambda x: -x), st.floats(allow_nan=False, allow_infinity=False).map(Fraction)))
def test_floats_are_the_closest_on_their_side(x: Fraction) -> None:
    above, below = numbers.float_at_least(x), prices.float_at_most(x)
    # floats compare with fractions exactly, infinities included
    assert math.nextafter(above, -math.inf) < x <= above
    assert below <= x < math.nextafter(below, math.inf)


def test_floats_at_the_ends_of_the_range() -> None:
    largest, smallest = Fraction(sys.float_info.max), Fraction(math.ulp(0.0))
    assert numbers.float_at_least(largest) == sys.float_info.max
    assert numbers.float_at_least(largest + 1) == math.inf
    assert prices.float_at_most(largest + 1) == sys.float_info.max
    assert prices.float_at_most(-largest - 1) == -math.inf
    assert numbers.float_at_least(-largest - 1) == -sys.float_info.max
    assert numbers.float_at_least(smallest / 2) == math.ulp(0.0)
    assert prices.float_at_most(smallest / 2) == 0.0


@given(st.integers(-(10**30), 10**30), st.integers(1, 10**15))
def test_ceil_div_is_the_least_integer_above(numerator: int, denominator: int) -> None:
    result = numbers.ceil_div(numerator, denominator)
    assert (result - 1) * denominator < numerator <= result * denominator


@pytest.mark.parametrize(
    "call",
    [
        lambda: numbers.ln_lower(Fraction(0)),
        lambda: numbers.ln_upper(Fraction(-1)),
        lambda: numbers.sqrt_upper(Fraction(-1)),
        lambda: numbers.ceil_div(1, 0),
        lambda: numbers.require_exact(Fraction(1), 0.5),
        lambda: numbers.require_exact(True),
    ],
)
def test_what_has_no_bound_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(LapwingError) as refusal:
        call()
    assert refusal.value.code == "number-invalid"
