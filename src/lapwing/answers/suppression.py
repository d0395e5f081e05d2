"""Marks of cells that are not values: noise alone, or computed from too little. From noisy values and public laws only.

Marks have one fixed confidence, independent of that of the error bars: the displayed cells and their order must not depend on how
long the bars are. Rules and rates: docs/explanation/accuracy.md, "Marks".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from lapwing.answers.estimates import Estimate
from lapwing.answers.intervals import Interval, chance_beyond
from lapwing.answers.noise_sums import half_width_of_sum
from lapwing.answers.quantile_bars import quantile_intervals
from lapwing.answers.variances import moment_estimates, possible
from lapwing.kernel.certify import CertifiedQuery
from lapwing.kernel.ir import GridSum, Measure, RowCount, Scan, UnitCount
from lapwing.kernel.quantile_tree import AtShare, FromGreatest, FromLeast, Target
from lapwing.kernel.release import UNITS_COLUMN, NoisyColumn, NoisyTable
from lapwing.planning.grids import count_of
from lapwing.planning.measures import AverageMeasure, CountMeasure, Recipe, SumMeasure
from lapwing.planning.planned import Part
from lapwing.planning.quantile_errors import noise_in_ranks, rows_needed
from lapwing.planning.quantiles import QuantileMeasure
from lapwing.planning.variances import Moments
from lapwing.statements import AggregateKind, CellMark

MARK_CONFIDENCE = Fraction(95, 100)
"""Confidence at which a value is significant."""
_SAME_END = 1e-9
"""Ends of intervals whose distance is below this share of the possible range are equal."""

Marks = list[CellMark | None]


@dataclass(frozen=True, slots=True)
class Judged:
    """One table of a part; each cell adds up ``terms`` released ones."""

    part: Part
    query: CertifiedQuery
    table: NoisyTable
    terms: int

    def marks(self, recipe: Recipe, estimates: Sequence[Estimate], *, confidence: Fraction) -> Marks:
        """One mark, or none, for each group. ``estimates`` are those of the recipe at ``confidence``."""
        match recipe:
            case CountMeasure(vector):
                return self._plain(vector, self._noise_only(vector), estimates)
            case SumMeasure(vector):
                return self._plain(vector, self._sums_of_noise(vector), estimates)
            case AverageMeasure():
                return self._computed(recipe, self._averages_of_anything(recipe))
            case Moments():
                if confidence != MARK_CONFIDENCE:
                    moments = moment_estimates(recipe, self.table, confidence=float(MARK_CONFIDENCE), terms=self.terms)
                    estimates = [Estimate(*moment) for moment in moments]
                return self._computed(recipe, [_is_anything(recipe, estimate) for estimate in estimates])
            case QuantileMeasure():
                return self._quantile_marks(recipe)
            case _:
                assert_never(recipe)

    def _plain(self, vector: str, noise_only: Sequence[bool], estimates: Sequence[Estimate]) -> Marks:
        """Marks of counts and sums: noise, or scaled by a model whose factor may be mostly noise."""
        if vector not in self.part.scaled:
            return [CellMark.NOISE_ONLY if noise else None for noise in noise_only]
        lost = [estimate.value is None for estimate in estimates]
        pairs = zip(lost, noise_only, strict=True)
        return [CellMark.MEANINGLESS if gone else CellMark.NOISE_ONLY if noise else CellMark.SCALED for gone, noise in pairs]

    def _computed(self, recipe: AverageMeasure | Moments, anything: Sequence[bool]) -> Marks:
        """Marks of values that depend on a count of rows: if that is noise, or the noise allows ``anything``."""
        # A count without noise is exact, even if it is small or 0. Bars of such counts are wide because they allow for half a step.
        if self._width(self.table.column(recipe.count)) == 0:
            return [None] * len(anything)
        alike = zip(self._noise_only(recipe.count), self._empty(), anything, strict=True)
        return [CellMark.MEANINGLESS if any(reasons) else None for reasons in alike]

    def _averages_of_anything(self, recipe: AverageMeasure) -> list[bool]:
        """Whether the noise explains both ends of the declared range, and so every average: then the value is not informative."""
        total, count = self.table.column(recipe.total), self.table.column(recipe.count)
        ends = [float(end * recipe.steps - recipe.offset) for end in (recipe.lower, recipe.upper)]
        if ends[0] == ends[1]:
            return [False] * len(count.values)
        beyond = 1 - float(MARK_CONFIDENCE)

        def is_explained(total_value: int, count_value: int, end: float) -> bool:
            residual = abs(total_value - end * count_value) / math.sqrt(self.terms)
            return chance_beyond(residual, total.law, count.law, slope=end) >= beyond

        return [all(is_explained(s, n, end) for end in ends) for s, n in zip(total.values, count.values, strict=True)]

    def _noise_only(self, vector: str, *, signed: bool = False) -> list[bool]:
        """Whether each cell is no larger than its noise; of what is never below 0, also whatever is below. Without noise, never."""
        column = self.table.column(vector)
        width = self._width(column)
        if width == 0:
            return [False] * len(column.values)
        return [(abs(value) if signed else value) <= width for value in column.values]

    def _sums_of_noise(self, vector: str) -> list[bool]:
        """The same for a sum, which is noise too where the group is."""
        summed = next(item.vector.measure for item in self.query.vectors if item.vector.name == vector)
        assert isinstance(summed, GridSum)
        alone = self._noise_only(vector, signed=summed.lower < 0)
        return [noise or empty for noise, empty in zip(alone, self._empty(), strict=True)]

    def _empty(self) -> list[bool]:
        """Whether each group is noise only, if its rows or units are counted too."""
        counted = self._vector_of(RowCount(None), UnitCount(None))
        return [False] * len(self.table.groups) if counted is None else self._noise_only(counted)

    def _vector_of(self, *measures: Measure) -> str | None:
        """The vector of the first of these measures that is present."""
        names = {item.vector.measure: item.vector.name for item in self.query.vectors}
        return next((names[measure] for measure in measures if measure in names), None)

    def _width(self, column: NoisyColumn) -> int:
        return half_width_of_sum(column.law, terms=self.terms, confidence=MARK_CONFIDENCE)

    def _quantile_marks(self, recipe: QuantileMeasure) -> Marks:
        chosen = next(item for item in self.query.quantiles if item.quantiles.name == recipe.quantiles)
        target = chosen.mechanism.targets[recipe.target]
        noise = noise_in_ranks(chosen.mechanism, confidence=MARK_CONFIDENCE, rows_max=self.query.shape.rows_max)[recipe.target]
        sizes = self._sizes(recipe)
        if sizes is None:
            return [CellMark.SIZE_UNKNOWN] * len(self.table.groups)
        if self.part.bars is not None:
            bars = quantile_intervals(recipe, self.part, self.table, self.query, confidence=MARK_CONFIDENCE, terms=self.terms)
            least, greatest = float(chosen.quantiles.lower), float(chosen.quantiles.upper)
            anything = [least < greatest and bar == Interval(least, greatest) for bar in bars]
            few = [size < rows_needed(noise, target) for size in sizes]
            return [CellMark.MEANINGLESS if any(reasons) else None for reasons in zip(anything, few, strict=True)]
        return [CellMark.MEANINGLESS if _takes_all_ranks(noise, target, size) else None for size in sizes]

    def _sizes(self, recipe: QuantileMeasure) -> list[Fraction] | None:
        """The approximate number of rows of each group, 0 if that is noise only; None if unknown.

        From the best source: a count of the values themselves, of all rows, or of units, each of which has a row. For a whole table, the
        number predicted from declarations and bought statistics.
        """
        value = next(item.quantiles.value for item in self.query.quantiles if item.quantiles.name == recipe.quantiles)
        counted = self._vector_of(count_of(value, self.query.shape), RowCount(None), UnitCount(None))
        if counted is not None or self.table.threshold is not None:
            return self._clear_sizes(self.table.column(counted or UNITS_COLUMN))
        if self.part.rows is not None and not self.part.query.keys and isinstance(self.part.query.source, Scan):
            return [Fraction(self.part.rows * (1 - self.part.lost))] * len(self.table.groups)
        return None

    def _clear_sizes(self, column: NoisyColumn) -> list[Fraction]:
        width = self._width(column)
        empty = self._empty()
        return [value * column.step if value > width and not empty[i] else Fraction(0) for i, value in enumerate(column.values)]


def _is_anything(recipe: Moments, estimate: Estimate) -> bool:
    """Whether there is no value, or the error bar covers the whole possible range."""
    if estimate.value is None or estimate.interval is None:
        return True
    low, high = possible(recipe)
    if recipe.kind is AggregateKind.REGR_R2:
        low = 0.0
    near = _SAME_END * (high - low)
    return low < high and estimate.interval.lo <= low + near and estimate.interval.hi >= high - near


def _takes_all_ranks(noise: Fraction, target: Target, size: Fraction) -> bool:
    """Whether the selected value could be any of the group, or lie beyond: the rank error covers the whole group."""
    match target:
        case AtShare(share):
            return size == 0 or noise >= max(share, 1 - share) * size
        case FromLeast(rank) | FromGreatest(rank):
            return size < rank + math.floor(noise)
        case _:
            assert_never(target)
