"""Caps chosen from noisy histograms of norms, simulated: coverage, width and error beside those with everything known.

    python -m benchmarks.norm_caps [--repetitions 4] [--share 0.1] [--units 5000 50000] [--by law] [--sums] [--unlike 0.3] [--one-in 8]

No product code but the fit and the choice of the cap takes part, and no data but invented ones. For each law of rows per unit, number of
cells, way of spreading and number of units one table is drawn; for each budget the histogram is noised at its share of the price, the cap
chosen, the clipped cells noised at the rest of the price, and the intervals compared with the unclipped cells. "Known" is the narrowest
interval, and the least error, of any cap at the whole price with the true bias of each cell known.
"""

from __future__ import annotations

import argparse
import itertools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from benchmarks.markdown import table

from lapwing.contribution.clipping_bound import best_cap, bias_bound
from lapwing.contribution.model import NormHistogram, fitted_norms

Generator = np.random.Generator  # noqa: TID251
Floats = npt.NDArray[np.float64]
LARGEST = 1000
"""Rows of a unit, at most."""
VALUE, VALUE_LARGEST = 3_000.0, 10_000
"""In sums: the mean of an exponential value of a row, and the largest."""
DELTA = 1e-9
SCORE = 1.959964
BEYOND = 0.05
LAWS = ("pareto 1.1", "pareto 1.5", "log-normal", "uniform", "extreme")
EPSILONS = (0.1, 0.3, 1.0, 3.0)
CELLS = (1, 5, 24, 300, 2000)
SPREADS = ("one cell", "mixed", "all cells")


@dataclass(frozen=True)
class Table:
    """Entries (unit, cell, value) of a table, and each unit's norm."""

    unit: npt.NDArray[np.int64]
    cell: npt.NDArray[np.int64]
    value: Floats
    norms: Floats
    cells: int

    def clipped(self, cap: float) -> Floats:
        """The cells after clipping each unit."""
        kept = self.value * np.minimum(1.0, cap / self.norms)[self.unit]
        return np.bincount(self.cell, weights=kept, minlength=self.cells).astype(np.float64)


def rows_by_unit(law: str, units: int, random: Generator) -> npt.NDArray[np.int64]:
    """Rows of each unit, from 1 to the largest number."""
    if law.startswith("pareto"):
        drawn = random.uniform(size=units) ** (-1.0 / float(law.split()[1]))
    elif law == "log-normal":
        drawn = np.exp(random.normal(1.0, 1.2, size=units))
    elif law == "uniform":
        drawn = random.integers(1, 21, size=units).astype(float)
    else:
        drawn = random.integers(1, 6, size=units).astype(float)
        drawn[0] = LARGEST
    return np.clip(np.floor(drawn), 1, LARGEST).astype(np.int64)


def drawn_table(
    law: str,
    units: int,
    cells: int,
    spread: str,
    random: Generator,
    *,
    sums: bool = False,
    unlike: float = 0.0,
    rows: npt.NDArray[np.int64] | None = None,
) -> Table:
    """One table: cells are of unequal size; a unit has its rows in one cell, or each row in a cell of its own.

    ``rows`` of each unit may be given instead of drawn. With ``unlike``,
    units at home in some cells have more rows than those in others: by factors with this deviation of their logarithms.
    """
    rows = rows_by_unit(law, units, random) if rows is None else rows
    sizes = random.dirichlet(np.full(cells, 3.0))
    home = random.choice(cells, size=units, p=sizes)
    if unlike:
        rows = np.clip(np.rint(rows * np.exp(random.normal(0.0, unlike, size=cells))[home]), 1, LARGEST).astype(np.int64)
    unit = np.repeat(np.arange(units), rows)
    anywhere = random.choice(cells, size=len(unit), p=sizes)
    roams = {"one cell": np.zeros(units, bool), "all cells": np.ones(units, bool), "mixed": random.uniform(size=units) < 0.5}[spread]
    keys, counts = np.unique(unit * cells + np.where(roams[unit], anywhere, home[unit]), return_counts=True)
    unit, cell, value = keys // cells, keys % cells, counts.astype(float)
    if sums:
        value = np.ceil(np.minimum(random.gamma(value, VALUE), value * VALUE_LARGEST))
    return Table(unit, cell, value, np.sqrt(np.bincount(unit, weights=value**2, minlength=units)), cells)


def unit_noise(epsilon: float) -> float:
    """Standard deviation of Gaussian noise for sensitivity 1 at the whole price."""
    logarithm = math.log(1.0 / DELTA)
    return 1.0 / math.sqrt(2.0) / (math.sqrt(logarithm + epsilon) - math.sqrt(logarithm))


def edges(largest: float = LARGEST) -> list[float]:
    """Square roots of powers of two, up to the largest norm."""
    powers = [2.0 ** (power / 2.0) for power in range(128)]
    return [*(edge for edge in powers if edge < largest), float(largest)]


