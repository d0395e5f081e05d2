"""A small picture for each term, with the same classes as charts, so that it follows the page's theme."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from lapwing.interfaces.console.charts import svg
from lapwing.interfaces.console.charts.palette import own_style
from lapwing.interfaces.console.words.terms import TERMS, Term

WIDTH, HEIGHT = 200.0, 112.0
_FLOOR = 92.0


def picture(term: Term, *, alone: bool = False, dark: bool = False, name: str = "word") -> str:
    """The picture of a term. With ``alone`` it has its own colours, but a transparent background.

    ``name`` begins the id of its title: a page that shows it twice needs two names.
    """
    title, shapes = f"{name}-{term.key}", _PICTURES[term.key]()
    parts = [
        svg.element("title", svg.words(term.shows), id=title),
        *([svg.element("style", own_style("".join(shapes), dark=dark))] if alone else []),
        *shapes,
    ]
    return svg.element(
        "svg",
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {svg.number(WIDTH)} {svg.number(HEIGHT)}",
        width=WIDTH if alone else None,
        height=HEIGHT if alone else None,
        role="img",
        aria_labelledby=title,
        class_="lw-chart lw-word",
    )


# -- shapes ---------------------------------------------------------------------------------------------------------------------------


def _label(x: float, y: float, said: str, *, quiet: bool = True, anchor: str = "middle") -> str:
    return svg.text(x, y, said, class_="lw-quiet lw-small" if quiet else "lw-text", anchor=anchor)


def _curve(points: Sequence[tuple[float, float]], *, closed: bool, class_: str) -> str:
    way = "M" + "L".join(f"{svg.number(x)} {svg.number(y)}" for x, y in points) + ("Z" if closed else "")
    return svg.element("path", d=way, class_=class_)


def _hill(middle: float, spread: float, height: float, *, begin: float, end: float, floor: float = _FLOOR) -> list[tuple[float, float]]:
    steps = 36
    places = [begin + (end - begin) * at / steps for at in range(steps + 1)]
    return [(x, floor - height * math.exp(-(((x - middle) / spread) ** 2))) for x in places]


def _floor(begin: float = 14, end: float = WIDTH - 14, at: float = _FLOOR) -> str:
    return svg.line(begin, at, end, at, class_="lw-axis")


def _bar(x: float, top: float, *, width: float = 20, hollow: bool = False, floor: float = _FLOOR) -> str:
    return svg.rect(x, top, width, floor - top, class_="lw-hollow" if hollow else "lw-fill")


def _whisker(x: float, top: float, bottom: float) -> str:
    return svg.element("path", d=f"M{x} {top}V{bottom}M{x - 5} {top}H{x + 5}M{x - 5} {bottom}H{x + 5}", class_="lw-whisker")


def _person(x: float, y: float, *, hollow: bool = False) -> list[str]:
    look = "lw-hollow" if hollow else "lw-fill"
    body = f"M{x - 13} {y + 34}C{x - 13} {y + 14} {x + 13} {y + 14} {x + 13} {y + 34}Z"
    return [svg.element("circle", cx=x, cy=y, r=8, class_=look), svg.element("path", d=body, class_=look)]


def _arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    turn = math.atan2(y2 - y1, x2 - x1)
    tips = [(x2 - 7 * math.cos(turn + side), y2 - 7 * math.sin(turn + side)) for side in (0.45, -0.45)]
    ends = "".join(f"M{svg.number(x2)} {svg.number(y2)}L{svg.number(x)} {svg.number(y)}" for x, y in tips)
    way = f"M{svg.number(x1)} {svg.number(y1)}L{svg.number(x2)} {svg.number(y2)}{ends}"
    return svg.element("path", d=way, class_="lw-whisker")


def _table(x: float, y: float, *, rows: int = 4, width: float = 46, hollow: int | None = None, marked: Sequence[int] = ()) -> list[str]:
    parts = []
    for row in range(rows):
        look = "lw-hollow" if row == hollow else "lw-fill" if row in marked else "lw-band"
        parts.append(svg.rect(x, y + 14 * row, width, 11, class_=look))
    return parts


def _gauge(x: float, y: float, width: float, share: float, *, height: float = 16) -> list[str]:
    return [svg.rect(x, y, width, height, class_="lw-band"), svg.rect(x, y, width * share, height, class_="lw-fill")]


def _coin(x: float, y: float) -> str:
    return svg.element("circle", cx=x, cy=y, r=9, class_="lw-fill")


def _tick(x: float, y: float) -> str:
    return svg.element("path", d=f"M{x - 7} {y}L{x - 2} {y + 6}L{x + 8} {y - 7}", class_="lw-whisker")


def _sheet(x: float, y: float, *, width: float = 54, height: float = 68) -> str:
    return svg.element("rect", x=x, y=y, width=width, height=height, class_="lw-whisker", rx=3)


# -- pictures -------------------------------------------------------------------------------------------------------------------------


def _epsilon() -> list[str]:
    parts = []
    for middle, apart, said in ((52.0, 5.0, "epsilon 0.1"), (148.0, 24.0, "epsilon 3")):
        begin, end = middle - 44, middle + 44
        parts.append(_curve(_hill(middle - apart / 2, 15, 58, begin=begin, end=end, floor=86), closed=True, class_="lw-band"))
        parts.append(_curve(_hill(middle - apart / 2, 15, 58, begin=begin, end=end, floor=86), closed=False, class_="lw-curve"))
        parts.append(_curve(_hill(middle + apart / 2, 15, 58, begin=begin, end=end, floor=86), closed=False, class_="lw-whisker"))
        parts += [_floor(begin, end, 86), _label(middle, 104, said)]
    return parts


def _delta() -> list[str]:
    hill, tail = _hill(88, 38, 66, begin=12, end=188), _hill(88, 38, 66, begin=152, end=188)
    tail = [(x, min(y, 86.0)) for x, y in tail]
    return [
        _curve(hill, closed=True, class_="lw-band"),
        _curve([(152, _FLOOR), *tail, (188, _FLOOR)], closed=True, class_="lw-fill"),
        _floor(),
        svg.line(152, 34, 152, _FLOOR, class_="lw-whisker-marked"),
        _label(170, 76, "delta"),
    ]


def _rho() -> list[str]:
    return [
        svg.rect(24, 26, 58, 16, class_="lw-fill"),
        svg.rect(84, 26, 88, 16, class_="lw-band"),
        _label(53, 18, "first"),
        _label(128, 18, "second"),
        svg.rect(24, 62, 148, 16, class_="lw-fill"),
        _label(98, 96, "both together"),
    ]


def _unit() -> list[str]:
    ways = [_arrow(54, 56, 98, y) for y in (19.5, 59.5, 87.5)]
    return [*_person(34, 42), *_table(104, 14, rows=2, marked=(0,), width=62), *_table(104, 54, rows=3, marked=(0, 2), width=40), *ways]


def _neighbours() -> list[str]:
    return [
        *_table(24, 22, width=62, marked=(2,)),
        *_table(114, 22, width=62, hollow=2),
        _label(55, 100, "with"),
        _label(145, 100, "without"),
    ]


def _sensitivity() -> list[str]:
    return [
        _bar(40, 30, width=38),
        _bar(100, 46, width=38),
        _floor(),
        svg.line(78, 30, 150, 30, class_="lw-grid"),
        svg.line(138, 46, 150, 46, class_="lw-grid"),
        svg.element("path", d="M146 30H154V46H146", class_="lw-whisker"),
        _label(59, 107, "with"),
        _label(119, 107, "without"),
    ]


def _clipping() -> list[str]:
    parts = []
    for x, top in ((24.0, 66.0), (58.0, 20.0), (92.0, 32.0), (126.0, 54.0), (160.0, 72.0)):
        parts.append(_bar(x, max(top, 44), width=20))
        if top < 44:
            parts.append(svg.rect(x, top, 20, 44 - top, class_="lw-hollow"))
    return [*parts, _floor(), svg.line(14, 44, 186, 44, class_="lw-whisker"), _label(186, 38, "bound", anchor="end")]


def _noise() -> list[str]:
    hill = _hill(92, 30, 56, begin=20, end=180)
    return [
        _curve(hill, closed=True, class_="lw-band"),
        _floor(),
        svg.line(92, 32, 92, _FLOOR, class_="lw-axis"),
        svg.element("circle", cx=118, cy=_FLOOR, r=6, class_="lw-dot"),
        _label(92, 26, "in the data"),
        _label(126, 108, "answer"),
    ]


def _mechanism() -> list[str]:
    return [
        *_table(14, 30, rows=4, width=42),
        _arrow(62, 56, 82, 56),
        svg.element("rect", x=88, y=32, width=48, height=48, class_="lw-whisker", rx=8),
        *(svg.element("circle", cx=x, cy=y, r=3.5, class_="lw-fill") for x, y in ((101, 45), (123, 45), (112, 56), (101, 67), (123, 67))),
        _arrow(142, 56, 160, 56),
        _label(180, 61, "409", quiet=False),
    ]


def _error_bar() -> list[str]:
    return [
        svg.element("path", d="M30 56H170M30 49V63M170 49V63", class_="lw-whisker"),
        svg.element("circle", cx=100, cy=56, r=6, class_="lw-dot"),
        svg.line(128, 42, 128, 70, class_="lw-axis"),
        _label(100, 40, "answer"),
        _label(128, 86, "in the data"),
    ]


def _mostly_noise() -> list[str]:
    bars = [_bar(34, 30, width=26, floor=84), _bar(84, 48, width=26, floor=84), _bar(134, 74, width=26, hollow=True, floor=84)]
    return [*bars, _floor(at=84), _whisker(47, 24, 36), _whisker(97, 42, 54), _whisker(147, 56, 92)]


def _hidden_groups() -> list[str]:
    tops = ((22.0, 22.0), (52.0, 36.0), (82.0, 68.0), (112.0, 76.0), (142.0, 82.0))
    bars = [_bar(x, top, width=18, hollow=top > 56) for x, top in tops]
    return [*bars, _floor(), svg.line(14, 56, 186, 56, class_="lw-whisker"), _label(186, 50, "enough people", anchor="end")]


def _budget() -> list[str]:
    return [*_gauge(20, 44, 160, 0.4, height=22), _label(52, 86, "spent"), _label(132, 86, "left")]


def _ceiling() -> list[str]:
    return [
        svg.rect(16, 34, 168, 36, class_="lw-hollow"),
        *_gauge(22, 41, 100, 0.55, height=22),
        _label(72, 88, "budget"),
        _label(184, 26, "ceiling", anchor="end"),
    ]


def _share() -> list[str]:
    return [
        *_person(60, 20),
        *_person(130, 20),
        svg.rect(20, 74, 76, 18, class_="lw-fill"),
        svg.rect(99, 74, 62, 18, class_="lw-band"),
        svg.rect(164, 74, 16, 18, class_="lw-hollow"),
    ]


def _price() -> list[str]:
    return [
        svg.element("path", d="M22 56L44 34H98V78H44Z", class_="lw-whisker"),
        svg.element("circle", cx=42, cy=56, r=4, class_="lw-fill"),
        _label(72, 61, "3.1%", quiet=False),
        *_table(128, 30, rows=4, width=48),
        svg.element("rect", x=122, y=24, width=60, height=64, class_="lw-whisker", rx=3),
    ]


def _charge() -> list[str]:
    return [
        *_gauge(16, 48, 62, 0.6),
        _arrow(86, 56, 122, 56),
        _coin(104, 36),
        _sheet(130, 20, height=72),
        *(svg.line(138, y, 176, y, class_="lw-axis") for y in (36, 50, 64)),
    ]


def _replay() -> list[str]:
    return [
        _label(38, 42, "COUNT(*)"),
        _label(38, 82, "COUNT(*)"),
        _arrow(72, 38, 118, 54),
        _arrow(72, 78, 118, 62),
        svg.element("rect", x=124, y=40, width=56, height=36, class_="lw-whisker", rx=6),
        _label(152, 63, "409", quiet=False),
    ]


def _release() -> list[str]:
    return [
        _coin(26, 56),
        _arrow(42, 56, 64, 56),
        *_table(72, 30, rows=4, width=44),
        *(_arrow(124, 56, 176, y) for y in (22, 45, 67, 90)),
    ]


def _ledger() -> list[str]:
    parts = []
    for at in range(3):
        x = 14.0 + 62 * at
        parts.append(svg.element("rect", x=x, y=34, width=46, height=44, class_="lw-whisker", rx=4))
        parts.append(svg.rect(x + 8, 44, 30, 7, class_="lw-band"))
        parts.append(svg.rect(x + 8, 58, 22, 7, class_="lw-fill"))
    return [*parts, _arrow(76, 56, 62, 56), _arrow(138, 56, 124, 56)]


def _receipt() -> list[str]:
    slip = "M66 16H134V92L123 84L112 92L100 84L88 92L77 84L66 92Z"
    return [
        svg.element("path", d=slip, class_="lw-whisker"),
        *(svg.line(76, y, 124, y, class_="lw-axis") for y in (32, 44)),
        svg.element("circle", cx=114, cy=64, r=10, class_="lw-band"),
        _tick(113, 64),
    ]


def _incident() -> list[str]:
    return [
        svg.element("path", d="M58 30L90 84H26Z", class_="lw-whisker"),
        svg.line(58, 46, 58, 66, class_="lw-whisker"),
        svg.element("circle", cx=58, cy=75, r=2.5, class_="lw-fill"),
        svg.element("rect", x=124, y=20, width=48, height=74, class_="lw-whisker", rx=2),
        svg.rect(129, 25, 38, 69, class_="lw-band"),
        svg.element("circle", cx=160, cy=60, r=3, class_="lw-fill"),
    ]


def _approval() -> list[str]:
    return [*_person(42, 40), *_person(158, 40), svg.element("circle", cx=100, cy=56, r=22, class_="lw-band"), _tick(99, 57)]


def _catalogue() -> list[str]:
    return [
        _sheet(28, 20, width=66, height=74),
        *(svg.rect(38, y, 46, 8, class_="lw-fill") for y in (34, 53, 72)),
        *_table(122, 30, rows=4, width=50),
        svg.element("rect", x=116, y=24, width=62, height=64, class_="lw-whisker", rx=3),
    ]


def _declared_values() -> list[str]:
    return [
        svg.line(20, 62, 180, 62, class_="lw-grid"),
        svg.line(44, 62, 132, 62, class_="lw-curve"),
        svg.element("path", d="M44 52V72M132 52V72", class_="lw-whisker"),
        svg.element("circle", cx=76, cy=62, r=5, class_="lw-dot"),
        svg.element("circle", cx=104, cy=62, r=5, class_="lw-dot"),
        svg.element("circle", cx=170, cy=62, r=5, class_="lw-hollow"),
        _arrow(168, 48, 138, 48),
        _label(44, 90, "0"),
        _label(132, 90, "120"),
    ]


def _public_table() -> list[str]:
    return [
        svg.element("path", d="M66 34C82 12 118 12 134 34C118 56 82 56 66 34Z", class_="lw-whisker"),
        svg.element("circle", cx=100, cy=34, r=8, class_="lw-fill"),
        *_table(62, 62, rows=3, width=76),
    ]


def _preparation() -> list[str]:
    return [
        *_table(14, 30, rows=4, width=44, marked=(1,)),
        _arrow(64, 56, 84, 56),
        svg.element("rect", x=90, y=24, width=14, height=64, class_="lw-whisker", rx=2),
        _arrow(110, 56, 130, 56),
        *_table(138, 37, rows=3, width=44),
        svg.rect(138, 92, 44, 11, class_="lw-hollow"),
    ]


def _version() -> list[str]:
    parts = []
    for at in range(3):
        x, y = 26.0 + 12 * at, 40.0 - 12 * at
        parts += [svg.rect(x, y, 54, 56, class_="lw-paper"), svg.element("rect", x=x, y=y, width=54, height=56, class_="lw-whisker", rx=3)]
    return [*parts, _label(77, 48, "3", quiet=False), *_gauge(124, 48, 58, 0.45)]


def _public_moment() -> list[str]:
    marks = [
        svg.line(100 + 30 * math.sin(turn), 56 - 30 * math.cos(turn), 100 + 35 * math.sin(turn), 56 - 35 * math.cos(turn), class_="lw-axis")
        for turn in (math.pi * at / 6 for at in range(12))
    ]
    return [
        svg.element("circle", cx=100, cy=56, r=40, class_="lw-whisker"),
        *marks,
        svg.line(100, 56, 100, 28, class_="lw-curve"),
        svg.line(100, 56, 120, 56, class_="lw-whisker"),
        svg.element("circle", cx=100, cy=20, r=4, class_="lw-fill"),
    ]


_PICTURES: dict[str, Callable[[], list[str]]] = {
    "approval": _approval,
    "budget": _budget,
    "catalogue": _catalogue,
    "ceiling": _ceiling,
    "charge": _charge,
    "clipping": _clipping,
    "declared-values": _declared_values,
    "delta": _delta,
    "epsilon": _epsilon,
    "error-bar": _error_bar,
    "hidden-groups": _hidden_groups,
    "incident": _incident,
    "ledger": _ledger,
    "mechanism": _mechanism,
    "mostly-noise": _mostly_noise,
    "neighbours": _neighbours,
    "noise": _noise,
    "preparation": _preparation,
    "price": _price,
    "public-moment": _public_moment,
    "public-table": _public_table,
    "receipt": _receipt,
    "release": _release,
    "replay": _replay,
    "rho": _rho,
    "sensitivity": _sensitivity,
    "share": _share,
    "unit": _unit,
    "version": _version,
}
assert _PICTURES.keys() == {term.key for term in TERMS}
