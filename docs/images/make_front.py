"""Draws what Lapwing is, for the first page of the documentation: light and dark, wide and narrow.

python docs/images/make_front.py
"""

from __future__ import annotations

from pathlib import Path

from lapwing.interfaces.console.charts import svg
from lapwing.interfaces.console.charts.palette import own_style

HERE = Path(__file__).resolve().parent
TITLE = (
    "Somebody asks in SQL; Lapwing says the price, adds noise and writes the charge into a ledger; the rows stay in their own engine; the"
    " answer has error bars"
)
PANEL = 224.0
TALL = 232.0
BARS = (("midtown", 132.0), ("harbour", 103.0), ("southport", 90.0))
SIZES = {"wide": (784.0, 268.0), "narrow": (344.0, 812.0)}


def pictures() -> dict[str, str]:
    """Each picture by the name of its file."""
    return {f"front-{size}-{theme}.svg": picture(size, dark=theme == "dark") for size in SIZES for theme in ("light", "dark")}


def picture(size: str, *, dark: bool) -> str:
    """The three panels, beside each other or one below the other."""
    width, height = SIZES[size]
    if size == "wide":
        places = [(4.0, 28.0), (280.0, 28.0), (556.0, 28.0)]
        arrows = [_arrow(228, 90, 280, 90), _arrow(280, 206, 228, 206), _arrow(504, 110, 556, 110), _arrow(556, 186, 504, 186)]
    else:
        places = [(60.0, 4.0), (60.0, 290.0), (60.0, 576.0)]
        arrows = [_arrow(120, 236, 120, 290), _arrow(224, 290, 224, 236), _arrow(120, 522, 120, 576), _arrow(224, 576, 224, 522)]
    shapes = [*_asked(*places[0]), *_curator(*places[1]), *_rows(*places[2]), *arrows]
    return (
        svg.element(
            "svg",
            svg.element("title", svg.words(TITLE)),
            svg.element("style", own_style("".join(shapes), dark=dark)),
            *shapes,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {svg.number(width)} {svg.number(height)}",
            width=width,
            height=height,
            role="img",
            class_="lw-chart",
        )
        + "\n"
    )


def _panel(x: float, y: float, heading: str) -> list[str]:
    box = svg.element("rect", x=x, y=y, width=PANEL, height=TALL, rx=10, class_="lw-whisker")
    return [box, svg.text(x + 16, y + 28, heading, class_="lw-text lw-head")]


def _asked(x: float, y: float) -> list[str]:
    parts = _panel(x, y, "Somebody asks")
    for at, line in enumerate(("SELECT region, COUNT(*)", "FROM patients", "GROUP BY region")):
        parts.append(svg.text(x + 16, y + 54 + 18 * at, line, class_="lw-quiet lw-small"))
    for at, (name, long) in enumerate(BARS):
        middle = y + 130 + 30 * at
        half = 9.0
        parts.append(svg.text(x + 16, middle + 4, name, class_="lw-text lw-small"))
        parts.append(svg.rect(x + 82, middle - 8, long * 0.85, 16, class_="lw-fill"))
        end = x + 82 + long * 0.85
        way = f"M{end - half} {middle}H{end + half}M{end - half} {middle - 4}V{middle + 4}M{end + half} {middle - 4}V{middle + 4}"
        parts.append(svg.element("path", d=way, class_="lw-whisker"))
    parts.append(svg.text(x + 16, y + TALL - 12, "and gets answers with error bars", class_="lw-quiet lw-small"))
    return parts


def _curator(x: float, y: float) -> list[str]:
    parts = _panel(x, y, "Lapwing")
    said = (
        ("Price", "3.1% of the budget, known first"),
        ("Noise", "±27, which hides any one person"),
        ("Ledger", "charged before a row is read"),
    )
    for at, (name, words) in enumerate(said):
        top = y + 58 + 44 * at
        parts.append(svg.text(x + 16, top, name, class_="lw-text"))
        parts.append(svg.text(x + 16, top + 17, words, class_="lw-quiet lw-small"))
    parts.append(svg.rect(x + 16, y + 190, PANEL - 32, 12, class_="lw-band"))
    parts.append(svg.rect(x + 16, y + 190, (PANEL - 32) * 0.42, 12, class_="lw-fill"))
    parts.append(svg.text(x + 16, y + TALL - 12, "what is spent is spent for ever", class_="lw-quiet lw-small"))
    return parts


def _rows(x: float, y: float) -> list[str]:
    parts = _panel(x, y, "The rows stay at home")
    for row in range(6):
        for column, width in enumerate((44.0, 70.0, 58.0)):
            left = x + 16 + (0, 50, 126)[column]
            look = "lw-fill" if row == 3 else "lw-band"
            parts.append(svg.rect(left, y + 50 + 21 * row, width, 15, class_=look))
    parts.append(svg.text(x + 16, y + 194, "Files, PostgreSQL or Spark", class_="lw-text lw-small"))
    parts.append(svg.text(x + 16, y + TALL - 12, "one person's rows hardly matter", class_="lw-quiet lw-small"))
    return parts


def _arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    across = y1 == y2
    forward = 1 if (x2 > x1 if across else y2 > y1) else -1
    begin, end = (x1 + 8 * forward, x2 - 8 * forward) if across else (y1 + 8 * forward, y2 - 8 * forward)
    if across:
        way = f"M{begin} {y1}H{end}M{end - 7 * forward} {y1 - 5}L{end} {y1}L{end - 7 * forward} {y1 + 5}"
    else:
        way = f"M{x1} {begin}V{end}M{x1 - 5} {end - 7 * forward}L{x1} {end}L{x1 + 5} {end - 7 * forward}"
    return svg.element("path", d=way, class_="lw-whisker")


if __name__ == "__main__":
    for name, drawn in pictures().items():
        (HERE / name).write_text(drawn, encoding="utf-8")