def results(law: str, units: int, cells: int, spread: str, random: Generator, asked: argparse.Namespace) -> list[dict[str, float | str]]:
    """One row per budget and repetition."""
    share, largest = asked.share, float(LARGEST * VALUE_LARGEST if asked.sums else LARGEST)
    drawn = drawn_table(law, units, cells, spread, random, sums=asked.sums, unlike=asked.unlike)
    truth = drawn.clipped(math.inf)
    bounds = edges(largest)
    caps = [*bounds, *(edge * 2**0.25 for edge in bounds if edge * 2**0.25 < largest)]
    losses = [truth - drawn.clipped(cap) for cap in caps]
    bins = np.bincount(np.searchsorted(np.asarray(bounds), drawn.norms - 1e-9), minlength=len(bounds))
    found: list[dict[str, float | str]] = []
    for epsilon in EPSILONS:
        whole = unit_noise(epsilon)
        known_width = min(2 * SCORE * whole * cap + float(loss.mean()) for cap, loss in zip(caps, losses, strict=True))
        known_error = min(math.sqrt((whole * cap) ** 2 + float((loss**2).mean())) for cap, loss in zip(caps, losses, strict=True))
        for _ in range(asked.repetitions):
            deviation = asked.one_in * whole / math.sqrt(share)
            counted = asked.one_in * random.binomial(bins, 1 / asked.one_in)
            noisy = counted + random.normal(0.0, deviation, size=len(bins))
            fit = fitted_norms(NormHistogram(tuple(bounds), tuple(float(each) for each in noisy), deviation, asked.one_in))
            rest = whole / math.sqrt(1.0 - share)
            choice = best_cap(fit, unit_noise=rest, cells=cells, total_l1=float(truth.sum()) if asked.known_sum else None)
            clipped = drawn.clipped(choice.cap)
            answer = clipped + random.normal(0.0, choice.noise, size=cells)
            added = np.asarray(
                bias_bound(fit, choice, cells=cells, beyond=BEYOND, values=list(answer), extreme=asked.extreme_units * largest)
            )
            low, high = answer - SCORE * choice.noise, answer + SCORE * choice.noise + added
            error = math.sqrt(choice.noise**2 + float(((truth - clipped) ** 2).mean()))
            found.append(
                {
                    "law": law,
                    "units": units,
                    "cells": cells,
                    "spread": spread,
                    "epsilon": epsilon,
                    "covered": float(((low <= truth) & (truth <= high)).mean()),
                    "width": float(np.median(high - low)) / known_width,
                    "error": error / known_error,
                    "cap": choice.cap,
                    "excess": fit.excess(choice.cap) / max(float(np.maximum(drawn.norms - choice.cap, 0).sum()), 1e-9),
                    "excess_covered": float(fit.excess_upper(choice.cap, beyond=BEYOND) >= np.maximum(drawn.norms - choice.cap, 0).sum()),
                }
            )
    return found


def summary(rows: list[dict[str, float | str]], label: str) -> list[str]:
    """One line of the table shown."""
    covered = [float(row["covered"]) for row in rows]
    width, error = [float(row["width"]) for row in rows], [float(row["error"]) for row in rows]
    return [
        label,
        f"{len(rows)}",
        f"{100 * np.mean(covered):.1f}",
        f"{np.median(width):.2f}",
        f"{np.quantile(width, 0.9):.2f}",
        f"{np.median(error):.2f}",
        f"{np.sqrt(np.mean(np.square(error))):.2f}",
        f"{np.quantile(error, 0.9):.2f}",
        f"{100 * np.mean(np.asarray(error) <= 2):.0f}",
        f"{np.median([float(row['excess']) for row in rows]):.2f}",
        f"{100 * np.mean([float(row['excess_covered']) for row in rows]):.0f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=4)
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--extreme-units", type=float, default=1.0)
    parser.add_argument("--units", type=int, nargs="+", default=[5_000, 50_000])
    parser.add_argument("--by", nargs="+", default=["law", "epsilon", "cells", "spread", "units"])
    parser.add_argument("--laws", nargs="+", default=list(LAWS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--known-sum", action="store_true", help="the sum of all cells is known when the cap is chosen")
    parser.add_argument("--sums", action="store_true", help="sums of values instead of counts of rows")
    parser.add_argument("--unlike", type=float, default=0.0, help="units in some cells have more rows than in others")
    parser.add_argument("--one-in", type=int, default=1, help="histograms of a sample of units, about one in so many")
    asked = parser.parse_args()
    random = np.random.default_rng(asked.seed)  # noqa: TID251
    rows = [
        row
        for law, units, cells, spread in itertools.product(asked.laws, asked.units, CELLS, SPREADS)
        if cells > 1 or spread == "one cell"
        for row in results(law, units, cells, spread, random, asked)
    ]
    lines = [summary(rows, "all")]
    for keys in asked.by:
        names = keys.split("+")
        for values in sorted({tuple(row[name] for name in names) for row in rows}, key=str):
            lines.append(
                summary([row for row in rows if tuple(row[name] for name in names) == values], f"{keys} {' '.join(map(str, values))}")
            )
    header = [
        "",
        "runs",
        "covered %",
        "width/known, median",
        "9/10",
        "error/known, median",
        "rms",
        "9/10",
        "% within 2x",
        "excess/true",
        "excess covered %",
    ]
    table("Caps from noisy histograms of norms", header, lines)


if __name__ == "__main__":
    main()
