"""What a limit on rows per unit leaves for quantiles: a sample of the rows, in which active units have a smaller share than they should.

A limit has two costs in ranks. Noise grows with it, and the rows that are kept grow more slowly, so noise weighs more. Below it, units that
are cut have too small a share of the rows, so the ranks of the sample are not those of all rows. Both are predicted from the rows per unit,
which are public, and the limit with the smallest sum is taken.

It affects accuracy only: every plan is certified.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lapwing.contribution.rows_per_unit import Contributions

UNLIKE = 1.5
"""The logarithm of how many times the odds of being below a value are higher among rows that are left out, or lower: 4.5 times. Where the
users with 300 rows have values less than half of those with one row, the odds differ by up to 4 times, and bars with 1 missed a truth."""
SCORE = 1.96
"""The confidence at which limits are compared: about that of bars."""


@dataclass(frozen=True, slots=True)
class RowSample:
    """The rows that a limit keeps of those in a relation."""

    rows: float
    """How many are kept; of those that are computed from several rows, at least as many as there are units."""
    spread: float
    """The variance of the share of kept rows below a value, times the number of kept rows, where half of them are: at most 4 times that.
    It is 1 if the rows of a unit are as unlike as those of several; more where units weigh less than their rows, all of which are alike."""
    moved: float
    """The share of the weight that the limit takes from active units and gives to others."""
    altered: float
    """The share of values that are computed from fewer rows than there are, as a unit's sum by day is."""

    @staticmethod
    def of(contributions: Contributions, limit: float, *, computed: bool = False) -> RowSample:
        """The rows kept of these. ``computed``: rows of the relation are themselves computed from several rows of a unit."""
        rows = max(contributions.rows(), 1e-9)
        kept = max(rows - contributions.excess(limit), 1e-9)
        weights = [(units, min(each, limit) / kept, each / rows) for each, units in contributions.bins if units > 0]
        lost = max(1 - kept / rows, 0.0)
        spread = lost + kept * sum(units * (new - old) ** 2 for units, new, old in weights)
        moved = sum(units * max(new - old, 0.0) for units, new, old in weights)
        cut = sum(units * each for each, units in contributions.bins if each > limit) / rows
        return RowSample(contributions.units() if computed else kept, spread, moved, cut if computed else 0.0)

    def random_error(self, share: float, rows: float) -> float:
        """The deviation, in shares of all rows, at which a value at this share of ``rows`` kept rows is."""
        return math.sqrt(share * (1 - share) * self.spread / max(rows, 1.0))

    def bias(self, share: float) -> float:
        """Most by which active units are taken to move it. Where values are computed from fewer rows, all of those may move."""
        return UNLIKE * share * (1 - share) * self.moved + self.altered


@dataclass(frozen=True, slots=True)
class RankError:
    """The error of a quantile by selection alone."""

    share: float | None
    """The requested share; None for an extreme."""
    ranks: float
    """For a limit of one row."""


def best_limit(
    contributions: Contributions, limits: Sequence[float], errors: Sequence[RankError], *, kept: float, cells: float, computed: bool
) -> float:
    """The limit with the least predicted error: relative to the smaller side of each quantile, since a rank is worth more near the ends.

    ``kept`` is the share of rows that the conditions keep, ``cells`` the number of groups.
    """

    def error(limit: float) -> float:
        sample = RowSample.of(contributions, limit, computed=computed)
        rows = kept * sample.rows / cells
        squares = 0.0
        for one in errors:
            noise = one.ranks * limit / max(rows, 1e-9)
            if one.share is None:
                squares += noise**2
                continue
            own = math.hypot(noise, SCORE * sample.random_error(one.share, rows)) + sample.bias(one.share)
            squares += (own / min(one.share, 1 - one.share)) ** 2
        return squares

    return min(limits, key=error)
