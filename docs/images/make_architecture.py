"""Draws the packages of the source tree and their imports, from the import graph, in a light and a dark theme.

python docs/images/make_architecture.py

A box is a package or module directly below ``lapwing``. Each box is above everything that it imports. An arrow that follows from others is
left out (A imports B and B imports C, so A may import C), unless a statement takes it on its way to an answer.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path

import grimp

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from layered import Layout, Point, arrange  # noqa: E402  (a file beside this one)

SOURCE = HERE.parent.parent / "src" / "lapwing"
BOX, HIGH, MARGIN, LEGEND = 164, 66, 16, 104
THEMES = {
    "light": {"ink": "#1f2933", "quiet": "#52606d", "line": "#9aa5b1", "paper": "#ffffff", "way": "#1f5fa8"},
    "dark": {"ink": "#e4e7eb", "quiet": "#b8c4d0", "line": "#7b8794", "paper": "#131416", "way": "#8ec1ff"},
}
KIND_COLOURS = {
    "light": {
        "trusted": ("#a61b1b", "#fdf0ef"),
        "knows": ("#1f5fa8", "#eef4fb"),
        "noisy": ("#0b6e4f", "#ecf7f2"),
        "other": ("#7b8794", "#f5f7fa"),
    },
    "dark": {
        "trusted": ("#ff9b9b", "#33201f"),
        "knows": ("#8ec1ff", "#1b2733"),
        "noisy": ("#5fd3a6", "#17291f"),
        "other": ("#8793a0", "#1f2933"),
    },
}
"""Edge and filling of a box, by its kind."""
KINDS = {
    "trusted": "a mistake here could leak",
    "knows": "connects the parts",
    "noisy": "sees noisy values and public facts only",
    "other": "a mistake here spoils an answer, not the promise",
}


@dataclass(frozen=True)
class Package:
    """What the drawing says about a package or module beyond its name and its size."""

    kind: str
    purpose: str
    steps: tuple[int, ...] = ()
    """The steps of a statement that it takes; docs/explanation/architecture.md lists them."""


PACKAGES = {
    "interfaces": Package("other", "Python, CLI, HTTP, ...", (1,)),
    "data_set": Package("other", "the Python object"),
    "owner": Package("knows", "drafts, backs up, reports"),
    "asking": Package("knows", "request to answer", (2,)),
    "curator": Package("knows", "opens, prepares, charges"),
    "introspection": Package("noisy", "what there is to ask"),
    "releases": Package("noisy", "bought once, then free"),
    "sql": Package("other", "text to statement", (3,)),
    "planning": Package("other", "statement to plan", (4,)),
    "contribution": Package("other", "clipping bounds"),
    "kernel": Package("trusted", "certifies and releases", (5, 8)),
    "ledger": Package("trusted", "charges, then permits", (6, 9)),
    "engines": Package("trusted", "prepares and runs", (7,)),
    "answers": Package("noisy", "tables and error bars", (10,)),
    "render": Package("trusted", "plan to engine's SQL"),
    "catalog": Package("trusted", "owner's declarations"),
    "statements": Package("other", "what can be asked"),
    "mechanisms": Package("other", "textbook mechanisms"),
    "theory": Package("other", "definitions, as code"),
    "games": Package("other", "what lies can gain"),
    "audit": Package("other", "searches for leaks"),
    "demo": Package("other", "made-up people"),
    "receipts": Package("trusted", "signed statements"),
    "prices": Package("trusted", "what an epsilon buys"),
    "spread": Package("other", "how far noise spreads"),
    "errors": Package("trusted", "codes, who can act"),
}
ON_THE_WAY = {
    ("interfaces", "asking"),
    *(("asking", package) for package in ("sql", "planning", "curator", "answers")),
    ("planning", "kernel"),
    *(("curator", package) for package in ("ledger", "engines", "kernel")),
}
"""The imports that a statement takes on its way to an answer. They are drawn even if they follow from others."""

Edge = tuple[str, str]


def imports_between_packages() -> frozenset[Edge]:
    """Every pair of packages of which the first imports the second."""
    graph = grimp.build_graph("lapwing", cache_dir=None)
    pairs = {
        (importer.split(".")[1], imported.split(".")[1])
        for importer in graph.modules
        for imported in graph.find_modules_directly_imported_by(importer)
        if "." in importer and "." in imported
    }
    return frozenset(pair for pair in pairs if pair[0] != pair[1])


def packages_of_the_tree() -> frozenset[str]:
    """The names directly below ``lapwing``."""
    return frozenset(name.split(".")[1] for name in grimp.build_graph("lapwing", cache_dir=None).find_children("lapwing"))


def lines_of(package: str) -> int:
    """Lines of Python in a package, to two digits."""
    place = SOURCE / package
    files = place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")]
    exact = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
    return round(exact, 2 - len(str(exact)))


def without_what_follows(edges: frozenset[Edge]) -> frozenset[Edge]:
    """The edges without those that a longer way implies."""
    below = {package: {edge[1] for edge in edges if edge[0] == package} for package in {name for edge in edges for name in edge}}

    def reached(package: str) -> set[str]:
        return below[package] | {further for lower in below[package] for further in reached(lower)}

    far = {package: {further for lower in below[package] for further in reached(lower)} for package in below}
    return frozenset(edge for edge in edges if edge[1] not in far[edge[0]])


def shown_edges(edges: frozenset[Edge]) -> frozenset[Edge]:
    """What is drawn: the edges from which all others follow, and those that a statement takes."""
    return without_what_follows(edges) | (edges & frozenset(ON_THE_WAY))


def _curve(points: list[Point]) -> str:
    """A line through points that runs straight down at each of them."""
    path = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
    for (x, y), (to_x, to_y) in pairwise(points):
        middle = (y + to_y) / 2
        path += f"V{to_y:.0f}" if round(x) == round(to_x) else f"C{x:.0f} {middle:.0f} {to_x:.0f} {middle:.0f} {to_x:.0f} {to_y:.0f}"
    return path


def drawing(theme: str, layout: Layout, edges: frozenset[Edge], lines: dict[str, int]) -> str:
    """The picture of a layout in one theme."""
    colours, kinds = THEMES[theme], KIND_COLOURS[theme]
    width, height = layout.width + 2 * MARGIN, layout.height + 2 * MARGIN + LEGEND
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" role="img">',
        "<title>The packages of the source tree and their imports</title>",
        "<defs>",
        *(
            f'<marker id="{name}-{theme}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="10" markerHeight="10" '
            'markerUnits="userSpaceOnUse" orient="auto">'
            f'<path d="M0 0L10 5L0 10z" fill="{colours[name]}"/></marker>'
            for name in ("line", "way")
        ),
        "</defs>",
        f'<g transform="translate({MARGIN} {MARGIN})">',
    ]

    def text(x: float, y: float, words: str, colour: str, size: int, *, anchor: str = "middle", bold: bool = False) -> None:
        weight = ' font-weight="bold"' if bold else ""
        parts.append(
            f'<text x="{x:.0f}" y="{y:.0f}" fill="{colour}" font-size="{size}" text-anchor="{anchor}"{weight}>{escape(words)}</text>'
        )

    def badge(x: float, y: float, step: int) -> None:
        parts.append(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="10" fill="{colours["way"]}"/>')
        text(x, y + 4, str(step), colours["paper"], 12, bold=True)

    for edge in sorted(edges, key=lambda edge: (edge in ON_THE_WAY, edge)):
        name, thick = ("way", "2.2") if edge in ON_THE_WAY else ("line", "1.4")
        parts.append(
            f'<path d="{_curve(layout.ways[edge])}" fill="none" stroke="{colours[name]}" stroke-width="{thick}" '
            f'marker-end="url(#{name}-{theme})"><title>{edge[0]} imports {edge[1]}</title></path>'
        )
    for name, (x, y) in sorted(layout.places.items()):
        package = PACKAGES[name]
        edge_colour, fill = kinds[package.kind]
        parts.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{BOX}" height="{HIGH}" rx="10" fill="{fill}" stroke="{edge_colour}" stroke-width="2"/>'
        )
        text(x + BOX / 2, y + 24, name, colours["ink"], 17, bold=True)
        text(x + BOX / 2, y + 41, package.purpose, colours["quiet"], 12)
        text(x + BOX / 2, y + 57, f"{lines[name]:,} lines", colours["quiet"], 11)
        for number, step in enumerate(package.steps):
            badge(x, y + HIGH / 2 + 24 * (number - (len(package.steps) - 1) / 2), step)
    row, column = layout.height + 44, 350
    for number, (kind, words) in enumerate(KINDS.items()):
        x, y = (number % 2) * column, row + (number // 2) * 24
        edge_colour, fill = kinds[kind]
        parts.append(
            f'<rect x="{x}" y="{y - 12:.0f}" width="22" height="15" rx="4" fill="{fill}" stroke="{edge_colour}" stroke-width="2"/>'
        )
        text(x + 32, y, words, colours["ink"], 13, anchor="start")
    badge(11, row + 44, 1)
    text(26, row + 48, "to", colours["ink"], 13, anchor="start")
    badge(53, row + 44, max(step for package in PACKAGES.values() for step in package.steps))
    text(70, row + 48, "the steps of a statement", colours["ink"], 13, anchor="start")
    parts.append(f'<path d="M{column} {row + 44:.0f}h22" stroke="{colours["line"]}" stroke-width="1.4" marker-end="url(#line-{theme})"/>')
    text(column + 32, row + 48, "imports; what follows from other arrows is left out", colours["ink"], 13, anchor="start")
    parts.append("</g></svg>")
    return "\n".join(parts) + "\n"


def pictures() -> dict[str, str]:
    """The drawing in every theme, from the tree as it is."""
    packages = packages_of_the_tree()
    if packages != PACKAGES.keys():
        raise SystemExit(f"PACKAGES in docs/images/make_architecture.py differs from the tree in {sorted(packages ^ PACKAGES.keys())}")
    edges = shown_edges(imports_between_packages())
    layout = arrange(sorted(packages), edges, box=(BOX, HIGH))
    lines = {package: lines_of(package) for package in packages}
    return {theme: drawing(theme, layout, edges, lines) for theme in THEMES}


if __name__ == "__main__":
    for theme, picture in pictures().items():
        (HERE / f"architecture-{theme}.svg").write_text(picture, encoding="utf-8")
