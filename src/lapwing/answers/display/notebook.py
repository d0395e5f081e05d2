"""Notebook views of answers, budgets, explanations and data sets. All text is escaped, and colours come from the page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

ROWS_MAX = 200
"""Rows of an answer shown in a notebook; ``table`` and ``to_pandas`` have all of them."""
ACCENT = "#0087af"
"""Of middle lightness: it can be seen on light and on dark."""


def table_html(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right_aligned: Sequence[bool],
    marked: Sequence[Sequence[bool]],
    summary: str,
    below: Sequence[str],
) -> str:
    """An HTML table; colours come from the page, so it is readable on light and dark. Text is escaped: a key may hold any text.

    ``marked`` cells are faint. The summary is under the table, and the lines ``below`` under it in fainter type.
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
    # The error bar is close to its value and fainter. Space is reserved for a sign, so that digits are aligned.
    style = f"text-align:{side};padding:.15em .8em .15em {'.1em' if is_bar else '.8em'};white-space:pre"
    if text.endswith("  "):
        text = f"{text.rstrip()} \N{FIGURE SPACE}"
    if is_bar:
        style += ";font-size:90%;font-weight:normal"
        text = f"± {text}" if tag == "td" and text and not text.startswith("-") else text
    if is_bar or faint:
        style += f";opacity:{'.5' if faint else '.7'}"
    return f"<{tag} style='{style}'>{escape(text)}</{tag}>"


def pairs_html(pairs: Sequence[tuple[str, str]]) -> str:
    """Names with their texts, one per line."""
    name_style = "text-align:left;vertical-align:top;padding:.1em 1.2em .1em 0;white-space:nowrap;font-weight:bold"
    rows = "".join(
        f"<tr style='background:none'><th style='{name_style}'>{escape(name)}</th>"
        f"<td style='text-align:left;padding:.1em 0;max-width:48em'>{escape(text)}</td></tr>"
        for name, text in pairs
    )
    return f"<table style='border-collapse:collapse;margin:.3em 0'><tbody>{rows}</tbody></table>"


def gauge_html(share: float, label: str) -> str:
    """A bar that is filled by this share, and words beside it."""
    width = f"{100 * min(max(share, 0.0), 1.0):.2f}%"
    bar = (
        "<span style='display:inline-block;width:16em;height:.7em;border:1px solid currentColor;border-radius:.35em;overflow:hidden;"
        f"vertical-align:baseline'><span style='display:block;height:100%;width:{width};background:{ACCENT}'></span></span>"
    )
    return f"<div style='margin:.3em 0'>{bar} {escape(label)}</div>"


def cells_html(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A plain table of texts."""
    cell = "text-align:left;vertical-align:top;padding:.15em 1.2em .15em 0;max-width:36em"
    head = "".join(f"<th style='{cell}'>{escape(text)}</th>" for text in headers)
    body = "".join("<tr>" + "".join(f"<td style='{cell}'>{escape(text)}</td>" for text in row) + "</tr>" for row in rows[:ROWS_MAX])
    more = f"<div style='opacity:.75'>and {len(rows) - ROWS_MAX:,} more</div>" if len(rows) > ROWS_MAX else ""
    return (
        "<table style='border-collapse:collapse;margin:.3em 0'>"
        f"<thead style='border-bottom:1px solid currentColor'><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
    )
