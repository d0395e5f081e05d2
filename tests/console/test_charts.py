"""Charts of answers: which kind, what is drawn, what noise hides, and that no text of anybody's is more than text."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from lapwing.answers.answer import Answer
from lapwing.console.charts import ChartKind, chart_of, picture_of, style_sheet
from lapwing.console.charts.frame import NARROW, WIDE
from lapwing.console.charts.palette import DARK, HEAT_DARK, HEAT_LIGHT, LIGHT, contrast, ink_on
from lapwing.console.charts.scales import number_ticks, reach, time_ticks
from lapwing.console.charts.svg import clean
from lapwing.errors import Refused
from lapwing.statements import CellMark
from tests.console.answers import made_answer

_SVG = "{http://www.w3.org/2000/svg}"
_NOISE = CellMark.NOISE_ONLY
_MONTHS = [datetime.date(2023 + at // 12, at % 12 + 1, 1) for at in range(30)]
_HOSTILE = "</text><script>alert(1)</script><a href=\"javascript:x\" onload='y'>&amp;\x00\u202e\x1b ]]>"


def _bars(*, factor: int = 1, marks: list[CellMark | None] | None = None) -> Answer:
    columns = {"region": ["north", "south", "east", None], "n": [900 * factor, 400 * factor, 20, 100]}
    return made_answer(columns, {"n": 30}, None if marks is None else {"n": marks})


def _map() -> Answer:
    pairs = [(region, year) for region in ("north", "south", "east") for year in (2023, 2024)]
    columns = {"region": [region for region, _ in pairs], "year": [year for _, year in pairs], "n": [50, 900, 300, 310, 8, 700]}
    return made_answer(columns, {"n": 40}, {"n": [None, None, None, None, _NOISE, None]})


ANSWERS: dict[str, tuple[Answer, ChartKind]] = {
    "groups": (_bars(), ChartKind.BARS),
    "averages": (made_answer({"region": ["a", "b"], "mean": [2.5, 2.6]}, {"mean": 0.1}), ChartKind.POINTS),
    "one number": (made_answer({"n": [1234]}, {"n": 30}), ChartKind.POINTS),
    "ages": (made_answer({"age": [None, *range(0, 100, 10)], "n": list(range(11))}, {"n": 3}), ChartKind.HISTOGRAM),
    "bins with decimals": (made_answer({"weight": [0.5, 1.0, 1.5, 2.5], "n": [4, 5, 6, 7]}, {"n": 3}), ChartKind.HISTOGRAM),
    "months": (made_answer({"month": [*_MONTHS, None], "n": list(range(31))}, {"n": 3}), ChartKind.LINE),
    "hours": (
        made_answer({"at": [datetime.datetime(2025, 1, 1, hour) for hour in range(24)], "n": list(range(24))}, {"n": 3}),
        ChartKind.LINE,
    ),
    "two keys": (_map(), ChartKind.HEAT_MAP),
    "codes": (made_answer({"code": [200, 301, 404, 500], "n": [4, 5, 6, 7]}, {"n": 3}), ChartKind.BARS),
    "three keys": (made_answer({"a": ["x", "y"], "b": [1, 2], "c": [True, False], "n": [4, 5]}, {"n": 3}), ChartKind.BARS),
    "nothing but noise": (made_answer({"a": ["x", "y"], "n": [4, -5]}, {"n": 30}, {"n": [_NOISE, _NOISE]}), ChartKind.BARS),
    "withheld": (made_answer({"a": ["x", "y"], "mean": [None, None]}, {"mean": 1}, {"mean": [CellMark.MEANINGLESS] * 2}), ChartKind.POINTS),
}


def _drawings(answer: Answer) -> Iterator[tuple[str, ElementTree.Element]]:
    """Everything an answer can be drawn as, in each width, read as XML."""
    chart = chart_of(answer)
    assert chart is not None
    for kind in chart.kinds:
        drawn = chart_of(answer, kind=kind)
        assert drawn is not None
        assert drawn.kind is kind
        yield f"{kind} wide", ElementTree.fromstring(drawn.wide)
        yield f"{kind} narrow", ElementTree.fromstring(drawn.narrow)
        yield f"{kind} alone", ElementTree.fromstring(picture_of(answer, kind=kind))


def _texts(drawing: ElementTree.Element) -> list[str]:
    return ["".join(one.itertext()) for one in drawing.iter(f"{_SVG}text")]


def _with_class(drawing: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [one for one in drawing.iter() if name in one.get("class", "").split()]


@pytest.mark.parametrize("name", ANSWERS)
def test_the_kind_follows_from_types_and_keys(name: str) -> None:
    answer, kind = ANSWERS[name]
    chart = chart_of(answer)
    assert chart is not None
    assert chart.kind is kind
    assert chart.kinds[0] is kind


@pytest.mark.parametrize("name", ANSWERS)
def test_every_drawing_is_xml_with_a_title_a_description_and_no_inline_style(name: str) -> None:
    answer, _ = ANSWERS[name]
    seen = 0
    for which, drawing in _drawings(answer):
        seen += 1
        ids = [one.get("id") for one in drawing.iter() if one.get("id")]
        assert len(set(ids)) == len(ids), which
        labels = drawing.get("aria-labelledby", "").split()
        assert [drawing.find(f"{_SVG}{tag}").get("id") for tag in ("title", "desc")] == labels, which  # type: ignore[union-attr]
        assert "error bars of 95%" in (drawing.findtext(f"{_SVG}desc") or ""), which
        assert not [one for one in drawing.iter() if one.get("style")], which
        width = float(drawing.get("viewBox", "").split()[2])
        assert width == (NARROW if which.endswith("narrow") else WIDE)
        assert (drawing.find(f"{_SVG}style") is not None) == which.endswith("alone"), which
        numbers = [float(one.get(side, "0")) for one in drawing.iter() for side in ("x", "y", "width", "height", "cx", "cy", "x1", "x2")]
        assert all(number == number and abs(number) < 5_000 for number in numbers), which
    assert seen >= 6


def test_a_kind_that_the_answer_cannot_have_is_not_taken() -> None:
    chart = chart_of(_bars(), kind=ChartKind.LINE)
    assert chart is not None
    assert chart.kind is ChartKind.BARS


def test_two_runs_of_one_question_look_alike() -> None:
    few, many = chart_of(_bars()), chart_of(_bars(factor=1000))
    assert few is not None
    assert many is not None
    assert few.kinds == many.kinds


def test_where_nothing_has_error_bars_there_is_no_chart() -> None:
    plain = made_answer({"region": ["north"], "n": [1]}, {})
    assert chart_of(plain) is None
    with pytest.raises(Refused, match="no column with error bars"):
        picture_of(plain)
    empty = made_answer({"region": [], "n": []}, {"n": 1})
    assert chart_of(empty) is None
    with pytest.raises(Refused, match="no row"):
        picture_of(empty)


def test_the_column_can_be_chosen() -> None:
    answer = made_answer({"region": ["a", "b"], "n": [3, 4], "total": [30, 40]}, {"n": 1, "total": 5})
    chart = chart_of(answer, value="total")
    assert chart is not None
    assert (chart.value, chart.values) == ("total", ("n", "total"))
    with pytest.raises(Refused):
        chart_of(answer, value="region")


def test_bars_say_their_values_and_reach_as_far_as_they_are() -> None:
    drawing = ElementTree.fromstring(picture_of(_bars()))
    assert {"900 ± 30", "400 ± 30", "NULL"} <= set(_texts(drawing))
    widths = [float(bar.get("width", "0")) for bar in _with_class(drawing, "lw-fill")]
    assert widths[0] / widths[1] == pytest.approx(900 / 400, rel=0.01)
    assert len(_with_class(drawing, "lw-whisker")) == 4


def test_what_noise_hides_is_hollow_and_has_no_part_in_the_scale() -> None:
    marks: list[CellMark | None] = [None, None, None, _NOISE]
    loud = made_answer({"region": ["a", "b", "c", "d"], "n": [90, 40, 20, 9_000]}, {"n": 3}, {"n": marks})
    drawing = ElementTree.fromstring(picture_of(loud))
    widths = [float(bar.get("width", "0")) for bar in _with_class(drawing, "lw-fill")]
    assert len(widths) == 3
    assert max(widths) > 300
    assert len(_with_class(drawing, "lw-hollow")) == 1
    assert "9,000 ± 3 ~" in _texts(drawing)
    assert any("no larger than its own noise" in text for text in _texts(drawing))
    assert "1 is mostly noise" in (drawing.findtext(f"{_SVG}desc") or "")


def test_a_line_is_broken_where_noise_hides_it_and_leaves_out_what_is_at_no_time() -> None:
    marks: list[CellMark | None] = [_NOISE if at == 10 else None for at in range(31)]
    answer = made_answer({"month": [*_MONTHS, None], "n": [100 + at for at in range(30)] + [9_999]}, {"n": 3}, {"n": marks})
    drawing = ElementTree.fromstring(picture_of(answer))
    assert len(_with_class(drawing, "lw-curve")) == 2
    assert len(_with_class(drawing, "lw-hollow")) == 1
    assert "1 value is at no time, and left out." in _texts(drawing)
    assert "10,000" not in _texts(drawing)


def test_a_map_hatches_noise_and_draws_error_bars_as_shares() -> None:
    drawing = ElementTree.fromstring(picture_of(_map()))
    fields = [one for step in range(7) for one in _with_class(drawing, f"lw-heat-{step}")]
    assert len(fields) == 5 + 7
    assert len(_with_class(drawing, "lw-hollow")) == 1
    lengths = [
        float(one.get("x2", "0")) - float(one.get("x1", "0")) for step in range(7) for one in _with_class(drawing, f"lw-bar-on-heat-{step}")
    ]
    assert max(lengths) / min(lengths) == pytest.approx((40 / 50) / (40 / 900), rel=0.02)


def test_more_groups_than_can_be_read_are_said_to_be_left_out() -> None:
    answer = made_answer({"code": [f"c{at}" for at in range(75)], "n": list(range(75))}, {"n": 3})
    drawing = ElementTree.fromstring(picture_of(answer))
    assert len(_with_class(drawing, "lw-fill")) == 60
    assert "The first 60 of 75 groups are drawn." in _texts(drawing)


def test_hostile_text_stays_text() -> None:
    answer = made_answer({_HOSTILE: [_HOSTILE, "b"], "n<b>": [5, 6]}, {"n<b>": 1})
    for which, drawing in _drawings(answer):
        tags = {one.tag.removeprefix(_SVG) for one in drawing.iter()}
        assert tags <= {"svg", "title", "desc", "style", "defs", "clipPath", "rect", "text", "line", "g", "path", "circle"}, which
        assert not [name for one in drawing.iter() for name in one.attrib if name.startswith("on") or name.endswith("href")], which
        assert "\u202e" not in "".join(drawing.itertext())


def test_what_xml_cannot_hold_is_replaced() -> None:
    assert clean("a\x00b\ud800c\u202ed\ufffee\tf") == "a\ufffdb\ufffdc\ufffdd\ufffde\tf"


def test_ids_of_a_page_are_names_and_nothing_else() -> None:
    with pytest.raises(ValueError, match="name of a chart"):
        chart_of(_bars(), name='x" onload="y')


@pytest.mark.parametrize(("colours", "heat"), [(LIGHT, HEAT_LIGHT), (DARK, HEAT_DARK)], ids=["light", "dark"])
def test_colours_have_contrast(colours: dict[str, str], heat: tuple[str, ...]) -> None:
    paper = colours["paper"]
    assert min(contrast(colours[name], paper) for name in ("ink", "quiet")) >= 4.5
    assert min(contrast(colours[name], paper) for name in ("fill", "marked")) >= 3
    assert contrast(colours["ink"], colours["fill"]) >= 3
    assert min(contrast(ink_on(step), step) for step in heat) >= 4.5
    apart = [contrast(one, other) for one, other in pairwise(heat)]
    assert min(apart) >= 1.15
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


def test_the_style_sheet_has_both_themes_and_every_class_that_is_drawn() -> None:
    sheet = style_sheet()
    assert sheet.count(".lw-chart .lw-fill") == 3
    assert ':root[data-theme="dark"] .lw-chart .lw-value' in sheet
    drawn = {name for answer, _ in ANSWERS.values() for _, drawing in _drawings(answer) for one in drawing.iter() for name in _classes(one)}
    assert sorted(name for name in drawn if not re.search(rf"\.{name}\b", sheet)) == []


def _classes(one: ElementTree.Element) -> list[str]:
    return one.get("class", "").split()


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-5, 12_345), (0.0012, 0.0019), (1e9, 4e12), (-3, -1)])
def test_ticks_are_round_and_within(low: float, high: float) -> None:
    ticks = number_ticks(low, high, most=6)
    assert 2 <= len(ticks) <= 7
    assert all(low <= tick.at <= high + 1e-9 for tick in ticks)
    assert len({tick.label for tick in ticks}) == len(ticks)


def test_a_scale_of_nothing_still_has_room() -> None:
    low, high = reach([], from_zero=True)
    assert (low, round(high, 6)) == (0, 1.04)
    low, high = reach([7.0, 7.0], from_zero=False)
    assert low < 7 < high


@pytest.mark.parametrize(
    ("last", "labels"),
    [
        (datetime.date(2023, 1, 5), ["1 Jan 2023", "2 Jan", "3 Jan", "4 Jan", "5 Jan"]),
        (datetime.date(2023, 12, 1), ["Jan 2023", "Mar", "May", "Jul", "Sep", "Nov"]),
        (datetime.date(2026, 6, 1), ["Jan 2023", "Jul", "Jan 2024", "Jul", "Jan 2025", "Jul", "Jan 2026"]),
        (datetime.date(2043, 6, 1), ["2025", "2030", "2035", "2040"]),
        (datetime.datetime(2023, 1, 1, 6), ["00:00", "01:00", "02:00", "03:00", "04:00", "05:00", "06:00"]),
    ],
    ids=["days", "months", "half-years", "years", "hours"],
)
def test_times_are_written_as_people_write_them(last: datetime.date, labels: list[str]) -> None:
    first = datetime.datetime(2023, 1, 1) if isinstance(last, datetime.datetime) else datetime.date(2023, 1, 1)
    assert [tick.label for tick in time_ticks(first, last, most=8)] == labels
