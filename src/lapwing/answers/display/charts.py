"""Charts of an answer: bars with error bars, or over time lines with bands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lapwing.answers.display.chart_lines import LINE_COLOURS, TimeLines, time_lines
from lapwing.answers.display.chart_shape import DrawnColumn, drawn_column, key_names
from lapwing.answers.display.mark_text import SIGNS, in_short
from lapwing.answers.display.time_axis import key_texts, moment_of, time_ticks
from lapwing.answers.intervals import Interval
from lapwing.statements import CellMark

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

BAR_COLOUR = "#8fbbd6"
"""Light enough that the lower half of an error bar can be seen on it."""
LINE_COLOUR = "#1f6f99"
ERROR_COLOUR = "#222222"
MARKED_COLOUR = "#8a8a8a"
"""Colour of marked values: hollow bars and their labels."""
BARS_MAX = 60
LEVEL_LABELS_MAX = 6
"""Number of bars up to which labels are horizontal."""


def plotted(
    table: pa.Table,
    intervals: Mapping[str, Sequence[Interval | None]],
    marks: Mapping[str, Sequence[CellMark | None]],
    *,
    value: str | None,
    title: str,
    ax: Axes | None,
) -> Axes:
    """One column drawn over the columns that have no error bars: over time as lines, one for each value of another key, else as bars."""
    drawn = drawn_column(table, intervals, marks, value=value)
    columns: dict[str, list[Any]] = {key: table.column(key).to_pylist() for key in key_names(table, {**intervals, **marks})}
    lines = time_lines(columns, drawn)
    ax = _bars(columns, drawn, ax) if lines is None else _lines(list(columns), lines, drawn, ax)
    ax.yaxis.set_major_formatter(lambda height, _: f"{height:,.10g}")
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_ylabel(drawn.name)
    shown = f"first {BARS_MAX} of {len(table):,} groups; " if len(table) > BARS_MAX and lines is None else ""
    ax.set_title(f"{shown}{title}", fontsize="small", loc="left")
    return ax


def _lines(keys: Sequence[str], found: TimeLines, drawn: DrawnColumn, ax: Axes | None) -> Axes:
    """Lines with bands, in the order of time, with the gaps of the answer; dashed where noise hides the value."""
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    several = found.total > 1
    for line, colour in zip(found.lines, LINE_COLOURS if several else [LINE_COLOUR], strict=False):
        name: str | None = line.name if several else None
        for piece in found.pieces(line, drawn):
            _draw_piece(ax, found, drawn, piece, colour, name)
            name = None  # a legend has each line once
    if several:
        ax.legend(frameon=False, fontsize="small")
    if any(drawn.doubtful):
        _scale(ax, drawn)
    first, last = (found.axis.at[end(found.moments, key=found.moments.__getitem__)] for end in (min, max))
    assert first is not None and last is not None
    ticks = time_ticks(first, last, most=8, step=found.axis.step)
    places: list[Any] = [moment_of(tick.at) for tick in ticks]
    ax.set_xticks(places, [tick.label for tick in ticks])
    ax.set_xlabel("\n".join([", ".join(keys), *in_short(drawn.marks), *found.notes]))
    return ax


def _draw_piece(ax: Axes, found: TimeLines, drawn: DrawnColumn, piece: Sequence[int], colour: str, name: str | None) -> None:
    """A dashed line from one gap to the next, and over it the parts that are larger than their noise."""
    at: list[Any] = [moment_of(found.moments[row]) for row in piece]
    heights, doubtful = [drawn.heights[row] for row in piece], [drawn.doubtful[row] for row in piece]
    low, high = [drawn.heights[row] - drawn.below[row] for row in piece], [drawn.heights[row] + drawn.above[row] for row in piece]
    ax.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0)
    dot, dashes, width = ("o", "--", 1.6) if found.has_dots or len(piece) == 1 else ("", "-", 1.0)
    if any(doubtful):
        ax.plot(at, heights, color=colour, alpha=0.6, linewidth=0.8, linestyle=dashes, marker=dot, mfc="white", markersize=3)
    clear = [math.nan if doubt else height for height, doubt in zip(heights, doubtful, strict=True)]
    ax.plot(at, clear, color=colour, linewidth=width, marker=dot, markersize=3, label=name)


def _bars(columns: Mapping[str, Sequence[Any]], every: DrawnColumn, ax: Axes | None) -> Axes:
    """Bars with error bars, labelled by the columns that have none."""
    import matplotlib.pyplot as plt

    labels = _labels(columns, every)
    drawn = every.of_rows(range(len(labels)))
    if ax is None:
        _, ax = plt.subplots(figsize=(max(4.5, 0.32 * len(labels) + 2), 4), layout="constrained")
    positions, doubtful = range(len(labels)), drawn.doubtful
    _draw(ax, [i for i in positions if not doubtful[i]], drawn, hollow=False)
    if any(doubtful):
        _draw(ax, [i for i in positions if doubtful[i]], drawn, hollow=True)
        _scale(ax, drawn)
        ax.set_xlim(-0.7, len(labels) - 0.3)
    ax.axhline(0, color=ERROR_COLOUR, linewidth=0.8)
    slanted = len(labels) > LEVEL_LABELS_MAX
    signed = [label if mark is None else f"{label} {SIGNS[mark]}" for label, mark in zip(labels, drawn.marks, strict=True)]
    ax.set_xticks(list(positions), signed, rotation=45 if slanted else 0, ha="right" if slanted else "center", rotation_mode="anchor")
    for tick, doubt in zip(ax.get_xticklabels(), doubtful, strict=True):
        tick.set_color(MARKED_COLOUR if doubt else ERROR_COLOUR)
    ax.set_xlabel("\n".join(line for line in (", ".join(columns), *in_short(drawn.marks)) if line))
    return ax


def _draw(ax: Axes, some: Sequence[int], drawn: DrawnColumn, *, hollow: bool) -> None:
    """Some of the bars, with their error bars."""
    tops, sides = [drawn.heights[i] for i in some], [[side[i] for i in some] for side in (drawn.below, drawn.above)]
    if hollow:
        ax.bar(some, tops, color="none", edgecolor=MARKED_COLOUR, linestyle="--", width=0.75)
    else:
        ax.bar(some, tops, color=BAR_COLOUR, width=0.75)
    ax.errorbar(some, tops, yerr=sides, fmt="none", ecolor=MARKED_COLOUR if hollow else ERROR_COLOUR, capsize=3, elinewidth=1.2)


def _scale(ax: Axes, drawn: DrawnColumn) -> None:
    """Fit the axis to zero and to values that are not doubtful, if there are any: noise does not affect it."""
    ends = [0.0, *drawn.ends()]
    room = 0.05 * (max(ends) - min(ends)) or 1.0
    ax.set_ylim(min(ends) - (room if min(ends) < 0 else 0), max(ends) + room)


def _labels(columns: Mapping[str, Sequence[Any]], drawn: DrawnColumn) -> list[str]:
    """The label of each bar."""
    texts = [key_texts(name, values) for name, values in columns.items()]
    labels = [", ".join(row) for row in zip(*texts, strict=True)] if texts else [drawn.name] * len(drawn.heights)
    return labels[:BARS_MAX]
