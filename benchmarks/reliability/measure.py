"""Ask statements through the product again and again, and compare every cell with the truth of the source, untruncated."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from benchmarks.reliability.best_bound import BestBound, Contributions, Key, LevelContributions, best_bound
from benchmarks.reliability.repeated import ForgettingLedger
from benchmarks.reliability.statements import AskedStatement, Measured, Output

from lapwing.answers.answer import Answer
from lapwing.curator.curator import Curator
from lapwing.data_set import DataSet
from lapwing.errors import Refused
from lapwing.prices import statement_loss

CONFIDENCE = "0.95"
CELLS_MIN = 40
"""Statements of few cells are asked more often, up to four times as often: their errors are estimated from fewer values."""


@dataclass(slots=True)
class Cells:
    """What was answered for one output on one level of a statement."""

    values: list[tuple[Key, float]] = field(default_factory=list)
    bars: list[tuple[Key, float, float]] = field(default_factory=list)
    absent: int = 0
    """Answers without a value or without an error bar."""


class Truth:
    """Bare DuckDB on the sources."""

    def __init__(self, directory: Path, tables: Iterable[str]) -> None:
        self._connection = duckdb.connect()
        for table in tables:
            self._connection.execute(f"CREATE TABLE {table} AS SELECT * FROM '{directory / table}*.parquet'")

    def contributions(self, statement: AskedStatement) -> list[LevelContributions]:
        """What every unit adds to every cell, on every level of the statement."""
        found = self._connection.execute(statement.contributions_sql()).fetchnumpy()
        keys = [[str(item) for item in found[f"k{place}"]] for place in range(len(statement.keys))]
        rows = np.asarray(found["n"], dtype=np.float64)
        grouped: list[Key] = list(zip(*keys, strict=True)) if keys else [()] * len(rows)
        _, units = np.unique(np.asarray(found["unit"]), return_inverse=True)
        values = {output.name: np.asarray(found[f"v{place}"], dtype=np.float64) for place, output in enumerate(statement.outputs)}
        finest = Contributions(units.reshape(-1), grouped, rows, values)
        return [finest.at_level(kept) for kept in statement.levels]


def measured_statement(
    curator: Curator,
    ledger: ForgettingLedger,
    truth: Truth,
    statement: AskedStatement,
    *,
    law: str,
    epsilons: Iterable[str],
    draws: int,
) -> list[dict[str, Any]]:
    """One record for each price, output and level of a statement. EXPLAIN is heard after the first answer, with what that bought."""
    levels = truth.contributions(statement)
    if not len(levels[0].rows):
        return []
    draws *= min(4, max(1, CELLS_MIN // (draws * len(levels[0].groups))))
    records: list[dict[str, Any]] = []
    for epsilon in epsilons:
        try:
            before = DataSet(curator).explain(statement.sql, epsilon=epsilon).to_dict()
            ledger.forget()
            answers = [DataSet(curator).ask(statement.sql, epsilon=epsilon, confidence=CONFIDENCE)]
            with ledger.recalled():
                explained = DataSet(curator).explain(statement.sql, epsilon=epsilon).to_dict()
            answers += [DataSet(curator).ask(statement.sql, epsilon=epsilon, confidence=CONFIDENCE) for _ in range(draws - 1)]
        except Refused as refused:
            records.append({"family": statement.family, "law": law, "epsilon": epsilon, "sql": statement.sql, "refused": refused.code})
            continue
        rho = float(statement_loss(curator.declaration.budget(), Fraction(epsilon)))
        for output in statement.outputs:
            for level, kept in enumerate(statement.levels):
                cells = _cells(answers, statement, output, kept)
                weights: dict[Key, float] = defaultdict(float)
                for key, _ in cells.values:
                    weights[key] += 1
                best = best_bound(statement, output, levels, level, weights, rho=rho) if weights else None
                records.append(
                    {
                        "family": statement.family,
                        "law": law,
                        "epsilon": epsilon,
                        "sql": statement.sql,
                        "output": output.name,
                        "level": kept,
                        "draws": draws,
                        "predicted_before": predicted_error(before, output) if level == 0 else None,
                        "predicted": predicted_error(explained, output) if level == 0 else None,
                        **_record(cells, levels[level].truth(output), best, output, draws),
                    }
                )
    return records


def _cells(answers: Iterable[Answer], statement: AskedStatement, output: Output, kept: int) -> Cells:
    cells = Cells()
    names = [name for _, name in statement.keys]
    for answer in answers:
        bars = answer.intervals.get(output.name)
        for place, row in enumerate(answer.table.to_pylist()):
            key: Key = tuple(None if row[name] is None else str(row[name]) for name in names)
            if statement.rollup and sum(item is not None for item in key) != kept:
                continue
            value, bar = row[output.name], None if bars is None else bars[place]
            if value is not None:
                cells.values.append((key, float(value)))
            if value is None or bar is None:
                cells.absent += 1
            else:
                cells.bars.append((key, bar.lo, bar.hi))
    return cells


def _record(cells: Cells, truth: dict[Key, float], best: BestBound | None, output: Output, draws: int) -> dict[str, Any]:
    """Coverage, widths and errors. An average of a group without rows has no truth, and is left out."""
    default = None if output.measured is Measured.AVERAGE else 0.0
    errors = [(value - true) for key, value in cells.values if (true := truth.get(key, default)) is not None]
    bars = [(lo, true, hi, key) for key, lo, hi in cells.bars if (true := truth.get(key, default)) is not None]
    # A truth is a float sum of values of two decimals: an end is not missed by less than a float's error.
    slack = 1e-9
    covered = sum(lo - slack * (1 + abs(true)) <= true <= hi + slack * (1 + abs(true)) for lo, true, hi, _ in bars)
    record: dict[str, Any] = {
        "cells": len(truth),
        "shown": len(cells.values) / draws,
        "answers": len(bars),
        "covered": covered,
        "absent": cells.absent,
        "mean_truth": statistics.fmean(truth.values()) if truth else 0.0,
    }
    if best is None or not errors:
        return record
    error = math.sqrt(statistics.fmean(item**2 for item in errors))
    size = math.sqrt(sum(truth.get(key, 0.0) ** 2 for key, _ in cells.values) / len(cells.values))
    shown_truth = statistics.fmean(held) if (held := [truth[key] for key, _ in cells.values if key in truth]) else 0.0
    ratios = [(hi - lo) / max(best.widths.get(key, best.other_width), 1e-9) for lo, _, hi, key in bars]
    return record | {
        "bias": statistics.fmean(errors),
        "error": error,
        "best_error": best.error,
        "error_ratio": error / best.error if best.error else math.inf,
        "best_cap": best.cap,
        "shown_truth": shown_truth,
        "useful": best.error <= 0.5 * size,
        "width_ratio": statistics.median(ratios) if ratios else None,
    }


def predicted_error(explained: dict[str, Any], output: Output) -> float | None:
    """What EXPLAIN says the error will be; None where it says nothing comparable."""
    stated = explained.get("predicted_error")
    if isinstance(stated, dict):
        value = stated.get(output.name)
        return None if value is None else float(value)
    if output.measured in (Measured.COUNT, Measured.UNITS):
        return math.hypot(explained["predicted_truncation"], explained["predicted_noise"])
    return None
