"""Budgets, explanations and data sets in a notebook; answers as rows and frames; time drawn as a line."""

from __future__ import annotations

import datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lapwing
from lapwing.answers.answer import Answer
from lapwing.answers.data_set_view import data_set_html
from lapwing.answers.display.notebook import ROWS_MAX, cells_html, gauge_html, pairs_html
from lapwing.answers.intervals import Interval
from lapwing.demo import write_demo
from lapwing.statements import CellMark

HOSTILE = "<script>alert('x')</script>&\"'"


class _Tags(HTMLParser):
    """The tags of a piece of HTML, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.open_now: list[str] = []
        self.words = ""
        self.feed(html)
        self.close()
        assert self.open_now == [], "what is opened is closed"

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.opened.append(tag)
        self.open_now.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open_now.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data + " "


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> lapwing.DataSet:
    """A small demonstration."""
    home = tmp_path_factory.mktemp("views")
    write_demo(home / "clinic", patients=200)
    opened = lapwing.open(home / "clinic", home=home / "home")
    opened.prepare()
    return opened


def test_a_data_set_a_budget_and_an_explanation_show_themselves(clinic: lapwing.DataSet) -> None:
    shown = _Tags(clinic._repr_html_())
    assert clinic.name in shown.words and "prescriptions" in shown.words and "% left" in shown.words
    budget = _Tags(clinic.budget._repr_html_())
    assert "promise" in budget.words and "span" in budget.opened
    explained = _Tags(clinic.explain("SELECT COUNT(*) AS n FROM patients")._repr_html_())
    assert "price" in explained.words and "gaussian" in explained.words


@pytest.mark.parametrize(
    "html",
    [
        pairs_html([(HOSTILE, HOSTILE)]),
        gauge_html(0.3, HOSTILE),
        cells_html([HOSTILE], [[HOSTILE]]),
    ],
    ids=["pairs", "gauge", "cells"],
)
def test_text_is_escaped(html: str) -> None:
    tags = _Tags(html)
    assert "script" not in tags.opened and HOSTILE in tags.words


def test_the_name_of_a_data_set_is_escaped(clinic: lapwing.DataSet) -> None:
    assert "<script" not in data_set_html(HOSTILE, clinic.budget, clinic.describe())


def test_no_view_names_a_colour_of_the_text_or_the_background(clinic: lapwing.DataSet) -> None:
    """Text and background are the page's, so that both can be read on light and dark; the gauge alone is coloured."""
    for html in (clinic._repr_html_(), clinic.budget._repr_html_(), clinic.explain("SELECT COUNT(*) AS n FROM patients")._repr_html_()):
        rest = html.replace("background:#0087af", "").replace("background:none", "")
        assert "#" not in rest and "background" not in rest and ";color:" not in rest


def test_a_gauge_stays_within_its_frame_and_long_tables_are_cut() -> None:
    assert "width:100.00%" in gauge_html(3.0, "") and "width:0.00%" in gauge_html(-1.0, "")
    assert cells_html(["n"], [["1"]] * (ROWS_MAX + 2)).count("<tr>") == ROWS_MAX + 1
    assert "and 2 more" in cells_html(["n"], [["1"]] * (ROWS_MAX + 2))


def test_an_answer_is_rows_and_frames(clinic: lapwing.DataSet) -> None:
    answer = clinic.ask("SELECT smoker, COUNT(*) AS n, AVG(income) AS income FROM patients GROUP BY smoker", epsilon="0.3")
    names = ["smoker", "n", "n_lo", "n_hi", "n_mark", "income", "income_lo", "income_hi", "income_mark"]
    assert answer.to_arrow().column_names == names
    rows = list(answer)
    assert len(answer) == len(rows) == 3
    assert [row["n"] for row in rows] == answer.table.column("n").to_pylist()
    assert all(row["n_lo"] <= row["n"] <= row["n_hi"] for row in rows)
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    assert isinstance(answer.to_pandas(), pandas.DataFrame) and list(answer.to_pandas().columns) == names
    assert isinstance(answer.to_polars(), polars.DataFrame) and answer.to_polars().to_dicts() == rows
    assert answer.to_csv().splitlines()[0] == ",".join(names)


