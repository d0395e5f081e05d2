"""Caps of a query's vectors from the norms that were bought: one for each vector, in its own units, by the narrowest predicted interval.

An average is a sum over a count, each with its own cap; only if all values are of similar size is the sum of distances from the middle of
their range better, which is then scaled down together with the count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from lapwing.contribution.bounding import NEGLIGIBLE, BoundingKind, BoundingPlan
from lapwing.contribution.clipping_bound import best_cap, predicted, predicted_at_edges
from lapwing.contribution.histograms import ROWS_WORTH_MEASURING, ClippingBound, are_measurable, norms_measure, norms_of
from lapwing.contribution.model import ContributionModel
from lapwing.kernel.accounting import Account
from lapwing.kernel.expressions import Expression
from lapwing.kernel.ir import GridSum, Measure, Project, Relation, RowCount, Scan, UnitCount, UnitNorms
from lapwing.kernel.row_ranges import row_range
from lapwing.kernel.stability import Shape
from lapwing.planning.measures import AverageMeasure, CountMeasure, Measured, Recipe, SumMeasure

GROUPS_GUESSED = 10
"""Assumed number of groups that hold most of the released total, if they are discovered: the largest are released."""
ROWS_ROOM = 2.0
"""The true number of rows is at most this many times the number in bought statistics."""
RATIO_LOSS = 0.1
"""Weight of clipping bias for an average, whose sum and count lack the same share."""
SPARSE_LOSS = 0.5
"""The same if most units add nothing to it."""
NEED_LEAST = 0.05
"""Every vector gets at least this share of the largest loss of a vector."""


@dataclass(frozen=True, slots=True)
class BoundedQuery:
    """The measures of a query, with the cap of each vector that has one."""

    needed: Measured
    cuts: Mapping[str, ClippingBound]
    followers: Mapping[str, str]
    """Sums that are scaled down like a count and have no cap of their own."""
    alike: Mapping[str, str]
    """Sums and counts of averages, each scaled down like the other too."""
    rows_upper: float | None
    """An upper bound of the number of rows, from bought statistics."""
    whole_rows: bool
    """All caps are limits on rows before any filter, which ranked bounding provides as well."""

    def choice(self) -> BoundingPlan:
        """The cap of the first vector, as the explanation of a plan shows it."""
        first = next(iter(self.cuts.values())).choice
        return BoundingPlan(BoundingKind.RANKED if self.whole_rows else BoundingKind.CLIPPED, first.cap, first.bias, first.noise)

    def needs(self) -> dict[str, float]:
        """The relative weight of noise for each vector: its cap over its total."""
        return {name: cut.choice.cap / max(cut.fit.total(), 1.0) for name, cut in self.cuts.items()}


@dataclass(frozen=True, slots=True)
class QueryToBound:
    """A query before its bounds are chosen."""

    source: Relation
    keys: tuple[tuple[str, Expression], ...]
    shape: Shape
    needed: Measured
    cells: int | None
    account: Account
    rows_allowed: int = 1
    """Most rows of a unit in one table."""
    rows_known: float | None = None
    """All rows of the source before it is filtered, from bought statistics."""
    one_in: int = 1
    """The sampling rate of the norms: one unit in this many."""

    def norms(self, measure: Measure) -> UnitNorms:
        """The norms that a measure of this query has."""
        return norms_of(self.source, self.keys, measure, self.shape, one_in=self.one_in)

    def measured(self) -> dict[str, Measure]:
        """The vectors with relevant norms: a count of units in one group has none."""
        return {name: item for name, item in self.needed.measures.items() if self.cells != 1 or not isinstance(item, UnitCount)}


def wanted_norms(query: QueryToBound, *, unit_noise: float) -> tuple[UnitNorms, ...]:
    """The norms to buy before this query is planned; none if nothing would be clipped or norms are not informative."""
    if query.shape.rows_per_unit < ROWS_WORTH_MEASURING or unit_noise * query.shape.rows_per_unit < NEGLIGIBLE:
        return ()
    if query.account is Account.PURE and query.cells != 1:
        return ()
    plain = not query.needed.quantiles and all(
        isinstance(recipe, CountMeasure | SumMeasure | AverageMeasure) for recipe in query.needed.recipes
    )
    measures = query.measured()
    if not plain or not are_measurable(query.keys, list(measures.values()), query.shape):
        return ()
    return tuple(dict.fromkeys(query.norms(measure) for measure in measures.values()))


def bounded(query: QueryToBound, fits: Mapping[UnitNorms, ContributionModel], noise_of: Callable[[str], float]) -> BoundedQuery | None:
    """Caps for every vector from bought norms, or None if some were not bought. ``noise_of`` is a vector's noise when a unit adds 1."""
    measures = query.measured()
    if not measures or any(query.norms(measure) not in fits for measure in measures.values()):
        return None
    if query.shape.rows_per_unit < ROWS_WORTH_MEASURING or (query.account is Account.PURE and query.cells != 1):
        return None
    cuts = {name: _cut(query, measure, fits, noise_of(name)) for name, measure in measures.items()}
    needed, cuts, followers, alike = _averages(query, cuts)
    cuts |= {name: _of_average(cuts[name], noise_of(name)) for name in (*alike, *followers.values()) if not _is_shown(name, needed.recipes)}
    whole_rows = query.cells == 1 and _is_whole(query.source) and all(item == RowCount() for item in measures.values())
    if whole_rows:
        cuts = {name: _at_whole_rows(cut, noise_of(name)) for name, cut in cuts.items()}
    return BoundedQuery(needed, cuts, followers, alike, query.rows_known and ROWS_ROOM * query.rows_known, whole_rows)


