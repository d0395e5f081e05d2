"""The best estimate from noisy marginals, in closed form: tables that agree with each other, and exact variances of weighted sums of them.

Every measured table is a plain marginal with independent noise of one variance in each cell. It splits into *residuals*, one for each set
of its axes: the part of the table that depends on all axes of the set and sums to zero along each of them. Residuals of different sets are
orthogonal and their noise is uncorrelated, so generalised least squares reduces to this: for each set, the residuals of all tables
that hold it are averaged with weights inverse to their variances. No system of equations is solved.

Post-processing of noisy values and public facts, so nothing here can leak.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Axes: TypeAlias = tuple[int, ...]
Floats: TypeAlias = npt.NDArray[np.float64]

VARIANCE_MIN = 1e-12
"""Noise of a tiny scale has a variance that a float cannot hold beside others. This is used instead: no interval gets shorter."""


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredMarginal:
    """Noisy counts of every cell over ``axes`` (ascending numbers of axes), each with independent noise of this variance."""

    axes: Axes
    counts: npt.NDArray[np.float64] | npt.NDArray[np.int64]
    variance: float


@dataclass(frozen=True, slots=True)
class LinearEstimate:
    """A weighted sum of cells: its best estimate, and the variance of that."""

    value: float
    variance: float

    @property
    def deviation(self) -> float:
        return math.sqrt(self.variance)


class Synopsis:
    """The joint estimate from noisy marginals. ``sizes`` are those of all axes; a set of axes is *covered* where it is part of a measured
    one."""

    def __init__(self, sizes: Sequence[int], measured: Sequence[MeasuredMarginal]) -> None:
        if any(size < 1 for size in sizes):
            raise ValueError("an axis has a bin at least")
        self.sizes: Axes = tuple(int(size) for size in sizes)
        # Of a table y over B, the set A < B sees the mean over the other axes of y / variance. One axis is left out at a time, so that a
        # table comes to each of its subsets in one way.
        sums: dict[Axes, Floats] = {}
        precisions: dict[Axes, float] = {}
        for table in measured:
            axes, counts = self._table(table)
            precision = 1.0 / max(table.variance, VARIANCE_MIN)
            _add(sums, axes, counts * precision)
            precisions[axes] = precisions.get(axes, 0.0) + precision
        for axis, size in enumerate(self.sizes):
            for axes in [each for each in sums if axis in each]:
                place = axes.index(axis)
                rest = axes[:place] + axes[place + 1 :]
                _add(sums, rest, _mean(sums[axes], place))
                precisions[rest] = precisions.get(rest, 0.0) + precisions[axes] / size
        self._precisions: Mapping[Axes, float] = precisions
        self._residuals: Mapping[Axes, Floats] = {axes: _centred(total / precisions[axes]) for axes, total in sums.items()}

    def covers(self, axes: Sequence[int]) -> bool:
        """Whether the marginal over these axes can be estimated."""
        return self._free(axes) in self._precisions

    def marginal(self, axes: Sequence[int]) -> Floats:
        """The best estimate of every cell over ``axes`` (ascending). Its marginals equal the estimates for fewer axes."""
        free = self._covered(axes)
        # Residuals are combined in the same way as a table is split, one axis at a time.
        parts = {part: self._residuals[part] for part in _parts(free)}
        for axis in free:
            for part in [each for each in parts if axis not in each]:
                larger = tuple(sorted((*part, axis)))
                parts[larger] = parts[larger] + np.expand_dims(parts[part], larger.index(axis)) / self.sizes[axis]
        return parts[free].reshape(self._shape(axes))

    def cell_variance(self, axes: Sequence[int]) -> float:
        """The variance of each cell of :meth:`marginal`; it is the same for all of them."""
        free = self._covered(axes)
        return math.fsum(self._share(free, part) / self._precisions[part] for part in _parts(free))

    def linear(self, axes: Sequence[int], weights: npt.NDArray[np.float64]) -> LinearEstimate:
        """The sum of the cells over ``axes`` (ascending), each times its weight, with its exact variance."""
        seen = self._seen(axes, weights)
        value = math.fsum(float(np.vdot(each, self._residuals[part])) for part, each in seen.items())
        return LinearEstimate(value, self._product(seen, seen))

    def covariance(self, axes: Sequence[int], first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> float:
        """The covariance of two weighted sums of cells over the same axes."""
        return self._product(self._seen(axes, first), self._seen(axes, second))

    def covariance_between(
        self,
        axes: Sequence[int],
        weights: npt.NDArray[np.float64],
        other_axes: Sequence[int],
        other_weights: npt.NDArray[np.float64],
    ) -> float:
        """The covariance of weighted sums over two sets of axes, which need not be covered together."""
        return self._product(self._seen(axes, weights), self._seen(other_axes, other_weights))

    def _share(self, axes: Axes, part: Axes) -> float:
        """The share of one cell over ``axes`` in the variance of a residual."""
        return math.prod(1.0 - 1.0 / self.sizes[axis] if axis in part else 1.0 / self.sizes[axis] ** 2 for axis in axes)

    def _product(self, first: Mapping[Axes, Floats], second: Mapping[Axes, Floats]) -> float:
        return math.fsum(float(np.vdot(each, second[part])) / self._precisions[part] for part, each in first.items() if part in second)

    def _seen(self, axes: Sequence[int], weights: npt.NDArray[np.float64]) -> dict[Axes, Floats]:
        """The weights as the residual of each set of axes sees them."""
        if weights.shape != self._shape(axes):
            raise ValueError("weights have the shape of the marginal")
        free = self._covered(axes)
        means = {free: np.asarray(weights, dtype=np.float64).reshape(self._shape(free))}
        for axis in free:
            for part in [each for each in means if axis in each]:
                place = part.index(axis)
                means[part[:place] + part[place + 1 :]] = _mean(means[part], place)
        return {part: _centred(each) for part, each in means.items()}

    def _table(self, table: MeasuredMarginal) -> tuple[Axes, Floats]:
        counts = np.asarray(table.counts, dtype=np.float64)
        if counts.shape != self._shape(table.axes):
            raise ValueError("counts have the shape of their axes")
        if not (table.variance >= 0.0 and math.isfinite(table.variance)):
            raise ValueError("a variance is a number from 0")
        free = self._free(table.axes)
        return free, counts.reshape(self._shape(free))

    def _shape(self, axes: Sequence[int]) -> Axes:
        return tuple(self.sizes[axis] for axis in axes)

    def _free(self, axes: Sequence[int]) -> Axes:
        """Without axes of a single bin, which carry no information."""
        if list(axes) != sorted(set(axes)) or not all(0 <= axis < len(self.sizes) for axis in axes):
            raise ValueError("axes are ascending numbers")
        return tuple(axis for axis in axes if self.sizes[axis] > 1)

    def _covered(self, axes: Sequence[int]) -> Axes:
        free = self._free(axes)
        if free not in self._precisions:
            raise ValueError("no measured table holds these axes")
        return free


def _parts(axes: Axes) -> Iterator[Axes]:
    """All sets of these axes, smaller ones first where one holds the other."""
    parts: list[Axes] = [()]
    for axis in axes:
        parts += [(*part, axis) for part in parts]
    return iter(parts)


def _add(sums: dict[Axes, Floats], axes: Axes, table: Floats) -> None:
    sums[axes] = sums[axes] + table if axes in sums else table


def _mean(table: Floats, place: int) -> Floats:
    return np.asarray(table.mean(axis=place), dtype=np.float64)


def _centred(table: Floats) -> Floats:
    """The residual of a table after subtracting its means along each axis."""
    for place in range(table.ndim):
        table = table - table.mean(axis=place, keepdims=True)
    return table
