"""Answers as pictures: SVG text with error bars, light and dark, for wide and narrow screens. Pure functions; nothing is fetched."""

from lapwing.interfaces.console.charts.drawing import Chart, chart_of, picture_of
from lapwing.interfaces.console.charts.kinds import ChartKind
from lapwing.interfaces.console.charts.palette import style_sheet

__all__ = ["Chart", "ChartKind", "chart_of", "picture_of", "style_sheet"]
