"""Rank error of several ways to answer quantiles, at the same charge: one, three and nine quantiles of 10^6 skewed values.

    python -m benchmarks.quantiles [--runs 60] [--opendp-runs 3] [--seed 1]

Method. 10^6 log-normal values (median 100,000, sigma 1) on the whole numbers from 0 to 10^6, one row per unit, unbounded neighbours. Error
of a quantile: how many ranks its target lies outside of the ranks that the chosen value has; mean over quantiles and runs. Charges: epsilon
on a pure account, and the rho of the same epsilon (delta 2^-40) on an approximate one; several quantiles share it.

- *recursion*: what Lapwing does, drawn by the kernel's own sampler.
- *one by one*: the exponential mechanism for every quantile at its share of the charge, by the same sampler (on both accounts).
- *OpenDP*: `make_private_quantile` with all 10^6 + 1 candidates, at its share of the charge. A run takes seconds, so its law (the largest
  of the scores with exponential noise on a pure account, with Gumbel noise on an approximate one) is simulated in floats;
  `--opendp-runs` runs the library itself beside it for one quantile.
- *histogram*: a noisy histogram of 16-fold branching, five levels (Laplace or Gaussian noise), read from the root down.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from benchmarks.markdown import show, table

from lapwing.kernel.accounting import Account, budget_for
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.noise.quantile_tree import draw_nearest, draw_quantiles
from lapwing.kernel.quantile_tree import AtShare, QuantileTree, reach
from lapwing.kernel.rank_line import RankLine, Segment, ValueCandidates
from lapwing.planning.quantile_errors import tree_scale
from lapwing.prices import statement_loss

ROWS, TOP, BRANCHES, LEVELS = 10**6, 10**6, 16, 5
DELTA = Fraction(1, 2**40)
EPSILONS = (Fraction(1, 10), Fraction(1))
SHARES = {many: tuple(Fraction(number, many + 1) for number in range(1, many + 1)) for many in (1, 3, 9)}

Integers: TypeAlias = npt.NDArray[np.int64]
Method: TypeAlias = Callable[[tuple[Fraction, ...], Account, Fraction], Sequence[int]]


class Data:
    """The rows in the forms that the methods need."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)  # noqa: TID251
        rows = np.floor(self.rng.lognormal(np.log(100_000), 1, ROWS)).astype(np.int64).clip(0, TOP)
        self.rows: Integers = np.sort(rows)
        values, counts = np.unique(self.rows, return_counts=True)
        self.line = RankLine(values.tolist(), counts.tolist(), lower=0, upper=TOP)
        dense = np.bincount(self.rows, minlength=TOP + 1)
        self.through: Integers = np.cumsum(dense)
        self.below: Integers = self.through - dense
        self.levels = [
            np.pad(dense, (0, BRANCHES**LEVELS - TOP - 1)).reshape(BRANCHES**level, -1).sum(axis=1) for level in range(1, LEVELS + 1)
        ]

    def error(self, value: int, share: Fraction) -> float:
        """Ranks between the target and those of a value."""
        asked = float(share * (ROWS - 1))
        return max(0.0, float(self.below[value]) - asked, asked - float(self.through[value]) + 1)

    def recursion(self, shares: tuple[Fraction, ...], account: Account, loss: Fraction) -> Sequence[int]:
        """All quantiles as one tree."""
        targets = tuple(AtShare(share) for share in shares)
        scale = tree_scale(account, loss=loss, targets=targets, rows_per_unit=1, neighbours=Neighbours.UNBOUNDED, alone=False)
        mechanism = QuantileTree(0, TOP, targets, 1, Neighbours.UNBOUNDED, scale)
        return draw_quantiles(mechanism, self.line, account=account, charged=loss)

    def one_by_one(self, shares: tuple[Fraction, ...], account: Account, loss: Fraction) -> Sequence[int]:
        """Every quantile by itself."""
        found = []
        for share in shares:
            level = 1 + share * (ROWS - 1)
            scale = tree_scale(
                account, loss=loss / len(shares), targets=(AtShare(share),), rows_per_unit=1, neighbours=Neighbours.UNBOUNDED, alone=True
            )
            found.append(draw_nearest(ValueCandidates(Segment.whole(self.line)), level, scale * reach(AtShare(share))))
        return found

    def opendp(self, shares: tuple[Fraction, ...], account: Account, loss: Fraction) -> Sequence[int]:
        """Every quantile by itself, with the law of OpenDP's measurement."""
        found = []
        for share in shares:
            # in ranks: scores move by at most max(share, 1 - share), and the loss of the exponential mechanism is twice that over the scale
            per_level = float(loss) / len(shares) if account is Account.PURE else (8 * float(loss) / len(shares)) ** 0.5
            scale = 2 * float(reach(AtShare(share))) / per_level
            scores = -np.abs((1 - float(share)) * self.below - float(share) * (ROWS - self.through))
            noise = self.rng.exponential(scale, TOP + 1) if account is Account.PURE else self.rng.gumbel(0, scale, TOP + 1)
            found.append(int(np.argmax(scores + noise)))
        return found

    def histogram(self, shares: tuple[Fraction, ...], account: Account, loss: Fraction) -> Sequence[int]:
        """All quantiles from one noisy tree of counts."""
        if account is Account.PURE:
            noisy = [level + self.rng.laplace(0, LEVELS / float(loss), len(level)) for level in self.levels]
        else:
            noisy = [level + self.rng.normal(0, (LEVELS / (2 * float(loss))) ** 0.5, len(level)) for level in self.levels]
        return [self._descended(noisy, float(share)) for share in shares]

    def _descended(self, noisy: list[npt.NDArray[np.float64]], share: float) -> int:
        left, cell = share * float(noisy[0].sum()), 0
        for level in noisy:
            cell *= BRANCHES
            children = level[cell : cell + BRANCHES]
            reached = np.cumsum(children)
            place = min(int(np.searchsorted(np.maximum.accumulate(reached), left)), BRANCHES - 1)
            left -= float(reached[place - 1]) if place else 0.0
            cell += place
        return min(cell, TOP)


