"""The workload of a release for the planner: sets of axes, and the effect on them of the noise of every measurable table.

Two sparse matrices represent it. With precision ``theta[B]`` (one over the variance of a cell) for each table B, the residual of a set A is
known with precision ``q[A] = sum over B holding A of theta[B] / (bins of the axes in B but not in A)``, and a wanted count has the variance
``sum over A of c[A] / q[A]``. See ``docs/explanation/releases.md``.

Only sums in a fixed order, products, quotients and square roots are used: the same plan comes out on every machine, to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lapwing.releases.marginals.synopsis import Axes, Floats

Indices: TypeAlias = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class WorkloadQuery:
    """Every cell of the marginal over ``axes`` (ascending), or, with ``bins``, counts that each sum this many bins of each axis."""

    axes: Axes
    weight: float = 1.0
    bins: Axes | None = None


def subsets(axes: Axes) -> Iterable[Axes]:
    return (part for count in range(len(axes) + 1) for part in combinations(axes, count))


class NoiseModel:
    """The effect of the noise of measured tables on wanted counts, through residuals, whose precisions are sums of those of the tables.

    ``factors`` has entries (residual, table, factor), ``coefficients`` has (wanted, residual, coefficient). There are as many residuals as
    tables. ``weights`` and ``counts`` give the weight of each wanted count and the number of its kind.
    """

    def __init__(
        self,
        tables: int,
        factors: Sequence[tuple[int, int, float]],
        coefficients: Sequence[tuple[int, int, float]],
        weights: Floats,
        counts: Floats,
    ) -> None:
        self.count = tables
        self.weights, self.counts = weights, counts
        self._to, self._of, self._factor = _columns(factors)
        self._row, self._part, self._coefficient = _columns(coefficients)

    @property
    def entries(self) -> int:
        """The work of computing all variances once."""
        return len(self._to) + len(self._row)

    def largest(self) -> Floats:
        """1 for each table without information on another one's residual, else 0."""
        serving = np.zeros(self.count)
        serving[self._to[self._to != self._of]] = 1.0
        return 1.0 - serving

    def precisions(self, thetas: Floats) -> Floats:
        """The precision of every residual, from those of the tables. A leading axis allows several plans at once."""
        return _summed(self._factor * thetas[..., self._of], self._to, self.count)

    def variances(self, precisions: Floats) -> Floats:
        """The variance of each wanted count; infinite where nothing measured says it."""
        with np.errstate(divide="ignore"):
            return _summed(self._coefficient / precisions[..., self._part], self._row, len(self.weights))

    def slopes(self, precisions: Floats, weights: Floats) -> Floats:
        """By how much the weighted sum of variances falls with the precision of each table."""
        by_part = _summed(self._coefficient * weights[self._row], self._part, self.count)
        # What no wanted count depends on may be known with no precision at all.
        by_part = np.divide(by_part, precisions * precisions, out=np.zeros_like(by_part), where=by_part > 0.0)
        return _summed(self._factor * by_part[self._to], self._of, self.count)


class Workload(NoiseModel):
    """Wanted counts, and the tables that may be measured for them: all sets of axes of a wanted one, and of those in ``further``."""

    def __init__(self, sizes: Sequence[int], wanted: Sequence[WorkloadQuery], *, further: Sequence[Axes] = ()) -> None:
        if not wanted:
            raise ValueError("nothing is wanted")
        self.sizes = tuple(sizes)
        asked = [self._effective(each) for each in wanted]
        larger = [tuple(axis for axis in axes if sizes[axis] > 1) for axes in further]
        every = {part for axes in (*(axes for axes, _ in asked), *larger) for part in subsets(axes)}
        self.tables: tuple[Axes, ...] = tuple(sorted(every, key=lambda axes: (len(axes), axes)))
        weights = np.array([each.weight for each in wanted], dtype=np.float64)
        if not (np.all(np.isfinite(weights)) and np.all(weights > 0.0)):
            raise ValueError("a weight is above 0")
        number = {axes: index for index, axes in enumerate(self.tables)}
        factors = [
            (number[part], column, 1.0 / math.prod(sizes[axis] for axis in axes if axis not in part))
            for column, axes in enumerate(self.tables)
            for part in subsets(axes)
        ]
        coefficients = [
            (row, number[part], math.prod(self._share(axis, taken, axis in part) for axis, taken in zip(axes, bins, strict=True)))
            for row, (axes, bins) in enumerate(asked)
            for part in subsets(axes)
        ]
        # How many counts of its kind make up the whole table.
        counts = [math.prod(sizes[axis] / taken for axis, taken in zip(axes, bins, strict=True)) for axes, bins in asked]
        super().__init__(len(self.tables), factors, coefficients, weights, np.array(counts, dtype=np.float64))

    def _effective(self, wanted: WorkloadQuery) -> tuple[Axes, Axes]:
        """Without the axes of which all bins are taken: an axis of one bin has no information, and a sum over all bins is a smaller table's
        cell."""
        bins = wanted.bins if wanted.bins is not None else (1,) * len(wanted.axes)
        if list(wanted.axes) != sorted(set(wanted.axes)) or not all(0 <= axis < len(self.sizes) for axis in wanted.axes):
            raise ValueError("axes are ascending numbers")
        if len(bins) != len(wanted.axes) or not all(1 <= taken <= self.sizes[axis] for axis, taken in zip(wanted.axes, bins, strict=True)):
            raise ValueError("a count takes some bins of each axis")
        kept = [(axis, taken) for axis, taken in zip(wanted.axes, bins, strict=True) if taken < self.sizes[axis]]
        return tuple(axis for axis, _ in kept), tuple(taken for _, taken in kept)

    def _share(self, axis: int, taken: int, within: bool) -> float:
        size = self.sizes[axis]
        return taken * (1.0 - taken / size) if within else (taken / size) ** 2


def total(values: Floats) -> Floats:
    """The sum along the last axis from left to right: NumPy's own order of adding depends on the machine."""
    return np.asarray(np.add.accumulate(values, axis=-1)[..., -1], dtype=np.float64)


def _columns(entries: Sequence[tuple[int, int, float]]) -> tuple[Indices, Indices, Floats]:
    rows, columns, values = zip(*entries, strict=True)
    return np.array(rows, dtype=np.intp), np.array(columns, dtype=np.intp), np.array(values, dtype=np.float64)


def _summed(values: Floats, places: Indices, length: int) -> Floats:
    """Values added up by their places, in their order."""
    if values.ndim == 1:
        return np.bincount(places, values, length).astype(np.float64, copy=False)
    plans = len(values)
    offsets = (np.arange(plans, dtype=np.intp)[:, None] * length + places[None, :]).ravel()
    return np.bincount(offsets, values.ravel(), plans * length).astype(np.float64, copy=False).reshape(plans, length)
