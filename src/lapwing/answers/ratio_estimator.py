"""Groups scaled to a total by a model: their values, and error bars by simulation of the model with the noise. Post-processing only.

The estimate of a group is its released value times the released total over the sum of all groups, G T / S. The model: units above the low
cap of the groups spread over them like the others. Bars allow for the noise of all three, for random differences between groups in what
those units have there, for units that are unlike the others by a share of what the model added, and for what the total's own cap may have
cut off. If the model is further off than that, they do not hold; the answer says so. docs/how-to/scaled-groups.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from lapwing.answers.estimates import Estimate, estimates_of
from lapwing.answers.intervals import Interval
from lapwing.answers.noise_sums import half_width_of_sum
from lapwing.answers.simulation import Floats, noise_by_place, noise_points, normal_points
from lapwing.contribution.clipping_bound import UNLIKE, chance_of_parts, shares_of
from lapwing.kernel.laws import DiscreteGaussian
from lapwing.kernel.release import NoisyColumn, NoisyTable, Released
from lapwing.planning.measures import CountMeasure, SumMeasure
from lapwing.planning.planned import Part, PlannedStatement

SIMULATED_AT = 129
"""Error bars are simulated at up to this many sizes of groups and interpolated linearly."""

FINE = 10**6
"""Whole numbers spread this widely, divided by it, are as good as a standard normal variable."""


@dataclass(frozen=True, slots=True)
class ScaledColumn:
    """A column of groups with the total that it is scaled to, all in the unit of what is shown."""

    column: NoisyColumn
    total: NoisyColumn
    deviations: Floats
    """By group: the standard deviation of the model's error, at random or because some units differ from the others."""
    factor: float
    """The factor of every group; 0 if the sum of the groups is not significant, so that scaling is impossible."""

    def values(self) -> Floats:
        """The scaled groups."""
        return _floats(self.column) * self.factor

    def redrawn(self, cells: Floats, place: str) -> Floats:
        """Scaled cells of runs (rows) with redrawn noise."""
        runs, groups = cells.shape
        total = (_floats(self.total) - noise_by_place(self.total.law, f"{place} total", count=runs) * float(self.total.step))[:, None]
        sums = cells.sum(axis=1, keepdims=True)
        normal = noise_by_place(DiscreteGaussian(Fraction(FINE)), f"{place} model", count=runs * groups).reshape(runs, groups) / FINE
        with np.errstate(all="ignore"):
            return np.where(sums > 0.0, cells * total / sums, 0.0) + normal * self.deviations[None, :]


def scaled_column(part: Part, vector: str, released: Released) -> ScaledColumn:
    """A column of a release with its total."""
    assert part.number is not None
    scaling, cut = part.scaled[vector], part.cuts[vector]
    column = released.tables[part.number].column(vector)
    total = released.tables[scaling.number].column(scaling.vector)
    values, unit = _floats(column), float(cut.unit)
    clear = half_width_of_sum(column.law, terms=len(values), confidence=Fraction(95, 100)) * float(column.step)
    if values.sum() <= clear or total.values[0] <= 0:
        return ScaledColumn(column, total, np.zeros(len(values)), 0.0)
    factor = float(_floats(total)[0] / values.sum())
    shares = shares_of(values / unit, cut.choice.noise)
    chance = chance_of_parts(
        cut.fit, cut.choice.cap, cells=cut.cells, total_l1=float(_floats(total)[0]) / unit, shares=shares, grain=cut.grain
    )
    unlike = UNLIKE * shares * values.sum() * max(factor - 1.0, 0.0)
    return ScaledColumn(column, total, np.hypot(chance * unit, unlike), factor)


def scaled_estimates(
    recipe: CountMeasure | SumMeasure, part: Part, released: Released, planned: PlannedStatement, *, confidence: Fraction
) -> list[Estimate]:
    """One estimate for each group; none if the sum of the groups is not significant."""
    scaled = scaled_column(part, recipe.vector, released)
    values = scaled.values()
    if not scaled.factor:
        return [Estimate(None, None)] * len(values)
    below, above = _reach(scaled, float(confidence))
    less, more = _reach_of_total(recipe, part, released, planned, confidence)
    shares = np.maximum(values, 0.0) / _floats(scaled.total)[0]
    whole = isinstance(recipe, CountMeasure) or recipe.whole
    estimates = []
    for value, lo, hi in zip(values, values - below - shares * less, values + above + shares * more, strict=True):
        shown = round(value) if whole else float(value)
        estimates.append(Estimate(shown, Interval(min(float(lo), shown), max(float(hi), shown))))
    return estimates


def _reach(scaled: ScaledColumn, confidence: float) -> tuple[Floats, Floats]:
    """The extent of the bars of noise and model below and above each scaled group."""
    groups = _floats(scaled.column)
    order = np.argsort(groups, kind="stable")
    at = order[np.unique(np.linspace(0, len(groups) - 1, SIMULATED_AT).round().astype(int))]
    step, others = float(scaled.column.step), len(groups) - 1
    noise = noise_points(scaled.column.law, dimension=0) * step
    rest = noise_points(scaled.column.law, dimension=1, terms=others) * step if others else np.zeros_like(noise)
    total = _floats(scaled.total)[0] - noise_points(scaled.total.law, dimension=2) * float(scaled.total.step)
    sums = np.maximum(groups.sum() - noise - rest, 1e-9)
    outside = (1 - confidence) / 2
    ends = np.empty((2, len(at)))
    for number, place in enumerate(at):
        truths = (groups[place] - noise) * total / sums + scaled.deviations[place] * normal_points(3)
        ends[:, number] = np.quantile(truths, (outside, 1 - outside)) - groups[place] * scaled.factor
    below, above = (np.interp(groups, groups[at], each) for each in ends)
    return np.maximum(-below, 0.0), np.maximum(above, 0.0)


def _reach_of_total(
    recipe: CountMeasure | SumMeasure, part: Part, released: Released, planned: PlannedStatement, confidence: Fraction
) -> tuple[float, float]:
    """The extent of the total's bar, below and above, beyond its noise: rounding and its own clipping bias."""
    scaling = part.scaled[recipe.vector]
    table: NoisyTable = released.tables[scaling.number]
    column, query = table.column(scaling.vector), planned.queries[scaling.number]
    own = replace(part, number=scaling.number, cuts={scaling.vector: scaling.cut})
    (estimate,) = estimates_of(replace(recipe, vector=scaling.vector), own, table, query, confidence=confidence, terms=1)
    assert estimate.interval is not None
    width, value = half_width_of_sum(column.law, terms=1, confidence=confidence) * float(column.step), float(_floats(column)[0])
    return max(value - width - estimate.interval.lo, 0.0), max(estimate.interval.hi - value - width, 0.0)


def _floats(column: NoisyColumn) -> Floats:
    return np.array([float(value) for value in column.values]) * float(column.step)
