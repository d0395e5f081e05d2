"""Caps of a query's vectors from the norms that were bought: one for each vector, in its own units, by the narrowest predicted interval.

An average is a sum over a count, each with its own cap; only if all values are of similar size is the sum of distances from the middle of
their range better, which is then scaled down together with the count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from lapwing.contribution.bounding import NEGLIGIBLE, BoundingKind, BoundingPlan
from lapwing.contribution.clipping_bound import best_cap, predicted, predicted_at_edges
from lapwing.contribution.dominance import dominated, rows_needed
from lapwing.contribution.histograms import ROWS_WORTH_MEASURING, ClippingBound, are_measurable, counts_once, name_of, norms_of
from lapwing.contribution.model import ContributionModel, NormHistogram, fitted_norms
from lapwing.kernel.accounting import Account
from lapwing.kernel.expressions import Column, Expression
from lapwing.kernel.ir import GridSum, Measure, Project, Relation, RowCount, Scan, UnitAggregateKind, UnitCount, UnitNorms
from lapwing.kernel.row_ranges import row_range
from lapwing.kernel.stability import Shape
from lapwing.planning.centres import OFF_CENTRE, Centre, caps_of_centred, fitted_profile, of_sum
from lapwing.planning.measures import AverageMeasure, CountMeasure, Measured, Recipe, SumMeasure
from lapwing.planning.per_unit_values import kinds_behind, kinds_of
from lapwing.planning.variances import Moments

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
COARSER_MOST = 1.5
"""A profile is used although the price of a statement would buy a histogram with a deviation this many times smaller."""
VALUES_MIN = 100
"""Per-unit values with fewer steps up to the largest are flags or ranks, of which none is far below another."""
TYPICAL_SIZE = 0.5
"""The mean size of values without a cap, as a share of the largest."""


@dataclass(frozen=True, slots=True)
class WholeVector:
    """A vector whose units add so little that nothing needs to be cut off."""

    most: int
    """The most that one unit adds, in the measure's own integers."""
    total: float
    """About how much all units add."""


