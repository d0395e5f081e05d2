"""What privacy costs the engine: every bounding plan against the same question asked of DuckDB directly.

    python -m benchmarks.bounding_plans                      # 10^7 rows; half a gigabyte of scratch space, some minutes
    python -m benchmarks.bounding_plans --rows 1_000_000 --repetitions 9 --only clipped
    python -m benchmarks.bounding_plans --show-sql           # the statements, and nothing else

Each line is one bare statement and one certified plan, run next to each other, again and again, in one process; the ratio is taken of
the *CPU time of the process, all threads together*, because wall time on a shared machine says more about the neighbours. A plan goes
the way of a real question: catalogue, preparation, certification, rendering, engine, conversion to exact integers. Method and results
are in benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb
from benchmarks.alone import alone
from benchmarks.files import Files, opened, run_bare, write_source
from benchmarks.markdown import megabytes, show, table
from benchmarks.plans import COMPARISONS, Comparison, Period, bare_sql, bounds_after_filter, floor_sql, plan_of
from benchmarks.spent import spent
from benchmarks.visits import catalogue

from lapwing.catalog import parse
from lapwing.catalog.facts import facts as declared_facts
from lapwing.kernel.certify import certify
from lapwing.render.duckdb import DUCKDB
from lapwing.render.queries import render_plan


@dataclass(frozen=True, slots=True)
class Line:
    """CPU seconds of one comparison, one figure per repetition."""

    comparison: Comparison
    bare: tuple[float, ...]
    plan: tuple[float, ...]
    floor: tuple[float, ...]
    """Bare SQL that aggregates per unit and group first; equal to ``bare`` for plans that need no such step."""

    @property
    def ratios(self) -> tuple[float, ...]:
        """Plan to bare, of the runs that were next to each other."""
        return tuple(ours / theirs for ours, theirs in zip(self.plan, self.bare, strict=True))

    @property
    def ratios_to_floor(self) -> tuple[float, ...]:
        """Plan to floor, likewise."""
        return tuple(ours / theirs for ours, theirs in zip(self.plan, self.floor, strict=True))


def compare(files: Files, comparisons: Sequence[Comparison], *, repetitions: int) -> tuple[Line, ...]:
    """Run all comparisons in turn, ``repetitions`` times, after one round that warms caches and is thrown away."""
    times: dict[Comparison, list[tuple[float, float, float]]] = {comparison: [] for comparison in comparisons}
    with opened(files) as (bare, snapshot):
        certified = {comparison: certify(plan_of(comparison), snapshot.facts) for comparison in comparisons}
        for repetition in range(repetitions + 1):
            for comparison in comparisons:
                sides: list[Callable[[], object]]
                sides = [partial(run_bare, bare, bare_sql(comparison)), partial(snapshot.run, certified[comparison])]
                if bounds_after_filter(comparison):
                    sides.append(partial(run_bare, bare, floor_sql(comparison)))
                # Who goes first changes from round to round: the second finds warmer caches.
                order = range(len(sides)) if repetition % 2 else reversed(range(len(sides)))
                cpu = {side: spent(sides[side]).cpu_seconds for side in order}
                if repetition:
                    times[comparison].append((cpu[0], cpu[1], cpu.get(2, cpu[0])))
    return tuple(Line(comparison, *zip(*figures, strict=True)) for comparison, figures in times.items())


def report_preparation(files: Files, *, rows: int) -> None:
    """Time, memory and size of the prepared version beside a plain load of the same rows."""
    bare, ours = alone(files, "load"), alone(files, "prepare")
    sizes = [path.stat().st_size for path in (files.source, files.bare, files.snapshot)]
    body = [["source (Parquet, zstd)", "", "", "", megabytes(sizes[0]), f"{sizes[0] / rows:.1f}"]]
    for name, figures, size in (("plain load", bare, sizes[1]), ("preparation", ours, sizes[2])):
        times = [f"{figures.cpu_seconds:.1f}", f"{figures.wall_seconds:.1f}", megabytes(figures.peak_bytes)]
        body.append([name, *times, megabytes(size), f"{size / rows:.1f}"])
    table(f"Preparation, {rows:,} rows", ["", "CPU s", "wall s", "peak memory MB", "size MB", "bytes per row"], body)


def report_planning(files: Files, comparisons: Sequence[Comparison], *, runs: int = 50) -> None:
    """Time before the engine is asked."""
    certifying, rendering = [], []
    with opened(files) as (_, snapshot):
        for comparison in comparisons:
            plan = plan_of(comparison)
            certified = certify(plan, snapshot.facts)
            certifying.append(statistics.median(spent(lambda: certify(plan, snapshot.facts)).cpu_seconds for _ in range(runs)))  # noqa: B023
            rendering.append(statistics.median(spent(lambda: render_plan(certified, DUCKDB)).cpu_seconds for _ in range(runs)))  # noqa: B023
    show("", f"Slowest plan of these: certified in {max(certifying) * 1000:.1f} ms, rendered in {max(rendering) * 1000:.1f} ms (medians)")


def report_lines(lines: Sequence[Line]) -> None:
    """The main table."""
    body = []
    for line in lines:
        bare, plan = statistics.median(line.bare) * 1000, statistics.median(line.plan) * 1000
        spread = f"{min(line.ratios):.2f} - {max(line.ratios):.2f}"
        floor = f"{statistics.median(line.ratios_to_floor):.2f}" if bounds_after_filter(line.comparison) else ""
        body.append([line.comparison.name, f"{bare:.0f}", f"{plan:.0f}", f"{statistics.median(line.ratios):.2f}", spread, floor])
    head = ["question / plan / period", "bare CPU ms", "plan CPU ms", "ratio", "least - largest ratio", "ratio to floor"]
    table("CPU time of bare statements and of plans, medians", head, body)


def report_memory(files: Files, comparisons: Sequence[Comparison]) -> None:
    """Peak memory of one cold run over the whole year, each in its own process."""
    floor = megabytes(alone(files, "open").peak_bytes)
    body = [["(both files opened, nothing asked)", floor, floor]]
    bare_peaks: dict[str, str] = {}
    for comparison in comparisons:
        if comparison.period is Period.YEAR:
            question = bare_sql(comparison)
            if question not in bare_peaks:
                bare_peaks[question] = megabytes(alone(files, "bare", comparison).peak_bytes)
            ours = megabytes(alone(files, "plan", comparison).peak_bytes)
            body.append([f"{comparison.question.value} / {comparison.style.value}", bare_peaks[question], ours])
    table("Peak memory of a process that runs one statement over the year, MB", ["question / plan", "bare", "plan"], body)


def show_sql(comparisons: Sequence[Comparison], *, rows: int) -> None:
    """The statements of both sides. No data is needed: SQL depends on public facts alone."""
    facts = declared_facts(parse(catalogue(source="visits.parquet", rows=rows)), {}, version=1)
    for comparison in comparisons:
        rendered = render_plan(certify(plan_of(comparison), facts), DUCKDB)
        show(f"-- {comparison.name}", "-- bare", f"{bare_sql(comparison)};", "-- plan", *(f"{query.sql};" for query in rendered), "")


def run(files: Files, comparisons: Sequence[Comparison], *, rows: int, repetitions: int) -> None:
    """The whole benchmark."""
    show(f"DuckDB {duckdb.__version__}, Python {sys.version.split()[0]}, {os.cpu_count()} cores, {repetitions} repetitions")
    write_source(files, rows=rows)
    report_preparation(files, rows=rows)
    report_planning(files, comparisons)
    report_lines(compare(files, comparisons, repetitions=repetitions))
    report_memory(files, comparisons)
    show("", f"load of the machine in the last minutes, in running processes: {', '.join(f'{load:.1f}' for load in os.getloadavg())}")


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="CPU time of the bounding plans on DuckDB, relative to bare SQL.")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--only", default="", help="part of the names of the comparisons to run")
    parser.add_argument("--directory", type=Path, help="keep the files here, and use the source again if it fits")
    parser.add_argument("--show-sql", action="store_true", help="print the statements of both sides and stop")
    arguments = parser.parse_args()
    chosen = [comparison for comparison in COMPARISONS if arguments.only in comparison.name]
    if not chosen:
        parser.error("no comparison has that in its name: " + "; ".join(comparison.name for comparison in COMPARISONS))
    if arguments.show_sql:
        show_sql(chosen, rows=arguments.rows)
        return
    with tempfile.TemporaryDirectory() as scratch:
        directory = arguments.directory or Path(scratch)
        directory.mkdir(parents=True, exist_ok=True)
        run(Files(directory.resolve()), chosen, rows=arguments.rows, repetitions=arguments.repetitions)


if __name__ == "__main__":
    main()
