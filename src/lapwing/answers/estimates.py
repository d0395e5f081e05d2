"""From noisy columns to aggregates: a value and an interval for every group. Everything here is post-processing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from lapwing.answers.clipping_bias import NOTHING, ClippingBias, average_reaching, centred_reaching, missing_of, ratio_reaching, reaching
from lapwing.answers.intervals import Interval, all_widened, ratio_interval
from lapwing.answers.noise_sums import half_width_of_sum
from lapwing.answers.quantile_bars import quantile_intervals
from lapwing.answers.variances import moment_estimates
from lapwing.kernel.certify import CertifiedQuery
from lapwing.kernel.expressions import not_null
from lapwing.kernel.ir import GridSum, Ranked, RowCount
from lapwing.kernel.release import NoisyColumn, NoisyTable
from lapwing.planning.measures import AverageMeasure, CountMeasure, Recipe, SumMeasure
from lapwing.planning.planned import Part
from lapwing.planning.quantiles import QuantileMeasure
from lapwing.planning.variances import Moments

ROUNDING_SHARE = 1_000
"""The probability that a released count is below the rows it counts, as a part of the failure probability of an interval."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """One aggregate of one group: a value (None where there is none) and its interval."""

    value: float | int | None
    interval: Interval | None
    missing: ClippingBias = NOTHING
    """The possible clipping bias, which the interval covers."""


def estimates_of(
    recipe: Recipe, part: Part, noisy: NoisyTable, query: CertifiedQuery, *, confidence: Fraction, terms: int, rules: int = 1
) -> list[Estimate]:
    """One estimate per group of the table, each of whose cells is the sum of ``terms`` released ones; by these planning rules."""
    match recipe:
        case CountMeasure(vector):
            return _plain(noisy.column(vector), part, noisy, query, confidence, terms, whole=True)
        case SumMeasure(vector, whole):
            return _plain(noisy.column(vector), part, noisy, query, confidence, terms, whole=whole)
        case AverageMeasure():
            return _averages(recipe, part, noisy, confidence, terms, exact_counts=rules >= 2)
        case QuantileMeasure(name, target):
            chosen = noisy.chosen(name)
            bars = quantile_intervals(recipe, part, noisy, query, confidence=confidence, terms=terms)
            return [Estimate(recipe.value(value, chosen.step), bar) for value, bar in zip(chosen.values[target], bars, strict=True)]
        case Moments():
            return [Estimate(*moment) for moment in moment_estimates(recipe, noisy, confidence=float(confidence), terms=terms)]
        case _:
            assert_never(recipe)


def _plain(
    column: NoisyColumn, part: Part, noisy: NoisyTable, query: CertifiedQuery, confidence: Fraction, terms: int, *, whole: bool
) -> list[Estimate]:
    width = half_width_of_sum(column.law, terms=terms, confidence=confidence)
    rows = _rows_upper(column, part, noisy, query, confidence, terms) if column.rounding else [0] * len(column.values)
    intervals = all_widened(column.values, width, step=column.step, rounding=column.rounding, rows_upper=rows)
    missing = missing_of(part, column, confidence=float(confidence), terms=terms)
    shown = _shown(column.values, column.step, whole=whole)
    cells = zip(shown, intervals, missing, strict=True)
    return [Estimate(value, interval if cut is NOTHING else reaching(interval, cut), cut) for value, interval, cut in cells]


def _shown(values: Sequence[int], step: Fraction, *, whole: bool) -> Sequence[float | int]:
    """Noisy integers in their own unit. In whole numbers: a fraction for each cell takes far longer."""
    if step == 1 and whole:
        return values
    parts, of = step.numerator, step.denominator
    return [_rounded(value * parts, of) for value in values] if whole else [value * parts / of for value in values]


def _rounded(above: int, below: int) -> int:
    """``round(Fraction(above, below))``: to the nearest, a half to the even one."""
    whole, rest = divmod(above, below)
    return whole + (2 * rest > below or (2 * rest == below and whole % 2))


def _rows_upper(
    column: NoisyColumn, part: Part, noisy: NoisyTable, query: CertifiedQuery, confidence: Fraction, terms: int
) -> Sequence[int]:
    """At least the rows that each cell of a sum adds up: the upper end of a count of them in the same release, else the declared number.

    Only where rows are limited as they are: other bounds scale or cut a unit's share of a count and of a sum each in its own way.
    """
    measure = next(item.vector.measure for item in query.vectors if item.vector.name == column.name)
    if isinstance(query.query.bounding, Ranked) and isinstance(measure, GridSum):
        for item in query.vectors:
            if isinstance(item.vector.measure, RowCount) and item.vector.measure.where in (None, not_null(measure.value)):
                count = noisy.column(item.vector.name)
                width = half_width_of_sum(count.law, terms=terms, confidence=1 - (1 - confidence) / ROUNDING_SHARE)
                return [min(max(value + width, 0), noisy.rows_max) for value in count.values]
    if part.rows_upper is None:
        return [noisy.rows_max] * len(column.values)
    # Larger groups have more rows: each is assumed to have at most its share of all rows, and an equal share.
    most, total = min(noisy.rows_max, math.ceil(part.rows_upper)), max(sum(max(value, 0) for value in column.values), 1)
    return [min(most, most * max(value, 0) // total + most // len(column.values) + 1) for value in column.values]


def _averages(
    recipe: AverageMeasure, part: Part, noisy: NoisyTable, confidence: Fraction, terms: int, *, exact_counts: bool
) -> list[Estimate]:
    total, count = noisy.column(recipe.total), noisy.column(recipe.count)
    lo = float(recipe.lower * recipe.steps - recipe.offset)
    hi = float(recipe.upper * recipe.steps - recipe.offset)
    # Clipping puts both vectors on the same finer grid, so sum / count is the mean in steps whatever that grid is.
    assert total.step * recipe.steps == count.step
    missing_rows = missing_of(part, count, confidence=float(confidence), terms=terms)
    rows = count if recipe.total in part.centred else None
    missing_total = missing_of(part, total, confidence=float(confidence), terms=terms, rows=rows)
    estimates = []
    for s, n, lost, rest in zip(total.values, count.values, missing_rows, missing_total, strict=True):
        if round(n * count.step) < 1:  # the count is shown as 0, so there is no average
            estimates.append(Estimate(None, None))
            continue
        value, interval = ratio_interval(
            total=float(s),
            count=float(n),
            sum_law=total.law,
            count_law=count.law,
            confidence=float(confidence),
            lo=lo,
            hi=hi,
            terms=terms,
            exact_counts=exact_counts,
        )
        shown = float(n * count.step)
        most, of_rows = rest.most * recipe.steps, lost.most / (shown + lost.most)
        if rows is not None:
            size = min(max(abs(value + recipe.offset), abs(recipe.offset)), max(value - lo, hi - value))
            distance = size * most / max(size * shown + most, 1e-9)
            # Of distances that noise hides nothing is known: they may be as large as the average, above or below.
            hidden = not part.cuts[recipe.total].fit.seen
            distance = max(distance, size) if hidden else distance
            interval = centred_reaching(interval, rows=of_rows, size=size, distance=distance, either_way=hidden)
        elif recipe.total in part.together:
            of_total = most / max((value - lo) * shown + most, 1e-9)
            interval = average_reaching(interval, rows=of_rows, total=of_total, signed=rest.signed, lo=lo, hi=hi)
        else:
            interval = ratio_reaching(interval, top=ClippingBias(most, rest.signed), bottom=lost, count=shown)
        half_step = 0.5 if total.rounding else 0.0
        ends = max(interval.lo - half_step, lo), min(interval.hi + half_step, hi)
        shifted = [(end + recipe.offset) / recipe.steps for end in (value, *ends)]
        estimates.append(Estimate(shifted[0], Interval(shifted[1], shifted[2])))
    return estimates
