"""How long a preview takes: from the text of a statement to its certified plan and price, in a warm process.

    python -m benchmarks.preview [--repeats 20]

Method. The demonstration data set with 2,000 patients (a preview reads no rows, so their number does not matter), prepared once; each
statement is explained ``--repeats`` times after one unmeasured time, wall clock of one process. Printed: median and worst per statement.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import lapwing as lw
from lapwing.demo import write_demo

STATEMENTS = (
    "SELECT COUNT(*) FROM visits",
    "SELECT COUNT(cost), SUM(cost), AVG(cost) FROM visits",
    "SELECT region, COUNT(*) AS n FROM patients GROUP BY region",
    "SELECT sex, smoker, COUNT(*) AS n, AVG(income) FROM patients GROUP BY sex, smoker",
    "SELECT drug, COUNT(*) AS n FROM prescriptions GROUP BY drug ORDER BY n DESC LIMIT 20",
    "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) FROM visits GROUP BY 1 ORDER BY 1",
    "SELECT (2025 - birth_year) / 10 * 10 AS decade, COUNT(*) FROM patients GROUP BY decade",
    "SELECT COUNT(*) FROM visits WHERE day BETWEEN DATE '2025-03-01' AND DATE '2025-03-31' AND code IN ('J10', 'J11')",
    "SELECT c.city, COUNT(*) FROM visits v JOIN clinics c ON v.clinic_id = c.clinic_id GROUP BY c.city",
    "SELECT AVG(cost / NULLIF(minutes, 0)) FROM visits",
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch) / "clinic"
        write_demo(directory, patients=2_000)
        with lw.open(directory, home=Path(scratch) / "registry") as data:
            data.prepare()
            medians = [_measure(data, statement, options.repeats) for statement in STATEMENTS]
    print(f"median of medians {statistics.median(medians):.1f} ms, worst median {max(medians):.1f} ms")


def _measure(data: lw.DataSet, statement: str, repeats: int) -> float:
    data.explain(statement)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        data.explain(statement)
        times.append((time.perf_counter() - start) * 1000)
    print(f"{statistics.median(times):7.1f} ms  worst {max(times):7.1f} ms  {statement}")
    return statistics.median(times)


if __name__ == "__main__":
    main()