@dataclass(frozen=True, slots=True)
class BoundedQuery:
    """The measures of a query, with the cap of each vector that has one."""

    needed: Measured
    cuts: Mapping[str, ClippingBound]
    followers: Mapping[str, str]
    """Sums that are scaled down like a count and have no cap of their own."""
    alike: Mapping[str, str]
    """Sums and counts of averages, each scaled down like the other too."""
    centred: Mapping[str, str]
    """By centred sum of an average: its count."""
    rows_upper: float | None
    """An upper bound of the number of rows, from bought statistics."""
    whole_rows: bool
    """All caps are limits on rows before any filter, which ranked bounding provides as well."""
    whole: Mapping[str, WholeVector] = field(default_factory=dict)
    """Vectors of which nothing is cut off."""

    def choice(self) -> BoundingPlan:
        """The cap of the first vector, as the explanation of a plan shows it."""
        first = next(iter(self.cuts.values())).choice
        return BoundingPlan(BoundingKind.RANKED if self.whole_rows else BoundingKind.CLIPPED, first.cap, first.bias, first.noise)

    def needs(self) -> dict[str, float]:
        """The relative weight of noise for each vector: its cap over its total. A centred sum is compared with the sum itself."""
        needs = {name: cut.choice.cap / max(cut.fit.total(), 1.0) for name, cut in self.cuts.items()}
        for total, count in self.centred.items():
            sums, rows = self.cuts[total], self.cuts[count]
            needs[total], needs[count] = sums.choice.cap / of_sum(self.needed.measures[total], sums, rows), OFF_CENTRE * needs[count]
        return needs | {name: vector.most / vector.total for name, vector in self.whole.items()}


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
    rules: int = 1
    """The planning rules of the version."""
    profiles: Mapping[str, NormHistogram] = field(default_factory=dict)
    """Norms of whole tables that preparation bought, by the name of the norms."""

    rows_profile: NormHistogram | None = None
    """Rows per unit of the table to whose rows those of the source can be assigned one to one."""
    sum_profiles: Mapping[Measure, NormHistogram] = field(default_factory=dict)
    """By sum: the sums of the same column over all rows of a unit in that table, which are not negative."""

    centres: Mapping[str, Centre] = field(default_factory=dict)
    """By sum of an average: where it is centred."""

    def without_served_centres(self) -> QueryToBound:
        """Without the centres of sums that a profile serves as they are.

        Norms bought for their distances instead made the bars of whole tables 2 to 8 times as long at epsilon 2 to 5, on tables of 5,000
        users.
        """
        plain = replace(self, centres={}).measured()
        return replace(self, centres={name: each for name, each in self.centres.items() if self.profile(plain[name]) is None})

    def norms(self, measure: Measure) -> UnitNorms:
        """The norms that a measure of this query has."""
        return norms_of(self.source, self.keys, measure, self.shape, one_in=self.one_in, cells=self.cells, rules=self.rules)

    def fit(self, measure: Measure, fits: Mapping[UnitNorms, ContributionModel]) -> ContributionModel | None:
        """The fitted norms of a measure: bought for the statement, below what preparation bought, or that alone."""
        bought, profile = fits.get(self.norms(measure)), self.profile(measure)
        if bought is None:
            return None if profile is None else fitted_profile(profile)
        edges = [float(edge) for edge in bought.edges[:-1]]
        parts = self.cells if _is_whole(self.source) and not isinstance(measure, UnitCount) else None
        if self.rules >= 2 and self.rows_profile is not None and isinstance(measure, RowCount) and bought.histogram is not None:
            bought = fitted_norms(bought.histogram, fitted_profile(self.rows_profile))
        if self.rows_profile is not None:
            of_rows = parts if measure == RowCount() else None
            bought = dominated(bought, fitted_profile(self.rows_profile), rows_needed(measure, edges, self.shape), parts=of_rows)
            centre = next((each for name, each in self.centres.items() if each.bounds and self.measured().get(name) == measure), None)
            bought = bought if centre is None else bought.within(centre.units_beyond(edges, groups=bool(self.keys)))
        if isinstance(measure, GridSum) and (sums := self.sum_profiles.get(measure)) is not None:
            bought = dominated(bought, fitted_profile(sums), edges, parts=parts if isinstance(measure.value, Column) else None)
        return bought

    def all_fits(self, fits: Mapping[UnitNorms, ContributionModel]) -> dict[Measure, ContributionModel]:
        """The fitted norms of every measure, as far as they are known."""
        query = self.without_served_centres()
        found = {measure: query.fit(measure, fits) for measure in query.measured().values()}
        return {measure: fit for measure, fit in found.items() if fit is not None}

    def profile(self, measure: Measure) -> NormHistogram | None:
        """The norms of a measure that preparation bought, of all units."""
        if not self.profiles or (self.keys and not self._is_one_block_and_group):
            return None
        return self.profiles.get(name_of(norms_of(self.source, (), measure, self.shape, rules=self.rules)))

    @property
    def _is_one_block_and_group(self) -> bool:
        """Whether all rows of a block of time are in one group, as by day where blocks are days."""
        return isinstance(self.source, Scan) and self.source.blocks is not None and self.cells == 1

    @property
    def is_measurable(self) -> bool:
        """Whether all that is measured are counts, sums and averages that have norms."""
        plain = not any(isinstance(recipe, Moments) for recipe in self.needed.recipes)
        return plain and not self.needed.quantiles and are_measurable(self.keys, list(self.measured().values()), self.shape)

    def largest_norm(self) -> int:
        """The longest vector of a unit, in its own integers: a whole number of rows, or of the steps of a sum."""
        if self.rules < 2 or not self.is_measurable:
            return self.shape.rows_per_unit
        rows = [row_range(measure, self.shape.columns)[0].magnitude for measure in self.measured().values()]
        return self.shape.rows_per_unit * max([1, *rows])

    @property
    def rows_upper(self) -> float | None:
        """An upper bound of the number of rows, from bought statistics."""
        return self.rows_known and ROWS_ROOM * self.rows_known

    @property
    def of_units(self) -> bool:
        """Whether units have hardly more than one row, which was made of several: their values may be large, their counts are not.

        Discovered groups that hardly any unit has two of are found by counting units, and then nothing is clipped.
        """
        return self.rules >= 2 and self.cells is not None and self.shape.rows_per_unit < ROWS_WORTH_MEASURING <= self.shape.widest

    @property
    def is_worth_measuring(self) -> bool:
        """Whether a bound below what is possible may be better."""
        return self.shape.rows_per_unit >= ROWS_WORTH_MEASURING or bool(self.of_units and self.measured())

    def measured(self) -> dict[str, Measure]:
        """The vectors with relevant norms: a count of units in one group has none. Sums without a centre are looked up as they are."""
        relevant = {name: item for name, item in self.needed.measures.items() if self.cells != 1 or not isinstance(item, UnitCount)}
        if self.of_units:
            behind = kinds_behind(self.source)
            relevant = {name: item for name, item in relevant.items() if isinstance(item, GridSum) and self._may_vary(item, behind)}
        centred = {
            name: replace(item, offset=self.centres[name].at if name in self.centres else 0)
            for name, item in relevant.items()
            if isinstance(item, GridSum)
        }
        return relevant | centred

    def _may_vary(self, measure: GridSum, behind: Mapping[str, frozenset[UnitAggregateKind]]) -> bool:
        """Whether per-unit values may be far below the largest in an unknown way: not flags, and not counts of rows, which are known."""
        return self.size(measure) >= VALUES_MIN and kinds_of(measure.value, behind) != {UnitAggregateKind.COUNT}

    def size(self, measure: Measure) -> int:
        """The most that one row adds, in the measure's own integers."""
        return row_range(measure, self.shape.columns)[0].magnitude


