"""Numbers with their error bars as text, for each type of number that an answer has."""

from __future__ import annotations

from decimal import Decimal

import pytest

from lapwing.answers.display.error_bar_text import bars_in_words, decimals_of, margin_text, number_text
from lapwing.answers.intervals import Interval

BAR = Interval(lo=11.0, hi=16.0)


@pytest.mark.parametrize("value", [14, Decimal(14)], ids=["an integer", "a decimal"])
def test_a_whole_number_and_its_bar_are_the_same_text_whatever_its_type(value: int | Decimal) -> None:
    decimals = decimals_of([value], [BAR])
    assert number_text(value, decimals) == "14" and margin_text(value, BAR, decimals) == "-3 +2"
    assert bars_in_words("n", [value], [BAR]) == "n 14 between 11 and 16"


@pytest.mark.parametrize("value", [13.5, Decimal("13.5")], ids=["a float", "a decimal"])
def test_a_number_with_a_fraction_has_three_digits_of_its_bar_whatever_its_type(value: float | Decimal) -> None:
    decimals = decimals_of([value], [BAR])
    assert number_text(value, decimals) == "13.50" and margin_text(value, BAR, decimals) == "2.50"
    assert bars_in_words("n", [value, value], [BAR, BAR]) == "n \u00b12.5 in every group"
