"""A page about a release: its measures, its cost, and a chart of each column with error bars. One file, no network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from html import escape

import numpy as np

from lapwing.answers.display.number_format import figure
from lapwing.kernel.domains import DateDomain, Domain, TimestampDomain
from lapwing.kernel.expressions import Value
from lapwing.releases.marginals.axes import Axis
from lapwing.releases.marginals.synopsis import MeasuredMarginal, Synopsis
from lapwing.releases.released import Release
from lapwing.releases.released_section import ReleasedSection
from lapwing.releases.serving.tree_counts import TreeCounts
from lapwing.releases.tree.axes import leaf_width

SURE = 1.959964
BARS_MAX = 60
"""A column with more bins is drawn by the sums of neighbouring ones."""
WIDTH, HEIGHT, LEFT, BOTTOM = 640, 180, 64, 34
TABLES_MAX = 200

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --quiet: #5b6875; --bar: #2b7a9b; --line: #b4441f; --edge: #d5dce2; --back: #ffffff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6ebef; --quiet: #9aa7b3; --bar: #58a9c9; --line: #f0936c; --edge: #37434e; --back: #14191e; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back); }
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; } .quiet { color: var(--quiet); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--edge); } td.number, th.number { text-align: right; }
svg { width: 100%; height: auto; } svg text { fill: var(--quiet); font: 11px system-ui, sans-serif; }
rect.bar { fill: var(--bar); } line.error { stroke: var(--line); stroke-width: 1.5; } line.axis { stroke: var(--edge); }
"""


