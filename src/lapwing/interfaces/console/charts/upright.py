"""Charts over an axis: binned numbers as a histogram, and time series as lines with bands."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lapwing.answers.display.chart_lines import DOTS_MAX, clear_parts
from lapwing.answers.display.chart_shape import DrawnColumn
from lapwing.answers.display.number_format import cell_text, figure
from lapwing.answers.display.time_axis import Tick, time_ticks
from lapwing.interfaces.console.charts import svg
from lapwing.interfaces.console.charts.frame import HEAD, Canvas, Drawing, clip, whisker
from lapwing.interfaces.console.charts.kinds import Drawable, bin_width
from lapwing.interfaces.console.charts.scales import Scale, number_ticks, reach

_TALL, _LOW = 280.0, 230.0
"""Heights of the area, on a desktop and on a phone."""


class _Area:
    """The plotting area of a drawing, with its two scales."""

    def __init__(self, canvas: Canvas, ends: list[float], *, from_zero: bool, above: float = 0.0) -> None:
        self.canvas = canvas
        low, high = reach(ends, from_zero=from_zero)
        height = _LOW if canvas.is_narrow else _TALL
        self.top, self.bottom = HEAD + 4 + above, HEAD + 4 + above + height
        self.ticks = number_ticks(low, high, most=5)
        self.left = max(svg.width_of(tick.label, 12) for tick in self.ticks) + 10
        self.right = canvas.width - 8
        self.up = Scale(low, high, self.bottom, self.top)
        self.clip_name = f"{canvas.name}-area"

    def surroundings(self, across: Sequence[tuple[float, str]]) -> list[str]:
        """Grid lines and labels: values on the left, keys below the area."""
        parts = [clip(self.clip_name, self.left - 1, self.top - 4, self.right - self.left + 2, self.bottom - self.top + 8)]
        for tick in self.ticks:
            at = self.up.place(tick.at)
            parts.append(svg.line(self.left, at, self.right, at, class_="lw-axis" if tick.at == 0 else "lw-grid"))
            parts.append(svg.text(self.left - 7, at + 4, tick.label, class_="lw-quiet lw-small", anchor="end"))
        for at, label in across:
            half = svg.width_of(label, 12) / 2
            inside = min(max(at, half + 1), self.canvas.width - half - 1)
            parts.append(svg.text(inside, self.bottom + 18, label, class_="lw-quiet lw-small", anchor="middle"))
        return parts


def drawn_histogram(canvas: Canvas, shown: Drawable) -> Drawing:
    """Adjacent bars, one per bin; a bin that is not in the answer is a gap, and NULL is separate."""
    keys: list[Any] = [row[0] for row in shown.rows]
    step = bin_width(keys)
    assert step is not None
    area = _Area(canvas, shown.column.ends(), from_zero=True)
    numbers = [key for key in keys if key is not None]
    least, bins = float(min(numbers)), round((float(max(numbers)) - float(min(numbers))) / step) + 1
    slots = bins + (1.5 if None in keys else 0)
    room = (area.right - area.left) / slots
    parts, labels = [], []
    every = max(1, math.ceil(max(svg.width_of(cell_text(key), 12) for key in numbers) * 1.35 / room))
    for row, key in enumerate(keys):
        slot = bins + 0.5 if key is None else round((float(key) - least) / step)
        x = area.left + slot * room
        if key is None or slot % every == 0:
            labels.append((x + room / 2, cell_text(key) if not isinstance(key, float) else figure(key)))
        parts.append(_bar(shown, row, x, room, area))
    unit = f"{shown.keys[0]}, in steps of {figure(step)}" if step != 1 else shown.keys[0]
    axis = svg.text((area.left + area.right) / 2, area.bottom + 38, svg.fitted(unit, canvas.width), class_="lw-quiet", anchor="middle")
    inside = svg.group(parts, clip=area.clip_name)
    return Drawing([*area.surroundings(labels), inside, axis], area.bottom + 44 - HEAD)


def _bar(shown: Drawable, row: int, x: float, room: float, area: _Area) -> str:
    column = shown.column
    height, doubtful = column.heights[row], column.doubtful[row]
    parts = [svg.hint(shown.hint(row)), svg.element("rect", x=x, y=area.top, width=room, height=area.bottom - area.top, fill_opacity=0)]
    if not math.isnan(height):
        gap = min(2.0, room * 0.12)
        zero, top = area.up.place(0.0), area.up.place(height)
        look = "lw-hollow" if doubtful else "lw-fill"
        parts.append(svg.rect(x + gap / 2, min(zero, top), room - gap, abs(zero - top), class_=look))
        if column.below[row] or column.above[row]:
            ends = area.up.place(height - column.below[row]), area.up.place(height + column.above[row])
            parts.append(whisker(x + room / 2, ends[0], x + room / 2, ends[1], cap=min(4.0, room * 0.25), hollow=doubtful))
    return svg.group(parts)


def drawn_line(canvas: Canvas, shown: Drawable) -> Drawing:
    """Lines with bands, in the order of time, with the answer's gaps; dashed where noise hides the value."""
    found, column = shown.lines, shown.column
    assert found is not None
    rows = [row for line in found.lines for row in line.rows]
    legend, high = _legend(canvas, [line.name for line in found.lines] if found.total > 1 else [])
    drawn = column.of_rows(rows)
    area = _Area(canvas, drawn.ends(), from_zero=any(drawn.doubtful), above=high)  # doubtful values may be zero
    first, last = min(rows, key=found.moments.__getitem__), max(rows, key=found.moments.__getitem__)
    span = Scale(found.moments[first], max(found.moments[last], found.moments[first] + 1), area.left + 8, area.right - 6)
    places = {row: span.place(found.moments[row]) for row in rows}
    ends = [found.axis.at[row] for row in (first, last)]
    assert ends[0] is not None and ends[1] is not None
    ticks = time_ticks(ends[0], ends[1], most=4 if canvas.is_narrow else 8, step=found.axis.step)
    bands, curves, points = [], [], []
    for number, line in enumerate(found.lines):
        pieces, looks = list(found.pieces(line, column)), _looks(number if found.total > 1 else None, thin=not found.has_dots)
        bands += [_band(column, piece, places, area, looks) for piece in pieces]
        for piece in pieces:
            curves += _curves(column, piece, places, area, looks, dots=found.has_dots)
        points += _points(shown, [row for piece in pieces for row in piece], places, area, looks)
    labels = [(span.place(tick.at), tick.label) for tick in _apart(ticks, span)]
    inside = svg.group([*bands, *curves, *points], clip=area.clip_name)
    return Drawing([*legend, *area.surroundings(labels), inside], area.bottom + 26 - HEAD, found.notes)


