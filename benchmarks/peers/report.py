"""Tables and pictures of what was measured.

    python -m benchmarks.peers.report measured.jsonl [--pictures docs/images]

A cell is the error as a share of the mean of what is asked (for medians and keys see the notes of the page): first with the bound that is
guessed, then with the best bound set by hand, chosen for every output by its error.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.markdown import table
from benchmarks.peers.questions import QUESTIONS

PEERS = ("opendp", "smartnoise", "pipeline_dp", "tumult", "diffprivlib")
NAMES = {
    "lapwing": "Lapwing",
    "lapwing, few questions": "Lapwing, few questions",
    "lapwing, scaled groups": "Lapwing, scaled groups",
    "opendp": "OpenDP",
    "smartnoise": "SmartNoise",
    "pipeline_dp": "PipelineDP",
    "tumult": "Tumult",
    "diffprivlib": "diffprivlib",
}


class Measured:
    """Records, the newest of each."""

    def __init__(self, path: Path) -> None:
        newest: dict[tuple[Any, ...], dict[str, Any]] = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            names = ("law", "table_rows", "peer", "question", "output", "bound", "bound_rows", "bound_groups")
            newest[tuple(record.get(name) for name in names)] = record
        self.records = list(newest.values())

    def tables(self) -> list[tuple[str, int]]:
        """Laws and sizes there are."""
        return sorted({(record["law"], record["table_rows"]) for record in self.records}, key=lambda pair: (pair[1], pair[0] != "pareto"))

    def of(self, law: str, rows: int, peer: str, question: str, output: str) -> list[dict[str, Any]]:
        """Answers of one system for one output."""
        wanted = (law, rows, peer, question)
        mine = [r for r in self.records if (r["law"], r["table_rows"], r["peer"], r["question"]) == wanted]
        return [r for r in mine if r.get("output") == output and (r["error"] is not None or question == "Q6")]

    def best(self, law: str, rows: int, peer: str, question: str, output: str, *, guessed: bool) -> dict[str, Any] | None:
        """The answer with the guessed bound, or the best of all bounds: most keys for unknown keys, else the least error."""
        found = [r for r in self.of(law, rows, peer, question, output) if not guessed or r["bound"] in ("guess", "chosen")]
        if question == "Q6":
            return max(found, key=lambda record: record["keys"], default=None)
        return min(found, key=lambda record: record["error"], default=None)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("measured", type=Path)
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    measured = Measured(options.measured)
    for law, rows in measured.tables():
        _errors(measured, law, rows)
    if options.pictures is not None:
        draw(measured, options.pictures)


def _errors(measured: Measured, law: str, rows: int) -> None:
    peers = [peer for peer in PEERS if any((r["law"], r["table_rows"], r["peer"]) == (law, rows, peer) for r in measured.records)]
    lines: list[Sequence[str]] = []
    for question, output in _outputs():
        own = measured.best(law, rows, "lapwing", question, output, guessed=True)
        few = measured.best(law, rows, "lapwing, few questions", question, output, guessed=True)
        scaled = measured.best(law, rows, "lapwing, scaled groups", question, output, guessed=True)
        cells = [text for record in (own, few, scaled) for text in (_cell(record, question), _coverage(record))]
        cells.append(_reachable(own))
        for peer in peers:
            guess = measured.best(law, rows, peer, question, output, guessed=True)
            best = measured.best(law, rows, peer, question, output, guessed=False)
            cells.append("-" if best is None else f"{_cell(guess, question)} / {_cell(best, question)}")
        rivals = [record for peer in peers if (record := measured.best(law, rows, peer, question, output, guessed=False)) is not None]
        guesses = [record for peer in peers if (record := measured.best(law, rows, peer, question, output, guessed=True)) is not None]
        lines.append([f"{question} {output}", *cells, _ratio(own, guesses, question), _ratio(own, rivals, question)])
    head = [
        "",
        "Lapwing",
        "covered",
        "few questions",
        "covered",
        "scaled groups",
        "covered",
        "best bound known",
        *(NAMES[peer] for peer in peers),
        "to best guess",
        "to best by hand",
    ]
    table(f"**{law}, {rows:,} rows**", head, lines)


def _outputs() -> list[tuple[str, str]]:
    return [(name, output) for name, question in QUESTIONS.items() for output in question.outputs]


def _cell(record: dict[str, Any] | None, question: str) -> str:
    if record is None:
        return "-"
    if question == "Q6":
        return f"{record['keys']:.3g} keys"
    if question == "Q7":
        return f"{record['error']:.3g}"
    return _percent(record["error"] / record["mean_truth"])


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:,.0f} %"


def _reachable(record: dict[str, Any] | None) -> str:
    return _percent(record["best_error"] / record["mean_truth"]) if record and "best_error" in record else "-"


def _coverage(record: dict[str, Any] | None) -> str:
    return f"{record['covered'] / record['intervals']:.0%}" if record and record.get("intervals") else "-"


def _ratio(own: dict[str, Any] | None, rivals: Sequence[dict[str, Any]], question: str) -> str:
    if own is None or not rivals:
        return ""
    if question == "Q6":
        return f"{own['keys'] / max(max(record['keys'] for record in rivals), 1e-9):.2g} x keys"
    return f"{own['error'] / max(min(record['error'] for record in rivals), 1e-9):.2g}"


def draw(measured: Measured, directory: Path) -> None:
    """One panel for each law: errors of every system on a logarithmic axis, with the guessed bound and with the best."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot
    from matplotlib.lines import Line2D

    rows = min(size for _, size in measured.tables())
    laws = [law for law, size in measured.tables() if size == rows]
    outputs = [(question, output) for question, output in _outputs() if question not in ("Q6", "Q7")]
    figure, panels = pyplot.subplots(len(laws), 1, figsize=(9, 2.6 * len(laws) + 0.6), sharex=True, squeeze=False)
    colours = dict(zip(PEERS, ("#4477aa", "#228833", "#ccbb44", "#aa3377", "#999999"), strict=True))
    for panel, law in zip(panels[:, 0], laws, strict=True):
        for place, (question, output) in enumerate(outputs):
            own = measured.best(law, rows, "lapwing", question, output, guessed=True)
            if own is not None:
                panel.plot(place - 0.4, own["error"] / own["mean_truth"], "D", color="#cc3311", markersize=6)
            if (few := measured.best(law, rows, "lapwing, few questions", question, output, guessed=True)) is not None:
                panel.plot(place - 0.3, few["error"] / few["mean_truth"], "D", color="#ee7733", markersize=6)
            if (scaled := measured.best(law, rows, "lapwing, scaled groups", question, output, guessed=True)) is not None:
                panel.plot(place - 0.3, scaled["error"] / scaled["mean_truth"], "D", color="#ee3377", markersize=6)
            for shift, peer in enumerate(PEERS):
                at = place - 0.2 + 0.14 * shift
                ends = [measured.best(law, rows, peer, question, output, guessed=guessed) for guessed in (True, False)]
                if ends[0] is None or ends[1] is None:
                    continue
                high, low = (end["error"] / end["mean_truth"] for end in ends if end is not None)
                panel.plot([at, at], [low, high], color=colours[peer], linewidth=1)
                panel.plot(at, high, "o", color=colours[peer], markersize=5)
                panel.plot(at, low, "o", color=colours[peer], markersize=5, markerfacecolor="white")
        panel.set_yscale("log")
        panel.set_title(f"{law}, {rows:,} rows", fontsize=10, loc="left")
        panel.set_ylabel("error / truth")
        panel.grid(axis="y", color="#dddddd", linewidth=0.6)
        panel.set_axisbelow(True)
    panels[-1, 0].set_xticks(range(len(outputs)), [f"{question}\n{output}" for question, output in outputs], fontsize=9)
    handles = [Line2D([], [], marker="D", linestyle="", color="#cc3311", label="Lapwing")]
    handles.append(Line2D([], [], marker="D", linestyle="", color="#ee7733", label="Lapwing, few questions"))
    handles.append(Line2D([], [], marker="D", linestyle="", color="#ee3377", label="Lapwing, scaled groups"))
    handles += [Line2D([], [], marker="o", linestyle="", color=colours[peer], label=NAMES[peer]) for peer in PEERS]
    handles.append(Line2D([], [], marker="o", linestyle="", color="#555555", markerfacecolor="white", label="best bound by hand"))
    figure.legend(handles=handles, loc="lower center", ncols=9, fontsize=7, frameon=False)
    figure.tight_layout(rect=(0, 0.035, 1, 1))
    figure.savefig(directory / "peers.svg", metadata={"Date": None})
    pyplot.close(figure)


if __name__ == "__main__":
    main()
