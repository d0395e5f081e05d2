"""An answer drawn: bars with error bars, or over time a line with a band."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lapwing.answers.chart_shape import DrawnColumn, drawn_column, is_time, key_names
from lapwing.answers.intervals import Interval
from lapwing.answers.mark_text import SIGNS
from lapwing.answers.number_format import cell_text
from lapwing.statements import CellMark

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

BAR_COLOUR = "#8fbbd6"
"""Light enough that the lower half of an error bar can be seen on it."""
LINE_COLOUR = "#1f6f99"
ERROR_COLOUR = "#222222"
MARKED_COLOUR = "#8a8a8a"
"""Of what is marked: hollow bars and their labels."""
BARS_MAX = 60
LEVEL_LABELS_MAX = 6
"""Bars up to which their labels are set level."""


def plotted(
    table: pa.Table,
    intervals: Mapping[str, Sequence[Interval | None]],
    marks: Mapping[str, Sequence[CellMark | None]],
    *,
    value: str | None,
    title: str,
    ax: Axes | None,
) -> Axes:
    """One column drawn over the columns that have no error bars: over a single one of dates or times as a line, else as bars."""
    drawn = drawn_column(table, intervals, marks, value=value)
    keys = key_names(table, {**intervals, **marks})
    over_time = len(keys) == 1 and is_time(table, keys[0])
    ax = _line(table, keys[0], drawn, ax) if over_time else _bars(table, keys, drawn, ax)
    ax.yaxis.set_major_formatter(lambda height, _: f"{height:,.10g}")
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_ylabel(drawn.name)
    shown = f"first {BARS_MAX} of {len(table):,} groups; " if len(table) > BARS_MAX and not over_time else ""
    ax.set_title(f"{shown}{title}", fontsize="small", loc="left")
    return ax


def _line(table: pa.Table, key: str, drawn: DrawnColumn, ax: Axes | None) -> Axes:
    """A line with a band, in the order of time. The group of NULL is at no time, and is left out; doubtful values are hollow points apart
    from the line, which is broken there."""
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    times: list[Any] = table.column(key).to_pylist()
    order = sorted((i for i in range(len(times)) if times[i] is not None), key=lambda i: times[i])
    doubtful, at = drawn.doubtful, [times[i] for i in order]
    sure = [math.nan if doubtful[i] else drawn.heights[i] for i in order]
    ax.plot(at, sure, color=LINE_COLOUR, linewidth=1.6, marker="o", markersize=3)
    low = [height - drawn.below[i] for height, i in zip(sure, order, strict=True)]
    high = [height + drawn.above[i] for height, i in zip(sure, order, strict=True)]
    ax.fill_between(at, low, high, color=BAR_COLOUR, alpha=0.5, linewidth=0)
    _draw_doubtful_points(ax, [i for i in order if doubtful[i]], times, drawn)
    if any(doubtful[i] for i in order):
        _scale(ax, drawn, from_zero=False)
    left_out = "" if len(order) == len(times) else f"without {len(times) - len(order)} at no time"
    ax.set_xlabel("\n".join(line for line in (key, drawn.legend, left_out) if line))
    for label in ax.get_xticklabels():
        label.set_rotation(30)
        label.set_horizontalalignment("right")
    return ax


def _draw_doubtful_points(ax: Axes, some: Sequence[int], times: Sequence[Any], drawn: DrawnColumn) -> None:
    if not some:
        return
    at, tops = [times[i] for i in some], [drawn.heights[i] for i in some]
    sides = [[side[i] for i in some] for side in (drawn.below, drawn.above)]
    ax.errorbar(at, tops, yerr=sides, fmt="o", mfc="none", color=MARKED_COLOUR, capsize=3, elinewidth=1.0, markersize=4)


def _bars(table: pa.Table, keys: Sequence[str], every: DrawnColumn, ax: Axes | None) -> Axes:
    """Bars with error bars, labelled by the columns that have none."""
    import matplotlib.pyplot as plt

    labels = _labels(table, keys, otherwise=every.name)
    drawn = every.of_rows(range(len(labels)))
    if ax is None:
        _, ax = plt.subplots(figsize=(max(4.5, 0.32 * len(labels) + 2), 4), layout="constrained")
    positions, doubtful = range(len(labels)), drawn.doubtful
    _draw(ax, [i for i in positions if not doubtful[i]], drawn, hollow=False)
    if any(doubtful):
        _draw(ax, [i for i in positions if doubtful[i]], drawn, hollow=True)
        _scale(ax, drawn, from_zero=True)
        ax.set_xlim(-0.7, len(labels) - 0.3)
    ax.axhline(0, color=ERROR_COLOUR, linewidth=0.8)
    slanted = len(labels) > LEVEL_LABELS_MAX
    signed = [label if mark is None else f"{label} {SIGNS[mark]}" for label, mark in zip(labels, drawn.marks, strict=True)]
    ax.set_xticks(list(positions), signed, rotation=45 if slanted else 0, ha="right" if slanted else "center", rotation_mode="anchor")
    for tick, doubt in zip(ax.get_xticklabels(), doubtful, strict=True):
        tick.set_color(MARKED_COLOUR if doubt else ERROR_COLOUR)
    ax.set_xlabel("\n".join(line for line in (", ".join(keys), drawn.legend) if line))
    return ax


def _draw(ax: Axes, some: Sequence[int], drawn: DrawnColumn, *, hollow: bool) -> None:
    """Some of the bars, with their error bars."""
    tops, sides = [drawn.heights[i] for i in some], [[side[i] for i in some] for side in (drawn.below, drawn.above)]
    if hollow:
        ax.bar(some, tops, color="none", edgecolor=MARKED_COLOUR, linestyle="--", width=0.75)
    else:
        ax.bar(some, tops, color=BAR_COLOUR, width=0.75)
    ax.errorbar(some, tops, yerr=sides, fmt="none", ecolor=MARKED_COLOUR if hollow else ERROR_COLOUR, capsize=3, elinewidth=1.2)


def _scale(ax: Axes, drawn: DrawnColumn, *, from_zero: bool) -> None:
    """Fit the axis to what is not doubtful, where there is anything: noise has no part in it."""
    ends = drawn.ends()
    if ends:
        low, high = min([0.0, *ends] if from_zero else ends), max([0.0, *ends] if from_zero else ends)
        room = 0.05 * (high - low)
        ax.set_ylim(low - (room if low < 0 or not from_zero else 0), high + room)


def _labels(table: pa.Table, keys: Sequence[str], *, otherwise: str) -> list[str]:
    """What to write under each bar."""
    rows = table.select(list(keys)).to_pylist() if keys else []
    labels = [", ".join(cell_text(part) for part in row.values()) for row in rows] or [otherwise] * len(table)
    return labels[:BARS_MAX]
