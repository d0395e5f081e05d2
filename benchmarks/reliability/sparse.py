"""Sums of what is mostly NULL or 0, beside ordinary ones: coverage, length of the bars and error, by number of units, price and account.

    python -m benchmarks.reliability.sparse [--units 1000 10000] [--epsilon 0.5] [--account pure] [--json measured.json]
    python -m benchmarks.reliability.sparse --compare before.json after.json

Users with a few rows each (log-normal, at most a quarter of what is declared), and columns of which few rows have anything. Every cell is
compared with the truth of the source, with nothing cut, through the ordinary path of a question. Each number of units has several data
sets; the same ones on every run. Lengths and errors are medians, as multiples of the truth (of a mean cell).
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.markdown import show, table
from benchmarks.reliability.repeated import make_repeatable

from lapwing.curator.curator import Curator
from lapwing.data_set import DataSet
from lapwing.errors import Refused

SEED = 20_261_117
ROWS_MOST, ROWS_DECLARED = 100, 400
AMOUNT_MAX = 500
GROUPS = 12
CONFIDENCE = "0.95"
UNITS = (300, 1_000, 10_000, 100_000)
EPSILONS = ("0.1", "0.5", "1")
ACCOUNTS = ("approximate", "pure")
DATA_SETS = {300: 4, 1_000: 3, 10_000: 2, 100_000: 1}
ANSWERS = 6
"""Of each statement at each price, over all data sets."""
CASES = {
    "COUNT": "COUNT(*)",
    "COUNT, 1 % of rows": "COUNT(null99)",
    "SUM, dense": "SUM(amount)",
    "SUM, flag of 10 %": "SUM(flag)",
    "SUM, 90 % NULL": "SUM(null90)",
    "SUM, 99 % NULL": "SUM(null99)",
    "SUM, 90 % zeros": "SUM(zero90)",
    "SUM, 99 % zeros": "SUM(zero99)",
    "SUM, Pareto": "SUM(pareto)",
    "AVG, dense": "AVG(amount)",
    "AVG, 90 % NULL": "AVG(null90)",
    "COUNT by group": "COUNT(*) BY grp",
    "SUM, dense, by group": "SUM(amount) BY grp",
    "SUM, 90 % NULL, by group": "SUM(null90) BY grp",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of one answer: its truth, its value and its bar; the mean of the truths beside it."""

    account: str
    units: int
    epsilon: str
    case: str
    truth: float
    scale: float
    value: float
    lo: float
    hi: float


def write(directory: Path, *, units: int, account: str, seed: int) -> None:
    """The source and the catalogue; the same rows for the same arguments."""
    draw = np.random.default_rng([SEED, units, seed])  # noqa: TID251  (the owner's rows, not noise)
    rows = np.clip(np.rint(draw.lognormal(1.0, 1.0, units)), 1, ROWS_MOST).astype(np.int64)
    size = int(rows.sum())
    amount = np.minimum(draw.lognormal(2.5, 1.0, size), AMOUNT_MAX).round(2)
    tenth, hundredth = draw.random(size) < 0.1, draw.random(size) < 0.01
    heavy = np.minimum(5.0 * (1.0 - draw.random(size)) ** (-1 / 1.2), 10 * AMOUNT_MAX).round(2)
    columns = {
        "user_id": np.repeat(np.arange(units), rows),
        "grp": draw.integers(0, GROUPS, size),
        "amount": amount,
        "flag": (draw.random(size) < 0.1).astype(np.int64),
        "null90": pa.array(amount, mask=~tenth),
        "null99": pa.array(amount, mask=~hundredth),
        "zero90": np.where(tenth, amount, 0.0),
        "zero99": np.where(hundredth, amount, 0.0),
        "pareto": heavy,
    }
    pq.write_table(pa.table(columns), directory / "events.parquet")
    real = f"{{ type = 'real', min = 0, max = {AMOUNT_MAX}, steps = 100 }}"
    delta = "'1e-9'" if account == "approximate" else "0"
    (directory / "lapwing.toml").write_text(
        f"""\
format = 1

[dataset]
id = "sparse"
unit = "user"

[budget]
epsilon = 3
delta = {delta}

[tables.events]
source = "events.parquet"
unit = "user_id"
rows_per_unit_max = {ROWS_DECLARED}
rows_max = 100_000_000

[tables.events.columns]
user_id = {{ type = "key", null = false }}
grp = {{ type = "integer", min = 0, max = {GROUPS - 1}, null = false }}
amount = {real}
flag = {{ type = "integer", min = 0, max = 1 }}
null90 = {real}
null99 = {real}
zero90 = {real}
zero99 = {real}
pareto = {{ type = 'real', min = 0, max = {10 * AMOUNT_MAX}, steps = 100 }}
""",
        encoding="utf-8",
    )


def sql_of(case: str) -> str:
    """What is asked, which means the same to bare DuckDB."""
    value, _, key = CASES[case].partition(" BY ")
    return f"SELECT {key}, {value} AS v FROM events GROUP BY {key}" if key else f"SELECT {value} AS v FROM events"


