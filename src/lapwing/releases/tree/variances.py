"""The variances of sums over a tree of counts, for all groups of an answer at once. Public facts only.

The least squares of a tree have the covariance K^-1. Node by node it is that of its children less one product (Sherman and Morrison), so
for sums w and v over the leaves

    Cov(w, v) = <w, v> * (variance of a leaf's own noise) - sum over nodes above the leaves of theta * shrunk * u(w) * u(v),

where u(w), of a node, adds up w times a factor of each leaf: what the levels between the leaf and the node leave of it. Cells of further
axes have trees of their own with the same K; NULL is beside the tree, counted once with each level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lapwing.releases.marginals.synopsis import VARIANCE_MIN
from lapwing.releases.marginals.variances import DENSE_MAX, SMOOTH, Axes, Floats, GroupedSums, Whole


@dataclass(frozen=True, slots=True)
class TreeLevel:
    """A measured level: leaves of a node, and the variance of the noise of one of its counts."""

    width: int
    variance: float


@dataclass(frozen=True, slots=True, eq=False)
class _Nodes:
    """The nodes of one level above the leaves."""

    node: Whole
    """The number of the node of each leaf; of NULL, one more."""
    count: int
    factor: Floats
    """What is left of each leaf below this level; 0 for NULL."""
    taken: Floats
    """theta * shrunk of each node."""


class TreeSpreads:
    """Variances of what is read off a tree over the last of some axes, which has ``leaves`` bins, and one for NULL where it is larger."""

    def __init__(self, sizes: Sequence[int], leaves: int, levels: Sequence[TreeLevel]) -> None:
        self.sizes = tuple(sizes)
        nulls = self.sizes[-1] - leaves
        ordered = sorted(levels, key=lambda level: level.width)
        precisions = [1.0 / max(level.variance, VARIANCE_MIN) for level in ordered]
        if nulls not in (0, 1) or not ordered or ordered[0].width != 1:
            raise ValueError("the last axis has leaves, which are measured, and at most one bin more")
        inverse = np.full(leaves, 1.0 / precisions[0])
        factor = inverse.copy()
        self._own = np.append(inverse, np.full(nulls, 1.0 / math.fsum(precisions)))
        self._nodes: list[_Nodes] = []
        for below, level, precision in zip(ordered, ordered[1:], precisions[1:], strict=False):
            node = np.arange(leaves) // level.width
            count = int(node[-1]) + 1
            open_sums = np.bincount(np.arange(0, leaves, below.width) // level.width, inverse, minlength=count)
            shrunk = 1.0 / (1.0 + precision * open_sums)
            beside = np.full(nulls, count)
            self._nodes.append(
                _Nodes(np.append(node, beside), count + nulls, np.append(factor, beside * 0.0), np.append(precision * shrunk, beside * 0.0))
            )
            inverse, factor = open_sums * shrunk, factor * shrunk[node]
        self._with_all = self._own.copy()
        """The covariance of each leaf with the sum of all."""
        for nodes in self._nodes:
            whole = np.bincount(nodes.node, nodes.factor, minlength=nodes.count)
            self._with_all -= nodes.factor * (nodes.taken * whole)[nodes.node]

    def variances_of(self, sums: GroupedSums) -> tuple[Floats, Floats]:
        """Of the sum of each group: its variance, and as much of it as is known to smear the grid of whole numbers.

        That is all of it where all sums spread over many steps; else nothing, which makes bars half a step longer than they need be.
        """
        whole = np.maximum(self.covariance(sums, sums), 0.0)
        return whole, whole if np.all(whole >= (SMOOTH * sums.largest()) ** 2) else np.zeros(sums.groups)

    def covariance(self, first: GroupedSums, second: GroupedSums) -> Floats:
        """Group by group, of sums over the same cells and groups."""
        cells = _Cells(self.sizes, first)
        one, other = first.weights.ravel()[cells.kept], second.weights.ravel()[cells.kept]
        times = self._apart(first.axes, first.axes)
        if not cells.leaves:
            return _summed(cells.group, one * other, first.groups) * (times * float(np.sum(self._with_all)))
        found = _summed(cells.group, one * other * self._own[cells.leaf], first.groups)
        for level in self._nodes:
            length, most = first.groups * cells.apart * level.count, max(DENSE_MAX, 2 * len(cells.group))
            codes = (cells.group * cells.apart + cells.cell) * level.count + level.node[cells.leaf]
            present, places = (np.arange(length), codes) if length <= most else np.unique(codes, return_inverse=True)
            factor = level.factor[cells.leaf]
            sums = _summed(places, one * factor, len(present))
            product = sums * (sums if second is first else _summed(places, other * factor, len(present)))
            found -= _summed(present // (level.count * cells.apart), level.taken[present % level.count] * product, first.groups)
        return found * times

    def covariances(self, first: GroupedSums, second: GroupedSums) -> Floats:
        """Of every sum of the first with every sum of the second."""
        one, other = _Cells(self.sizes, first), _Cells(self.sizes, second)
        both = tuple(axis for axis in first.axes if axis in second.axes and axis < len(self.sizes) - 1)
        times = self._apart(first.axes, second.axes)
        if not (one.leaves and other.leaves):  # a sum over all leaves
            sums = [each.dense(both, None, self._with_all) if each.leaves else each.dense(both) for each in (one, other)]
            whole = 1.0 if one.leaves or other.leaves else float(np.sum(self._with_all))
            return np.asarray(sums[0] @ sums[1].T * (times * whole), dtype=np.float64)
        leaves = np.arange(self.sizes[-1])
        found = one.dense(both, leaves, self._own) @ other.dense(both, leaves, np.ones_like(self._own)).T
        for level in self._nodes:
            taken = level.taken[level.node]
            found -= one.dense(both, level.node, level.factor * taken) @ other.dense(both, level.node, level.factor).T
        return np.asarray(found * times, dtype=np.float64)

    def _apart(self, first: Axes, second: Axes) -> float:
        """Cells of further axes that neither of two sums reads: each has independent noise."""
        return float(math.prod(size for axis, size in enumerate(self.sizes[:-1]) if axis not in first and axis not in second))


class _Cells:
    """The cells of some sums that count: the group of each, its leaf, and its cell of the further axes."""

    def __init__(self, sizes: Sequence[int], sums: GroupedSums) -> None:
        self.sizes, self.sums = sizes, sums
        self.leaves = len(sizes) - 1 in sums.axes
        size = sizes[-1] if self.leaves else 1
        self.apart = sums.group.size // size
        self.kept = sums.group.ravel() >= 0
        self.group = sums.group.ravel()[self.kept]
        place = np.flatnonzero(self.kept)
        self.leaf, self.cell = place % size, place // size

    def dense(self, axes: Axes, node: Whole | None = None, factor: Floats | None = None) -> Floats:
        """Sums by group, and by cell of some of the further axes, and by node where these are given; each leaf times its factor."""
        cells = self._cells(axes)
        count = 1 if node is None else int(node[-1]) + 1
        codes = (self.group * int(math.prod(self.sizes[axis] for axis in axes)) + cells) * count + (0 if node is None else node[self.leaf])
        weights = self.sums.weights.ravel()[self.kept] * (1.0 if factor is None else factor[self.leaf])
        length = self.sums.groups * math.prod(self.sizes[axis] for axis in axes) * count
        return _summed(codes, weights, length).reshape(self.sums.groups, -1)

    def _cells(self, axes: Axes) -> Whole:
        """The number of each cell among those over some of the further axes."""
        own = [axis for axis in self.sums.axes if axis < len(self.sizes) - 1]
        places = np.unravel_index(self.cell, [self.sizes[axis] for axis in own]) if own else ()
        found = np.zeros(len(self.cell), dtype=np.int64)
        for axis, place in zip(own, places, strict=True):
            if axis in axes:
                found = found * self.sizes[axis] + place
        return found


def _summed(places: Whole, weights: Floats, length: int) -> Floats:
    return np.asarray(np.bincount(places, weights, minlength=length), dtype=np.float64)
