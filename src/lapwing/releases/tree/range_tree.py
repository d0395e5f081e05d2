"""A tree of counts over one ordered axis: ranges of any length from few noisy counts, with exact variances, and quantiles.

Each level cuts the axis into nodes of one width, and is measured as one table. All levels together are solved for the best estimate of each
leaf by one pass up and one pass down, for any number of leaves. The division of the price among levels minimises the mean over all
ranges. With further axes there is a tree for each of their cells.

Post-processing of noisy values and public facts, so nothing here can leak.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lapwing.releases.marginals.precisions import best_shares
from lapwing.releases.marginals.synopsis import VARIANCE_MIN, Floats, LinearEstimate
from lapwing.releases.marginals.workload import NoiseModel

BRANCH = 4
BOUNDARIES_AT_ONCE = 256
Indices: TypeAlias = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class TreeSplit:
    """The levels to measure, widest nodes first, by the number of leaves in a node; each with its share of the price."""

    leaves: int
    pure: bool
    widths: tuple[int, ...]
    shares: tuple[float, ...]

    def level_variances(self, price: float, *, reach: float = 1.0) -> tuple[float, ...]:
        """The variance of the noise of each level's counts, at an epsilon (where pure) or a rho."""
        if not (price > 0.0 and reach > 0.0):
            raise ValueError("a price and a reach are above 0")
        if self.pure:
            return tuple(2.0 * (reach / (share * price)) ** 2 for share in self.shares)
        return tuple(reach * reach / (2.0 * share * price) for share in self.shares)


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredLevel:
    """Noisy counts of the nodes of one width, from the first leaf on (the last node may be narrower), for each cell of further axes.

    The nodes are the last axis of ``counts``.
    """

    width: int
    counts: npt.NDArray[np.float64] | npt.NDArray[np.int64]
    variance: float


@dataclass(frozen=True, slots=True)
class QuantileEstimate:
    """The leaf in which a quantile lies, and the first and the last leaf of its interval."""

    leaf: int
    low: int
    high: int


def tree_widths(leaves: int, *, branch: int = BRANCH) -> tuple[int, ...]:
    """Widths of the nodes of each level, from one node for all leaves down to one for each."""
    if leaves < 1 or branch < 2:
        raise ValueError("a tree has a leaf at least, and branches")
    widths = [1]
    while widths[-1] < leaves:
        widths.append(min(widths[-1] * branch, leaves))
    return tuple(reversed(widths))


def tree_split(leaves: int, *, pure: bool, branch: int = BRANCH) -> TreeSplit:
    """The division of a price among levels that makes the mean variance of a range small, over all ranges of leaves.

    As if the tree were complete: what depends on a level's nodes, and sums to zero within each node of the level above, is then known with
    the precision ``sum over this level and all finer ones of theta * width``.
    """
    widths = tree_widths(leaves, branch=branch)
    nominal = [branch ** (len(widths) - 1 - level) for level in range(len(widths))]
    squares = [_mean_square(leaves, width) for width in nominal]
    coefficients = [square - above for square, above in zip(squares, (0.0, *squares), strict=False)]
    factors = [(level, finer, float(nominal[finer])) for level in range(len(widths)) for finer in range(level, len(widths))]
    model = NoiseModel(
        len(widths), factors, [(0, level, coefficient) for level, coefficient in enumerate(coefficients)], np.ones(1), np.ones(1)
    )
    shares, _, _ = best_shares(model, pure=pure, objective="rmse")
    kept = np.flatnonzero(shares)
    return TreeSplit(leaves, pure, tuple(widths[level] for level in kept), tuple(float(shares[level]) for level in kept))