def cells_of(curator: Curator, bare: duckdb.DuckDBPyConnection, case: str, epsilon: str, draws: int) -> Iterator[tuple[float, ...]]:
    """Truth, mean truth, value and bar of every cell of every answer."""
    sql = sql_of(case)
    found = bare.execute(sql).fetchall()
    truths = {row[:-1]: float(row[-1] or 0.0) for row in found}
    scale = statistics.fmean(truths.values())
    for _ in range(draws):
        try:
            answer = DataSet(curator).ask(sql, epsilon=epsilon, confidence=CONFIDENCE)
        except Refused as refused:
            show(f"{case}: {refused.code}")
            return
        for place, row in enumerate(answer.table.to_pylist()):
            bar, key = answer.intervals["v"][place], (row["grp"],) if "grp" in row else ()
            if bar is not None and row["v"] is not None:
                yield truths.get(key, 0.0), scale, float(row["v"]), float(bar.lo), float(bar.hi)


def measured(
    units: int, account: str, cases: Sequence[str], epsilons: Sequence[str], answers: int, *, data_sets: int | None = None
) -> list[Cell]:
    """All cells of one number of units and account."""
    cells, sets = [], data_sets or DATA_SETS.get(units, 3)
    for number in range(sets):
        with tempfile.TemporaryDirectory() as scratch:
            directory = Path(scratch)
            write(directory, units=units, account=account, seed=number)
            bare = duckdb.connect()
            bare.execute(f"CREATE VIEW events AS SELECT * FROM '{directory}/events.parquet'")
            with Curator(directory, home=directory / "registry") as curator:
                curator.prepare(accept_losses=False)
                make_repeatable(curator)
                for epsilon in epsilons:
                    for case in cases:
                        found = cells_of(curator, bare, case, epsilon, -(-answers // sets))
                        cells += [Cell(account, units, epsilon, case, *each) for each in found]
    return cells


def figures(cells: Sequence[Cell]) -> tuple[float, float, float]:
    """Share covered, median length of bars and median error, both over the truth of a mean cell."""
    slack = 1e-9
    covered = [cell.lo - slack * (1 + cell.truth) <= cell.truth <= cell.hi + slack * (1 + cell.truth) for cell in cells]
    lengths = [(cell.hi - cell.lo) / max(abs(cell.scale), 1e-9) for cell in cells]
    errors = [abs(cell.value - cell.truth) / max(abs(cell.scale), 1e-9) for cell in cells]
    return statistics.fmean(covered), statistics.median(lengths), statistics.median(errors)


def grouped(cells: Sequence[Cell], *by: str) -> dict[tuple[str, ...], list[Cell]]:
    """Cells by some of their fields, in the order in which those occur."""
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(tuple(str(getattr(cell, name)) for name in by), []).append(cell)
    return groups


def report(cells: Sequence[Cell], before: Sequence[Cell] | None, *by: str) -> None:
    """A table, of one run or of two beside each other."""
    old = {} if before is None else grouped(before, *by)
    rows = []
    for key, group in grouped(cells, *by).items():
        now, then = figures(group), figures(old[key]) if key in old else None
        row = [*key, f"{len(group):,}"]
        for number, (figure, style) in enumerate(zip(now, (".1%", ".3g", ".3g"), strict=True)):
            row += [format(then[number], style)] if then else []
            row += [format(figure, style)]
        rows.append(row)
    names = ("coverage", "length", "error")
    head = [*by, "cells", *(each for name in names for each in ((f"{name} before", name) if old else (name,)))]
    table(f"**By {', '.join(by)}**", head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--units", type=int, nargs="+", default=list(UNITS))
    parser.add_argument("--epsilon", nargs="+", default=list(EPSILONS))
    parser.add_argument("--account", nargs="+", choices=ACCOUNTS, default=list(ACCOUNTS))
    parser.add_argument("--case", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--answers", type=int, default=ANSWERS)
    parser.add_argument("--json", type=Path, help="also write every cell here")
    parser.add_argument(
        "--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"), help="measure nothing: show two runs beside each other"
    )
    parser.add_argument("--by", nargs="+", action="append", choices=("account", "units", "epsilon", "case"))
    options = parser.parse_args()
    before = None
    if options.compare is not None:
        before, cells = ([Cell(**each) for each in json.loads(path.read_text(encoding="utf-8"))] for path in options.compare)
    else:
        cells, started = [], time.monotonic()
        for account in options.account:
            for units in options.units:
                cells += measured(units, account, options.case, options.epsilon, options.answers)
                show(f"{account}, {units:,} units: {time.monotonic() - started:.0f} s")
                if options.json is not None:
                    options.json.write_text(json.dumps([asdict(cell) for cell in cells]), encoding="utf-8")
    for by in options.by or [["case"], ["case", "units"], ["case", "epsilon"], ["account"]]:
        report(cells, before, *by)


if __name__ == "__main__":
    main()
