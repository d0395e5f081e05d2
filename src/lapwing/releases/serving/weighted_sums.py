"""A covered query as weighted sums of cells, on all its levels: the standard deviation of each sum. Public facts only.

Error bars reach the quantile of a normal law. Noise is of whole numbers, and where a sum takes values on a grid a normal law is too narrow
for it: the bar then reaches half a step further, which is half the largest weight of a cell. Noise of other tables smears the grid, and
the necessary extension falls with it: by exp(-2 pi^2 s^2) where the rest of the noise has s steps of deviation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from lapwing.answers.subtotals import Level
from lapwing.kernel.expressions import Value
from lapwing.releases.marginals.variances import Floats, GroupedSums, Whole
from lapwing.releases.serving.coverage import CoveredQuery, PublicMarginals

DEVIATION_MIN = 1e-9
"""A deviation below this is taken as this much."""


def reach_of(confidence: Fraction, *, laplace: bool) -> float:
    """The half-width of an interval in standard deviations: of a normal law, and at least that of Laplace noise if there is any."""
    normal = NormalDist().inv_cdf(0.5 + float(confidence) / 2)
    return max(normal, math.log(1 / (1 - float(confidence))) / math.sqrt(2)) if laplace else normal


@dataclass(frozen=True, slots=True, eq=False)
class LevelSums:
    """The groups of one level."""

    level: Level
    group: Whole
    """The number of the group of each cell, -1 where it counts in none."""


class WeightedSums:
    """The vectors of a covered query, one value for each row of its answer."""

    def __init__(self, covered: CoveredQuery, marginals: PublicMarginals) -> None:
        self.covered, self.marginals = covered, marginals
        self.spreads = marginals.spreads()
        self.levels = covered_levels(covered)
        self._vectors: dict[str, _Vector] = {}
        self._covariances: dict[tuple[str, str], Floats] = {}

    @property
    def rows(self) -> int:
        """Rows of the answer."""
        return sum(len(each.level.groups) for each in self.levels)

    def sums(self, vector: str) -> list[GroupedSums]:
        """A vector, level by level."""
        weights, axes = self.covered.weights[vector], self.covered.axes
        return [GroupedSums(axes, each.group, len(each.level.groups), weights) for each in self.levels]

    def deviation(self, vector: str) -> Floats:
        """The standard deviation of each row's sum."""
        return self._vector(vector).deviation

    def step(self, vector: str) -> Floats:
        """The step of the grid of each row's sum, less where the noise smears it; 0 where no cell is in it."""
        return self._vector(vector).step

    def half_width(self, vector: str, confidence: Fraction) -> Floats:
        """How far an interval reaches on either side."""
        return self.reach(confidence) * self.deviation(vector) + self.step(vector) / 2

    def reach(self, confidence: Fraction) -> float:
        """In deviations."""
        return reach_of(confidence, laplace=self.marginals.laplace)

    def stretch(self, vector: str, confidence: Fraction) -> Floats:
        """How much larger a deviation is taken, so that it reaches half a step further at this confidence."""
        return 1.0 + self.step(vector) / (2 * self.reach(confidence) * np.maximum(self.deviation(vector), DEVIATION_MIN))

    def variance(self, vector: str, confidence: Fraction) -> Floats:
        """Of each row's sum, with half a step more at this confidence."""
        return (np.maximum(self.deviation(vector), DEVIATION_MIN) * self.stretch(vector, confidence)) ** 2

    def covariance(self, first: str, second: str, confidence: Fraction) -> Floats:
        """Of two sums of the same row, likewise."""
        if (first, second) not in self._covariances:
            pairs = zip(self.sums(first), self.sums(second), strict=True)
            parts = [self.spreads.covariance(one, other) for one, other in pairs]
            self._covariances[first, second] = np.concatenate([np.zeros(0), *parts])
        found = self._covariances[first, second]
        return found * self.stretch(first, confidence) * self.stretch(second, confidence)

    def values(self, vector: str, marginal: Floats) -> Floats:
        """Each row's sum over the cells of this marginal."""
        return np.concatenate([np.zeros(0), *(sums.values(marginal) for sums in self.sums(vector))])

    def _vector(self, name: str) -> _Vector:
        if name not in self._vectors:
            sums = self.sums(name)
            pairs = [self.spreads.variances_of(each) for each in sums]
            variance, smearing = (np.concatenate([np.zeros(0), *(pair[place] for pair in pairs)]) for place in (0, 1))
            largest = np.concatenate([np.zeros(0), *(each.largest() for each in sums)])
            smeared = np.exp(-2 * np.pi**2 * smearing / np.maximum(largest, DEVIATION_MIN) ** 2)
            self._vectors[name] = _Vector(np.sqrt(variance), largest * smeared)
        return self._vectors[name]


