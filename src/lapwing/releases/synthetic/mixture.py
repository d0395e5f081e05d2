"""A mixture of product distributions that explains all noisy pairs of columns at once.

Each of K components draws all columns independently; together they can hold dependences between columns. The components are fitted to all
pairs at once by gradient steps (Adam) on their logits, as in the relaxed projection of Aydore and others (2021) and of Liu and others
(2021). How far the noise spreads is public, so the fit stops where it explains the tables as well as the truth would: when the mean squared
residual, in deviations of the noise, is 1 (the discrepancy principle of Morozov, 1966). To go on would be to fit noise.

All of it is post-processing: released values and public facts go in. Same release, same machine, same table; on another processor the last
bits of a sum may differ, and with them some rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lapwing.releases.marginals.synopsis import MeasuredMarginal
from lapwing.releases.synthetic.public_numbers import PublicNumbers
from lapwing.releases.synthetic.rare_values import MergedValues, nearest_counts
from lapwing.releases.synthetic.tiles import Singles, Tiles

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

COMPONENTS_FEW, COMPONENTS_MANY = 100, 200
FEW_VALUES = 500
"""Up to this many values of all columns together, a fit can afford more components."""
STEPS_MAX = 1_500
WORK_MAX = 2.25e11
"""Steps * components * values^2: a fit with very many values has fewer steps, so that none takes more than about 40 seconds."""
RATE = 0.1
"""Of the first step; it falls along a cosine to a fiftieth of that."""
WARMING = 50
"""Steps in which the rate grows to it: a fit to nearly nothing but noise ends after a few steps, and these must be short."""
SPREAD = 0.2
"""Deviation of the logits at the beginning, around the one-way tables: without it all components would stay equal."""
LOOK_CLOSELY, LOOK_EVERY = 50, 10
"""The residual is checked after each of the first steps, and after each tenth from then on."""
PATIENCE = 200
"""Steps after which a fit is accepted at one deviation above what it should explain."""
_LEAST_SHARE = 1e-4
_QUICK, _SLOW, _NOTHING = np.float32(0.9), np.float32(0.999), np.float32(1e-10)


@dataclass(frozen=True, slots=True)
class MixtureFit:
    """How a fit ended. ``residual`` is the mean squared residual in deviations: 1 where it explains the tables as the truth would."""

    steps: int
    residual: float


@dataclass(frozen=True, slots=True)
class Mixture:
    """Equally weighted products: ``chances[column][component]`` are the chances of the values of that column."""

    chances: tuple[Floats, ...]
    fit: MixtureFit | None = None

    @property
    def components(self) -> int:
        return len(self.chances[0])

    def pair(self, first: int, second: int) -> Floats:
        """The chance of each pair of values of two different columns."""
        both: Floats = np.einsum("ka,kb->ab", self.chances[first], self.chances[second]) / self.components
        return both

    def rows(self, number: int, numbers: PublicNumbers) -> Integers:
        """Rows of bins, spread as evenly as rows can be: in each component a value occurs as often as its chance says, to within one."""
        component = np.sort(numbers.order(number) % self.components)
        drawn = np.empty((number, len(self.chances)), dtype=np.int64)
        for column, chances in enumerate(self.chances):
            drawn[:, column] = _stratified(chances, component, numbers)
        return drawn[numbers.order(number)]


def product_of(ones: Sequence[MeasuredMarginal]) -> Mixture:
    """Columns independent of one another, each spread as its noisy counts are once none of them is below nothing.

    As in a fit, values too rare to be told from noise are one, and equally likely.
    """
    chances = []
    for one in ones:
        counts = _floats(one)
        merged = MergedValues.of(counts, math.sqrt(one.variance))
        kept = nearest_counts(merged.sums(counts), max(1.0, float(counts.sum())))
        chances.append(merged.spread((kept / kept.sum())[None, :]))
    return Mixture(tuple(chances))


def fitted(
    sizes: Sequence[int],
    pairs: Mapping[tuple[int, int], MeasuredMarginal],
    ones: Sequence[MeasuredMarginal],
    total: float,
    numbers: PublicNumbers,
    *,
    components: int | None = None,
    steps: int = STEPS_MAX,
) -> Mixture:
    """The mixture that explains ``pairs``. ``ones``: the best estimate of each column's own table; ``total``: of the number of rows."""
    total = max(1.0, total)
    merged = [MergedValues.of(_floats(one), math.sqrt(one.variance)) for one in ones]
    if [len(group.place) for group in merged] != list(sizes):
        raise ValueError("every column needs its own table")
    target = _Target.of(merged, pairs, ones, total)
    components = components or (COMPONENTS_MANY if len(target.shares) <= FEW_VALUES else COMPONENTS_FEW)
    steps = min(steps, max(1, int(WORK_MAX / (components * len(target.shares) ** 2))))
    start = np.log(np.maximum(target.shares, _LEAST_SHARE))
    logits = start + SPREAD * numbers.normal(components * len(start)).reshape(components, -1)
    chances, fit = _descended(target, logits.astype(np.float32), steps)
    ends = np.cumsum([group.size for group in merged])[:-1]
    parts = np.split(chances.astype(np.float64), ends, axis=1)
    return Mixture(tuple(group.spread(part / part.sum(axis=1, keepdims=True)) for group, part in zip(merged, parts, strict=True)), fit)


