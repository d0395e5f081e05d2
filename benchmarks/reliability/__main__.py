"""Can answers be relied on? Coverage, width and error of every family of statements, under four laws and at four prices.

    python -m benchmarks.reliability [--quick] [--family sums --law pareto ...] [--json measured.json]

Coverage is of the truth in the source, with nothing cut. Width and error are medians of ratios to the best bound known (`best_bound`), over
statements to which that bound gives a useful answer; "of all" counts the others too. The error is also compared with what EXPLAIN
predicted. `--quick` asks few statements and takes a minute or two; without it more than 300 are asked.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.markdown import show, table
from benchmarks.reliability.measure import Truth, measured_statement
from benchmarks.reliability.repeated import make_repeatable
from benchmarks.reliability.shop import LAWS, write_shop
from benchmarks.reliability.statements import FAMILIES, statements

from lapwing.curator.life import Curator

EPSILONS = ("0.1", "0.3", "1", "3")
TABLES = ("users", "events", "orders", "items")
EXPLAINED_WITHIN = 1.5


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--users", type=int)
    parser.add_argument("--statements", type=int, help="of each family")
    parser.add_argument("--draws", type=int, help="answers to each statement at each price")
    parser.add_argument("--family", action="append", choices=sorted(FAMILIES))
    parser.add_argument("--law", action="append", choices=sorted(LAWS))
    parser.add_argument("--epsilon", action="append")
    parser.add_argument("--one-price-each", action="store_true", help="ask a statement at one of the prices, the next at the next")
    parser.add_argument("--json", type=Path, help="also write every record here")
    parser.add_argument("--worst", type=int, default=0, help="also show so many records of each family with the worst error ratio")
    options = parser.parse_args()
    users = options.users or (6_000 if options.quick else 10_000)
    many = options.statements or (3 if options.quick else 45)
    draws = options.draws or 4
    started = time.monotonic()
    records: list[dict[str, Any]] = []
    for law in options.law or LAWS:
        with tempfile.TemporaryDirectory() as scratch:
            records += measured_law(
                Path(scratch),
                law=law,
                users=users,
                many=many,
                draws=draws,
                families=options.family or list(FAMILIES),
                epsilons=options.epsilon or EPSILONS,
                one_price_each=options.one_price_each,
            )
        show(f"{law}: {time.monotonic() - started:.0f} s")
    if options.json is not None:
        options.json.write_text(json.dumps(records, indent=1), encoding="utf-8")
    report(records, worst=options.worst)


def measured_law(
    directory: Path,
    *,
    law: str,
    users: int,
    many: int,
    draws: int,
    families: Sequence[str],
    epsilons: Sequence[str],
    one_price_each: bool,
) -> list[dict[str, Any]]:
    """All records on data of one law."""
    write_shop(directory, law=law, users=users)
    truth = Truth(directory, TABLES)
    with Curator(directory, home=directory / "registry") as curator:
        curator.prepare(accept_losses=False)
        ledger = make_repeatable(curator)
        return [
            record
            for family in families
            for number, statement in enumerate(statements(family, many))
            for record in measured_statement(
                curator,
                ledger,
                truth,
                statement,
                law=law,
                epsilons=[epsilons[number % len(epsilons)]] if one_price_each else epsilons,
                draws=draws,
            )
        ]


def report(records: Sequence[dict[str, Any]], *, worst: int) -> None:
    """The tables."""
    for title, by in (("By family", "family"), ("By law", "law"), ("By price (epsilon)", "epsilon")):
        groups: dict[str, list[dict[str, Any]]] = {}
        for record in records:
            groups.setdefault(record[by], []).append(record)
        table(f"**{title}**", HEAD, [[name, *summary(group)] for name, group in groups.items()])
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
        f"{within} of {len(explained)}",
        _figure(discovered, lambda found: sum(record.get("shown", 0) for record in found)),
    ]


def _share_within_two(ratios: Sequence[float]) -> float:
    return 100 * sum(ratio <= 2 for ratio in ratios) / len(ratios)


def _figure(values: Sequence[Any], of: Callable[[Sequence[Any]], float]) -> str:
    return f"{of(values):.3g}" if values else ""


if __name__ == "__main__":
    main()
