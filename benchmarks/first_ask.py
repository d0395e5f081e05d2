"""A first ask, all told, beside the same SQL on the bare engine: parsing, planning, norms, both charges, the scan, noise and the answer.

    python -m benchmarks.first_ask                       # about 2 million rows of 440,000 users
    python -m benchmarks.first_ask --users 20000 --rounds 3

CPU time of the whole process (all threads) in one run, in turns with the bare statement on an ordinary DuckDB table of the same rows. The
condition and the price change from round to round, so nothing is replayed. *Again* is the same question at another price, for which norms
are there. The data are those of `price_laws`, `amounts`.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb
from benchmarks.markdown import table
from benchmarks.price_laws import bare, write
from benchmarks.spent import spent

import lapwing

STATEMENTS = {
    "COUNT": "SELECT COUNT(*) AS v FROM events WHERE p <> {p}",
    "SUM": "SELECT SUM(amount) AS v FROM events WHERE p <> {p}",
    "COUNT of the whole table": "SELECT COUNT(*) AS v FROM events",
    "COUNT by region": "SELECT region, COUNT(*) AS v FROM events WHERE p <> {p} GROUP BY region",
    "SUM by region": "SELECT region, SUM(amount) AS v FROM events WHERE p <> {p} GROUP BY region",
    "users by region": "SELECT region, COUNT(DISTINCT user_id) AS v FROM events WHERE p <> {p} GROUP BY region",
    "ten aggregates by region": "SELECT region, COUNT(*) AS a, SUM(amount) AS b, AVG(amount) AS c, SUM(minutes) AS d, AVG(minutes) AS e,"
    " COUNT(DISTINCT user_id) AS f, COUNT_IF(minutes > 30) AS g, SUM(CASE WHEN p < 10 THEN amount ELSE 0 END) AS h,"
    " COUNT_IF(p < 10) AS i, AVG(p) AS j FROM events WHERE p <> {p} GROUP BY region",
    "rows by user and region (bare SQL alone)": "SELECT COUNT(*) FROM (SELECT user_id, region, COUNT(*) AS n FROM events WHERE p <> {p}"
    " GROUP BY user_id, region) t",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=440_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        write(directory, "amounts", asked.users)
        catalogue = directory / "lapwing.toml"
        catalogue.write_text(catalogue.read_text(encoding="utf-8").replace("epsilon = 3\n", "epsilon = 300\n"), encoding="utf-8")
        with bare(directory) as rows, lapwing.open(directory, home=directory / "home") as data_set:
            rows.execute("SET threads = 2")
            data_set.prepare(accept_losses=True)
            lines = [_line(name, sql, rows, data_set, asked.rounds) for name, sql in STATEMENTS.items()]
            (count,) = rows.execute("SELECT COUNT(*) FROM events").fetchone() or (0,)
    table(f"{count:,} rows of {asked.users:,} users, CPU milliseconds", ["statement", "bare", "first", "ratio", "again", "ratio"], lines)


def _fetched(rows: duckdb.DuckDBPyConnection, sql: str) -> None:
    rows.execute(sql).fetchall()


def _paid(data_set: lapwing.DataSet, sql: str, epsilon: str) -> None:
    assert not data_set.ask(sql, epsilon=epsilon).cost.free, "replayed, not asked"


def _line(name: str, sql: str, rows: duckdb.DuckDBPyConnection, data_set: lapwing.DataSet, rounds: int) -> list[str]:
    seconds: dict[str, list[float]] = {"bare": [], "first": [], "again": []}
    for round_number in range(rounds + 1):
        statement = sql.format(p=round_number + 1)
        runs: dict[str, Callable[[], object]] = {"bare": partial(_fetched, rows, statement)}
        if "bare SQL alone" not in name:
            for what, price in (("first", 50 + 2 * round_number), ("again", 51 + 2 * round_number)):
                runs[what] = partial(_paid, data_set, statement, f"0.{price:03d}")
        for what, run in runs.items():
            used = spent(run)
            if round_number:  # one round warms up
                seconds[what].append(used.cpu_seconds)
    bare_seconds, first, again = (statistics.median(seconds[what]) if seconds[what] else 0.0 for what in ("bare", "first", "again"))
    if not first:
        return [name, f"{1000 * bare_seconds:.0f}", "", "", "", ""]
    ratios = (f"{first / bare_seconds:.1f}", f"{again / bare_seconds:.1f}")
    return [name, f"{1000 * bare_seconds:.0f}", f"{1000 * first:.0f}", ratios[0], f"{1000 * again:.0f}", ratios[1]]


if __name__ == "__main__":
    main()
