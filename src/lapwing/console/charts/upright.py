"""Over an axis: numbers in bins as a histogram, and time as a line with a band."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

from lapwing.answers.number_format import cell_text, figure
from lapwing.console.charts import svg
from lapwing.console.charts.frame import HEAD, Canvas, Drawing, clip, whisker
from lapwing.console.charts.kinds import Drawable, bin_width
from lapwing.console.charts.scales import Scale, Tick, moment_number, number_ticks, reach, time_ticks

_TALL, _LOW = 280.0, 230.0
"""Heights of the area, on a desk and on a phone."""
_DOTS_MAX = 60
"""Points of a line up to which each has a dot."""


class _Area:
    """The part of a drawing that values are drawn in, with its two scales."""

    def __init__(self, canvas: Canvas, ends: list[float], *, from_zero: bool) -> None:
        self.canvas = canvas
        low, high = reach(ends, from_zero=from_zero)
        height = _LOW if canvas.is_narrow else _TALL
        self.top, self.bottom = HEAD + 4, HEAD + 4 + height
        self.ticks = number_ticks(low, high, most=5)
        self.left = max(svg.width_of(tick.label, 12) for tick in self.ticks) + 10
        self.right = canvas.width - 8
        self.up = Scale(low, high, self.bottom, self.top)
        self.clip_name = f"{canvas.name}-area"

    def surroundings(self, across: Sequence[tuple[float, str]]) -> list[str]:
        """Lines and labels: values on the left, and below the area what it goes over."""
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
    """A bar for each bin, next to each other; a bin that is not in the answer is a gap, and NULL stands apart."""
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
    """A line with a band, in the order of time, broken where a value is doubtful; these are hollow points with their own error bars."""
    times: list[date | None] = [row[0] for row in shown.rows]
    order = sorted((row for row, at in enumerate(times) if at is not None), key=lambda row: moment_number(_known(times[row])))
    area = _Area(canvas, shown.column.of_rows(order).ends(), from_zero=False)
    first, last = _known(times[order[0]]), _known(times[order[-1]])
    span = Scale(moment_number(first), max(moment_number(last), moment_number(first) + 1), area.left + 8, area.right - 6)
    places = {row: span.place(moment_number(_known(times[row]))) for row in order}
    ticks = time_ticks(first, last, most=4 if canvas.is_narrow else 8)
    parts: list[str] = []
    for run in _sure_runs(shown, order):
        parts += _run(shown, run, places, area)
    for row in order:
        parts.append(_point(shown, row, places[row], area, dots=len(order) <= _DOTS_MAX))
    left_out = len(times) - len(order)
    notes = [f"{left_out:,} value{' is' if left_out == 1 else 's are'} at no time, and left out."] if left_out else []
    labels = [(span.place(tick.at), tick.label) for tick in _apart(ticks, span)]
    return Drawing([*area.surroundings(labels), svg.group(parts, clip=area.clip_name)], area.bottom + 26 - HEAD, notes)


def _known(at: date | None) -> date:
    assert at is not None
    return at


def _apart(ticks: Sequence[Tick], span: Scale) -> Iterator[Tick]:
    """Those whose labels do not touch."""
    free = -math.inf
    for tick in ticks:
        half = svg.width_of(tick.label, 12) / 2 + 5
        if span.place(tick.at) - half >= free:
            free = span.place(tick.at) + half
            yield tick


def _sure_runs(shown: Drawable, order: Sequence[int]) -> Iterator[list[int]]:
    run: list[int] = []
    for row in order:
        if shown.column.doubtful[row] or math.isnan(shown.column.heights[row]):
            if run:
                yield run
            run = []
        else:
            run.append(row)
    if run:
        yield run


def _run(shown: Drawable, run: Sequence[int], places: dict[int, float], area: _Area) -> list[str]:
    column = shown.column
    upper = [(places[row], area.up.place(column.heights[row] + column.above[row])) for row in run]
    lower = [(places[row], area.up.place(column.heights[row] - column.below[row])) for row in run]
    middle = [(places[row], area.up.place(column.heights[row])) for row in run]
    band = " ".join(f"{svg.number(x)},{svg.number(y)}" for x, y in (*upper, *reversed(lower)))
    curve = " ".join(f"{svg.number(x)},{svg.number(y)}" for x, y in middle)
    return [svg.element("polygon", points=band, class_="lw-band"), svg.element("polyline", points=curve, class_="lw-curve")]


def _point(shown: Drawable, row: int, x: float, area: _Area, *, dots: bool) -> str:
    column = shown.column
    height, doubtful = column.heights[row], column.doubtful[row]
    if math.isnan(height):
        return ""
    parts, y = [svg.hint(shown.hint(row))], area.up.place(height)
    if doubtful:
        ends = area.up.place(height - column.below[row]), area.up.place(height + column.above[row])
        parts += [whisker(x, ends[0], x, ends[1], cap=3, hollow=True), svg.element("circle", cx=x, cy=y, r=3.5, class_="lw-hollow")]
    elif dots:
        parts.append(svg.element("circle", cx=x, cy=y, r=3.5, class_="lw-dot"))
    parts.append(svg.element("circle", cx=x, cy=y, r=9, fill_opacity=0))
    return svg.group(parts)
