"""Which answers go over time, which lines they have, and where these have gaps."""

from __future__ import annotations

import datetime
import math
from typing import Any

import pytest

from lapwing.answers.display.chart_lines import LINES_MAX, TimeLines, time_lines
from lapwing.answers.display.chart_shape import DrawnColumn
from lapwing.answers.display.time_axis import TimeStep, key_texts, time_axis, time_ticks

_DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(at) for at in range(100)]
_MONTHS = [datetime.date(2023 + at // 12, at % 12 + 1, 1) for at in range(24)]


def _lines(columns: dict[str, list[Any]], heights: list[float] | None = None) -> TimeLines | None:
    count = len(next(iter(columns.values())))
    return time_lines(columns, _column(heights or [10.0] * count))


def _column(heights: list[float]) -> DrawnColumn:
    none = [0.0] * len(heights)
    return DrawnColumn("n", heights, none, none, [None] * len(heights))


@pytest.mark.parametrize(
    ("name", "values", "step", "texts"),
    [
        ("day", _DAYS[:2], TimeStep.MOMENT, ["2024-01-01", "2024-01-02"]),
        ("date_trunc('month', day)", _MONTHS[11:13], TimeStep.MONTH, ["2023-12", "2024-01"]),
        ("month", [datetime.datetime(2024, 1, 1), datetime.datetime(2024, 2, 1), None], TimeStep.MONTH, ["2024-01", "2024-02", "NULL"]),
        ("y", [datetime.date(2023, 1, 1), datetime.date(2024, 1, 1)], TimeStep.YEAR, ["2023", "2024"]),
        ("m", ["2023-12", "2024-01"], TimeStep.MONTH, ["2023-12", "2024-01"]),
        ("d", ["2023-12-30", "2023-12-31"], TimeStep.MOMENT, ["2023-12-30", "2023-12-31"]),
        ("extract(year from day)", [2024, 2025], TimeStep.YEAR, ["2024", "2025"]),
        ("born", [1999, 2000, 2001], TimeStep.YEAR, ["1999", "2000", "2001"]),
        ("extract(month from day)", [1, 2, 12], TimeStep.MONTH_OF_YEAR, ["Jan", "Feb", "Dec"]),
    ],
)
def test_times_are_known_by_their_types_names_and_values(name: str, values: list[Any], step: TimeStep, texts: list[str]) -> None:
    axis = time_axis({name: values})
    assert axis is not None
    assert (axis.keys, axis.step) == ((name,), step)
    assert key_texts(name, values) == texts


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("day", _DAYS[:1]),
        ("code", [200, 301, 404]),
        ("income", [1900, 2000, 2100]),
        ("age_in_years", [40, 41, 42]),
        ("tenure_months", [1, 2, 3]),
        ("month", [0, 1, 2]),
        ("m", ["2023-12", "2024-13"]),
        ("m", ["2023-12", "2024-01-01"]),
        ("year", [True, False]),
        ("n", [2000.0, 2001.0]),
    ],
)
def test_what_is_no_time_is_none(name: str, values: list[Any]) -> None:
    assert time_axis({name: values}) is None


def test_a_year_and_a_month_are_one_time() -> None:
    axis = time_axis({"month": [1, 2, None], "year": [2024, 2023, 2024]})
    assert axis is not None
    assert axis.at == [datetime.date(2024, 1, 1), datetime.date(2023, 2, 1), None]
    assert axis.step is TimeStep.MONTH


@pytest.mark.parametrize(
    ("first", "last", "step", "labels"),
    [
        (datetime.date(2024, 1, 1), datetime.date(2024, 3, 1), TimeStep.MONTH, ["Jan 2024", "Feb", "Mar"]),
        (datetime.date(2023, 1, 1), datetime.date(2025, 1, 1), TimeStep.YEAR, ["2023", "2024", "2025"]),
        (datetime.date(2000, 1, 1), datetime.date(2000, 3, 1), TimeStep.MONTH_OF_YEAR, ["Jan", "Feb", "Mar"]),
    ],
)
def test_nothing_is_written_between_two_steps(first: datetime.date, last: datetime.date, step: TimeStep, labels: list[str]) -> None:
    assert [tick.label for tick in time_ticks(first, last, most=8, step=step)] == labels


@pytest.mark.parametrize(
    ("times", "pieces"),
    [
        (_DAYS, [100]),
        (_DAYS[:40] + _DAYS[41:], [40, 59]),
        (_MONTHS, [24]),
        (_MONTHS[:5] + _MONTHS[6:], [5, 18]),
        ([1920, 1921, 1922, 1924], [3, 1]),
        ([datetime.datetime(2024, 1, 1) + datetime.timedelta(minutes=at**3) for at in range(9)], [9]),
    ],
    ids=["days", "a day is missing", "months", "a month is missing", "a year is missing", "no pace"],
)
def test_a_line_has_a_gap_where_a_time_is_missing(times: list[Any], pieces: list[int]) -> None:
    found = _lines({"year": times})
    assert found is not None
    (line,) = found.lines
    assert [len(piece) for piece in found.pieces(line, _column([10.0] * len(times)))] == pieces


def test_a_line_has_a_gap_where_a_value_is_withheld() -> None:
    heights = [1.0, math.nan, 3.0, 4.0]
    found = _lines({"day": _DAYS[:4]}, heights)
    assert found is not None
    assert list(found.pieces(found.lines[0], _column(heights))) == [[0], [2, 3]]


def test_a_time_and_a_key_are_a_line_for_each_and_the_largest_are_kept() -> None:
    kinds = [f"k{at}" for at in range(LINES_MAX + 3)]
    columns: dict[str, list[Any]] = {
        "month": [month for month in reversed(_MONTHS) for _ in kinds],
        "kind": [kind for _ in _MONTHS for kind in kinds],
    }
    found = _lines(columns, [float(kinds.index(kind)) for kind in columns["kind"]])
    assert found is not None
    assert [line.name for line in found.lines] == kinds[3:]
    assert found.notes == (f"The {LINES_MAX} largest of {len(kinds)} lines are drawn; 3 left out.",)
    moments = [found.moments[row] for row in found.lines[0].rows]
    assert len(moments) == 24
    assert moments == sorted(moments)


def test_two_times_or_three_keys_have_no_lines() -> None:
    assert _lines({"a": _DAYS, "b": _DAYS}) is None
    assert _lines({"day": _DAYS, "b": ["x"] * 100, "c": ["y"] * 100}) is None
    assert _lines({"day": [*_DAYS, _DAYS[0]]}) is None, "two values at one time"
    assert _lines({"year": [2023, 2024, 2023, 2024], "b": ["x", "x", "y", "y"]}) is None, "a map says more"