def wanted_norms(query: QueryToBound, *, unit_noise: float, norms_noise: float) -> tuple[UnitNorms, ...]:
    """The norms to buy before this query is planned; none if nothing would be clipped or norms are not informative.

    ``norms_noise`` is the deviation of the histogram that the price buys. A profile that is about as precise serves as well.
    """
    if not query.is_worth_measuring or unit_noise * query.largest_norm() < NEGLIGIBLE:
        return ()
    if query.account is Account.PURE and query.cells != 1:
        return ()
    if not query.is_measurable:
        return ()
    query = query.without_served_centres()
    profiles = {measure: query.profile(measure) for measure in query.measured().values()}
    coarse = [measure for measure, found in profiles.items() if found is None or found.deviation > COARSER_MOST * norms_noise]
    return tuple(dict.fromkeys(query.norms(measure) for measure in coarse))


def bounded(query: QueryToBound, fits: Mapping[UnitNorms, ContributionModel], noise_of: Callable[[str], float]) -> BoundedQuery | None:
    """Caps for every vector from bought norms, or None if some were not bought. ``noise_of`` is a vector's noise when a unit adds 1."""
    query = query.without_served_centres()
    measures = query.measured()
    known = {name: fit for name, measure in measures.items() if (fit := query.fit(measure, fits)) is not None}
    if not measures or len(known) < len(measures) or not query.is_measurable:
        return None
    if not query.is_worth_measuring or (query.account is Account.PURE and query.cells != 1):
        return None
    one_in = {name: query.one_in if query.norms(measure) in fits else 1 for name, measure in measures.items()}
    cuts = {name: _cut(query, measure, known[name], noise_of(name), one_in=one_in[name]) for name, measure in measures.items()}
    if query.of_units:
        return _of_unit_values(query, cuts)
    needed, cuts, followers, alike, centred = _averages(query, cuts)
    for total, count in centred.items():
        cuts[total], cuts[count] = caps_of_centred(needed.measures[total], cuts[total], cuts[count], noise_of(total), noise_of(count))
    lowered = [name for name in (*alike, *followers.values()) if name not in {*centred, *centred.values()} and not needed.is_shown(name)]
    cuts |= {name: _of_average(cuts[name], noise_of(name)) for name in lowered}
    whole_rows = query.cells == 1 and _is_whole(query.source) and all(item == RowCount() for item in measures.values())
    if whole_rows:
        cuts = {name: _at_whole_rows(cut, noise_of(name)) for name, cut in cuts.items()}
    return BoundedQuery(needed, cuts, followers, alike, centred, query.rows_upper, whole_rows)


def _cut(query: QueryToBound, measure: Measure, fit: ContributionModel, unit_noise: float, *, one_in: int) -> ClippingBound:
    cells = query.cells or GROUPS_GUESSED
    row, unit, _ = row_range(measure, query.shape.columns)
    of_units = isinstance(measure, UnitCount) or (query.rules >= 2 and counts_once(query.source, query.keys, measure))
    grain = None if isinstance(measure, GridSum) else 1.0
    total = float(fit.norms() ** 2 @ fit.expected) if of_units else None
    choice = best_cap(fit, unit_noise=unit_noise, cells=cells, total_l1=total, grain=grain)
    of_all = query.rows_allowed / query.rows_known if query.rows_known else None
    unseen = fit.unseen if query.rules >= 2 else math.inf
    return ClippingBound(fit, choice, cells, unit, not row.non_negative, of_units, grain, of_all, one_in, unseen, measure)


