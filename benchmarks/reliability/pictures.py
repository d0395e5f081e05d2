"""Pictures of what was measured: coverage by family and law, and the dashboard beside what is reachable.

python -m benchmarks.reliability.pictures reliability.json dashboard.json docs/images
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")
from benchmarks.reliability.shop import LAWS
from benchmarks.reliability.statements import FAMILIES
from matplotlib import pyplot

COLOURS = ("#4477aa", "#228833", "#ccbb44", "#aa3377")
NOMINAL = 0.95


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("reliability", type=Path)
    parser.add_argument("dashboard", type=Path)
    parser.add_argument("target", type=Path)
    options = parser.parse_args()
    draw_coverage(json.loads(options.reliability.read_text(encoding="utf-8")), options.target / "coverage.svg")
    draw_dashboard(json.loads(options.dashboard.read_text(encoding="utf-8")), options.target / "dashboard.svg")


def draw_coverage(records: list[dict[str, Any]], target: Path) -> None:
    """Left: how often the bars hold the truth. Right: the error as a multiple of the best bound known."""
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.8), sharey=True)
    for number, family in enumerate(FAMILIES):
        for shift, law in enumerate(LAWS):
            mine = [record for record in records if (record["family"], record["law"]) == (family, law)]
            answers = sum(record.get("answers", 0) for record in mine)
            ratios = sorted(record["error_ratio"] for record in mine if record.get("useful"))
            at = -number + 0.24 - 0.16 * shift
            if answers:
                left.plot(sum(record.get("covered", 0) for record in mine) / answers, at, "o", color=COLOURS[shift], markersize=5)
            if ratios:
                right.plot(ratios[len(ratios) // 2], at, "o", color=COLOURS[shift], markersize=5)
    left.axvline(NOMINAL, color="#555555", linewidth=0.8)
    left.set_xlabel("share of 95 % bars that hold the untruncated truth")
    left.set_yticks([-number for number in range(len(FAMILIES))], list(FAMILIES))
    right.axvline(1, color="#555555", linewidth=0.8)
    right.axvline(2, color="#555555", linewidth=0.8, linestyle=":")
    right.set_xscale("log")
    right.set_xlabel("median error / error with the best bound known")
    for panel in (left, right):
        panel.grid(axis="x", color="#dddddd", linewidth=0.6)
        panel.set_axisbelow(True)
    handles = [left.plot([], [], "o", color=colour, label=law)[0] for law, colour in zip(LAWS, COLOURS, strict=True)]
    figure.legend(handles=handles, loc="lower center", ncols=4, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(target, metadata={"Date": None})
    pyplot.close(figure)


def draw_dashboard(records: list[dict[str, Any]], target: Path) -> None:
    """Errors of the charts as a share of what they show, on a logarithmic axis."""
    charts = list(dict.fromkeys(record["chart"] for record in records))
    laws = [law for law in LAWS if any(record["law"] == law for record in records)]
    figure, axes = pyplot.subplots(figsize=(9, 4.6))
    for record in records:
        at = -charts.index(record["chart"]) + 0.24 - 0.16 * laws.index(record["law"])
        colour = COLOURS[list(LAWS).index(record["law"])]
        error, best = record["error"] / record["shown_truth"], record["best_error"] / record["shown_truth"]
        axes.plot([best, error], [at, at], color=colour, linewidth=1)
        axes.plot(error, at, "o", color=colour, markersize=5)
        axes.plot(best, at, "|", color=colour, markersize=9)
    axes.set_xscale("log")
    axes.set_yticks([-number for number in range(len(charts))], charts)
    axes.set_xlabel("error as a share of what is shown (bar: reachable with the best bound known)")
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    handles = [axes.plot([], [], "o", color=COLOURS[list(LAWS).index(law)], label=law)[0] for law in laws]
    axes.legend(handles=handles, loc="lower right", fontsize=8)
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})
    pyplot.close(figure)


if __name__ == "__main__":
    main()
