"""How long a preview takes: from the text of a statement to its certified plan and price, for every statement of the conformance list.

    python -m benchmarks.preview [--repeats 20] [names ...]

Method. The demonstration data set with 2,000 patients (a preview reads no rows, so their number does not matter), prepared once. Each
answered statement is explained once, the *first* time (nothing about it is cached yet), and then ``--repeats`` times in one warm process.
Refused statements are timed until their refusal. Printed, per statement and over all of them: the first time, the median and the worst,
and the median of the processor's time, which other work on the machine does not lengthen.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
import time
from pathlib import Path

import lapwing as lw
from lapwing.audit.lists.conformance import listed_statements
from lapwing.demo import write_demo
from lapwing.errors import Refused


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch) / "clinic"
        write_demo(directory, patients=2_000)
        with lw.open(directory, home=Path(scratch) / "registry") as data:
            data.prepare()
            data.explain("SELECT COUNT(*) AS warm FROM visits")
            listed = [one for one in listed_statements() if not options.names or one.name in options.names]
            found = [_measure(data, one.name, one.sql, options.repeats) for one in listed]
    firsts, medians, worst, processor = zip(*found, strict=True)
    print(f"{len(found)} statements: first time at most {max(firsts):.1f} ms; then median {statistics.median(medians):.1f} ms,", end=" ")
    print(f"largest median {max(medians):.1f} ms, worst {max(worst):.1f} ms; processor time: largest median {max(processor):.1f} ms")


def _measure(data: lw.DataSet, name: str, statement: str, repeats: int) -> tuple[float, float, float, float]:
    first, _ = _timed(data, statement)
    times, processor = zip(*(_timed(data, statement) for _ in range(repeats)), strict=True)
    shown = " ".join(statement.split())
    figures = (first, statistics.median(times), max(times), statistics.median(processor))
    waited, middle, longest, busy = figures
    print(f"{name}  first {waited:6.1f} ms  median {middle:6.1f}  worst {longest:6.1f}  processor {busy:6.1f}  {shown[:70]}")
    return figures


def _timed(data: lw.DataSet, statement: str) -> tuple[float, float]:
    """Milliseconds by the clock and of the processor."""
    start, busy = time.perf_counter(), time.process_time()
    with contextlib.suppress(Refused):
        data.explain(statement)
    return (time.perf_counter() - start) * 1000, (time.process_time() - busy) * 1000


if __name__ == "__main__":
    main()
