"""What plans cost at any size: a model fitted to figures of `benchmarks.engines`, its residuals, and what it says of a cluster.

    python -m benchmarks.scale                            # from benchmarks/measured.jsonl, as in docs/explanation/scale.md
    python -m benchmarks.scale --figures figures.jsonl

CPU time of a plan is taken as start + slope * rows, fitted by least squares of *relative* errors, so that a small table counts as much as
a large one. Bytes, draws and memory follow from counts, with the constants below. See docs/explanation/scale.md.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.markdown import table

MEASURED = Path(__file__).parent / "measured.jsonl"
PLANS = ("ranked scan", "ranked, 20 rows", "weighted", "clipped", "grouped", "discovered keys", "join on the unit", "median", "preparation")
GROUPS_MEASURED = 1_000_000
CELL_BYTES = 32
"""One cell of a unit and a group on its way between machines: unit, key, count and sum, 8 bytes each, without headers."""


@dataclass(frozen=True, slots=True)
class Line:
    """CPU seconds of a plan by rows: ``start + slope * rows``."""

    start_seconds: float
    slope_seconds: float
    residuals: tuple[tuple[int, float], ...]
    """For each size, predicted over measured, less 1."""

    def at(self, rows: float) -> float:
        """Predicted CPU seconds."""
        return self.start_seconds + self.slope_seconds * rows


def fit(points: Sequence[tuple[int, float]]) -> Line:
    """Least squares of relative errors; neither part is negative. Needs two sizes."""
    rows, seconds = (np.array(column, dtype=float) for column in zip(*points, strict=True))
    found, *_ = np.linalg.lstsq(np.column_stack([1 / seconds, rows / seconds]), np.ones(len(points)), rcond=None)
    start, slope = float(found[0]), float(found[1])
    if start < 0:
        weights = rows / seconds
        start, slope = 0.0, float(weights.sum() / (weights**2).sum())
    residuals = tuple((int(size), (start + slope * size) / float(time) - 1) for size, time in points)
    return Line(start, slope, residuals)


@dataclass(frozen=True, slots=True)
class Constants:
    """What follows from the figures, all per one of something."""

    noise_seconds: float
    """CPU seconds of one draw."""
    group_bytes: float
    """Memory of our process for one group of a result."""
    row_bytes: float
    """Stored size of one row."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A size to think about."""

    rows: float
    units: float
    groups: float
    cores: int


CLUSTER = Scale(rows=1e12, units=1e9, groups=1e8, cores=1000)


def read(path: Path, engine: str) -> list[Mapping[str, Any]]:
    """All figures of one engine."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line["engine"] == engine]


def lines_of(figures: Sequence[Mapping[str, Any]]) -> dict[str, Line]:
    """The fit of every plan that was measured at two sizes or more."""
    found = {}
    for plan in PLANS:
        points = {line["rows"]: float(line["cpu_seconds"]) for line in figures if line["what"] == plan}
        if len(points) > 1:
            found[plan] = fit(sorted(points.items()))
    return found


def constants_of(figures: Sequence[Mapping[str, Any]]) -> Constants:
    """From the result of a million groups, with and without noise, and from the largest version."""
    by_what = {(line["what"], line["rows"]): line for line in figures}
    many = "a million groups, "
    rows = max(size for what, size in by_what if what == f"{many}with noise")
    exact, noisy = by_what[f"{many}engine and exact integers", rows], by_what[f"{many}with noise", rows]
    smallest = min(line["peak_bytes"] for line in figures if line.get("peak_bytes") and line["rows"] == rows)
    largest = max((line for line in figures if line["what"] == "preparation"), key=lambda line: int(line["rows"]))
    return Constants(
        noise_seconds=(noisy["cpu_seconds"] - exact["cpu_seconds"]) / GROUPS_MEASURED,
        group_bytes=(noisy["peak_bytes"] - smallest) / GROUPS_MEASURED,
        row_bytes=largest["size_bytes"] / largest["rows"],
    )


def shuffle_bytes(scale: Scale, groups: float) -> float:
    """Moved for one query that must bring a unit's cells together, where rows are not stored by unit: every cell once."""
    return min(scale.rows, scale.units * groups) * CELL_BYTES


def report(path: Path) -> None:
    """All tables of the page."""
    figures = read(path, "duckdb")
    lines, constants = lines_of(figures), constants_of(figures)
    sizes = sorted({size for line in lines.values() for size, _ in line.residuals})
    body = []
    for plan, line in lines.items():
        off = dict(line.residuals)
        shown = [f"{100 * off[size]:+.0f} %" if size in off else "" for size in sizes]
        body.append([plan, f"{1000 * line.start_seconds:.0f}", f"{1e9 * line.slope_seconds:.0f}", *shown])
    heads = ["plan", "start, CPU ms", "slope, CPU ns per row", *(f"off at 10^{len(str(size)) - 1}" for size in sizes)]
    table("Fit", heads, body)
    body = []
    for plan, line in lines.items():
        cpu = line.at(CLUSTER.rows)
        body.append([plan, f"{cpu / 3600:.1f}", f"{cpu / CLUSTER.cores:.0f}"])
    title = f"10^12 rows, {CLUSTER.cores:,} cores, nothing moved between machines"
    table(title, ["plan", "CPU hours", "seconds, all cores busy"], body)
    rows = [
        ["stored rows", f"{CLUSTER.rows * constants.row_bytes / 1e12:.0f} TB"],
        ["moved per query, rows not stored by unit, 50 groups", f"{shuffle_bytes(CLUSTER, 50) / 1e12:.1f} TB"],
        ["moved per query, rows stored by unit, 50 groups", f"{50 * CELL_BYTES * CLUSTER.cores / 1e6:.1f} MB"],
        ["noise for 10^8 cells, one core", f"{CLUSTER.groups * constants.noise_seconds / 3600:.1f} h"],
        ["memory of our process for 10^8 groups", f"{CLUSTER.groups * constants.group_bytes / 1e9:.0f} GB"],
        ["noise for 10^6 cells, one core", f"{1e6 * constants.noise_seconds:.0f} s"],
        ["memory of our process for 10^6 groups", f"{1e6 * constants.group_bytes / 1e9:.2f} GB"],
    ]
    table("10^12 rows, 10^9 units", ["", "estimate"], rows)


def main() -> None:
    """Read the command line and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", type=Path, default=MEASURED)
    report(parser.parse_args().figures)


if __name__ == "__main__":
    main()
