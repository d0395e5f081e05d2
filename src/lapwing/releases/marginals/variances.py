"""The precision of free answers: exact variances and covariances of weighted sums of cells, for all groups of an answer at once.

The estimate of a marginal over U is the sum of its residuals, whose noise is uncorrelated; that of the axes A < U has the precision
q_A = sum over measured B that hold A of 1 / (variance_B * n_(B-A)), with n_X the product of the sizes of X. With P_A the projection to the
residual and S_B the sums over all axes but B,

    Cov(w, v) = sum over A of <P_A w, P_A v> / (n_(U-A) * n_(V-A) * q_A),    P_A = sum over B < A of (-1)^|A-B| / n_(A-B) * S_B,

for sums w over U and v over V. Collected by B this is a sum of products <S_B w, S_B v> with public coefficients. Sums of weights by group
and cell are quick to make, so all groups are done together. No count is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lapwing.releases.marginals.synopsis import VARIANCE_MIN

Axes: TypeAlias = tuple[int, ...]
Floats: TypeAlias = npt.NDArray[np.float64]
Whole: TypeAlias = npt.NDArray[np.int64]

DENSE_MAX = 100_000
"""Sums by group and cell are kept in one array up to this size, or if most of them exist."""
SMOOTH = 20.0
"""Noise with a deviation of this many steps is treated as continuous: half a step is 1 % of a bar."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupedSums:
    """Weighted sums over the same cells, one for each group: each cell counts in one group, or in none (-1)."""

    axes: Axes
    group: Whole
    groups: int
    weights: Floats

    def values(self, marginal: Floats) -> Floats:
        """The sum of each group, over these cells."""
        kept = self.group >= 0
        return _summed(self.group[kept], (self.weights * marginal)[kept], self.groups)

    def largest(self) -> Floats:
        """The largest weight of a cell of each group, in size."""
        kept, found = self.group >= 0, np.zeros(self.groups)
        np.maximum.at(found, self.group[kept], np.abs(self.weights[kept]))
        return found


