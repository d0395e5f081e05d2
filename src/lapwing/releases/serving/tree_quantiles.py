"""Quantiles of the column of a tree, for all groups of an answer, with intervals in values.

The quantile of share p lies between two neighbouring rows in order of value. Of the leaf of the lower one, the rows up to its end are more
than p times all rows less one; of the leaf of the upper one, the rows before it are at most p times all rows plus one. So with
excess = (rows before a boundary) - p * (all rows), the interval begins at the first leaf whose end has an excess of at least
-(reach + 1), and ends with the last leaf whose beginning has one of at most reach + 1, where reach is the half-width of that very
difference. Each of the two sides fails with half of what the confidence leaves, at most, at the one leaf that matters: nothing is added for
the many leaves that are examined. One row more than the half-width of the noise also covers that noise is integer.

How far noise reaches follows from public facts; noisy values come in only with the excess.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from lapwing.answers.estimates import Estimate
from lapwing.answers.intervals import Interval
from lapwing.answers.suppression import MARK_CONFIDENCE, Marks
from lapwing.kernel.domains import Kind
from lapwing.releases.marginals.axes import Axis
from lapwing.releases.marginals.variances import Floats
from lapwing.releases.serving.coverage import CoveredQuantile, CoveredQuery, PublicMarginals
from lapwing.releases.serving.weighted_sums import LevelSums, covered_levels, reach_of
from lapwing.releases.tree.range_tree import MeasuredLevel, TreeSynopsis
from lapwing.statements import CellMark

SLACK = 1.0
"""Rows between which a quantile lies."""


@dataclass(frozen=True, slots=True)
class ServedQuantile:
    """A quantile in every row of an answer: values, and whether the groups are large enough to have one."""

    estimates: list[Estimate]
    marks: Marks


class TreeQuantiles:
    """The quantiles of a covered query."""

    def __init__(self, covered: CoveredQuery, marginals: PublicMarginals) -> None:
        self._covered, self._marginals = covered, marginals
        nothing = [MeasuredLevel(each.width, np.zeros(-(-marginals.leaves // each.width)), each.variance) for each in marginals.tree]
        self._tree = TreeSynopsis(marginals.leaves, nothing)
        apart = (size for axis, size in enumerate(marginals.sizes) if axis not in covered.axes)
        self._apart = float(math.prod(apart))
        self._known: dict[tuple[Fraction, bytes], Floats] = {}

    def served(self, number: int, marginal: Floats, confidence: Fraction, *, kind: Kind) -> ServedQuantile:
        """Of one aggregate, from the best estimate of every cell."""
        quantile, estimates, marks = self._covered.quantiles[number], list[Estimate](), list[CellMark | None]()
        for counted in self._rows(quantile):
            counts = np.where(counted, marginal, 0.0).reshape(-1, marginal.shape[-1])[:, : self._marginals.leaves].sum(axis=0)
            deviations = np.sqrt(np.maximum(self._variances(quantile, counted), 0.0))
            whole = reach_of(MARK_CONFIDENCE, laplace=self._marginals.laplace) * float(deviations[-1]) / (1.0 - float(quantile.share))
            lost = not float(counts.sum()) > whole
            reach = reach_of(confidence, laplace=self._marginals.laplace) * deviations
            kept = np.asarray(counted.reshape(-1, counted.shape[-1])[:, : self._marginals.leaves].any(axis=0))
            estimates.append(Estimate(None, None) if lost else _estimate(counts, kept, reach, float(quantile.share), self._leaf, kind))
            marks.append(CellMark.MEANINGLESS if lost else None)
        return ServedQuantile(estimates, marks)

    def ranks(self, number: int, confidence: Fraction) -> float:
        """The rank error in any group of the finest level; infinite if a leaf has several values."""
        if self._leaf.edges is not None:
            return math.inf
        quantile, longest = self._covered.quantiles[number], 0.0
        for counted in self._rows(quantile):
            longest = max(longest, float(np.sqrt(np.max(self._variances(quantile, counted), initial=0.0))))
        return reach_of(confidence, laplace=self._marginals.laplace) * longest + SLACK

    @property
    def _leaf(self) -> Axis:
        return self._marginals.axes[-1]

    def _rows(self, quantile: CoveredQuantile) -> Iterator[npt.NDArray[np.bool_]]:
        """The cells that count in each row of the answer."""
        levels: Sequence[LevelSums] = covered_levels(self._covered)
        for level in levels:
            for group in range(len(level.level.groups)):
                yield quantile.counted & (level.group == group)

    def _variances(self, quantile: CoveredQuantile, counted: npt.NDArray[np.bool_]) -> Floats:
        """Of the excess at each boundary: cells of further axes have trees of their own, and add up."""
        rows = counted.reshape(-1, counted.shape[-1])[:, : self._marginals.leaves]
        found = np.zeros(self._marginals.leaves + 1)
        patterns, times = np.unique(rows, axis=0, return_counts=True)
        for pattern, count in zip(patterns, times.tolist(), strict=True):
            if not pattern.any():
                continue
            key = quantile.share, pattern.tobytes()
            if key not in self._known:
                self._known[key] = self._tree.boundary_variances(float(quantile.share), pattern)
            found += count * self._known[key]
        return found * self._apart


def _estimate(counts: Floats, kept: npt.NDArray[np.bool_], reach: Floats, share: float, leaf: Axis, kind: Kind) -> Estimate:
    excess = np.concatenate(([0.0], np.add.accumulate(counts)))
    excess -= share * excess[-1]
    # Estimates may rise and fall: take the middle of all crossings from below.
    crossings = np.flatnonzero((excess[:-1] < 0.0) & (excess[1:] >= 0.0) & kept)
    if not len(crossings):
        return Estimate(None, None)
    place = int(crossings[len(crossings) // 2])
    lows = np.flatnonzero(kept & (excess[1:] >= -(reach[1:] + SLACK)))
    highs = np.flatnonzero(kept & (excess[:-1] <= reach[:-1] + SLACK))
    low, high = min(int(lows[0]), place), max(int(highs[-1]), place)
    part = -float(excess[place]) / float(excess[place + 1] - excess[place])
    ends = _ends(leaf, place)
    value = ends[0] + part * (ends[1] - ends[0])
    shown = round(value) if kind is Kind.INTEGER else float(value)
    return Estimate(shown, Interval(min(_ends(leaf, low)[0], shown), max(_ends(leaf, high)[1], shown)))


def _ends(leaf: Axis, place: int) -> tuple[float, float]:
    """The least and the greatest value of a leaf."""
    if leaf.edges is None:
        value = leaf.cells()[place]
        assert isinstance(value, int)
        return float(value), float(value)
    low, high = leaf.spans()[place]
    return float(low), float(high)
