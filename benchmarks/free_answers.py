"""How long a free answer takes: statements bound and answered from released marginals. And how often its error bars hold.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.free_answers [--repetitions 9] [--scale 10]
    python -m benchmarks.free_answers --coverage 3/8 [--releases 200]    # of rows that count as they are, as the tests have it
    python -m benchmarks.free_answers --weighted 6 [--releases 200]      # of units with many rows, which weigh together

No data set takes part: 100,000 invented rows of 15 columns of 10 to 17 bins, all marginals of up to three columns with normal noise of this
scale. CPU milliseconds (`time.process_time`, median of the repetitions, after a first that is left out) to bind the statement, and to
decide that it is covered and answer it with error bars.

Of units with many rows: 4,000 units with 1 + a geometric number of rows each (5 in the mean), of which a unit counts for two at most: each
of its rows weighs 2 / (its rows), rounded down to a 1,024th. All sets of up to three of five columns are measured with discrete Gaussian
noise of this scale, in rows, drawn on the grid of the weights. Intervals are compared with the weighted counts, which they are for, and
with the plain ones, which they are not.
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
from lapwing.kernel.laws import DiscreteGaussian, loss
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.noise.additive import add_noise
from lapwing.releases.marginals.axes import axis_of
from lapwing.releases.marginals.synopsis import MeasuredMarginal
from lapwing.releases.serving.answers import ServedAnswer, ServedMarginals, serve
from lapwing.spread import variance
from lapwing.sql import bind

ROWS, COLUMNS = 100_000, 15
DECLARED: dict[str, Domain] = {f"c{i}": IntegerDomain(0, 9 + i % 7, bool(i % 2)) for i in range(COLUMNS)}
FACTS = Facts("s", 1, Neighbours.UNBOUNDED, Account.APPROXIMATE, {"t": TableFacts(DECLARED, 1, 10**7)}, {})
UNITS, ROWS_OF_A_UNIT, GRID = 4_000, 2, 1_024
WEIGHTED = (
    "SELECT region, visits, COUNT(*) AS x FROM people WHERE sex = 'F' GROUP BY region, visits",
    "SELECT region, smoker, SUM(visits) AS x, AVG(visits) AS y FROM people GROUP BY region, smoker",
    "SELECT region, COUNT(*) * 1.0 / (SELECT COUNT(*) FROM people) AS x FROM people GROUP BY region",
    "SELECT age // 10 AS a, COUNT(*) FILTER (WHERE sex = 'F') * 1.0 / COUNT(*) AS x FROM people GROUP BY 1",
)
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


def coverage(scale: Fraction, releases: int) -> None:
    """Intervals that held the truth, by what was measured and by kind of statement."""
    from tests.statistical.test_free_answers import MEASURED, held

    for name in MEASURED:
        found = held(DiscreteGaussian(scale), name, releases)
        hits, many = (sum(each[place] for each in found.values()) for place in (0, 1))
        kinds = ", ".join(f"{kind} {100 * one / of:.1f}" for kind, (one, of) in found.items())
        print(f"Gaussian, scale {scale}, {name}: {100 * hits / many:.2f} % of {many:,} ({kinds})", flush=True)


def weighted_coverage(scale: Fraction, releases: int) -> None:
    """The same where a unit counts for two of its rows."""
    from tests.support.release_worlds import AXES, bound, random_rows, sets
    from tests.support.release_worlds import FACTS as PEOPLE

    draw = np.random.default_rng(2)  # noqa: TID251
    sizes = 1 + draw.geometric(0.2, UNITS)
    rows = random_rows(int(sizes.sum()), 11)
    weights = np.repeat(np.minimum(GRID, ROWS_OF_A_UNIT * GRID // sizes), sizes)
    law = DiscreteGaussian(scale * GRID)
    account, charged = Account.APPROXIMATE, loss(law, Account.APPROXIMATE, l1=1, l2_squared=1)

    def marginals(own: np.ndarray[tuple[int, ...], np.dtype[np.int64]], *, noisy: bool) -> ServedMarginals:
        tables = []
        for axes in sets(3, range(5)):
            shape, codes = [AXES[axis].size for axis in axes], np.zeros(rows.bins.shape[1], dtype=np.int64)
            for axis, size in zip(axes, shape, strict=True):
                codes = codes * size + rows.bins[axis]
            counts = np.bincount(codes, own, minlength=int(np.prod(shape, dtype=np.int64)))
            if noisy:
                counts = counts + np.asarray(add_noise(law, [0] * len(counts), account=account, l1=1, l2_squared=1, charged=charged))
            tables.append(MeasuredMarginal(axes, (counts / GRID).reshape(shape), variance(law) / GRID**2 if noisy else 0.0))
        return ServedMarginals.of("people", AXES, tables)

    def answered(released: ServedMarginals, sql: str) -> ServedAnswer:
        answer = serve(bound(sql), PEOPLE, released, confidence=Fraction(95, 100))
        assert isinstance(answer, ServedAnswer)
        return answer

    def exact(released: ServedMarginals, sql: str) -> dict[str, list[float | None]]:
        """Without noise. A count is shown as a whole number, and the middle of its bar is what it is."""
        answer, found = answered(released, sql).assembled, dict[str, list[float | None]]()
        for name, bars in answer.intervals.items():
            pairs = zip(answer.table.column(name).to_pylist(), bars, strict=True)
            found[name] = [(bar.lo + bar.hi) / 2 if isinstance(value, int) and bar is not None else value for value, bar in pairs]
        return found

    weighted, plain = marginals(weights, noisy=False), marginals(np.full(len(weights), GRID), noisy=False)
    truths = {sql: [exact(each, sql) for each in (weighted, plain)] for sql in WEIGHTED}
    hits, many = [0, 0], 0
    for _ in range(releases):
        released = marginals(weights, noisy=True)
        for sql, tables in truths.items():
            for name, bars in answered(released, sql).assembled.intervals.items():
                for place, bar in enumerate(bars):
                    values = [table[name][place] for table in tables]
                    if bar is None or values[0] is None or values[1] is None:
                        continue
                    many += 1
                    for number, value in enumerate(values):
                        hits[number] += value is not None and bar.lo - 1e-9 <= value <= bar.hi + 1e-9
    of_weighted, of_plain = (100 * each / many for each in hits)
    print(f"weighted, scale {scale} rows: {of_weighted:.2f} % of {many:,} hold the weighted values, {of_plain:.1f} % the plain ones")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--coverage", type=Fraction)
    parser.add_argument("--weighted", type=Fraction)
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--scale", type=float, default=10.0)
    given = parser.parse_args()
    if given.coverage is not None:
        return coverage(given.coverage, given.releases)
    if given.weighted is not None:
        return weighted_coverage(given.weighted, given.releases)
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
