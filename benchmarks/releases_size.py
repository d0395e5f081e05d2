"""How long a release takes: planning, measuring, noise, having it again, answering. One process, DuckDB; processor seconds of all threads.

    python -m benchmarks.releases_size --rows 10_000_000 --ways 2        # 14 columns: 91 pairs
    python -m benchmarks.releases_size --rows 10_000_000 --ways 3        # 364 triples
    python -m benchmarks.releases_size --rows 100_000 --cells 5_000_000  # one table of 5 * 10^6 cells: nearly all of it is noise

Made-up rows: one per person, 14 columns with 2 to 20 declared values each (as many as Adult has when it is cut into public bins), drawn
by hashes. The bare engine's time for the same GROUP BYs on the prepared table, in the same run, stands beside the release. "Again" is the
same release once more: found in the ledger, decoded, and a count asked of it.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path

import duckdb

import lapwing

SIZES = (16, 8, 16, 16, 16, 7, 14, 6, 5, 2, 16, 16, 16, 20)
HEAD = """format = 1
[dataset]
id = "sized"
engine = "duckdb"
unit = "person"
neighbours = "unbounded"
units = {rows}
[budget]
epsilon = 100
delta = "2^-40"
ceiling = {{ epsilon = 100 }}
[tables.people]
source = "people.parquet"
unit = "person"
one_row_per_unit = true
rows_max = {rows}
[tables.people.columns]
person = {{ type = "key", null = false }}
"""


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print what a part took, by the clock and by the processors."""
    begun, used = time.perf_counter(), time.process_time()
    yield
    print(f"{what}: {time.perf_counter() - begun:.2f} s, {time.process_time() - used:.2f} processor seconds", flush=True)


def write_people(directory: Path, rows: int, sizes: Sequence[int]) -> None:
    """The rows and their catalogue."""
    columns = ", ".join(f"CAST(hash(i * 31 + {place}) % {size} AS SMALLINT) AS c{place}" for place, size in enumerate(sizes))
    with duckdb.connect() as engine:
        engine.execute(f"COPY (SELECT i AS person, {columns} FROM range({rows}) r(i)) TO '{directory / 'people.parquet'}'")
    declared = "".join(f'c{place} = {{ type = "integer", min = 0, max = {size - 1}, null = false }}\n' for place, size in enumerate(sizes))
    (directory / "lapwing.toml").write_text(HEAD.format(rows=rows) + declared, encoding="utf-8")


def bare(directory: Path, columns: int, ways: int) -> None:
    """The same GROUP BYs on the engine alone, on the table as it is prepared in its own format."""
    with duckdb.connect() as engine:
        engine.execute(f"CREATE TABLE people AS FROM '{directory / 'people.parquet'}'")
        with timed("bare engine, the same GROUP BYs"):
            for keys in combinations(range(columns), ways):
                listed = ", ".join(f"c{key}" for key in keys)
                engine.execute(f"SELECT {listed}, COUNT(*) FROM people GROUP BY {listed}").fetchall()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--ways", type=int, default=2)
    parser.add_argument("--cells", type=int, default=0, help="one table of about so many cells, in the place of marginals")
    asked = parser.parse_args()
    side = round(asked.cells ** (1 / 3))
    sizes = (side, side, side) if asked.cells else SIZES
    ways = 3 if asked.cells else asked.ways
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch) / "sized"
        directory.mkdir()
        write_people(directory, asked.rows, sizes)
        with lapwing.open(directory, home=Path(scratch) / "home") as data_set:
            with timed("prepare"):
                data_set.prepare(accept_losses=True)
            wanted = lapwing.Marginals(*(f"c{place}" for place in range(len(sizes))), ways=ways)
            with timed("plan"):
                plan = data_set.release(wanted, name="sized", epsilon=1)
            print(f"{len(plan.planned.tables)} tables, {plan.planned.cells:,} cells", flush=True)
            with timed("run"):
                bought = plan.run()
            print(f"stored: {len(bought.terms.stored) / 1e6:.1f} MB", flush=True)
            with timed("again, from the ledger"):
                found = data_set.release_named("sized")
            with timed("tables put together"):
                found.query("SELECT COUNT(*) AS n FROM people")
            with timed("a count by two columns"):
                found.query("SELECT c0, c1, COUNT(*) AS n FROM people GROUP BY c0, c1")
        bare(directory, len(sizes), ways)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
