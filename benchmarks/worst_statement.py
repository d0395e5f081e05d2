"""The worst that one unit's rows can do to the engine: statements made to fan out, with and without the one unit they look at.

    python -m benchmarks.worst_statement                        # 1,000 statements, each on both worlds; half an hour
    python -m benchmarks.worst_statement --statements 100

Of the statements that are accepted each is run on a world that has the unit (1,000 rows with the longest text) and on one that has not, in
a prepared version with the limits of ``Settings``. Time is that of the processor, all threads together, and on the wall; peak memory is
that of the process, reset before each run. A fault of the engine would be an incident: there must be none.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from lapwing.audit.runs import RANKING_KEY
from lapwing.catalog import Settings
from lapwing.engines.base import Snapshot
from lapwing.engines.duckdb import DuckDBSnapshot
from lapwing.engines.duckdb.prepare import prepare_snapshot
from lapwing.errors import Incident, Refused
from lapwing.kernel.certify import Certified
from lapwing.kernel.facts import Facts
from lapwing.kernel.workload import unit_work
from tests.attacks.bombs import UNIT_COLUMNS, Bombs, declare
from tests.support.sql_shapes import MANY_ROWS, SqlShape


@dataclass(frozen=True, slots=True)
class Run:
    """One statement on one world."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    fault: bool


@dataclass(frozen=True, slots=True)
class Line:
    """One accepted statement: what one unit can do in it, and what it did."""

    sql: str
    rows: int
    work: int
    without: Run
    with_unit: Run

    @property
    def extra_seconds(self) -> float:
        """Processor time that the unit costs: wall time on a shared machine says more about the neighbours."""
        return self.with_unit.cpu_seconds - self.without.cpu_seconds


def accepted(text: str, facts: Facts, epsilon: Fraction) -> Certified | None:
    """The certified plan of a statement, or None where it is refused."""
    try:
        return SqlShape(text, epsilon, MANY_ROWS, UNIT_COLUMNS).planned(facts).measured
    except Refused:
        return None


def run_once(snapshot: Snapshot, certified: Certified) -> Run:
    """Time and peak memory of one run."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    started, spent, fault = time.perf_counter(), time.process_time(), False
    try:
        snapshot.run(certified)
    except Incident:
        fault = True
    return Run(time.perf_counter() - started, time.process_time() - spent, _peak(), fault)


def _peak() -> int:
    status = Path("/proc/self/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1_024


def prepared(folder: Path, *, target: bool) -> Snapshot:
    """One of the worlds, as a user has it: a file, opened read-only and locked down, with the limits of the settings."""
    declaration = declare(folder, target=target)
    path = folder / "version.duckdb"
    text = (folder / "lapwing.toml").read_text()
    prepare_snapshot(declaration, text, path, version=1, ranking_key=RANKING_KEY, settings=Settings())
    return DuckDBSnapshot(path, ranking_key=RANKING_KEY, settings=Settings())


def search(count: int, seed: int) -> tuple[list[Line], int]:
    """Every accepted statement of so many, on both worlds; and how many were refused."""
    lines: list[Line] = []
    refused = 0
    with tempfile.TemporaryDirectory() as scratch:
        w0, w1 = prepared(Path(scratch) / "w0", target=False), prepared(Path(scratch) / "w1", target=True)
        for number, text in enumerate(Bombs(seed).statements(count)):
            epsilon = Fraction(10**6) if number % 2 else Fraction(1, 100)
            plans = [accepted(text, world.facts, epsilon) for world in (w0, w1)]
            if plans[0] is None or plans[1] is None:
                assert plans == [None, None], "a refusal depends on the world"
                refused += 1
                continue
            rows = max(query.shape.widest for query in plans[0].queries)
            work = sum(unit_work(query.query, query.shape) for query in plans[0].queries)
            lines.append(Line(text, rows, work, run_once(w0, plans[0]), run_once(w1, plans[1])))
            print(f"{number:5d} {lines[-1].extra_seconds:7.3f} s more, {rows:7,} rows, {work:13,} parts", file=sys.stderr)
    return lines, refused


def main() -> None:
    """Print the worst."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--statements", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=12)
    arguments = parser.parse_args()
    lines, refused = search(arguments.statements, arguments.seed)
    faults = sum(run.fault for line in lines for run in (line.without, line.with_unit))
    print(f"{arguments.statements} statements: {len(lines)} accepted, {refused} refused, {faults} faults of the engine")
    for name, key in (("time", lambda line: line.extra_seconds), ("memory", lambda line: line.with_unit.peak_bytes)):
        print(f"\nworst by {name}")
        for line in sorted(lines, key=key, reverse=True)[:5]:
            seconds = (
                f"{line.without.cpu_seconds:.3f} s without, {line.with_unit.cpu_seconds:.3f} s with (wall {line.with_unit.seconds:.3f})"
            )
            peaks = f"{line.without.peak_bytes / 2**20:.0f} and {line.with_unit.peak_bytes / 2**20:.0f} MiB"
            print(f"  {seconds}; {peaks}; {line.rows:,} rows, {line.work:,} parts: {line.sql[:160]}")


if __name__ == "__main__":
    main()
