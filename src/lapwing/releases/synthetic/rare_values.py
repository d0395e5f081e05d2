"""Values too rare to be significant are merged: there are fewer cells to fit, and noise is not fitted as structure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

RARE = 3.0
"""Values whose noisy count is less than this many deviations are rare."""


def nearest_counts(counts: Floats, total: float) -> Floats:
    """The counts nearest to these (in squares) that are not negative and add up to ``total``."""
    falling = np.sort(counts, axis=None)[::-1]
    over = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    last = int(np.flatnonzero(falling > over)[-1])
    nearest: Floats = np.maximum(counts - over[last], 0.0)
    return nearest


@dataclass(frozen=True, slots=True)
class MergedValues:
    """The values of one column, in which all rare ones are one. ``place``: value -> merged value; ``members``: the number of values merged
    into each."""

    place: Integers
    members: Floats

    @staticmethod
    def of(counts: Floats, deviation: float) -> MergedValues:
        kept = counts >= RARE * deviation
        if kept.sum() >= len(kept) - 1:
            kept = np.ones(len(kept), dtype=bool)
        place = np.where(kept, np.cumsum(kept) - 1, kept.sum()).astype(np.int64)
        return MergedValues(place, np.bincount(place).astype(np.float64))

    @property
    def size(self) -> int:
        return len(self.members)

    def sums(self, counts: Floats, axis: int = 0) -> Floats:
        """A table with this axis merged."""
        moved = np.moveaxis(counts, axis, 0)
        out = np.zeros((self.size, *moved.shape[1:]))
        np.add.at(out, self.place, moved)
        return np.moveaxis(out, 0, axis)

    def spread(self, chances: Floats) -> Floats:
        """Chances of merged values (components x size) as chances of values: rare ones are equally likely."""
        evenly: Floats = (chances / self.members)[:, self.place]
        return evenly
