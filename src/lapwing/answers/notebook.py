"""How an answer looks in a notebook: a table with error bars in small type, and a bar chart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from lapwing.answers.intervals import Interval
from lapwing.answers.mark_text import SIGNS
from lapwing.answers.number_format import cell_text
from lapwing.errors import Refused
from lapwing.statements import CellMark

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

BAR_COLOUR = "#8fbbd6"
"""Light enough that the lower half of an error bar can be seen on it."""
ERROR_COLOUR = "#222222"
MARKED_COLOUR = "#8a8a8a"
"""Of what is marked: hollow bars and their labels."""
BARS_MAX = 60
ROWS_MAX = 200
"""Rows of an answer shown in a notebook; ``table`` and ``to_pandas`` have all of them."""
LEVEL_LABELS_MAX = 6
"""Bars up to which their labels are set level."""


def table_html(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right_aligned: Sequence[bool],
    marked: Sequence[Sequence[bool]],
    summary: str,
    below: Sequence[str],
) -> str:
    """An HTML table; colours come from the page, so it reads on light and dark. Text is escaped: a key may be anybody's words.

    ``marked`` cells are faint. The summary stands under the table, and the lines ``below`` under it in fainter type.
    """
    sides = ["right" if right else "left" for right in right_aligned]
    is_bar = [header.startswith("± ") for header in headers]
    head = "".join(_cell("th", text, side, bar) for text, side, bar in zip(headers, sides, is_bar, strict=True))
    body = "".join(
        "<tr>" + "".join(_cell("td", *cell) for cell in zip(row, sides, is_bar, faint, strict=True)) + "</tr>"
        for row, faint in zip(rows[:ROWS_MAX], marked, strict=False)
    )
    more = [f"and {len(rows) - ROWS_MAX:,} rows more"] if len(rows) > ROWS_MAX else []
    fainter = "".join(f"<div style='opacity:.75;max-width:44em'>{escape(line)}</div>" for line in (*more, *below))
    return (
        "<div><table style='border-collapse:collapse;margin:.3em 0'>"
        f"<thead style='border-bottom:1px solid currentColor'><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<div>{escape(summary)}</div>{fainter}</div>"
    )


def _cell(tag: str, text: str, side: str, is_bar: bool, faint: bool = False) -> str:
    # The error bar stands close to its value and steps back a little. Room for a sign is as wide as a sign, so that digits line up.
    style = f"text-align:{side};padding:.15em .8em .15em {'.1em' if is_bar else '.8em'};white-space:pre"
    if text.endswith("  "):
        text = f"{text.rstrip()} \N{FIGURE SPACE}"
    if is_bar:
        style += ";font-size:90%;font-weight:normal"
        text = f"± {text}" if tag == "td" and text and not text.startswith("-") else text
    if is_bar or faint:
        style += f";opacity:{'.5' if faint else '.7'}"
    return f"<{tag} style='{style}'>{escape(text)}</{tag}>"


def plot_bars(
    table: pa.Table,
    intervals: Mapping[str, Sequence[Interval | None]],
    marks: Mapping[str, Sequence[CellMark | None]],
    *,
    value: str | None,
    title: str,
    ax: Axes | None,
) -> Axes:
    """Bars with error bars of one column, labelled by the columns that have none."""
    import matplotlib.pyplot as plt

    name = value if value is not None else next(iter(intervals), None)
    if name is None or name not in intervals:
        raise Refused("plot-column", "there is no column with error bars to plot", hint="name one with value=")
    keys, labels = _labels(table, {**intervals, **marks}, otherwise=name)
    heights = [math.nan if height is None else float(height) for height in table.column(name).to_pylist()[:BARS_MAX]]
    bars = intervals[name][:BARS_MAX]
    below = [0.0 if i is None else max(h - i.lo, 0.0) for h, i in zip(heights, bars, strict=True)]
    above = [0.0 if i is None else max(i.hi - h, 0.0) for h, i in zip(heights, bars, strict=True)]
    if ax is None:
        _, ax = plt.subplots(figsize=(max(4.5, 0.32 * len(labels) + 2), 4), layout="constrained")
    positions = range(len(labels))
    own = marks.get(name, [None] * len(table))[:BARS_MAX]
    doubtful = [mark is not None and mark is not CellMark.SCALED for mark in own]
    _draw(ax, [i for i in positions if not doubtful[i]], heights, below, above, hollow=False)
    if any(doubtful):
        _draw(ax, [i for i in positions if doubtful[i]], heights, below, above, hollow=True)
        _scale(ax, heights, below, above, doubtful)
        ax.set_xlim(-0.7, len(labels) - 0.3)
    ax.axhline(0, color=ERROR_COLOUR, linewidth=0.8)
    slanted = len(labels) > LEVEL_LABELS_MAX
    signed = [label if mark is None else f"{label} {SIGNS[mark]}" for label, mark in zip(labels, own, strict=True)]
    ax.set_xticks(list(positions), signed, rotation=45 if slanted else 0, ha="right" if slanted else "center", rotation_mode="anchor")
    for tick, doubt in zip(ax.get_xticklabels(), doubtful, strict=True):
        tick.set_color(MARKED_COLOUR if doubt else ERROR_COLOUR)
    ax.yaxis.set_major_formatter(lambda height, _: f"{height:,.10g}")
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_ylabel(name)
    legend = "   ".join(f"{sign} {mark.value.replace('_', ' ')}" for mark, sign in SIGNS.items() if mark in own)
    ax.set_xlabel("\n".join(line for line in (", ".join(keys), legend) if line))
    shown = f"first {BARS_MAX} of {len(table):,} groups; " if len(table) > BARS_MAX else ""
    ax.set_title(f"{shown}{title}", fontsize="small", loc="left")
    return ax


def _draw(ax: Axes, some: Sequence[int], heights: Sequence[float], below: Sequence[float], above: Sequence[float], *, hollow: bool) -> None:
    """Some of the bars, with their error bars."""
    tops, sides = [heights[i] for i in some], [[side[i] for i in some] for side in (below, above)]
    if hollow:
        ax.bar(some, tops, color="none", edgecolor=MARKED_COLOUR, linestyle="--", width=0.75)
    else:
        ax.bar(some, tops, color=BAR_COLOUR, width=0.75)
    ax.errorbar(some, tops, yerr=sides, fmt="none", ecolor=MARKED_COLOUR if hollow else ERROR_COLOUR, capsize=3, elinewidth=1.2)


def _scale(ax: Axes, heights: Sequence[float], below: Sequence[float], above: Sequence[float], doubtful: Sequence[bool]) -> None:
    """Fit the axis to what is not doubtful, where there is anything: noise has no part in it."""
    ends = [
        end
        for height, down, up, doubt in zip(heights, below, above, doubtful, strict=True)
        if not doubt and not math.isnan(height)
        for end in (height - down, height + up)
    ]
    if ends:
        low, high = min(0.0, *ends), max(0.0, *ends)
        room = 0.05 * (high - low)
        ax.set_ylim(low - (room if low < 0 else 0), high + room)


def _labels(table: pa.Table, intervals: Mapping[str, object], *, otherwise: str) -> tuple[list[str], list[str]]:
    """The columns that tell the bars apart, and what to write under each bar."""
    from pyarrow import types

    keys = [field.name for field in table.schema if field.name not in intervals and not types.is_floating(field.type)]
    rows = table.select(keys).to_pylist() if keys else []
    labels = [", ".join(cell_text(part) for part in row.values()) for row in rows] or [otherwise] * len(table)
    return keys, labels[:BARS_MAX]
