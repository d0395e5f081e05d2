"""Bars and points: a row for each value, so that long names need no rotation and fit on a phone."""

from __future__ import annotations

import math

from lapwing.interfaces.console.charts import svg
from lapwing.interfaces.console.charts.frame import HEAD, Canvas, Drawing, clip, whisker
from lapwing.interfaces.console.charts.kinds import Drawable
from lapwing.interfaces.console.charts.scales import Scale, number_ticks, reach

ROWS_MAX = 40
_ROW, _TALL_ROW, _THICK = 30.0, 48.0, 16.0
_LABEL_SHARE_MAX = 0.36


def drawn_rows(canvas: Canvas, shown: Drawable, *, points: bool) -> Drawing:
    """Bars begin at zero; points are on a scale that shows how they differ."""
    count = min(len(shown.rows), ROWS_MAX)
    labels = [shown.label(row) for row in range(count)]
    row_height = _TALL_ROW if canvas.is_narrow else _ROW
    if canvas.is_narrow:
        begin, end = 6.0, canvas.width - 6.0
    else:
        begin = min(max((svg.width_of(label) for label in labels), default=0.0) + 14, _LABEL_SHARE_MAX * canvas.width)
        end = canvas.width - max((svg.width_of(shown.written[row]) for row in range(count)), default=0.0) - 18
    low, high = reach(shown.column.of_rows(range(count)).ends(), from_zero=not points)
    scale = Scale(low, high, begin, end)
    bottom = HEAD + row_height * count + 4
    name = f"{canvas.name}-area"
    parts = [clip(name, begin - 5, HEAD - 4, end - begin + 10, bottom - HEAD + 8)]
    for tick in number_ticks(low, high, most=4 if canvas.is_narrow else 6):
        at = scale.place(tick.at)
        look = "lw-axis" if tick.at == 0 and not points else "lw-grid"
        # On a phone, names are above the bars: the grid lines leave space for them.
        tops = [HEAD + row_height * row + 22 for row in range(count)] if canvas.is_narrow else [HEAD - 2]
        length = 22.0 if canvas.is_narrow else bottom - HEAD + 2
        parts += [svg.line(at, top, at, top + length, class_=look) for top in tops]
        half = svg.width_of(tick.label, 12) / 2
        parts.append(
            svg.text(min(max(at, half + 1), canvas.width - half - 1), bottom + 16, tick.label, class_="lw-quiet lw-small", anchor="middle")
        )
    for row in range(count):
        top = HEAD + row_height * row
        parts += _row(canvas, shown, row, scale, top, begin, name=name, points=points, label=labels[row])
    hidden = len(shown.rows) - count
    notes = [f"The first {count} of {len(shown.rows):,} groups are drawn; {hidden:,} left out."] if hidden else []
    return Drawing(parts, bottom + 22 - HEAD, notes)


def _row(
    canvas: Canvas, shown: Drawable, row: int, scale: Scale, top: float, begin: float, *, name: str, points: bool, label: str
) -> list[str]:
    doubtful = shown.column.doubtful[row]
    ink, written = ("lw-quiet" if doubtful else "lw-text"), shown.written[row]
    if canvas.is_narrow:
        middle = top + 33
        room = canvas.width - svg.width_of(written) - 16
        texts = [svg.text(2, top + 16, svg.fitted(label, room), class_=ink)]
    else:
        middle = top + _ROW / 2
        texts = [svg.text(begin - 12, middle + 4.5, svg.fitted(label, begin - 12), class_=ink, anchor="end")]
    at = canvas.width - 2
    foot = top + 16 if canvas.is_narrow else middle + 4.5
    texts.append(svg.text(at, foot, written, class_="lw-quiet lw-value" if doubtful else "lw-value", anchor="end"))
    shapes = _shapes(shown, row, scale, middle, points=points)
    return [svg.group([svg.hint(shown.hint(row)), *texts, svg.group(shapes, clip=name)])]


def _shapes(shown: Drawable, row: int, scale: Scale, middle: float, *, points: bool) -> list[str]:
    column = shown.column
    height, doubtful = column.heights[row], column.doubtful[row]
    if math.isnan(height):
        return []
    here = scale.place(height)
    shapes = []
    if not points:
        zero = scale.place(0.0)
        shapes.append(
            svg.rect(min(zero, here), middle - _THICK / 2, abs(here - zero), _THICK, class_="lw-hollow" if doubtful else "lw-fill")
        )
    if column.below[row] or column.above[row]:
        ends = scale.place(height - column.below[row]), scale.place(height + column.above[row])
        shapes.append(whisker(ends[0], middle, ends[1], middle, cap=4, hollow=doubtful))
    if points:
        shapes.append(svg.element("circle", cx=here, cy=middle, r=4.5, class_="lw-hollow" if doubtful else "lw-dot"))
    return shapes
