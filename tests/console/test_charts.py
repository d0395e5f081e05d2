"""Charts of answers: which kind, what is drawn, what noise hides, and that no text of anybody's is more than text."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator
from itertools import combinations, pairwise
from operator import mul
from xml.etree import ElementTree

import pytest

from lapwing.answers.answer import Answer
from lapwing.answers.display.chart_lines import LINE_COLOURS
from lapwing.answers.display.time_axis import time_ticks
from lapwing.errors import Refused
from lapwing.interfaces.console.charts import ChartKind, chart_of, picture_of, style_sheet
from lapwing.interfaces.console.charts.frame import NARROW, WIDE
from lapwing.interfaces.console.charts.palette import DARK, HEAT_DARK, HEAT_LIGHT, LIGHT, LINES_DARK, contrast, ink_on
from lapwing.interfaces.console.charts.scales import number_ticks, reach
from lapwing.interfaces.console.charts.svg import clean
from lapwing.statements import CellMark
from tests.console.answers import made_answer

_SVG = "{http://www.w3.org/2000/svg}"
_NOISE = CellMark.NOISE_ONLY
_MONTHS = [datetime.date(2023 + at // 12, at % 12 + 1, 1) for at in range(30)]
_HOSTILE = "</text><script>alert(1)</script><a href=\"javascript:x\" onload='y'>&amp;\x00\u202e\x1b ]]>"


_NOISE_AT_TENTHS: list[CellMark | None] = [_NOISE if at % 10 == 0 else None for at in range(1, 100)]


def _daily(*, missing: int = 0) -> Answer:
    """A hundred days but for some in the middle; every tenth is no larger than its noise."""
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(at + (missing if at > 50 else 0)) for at in range(99)]
    return made_answer({"day": days, "n": [100 + at for at in range(99)]}, {"n": 30}, {"n": _NOISE_AT_TENTHS})


def _by_month(kinds: int) -> Answer:
    pairs = [(month, f"kind {at}") for month in _MONTHS for at in range(kinds)]
    values = [100 * (1 + int(kind[5:])) for _, kind in pairs]
    return made_answer({"month": [month for month, _ in pairs], "kind": [kind for _, kind in pairs], "n": values}, {"n": 3})


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
    "days": (_daily(), ChartKind.LINE),
    "months as text": (made_answer({"m": ["2023-12", "2024-01"], "n": [4, 5]}, {"n": 3}), ChartKind.LINE),
    "months of any year": (made_answer({"month": list(range(1, 13)), "n": list(range(12))}, {"n": 3}), ChartKind.LINE),
    "years": (made_answer({"birth_year": list(range(1920, 2021)), "n": list(range(101))}, {"n": 3}), ChartKind.LINE),
    "lines": (_by_month(6), ChartKind.LINE),
    "more lines than colours": (_by_month(9), ChartKind.HEAT_MAP),
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
    assert any("too small to tell from noise: the true number may be zero" in text for text in _texts(drawing))
    assert "1 is mostly noise" in (drawing.findtext(f"{_SVG}desc") or "")


def test_a_line_is_dashed_where_noise_hides_it_and_leaves_out_what_is_at_no_time() -> None:
    marks: list[CellMark | None] = [_NOISE if at == 10 else None for at in range(31)]
    answer = made_answer({"month": [*_MONTHS, None], "n": [100 + at for at in range(30)] + [9_999]}, {"n": 3}, {"n": marks})
    drawing = ElementTree.fromstring(picture_of(answer))
    assert [len(_with_class(drawing, name)) for name in ("lw-curve", "lw-doubt", "lw-band", "lw-open")] == [2, 1, 1, 1]
    assert "1 is mostly noise, or withheld, and drawn dashed." in (drawing.findtext(f"{_SVG}desc") or "")
    assert "1 value is at no time, and left out." in _texts(drawing)
    assert "10,000" not in _texts(drawing)


def test_many_days_have_one_band_and_no_error_bars() -> None:
    drawing = ElementTree.fromstring(picture_of(_daily()))
    assert len(_with_class(drawing, "lw-doubt")) == 1
    assert [name for name in ("lw-whisker", "lw-whisker-marked", "lw-open", "lw-dot") if _with_class(drawing, name)] == []
    (band,) = _with_class(drawing, "lw-band")
    assert len(band.get("points", "").split()) == 2 * 99, "over every day, also where noise hides the value"
    assert len(_with_class(drawing, "lw-curve")) == 10, "clear of noise between the tenths"
    gap = ElementTree.fromstring(picture_of(_daily(missing=1)))
    assert len(_with_class(gap, "lw-band")) == 2


def test_each_series_has_its_line_its_band_and_its_name() -> None:
    drawing = ElementTree.fromstring(picture_of(_by_month(6)))
    for number in range(6):
        assert len(_with_class(drawing, f"lw-area-{number}")) == 1
        assert len(_with_class(drawing, f"lw-line-{number}")) == 2, "in the picture and in the legend"
        assert f"kind {number}" in _texts(drawing)
    assert "One line for each of kind 0, kind 1, kind 2, kind 3, kind 4, kind 5." in (drawing.findtext(f"{_SVG}desc") or "")
    nine = ElementTree.fromstring(picture_of(_by_month(9), kind=ChartKind.LINE))
    assert "The 6 largest of 9 lines are drawn; 3 left out." in _texts(nine)
    assert {"kind 8", "kind 3"} <= set(_texts(nine)) and "kind 2" not in _texts(nine)


def test_months_and_years_are_written_as_such() -> None:
    labels = {
        name: _texts(ElementTree.fromstring(picture_of(ANSWERS[name][0]))) for name in ("years", "months of any year", "months as text")
    }
    assert {"1920", "1940", "2020"} <= set(labels["years"])
    assert {"Jan", "Mar"} <= set(labels["months of any year"]) and not any("2000" in text for text in labels["months of any year"])
    assert {"Dec 2023", "Jan 2024"} <= set(labels["months as text"])


def test_a_scale_is_there_where_everything_is_noise() -> None:
    everything = made_answer({"month": _MONTHS, "n": [10_000] * 30}, {"n": 20_000}, {"n": [_NOISE] * 30})
    assert "20,000" in _texts(ElementTree.fromstring(picture_of(everything)))


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
    assert len(_with_class(drawing, "lw-fill")) == 40
    assert "The first 40 of 75 groups are drawn; 35 left out." in _texts(drawing)


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


_SEEN_BY: dict[str, tuple[tuple[float, ...], ...]] = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red cones": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "no green cones": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "no blue cones": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
"""What eyes make of linear red, green and blue (Machado, Oliveira and Fernandes, 2009, severity 1)."""


def _seen(colour: str, eyes: str) -> tuple[float, float, float]:
    """A colour in CIE L*a*b*, as these eyes see it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    red, green, blue = (min(max(sum(map(mul, row, linear)), 0.0), 1.0) for row in _SEEN_BY[eyes])
    x = (0.4124564 * red + 0.3575761 * green + 0.1804375 * blue) / 0.95047
    y = 0.2126729 * red + 0.7151522 * green + 0.0721750 * blue
    z = (0.0193339 * red + 0.1191920 * green + 0.9503041 * blue) / 1.08883
    fx, fy, fz = (math.cbrt(part) if part > 0.008856 else 7.787 * part + 16 / 116 for part in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


@pytest.mark.parametrize("eyes", _SEEN_BY)
@pytest.mark.parametrize(("colours", "paper"), [(LINE_COLOURS, LIGHT["paper"]), (LINES_DARK, DARK["paper"])], ids=["light", "dark"])
def test_lines_can_be_told_apart_by_everybody(colours: tuple[str, ...], paper: str, eyes: str) -> None:
    assert len(colours) == 6
    assert min(contrast(colour, paper) for colour in colours) >= 3
    apart = [math.dist(_seen(one, eyes), _seen(other, eyes)) for one, other in combinations(colours, 2)]
    assert min(apart) >= 25, "2 can just be seen side by side"


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
