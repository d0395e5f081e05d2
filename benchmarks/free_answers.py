"""How long a free answer takes: statements bound and answered from released marginals.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.free_answers [--repetitions 9] [--scale 10]

No data set takes part: 100,000 invented rows of 15 columns of 10 to 17 bins, all marginals of up to three columns with normal noise of this
scale. CPU milliseconds (`time.process_time`, median of the repetitions, after a first that is left out) to bind the statement, and to
decide that it is covered and answer it with error bars.
"""

from __future__ import annotations

import argparse
import time
from fractions import Fraction
from itertools import combinations
from statistics import median

import numpy as np

from lapwing.catalog.settings import Settings
from lapwing.kernel.accounting import Account
from lapwing.kernel.domains import Domain, IntegerDomain
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.neighbours import Neighbours
from lapwing.releases.axes import axis_of
from lapwing.releases.serving import ServedAnswer, ServedMarginals, serve
from lapwing.releases.synopsis import MeasuredMarginal
from lapwing.sql import bind

ROWS, COLUMNS = 100_000, 15
DECLARED: dict[str, Domain] = {f"c{i}": IntegerDomain(0, 9 + i % 7, bool(i % 2)) for i in range(COLUMNS)}
FACTS = Facts("s", 1, Neighbours.UNBOUNDED, Account.APPROXIMATE, {"t": TableFacts(DECLARED, 1, 10**7)}, {})
STATEMENTS = (
    "SELECT COUNT(*) AS n FROM t",
    "SELECT c1, COUNT(*) AS n FROM t WHERE c2 BETWEEN 3 AND 7 AND c3 <> 4 GROUP BY c1",
    "SELECT c1, c6, COUNT(*) AS n, AVG(c13) AS a FROM t GROUP BY c1, c6 ORDER BY a DESC LIMIT 10",
    "SELECT c1, SUM(c2) * 1.0 / COUNT(*) AS r FROM t GROUP BY c1",
    "SELECT c1, c6, COUNT(*) AS n FROM t GROUP BY CUBE(c1, c6)",
    "SELECT c1, COUNT(*) * 1.0 / (SELECT COUNT(*) FROM t) AS share FROM t GROUP BY c1",
    "SELECT c1, ROUND(AVG(c2), 1) + COUNT(*) AS x FROM t GROUP BY c1",
    "SELECT c5, c6, c13, COUNT(*) AS n FROM t GROUP BY c5, c6, c13",
)


def invented(scale: float) -> ServedMarginals:
    """Marginals of invented rows, with noise."""
    axes = [axis_of(name, domain) for name, domain in DECLARED.items()]
    draw = np.random.default_rng(1)  # noqa: TID251
    rows = [draw.integers(0, axis.size, ROWS) for axis in axes]
    tables = []
    for ways in range(4):
        for chosen in combinations(range(COLUMNS), ways):
            shape = [axes[axis].size for axis in chosen]
            codes = np.zeros(ROWS, dtype=np.int64)
            for axis in chosen:
                codes = codes * axes[axis].size + rows[axis]
            counts = np.bincount(codes, minlength=int(np.prod(shape, dtype=np.int64))).reshape(shape)
            tables.append(MeasuredMarginal(chosen, counts + np.rint(draw.normal(0, scale, counts.shape)), scale**2))
    return ServedMarginals.of("t", axes, tables)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--scale", type=float, default=10.0)
    given = parser.parse_args()
    marginals = invented(given.scale)
    print("| statement | rows | bind, ms | answer, ms |\n|---|---:|---:|---:|")
    for sql in STATEMENTS:
        times: list[tuple[float, float]] = []
        rows = 0
        for _ in range(given.repetitions + 1):
            start = time.process_time()
            statement = bind(sql, FACTS, settings=Settings(), unit_columns={})
            middle = time.process_time()
            answer = serve(statement, FACTS, marginals, confidence=Fraction(95, 100))
            times.append((middle - start, time.process_time() - middle))
            assert isinstance(answer, ServedAnswer)
            rows = answer.assembled.table.num_rows
        bound, served = (1_000 * median(each[place] for each in times[1:]) for place in (0, 1))
        print(f"| `{sql}` | {rows:,} | {bound:.1f} | {served:.0f} |", flush=True)


if __name__ == "__main__":
    main()
