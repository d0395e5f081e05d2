"""An answer as a chart: of a suitable or a requested kind, for a page or as a file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from lapwing.errors import Refused
from lapwing.interfaces.console.charts.frame import NARROW, WIDE, Canvas, Drawing, framed
from lapwing.interfaces.console.charts.heat_map import drawn_map
from lapwing.interfaces.console.charts.kinds import ChartKind, Drawable, drawable
from lapwing.interfaces.console.charts.level_rows import drawn_rows
from lapwing.interfaces.console.charts.upright import drawn_histogram, drawn_line

if TYPE_CHECKING:
    from lapwing.answers.answer import Answer

_NAME = re.compile(r"[a-z][a-z0-9-]{0,60}")


@dataclass(frozen=True, slots=True)
class Chart:
    """An answer drawn for a page, and the other kinds of chart that suit it."""

    kind: ChartKind
    kinds: tuple[ChartKind, ...]
    value: str
    values: tuple[str, ...]
    """The columns that can be drawn."""
    wide: str
    narrow: str
    """The chart for a phone; the style sheet shows one of the two."""

    @property
    def drawn(self) -> Markup:
        """Both charts, for a template; every text in them is escaped."""
        return Markup(self.wide + self.narrow)


def chart_of(answer: Answer, *, kind: ChartKind | None = None, value: str | None = None, name: str = "chart") -> Chart | None:
    """The chart of an answer; None if it has no column with error bars, or no row.

    ``name`` is the beginning of every id in it: two charts on a page need two names.
    """
    if not answer.intervals or not len(answer):
        return None
    shown = drawable(answer, value)
    chosen = _chosen(shown, kind)
    wide, narrow = (_svg(Canvas(width, f"{name}-{size}"), shown, chosen) for width, size in ((WIDE, "wide"), (NARROW, "narrow")))
    return Chart(chosen, shown.kinds, shown.column.name, tuple(answer.intervals), wide, narrow)


def picture_of(answer: Answer, *, kind: ChartKind | None = None, value: str | None = None, dark: bool = False) -> str:
    """The chart as a separate file, with its own colours; ``plot-column`` if there is nothing to draw."""
    if not len(answer):
        raise Refused("plot-column", "the answer has no rows to plot")
    shown = drawable(answer, value)
    chosen = _chosen(shown, kind)
    canvas = Canvas(WIDE, "chart")
    return framed(canvas, shown, chosen, _drawing(canvas, shown, chosen), alone=True, dark=dark)


def _chosen(shown: Drawable, kind: ChartKind | None) -> ChartKind:
    """The requested kind if it suits the answer, otherwise the one that suits it best."""
    return kind if kind is not None and kind in shown.kinds else shown.kinds[0]


def _svg(canvas: Canvas, shown: Drawable, kind: ChartKind) -> str:
    if _NAME.fullmatch(canvas.name) is None:
        raise ValueError("the name of a chart must be lower-case letters, digits and hyphens")
    return framed(canvas, shown, kind, _drawing(canvas, shown, kind), alone=False)


def _drawing(canvas: Canvas, shown: Drawable, kind: ChartKind) -> Drawing:
    match kind:
        case ChartKind.LINE:
            return drawn_line(canvas, shown)
        case ChartKind.HISTOGRAM:
            return drawn_histogram(canvas, shown)
        case ChartKind.HEAT_MAP:
            return drawn_map(canvas, shown)
        case ChartKind.BARS | ChartKind.POINTS:
            return drawn_rows(canvas, shown, points=kind is ChartKind.POINTS)