@dataclass(frozen=True, slots=True)
class MarginalVariances:
    """Variances of sums of noisy marginals. ``variances``: of a cell of each, by its axes."""

    sizes: Sequence[int]
    variances: Mapping[Axes, float]
    _precisions: dict[Axes, float] = field(default_factory=dict)

    def variances_of(self, sums: GroupedSums) -> tuple[Floats, Floats]:
        """For the sum of each group: its variance, and the part of it that does not come from the table that contributes most.

        If all of them spread over many steps, the origin of the noise does not matter, and the whole variance is returned.
        """
        products = {kept: self._products(sums, sums, kept) for kept in _parts(sums.axes)}

        def added(coefficients: Mapping[Axes, float]) -> Floats:
            return np.maximum(sum((each * products[kept] for kept, each in coefficients.items()), np.zeros(sums.groups)), 0.0)

        whole, largest = added(self._coefficients(sums.axes, sums.axes)), np.zeros(sums.groups)
        if np.all(whole >= (SMOOTH * sums.largest()) ** 2):
            return whole, whole
        free = {axis for axis in sums.axes if self.sizes[axis] > 1}
        if not free:  # one residual, the number of all rows: each table has a share of it, and there are many tables
            share = max(self._precision_from(table, ()) for table in self.variances) / self._precision(())
            return whole, whole * (1 - share)
        for table in self.variances:
            if free <= set(table):
                largest = np.maximum(largest, added(self._coefficients(sums.axes, sums.axes, table)))
        return whole, np.maximum(whole - largest, 0.0)

    def covariance(self, first: GroupedSums, second: GroupedSums) -> Floats:
        """Group by group, of sums over the same cells and groups."""
        found = np.zeros(first.groups)
        for kept, coefficient in self._coefficients(first.axes, first.axes).items():
            found += coefficient * self._products(first, second, kept)
        return found

    def covariances(self, first: GroupedSums, second: GroupedSums) -> Floats:
        """Covariances of every sum of the first with every sum of the second."""
        found = np.zeros((first.groups, second.groups))
        for kept, coefficient in self._coefficients(first.axes, second.axes).items():
            one = self._sums(first, kept)
            found += coefficient * (one @ (one if second is first else self._sums(second, kept)).T)
        return found

    def _coefficients(self, first: Axes, second: Axes, table: Axes | None = None) -> dict[Axes, float]:
        """What <S_B w, S_B v> is multiplied by, for each B; of noise of one table alone, where that is named."""
        both = tuple(axis for axis in first if axis in second)
        found: dict[Axes, float] = {}
        for part in _parts(both):
            scale = self._size(first, part) * self._size(second, part) * self._precision(part)
            if table is not None:
                scale *= self._precision(part) / self._precision_from(table, part)
            for kept in _parts(part):
                sign = -1.0 if (len(part) - len(kept)) % 2 else 1.0
                found[kept] = found.get(kept, 0.0) + sign / self._size(part, kept) / scale
        return found

    def _precision(self, part: Axes) -> float:
        if part not in self._precisions:
            self._precisions[part] = math.fsum(self._precision_from(table, part) for table in self.variances if set(part) <= set(table))
        return self._precisions[part]

    def _precision_from(self, table: Axes, part: Axes) -> float:
        """What a table that holds these axes adds to the precision of their residual."""
        return 1.0 / (max(self.variances[table], VARIANCE_MIN) * self._size(table, part))

    def _size(self, axes: Axes, but: Axes) -> float:
        """Cells over the axes other than some."""
        return float(math.prod(self.sizes[axis] for axis in axes if axis not in but))

    def _products(self, first: GroupedSums, second: GroupedSums, kept: Axes) -> Floats:
        """<S_B w, S_B v> for each group."""
        places, cells = self._places(first, kept)
        counted = first.group.ravel() >= 0
        codes = (first.group.ravel() * cells + places)[counted]
        one, other = first.weights.ravel()[counted], second.weights.ravel()[counted]
        if len(kept) == len(first.axes):
            return _summed(codes // cells, one * other, first.groups)
        if first.groups * cells > max(DENSE_MAX, 2 * len(codes)):
            present, codes = np.unique(codes, return_inverse=True)
            groups, length = present // cells, len(present)
        else:
            groups, length = np.repeat(np.arange(first.groups), cells), first.groups * cells
        summed = _summed(codes, one, length)
        product = summed * (summed if second is first else _summed(codes, other, length))
        return _summed(groups, product, first.groups)

    def _sums(self, sums: GroupedSums, kept: Axes) -> Floats:
        """S_B of the weights of each group: groups by cells."""
        places, cells = self._places(sums, kept)
        counted = sums.group.ravel() >= 0
        codes = (sums.group.ravel() * cells + places)[counted]
        return _summed(codes, sums.weights.ravel()[counted], sums.groups * cells).reshape(sums.groups, cells)

    def _places(self, sums: GroupedSums, kept: Axes) -> tuple[Whole, int]:
        """The number of each cell among those over fewer axes, and how many these are."""
        places = np.zeros((1,) * len(sums.axes), dtype=np.int64)
        for place, axis in enumerate(sums.axes):
            if axis in kept:
                own = np.arange(self.sizes[axis]).reshape([-1 if other == place else 1 for other in range(len(sums.axes))])
                places = places * self.sizes[axis] + own
        return np.broadcast_to(places, sums.group.shape).ravel(), int(self._size(kept, ()))


def _parts(axes: Axes) -> Iterator[Axes]:
    for many in range(len(axes) + 1):
        yield from combinations(axes, many)


def _summed(places: Whole, weights: Floats, length: int) -> Floats:
    return np.asarray(np.bincount(places, weights, minlength=length), dtype=np.float64)
