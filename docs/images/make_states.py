"""Draws the life of a charge, in light and dark, without any library.

python docs/images/make_states.py
"""

from __future__ import annotations

from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
WIDTH, HEIGHT = 860, 360
THEMES = {
    "light": {"ink": "#1f2933", "quiet": "#52606d", "box": "#f5f7fa", "good": "#0b6e4f", "bad": "#a61b1b", "open": "#8a5a00"},
    "dark": {"ink": "#e4e7eb", "quiet": "#b8c4d0", "box": "#1f2933", "good": "#5fd3a6", "bad": "#ff9b9b", "open": "#f5c451"},
}


def drawing(colours: dict[str, str]) -> str:
    """Four states, and what leads from one to another."""
    ink, quiet = colours["ink"], colours["quiet"]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" role="img">',
        "<title>The life of a charge</title>",
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
        f'<path d="M0 0L10 5L0 10z" fill="{ink}"/></marker></defs>',
    ]

    def box(x: int, y: int, name: str, below: str, edge: str) -> None:
        parts.append(f'<rect x="{x}" y="{y}" width="150" height="62" rx="10" fill="{colours["box"]}" stroke="{edge}" stroke-width="2"/>')
        text(x + 75, y + 27, name, ink, 17, anchor="middle", bold=True)
        text(x + 75, y + 47, below, quiet, 12, anchor="middle")

    def text(x: int, y: int, words: str, colour: str, size: int, *, anchor: str = "start", bold: bool = False) -> None:
        weight = ' font-weight="bold"' if bold else ""
        parts.append(f'<text x="{x}" y="{y}" fill="{colour}" font-size="{size}" text-anchor="{anchor}"{weight}>{escape(words)}</text>')

    def arrow(path: str) -> None:
        parts.append(f'<path d="{path}" fill="none" stroke="{ink}" stroke-width="1.6" marker-end="url(#tip)"/>')

    box(10, 60, "new key", "nothing charged", quiet)
    box(355, 60, "reserved", "spent, no answer yet", colours["open"])
    box(700, 60, "committed", "spent, one answer", colours["good"])
    box(10, 270, "refused", "nothing charged", quiet)
    box(355, 270, "forfeited", "spent, never answered", colours["bad"])
    arrow("M160 91H353")
    text(256, 80, "reserve", ink, 14, anchor="middle", bold=True)
    text(256, 110, "charge and entry on the disk,", quiet, 12, anchor="middle")
    text(256, 126, "head anchored; then a permit", quiet, 12, anchor="middle")
    arrow("M505 91H698")
    text(602, 80, "commit", ink, 14, anchor="middle", bold=True)
    text(602, 110, "the answer on the disk;", quiet, 12, anchor="middle")
    text(602, 126, "then it is sent", quiet, 12, anchor="middle")
    arrow("M85 122V268")
    text(97, 190, "a limit, a budget,", quiet, 12)
    text(97, 206, "closed, not admitted", quiet, 12)
    arrow("M430 122V268")
    text(442, 174, "forfeit", ink, 14, bold=True)
    text(442, 194, "fault (closes the data set),", quiet, 12)
    text(442, 210, "lost worker, disconnect", quiet, 12)
    arrow("M745 60C735 15 815 15 805 58")
    text(775, 16, "asked again: the same bytes, free", quiet, 12, anchor="end")
    arrow("M355 315C325 330 325 280 353 290")
    text(316, 308, "asked again:", quiet, 12, anchor="end")
    text(316, 324, "refused", quiet, 12, anchor="end")
    text(700, 290, "No arrow leads back.", ink, 13)
    text(700, 308, "Nothing is refunded.", ink, 13)
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    for theme, colours in THEMES.items():
        (HERE / f"charge-{theme}.svg").write_text(drawing(colours), encoding="utf-8")