def release_html(release: Release) -> str:
    """The page."""
    everything = min((section.synopsis.linear((), np.ones(())) for section in release.sections), key=lambda each: each.variance)
    name, request, cost = escape(release.name), release.terms.request, release.terms.cost
    rho = "" if cost.rho is None else f" (rho {float(cost.rho):.3g})"
    facts = [
        ("table", request.table),
        ("columns", ", ".join(release.columns)),
        ("measured", f"{len(release.terms.tables):,} tables of {release.cells:,} cells"),
        ("cost", f"epsilon {cost.epsilon:.3g}{rho}, once"),
        ("protected", f"one {release.terms.budget.unit}, {release.terms.facts.neighbours.value} neighbours"),
        ("rows, by the release", _with_bar(everything.value, SURE * everything.deviation)),
        ("receipt", "signed" if release.receipt is not None else "none: no keys are declared"),
    ]
    listed = "".join(f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>" for key, value in facts)
    notes = "".join(f"<p>Note: {escape(note)}.</p>" for note in release.terms.notes)
    pictures = "".join(
        _picture(axis, number, section.synopsis, _beside(section, len(release.sections)))
        for section in release.sections
        for number, axis in enumerate(section.axes)
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{name}</title><style>{_STYLE}</style></head><body><h1>{name}</h1>"
        f'<p class="quiet">Counts with noise, from which no single {escape(release.terms.budget.unit)} can be told. '
        f"Lines over the bars reach as far as the noise does in 95 of 100 cases.</p><table>{listed}</table>{notes}"
        f"<h2>Columns</h2>{pictures}<h2>Tables</h2>{_tables(release.sections)}{_synthetic(release)}</body></html>\n"
    )


def _synthetic(release: Release) -> str:
    if not release.is_synthetic:
        return ""
    return (
        "<h2>What the synthetic table is not good for</h2><p>It is like the real one in single columns, and in pairs as far as these were "
        "measured. What depends on three columns or more, on rare values, or on one person's rows together is not in it. Numbers counted "
        "in it have no error bars: count with a query on this release.</p>"
    )


def _tables(sections: Sequence[ReleasedSection]) -> str:
    rows = [_table(table, section) for section in sections for table in section.measured[:TABLES_MAX]]
    more = sum(max(0, len(section.measured) - TABLES_MAX) for section in sections)
    rest = f"<p>And {more:,} more.</p>" if more > 0 else ""
    head = "<tr><th>counts by</th><th class=number>cells</th><th class=number>a cell is off by, at most (95 %)</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>{rest}"


def _table(table: MeasuredMarginal, section: ReleasedSection) -> str:
    axes = section.section.axes
    columns = " × ".join(axes[number].column for number in table.axes) or "all rows"
    if isinstance(section.synopsis, TreeCounts):
        width = leaf_width(axes[table.axes[-1]], section.axes[-1])
        columns += f", in nodes of {width:,}" if width > 1 else ", in leaves"
        bar = _first_node_width(width, section.synopsis)
    else:
        bar = SURE * math.sqrt(section.synopsis.cell_variance(table.axes))
    cells = [f"{int(np.size(table.counts)):,}", f"± {figure(bar, digits=3)}"]
    return f"<tr><td>{escape(columns)}</td>{''.join(f'<td class=number>{cell}</td>' for cell in cells)}</tr>"


def _first_node_width(width: int, tree: TreeCounts) -> float:
    """Of the first node of a level, for the first cell of the further axes."""
    weights = np.zeros(tree.counts.size)
    weights[:width] = 1.0
    return SURE * tree.linear(tuple(range(tree.counts.ndim)), weights.reshape(tree.counts.shape)).deviation


def _beside(section: ReleasedSection, sections: int) -> str:
    """The estimate that a chart shows, if there are several."""
    tree = section.section.tree
    return "" if sections == 1 else ", from the marginals" if tree is None else f", from the tree of {tree.column}"


def _picture(axis: Axis, number: int, synopsis: Synopsis | TreeCounts, beside: str) -> str:
    values = np.asarray(synopsis.marginal((number,)), dtype=np.float64)
    step = -(-len(values) // BARS_MAX)
    starts = np.arange(0, len(values), step)
    sums = np.add.reduceat(values, starts)
    bars = [_bar_width(number, axis.size, int(start), min(int(start) + step, axis.size), synopsis) for start in starts]
    labels = [bin_label(axis, int(start)) for start in starts]
    top = max(float(np.max(sums + bars)), 1.0)
    return f"<h3>{escape(axis.column + beside)}</h3>{_svg(sums.tolist(), bars, labels, top)}"


def _bar_width(number: int, size: int, start: int, end: int, synopsis: Synopsis | TreeCounts) -> float:
    weights = np.zeros(size)
    weights[start:end] = 1.0
    return SURE * math.sqrt(synopsis.linear((number,), weights).variance)


def _svg(sums: Sequence[float], bars: Sequence[float], labels: Sequence[str], top: float) -> str:
    across, down = (WIDTH - LEFT) / len(sums), HEIGHT - BOTTOM - 8

    def height(value: float) -> float:
        return HEIGHT - BOTTOM - max(0.0, min(value, top)) / top * down

    parts = [f'<line class="axis" x1="{LEFT}" x2="{WIDTH}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM}"/>']
    parts += [f'<text x="{LEFT - 6}" y="{height(each) + 4:.1f}" text-anchor="end">{figure(each, digits=3)}</text>' for each in (0.0, top)]
    every = -(-len(labels) * max(len(label) for label in labels) * 7 // (WIDTH - LEFT))
    for place, (value, bar) in enumerate(zip(sums, bars, strict=True)):
        x, y = LEFT + place * across, height(value)
        middle = x + across / 2
        parts.append(
            f'<rect class="bar" x="{x + across * 0.1:.1f}" y="{y:.1f}" width="{across * 0.8:.1f}" height="{HEIGHT - BOTTOM - y:.1f}"/>'
        )
        parts.append(
            f'<line class="error" x1="{middle:.1f}" x2="{middle:.1f}" y1="{height(value + bar):.1f}" y2="{height(value - bar):.1f}"/>'
        )
        if place % max(every, 1) == 0:
            parts.append(f'<text x="{middle:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{escape(labels[place])}</text>')
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="counts by bin">{"".join(parts)}</svg>'


def bin_label(axis: Axis, place: int) -> str:
    """The label of a bin in a chart."""
    cell = axis.cells()[place]
    if cell is None:
        return "NULL"
    if axis.edges is None:
        return _text(cell, axis.domain)
    return _text(axis.spans()[place][0], axis.domain) + "…"


def _text(value: Value | Fraction, domain: Domain) -> str:
    match domain, value:
        case DateDomain(), int() | Fraction():
            return (date(1970, 1, 1) + timedelta(days=int(value))).isoformat()
        case TimestampDomain(), int() | Fraction():
            return datetime.fromtimestamp(int(value) / 1_000_000, UTC).date().isoformat()
        case _, Fraction():
            return f"{float(value):g}"
        case _, bool():
            return str(value).lower()
        case _:
            return str(value)[:24]


def _with_bar(value: float, bar: float) -> str:
    return f"{value:,.0f} ± {figure(bar, digits=3)} (95 %)"
