"""A public distribution over all combinations of the bins of some columns, which learns from noisy counts.

It reads answers and public facts only, so it is post-processing. An update multiplies the weights of the cells that were
counted, up or down, by ``exp(4 d)``, where d is at most the distance between the exact count and what the weights said, as a share of all
rows: that of the noisy count, less what its noise may be. The reason and the maximum number of updates: docs/explanation/weights.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lapwing.errors import Refused
from lapwing.releases.marginals.axes import Axis
from lapwing.releases.marginals.synopsis import Synopsis
from lapwing.releases.released import Release

Floats: TypeAlias = npt.NDArray[np.float64]

CELLS_MAX = 1_000_000
"""Most combinations of bins with weights."""
SWEEPS = 20
"""How often the weights are fitted to each table of a release that they start from."""
STEP_MAX = 30.0
"""No update multiplies by more than the exponential of this: floats stay finite."""
LEAST = 1e-9
"""Of the weight of a cell in a uniform distribution: the minimum for cells that a release shows as empty, so that they can still be
learnt."""


@dataclass(frozen=True, slots=True, eq=False)
class CellSubset:
    """The cells that a question counts: over some of the axes, ascending, whether each combination of their bins is counted."""

    axes: tuple[int, ...]
    counted: npt.NDArray[np.bool_]


class MultiplicativeWeights:
    """Weights that estimate the number of rows in any set of cells, of ``rows`` in all."""

    def __init__(self, sizes: Sequence[int], rows: int, start: Floats | None = None) -> None:
        self._sizes = tuple(sizes)
        if math.prod(self._sizes) > CELLS_MAX:
            hint = "cut columns into fewer bins, or leave some out"
            raise Refused("weights-cells", f"the columns have {math.prod(self._sizes):,} combinations; at most {CELLS_MAX:,}", hint=hint)
        self._rows = max(rows, 1)
        self._weights = np.full(self._sizes, 1.0) if start is None else np.array(start, dtype=np.float64)
        self._weights /= self._weights.sum()

    @property
    def rows(self) -> int:
        """The public number of rows."""
        return self._rows

    def estimate(self, cells: CellSubset) -> int:
        """The estimated number of rows in these cells, as a whole number."""
        return round(self._share(cells) * self._rows)

    def learn(self, cells: CellSubset, noisy: int, *, noise: int, least: int) -> None:
        """Move the weights of these cells towards a noisy count, whose noise is likely at most ``noise``, by ``least`` rows at least."""
        if cells.counted.all():
            self._rows = max(noisy, 1)
            return
        apart = noisy - self.estimate(cells)
        step = 4 * max(abs(apart) - noise, least) / self._rows
        self._weights *= np.where(self._spread(cells), math.exp(math.copysign(min(step, STEP_MAX), apart)), 1.0)
        self._weights /= self._weights.sum()

    def probabilities(self) -> Floats:
        """The weights, in the shape of the axes; they sum to 1."""
        return self._weights.copy()

    def _share(self, cells: CellSubset) -> float:
        others = tuple(axis for axis in range(len(self._sizes)) if axis not in cells.axes)
        return float(self._weights.sum(axis=others)[cells.counted].sum())

    def _spread(self, cells: CellSubset) -> npt.NDArray[np.bool_]:
        shape = [size if axis in cells.axes else 1 for axis, size in enumerate(self._sizes)]
        return cells.counted.reshape(shape)


def weights_of_release(release: Release, axes: Sequence[Axis]) -> tuple[Floats, int]:
    """The initial weights over these axes from a release, and its number of rows. Columns without a release are uniform.

    The weights are fitted to each of its tables in turn (iterative proportional fitting), with negative counts as none.
    """
    section = release.sections[0]
    synopsis = section.synopsis
    if not isinstance(synopsis, Synopsis):
        raise Refused("weights-start", f"the release {release.name!r} is a tree of ranges: weights can start only from marginals")
    sizes = tuple(axis.size for axis in axes)
    if math.prod(sizes) > CELLS_MAX:
        raise Refused("weights-cells", f"the columns have {math.prod(sizes):,} combinations; at most {CELLS_MAX:,}")
    places = {axis.column: place for place, axis in enumerate(axes)}
    for axis in section.axes:
        if axis.column in places and axes[places[axis.column]] != axis:
            raise Refused(
                "weights-start", f"the release {release.name!r} has other bins for {axis.column!r}", hint="use the bins of the release"
            )
    rows = max(round(float(synopsis.marginal(()))), 1)
    targets: dict[tuple[int, ...], Floats] = {}
    for table in section.measured:
        inside = tuple(number for number in table.axes if section.axes[number].column in places)
        own = tuple(places[section.axes[number].column] for number in inside)
        if own and tuple(sorted(own)) not in targets:
            counts = np.transpose(synopsis.marginal(inside), np.argsort(own))
            targets[tuple(sorted(own))] = np.maximum(counts, 0.0)
    weights = np.full(sizes, 1.0 / math.prod(sizes))
    for _ in range(SWEEPS):
        for own, counts in targets.items():
            others = tuple(axis for axis in range(len(sizes)) if axis not in own)
            said, wanted = weights.sum(axis=others), counts / max(float(counts.sum()), 1.0)
            factor = np.divide(wanted, said, out=np.zeros_like(wanted), where=said > 0.0)
            weights = weights * factor.reshape([size if axis in own else 1 for axis, size in enumerate(sizes)])
    return np.maximum(weights, LEAST / math.prod(sizes)), rows
