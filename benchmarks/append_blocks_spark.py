"""A version on Spark grows by one block of time: CPU of the append beside that of a full preparation.

    python -m benchmarks.append_blocks_spark --rows 10_000_000 --blocks 100

Rows are heavy-tailed: a few persons have many of each block. Every block is a day, and a file of the source; the appended one has as many
rows as each of the others, 1 % of a hundred. CPU is that of this process and of Spark's, all threads, with planning, compiling and garbage
collection; starting Spark is in none of the figures, and a small preparation runs before the first of them.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.markdown import megabytes, table
from pyspark.sql import SparkSession

from lapwing.catalog import Declaration, Settings, load
from lapwing.catalog.blocks import PreparedBlocks
from lapwing.engines.base import BlockWrite, Snapshot, silent
from lapwing.engines.spark import SparkEngine
from lapwing.engines.spark.sessions import LOCAL
from lapwing.kernel.certify import certify
from lapwing.kernel.ir import Cap, Clipped, KnownGroups, Plan, Query, Ranked, RowCount, Scan, Vector
from lapwing.kernel.laws import DiscreteGaussian

FIRST = 19_723
"""The first day: 2024-01-01."""
PERSONS = 1_000_000
PAGES = np.array(["home", "search", "item", "basket", "pay", "help"])
CATALOGUE = """
format = 1
[dataset]
id = "events"
unit = "person"
engine = "spark"
[budget]
epsilon = 3
[blocks]
every = "day"
person_cap = "none"
[tables.events]
source = "events/*.parquet"
unit = "person_id"
blocks = "day"
rows_per_unit_max = 20
rows_max = 100_000_000
[tables.events.columns]
person_id = { type = "key" }
day = { type = "date", min = 2024-01-01, max = 2033-12-31 }
page = { type = "text", values = ["home", "search", "item", "basket", "pay", "help"] }
amount = { type = "real", min = 0, max = 500, steps = 50_000 }
seconds = { type = "integer", min = 0, max = 600 }
"""
RANKING_KEY = b"benchmark" * 3 + b"block"
"""Of any 32 bytes: it orders rows."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one action took."""

    what: str
    cpu_seconds: float
    wall_seconds: float


def write_day(folder: Path, day: int, rows: int) -> None:
    """The rows of one day, the same for the same day and number."""
    generator = np.random.default_rng(day)  # noqa: TID251  (made-up rows, not noise)
    persons = (generator.pareto(1.0, rows) * 1_000).astype(np.int64) % PERSONS
    columns = {
        "person_id": persons,
        "day": pa.array(np.full(rows, FIRST + day, np.int32)).cast(pa.date32()),
        "page": PAGES[generator.integers(0, len(PAGES), rows)],
        "amount": generator.gamma(1.0, 20.0, rows).round(2),
        "seconds": generator.integers(0, 600, rows),
    }
    pq.write_table(pa.table(columns), folder / f"{day:05d}.parquet")


def spark(memory: str) -> SparkSession:
    """Two threads, eight partitions."""
    builder = SparkSession.builder.master("local[2]")
    for name, value in {**LOCAL, "spark.driver.memory": memory, "spark.sql.shuffle.partitions": "8"}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


class Clock:
    """CPU of this process and of the Java that its session runs in."""

    def __init__(self, session: SparkSession) -> None:
        java = session.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
        self._stat = Path(f"/proc/{java}/stat")
        self.measured: list[Measured] = []

    def _cpu(self) -> float:
        fields = self._stat.read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + time.process_time()

    def time(self, what: str, action: Callable[[], object]) -> Measured:
        """Run an action once and note what it took."""
        cpu, wall = self._cpu(), time.perf_counter()
        action()
        found = Measured(what, self._cpu() - cpu, time.perf_counter() - wall)
        self.measured.append(found)
        print(f"{what}: {found.cpu_seconds:.2f} s of CPU, {found.wall_seconds:.2f} s", flush=True)
        return found