class _Looks(NamedTuple):
    """Classes of the parts of a line."""

    band: str
    curve: str
    doubt: str
    dot: str
    hollow: str


def _looks(number: int | None, *, thin: bool = False) -> _Looks:
    """The classes of the only line, or of one of several; thin if there is no space for dots or dashes."""
    thick = " lw-thin" if thin else ""
    if number is None:
        return _Looks("lw-band", f"lw-curve{thick}", f"lw-doubt{thick}", "lw-dot", "lw-open")
    line = f"lw-line-{number}"
    return _Looks(f"lw-area-{number}", f"lw-curve {line}{thick}", f"lw-doubt {line}{thick}", f"lw-dot lw-spot-{number}", f"lw-open {line}")


def _legend(canvas: Canvas, names: Sequence[str]) -> tuple[list[str], float]:
    """The names of lines with their colours, in as many rows as needed, and the height of the rows."""
    parts: list[str] = []
    x, y = 2.0, HEAD
    for number, name in enumerate(names):
        shown = svg.fitted(name, canvas.width - 30, 12)
        width = 26 + svg.width_of(shown, 12) + 18
        if x > 2 and x + width > canvas.width:
            x, y = 2.0, y + 20
        parts.append(svg.line(x, y + 2, x + 20, y + 2, class_=_looks(number).curve))
        parts.append(svg.text(x + 26, y + 6, shown, class_="lw-text lw-small"))
        x += width
    return parts, y - HEAD + 22 if names else 0.0


def _apart(ticks: Sequence[Tick], span: Scale) -> Iterator[Tick]:
    """The ticks whose labels do not overlap."""
    free = -math.inf
    for tick in ticks:
        half = svg.width_of(tick.label, 12) / 2 + 5
        if span.place(tick.at) - half >= free:
            free = span.place(tick.at) + half
            yield tick


def _band(column: DrawnColumn, piece: Sequence[int], places: Mapping[int, float], area: _Area, looks: _Looks) -> str:
    upper = [(places[row], area.up.place(column.heights[row] + column.above[row])) for row in piece]
    lower = [(places[row], area.up.place(column.heights[row] - column.below[row])) for row in piece]
    if len(piece) == 1:  # a single point has a narrow band
        upper, lower = ([(x + side, y) for side in (-1.5, 1.5) for x, y in ends] for ends in (upper, lower))
    return svg.element("polygon", points=_way((*upper, *reversed(lower))), class_=looks.band)


def _curves(column: DrawnColumn, piece: Sequence[int], places: Mapping[int, float], area: _Area, looks: _Looks, *, dots: bool) -> list[str]:
    """The whole piece as a dashed line, overlaid by the parts that are larger than their noise; a point between two gaps is a dot."""
    doubtful = column.doubtful
    heights = {row: area.up.place(column.heights[row]) for row in piece}
    ways = [(piece, looks.doubt)] if any(doubtful[row] for row in piece) else []
    ways += [(part, looks.curve) for part in clear_parts(piece, doubtful) if len(part) > 1]
    drawn = [svg.element("polyline", points=_way([(places[row], heights[row]) for row in way]), class_=look) for way, look in ways]
    for row in piece if dots or len(piece) == 1 else ():
        look = looks.hollow if doubtful[row] else looks.dot
        drawn.append(svg.element("circle", cx=places[row], cy=heights[row], r=3.5, class_=look))
    return drawn


def _way(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{svg.number(x)},{svg.number(y)}" for x, y in places)


def _points(shown: Drawable, rows: Sequence[int], places: Mapping[int, float], area: _Area, looks: _Looks) -> list[str]:
    """The tooltip of each value: anywhere above its time, or only near it if there are several lines."""
    if looks.band == "lw-band":
        width, high = max((area.right - area.left) / len(rows), 1.0), area.bottom - area.top
        return [
            svg.element("rect", svg.hint(shown.hint(row)), x=places[row] - width / 2, y=area.top, width=width, height=high, fill_opacity=0)
            for row in rows
        ]
    if len(rows) >= DOTS_MAX:
        return []
    near = [(row, area.up.place(shown.column.heights[row])) for row in rows]
    return [svg.element("circle", svg.hint(shown.hint(row)), cx=places[row], cy=y, r=9, fill_opacity=0) for row, y in near]
