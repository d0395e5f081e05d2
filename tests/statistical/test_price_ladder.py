"""More budget makes no answer worse: bars and noise on a ladder of prices, and the limit in which answers are the engine's own.

Before, a table with one row of each unit had bars of 49 for a count and of 2,400 for a sum at epsilon 10^5: one unit with as many rows as
declared was feared where the histogram showed that there is none.
"""

from __future__ import annotations

import statistics

import pytest
from benchmarks.price_ladder import Measured, measured, risen, rises
from benchmarks.price_laws import DATA, QUESTIONS

PRICES = ("0.1", "1", "10", "1000", "100000")
LIMIT = "100000"
USERS = {"visits": 1_000, "single": 500, "bot": 500, "amounts": 500, "few": 300}
ROUNDING = 0.02
"""Bars at the limit as a share of the truth, at most: half a step for each of twice the rows, and noise of one unit in 400."""


def asked(data: str, names: tuple[str, ...], prices: tuple[str, ...], draws: int) -> list[Measured]:
    questions = [question for question in QUESTIONS if question.data == data and (not names or question.name in names)]
    return list(measured(data, questions, prices, draws=draws, users=USERS[data]))


@pytest.mark.parametrize(("data", "names"), [("single", ("count", "sum")), ("few", ("sum", "average of totals"))])
def test_bars_and_noise_fall_with_the_price(data: str, names: tuple[str, ...]) -> None:
    found = asked(data, names, PRICES, 3)
    for (_, name), steps in rises(found, PRICES).items():
        assert not any(width for _, width, _ in steps), f"{name}: {steps}"
    ends = [[one.width for one in found if one.epsilon == price] for price in (PRICES[0], LIMIT)]
    assert statistics.median(ends[1]) < statistics.median(ends[0]) / 50


@pytest.mark.slow
@pytest.mark.parametrize("data", DATA)
def test_at_a_very_large_price_answers_are_those_of_the_engine(data: str) -> None:
    found = asked(data, (), (LIMIT,), 1)
    assert len(found) == sum(question.data == data for question in QUESTIONS)
    assert statistics.fmean(one.covered for one in found) > 0.8, "a bar holds 95 in 100; noise of a few cells is all there is"
    for one in found:
        assert one.width <= max(ROUNDING * one.truth, 6.0), one


def test_a_rise_is_seen_beyond_the_sampling_error_of_medians() -> None:
    assert risen([10.0, 10.1, 9.9, 10.0], [12.0, 12.1, 11.9, 12.0])
    assert not risen([10.0, 14.0, 6.0, 10.0], [12.0, 15.0, 8.0, 11.0]) and not risen([10.0] * 3, [10.05] * 3)
    assert risen([10.0] * 3, [float("inf")] * 3) and not risen([float("inf")] * 3, [10.0] * 3)
