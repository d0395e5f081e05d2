"""Shares of a whole as bars: spending by analyst or by week. They are exact entries of the ledger and have no error bars."""

from __future__ import annotations

from collections.abc import Sequence

from lapwing.answers.display.number_format import share_text
from lapwing.interfaces.console.charts import svg
from lapwing.interfaces.console.charts.frame import NARROW, WIDE

_ROW = 28.0


def share_bars(shares: Sequence[tuple[str, float]], *, title: str, name: str) -> str:
    """A bar for each name, scaled to the longest; for both widths."""
    return "".join(_drawn(shares, title, width, f"{name}-{size}", size) for width, size in ((WIDE, "wide"), (NARROW, "narrow")))


def _drawn(shares: Sequence[tuple[str, float]], title: str, width: float, name: str, size: str) -> str:
    most = max((share for _, share in shares), default=0.0) or 1.0
    begin = min(max((svg.width_of(label) for label, _ in shares), default=0.0) + 14, 0.4 * width)
    end = width - 76
    parts = [
        svg.element("title", svg.words(title), id=f"{name}-title"),
        svg.element("desc", svg.words("; ".join(f"{label}: {share_text(share)}" for label, share in shares)), id=f"{name}-desc"),
    ]
    for row, (label, share) in enumerate(shares):
        middle = _ROW * row + _ROW / 2
        parts.append(svg.text(begin - 12, middle + 4.5, svg.fitted(label, begin - 12), class_="lw-text", anchor="end"))
        parts.append(
            svg.rect(begin, middle - 8, (end - begin) * share / most, 16, svg.hint(f"{label}: {share_text(share)}"), class_="lw-fill")
        )
        parts.append(svg.text(width - 2, middle + 4.5, share_text(share), class_="lw-value", anchor="end"))
    parts.append(svg.line(begin, 2, begin, _ROW * len(shares) - 2, class_="lw-axis"))
    return svg.element(
        "svg",
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {svg.number(width)} {svg.number(_ROW * max(len(shares), 1))}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        class_=f"lw-chart lw-chart-{size}",
    )
