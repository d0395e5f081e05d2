"""The longest error bars of a free answer, to compare releases with each other and with a fresh answer. Public facts only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from lapwing.releases.serving.coverage import ROWS, CoveredQuery, PublicMarginals
from lapwing.releases.serving.tree_quantiles import TreeQuantiles
from lapwing.releases.serving.weighted_sums import WeightedSums

_QUANTILE = "quantile "


def sides_by_vector(covered: CoveredQuery, marginals: PublicMarginals, confidence: Fraction) -> dict[str, float]:
    """For each requested vector, the longest side of an error bar in any of the finest groups; for quantiles, in ranks."""
    by_level = sides_by_level(covered, marginals, confidence)
    finest = max(range(len(by_level)), key=lambda number: by_level[number].groups)
    quantiles = TreeQuantiles(covered, marginals) if covered.quantiles else None
    ranks = {quantile_side(number): quantiles.ranks(number, confidence) for number in covered.quantiles if quantiles is not None}
    return dict(by_level[finest].sides) | ranks


@dataclass(frozen=True, slots=True)
class LevelSides:
    """The longest sides on one level of the sub-totals of an answer, by vector; and the fewest groups that a row of it adds up."""

    kept: tuple[int, ...]
    groups: int
    fewest: int
    sides: Mapping[str, float]


def sides_by_level(covered: CoveredQuery, marginals: PublicMarginals, confidence: Fraction) -> list[LevelSides]:
    """Sides by level; without sub-totals there is one level."""
    sums, place = WeightedSums(covered, marginals), 0
    found = []
    for each in sums.levels:
        kept, groups = each.level.kept, each.level.groups
        rows = slice(place, place + len(groups))
        place += len(groups)
        sides = {
            name: float(np.max(sums.half_width(name, confidence)[rows] / covered.scales[name], initial=0.0))
            for name in covered.weights
            if name != ROWS
        }
        members = Counter(tuple(value if key in kept else None for key, value in enumerate(group)) for group in covered.groups)
        found.append(LevelSides(kept, len(groups), min(members.values(), default=1), sides))
    return found


def quantile_side(number: int) -> str:
    """The name of the rank error of a quantile among the sides."""
    return f"{_QUANTILE}{number}"


def is_quantile_side(name: str) -> bool:
    """Whether a side is in ranks."""
    return name.startswith(_QUANTILE)


def longest_sides(covered: Sequence[CoveredQuery], marginals: PublicMarginals, confidence: Fraction) -> tuple[float, ...]:
    """The sides of all vectors of several queries."""
    return tuple(side for query in covered for side in sides_by_vector(query, marginals, confidence).values())
