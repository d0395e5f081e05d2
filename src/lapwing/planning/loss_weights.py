"""The weights of lost rows and of noise for the measures of a query."""

from __future__ import annotations

import math

from lapwing.kernel.ir import GridSum
from lapwing.planning.measures import AverageMeasure, Measured
from lapwing.planning.variances import Moments

COUNT_NOISE = 1.0
"""Noise of a count, in rows, when one row moves it by 1. The weights below are in the same unit."""
SUM_NOISE = 10.0
"""The same for a sum: a typical value is assumed to be a tenth of its bound."""
CENTRED_SUM_NOISE = SUM_NOISE / 2
"""The same for a sum of distances from the middle of the range, which are at most half as large."""
QUANTILE_NOISE = 10.0
"""The same for a rank: its error is several times the largest share of one row, because a selection has many candidates."""
TOTAL_LOSS = 1.0
"""Weight of a lost row for a count or a sum: it is missing."""
RATIO_LOSS = 0.2
"""Weight of a lost row for an average, a moment or a quantile: the other rows of its group are similar."""


def weight_of(needed: Measured, *, of_noise: bool) -> float:
    """Root mean square of the vectors' weights of lost rows, or of noise."""
    averaged = {name for recipe in needed.recipes if isinstance(recipe, AverageMeasure) for name in (recipe.total, recipe.count)}
    averaged |= {name for recipe in needed.recipes if isinstance(recipe, Moments) for name in recipe.vectors}
    squares = []
    for name, measure in needed.measures.items():
        noise = COUNT_NOISE if not isinstance(measure, GridSum) else CENTRED_SUM_NOISE if measure.offset else SUM_NOISE
        lost = RATIO_LOSS if name in averaged else TOTAL_LOSS
        squares.append(noise**2 if of_noise else lost**2)
    squares += [(QUANTILE_NOISE if of_noise else RATIO_LOSS) ** 2] * len(needed.quantiles)
    return math.sqrt(sum(squares) / len(squares)) if squares else 1.0
