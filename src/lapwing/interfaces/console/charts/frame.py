"""The frame of every chart: a heading, the notes below it, and a description for screen readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lapwing.answers.display.mark_text import in_short
from lapwing.answers.display.number_format import percent
from lapwing.interfaces.console.charts import svg
from lapwing.interfaces.console.charts.kinds import ChartKind, Drawable
from lapwing.interfaces.console.charts.palette import own_style

WIDE, NARROW = 720, 344
"""Widths of a drawing: on a desktop, and on a phone."""
HEAD, FOOT_LINE, SMALL = 34.0, 17.0, 12
_NAMES = {
    ChartKind.BARS: "Bars",
    ChartKind.LINE: "Line",
    ChartKind.POINTS: "Points",
    ChartKind.HISTOGRAM: "Histogram",
    ChartKind.HEAT_MAP: "Heat map",
}


@dataclass(frozen=True, slots=True)
class Canvas:
    """The area for a drawing: its width, and its name, which begins every id in it."""

    width: float
    name: str

    @property
    def is_narrow(self) -> bool:
        """Whether it is for a phone."""
        return self.width < WIDE


@dataclass(frozen=True, slots=True)
class Drawing:
    """The inside of a chart, from ``HEAD`` down, and the notes below it."""

    parts: Sequence[str]
    height: float
    notes: Sequence[str] = ()


def heading(shown: Drawable) -> str:
    """The column and its keys."""
    return f"{shown.column.name} by {' and '.join(shown.keys)}" if shown.keys else shown.column.name


def described(shown: Drawable, kind: ChartKind) -> str:
    """The chart as text: how many values, the largest and the smallest with their error bars, and how many noise hides."""
    column, doubtful = shown.column, shown.column.doubtful
    sure = [row for row in range(len(shown.rows)) if not doubtful[row] and column.heights[row] == column.heights[row]]
    counted = f"{len(shown.rows):,} value{'' if len(shown.rows) == 1 else 's'}"
    parts = [f"{_NAMES[kind]} of {counted} with error bars of {percent(shown.confidence)}."]
    if kind is ChartKind.LINE and shown.lines is not None and shown.lines.total > 1:
        parts.append(f"One line for each of {', '.join(line.name for line in shown.lines.lines)}.")
    if len(sure) == 1:
        parts.append(f"{shown.hint(sure[0])}.")
    elif sure:
        most, least = max(sure, key=lambda row: column.heights[row]), min(sure, key=lambda row: column.heights[row])
        parts.append(f"Largest: {shown.hint(most)}. Smallest: {shown.hint(least)}.")
    hidden = sum(doubtful)
    if hidden:
        look = "dashed" if kind is ChartKind.LINE else "hollow"
        parts.append(f"{hidden:,} {'is' if hidden == 1 else 'are'} mostly noise, or withheld, and drawn {look}.")
    return " ".join(parts)


def framed(canvas: Canvas, shown: Drawable, kind: ChartKind, drawing: Drawing, *, alone: bool, dark: bool = False) -> str:
    """The whole drawing. With ``alone`` it has its own colours and background; in a page it takes them from the page."""
    said = [f"Error bars: {percent(shown.confidence)}.", *in_short(shown.column.marks), *drawing.notes]
    notes = [line for note in said for line in svg.lines_of(note, canvas.width - 4, SMALL)]
    below = HEAD + drawing.height + 10
    height = below + FOOT_LINE * len(notes) + 6
    title, told = f"{canvas.name}-title", f"{canvas.name}-desc"
    shapes = [
        *([svg.rect(0, 0, canvas.width, height, class_="lw-paper")] if alone else []),
        svg.text(2, 16, svg.fitted(heading(shown), canvas.width - 4, 15.5), class_="lw-text lw-head"),
        *drawing.parts,
        *(svg.text(2, below + FOOT_LINE * (at + 0.8), line, class_="lw-quiet lw-small") for at, line in enumerate(notes)),
    ]
    parts = [
        svg.element("title", svg.words(heading(shown)), id=title),
        svg.element("desc", svg.words(described(shown, kind)), id=told),
        *([svg.element("style", own_style("".join(shapes), dark=dark))] if alone else []),
        *shapes,
    ]
    size = "narrow" if canvas.is_narrow else "wide"
    return svg.element(
        "svg",
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {svg.number(canvas.width)} {svg.number(height)}",
        width=canvas.width if alone else None,
        height=height if alone else None,
        role="img",
        aria_labelledby=f"{title} {told}",
        class_="lw-chart" if alone else f"lw-chart lw-chart-{size}",
    )


def clip(name: str, x: float, y: float, width: float, height: float) -> str:
    """A clipping area: a noisy bar may be longer than the scale."""
    return svg.element("defs", svg.element("clipPath", svg.element("rect", x=x, y=y, width=width, height=height), id=name))


def whisker(x1: float, y1: float, x2: float, y2: float, *, cap: float, hollow: bool) -> str:
    """An error bar between two points, with a cap at both ends: horizontal if ``y1`` is ``y2``, otherwise vertical."""
    across = y1 == y2
    dx, dy = (0.0, cap) if across else (cap, 0.0)
    ends = "".join(f"M{svg.number(x - dx)} {svg.number(y - dy)}L{svg.number(x + dx)} {svg.number(y + dy)}" for x, y in ((x1, y1), (x2, y2)))
    way = f"M{svg.number(x1)} {svg.number(y1)}L{svg.number(x2)} {svg.number(y2)}{ends}"
    return svg.element("path", d=way, class_="lw-whisker-marked" if hollow else "lw-whisker")
