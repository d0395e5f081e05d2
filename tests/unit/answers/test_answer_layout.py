"""How an answer looks as text, in a notebook and as a chart."""

from __future__ import annotations

import datetime
import re
from fractions import Fraction
from html.parser import HTMLParser
from typing import Any

import pyarrow as pa
import pytest

from lapwing.answers.answer import Answer, CostView
from lapwing.answers.display.budget import BudgetView
from lapwing.answers.display.notebook import ROWS_MAX
from lapwing.answers.intervals import Interval
from lapwing.errors import Refused
from lapwing.kernel.accounting import Cost, budget_for

_BUDGET = budget_for(epsilon=Fraction(1), delta=Fraction(1, 2**40))


def _answer(
    columns: dict[str, Any], intervals: dict[str, list[Interval | None]], *, confidence: float = 0.95, notes: tuple[str, ...] = ()
) -> Answer:
    spent = Cost(_BUDGET.loss_total // 4, 0)
    remaining = BudgetView(_BUDGET, _BUDGET, spent, closed=False, unit="patient")
    return Answer(pa.table(columns), intervals, confidence, CostView.of(spent, _BUDGET, free=False), remaining, notes)


def _around(value: float, half: float) -> Interval:
    return Interval(value - half, value + half)


def test_counts_have_separators_and_keys_have_none() -> None:
    answer = _answer({"year": [2024, 2025], "n": [12_345, 987]}, {"n": [_around(12_345, 27), _around(987, 27)]})
    assert answer.cells() == (["year", "n", "± 95%"], [["2024", "12,345", "27"], ["2025", "987", "27"]])


def test_numbers_are_shown_to_the_third_digit_of_the_narrowest_bar() -> None:
    rates = _answer({"rate": [0.67377, 0.6]}, {"rate": [_around(0.67377, 0.0012), _around(0.6, 0.01)]})
    assert rates.cells()[1] == [["0.67377", "0.00120"], ["0.60000", "0.01000"]]
    sums = _answer({"income": [34_719.4567, -0.2]}, {"income": [_around(34_719.4567, 412), _around(-0.2, 412)]})
    assert sums.cells()[1] == [["34,719", "412"], ["0", "412"]]


def test_a_lopsided_bar_shows_both_sides() -> None:
    answer = _answer({"cost": [0.0, 40.0]}, {"cost": [Interval(0.0, 155.0), _around(40.0, 12.0)]})
    assert answer.cells()[1] == [["0.0", "-0.0 +155.0"], ["40.0", "12.0"]]


def test_values_that_do_not_exist_and_bars_that_do_not() -> None:
    answer = _answer({"smoker": [True, None], "mean": [2.5, None], "share": [0.25, 1e12]}, {"mean": [_around(2.5, 1.0), None]})
    assert answer.cells()[1] == [["true", "2.50", "1.00", "0.2500"], ["NULL", "NULL", "", "1e+12"]]


@pytest.mark.parametrize(("confidence", "header"), [(0.9, "± 90%"), (0.999, "± 99.9%"), (0.29, "± 29%")])
def test_the_confidence_is_not_rounded_to_certainty(confidence: float, header: str) -> None:
    assert header in str(_answer({"n": [1]}, {"n": [_around(1, 2)]}, confidence=confidence)).splitlines()[0]


def test_text_is_set_left_and_numbers_right() -> None:
    columns = {"day": [datetime.date(2024, 1, 1), None], "n": [5, 12_345]}
    lines = str(_answer(columns, {"n": [_around(5, 2), None]}, notes=("something",))).splitlines()
    assert lines[:4] == ["day              n  ± 95%", "----------  ------  -----", "2024-01-01       5      2", "NULL        12,345"]
    assert re.fullmatch(r"cost epsilon 0\.\d+ \(rho 0\.0026\); 75\.0% of the budget is left", lines[5])
    assert lines[6] == "note: something"


@pytest.mark.parametrize(
    ("values", "bars", "words"),
    [
        ([50_104], [_around(50_104, 128)], "n 50,104 ±128"),
        ([12], [Interval(0, 167)], "n 12 between 0 and 167"),
        ([5, 900], [_around(5, 222), _around(900, 222.3)], "n ±222 in every group"),
        ([3, 900], [Interval(0, 225), _around(900, 222)], "n ±222 in every group"),
        ([1.5, 9.0], [_around(1.5, 0.12), _around(9.0, 0.346)], "n ±0.12 to ±0.346"),
        ([100, 200], [Interval(90, 180), Interval(190, 290)], "n at most -10 +90"),
    ],
    ids=["one value", "a lopsided one", "alike", "one that ends at 0", "a range", "lopsided ones"],
)
def test_error_bars_in_words(values: list[float], bars: list[Interval | None], words: str) -> None:
    first, *rest = _answer({"n": values}, {"n": bars}, notes=("something",)).in_words()
    assert first.startswith(f"{words} at 95%; cost epsilon ") and first.endswith("of the budget is left")
    assert rest == ["something"]


def test_columns_without_error_bars_have_none_in_words() -> None:
    assert _answer({"mean": [None, None]}, {"mean": [None, None]}).in_words()[0].startswith("cost epsilon")
    several = _answer({"k": [1], "n": [5], "m": [7]}, {"n": [_around(5, 2)], "m": [_around(7, 3)]}, confidence=0.999)
    assert several.in_words()[0].startswith("n 5 ±2, m 7 ±3 at 99.9%; cost")


class _Cells(HTMLParser):
    """Text of the cells and of everything else, and the tags that were opened."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def _parsed(answer: Answer) -> _Cells:
    parser = _Cells()
    parser.feed(answer._repr_html_())
    parser.close()
    return parser


def test_html_holds_every_cell_and_escapes_keys() -> None:
    answer = _answer({"drug": ["<script>x</script>", "b&b"], "n": [5, 7]}, {"n": [_around(5, 2), Interval(7, 20)]}, notes=("a < b",))
    parsed = _parsed(answer)
    assert parsed.texts[:9] == ["drug", "n", "± 95%", "<script>x</script>", "5", "± 2", "b&b", "7", "-0 +13"]
    assert parsed.texts[-1] == "note: a < b"
    assert set(parsed.tags) == {"div", "table", "thead", "tbody", "tr", "th", "td"}


def test_a_notebook_is_not_flooded() -> None:
    rows = ROWS_MAX + 50
    parsed = _parsed(_answer({"n": list(range(rows))}, {}))
    assert parsed.tags.count("tr") == ROWS_MAX + 1
    assert "and 50 rows more" in parsed.texts


def test_a_chart_shows_values_and_both_sides_of_the_bars() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    answer = _answer(
        {"region": ["north", None], "share": [0.5, 0.5], "mean": [10.0, None]}, {"mean": [Interval(8.0, 15.0), None]}, confidence=0.9
    )
    axes: Any = answer.plot()
    assert axes.patches[0].get_height() == 10.0
    assert [label.get_text() for label in axes.get_xticklabels()] == ["north", "NULL"]
    (segment, _) = axes.containers[1].lines[2][0].get_segments()
    assert [tuple(point) for point in segment] == [(0.0, 8.0), (0.0, 15.0)]
    assert axes.get_title(loc="left").startswith("error bars 90%; cost epsilon")
    with pytest.raises(Refused, match="plot-column"):
        answer.plot(value="region")
