"""From a release to an answer: values, error bars, notes. Everything here is post-processing of noisy values and public facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

import pyarrow as pa

from lapwing.engines.scratch import post_process, typed_array
from lapwing.kernel.domains import kind_of
from lapwing.kernel.intervals import Interval, ratio_interval, widened
from lapwing.kernel.laws import half_width
from lapwing.kernel.release import NoisyColumn, NoisyTable, Released
from lapwing.kernel.stability import domain_of
from lapwing.planning.measures import Averaged, Counted, Recipe, Summed
from lapwing.planning.plan import Planned
from lapwing.statements import ComputedOutput, Derivation, KeyOutput, LinearOutput, PostProcess, RatioOutput


@dataclass(frozen=True, slots=True)
class Estimate:
    """One aggregate of one group: a value (None where there is none) and its interval."""

    value: float | int | None
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Assembled:
    """The answer's table, and one interval per row for every column that has them."""

    table: pa.Table
    intervals: dict[str, list[Interval | None]]


def assemble(planned: Planned, released: Released, post: PostProcess, *, confidence: Fraction) -> Assembled:
    """Estimates for every group, then HAVING, ORDER BY, LIMIT and expressions on the noisy table alone."""
    noisy = released.tables[0]
    estimates = [_estimates(recipe, noisy, confidence) for recipe in planned.recipes]
    table, rows = post_process(_noisy_table(planned, noisy, estimates), post)
    intervals: dict[str, list[Interval | None]] = {}
    for output in post.outputs:
        found = [_derived(output.derivation, planned, noisy, estimates, row, confidence) for row in rows]
        if not isinstance(output.derivation, KeyOutput | ComputedOutput):
            intervals[output.name] = found
    return Assembled(table, intervals)


def _noisy_table(planned: Planned, noisy: NoisyTable, estimates: Sequence[Sequence[Estimate]]) -> pa.Table:
    certified = planned.certified.queries[0]
    names, arrays = [], []
    for i, (_, key) in enumerate(certified.query.keys):
        kind = kind_of(domain_of(key, certified.shape.columns))
        arrays.append(typed_array([group[i] for group in noisy.groups], kind))
        names.append(f"k{i}")
    for i, column in enumerate(estimates):
        values = [estimate.value for estimate in column]
        whole = all(isinstance(value, int) for value in values)
        arrays.append(pa.array(values, pa.int64() if whole else pa.float64()))
        names.append(f"a{i}")
    return pa.table(arrays, names=names) if names else pa.table({"_": pa.array([0] * len(noisy.groups), pa.int64())})


def _estimates(recipe: Recipe, noisy: NoisyTable, confidence: Fraction) -> list[Estimate]:
    match recipe:
        case Counted(vector):
            return _plain(noisy.column(vector), noisy, confidence, whole=True)
        case Summed(vector, whole):
            return _plain(noisy.column(vector), noisy, confidence, whole=whole)
        case Averaged():
            return _averages(recipe, noisy, confidence)
        case _:
            assert_never(recipe)


def _plain(column: NoisyColumn, noisy: NoisyTable, confidence: Fraction, *, whole: bool) -> list[Estimate]:
    width = half_width(column.law, confidence=confidence)
    found = []
    for value in column.values:
        exact = value * column.step
        shown = round(exact) if whole else float(exact)
        found.append(Estimate(shown, widened(value, width, step=column.step, rounding=column.rounding, rows_upper=noisy.rows_max)))
    return found


def _averages(recipe: Averaged, noisy: NoisyTable, confidence: Fraction) -> list[Estimate]:
    total, count = noisy.column(recipe.total), noisy.column(recipe.count)
    lo = float(recipe.lower * recipe.steps - recipe.offset)
    hi = float(recipe.upper * recipe.steps - recipe.offset)
    # Clipping puts both vectors on the same finer grid, so sum / count is the mean in steps whatever that grid is.
    assert total.step * recipe.steps == count.step
    found = []
    for s, n in zip(total.values, count.values, strict=True):
        if round(n * count.step) < 1:  # as a count it would be shown as 0: there is nothing to average
            found.append(Estimate(None, None))
            continue
        value, interval = ratio_interval(
            total=float(s), count=float(n), sum_law=total.law, count_law=count.law, confidence=float(confidence), lo=lo, hi=hi
        )
        half_step = 0.5 if total.rounding else 0.0
        ends = max(interval.lo - half_step, lo), min(interval.hi + half_step, hi)
        shifted = [(end + recipe.offset) / recipe.steps for end in (value, *ends)]
        found.append(Estimate(shifted[0], Interval(shifted[1], shifted[2])))
    return found


def _derived(
    derivation: Derivation, planned: Planned, noisy: NoisyTable, estimates: Sequence[Sequence[Estimate]], row: int, confidence: Fraction
) -> Interval | None:
    match derivation:
        case KeyOutput() | ComputedOutput():
            return None
        case LinearOutput(aggregate, scale, shift):
            interval = estimates[aggregate][row].interval
            if interval is None:
                return None
            ends = sorted((float(scale) * interval.lo + float(shift), float(scale) * interval.hi + float(shift)))
            return Interval(ends[0], ends[1])
        case RatioOutput(numerator, denominator, scale):
            return _ratio(planned.recipes[numerator], planned.recipes[denominator], noisy, row, float(scale), confidence)
        case _:
            assert_never(derivation)


def _ratio(top: Recipe, bottom: Recipe, noisy: NoisyTable, row: int, scale: float, confidence: Fraction) -> Interval | None:
    """Fieller interval of a ratio of two plain aggregates whose noises are independent."""
    if isinstance(top, Averaged) or isinstance(bottom, Averaged) or top.vector == bottom.vector:
        return None
    above, below = noisy.column(top.vector), noisy.column(bottom.vector)
    if below.values[row] <= 0:
        return None
    per = float(above.step / below.step)
    reach = 1e12 * (1 + abs(above.values[row]))
    _, interval = ratio_interval(
        total=float(above.values[row]),
        count=float(below.values[row]),
        sum_law=above.law,
        count_law=below.law,
        confidence=float(confidence),
        lo=-reach,
        hi=reach,
    )
    ends = sorted((interval.lo * per * scale, interval.hi * per * scale))
    return None if max(abs(end) for end in ends) >= reach * abs(per * scale) else Interval(ends[0], ends[1])
