"""Groups scaled to a total: counts and sums of groups measured at a low cap, their total at a high one, each with its own noise.

Noise in a group grows with the cap, and only a few units need a high cap. The total needs a high cap and has a large value;
the groups do not if units above a low cap spread over the groups like the others. That is a model, not a measurement: it is used
only on request and noted in the answer. For privacy these are two ordinary queries of one plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from lapwing.contribution.clipping_bound import SKEW_POWER, UNLIKE, chance_of_parts, predicted_at_edges
from lapwing.contribution.histograms import ClippingBound
from lapwing.errors import Refused
from lapwing.kernel.accounting import Account
from lapwing.kernel.ir import GridSum, RowCount
from lapwing.planning.measures import CountMeasure, Measured, Recipe, SumMeasure
from lapwing.planning.vector_bounds import BoundedQuery, shares_by_need
from lapwing.statements import PrivateQuery

TOTAL_SHARE = Fraction(1, 4)
"""The totals' share of the price of a statement with scaled groups."""
ABOUT_THE_LEAST = 1.1
"""Among caps with errors up to this many times the least, the highest is chosen, because it leaves the least to the model."""
CLEARLY_BETTER = 0.5
"""A hint suggests scaling if its predicted error is below this share of the error without it."""
SMALL_GROUPS = 0.2
"""... and if the error without it is more than this share of a group of mean size: large groups need no model."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """The total to which a vector of groups is scaled."""

    number: int
    """Number of the query of the certified plan that measures it."""
    vector: str
    cut: ClippingBound
    """The total's own cap and its clipping bias."""
    error: float
    """Predicted root mean square error of a group, in the measure's own integers."""


@dataclass(frozen=True, slots=True)
class GroupsAndTotals:
    """A query of groups and the query of their totals."""

    totals: int
    """The number of the totals among the statement's drafts."""
    vectors: Mapping[str, str]
    """By vector of the groups: the vector of its total."""


def scalable(recipe: Recipe, needed: Measured) -> bool:
    """Whether an aggregate of groups adds up to a total: counts of rows, and sums of values that are never negative."""
    if not isinstance(recipe, CountMeasure | SumMeasure):
        return False
    measure = needed.measures[recipe.vector]
    return isinstance(measure, RowCount) or (isinstance(measure, GridSum) and measure.lower >= 0)


def total_query(query: PrivateQuery, needed: Measured) -> PrivateQuery | None:
    """The query of the totals to which groups can be scaled; None if no vector can be scaled."""
    aggregates = tuple(item for item, recipe in zip(query.aggregates, needed.recipes, strict=True) if scalable(recipe, needed))
    return replace(query, keys=(), groups=None, aggregates=aggregates) if aggregates and query.keys else None


def require_scalable(query: PrivateQuery, cells: int | None, account: Account) -> None:
    """Refuse groups that cannot be scaled, for any aggregate."""
    if account is Account.PURE:
        raise _unsupported("it needs Gaussian noise, and this data set has no delta", hint="ask without it")
    if cells is None:
        raise _unsupported("a total counts hidden groups too, and these are discovered", hint="group by a declared column")
    if query.levels is not None:
        raise _unsupported("it has totals of its own, of ROLLUP and the like", hint="ask for the groups alone")


def _unsupported(reason: str, *, hint: str) -> Refused:
    return Refused("scaled-groups-unsupported", f"these groups cannot be scaled to a total: {reason}", hint=hint)


def nothing_to_scale() -> Refused:
    """The refusal of a statement without any scalable aggregate."""
    message = "there is nothing to scale: only counts of rows and sums of what is never below 0 add up over groups"
    return Refused("scaled-groups-unsupported", message, hint="ask without it")


def paired(needed: Measured, totals: Measured, number: int) -> GroupsAndTotals:
    """The vectors of groups and of their totals; the totals are draft ``number``."""
    recipes = [recipe for recipe in needed.recipes if scalable(recipe, needed)]
    both = zip(recipes, totals.recipes, strict=True)
    vectors = {
        own.vector: total.vector
        for own, total in both
        if isinstance(own, CountMeasure | SumMeasure) and isinstance(total, CountMeasure | SumMeasure)
    }
    return GroupsAndTotals(number, vectors)


def with_low_caps(
    groups: BoundedQuery, totals: BoundedQuery, pair: GroupsAndTotals, noise_of: Callable[[str], float]
) -> tuple[BoundedQuery, dict[str, float]]:
    """The bounds of groups that are scaled to totals, and the predicted error of each vector."""
    cuts, errors = dict(groups.cuts), {}
    for name, total in pair.vectors.items():
        cuts[name], errors[name] = _low_cap(groups.cuts[name], totals.cuts[total].fit.total(), noise_of(name))
    return replace(groups, cuts=cuts), errors


def shares_with_totals(
    needs: Mapping[tuple[int, str], float], totals: Collection[int], loss: Fraction, account: Account
) -> dict[tuple[int, str], Fraction]:
    """The loss of each vector, by need; totals of scaled groups together get a fixed share."""
    of_totals = [key for key in needs if key[0] in totals]
    if not of_totals:
        return shares_by_need(needs, loss, account)
    shares = shares_by_need({key: need for key, need in needs.items() if key[0] not in totals}, loss * (1 - TOTAL_SHARE), account)
    return shares | dict.fromkeys(of_totals, loss * TOTAL_SHARE / len(of_totals))


def _low_cap(cut: ClippingBound, total_l1: float | None, unit_noise: float) -> tuple[ClippingBound, float]:
    """The highest cap with nearly the least error in a scaled group of mean size, and that error.

    The error combines the group's noise times its scale factor; the random variation between groups of the units above the cap; and
    the difference of those units from the others.
    """
    fit, cells, grain = cut.fit, cut.cells, cut.grain
    even = np.array([1.0 / cells])
    tried = []
    for choice in predicted_at_edges(fit, unit_noise=unit_noise, cells=cells, total_l1=total_l1, grain=grain):
        chance = float(chance_of_parts(fit, choice.cap, cells=cells, total_l1=total_l1, shares=even, grain=grain)[0])
        tried.append((math.hypot(choice.noise / max(1.0 - choice.lost, 1e-3), chance, UNLIKE * choice.bias), choice))
    least = min(error for error, _ in tried)
    error, choice = next(item for item in reversed(tried) if item[0] <= ABOUT_THE_LEAST * least)
    return replace(cut, choice=choice), error


def would_help(cut: ClippingBound) -> bool:
    """Whether scaling is predicted to be clearly better for groups that were requested without it."""
    if cut.cells == 1 or cut.of_units or cut.signed:
        return False
    without = math.hypot(cut.choice.noise, cut.cells**SKEW_POWER * cut.choice.bias)
    if without < SMALL_GROUPS * cut.fit.total() / cut.cells:
        return False
    _, error = _low_cap(cut, None, cut.choice.noise / cut.choice.cap / math.sqrt(1 - float(TOTAL_SHARE)))
    return error < CLEARLY_BETTER * without
