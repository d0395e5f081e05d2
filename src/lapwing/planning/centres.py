"""Averages whose sum is centred near the average of the whole table, which its profiles tell.

The centred sum and its count are scaled down alike; their caps are chosen together, for the shortest predicted error bar. It affects
accuracy only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from lapwing.contribution.clipping_bound import BEYOND, SKEW_POWER, predicted_at_edges
from lapwing.contribution.dominance import most_beyond, table_within
from lapwing.contribution.histograms import ClippingBound, name_of, norms_of
from lapwing.contribution.model import ContributionModel, Floats, NormHistogram, fitted_norms, longer
from lapwing.kernel.domains import grid_integer
from lapwing.kernel.expressions import Case, Column, Expression, Literal
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Filter, GridSum, Measure, Project, PublicJoin, Relation, Scan, SemiJoin, UnitJoin
from lapwing.kernel.stability import shape_of
from lapwing.planning.grids import count_of, grid_of
from lapwing.planning.measures import AverageMeasure, Measured

TRIMMED = 0.05
"""The most active units, this share of all, are left out of the centre: few profiles show how long their vectors are."""
FITS_KEPT = 64
"""Number of cached fits of profiles."""
OFF_CENTRE = 0.5
"""An average differs from the centre of its sum by about this share of it, so the noise of its count matters as much less."""
UNLIKE_AVERAGE = 0.25
"""The average of units above a bound differs from the average of all by at most this share of it."""
LARGER_AVERAGE = 0.4
"""The average lacks at most this share of the missing part of the sum."""
DISTANCES_ABOVE = 0.8
"""The average lacks at most this share of the missing part of the distances from a centre: units' distances cancel in part. With 0.4
bars of averages by region held 86 % of truths where amounts are long-tailed, with 1.0 all."""


@dataclass(frozen=True, slots=True)
class Centre:
    """Where a sum is centred, and the profiles that tell it."""

    at: int
    """In integers of its grid."""
    sums: NormHistogram
    """Units by the sum of the column."""
    rows: NormHistogram
    """Units by the number of its values."""
    scale: float
    """Integers of the profile of sums in one of the grid."""
    bounds: bool
    """Whether a unit's sum over rows of the statement is at most that over the table."""

    def units_beyond(self, norms: Sequence[float], *, groups: bool) -> Floats:
        """At most how many units have a centred sum longer than each of these norms: its sum or its rows times the centre are as long.

        Over several groups one of both is longer than the norm over the root of two.
        """
        sizes = np.asarray(norms) / (math.sqrt(2.0) if groups else 1.0)
        by_sums = most_beyond(fitted_profile(self.sums), (sizes * self.scale).tolist())
        return by_sums + (most_beyond(fitted_profile(self.rows), (sizes / self.at).tolist()) if self.at else 0.0)


def centres_of(needed: Measured, source: Relation, facts: Facts, profiles: Mapping[str, NormHistogram]) -> dict[str, Centre]:
    """By sum of an average, as far as profiles of its column were bought."""
    found: dict[str, Centre] = {}
    if facts.planning_rules < 2 or not profiles:
        return found
    for recipe in needed.recipes:
        if isinstance(recipe, AverageMeasure) and not needed.is_shown(recipe.total):
            grid = needed.measures[recipe.total]
            assert isinstance(grid, GridSum)
            centre = _centre(grid, source, facts, profiles)
            if centre is not None:
                found[recipe.total] = centre
    return found


def _centre(grid: GridSum, source: Relation, facts: Facts, profiles: Mapping[str, NormHistogram]) -> Centre | None:
    """The sum of units' sums over the number of values, if these are not negative: sums that cancel would not show their average."""
    place = _stored(_plain(grid.value), source)
    if place is None:
        return None
    table, column = place
    if facts.table(table).blocks is not None:  # blocks have no profiles
        return None
    scan = Scan(table, facts.table(table).rows_per_unit_max)
    shape = shape_of(scan, facts)
    whole = grid_of(Column(column), shape)

    def profile(measure: Measure) -> NormHistogram | None:
        return profiles.get(name_of(norms_of(scan, (), measure, shape, rules=facts.planning_rules)))

    sums, rows = profile(whole), profile(count_of(whole.value, shape))
    if sums is None or rows is None or whole.lower < 0:
        return None
    lower, upper = grid_integer(grid.lower, grid.steps), grid_integer(grid.upper, grid.steps)
    mean = _total(sums) / max(_total(rows), 1.0) * grid.steps / whole.steps
    at = min(max(round(mean), lower), upper)
    return Centre(at, sums, rows, whole.steps / grid.steps, bounds=table_within(source, facts) == scan)