@dataclass(frozen=True, slots=True, eq=False)
class _Vector:
    deviation: Floats
    step: Floats


@dataclass(frozen=True, slots=True, eq=False)
class JointSums:
    """Several vectors of several queries in one row, to know how all of them vary together."""

    parts: Sequence[tuple[WeightedSums, tuple[str, ...]]]
    places: list[tuple[int, str, int, int]] = field(default_factory=list)
    """Part, vector, and where its rows begin and end."""

    def __post_init__(self) -> None:
        at = 0
        for number, (sums, vectors) in enumerate(self.parts):
            for vector in vectors:
                self.places.append((number, vector, at, at + sums.rows))
                at += sums.rows

    def size(self) -> int:
        """How many sums."""
        return sum(sums.rows * len(vectors) for sums, vectors in self.parts)

    def work(self) -> int:
        """Most numbers that are read to compute their joint covariance."""
        return max((sums.rows * sums.covered.group.size for sums, vectors in self.parts if vectors), default=0)

    def root(self, confidence: Fraction) -> Floats:
        """A triangle L with L L' = all covariances, with half a step more at this confidence."""
        whole = np.zeros((self.size(), self.size()))
        for number, (part, vector, begin, end) in enumerate(self.places):
            for other_part, other, other_begin, other_end in self.places[: number + 1]:
                block = covariances(self.parts[part][0], vector, self.parts[other_part][0], other, confidence)
                whole[begin:end, other_begin:other_end] = block
                whole[other_begin:other_end, begin:end] = block.T
        diagonal = np.arange(len(whole))
        # Sub-totals are sums of their groups, so the matrix may be singular: these terms prevent that, and change no bar visibly.
        whole[diagonal, diagonal] = (
            whole[diagonal, diagonal] * (1 + 1e-9) + 1e-9 * float(np.mean(whole[diagonal, diagonal])) + DEVIATION_MIN**2
        )
        return np.asarray(np.linalg.cholesky(whole), dtype=np.float64)


def covariances(first: WeightedSums, vector: str, second: WeightedSums, other: str, confidence: Fraction) -> Floats:
    """Of every row of one vector with every row of another, whatever queries they are of; with half a step more at this confidence."""
    blocks = [[first.spreads.covariances(one, two) for two in second.sums(other)] for one in first.sums(vector)]
    whole = np.block(blocks) if blocks and blocks[0] else np.zeros((first.rows, second.rows))
    return whole * first.stretch(vector, confidence)[:, None] * second.stretch(other, confidence)[None, :]


def covered_levels(covered: CoveredQuery) -> list[LevelSums]:
    """The groups of each level of the answer."""
    keys = len(covered.query.keys)
    if covered.query.levels is None:
        return [LevelSums(Level(tuple(range(keys)), covered.groups, ()), covered.group)]
    found = []
    for kept in covered.query.levels:
        added: dict[tuple[Value, ...], int] = {}
        number = np.array([added.setdefault(_kept(group, kept), len(added)) for group in covered.groups] or [0], dtype=np.int64)
        found.append(LevelSums(Level(kept, tuple(added), ()), np.where(covered.group < 0, -1, number[covered.group])))
    return found


def _kept(group: tuple[Value, ...], kept: tuple[int, ...]) -> tuple[Value, ...]:
    return tuple(value if i in kept else None for i, value in enumerate(group))
