"""Released counts of a tree of ranges, combined: a marginal over the ``by`` columns and the leaves, NULL among them.

It has the interface of :class:`lapwing.releases.marginals.synopsis.Synopsis`, so that answers are computed in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lapwing.releases.marginals.axes import Axis
from lapwing.releases.marginals.synopsis import VARIANCE_MIN, LinearEstimate, MeasuredMarginal
from lapwing.releases.marginals.variances import Floats, GroupedSums
from lapwing.releases.serving.coverage import PublicMarginals
from lapwing.releases.tree.axes import leaf_width
from lapwing.releases.tree.range_tree import MeasuredLevel, TreeSynopsis
from lapwing.releases.tree.variances import TreeLevel


@dataclass(frozen=True, slots=True, eq=False)
class TreeCounts:
    """The best estimate of every leaf, for each cell of further axes, with exact variances of all sums."""

    public: PublicMarginals
    counts: Floats
    """Over all axes; the leaves, and NULL, are the last."""

    @classmethod
    def of(
        cls, table: str, axes: Sequence[Axis], measured: Sequence[MeasuredMarginal], *, laplace: bool, notes: tuple[str, ...]
    ) -> TreeCounts:
        """``axes`` are the further ones, then the levels, that of the leaves the last; each measured table is over one level."""
        leaf = axes[-1]
        leaves = leaf.size - leaf.domain.nullable
        further = len(measured[0].axes) - 1
        levels, nulls, precision = [], np.zeros([axis.size for axis in axes[:further]]), 0.0
        for each in measured:
            nodes = axes[each.axes[-1]].size - leaf.domain.nullable
            counts = np.asarray(each.counts, dtype=np.float64)
            levels.append(MeasuredLevel(leaf_width(axes[each.axes[-1]], leaf), counts[..., :nodes], each.variance))
            own = 1.0 / max(each.variance, VARIANCE_MIN)
            nulls, precision = nulls + own * counts[..., nodes:].sum(axis=-1), precision + own
        found = TreeSynopsis(leaves, levels).leaf_counts()
        if leaf.domain.nullable:
            found = np.concatenate([found, (nulls / precision)[..., None]], axis=-1)
        public = PublicMarginals(
            table,
            (*axes[:further], leaf),
            {tuple(range(further + 1)): min(level.variance for level in levels if level.width == 1)},
            laplace,
            notes,
            tuple(TreeLevel(level.width, level.variance) for level in levels),
        )
        return cls(public, found)

    def marginal(self, axes: Sequence[int]) -> Floats:
        """The best estimate of every cell over ``axes`` (ascending)."""
        return np.asarray(self.counts.sum(axis=tuple(axis for axis in range(self.counts.ndim) if axis not in axes)), dtype=np.float64)

    def linear(self, axes: Sequence[int], weights: npt.NDArray[np.float64]) -> LinearEstimate:
        """The sum of the cells over ``axes`` (ascending), each times its weight, with its exact variance."""
        sums = GroupedSums(tuple(axes), np.zeros(weights.shape, dtype=np.int64), 1, weights)
        variance = float(self.public.spreads().variances_of(sums)[0][0])
        return LinearEstimate(float(np.sum(weights * self.marginal(axes))), variance)

    def covariance(self, axes: Sequence[int], first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> float:
        """The covariance of two weighted sums of cells over the same axes."""
        group = np.zeros(first.shape, dtype=np.int64)
        sums = (GroupedSums(tuple(axes), group, 1, weights) for weights in (first, second))
        return float(self.public.spreads().covariance(*sums)[0])
