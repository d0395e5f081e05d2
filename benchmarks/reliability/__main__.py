"""Can answers be relied on? Coverage, width and error of every family of statements, under seven laws and at four prices.

    python -m benchmarks.reliability [--quick] [--family sums --law pareto ...] [--processes 2] [--json measured.json]

Coverage is of the truth in the source, with nothing cut. Width and error are medians of ratios to the best bound known (`best_bound`), over
statements to which that bound gives a useful answer; "of all" counts the others too. The error is also compared with what EXPLAIN
predicted. Three of the laws are held out, and have tables of their own (see `HELD_OUT`). `--quick` asks
few statements, each at all four prices; without it 315 are asked on each law, each at one of the prices.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.markdown import show, table
from benchmarks.reliability.shop import HELD_OUT, LAWS
from benchmarks.reliability.statements import FAMILIES
from benchmarks.reliability.task import Task

EPSILONS = ("0.1", "0.3", "1", "3")
EXPLAINED_WITHIN = 1.5
DATA_SETS = 3
"""Of each law and family, in full size."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--users", type=int)
    parser.add_argument("--statements", type=int, help="of each family")
    parser.add_argument("--draws", type=int, default=4, help="answers to each statement at each price")
    parser.add_argument("--family", action="append", choices=sorted(FAMILIES))
    parser.add_argument("--law", action="append", choices=sorted(LAWS | HELD_OUT))
    parser.add_argument("--epsilon", action="append")
    parser.add_argument("--every-price", action="store_true", help="ask each statement at all of the prices, as --quick does")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", type=Path, help="also write every record here")
    parser.add_argument("--worst", type=int, default=0, help="also show so many records of each family with the worst error ratio")
    options = parser.parse_args()
    data_sets = 1 if options.quick else DATA_SETS
    tasks = [
        Task(
            law,
            family,
            users=options.users or (6_000 if options.quick else 10_000),
            data_set=data_set,
            data_sets=data_sets,
            many=options.statements or (3 if options.quick else 45),
            draws=options.draws,
            epsilons=tuple(options.epsilon or EPSILONS),
            one_price_each=not (options.quick or options.every_price),
        )
        for law in options.law or [*LAWS, *HELD_OUT]
        for family in options.family or FAMILIES
        for data_set in range(data_sets)
    ]
    started = time.monotonic()
    records: list[dict[str, Any]] = []
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        for task, measured in zip(tasks, pool.map(Task.measured, tasks), strict=True):
            records += measured
            show(f"{task.law}, {task.family}: {time.monotonic() - started:.0f} s")
            if options.json is not None:
                options.json.write_text(json.dumps(records, indent=1), encoding="utf-8")
    for laws, title in ((LAWS, ""), (HELD_OUT, ", laws held out")):
        chosen = [record for record in records if record["law"] in laws]
        if chosen:
            report(chosen, title, worst=options.worst)


def report(records: Sequence[dict[str, Any]], of: str, *, worst: int) -> None:
    """The tables."""
    for title, by in (("By family", "family"), ("By law", "law"), ("By price (epsilon)", "epsilon")):
        groups: dict[str, list[dict[str, Any]]] = {}
        for record in records:
            groups.setdefault(record[by], []).append(record)
        table(f"**{title}{of}**", HEAD, [*([name, *summary(group)] for name, group in groups.items()), ["all", *summary(records)]])
    show("")
    refused = sorted({(record["sql"], record["refused"]) for record in records if "refused" in record})
    for sql, code in refused[:20]:
        show(f"refused ({code}): {sql}")
    for family in FAMILIES if worst else ():
        ranked = sorted((r for r in records if r["family"] == family and "error_ratio" in r), key=lambda r: -r["error_ratio"])
        for record in ranked[:worst]:
            coverage = record["covered"] / max(record["answers"], 1)
            show(
                f"{family} | {record['law']} | epsilon {record['epsilon']} | error {record['error']:.4g}, best {record['best_error']:.4g},"
                f" truth {record['mean_truth']:.4g}, bias {record['bias']:.3g}, covered {coverage:.0%}"
                f" | {record['output']}: {record['sql']}"
            )


HEAD = ("", "answers", "coverage", "width", "error", "90 % of errors below", "errors <= 2", "of all", "EXPLAIN within 1.5", "keys shown")


def summary(records: Sequence[dict[str, Any]]) -> list[str]:
    """A row of a table."""
    answers = sum(record.get("answers", 0) for record in records)
    covered = sum(record.get("covered", 0) for record in records)
    useful = [record for record in records if record.get("useful")]
    widths = [record["width_ratio"] for record in useful if record["width_ratio"] is not None]
    errors = sorted(record["error_ratio"] for record in useful)
    every = [record["error_ratio"] for record in records if "error_ratio" in record]
    explained = [record["error"] / record["predicted"] for record in records if record.get("predicted") and "error" in record]
    within = sum(1 / EXPLAINED_WITHIN <= ratio <= EXPLAINED_WITHIN for ratio in explained)
    discovered = [record for record in records if record["family"] == "discovered keys"]
    return [
        f"{answers:,}",
        f"{covered / max(answers, 1):.1%}",
        _figure(widths, statistics.median),
        _figure(errors, statistics.median),
        _figure(errors, lambda ordered: ordered[int(0.9 * (len(ordered) - 1))]),
        _figure(errors, _share_within_two),
        _figure(every, _share_within_two),
        f"{within} of {len(explained)}" + (f" ({within / len(explained):.0%})" if explained else ""),
        _figure(discovered, lambda found: sum(record.get("shown", 0) for record in found)),
    ]


def _share_within_two(ratios: Sequence[float]) -> float:
    return 100 * sum(ratio <= 2 for ratio in ratios) / len(ratios)


def _figure(values: Sequence[Any], of: Callable[[Sequence[Any]], float]) -> str:
    return f"{of(values):.3g}" if values else ""


if __name__ == "__main__":
    main()
