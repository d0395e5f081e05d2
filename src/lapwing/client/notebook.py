"""How an answer looks in a notebook: a table with error bars in small type, and a bar chart."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from lapwing.client.answer import Answer
from lapwing.errors import Refused

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAR_COLOUR = "#2a6f97"
ERROR_COLOUR = "#333333"
BARS_MAX = 60


def answer_html(answer: Answer) -> str:
    """An HTML table; colours come from the page, so it reads on light and dark."""
    headers, rows = answer.cells()
    head = "".join(f"<th style='text-align:right'>{escape(text)}</th>" for text in headers)
    body = "".join(
        "<tr>"
        + "".join(
            f"<td style='text-align:right;{'opacity:.65;font-size:90%' if header.startswith('± ') else ''}'>{escape(text)}</td>"
            for header, text in zip(headers, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    notes = "".join(f"<div style='opacity:.75'>note: {escape(note)}</div>" for note in answer.notes)
    return f"<div><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><div>{escape(answer.summary())}</div>{notes}</div>"


def plot_answer(answer: Answer, *, value: str | None, ax: Axes | None) -> Axes:
    """Bars with error bars of one column, labelled by the key columns."""
    import matplotlib.pyplot as plt

    name = value if value is not None else next(iter(answer.intervals), None)
    if name is None or name not in answer.intervals:
        raise Refused("plot-column", "there is no column with error bars to plot", hint="name one with value=")
    labels_of = [column for column in answer.table.column_names if column not in answer.intervals]
    rows = answer.table.to_pylist()[:BARS_MAX]
    labels = [", ".join(str(row[column]) for column in labels_of) or name for row in rows]
    heights = [float(row[name] or 0) for row in rows]
    found = answer.intervals[name][:BARS_MAX]
    below = [0.0 if i is None else max(h - i.lo, 0.0) for h, i in zip(heights, found, strict=True)]
    above = [0.0 if i is None else max(i.hi - h, 0.0) for h, i in zip(heights, found, strict=True)]
    if ax is None:
        _, ax = plt.subplots(figsize=(max(4.0, 0.35 * len(rows) + 2), 4), layout="constrained")
    positions = range(len(rows))
    ax.bar(positions, heights, color=BAR_COLOUR)
    ax.errorbar(positions, heights, yerr=[below, above], fmt="none", ecolor=ERROR_COLOUR, capsize=3, elinewidth=1)
    ax.set_xticks(list(positions), labels, rotation=45 if len(rows) > 6 else 0, ha="right" if len(rows) > 6 else "center")
    ax.set_ylabel(name)
    ax.set_xlabel(", ".join(labels_of))
    ax.set_title(f"error bars: {answer.confidence:.0%}; {answer.summary()}", fontsize="small")
    return ax