def _cut(query: QueryToBound, measure: Measure, fits: Mapping[UnitNorms, ContributionModel], unit_noise: float) -> ClippingBound:
    fit, cells = fits[query.norms(measure)], query.cells or GROUPS_GUESSED
    row, unit, _ = row_range(norms_measure(measure), query.shape.columns)
    of_units, grain = isinstance(measure, UnitCount), None if isinstance(measure, GridSum) else 1.0
    total = float(fit.norms() ** 2 @ fit.expected) if of_units else None
    choice = best_cap(fit, unit_noise=unit_noise, cells=cells, total_l1=total, grain=grain)
    of_all = query.rows_allowed / query.rows_known if query.rows_known else None
    return ClippingBound(fit, choice, cells, unit, not row.non_negative, of_units, grain, of_all, query.one_in)


def _at_whole_rows(cut: ClippingBound, unit_noise: float) -> ClippingBound:
    cap = float(max(1, round(cut.choice.cap)))
    return replace(cut, choice=predicted(cut.fit, cap, unit_noise=unit_noise, cells=cut.cells, total_l1=None))


def _is_whole(source: Relation) -> bool:
    return isinstance(source, Scan) or (isinstance(source, Project) and _is_whole(source.source))


def _averages(
    query: QueryToBound, cuts: dict[str, ClippingBound]
) -> tuple[Measured, dict[str, ClippingBound], dict[str, str], dict[str, str]]:
    """Averages of sums with caps of their own, unless the centred sum scaled like its count has less noise."""
    measures, recipes, followers = dict(query.needed.measures), list(query.needed.recipes), dict[str, str]()
    alike: dict[str, str] = {}
    for index, recipe in enumerate(recipes):
        if not isinstance(recipe, AverageMeasure):
            continue
        centred = measures[recipe.total]
        assert isinstance(centred, GridSum)
        row, _, _ = row_range(centred, query.shape.columns)
        if recipe.offset and cuts[recipe.count].choice.cap * row.magnitude < cuts[recipe.total].choice.cap:
            followers[recipe.total] = recipe.count
            continue
        # A sum or count that is itself an output has a cap of its own; the average then has its own pair, clipped alike and far lower.
        shown = {measure: name for name, measure in measures.items() if _is_shown(name, recipes)}
        pair = {f"{recipe.total}_mean": replace(centred, offset=0), f"{recipe.total}_rows": measures[recipe.count]}
        if not shown.keys() & set(pair.values()) and recipe.count not in alike:
            pair = dict(zip((recipe.total, recipe.count), pair.values(), strict=True))
        (total, count), before = pair, (recipe.total, recipe.count)
        measures |= pair
        cuts |= {name: cuts[old] for name, old in zip(pair, before, strict=True)}
        recipes[index] = replace(recipe, total=total, count=count, offset=0)
        alike |= {total: count, count: total}
    used = {name for recipe in recipes for name in vectors_of(recipe)}
    needed = replace(query.needed, measures={name: item for name, item in measures.items() if name in used}, recipes=tuple(recipes))
    return needed, {name: cut for name, cut in cuts.items() if name in used and name not in followers}, followers, alike


def _of_average(cut: ClippingBound, unit_noise: float) -> ClippingBound:
    """The vector with a cap for a part of an average: equal clipping of both parts affects it less than a total.

    Less so if most units add nothing: the others have about one contributing row, and clipping removes large values, not many rows.
    """
    if cut.fit.sparse and not cut.fit.seen:
        return cut
    fit, cells, grain = cut.fit, cut.cells, cut.grain
    choices = predicted_at_edges(fit, unit_noise=unit_noise, cells=cells, total_l1=None, grain=grain)
    matters = SPARSE_LOSS if fit.sparse else RATIO_LOSS
    return replace(cut, choice=min(choices, key=lambda choice: math.hypot(choice.noise, matters * choice.bias)))


def _is_shown(name: str, recipes: Sequence[Recipe]) -> bool:
    """Whether a vector is an output by itself, so that no other vector may scale it."""
    return any(isinstance(recipe, CountMeasure | SumMeasure) and recipe.vector == name for recipe in recipes)


def vectors_of(recipe: Recipe) -> tuple[str, ...]:
    """The vectors of a plain recipe."""
    match recipe:
        case AverageMeasure(total, count):
            return (total, count)
        case CountMeasure(vector=vector) | SumMeasure(vector=vector):
            return (vector,)
        case _:
            return ()


def shares_by_need(needs: Mapping[tuple[int, str], float], loss: Fraction, account: Account) -> dict[tuple[int, str], Fraction]:
    """The loss of each vector so that the squared relative errors add up to the least."""
    power = 1.0 if account is Account.APPROXIMATE else 2 / 3
    most = max(needs.values())
    weights = {name: max(round(1000 * (need / most) ** power), round(1000 * NEED_LEAST)) for name, need in needs.items()}
    return {name: loss * Fraction(weight, sum(weights.values())) for name, weight in weights.items()}
