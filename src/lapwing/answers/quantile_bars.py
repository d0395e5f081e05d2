"""Error bars of quantiles in values, from the quantiles that were selected on both sides of them and the released number of rows.

An end is the nearest quantile that is far enough away in ranks to be on its side of the true value (:mod:`lapwing.planning.quantile_bars`);
if there is none, it is the end of the declared range.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from lapwing.answers.intervals import Interval
from lapwing.answers.noise_sums import half_width_of_sum
from lapwing.contribution.row_sample import RowSample
from lapwing.kernel.certify import CertifiedQuery
from lapwing.kernel.domains import Kind
from lapwing.kernel.quantile_tree import AtShare
from lapwing.kernel.release import NoisyTable
from lapwing.kernel.selections import CertifiedQuantiles
from lapwing.planning.planned import Part
from lapwing.planning.quantile_bars import needed_distance
from lapwing.planning.quantile_errors import spread_errors
from lapwing.planning.quantiles import QuantileMeasure


def quantile_intervals(
    recipe: QuantileMeasure, part: Part, table: NoisyTable, query: CertifiedQuery, *, confidence: Fraction, terms: int
) -> list[Interval | None]:
    """One interval per group; None where bars were not measured, or an extreme or a date was requested."""
    none: list[Interval | None] = [None] * len(table.groups)
    sets = {item.quantiles.name: item for item in query.quantiles}
    own = sets[recipe.quantiles]
    target = own.mechanism.targets[recipe.target]
    if part.bars is None or not isinstance(target, AtShare) or recipe.kind not in (Kind.INTEGER, Kind.REAL):
        return none
    bars, sample = part.bars.by_set[recipe.quantiles], part.bars.sample
    counted = table.column(bars.count)
    noise = half_width_of_sum(counted.law, terms=terms, confidence=confidence)
    rows = [max(float((value - noise) * counted.step), 1.0) for value in counted.values]
    share = float(target.share)
    low = _ends(sets.get(bars.below or ""), table, share, rows, sample, confidence, otherwise=own.mechanism.lower)
    high = _ends(sets.get(bars.above or ""), table, share, rows, sample, confidence, otherwise=own.mechanism.upper)
    chosen = table.chosen(recipe.quantiles).values[recipe.target]
    rounding, step = float(own.rounding), float(own.step)
    least, greatest = float(own.quantiles.lower), float(own.quantiles.upper)
    return [
        Interval(max(min(a, value) * step - rounding, least), min(max(b, value) * step + rounding, greatest))
        for a, value, b in zip(low, chosen, high, strict=True)
    ]


def _ends(
    side: CertifiedQuantiles | None,
    table: NoisyTable,
    share: float,
    rows: Sequence[float],
    sample: RowSample,
    confidence: Fraction,
    *,
    otherwise: int,
) -> list[int]:
    """For each group: the nearest of these quantiles that is far enough away."""
    if side is None:
        return [otherwise] * len(rows)
    errors = spread_errors(side.mechanism, confidence=confidence)
    places = [float(target.share) if isinstance(target, AtShare) else share for target in side.mechanism.targets]
    nearest = sorted(range(len(places)), key=lambda number: abs(places[number] - share))
    values = table.chosen(side.quantiles.name).values

    def end(group: int) -> int:
        for number in nearest:
            away = needed_distance(sample, share, rows[group], ranks=errors[number], confidence=confidence)
            on_its_side = (places[number] < share) == (otherwise == side.mechanism.lower)
            if on_its_side and abs(places[number] - share) >= away:
                return values[number][group]
        return otherwise

    return [end(group) for group in range(len(rows))]