def _at_whole_rows(cut: ClippingBound, unit_noise: float) -> ClippingBound:
    cap = float(max(1, round(cut.choice.cap)))
    return replace(cut, choice=predicted(cut.fit, cap, unit_noise=unit_noise, cells=cut.cells, total_l1=None))


def _is_whole(source: Relation) -> bool:
    """Whether a limit on the rows of its scan limits those of a unit: over several blocks of time it limits those of each block."""
    if isinstance(source, Scan):
        return source.blocks_per_unit == 1
    return isinstance(source, Project) and _is_whole(source.source)


def _averages(
    query: QueryToBound, cuts: dict[str, ClippingBound]
) -> tuple[Measured, dict[str, ClippingBound], dict[str, str], dict[str, str], dict[str, str]]:
    """Averages of sums with caps of their own, centred where a centre is known.

    Without one, the sum of distances from the middle of the range, scaled like its count, if that has less noise.
    """
    measures, recipes, followers = dict(query.needed.measures), list(query.needed.recipes), dict[str, str]()
    alike, centred = dict[str, str](), dict[str, str]()
    for index, recipe in enumerate(recipes):
        if not isinstance(recipe, AverageMeasure):
            continue
        added, centre = measures[recipe.total], query.centres.get(recipe.total)
        assert isinstance(added, GridSum)
        row, _, _ = row_range(added, query.shape.columns)
        if centre is None and recipe.offset and cuts[recipe.count].choice.cap * row.magnitude < cuts[recipe.total].choice.cap:
            followers[recipe.total] = recipe.count
            continue
        at = 0 if centre is None else centre.at
        # A sum or count that is itself an output has a cap of its own; the average then has its own pair, clipped alike and far lower.
        shown = {measure: name for name, measure in measures.items() if query.needed.is_shown(name)}
        pair = {f"{recipe.total}_mean": replace(added, offset=at), f"{recipe.total}_rows": measures[recipe.count]}
        if not shown.keys() & set(pair.values()) and recipe.count not in alike:
            pair = dict(zip((recipe.total, recipe.count), pair.values(), strict=True))
        (total, count), before = pair, (recipe.total, recipe.count)
        measures |= pair
        cuts |= {name: cuts[old] for name, old in zip(pair, before, strict=True)}
        recipes[index] = replace(recipe, total=total, count=count, offset=at)
        centred |= {total: count} if centre is not None else {}
        alike |= {total: count, count: total}
    used = {name for recipe in recipes for name in vectors_of(recipe)}
    needed = replace(query.needed, measures={name: item for name, item in measures.items() if name in used}, recipes=tuple(recipes))
    kept = {name: cut for name, cut in cuts.items() if name in used and name not in followers}
    return needed, kept, followers, alike, centred


def _of_unit_values(query: QueryToBound, cuts: dict[str, ClippingBound]) -> BoundedQuery | None:
    """Sums of values of which each unit has hardly more than one; averages are such sums over an exact count of units.

    Units with large values are not rarer rows of the same kind: their weight in an average stays 1. A centred sum needs no cap if its
    range is narrower.
    """
    measures, recipes = dict(query.needed.measures), list(query.needed.recipes)
    for index, recipe in enumerate(recipes):
        if isinstance(recipe, AverageMeasure) and recipe.offset and recipe.total in cuts:
            centred = measures[recipe.total]
            assert isinstance(centred, GridSum)
            if query.size(centred) <= cuts[recipe.total].choice.cap:
                del cuts[recipe.total]
            else:
                measures[recipe.total], recipes[index] = replace(centred, offset=0), replace(recipe, offset=0)
    if not cuts:
        return None
    units = max(max(cut.fit.units() for cut in cuts.values()), 1.0)
    whole = {name: _whole(query, item, units) for name, item in measures.items() if name not in cuts}
    needed = replace(query.needed, measures=measures, recipes=tuple(recipes))
    return BoundedQuery(needed, cuts, {}, {}, {}, query.rows_upper, False, whole)


def _whole(query: QueryToBound, measure: Measure, units: float) -> WholeVector:
    """A count of the units' few rows, or a sum of values of similar size."""
    most = query.shape.rows_per_unit * query.size(measure)
    return WholeVector(most, units * (TYPICAL_SIZE * most if isinstance(measure, GridSum) else 1.0))


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