@dataclass(frozen=True, slots=True)
class _Target:
    """What a fit has to explain, as shares of the total: all values of all columns side by side."""

    sizes: tuple[int, ...]
    shares: Floats
    share_weights: Floats
    pairs: Floats
    pair_weights: Floats
    cells: int

    def explained(self, step: int) -> float:
        """The mean squared residual, in deviations, at which a fit has explained the tables.

        The truth has 1 in the mean, with a deviation of sqrt(2 / cells). A fit that is still above 1 after many steps has met noise that is
        larger than its mean, and is accepted at up to two deviations more.
        """
        return 1.0 + min(2.0, step / PATIENCE) * math.sqrt(2.0 / max(self.cells, 1))

    @staticmethod
    def of(
        merged: Sequence[MergedValues], pairs: Mapping[tuple[int, int], MeasuredMarginal], ones: Sequence[MeasuredMarginal], total: float
    ) -> _Target:
        sizes = tuple(group.size for group in merged)
        starts = np.concatenate([[0], np.cumsum(sizes)]).tolist()
        span = [slice(start, end) for start, end in pairwise(starts)]
        wanted, weights, cells = np.zeros((starts[-1], starts[-1])), np.zeros((starts[-1], starts[-1])), 0
        for (a, b), table in pairs.items():
            wanted[span[a], span[b]] = merged[b].sums(merged[a].sums(_floats(table)), 1) / total
            weights[span[a], span[b]] = total**2 / (table.variance * np.multiply.outer(merged[a].members, merged[b].members))
            cells += sizes[a] * sizes[b]
        shares = [nearest_counts(group.sums(_floats(one)), total) / total for group, one in zip(merged, ones, strict=True)]
        pulls = [total**2 / (one.variance * group.members) for group, one in zip(merged, ones, strict=True)]
        return _Target(sizes, np.concatenate(shares), np.concatenate(pulls), wanted, weights, cells)


def _descended(target: _Target, logits: Singles, steps: int) -> tuple[Singles, MixtureFit]:
    """The chances at which the fit explains the pairs, or those after the last step."""
    tiles = Tiles(logits.shape[1], len(logits))
    scale = float(target.pair_weights.sum()) / max(target.cells, 1) or 1.0
    wanted, weights = tiles.squares(target.pairs), tiles.squares(target.pair_weights / scale)
    shares, share_weights = target.shares.astype(np.float32), (target.share_weights / scale).astype(np.float32)
    mean, square = np.zeros_like(logits), np.zeros_like(logits)
    starts = np.concatenate([[0], np.cumsum(target.sizes)[:-1]])
    chances, residual, step = _softmax(logits, starts, target.sizes), math.inf, 0
    for step in range(1, steps + 1):
        looked = step <= LOOK_CLOSELY or step % LOOK_EVERY == 0
        loss, gradient = tiles.gradient(chances, wanted, weights, with_loss=looked)
        residual = scale * loss / max(target.cells, 1) if looked else residual
        if residual <= target.explained(step):
            break
        gradient += (chances.mean(axis=0) - shares) * share_weights
        inner = np.repeat(np.add.reduceat(gradient * chances, starts, axis=1), target.sizes, axis=1)
        slope = chances * (gradient - inner)
        mean += (1 - _QUICK) * (slope - mean)
        square += (1 - _SLOW) * (slope * slope - square)
        rate = RATE * min(1.0, step / WARMING) * (0.02 + 0.98 * (0.5 + 0.5 * math.cos(math.pi * step / steps)))
        logits -= (
            np.float32(rate / (1 - float(_QUICK) ** step)) * mean / (np.sqrt(square / np.float32(1 - float(_SLOW) ** step)) + _NOTHING)
        )
        chances = _softmax(logits, starts, target.sizes)
    return chances, MixtureFit(step, residual)


def _floats(table: MeasuredMarginal) -> Floats:
    return np.asarray(table.counts, dtype=np.float64)


def _softmax(logits: Singles, starts: Integers, sizes: Sequence[int]) -> Singles:
    """Chances from logits, column by column."""
    power = np.exp(logits - np.repeat(np.maximum.reduceat(logits, starts, axis=1), sizes, axis=1))
    chances: Singles = power / np.repeat(np.add.reduceat(power, starts, axis=1), sizes, axis=1)
    return chances


def _stratified(chances: Floats, component: Integers, numbers: PublicNumbers) -> Integers:
    """One value for each row. ``component`` ascends; the rows of one get the evenly spread quantiles of its chances, shuffled."""
    number, values = len(component), chances.shape[1]
    sizes = np.bincount(component, minlength=len(chances))
    shuffled = np.argsort(component + numbers.uniform(number), kind="stable")
    place = (np.arange(number) - (np.cumsum(sizes) - sizes)[component] + numbers.uniform(number)) / sizes[component]
    ends = np.cumsum(chances, axis=1)
    ends /= ends[:, -1:]
    found = np.searchsorted((ends + np.arange(len(chances))[:, None]).ravel(), component + place, side="right")
    drawn = np.empty(number, dtype=np.int64)
    drawn[shuffled] = np.clip(found - component * values, 0, values - 1)
    return drawn
