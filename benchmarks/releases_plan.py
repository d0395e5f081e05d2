"""Planning and estimating of releases: how near to the best, how long it takes, and what a stream of counts costs.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.releases_plan [--parts time,residual,pure,online,trees] [--repetitions 5]

No data set takes part. Counts are invented where any are needed (estimates do not depend on them in time or in variance), noise is normal.

*time*      15 columns, all triples: CPU seconds (`time.process_time`, median of the repetitions) to divide the price, to make a synopsis
            of the noisy tables, and to answer one weighted sum over three columns with its variance (median of 200).
*residual*  The value of the objective with plain marginals over the least possible if residuals were measured, each at a precision of its
            own (closed form for squared errors, repeated with new weights for absolute ones). Beside it: equal shares for the wanted tables
            with the same estimation, and each table by itself. Square roots are taken of squared errors, so that all are ratios of errors.
*pure*      Pure accounts: the same value with shares planned over equal ones, and with the joint table of all columns offered as well.
*online*    4,000 counts over one to three of six columns (16, 7, 15, 5, 2 and 2 bins), drawn from 2,000 distinct ones, each to be within
            1 % of 48,842 rows with probability .999. A count takes a run of at most half of the bins of each of its columns. Then 20
            releases at that price over invented rows, and all counts in each: how many were further off, and how many 95 % intervals held.
*trees*     The standard deviation of a range, root of the mean square over 400 ranges at random, at one price: leaves only, equal levels,
            planned levels.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import NormalDist, median

import numpy as np
import numpy.typing as npt
from benchmarks.markdown import show, table

from lapwing.releases.marginals.precisions import Objective, PriceSplit, price_split, target_price
from lapwing.releases.marginals.synopsis import Axes, MeasuredMarginal, Synopsis
from lapwing.releases.marginals.workload import WorkloadQuery
from lapwing.releases.tree.range_tree import MeasuredLevel, TreeSplit, TreeSynopsis, tree_split, tree_widths

Generator = np.random.Generator  # noqa: TID251
Floats = npt.NDArray[np.float64]

CENSUS = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
CENSUS_16 = (16, 9, 16, 16, 7, 15, 6, 5, 2, 16, 16, 16, 42, 2)
MIXED_15 = (2, 2, 3, 5, 7, 10, 16, 16, 20, 50, 5, 9, 4, 12, 6)
ONLINE, ROWS = (16, 7, 15, 5, 2, 2), 48_842


def sets(columns: int, least: int, most: int) -> list[Axes]:
    return [axes for count in range(least, most + 1) for axes in itertools.combinations(range(columns), count)]


def cells(sizes: Axes, axes: Axes) -> int:
    return math.prod(sizes[axis] for axis in axes)


def seconds(action: Callable[[], object], repetitions: int) -> float:
    taken = []
    for _ in range(repetitions):
        start = time.process_time()
        action()
        taken.append(time.process_time() - start)
    return median(taken)


def released(split: PriceSplit, price: float, random: Generator, counts: Callable[[Axes], Floats] | None = None) -> list[MeasuredMarginal]:
    tables = []
    for axes, variance in zip(split.tables, split.table_variances(price), strict=True):
        noise = random.normal(0.0, math.sqrt(variance), [split.sizes[axis] for axis in axes])
        tables.append(MeasuredMarginal(axes, noise if counts is None else noise + counts(axes), variance))
    return tables


def times(repetitions: int, random: Generator) -> None:
    rows = []
    cases = (
        ("15 columns of 10", (10,) * 15, 3),
        ("15 columns of 16", (16,) * 15, 3),
        ("15 mixed columns", MIXED_15, 3),
        ("census", CENSUS, 3),
    )
    for name, sizes, ways in cases:
        wanted = [WorkloadQuery(axes) for axes in sets(len(sizes), ways, ways)]
        for pure in (False, True):
            planning = seconds(partial(price_split, sizes, wanted, pure=pure), repetitions)
            split = price_split(sizes, wanted, pure=pure)
            tables = released(split, 1.0, random)
            making = seconds(partial(Synopsis, sizes, tables), repetitions)
            synopsis = Synopsis(sizes, tables)
            weights = [
                (axes, random.normal(size=[sizes[axis] for axis in axes])) for axes in random.permutation(sets(len(sizes), 3, 3))[:200]
            ]
            answers = [seconds(partial(synopsis.linear, tuple(map(int, axes)), each), 1) for axes, each in weights]
            total = sum(cells(sizes, axes) for axes in split.tables)
            noise = "Laplace" if pure else "Gaussian"
            rows.append(
                (
                    name,
                    noise,
                    f"{total:,}",
                    f"{planning:.2f}",
                    f"{making:.2f}",
                    f"{1000 * median(answers):.1f}",
                    f"{1000 * max(answers):.0f}",
                )
            )
    table("CPU seconds, all triples", ("columns", "noise", "cells", "plan", "synopsis", "answer, ms", "slowest, ms"), rows)


def residual_best(sizes: Axes, wanted: Sequence[Axes], objective: Objective) -> float:
    """The least value at a price of one if residuals are measured. A precision q of the residual A costs q * prod (1 - 1/n)."""
    parts = sorted({part for axes in wanted for count in range(len(axes) + 1) for part in itertools.combinations(axes, count)})
    number = {part: index for index, part in enumerate(parts)}
    costs = np.array([math.prod(1.0 - 1.0 / sizes[axis] for axis in part) for part in parts])
    coefficients = np.zeros((len(wanted), len(parts)))
    for row, axes in enumerate(wanted):
        for count in range(len(axes) + 1):
            for part in itertools.combinations(axes, count):
                rest = math.prod(sizes[axis] for axis in axes if axis not in part)
                coefficients[row, number[part]] = costs[number[part]] / rest**2
    counts = np.array([float(cells(sizes, axes)) for axes in wanted])
    variances = np.ones(len(wanted))
    for _ in range(1 if objective == "rmse" else 60):
        pull = counts if objective == "rmse" else counts / np.sqrt(variances)
        precisions = np.sqrt(pull @ coefficients / costs)
        precisions *= 2.0 / float(costs @ precisions)
        variances = coefficients @ (1.0 / precisions)
    return valued(counts, np.sqrt(variances), objective)


def valued(counts: Floats, deviations: Floats, objective: Objective) -> float:
    return math.sqrt(float((counts * deviations**2).sum())) if objective == "rmse" else float((counts * deviations).sum())


def residuals() -> None:
    rows = []
    cases = (("census, 16 bins", CENSUS_16), ("census", CENSUS), ("15 columns of 10", (10,) * 15), ("14 binary columns", (2,) * 14))
    for (name, sizes), (least, most) in itertools.product(cases, ((2, 2), (3, 3), (1, 3))):
        wanted = sets(len(sizes), least, most)
        counts = np.array([float(cells(sizes, axes)) for axes in wanted])
        row = [name, "pairs" if most == 2 else "triples" if least == 3 else "up to triples"]
        for objective in ("rmse", "l1"):
            best = residual_best(sizes, wanted, objective)
            split = price_split(sizes, [WorkloadQuery(axes) for axes in wanted], pure=False, objective=objective)
            equal = PriceSplit(sizes, False, tuple(wanted), (1.0 / len(wanted),) * len(wanted), None)
            alone = np.full(len(wanted), math.sqrt(len(wanted) / 2.0))
            row += [
                f"{valued(counts, np.array(split.cell_deviations(wanted, 1.0)), objective) / best:.3f}",
                f"{valued(counts, np.array(equal.cell_deviations(wanted, 1.0)), objective) / best:.3f}",
                f"{valued(counts, alone, objective) / best:.3f}",
            ]
        rows.append(row)
    head = ("columns", "wanted", "squared: planned", "equal", "alone", "absolute: planned", "equal", "alone")
    table("Errors over the least possible with residuals (Gaussian noise)", head, rows)


def pure_accounts() -> None:
    rows = []
    for name, sizes in (("6 columns of the stream", ONLINE), ("census, 16 bins", CENSUS_16), ("6 binary columns", (2,) * 6)):
        wanted = sets(len(sizes), 2, 2)
        asked = [WorkloadQuery(axes) for axes in wanted]
        counts = np.array([float(cells(sizes, axes)) for axes in wanted])
        equal = PriceSplit(sizes, True, tuple(wanted), (1.0 / len(wanted),) * len(wanted), None)
        planned = price_split(sizes, asked, pure=True)
        larger = price_split(sizes, asked, pure=True, further=[tuple(range(len(sizes)))] if len(sizes) < 8 else sets(len(sizes), 3, 3))
        base = valued(counts, np.array(equal.cell_deviations(wanted, 1.0)), "l1")
        rows.append(
            (
                name,
                f"{valued(counts, np.array(planned.cell_deviations(wanted, 1.0)), 'l1') / base:.3f}",
                f"{valued(counts, np.array(larger.cell_deviations(wanted, 1.0)), 'l1') / base:.3f}",
                f"{len(planned.tables)} / {len(larger.tables)}",
            )
        )
    table("Pairs under a pure price: absolute error over that of equal shares", ("columns", "planned", "larger offered", "tables"), rows)


def online(random: Generator) -> None:
    target = 0.01 * ROWS / NormalDist().inv_cdf(1.0 - 0.0005)
    axes_of = sets(6, 1, 3)
    wanted = [WorkloadQuery(axes, bins=tuple(max(1, ONLINE[axis] // 2) for axis in axes)) for axes in axes_of]
    found = target_price(ONLINE, wanted, [target] * len(wanted), pure=False)
    every = [
        WorkloadQuery(axes, bins=bins) for axes in axes_of for bins in itertools.product(*(range(1, ONLINE[axis] + 1) for axis in axes))
    ]
    worst = target_price(ONLINE, every, [target] * len(every), pure=False)
    direct = 1.0 / (2.0 * target**2)
    show("", f"rho {found.price:.5f} (within {found.split.within:.4f} of the least), {len(found.split.tables)} tables, the price of")
    show(f"{found.price / direct:.0f} direct answers; 2,000 distinct ones cost {2000 * direct:.4f}.")
    show(f"Counts of any number of bins: rho {worst.price:.5f}, {len(worst.split.tables)} tables.")
    people = np.stack([random.choice(size, ROWS, p=random.dirichlet(np.ones(size))) for size in ONLINE])

    def marginal(axes: Axes) -> Floats:
        flat = np.ravel_multi_index([people[axis] for axis in axes], [ONLINE[axis] for axis in axes]) if axes else np.zeros(ROWS, int)
        return np.bincount(flat, minlength=cells(ONLINE, axes)).astype(np.float64).reshape([ONLINE[axis] for axis in axes])

    marginals = {axes: marginal(axes) for axes in [(), *axes_of]}
    distinct = []
    for _ in range(2_000):
        axes = axes_of[random.integers(len(axes_of))]
        weights = np.ones([ONLINE[axis] for axis in axes])
        for place, axis in enumerate(axes):
            taken = int(random.integers(1, max(1, ONLINE[axis] // 2) + 1))
            first = int(random.integers(0, ONLINE[axis] - taken + 1))
            kept = np.zeros(ONLINE[axis])
            kept[first : first + taken] = 1.0
            weights = weights * kept.reshape([-1 if place == each else 1 for each in range(len(axes))])
        distinct.append((axes, weights, float((weights * marginals[axes]).sum())))
    asked = [distinct[index] for index in random.integers(0, 2_000, 4_000)]
    missed = held = 0
    for _ in range(20):
        synopsis = Synopsis(ONLINE, released(found.split, found.price, random, lambda axes: marginals[axes]))
        for axes, weights, exact in asked:
            estimate = synopsis.linear(axes, weights)
            missed += abs(estimate.value - exact) > 0.01 * ROWS
            held += abs(estimate.value - exact) <= 1.959964 * estimate.deviation
    show(f"Of 80,000 answers {missed} were off by more than 1 % of the rows; {held / 800:.2f} % of the 95 % intervals held.")


def trees(random: Generator) -> None:
    rows = []
    for leaves, pure in itertools.product((366, 1024, 10_000), (False, True)):
        price = 0.5 if pure else 0.0075
        ranges = [sorted(random.choice(leaves + 1, 2, replace=False).tolist()) for _ in range(400)]
        widths = tree_widths(leaves)
        splits = [
            TreeSplit(leaves, pure, (1,), (1.0,)),
            TreeSplit(leaves, pure, widths, (1.0 / len(widths),) * len(widths)),
            *(tree_split(leaves, pure=pure, branch=branch) for branch in (4, 2, 16)),
        ]
        deviations = []
        for split in splits:
            levels = zip(split.widths, split.level_variances(price), strict=True)
            tree = TreeSynopsis(leaves, [MeasuredLevel(width, np.zeros(-(-leaves // width)), variance) for width, variance in levels])
            deviations.append(math.sqrt(sum(tree.count(first, end).variance for first, end in ranges) / len(ranges)))
        rows.append((f"{leaves:,}", "Laplace, epsilon .5" if pure else "Gaussian, rho .0075", *(f"{each:.1f}" for each in deviations)))
    head = ("leaves", "noise", "leaves only", "equal levels of 4", "planned, 4", "planned, 2", "planned, 16")
    table("Standard deviation of a range", head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="time,residual,pure,online,trees")
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()
    random = np.random.default_rng(1)  # noqa: TID251
    parts: dict[str, Callable[[], None]] = {
        "time": lambda: times(arguments.repetitions, random),
        "residual": residuals,
        "pure": pure_accounts,
        "online": lambda: online(random),
        "trees": lambda: trees(random),
    }
    for part in arguments.parts.split(","):
        parts[part]()


if __name__ == "__main__":
    main()
