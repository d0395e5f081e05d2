"""Charts over two keys: a field for each pair, darker for a larger value. The line at its foot is its error bar, relative to the value."""

from __future__ import annotations

import math
from typing import Any

from lapwing.answers.display.number_format import figure
from lapwing.answers.display.time_axis import key_texts, time_axis
from lapwing.interfaces.console.charts import svg
from lapwing.interfaces.console.charts.frame import HEAD, Canvas, Drawing
from lapwing.interfaces.console.charts.kinds import Drawable, in_order
from lapwing.interfaces.console.charts.palette import HEAT_LIGHT
from lapwing.interfaces.console.charts.scales import reach

STEPS = len(HEAT_LIGHT)
_FIELD_HEIGHT = 34.0
_FIELD_WIDTH_MAX = 110.0
_PAD = 5.0
_HEAD_MAX = 110.0
"""Space for the name of a column, which is slanted if it is long."""


def drawn_map(canvas: Canvas, shown: Drawable) -> Drawing:
    """Rows for one key and columns for the other: time runs across, or on a phone the key with fewer values."""
    down, across, is_turned = _sides(canvas, shown)
    names = shown.keys[::-1] if is_turned else shown.keys
    labels = key_texts(names[0], down)
    left = min(max(svg.width_of(label) for label in labels) + 12, 0.3 * canvas.width)
    heads = key_texts(names[1], across)
    longest = max(svg.width_of(head, 12) for head in heads)
    slanted = longest > min((canvas.width - left) / len(across), _FIELD_WIDTH_MAX) - 4
    width = min((canvas.width - left - (min(longest, _HEAD_MAX) * 0.72 if slanted else 0)) / len(across), _FIELD_WIDTH_MAX)
    top = HEAD + (min(longest, _HEAD_MAX) * 0.72 + 14 if slanted else 20)
    every = math.ceil(18 / width) if slanted else 1
    parts = [_head(head, left + width * (at + 0.5), top, slanted=slanted) for at, head in enumerate(heads) if at % every == 0]
    for at, label in enumerate(labels):
        foot = top + _FIELD_HEIGHT * (at + 0.5) + 4.5
        parts.append(svg.text(left - 8, foot, svg.fitted(label, left - 8), class_="lw-text", anchor="end"))
    low, high = reach([height for height, doubt in _heights(shown) if not doubt], from_zero=shown.is_whole)
    hatch = f"{canvas.name}-hatch"
    parts.append(_hatching(hatch))
    spots = {(row[1], row[0]) if is_turned else (row[0], row[1]): number for number, row in enumerate(shown.rows)}
    with_text = width >= 40
    for y, one in enumerate(down):
        for x, other in enumerate(across):
            number = spots.get((one, other))
            if number is None:
                continue
            parts.append(_field(shown, number, left + width * x, top + _FIELD_HEIGHT * y, width, (low, high), hatch, with_text=with_text))
    below = top + _FIELD_HEIGHT * len(down) + 14
    parts += _scale(left, below, low, high, canvas.width - left - 2)
    note = "The line at the foot of a field is its error bar, as a share of the value."
    return Drawing(parts, below + 34 - HEAD, [note])


def _sides(canvas: Canvas, shown: Drawable) -> tuple[list[Any], list[Any], bool]:
    down, across = (in_order(key, [row[side] for row in shown.rows]) for side, key in enumerate(shown.keys))
    is_time = [time_axis({key: values}) is not None for key, values in zip(shown.keys, (down, across), strict=True)]
    first_is_time = is_time == [True, False]
    if len(across) > len(down) if canvas.is_narrow else first_is_time:
        return across, down, True
    return down, across, False


def _heights(shown: Drawable) -> list[tuple[float, bool]]:
    return list(zip(shown.column.heights, shown.column.doubtful, strict=True))


def _head(head: str, middle: float, top: float, *, slanted: bool) -> str:
    if slanted:
        return svg.text(middle + 4, top - 8, svg.fitted(head, _HEAD_MAX, 12), class_="lw-quiet lw-small", turned=-45)
    return svg.text(middle, top - 8, head, class_="lw-quiet lw-small", anchor="middle")


def _hatching(name: str) -> str:
    stripe = svg.element("path", d="M0 8L8 0", class_="lw-hatch", stroke_width=1)
    return svg.element("defs", svg.element("pattern", stripe, id=name, width=8, height=8, patternUnits="userSpaceOnUse"))


def step_of(height: float, low: float, high: float) -> int:
    """The colour step of a value."""
    return min(max(math.floor((height - low) / (high - low) * STEPS), 0), STEPS - 1)


def _field(
    shown: Drawable, number: int, x: float, y: float, width: float, ends: tuple[float, float], hatch: str, *, with_text: bool
) -> str:
    column = shown.column
    height, doubtful = column.heights[number], column.doubtful[number]
    inner_width, inner_height = width - 2, _FIELD_HEIGHT - 2
    parts = [svg.hint(shown.hint(number))]
    if doubtful or math.isnan(height):
        parts.append(svg.element("rect", x=x, y=y, width=inner_width, height=inner_height, fill=f"url(#{hatch})"))
        parts.append(svg.rect(x + 0.5, y + 0.5, inner_width - 1, inner_height - 1, class_="lw-hollow"))
        return svg.group(parts)
    step = step_of(height, *ends)
    parts.append(svg.rect(x, y, inner_width, inner_height, class_=f"lw-heat-{step}"))
    written = figure(height, digits=3)
    if with_text and svg.width_of(written, 12) <= inner_width - 4:
        parts.append(svg.text(x + inner_width / 2, y + 18, written, class_=f"lw-on-heat-{step} lw-small lw-value", anchor="middle"))
    half = (column.below[number] + column.above[number]) / 2
    if half:
        room = inner_width - 2 * _PAD
        share = min(half / abs(height), 1.0) if height else 1.0
        foot = y + inner_height - 6
        bar = svg.element(
            "line", x1=x + _PAD, y1=foot, x2=x + _PAD + room * share, y2=foot, class_=f"lw-bar-on-heat-{step}", stroke_width=2
        )
        parts.append(bar)
    return svg.group(parts)


def _scale(left: float, top: float, low: float, high: float, room: float) -> list[str]:
    """The colour steps with the values at their ends."""
    width = min(22.0, room / STEPS)
    parts = [svg.rect(left + width * step, top, width, 10, class_=f"lw-heat-{step}") for step in range(STEPS)]
    parts.append(svg.text(left, top + 26, figure(low, digits=3), class_="lw-quiet lw-small"))
    parts.append(svg.text(left + width * STEPS, top + 26, figure(high, digits=3), class_="lw-quiet lw-small", anchor="end"))
    return parts