def _mean_square(leaves: int, width: int) -> float:
    """The mean over all ranges of the sum over nodes of (leaves of the node in the range)^2 / width."""
    place = np.arange(leaves, dtype=np.float64)
    before = np.add.accumulate(place + 1.0)
    # Of two leaves x <= y, (x + 1) (leaves - y) ranges hold both. For each y: all x of the same node up to it, those below it twice.
    first = (np.arange(leaves) // width) * width
    below = before - (place + 1.0) - np.where(first > 0, before[first - 1], 0.0)
    held = (leaves - place) * (2.0 * below + place + 1.0)
    return float(np.add.accumulate(held)[-1]) / (0.5 * leaves * (leaves + 1.0)) / width


class TreeSynopsis:
    """The joint estimate from the levels of a tree. The finest level, of single leaves, must be among them."""

    def __init__(self, leaves: int, levels: Sequence[MeasuredLevel]) -> None:
        ordered = sorted(levels, key=lambda level: -level.width)
        widths = [level.width for level in ordered]
        if not widths or widths[-1] != 1 or len(set(widths)) != len(widths) or leaves < 1:
            raise ValueError("the leaves are measured, and no level twice")
        if any(wide % narrow and wide < leaves for wide, narrow in pairwise(widths)):
            raise ValueError("nodes of a level are cut into whole nodes of the next")
        if any(not (level.variance >= 0.0 and math.isfinite(level.variance)) for level in ordered):
            raise ValueError("a variance is a number from 0")
        self.leaves = leaves
        shape = np.shape(ordered[-1].counts)[:-1]
        # A node for all leaves is above all levels; if it was not measured, it carries no information.
        measured = ordered if widths[0] >= leaves else [MeasuredLevel(leaves, np.zeros((*shape, 1)), math.inf), *ordered]
        self._starts: list[Indices] = [np.arange(0, leaves, level.width, dtype=np.intp) for level in measured]
        if any(np.shape(level.counts) != (*shape, len(starts)) for level, starts in zip(measured, self._starts, strict=True)):
            raise ValueError("counts of a level are those of its nodes")
        self._precisions = [1.0 / max(level.variance, VARIANCE_MIN) for level in measured]
        self._parents = [np.searchsorted(above, starts, side="right") - 1 for above, starts in pairwise(self._starts)]
        self._children = [np.searchsorted(starts, above, side="left") for above, starts in pairwise(self._starts)]
        self._inverse, self._shrunk = self._inverses()
        seen = np.zeros((*shape, leaves))
        for level, starts, precision in zip(measured, self._starts, self._precisions, strict=True):
            counts = np.asarray(level.counts, dtype=np.float64)
            seen += np.repeat(precision * counts, np.diff(starts, append=leaves), axis=-1)
        self._levels = tuple(ordered)
        self._estimate = self._solved(seen)

    def leaf_counts(self) -> Floats:
        """The best estimate of each leaf, along the last axis; sums of it are the best estimates of sums."""
        return self._estimate

    def linear(self, weights: npt.NDArray[np.float64]) -> LinearEstimate:
        """The sum of the leaves, each times its weight, with its exact variance. Of a tree without further axes."""
        self._require_one()
        if weights.shape != (self.leaves,):
            raise ValueError("a weight for each leaf")
        return LinearEstimate(float(weights @ self._estimate), self.covariance(weights, weights))

    def covariance(self, first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> float:
        """The covariance of two weighted sums of leaves."""
        return float(first @ self._solved(np.asarray(second, dtype=np.float64)))

    def count(self, first: int, end: int) -> LinearEstimate:
        """The count of the leaves from ``first`` up to ``end``, exclusive."""
        if not 0 <= first <= end <= self.leaves:
            raise ValueError("a range of leaves")
        weights = np.zeros(self.leaves)
        weights[first:end] = 1.0
        return self.linear(weights)

    def summed(self, weights: npt.NDArray[np.float64]) -> TreeSynopsis:
        """One tree from those of all cells of the further axes, each times its weight (of the shape of these axes)."""
        squares = float(np.vdot(weights, weights))
        axes = weights.ndim
        return TreeSynopsis(
            self.leaves,
            [
                MeasuredLevel(
                    level.width, np.tensordot(weights, np.asarray(level.counts, dtype=np.float64), axes), level.variance * squares
                )
                for level in self._levels
            ],
        )

    def quantile(self, fraction: float, *, confidence: float = 0.95) -> QuantileEstimate:
        """The leaf that holds the quantile: at most this fraction of all lies before it, and at least that much up to its end.

        A leaf is in the interval unless it is shown that too much lies before it, or too little up to its end. Of the true leaf each of the
        two is shown by mistake with half of what the confidence leaves, at most.
        """
        self._require_one()
        if not (0.0 < fraction < 1.0 and 0.0 < confidence < 1.0):
            raise ValueError("a fraction and a confidence are between 0 and 1")
        excess = np.concatenate(([0.0], np.add.accumulate(self._estimate)))
        excess -= fraction * excess[-1]
        reach = NormalDist().inv_cdf(0.5 + confidence / 2.0) * np.sqrt(np.maximum(self._before_variances(fraction), 0.0))
        possible = np.flatnonzero((excess[:-1] <= reach[:-1]) & (excess[1:] >= -reach[1:]))
        reached = np.flatnonzero(excess[1:] >= 0.0)
        # Estimates may rise and fall: take the middle of all crossings from below.
        crossings = np.flatnonzero((excess[:-1] < 0.0) & (excess[1:] >= 0.0))
        leaf = int(crossings[len(crossings) // 2]) if len(crossings) else int(reached[0]) if len(reached) else self.leaves - 1
        low, high = (int(possible[0]), int(possible[-1])) if len(possible) else (leaf, leaf)
        return QuantileEstimate(leaf, min(low, leaf), max(high, leaf))

    def boundary_variances(self, fraction: float, kept: npt.NDArray[np.bool_]) -> Floats:
        """For each boundary between leaves, both ends too: the variance of (what lies before it - the fraction of all), of kept leaves."""
        if bool(kept.all()):
            return self._before_variances(fraction)
        boundary, leaf = np.arange(self.leaves + 1), np.arange(self.leaves)
        found = np.zeros(self.leaves + 1)
        for start in range(0, self.leaves + 1, BOUNDARIES_AT_ONCE):
            some = boundary[start : start + BOUNDARIES_AT_ONCE, None]
            weights = np.where(kept, (leaf < some) - fraction, 0.0)
            found[start : start + BOUNDARIES_AT_ONCE] = np.einsum("ij,ij->i", weights, self._solved(weights))
        return found

    def _require_one(self) -> None:
        if self._estimate.ndim != 1:
            raise ValueError("there are several trees: sum them up first")

    def _inverses(self) -> tuple[list[Floats], list[Floats]]:
        """For each node, ``1' K^-1 1`` of its leaves (what is left open of their sum by the levels from the node downwards), and by which
        factor the node's own count makes that smaller."""
        inverse: list[Floats] = [np.full(self.leaves, 1.0 / self._precisions[-1])]
        shrunk: list[Floats] = []
        for precision, children in zip(self._precisions[-2::-1], self._children[::-1], strict=True):
            below = np.add.reduceat(inverse[0], children)
            shrunk.insert(0, 1.0 / (1.0 + precision * below))
            inverse.insert(0, below * shrunk[0])
        return inverse, shrunk

    def _solved(self, right: Floats) -> Floats:
        """``K^-1 right`` along the last axis, where K is the sum over levels of precision times (sums of leaves, and back)."""
        finest = self._precisions[-1]
        sums: list[Floats] = [right / finest]
        for level in range(len(self._precisions) - 2, -1, -1):
            below = np.add.reduceat(sums[0], self._children[level], axis=-1)
            sums.insert(0, below * self._shrunk[level])
        taken = self._precisions[0] * sums[0] if len(sums) > 1 else np.zeros_like(sums[0])
        for level in range(1, len(sums)):
            taken = taken[..., self._parents[level - 1]]
            if level < len(sums) - 1:
                taken = taken + self._precisions[level] * (sums[level] - taken * self._inverse[level])
        return np.asarray((right - taken) / finest, dtype=np.float64)

    def _before_variances(self, fraction: float) -> Floats:
        """For each boundary between leaves, both ends too: the variance of (what lies before it - the fraction of all)."""
        # Of the leaves of a node before the boundary: with all (b) and with themselves (c), by the same passes. A boundary lies in the node
        # of the leaf that follows it; before that leaf there is nothing of the leaf itself.
        node = np.arange(self.leaves)
        mixed, square = np.zeros(self.leaves), np.zeros(self.leaves)
        for level in range(len(self._precisions) - 2, -1, -1):
            inverse, precision = self._inverse[level + 1], self._precisions[level]
            before = np.concatenate(([0.0], np.add.accumulate(inverse)))
            parent = self._parents[level][node]
            whole = before[node] - before[self._children[level][parent]]
            mixed, square = mixed + whole, square + whole
            shrunk = self._shrunk[level][parent]
            square = square - precision * mixed * mixed * shrunk
            mixed = mixed * shrunk
            node = parent
        every = float(self._inverse[0][0])
        variances = square - 2.0 * fraction * mixed + fraction * fraction * every
        return np.append(variances, (1.0 - fraction) ** 2 * every)
