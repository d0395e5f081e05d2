"""The colours of charts, in light and dark, and the style sheet that assigns them to the classes of a drawing.

A test checks their contrast: 4.5 for text, 3 for shapes that show a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lapwing.answers.display.chart_lines import LINE_COLOURS

LIGHT: Mapping[str, str] = {
    "paper": "#ffffff",
    "ink": "#17212b",
    "quiet": "#56636f",
    "grid": "#e4e9ee",
    "fill": "#4289b5",
    "band": "#cfe3f0",
    "marked": "#727e89",
}
DARK: Mapping[str, str] = {
    "paper": "#12181f",
    "ink": "#edf2f6",
    "quiet": "#a7b4c0",
    "grid": "#2a3540",
    "fill": "#3f7fa8",
    "band": "#254559",
    "marked": "#8d9aa6",
}
HEAT_LIGHT = ("#eaf3f9", "#cfe3f0", "#aaccdf", "#7fb1cc", "#5598c0", "#2a6a94", "#164a6d")
HEAT_DARK = ("#1b2a36", "#22404f", "#2b5a72", "#387795", "#5497b8", "#83bcd8", "#b9def2")
"""From the smallest to the largest; each theme begins close to its background."""
LINES_DARK = ("#7c72b5", "#db7815", "#369561", "#ad3ef0", "#feabce", "#e8ed8d")
"""Colours of several lines, on a dark background."""
INK_ON_DARK, INK_ON_LIGHT = "#ffffff", "#17212b"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def luminance(colour: str) -> float:
    """Relative luminance, as WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, from 1 to 21."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def ink_on(colour: str) -> str:
    """Black or white, whichever reads better on this colour."""
    return max((INK_ON_DARK, INK_ON_LIGHT), key=lambda ink: contrast(ink, colour))


def style_sheet() -> str:
    """The style sheet for pages: light, or dark if the reader's system or the page (``data-theme``) asks for it, in one of two widths."""
    dark_rules = _rules(DARK, HEAT_DARK, LINES_DARK)
    return "\n".join(
        [
            _SHAPES,
            *_scoped(_rules(LIGHT, HEAT_LIGHT, LINE_COLOURS), ""),
            "@media (prefers-color-scheme: dark) {",
            *(f"  {rule}" for rule in _scoped(dark_rules, ':root:not([data-theme="light"]) ')),
            "}",
            *_scoped(dark_rules, ':root[data-theme="dark"] '),
            ".lw-chart text { font-family: inherit; }",
            ".lw-chart { display: block; width: 100%; height: auto; }",
            ".lw-chart-wide { max-width: 56rem; }",
            ".lw-chart-narrow { display: none; }",
            "@media (max-width: 40rem) {",
            "  .lw-chart-wide { display: none; }",
            "  .lw-chart-narrow { display: block; max-width: 24rem; }",
            "}",
            "",
        ]
    )


def own_style(drawn: str, *, dark: bool) -> str:
    """The style of a separate drawing, in one theme and without variables, which not all SVG programs support. It has only the rules that
    ``drawn`` needs."""
    used = {name for classes in re.findall(r'class="([^"]*)"', drawn) for name in classes.split()}
    rules = [*_SHAPES.splitlines(), *_scoped(_rules(DARK, HEAT_DARK, LINES_DARK) if dark else _rules(LIGHT, HEAT_LIGHT, LINE_COLOURS), "")]
    return "\n".join(rule for rule in rules if ".lw-chart text" in rule or used & set(re.findall(r"\.([\w-]+)", rule)) - {"lw-chart"})


def _scoped(rules: Mapping[str, str], scope: str) -> list[str]:
    return [f"{', '.join(f'{scope}{one}' for one in selector.split(', '))} {{ {declaration} }}" for selector, declaration in rules.items()]


_SHAPES = f""".lw-chart text {{ font-family: {FONT}; font-size: 13px; }}
.lw-chart .lw-small {{ font-size: 12px; }}
.lw-chart .lw-head {{ font-size: 14px; font-weight: 600; }}
.lw-chart .lw-value {{ font-variant-numeric: tabular-nums; }}
.lw-chart .lw-hollow {{ fill: none; stroke-dasharray: 4 3; stroke-width: 1.2; }}
.lw-chart .lw-whisker {{ stroke-width: 1.5; fill: none; }}
.lw-chart .lw-whisker-marked {{ stroke-width: 1.2; fill: none; }}
.lw-chart .lw-grid {{ stroke-width: 1; }}
.lw-chart .lw-axis {{ stroke-width: 1; }}
.lw-chart .lw-curve {{ fill: none; stroke-width: 2; stroke-linejoin: round; }}
.lw-chart .lw-doubt {{ fill: none; stroke-width: 1.2; stroke-dasharray: 3 3; stroke-linejoin: round; }}
.lw-chart .lw-thin {{ stroke-width: 1.1; stroke-dasharray: none; }}
.lw-chart .lw-doubt.lw-thin {{ stroke-opacity: 0.55; }}"""


def _rules(colours: Mapping[str, str], heat: tuple[str, ...], lines: tuple[str, ...]) -> dict[str, str]:
    rules = {
        ".lw-paper": f"fill: {colours['paper']};",
        ".lw-text, .lw-value": f"fill: {colours['ink']};",
        ".lw-quiet": f"fill: {colours['quiet']};",
        ".lw-grid": f"stroke: {colours['grid']};",
        ".lw-axis": f"stroke: {colours['quiet']};",
        ".lw-fill": f"fill: {colours['fill']};",
        ".lw-band": f"fill: {colours['band']};",
        ".lw-curve": f"stroke: {colours['fill']};",
        ".lw-dot": f"fill: {colours['fill']}; stroke: {colours['paper']};",
        ".lw-whisker": f"stroke: {colours['ink']};",
        ".lw-hollow, .lw-whisker-marked, .lw-hatch": f"stroke: {colours['marked']};",
        ".lw-doubt": f"stroke: {colours['marked']};",
        ".lw-open": f"fill: {colours['paper']}; stroke: {colours['marked']};",
    }
    for step, colour in enumerate(heat):
        ink = ink_on(colour)
        rules[f".lw-heat-{step}"] = f"fill: {colour};"
        rules[f".lw-on-heat-{step}"] = f"fill: {ink};"
        rules[f".lw-bar-on-heat-{step}"] = f"stroke: {ink};"
    for number, colour in enumerate(lines):
        rules[f".lw-line-{number}"] = f"stroke: {colour};"
        rules[f".lw-spot-{number}"] = f"fill: {colour};"
        rules[f".lw-area-{number}"] = f"fill: {colour}; fill-opacity: 0.14;"
    return {f".lw-chart {selector.replace(', ', ', .lw-chart ')}": declaration for selector, declaration in rules.items()}