def _total(profile: NormHistogram) -> float:
    """The sum of the norms of all but the longest units, which the profile does not show well."""
    fit = fitted_profile(profile)
    units = np.maximum(fit.expected, 0.0)
    trimmed = np.clip(np.cumsum(units[::-1])[::-1] - TRIMMED * units.sum(), 0.0, units)
    return float(trimmed @ fit.norms())


@lru_cache(maxsize=FITS_KEPT)
def fitted_profile(histogram: NormHistogram) -> ContributionModel:
    """Every statement about a whole table has the same."""
    return fitted_norms(histogram)


def _plain(value: Expression) -> Expression:
    """The value of an aggregate without its FILTER."""
    match value:
        case Case(((_, inner),), Literal(None)):
            return inner
        case _:
            return value


def _stored(value: Expression, relation: Relation) -> tuple[str, str] | None:
    """The table and the column that the value of a row is, if it is a column of a table."""
    if not isinstance(value, Column):
        return None
    match relation:
        case Scan(table):
            return table, value.name
        case Filter(source) | SemiJoin(source):
            return _stored(value, source)
        case Project(source, columns):
            return _stored(dict(columns)[value.name], source)
        case PublicJoin(source, columns=columns):
            return None if value.name in dict(columns) else _stored(value, source)
        case UnitJoin(left, right, columns=columns):
            added = dict(columns)
            return _stored(Column(added[value.name]), right) if value.name in added else _stored(value, left)
        case _:
            return None


def caps_of_centred(
    measure: Measure, sums: ClippingBound, rows: ClippingBound, sum_noise: float, row_noise: float
) -> tuple[ClippingBound, ClippingBound]:
    """The sum and its count with the caps of the shortest predicted bar. The noises are those of vectors to which a unit adds 1."""
    of_sums = predicted_at_edges(sums.fit, unit_noise=sum_noise, cells=sums.cells, total_l1=None, grain=sums.grain)
    of_rows = predicted_at_edges(rows.fit, unit_noise=row_noise, cells=rows.cells, total_l1=None, grain=rows.grain)
    total, size = max(rows.choice.total, 1.0), max(of_sum(measure, sums, rows) / max(rows.fit.total(), 1.0), 1e-9)
    in_cell = total / rows.cells ** (1.0 - SKEW_POWER)
    noises = np.hypot([[choice.noise / size for choice in of_sums]], [[OFF_CENTRE * choice.noise] for choice in of_rows])
    kept = _kept(sums.fit, rows.fit)
    missing = np.array([choice.lost_upper / max(1.0 - choice.lost_upper, 1e-9) for choice in of_sums]) * sums.fit.total()
    missing /= missing + size * rows.fit.total()
    unlike = UNLIKE_AVERAGE * np.array([[choice.lost_upper] for choice in of_rows]) + (DISTANCES_ABOVE + LARGER_AVERAGE) / 2.0 * missing
    bars = -NormalDist().inv_cdf(BEYOND / 2.0) * noises / (kept * in_cell) + unlike
    count, added = np.unravel_index(int(np.argmin(bars)), bars.shape)
    return replace(sums, choice=of_sums[added]), replace(rows, choice=of_rows[count])


def of_sum(measure: Measure, sums: ClippingBound, rows: ClippingBound) -> float:
    """The expected sum itself, of norms over the groups; where its centre is near 0, that of the distances."""
    assert isinstance(measure, GridSum)
    return max(abs(measure.offset) * rows.fit.total(), sums.fit.total(), 1.0)


def _kept(sums: ContributionModel, rows: ContributionModel) -> Floats:
    """The share of rows kept under a cap at each edge of the count (rows) and of the sum (columns), if active units have long sums."""
    norms, units = rows.norms(), np.maximum(rows.expected, 0.0)
    lengths = np.interp(longer(rows), longer(sums)[::-1], sums.norms()[::-1])
    by_count = np.minimum(1.0, rows.edges[:, None] / norms)
    by_sum = np.minimum(1.0, sums.edges[:, None] / np.maximum(lengths, 1e-9))
    weights = norms * units
    return np.maximum(np.minimum(by_count[:, None, :], by_sum[None, :, :]) @ weights / max(float(weights.sum()), 1e-9), 1e-6)
