"""Numbers stay exact from the file to the fraction and back."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.catalog import parse
from lapwing.catalog.exact import read_exact, show
from tests.unit.catalog.mistakes import CLINIC


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (3, Fraction(3)),
        (Decimal("0.1"), Fraction(1, 10)),
        (Decimal("1e-9"), Fraction(1, 10**9)),
        ("2^-40", Fraction(1, 2**40)),
        ("10^3", Fraction(1000)),
        (" 1e-9 ", Fraction(1, 10**9)),
        ("0.30", Fraction(3, 10)),
        ("-1.5", Fraction(-3, 2)),
        (Decimal("0e-999999"), Fraction(0)),
    ],
)
def test_numbers_that_are_read(raw: object, value: Fraction) -> None:
    assert read_exact(raw) == value


@pytest.mark.parametrize(
    "raw",
    [
        True,
        0.1,
        None,
        [],
        "",
        "three",
        "1/3",
        "0x10",
        "1^2",
        "2^-401",
        "1e401",
        "1_0",
        Decimal("nan"),
        Decimal("inf"),
        Decimal("1e401"),
        10**60,
    ],
)
def test_what_is_no_number(raw: object) -> None:
    assert read_exact(raw) is None


@given(st.integers(-(10**12), 10**12), st.integers(0, 9))
def test_a_decimal_is_read_and_shown_without_a_float(digits: int, places: int) -> None:
    written = Decimal(digits).scaleb(-places)
    value = read_exact(written)
    assert value == Fraction(digits, 10**places)
    assert read_exact(show(value).replace("_", "")) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(2020), "2020"),
        (Fraction(1_000_000), "1_000_000"),
        (Fraction(5, 2), "2.5"),
        (Fraction(-1, 8), "-0.125"),
        (Fraction(1, 2**40), "2^-40"),
        (Fraction(1, 10**9), "1e-9"),
        (Fraction(1, 3), "1/3"),
        (Fraction(7, 2**150), f"7/{2**150}"),
    ],
)
def test_show(value: Fraction, text: str) -> None:
    assert show(value) == text


def test_the_budget_of_a_file_is_exact() -> None:
    """0.1 as a double is above 1/10: read through a float, a budget would be larger than was declared."""
    declaration = parse(CLINIC.replace("epsilon = 3\n", "epsilon = 0.1\n").replace("epsilon = 0.1\nconf", "epsilon = 0.05\nconf"))
    assert declaration.declared_budget.epsilon == Fraction(1, 10) != Fraction(0.1)
    assert declaration.declared_budget.delta == Fraction(1, 2**40)