def counted(snapshot: Snapshot, days: int, *, clipped: bool) -> None:
    """Rows of the last days, with each person's clipped or as they are ranked."""
    held = snapshot.facts.tables["events"]
    assert held.blocks is not None
    scan = Scan("events", 20, held.blocks_between(held.blocks[1] - days + 1, held.blocks[1]))
    law = DiscreteGaussian(Fraction(100))
    vector = Vector("n", RowCount(), law, Cap(2**20)) if clipped else Vector("n", RowCount(), law)
    query = Query(scan, (), KnownGroups(((),)), Clipped(20) if clipped else Ranked(), (vector,))
    snapshot.run(certify(Plan((query,)), snapshot.facts))


def run(directory: Path, *, rows: int, blocks: int, memory: str) -> None:
    """Prepare ``blocks`` days of ``rows`` in all, then append, correct and drop a day."""
    source = directory / "events"
    source.mkdir()
    for day in range(blocks):
        write_day(source, day, rows // blocks)
    (directory / "lapwing.toml").write_text(CATALOGUE, encoding="utf-8")
    declaration: Declaration = load(directory / "lapwing.toml")
    session = spark(memory)
    clock, engine = Clock(session), SparkEngine(directory / ".lapwing", Settings(), session=session)
    last = FIRST + blocks - 1

    def prepare(version: int, held: PreparedBlocks) -> None:
        engine.prepare(declaration, CATALOGUE, version=version, ranking_key=RANKING_KEY, progress=silent, blocks=held)

    def write(block: int, after: PreparedBlocks) -> None:
        engine.write_blocks(2, BlockWrite(declaration, (block, block), after, RANKING_KEY))

    prepare(1, PreparedBlocks(FIRST, FIRST + 1))
    full = clock.time(f"full preparation of {blocks} blocks", lambda: prepare(2, PreparedBlocks(FIRST, last)))
    write_day(source, blocks, rows // blocks)
    append = clock.time("append of a block", lambda: write(last + 1, PreparedBlocks(FIRST, last + 1)))
    write_day(source, blocks + 1, rows // blocks)
    clock.time("append of one more", lambda: write(last + 2, PreparedBlocks(FIRST, last + 2)))
    corrected = PreparedBlocks(FIRST, last + 2).with_corrections(FIRST, FIRST)
    clock.time("correction of the first block", lambda: write(FIRST, corrected))
    clock.time("late rows", lambda: engine.late_rows(declaration, 2))
    opened: list[Snapshot] = []
    clock.time("open", lambda: opened.append(engine.open(2, ranking_key=RANKING_KEY)))
    for days in (1, 30, blocks):
        for clipped in (False, True):
            ask = partial(counted, opened[0], days, clipped=clipped)
            how = f"{'clipped' if clipped else 'ranked'} count of {days} blocks"
            clock.time(f"{how}, first time", ask)
            clock.time(f"{how}, again", ask)
    size = sum(path.stat().st_size for path in (directory / ".lapwing" / "v000002.spark").rglob("*.parquet"))
    share = f"{append.cpu_seconds / full.cpu_seconds:.1%}"
    listed = [
        [item.what, f"{item.cpu_seconds:.2f}", f"{item.wall_seconds:.2f}", f"{item.cpu_seconds / full.cpu_seconds:.1%}"]
        for item in clock.measured
    ]
    title = f"{rows:,} rows, {megabytes(size)} MB prepared; an append takes {share} of the CPU of a full preparation"
    table(title, ["", "CPU, s", "wall, s", "of the full preparation"], listed)


def main() -> None:
    """Run at the size that the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--blocks", type=int, default=100)
    parser.add_argument("--memory", default="4g", help="of Spark's driver")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        run(Path(scratch), rows=arguments.rows, blocks=arguments.blocks, memory=arguments.memory)


if __name__ == "__main__":
    main()