def test_a_frame_knows_its_error_bars_also_when_it_was_sorted_and_kept_in_a_file(clinic: lapwing.DataSet, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    answer = clinic.ask("SELECT smoker, COUNT(*) AS n, MEDIAN(birth_year) AS born FROM patients GROUP BY smoker", epsilon="0.3")
    frame = answer.to_pandas()
    about = frame.attrs["lapwing"]
    assert about["error_bars"] == {"n": ["n_lo", "n_hi"]} and about["marks"] == {"n": "n_mark", "born": "born_mark"}
    assert about["confidence"] == 0.95 and about["epsilon"] == (0 if answer.cost.free else 0.3)
    assert [about["summary"], *about["notes"]] == answer.in_words()
    part = frame.sort_values("n").head(2)
    part.to_parquet(tmp_path / "part.parquet")
    read = pandas.read_parquet(tmp_path / "part.parquet")
    assert read.attrs == part.attrs == frame.attrs
    low, high = read.attrs["lapwing"]["error_bars"]["n"]
    assert ((read[low] <= read["n"]) & (read["n"] <= read[high])).all()
    assert clinic.ask("SHOW TABLES").to_pandas().attrs["lapwing"]["error_bars"] == {}


def _over_time(clinic: lapwing.DataSet, times: list[Any], values: list[int], marks: list[CellMark | None]) -> Answer:
    like = clinic.ask("SHOW PRIVACY BUDGET")
    bars: list[Interval | None] = [Interval(value - 5.0, value + 5.0) for value in values]
    return Answer(pa.table({"day": times, "n": values}), {"n": bars}, 0.95, like.cost, like.remaining, (), marks={"n": marks})


@pytest.mark.parametrize("kind", ["date", "timestamp"])
def test_time_is_drawn_as_a_line_with_a_band(clinic: lapwing.DataSet, kind: str) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    days = [datetime.date(2025, 3, 1), datetime.date(2025, 1, 1), None, datetime.date(2025, 2, 1)]
    times: list[Any] = days if kind == "date" else [day and datetime.datetime(day.year, day.month, day.day, 6) for day in days]
    answer = _over_time(clinic, times, [30, 10, 99, 20], [None] * 4)
    axes: Any = answer.plot()
    (line,) = axes.lines
    assert list(line.get_ydata()) == [10, 20, 30], "in the order of time, and NULL is at no time"
    (band,) = axes.collections
    assert {(round(low), round(high)) for low, high in [(min(p), max(p)) for p in [band.get_paths()[0].vertices[:, 1]]]} == {(5, 35)}
    assert "1 value is at no time, and left out." in axes.get_xlabel() and axes.get_ylabel() == "n"
    assert axes.patches[:] == [], "no bars"


def test_a_line_is_dashed_at_doubtful_points_which_are_out_of_the_scale(clinic: lapwing.DataSet) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    days = [datetime.date(2025, month, 1) for month in (1, 2, 3)]
    axes: Any = _over_time(clinic, days, [10, 900, 30], [None, CellMark.NOISE_ONLY, None]).plot()
    hidden, clear = axes.lines
    assert (hidden.get_linestyle(), hidden.get_ydata().tolist()) == ("--", [10.0, 900.0, 30.0])
    assert str(clear.get_ydata().tolist()) == "[10.0, nan, 30.0]"
    assert len(axes.collections) == 1, "one band"
    assert axes.get_ylim()[1] < 100
    assert "too small to tell from noise" in axes.get_xlabel()


def test_one_moment_is_a_bar(clinic: lapwing.DataSet) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    axes: Any = _over_time(clinic, [datetime.date(2025, 1, 1)], [10], [None]).plot()
    assert len(axes.patches) == 1


def test_the_demonstration_by_month(clinic: lapwing.DataSet, tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    answer = clinic.ask("SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS visits FROM visits GROUP BY month", epsilon="0.5")
    axes: Any = answer.plot()
    assert len(axes.lines) >= 1
    figure = axes.get_figure(root=True)
    figure.savefig(tmp_path / "line.png")
    assert (tmp_path / "line.png").stat().st_size > 1_000


def test_a_hundred_years_and_two_kinds_are_lines_with_a_legend(clinic: lapwing.DataSet) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    like = clinic.ask("SHOW PRIVACY BUDGET")
    years, kinds = range(1920, 2021), ("home", "ward")
    pairs = [(year, kind) for year in years for kind in kinds]
    columns = {"birth_year": [year for year, _ in pairs], "kind": [kind for _, kind in pairs], "n": list(range(202))}
    bars: dict[str, list[Interval | None]] = {"n": [Interval(value - 5.0, value + 5.0) for value in range(202)]}
    axes: Any = Answer(pa.table(columns), bars, 0.95, like.cost, like.remaining, ()).plot()
    assert [len(line.get_ydata()) for line in axes.lines] == [101, 101]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["home", "ward"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1920", "1940", "1960", "1980", "2000", "2020"]
    assert axes.patches[:] == [] and "groups" not in axes.get_title(loc="left")