def charge(account: Account, epsilon: Fraction) -> Fraction:
    """The loss of a statement at this epsilon."""
    return statement_loss(budget_for(epsilon=Fraction(10), delta=Fraction(0) if account is Account.PURE else DELTA), epsilon)


def measured(
    data: Data, method: Method, shares: tuple[Fraction, ...], account: Account, epsilon: Fraction, *, runs: int
) -> tuple[float, float]:
    """Mean error in ranks, and milliseconds per run."""
    loss, errors = charge(account, epsilon), []
    start = time.process_time()
    for _ in range(runs):
        errors += [data.error(value, share) for value, share in zip(method(shares, account, loss), shares, strict=True)]
    return float(np.mean(errors)), (time.process_time() - start) / runs * 1e3


def library(data: Data, account: Account, epsilon: Fraction, *, runs: int) -> tuple[float, float]:
    """Mean error of OpenDP's own median, and milliseconds per run."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    loss = float(charge(account, epsilon))
    scale = 1 / (loss if account is Account.PURE else (8 * loss) ** 0.5)
    measure: Any = dp.max_divergence() if account is Account.PURE else dp.zero_concentrated_divergence()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.symmetric_distance()
    median = dp.m.make_private_quantile(*space, measure, candidates=list(range(TOP + 1)), alpha=0.5, scale=scale)
    rows = data.rows.tolist()
    start = time.process_time()
    errors = [data.error(median(rows), Fraction(1, 2)) for _ in range(runs)]
    return float(np.mean(errors)), (time.process_time() - start) / runs * 1e3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--opendp-runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    data = Data(options.seed)
    methods: dict[str, Method] = {
        "recursion": data.recursion,
        "one by one": data.one_by_one,
        "OpenDP": data.opendp,
        "histogram": data.histogram,
    }
    lines, times = [], []
    for account in Account:
        for epsilon in EPSILONS:
            for many, shares in SHARES.items():
                found = [measured(data, method, shares, account, epsilon, runs=options.runs) for method in methods.values()]
                name = f"{account.value}, epsilon {float(epsilon):g}, {many} quantile{'s' if many > 1 else ''}"
                lines.append([name, *(f"{error:,.1f}" for error, _ in found)])
                times.append([name, *(f"{ms:,.0f}" for _, ms in found[:2])])
    table("Mean error in ranks, of 10^6 rows", ["charge", *methods], lines)
    table("CPU milliseconds per answer", ["charge", *list(methods)[:2]], times)
    if options.opendp_runs:
        show("")
        for account in Account:
            error, ms = library(data, account, EPSILONS[0], runs=options.opendp_runs)
            show(f"OpenDP itself, median, {account.value}, epsilon 0.1: {error:,.1f} ranks, {ms / 1e3:,.1f} s a run")


if __name__ == "__main__":
    main()
