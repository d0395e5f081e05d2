"""Numbers made of powers of e: arithmetic, and comparisons that cannot be wrong."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.errors import LapwingError
from lapwing.games.exponentials import ExactNumber, SumOfExponentials, exp_enclosure, power_of_e, rational, total, weighted

small = st.fractions(min_value=-3, max_value=3, max_denominator=6)
sums = st.dictionaries(small, small, max_size=4).map(SumOfExponentials)
positive = st.dictionaries(small, st.fractions(min_value=Fraction(1, 6), max_value=3, max_denominator=6), min_size=1, max_size=3).map(
    SumOfExponentials
)
numbers = st.builds(ExactNumber, sums, positive)


def as_float(number: SumOfExponentials) -> float:
    return math.fsum(float(coefficient) * math.exp(exponent) for exponent, coefficient in number.terms.items())


@settings(max_examples=40, deadline=None)
@given(sums, sums)
def test_sums_and_products_are_those_of_the_numbers(one: SumOfExponentials, other: SumOfExponentials) -> None:
    assert math.isclose(as_float(one + other), as_float(one) + as_float(other), abs_tol=1e-9)
    assert math.isclose(as_float(one - other), as_float(one) - as_float(other), abs_tol=1e-9)
    assert math.isclose(as_float(one * other), as_float(one) * as_float(other), abs_tol=1e-6)


@settings(max_examples=40, deadline=None)
@given(sums)
def test_bounds_enclose_and_the_sign_is_right(number: SumOfExponentials) -> None:
    low, high = number.enclosure()
    assert low <= high and high - low < 2**40
    about = as_float(number)
    assert low / 2**160 - 1e-9 <= about <= high / 2**160 + 1e-9
    assert number.sign() == (about > 1e-9) - (about < -1e-9) or abs(about) <= 1e-9
    assert (number.sign() == 0) == (number == rational(0)) == (not number.terms)


@settings(max_examples=40, deadline=None)
@given(numbers, numbers)
def test_comparisons_are_exact(one: ExactNumber, other: ExactNumber) -> None:
    assert one.compare(other) == -other.compare(one) == (one - other).sign()
    assert one + other - other == one and (one * other).compare(other * one) == 0
    if other.sign():
        assert one / other * other == one
    low, high = one.bounds()
    assert one >= low and one <= high


def test_numbers_that_floats_cannot_tell_apart_are_told_apart() -> None:
    tiny = Fraction(1, 10**60)
    one = ExactNumber(power_of_e(1))
    assert one < one + tiny and one > one - tiny and float(one) == float(one + tiny)
    assert ExactNumber(power_of_e(Fraction(1, 2)) * power_of_e(Fraction(1, 2))) == one
    # Equal numbers, written in two ways: (e^2 - 1) / (e - 1) = e + 1.
    assert ExactNumber(power_of_e(2) - rational(1), power_of_e(1) - rational(1)) == one + 1
    assert ExactNumber(power_of_e(2) - rational(1), power_of_e(1) - rational(1) + rational(Fraction(1, 10**90))) != one + 1


def test_helpers() -> None:
    assert total([rational(1), power_of_e(1)]).terms == {0: 1, 1: 1}
    assert weighted([Fraction(2), Fraction(0)], [power_of_e(1), power_of_e(2)]).terms == {1: 2}
    assert exp_enclosure(Fraction(0), 8) == (256, 256)
    assert repr(rational(0)) == "0" and repr(power_of_e(1) + rational(2)) == "2 + 1 exp(1)"
    assert hash(power_of_e(1)) == hash(power_of_e(1)) and power_of_e(1) != 1
    number = ExactNumber(rational(1), rational(3))
    assert number.fraction == Fraction(1, 3) and str(number) == "1/3" and float(number) == 1 / 3
    assert ExactNumber(power_of_e(1)).fraction is None and str(ExactNumber(power_of_e(1))) == "2.71828..."
    assert number.is_written_as(ExactNumber(rational(1), rational(3))) and not number.is_written_as(ExactNumber(rational(2), rational(6)))
    assert number != "1/3"
    with pytest.raises(TypeError):
        hash(number)


@pytest.mark.parametrize(
    "act",
    [
        lambda: power_of_e(2000),
        lambda: ExactNumber(rational(1), rational(0)),
        lambda: ExactNumber(rational(1), rational(-1)),
        lambda: ExactNumber.of(1) / 0,
    ],
)
def test_what_is_no_number_is_stopped(act: object) -> None:
    assert callable(act)
    with pytest.raises(LapwingError) as error:
        act()
    assert error.value.code == "game-invalid"


def test_a_float_is_no_coefficient() -> None:
    with pytest.raises(LapwingError) as error:
        SumOfExponentials({Fraction(0): 0.5})  # type: ignore[dict-item]
    assert error.value.code == "number-invalid"
