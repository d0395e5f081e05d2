"""Bounds on the clipping bias of each cell of an answer, from the norms bought for it. Post-processing of released values.

Error bars cover the unclipped value: noise, rounding and this bias. Its bound: docs/explanation/planning.md. If no norms were
bought, it cannot be bounded, and a note gives a prediction instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lapwing.answers.intervals import Interval
from lapwing.contribution.clipping_bound import bias_bound, signed_bias_bound
from lapwing.contribution.histograms import ClippingBound
from lapwing.kernel.release import NoisyColumn
from lapwing.planning.centres import DISTANCES_ABOVE, LARGER_AVERAGE, UNLIKE_AVERAGE
from lapwing.planning.planned import Part

UNLIKE_GROUPS = 0.25
"""How much more some groups may lose than others, as a share."""
LEFT_OUT_MOST = 0.9
"""Largest share of rows left out by joins that a bar covers."""
SHARE_OF_CELLS = 0.05
"""A vector's cells exceed its norm over the square root of this share of cells in at most this share of cells."""


@dataclass(frozen=True, slots=True)
class ClippingBias:
    """The largest missing amount of a cell, in the unit of its column; in both directions if it may be negative."""

    most: float = 0.0
    signed: bool = False

    @property
    def below(self) -> float:
        """How far below the truth may lie."""
        return self.most if self.signed else 0.0


NOTHING = ClippingBias()


def missing_of(part: Part, column: NoisyColumn, *, confidence: float, terms: int, rows: NoisyColumn | None = None) -> list[ClippingBias]:
    """The possible missing amount of each cell of a column, each the sum of ``terms`` released ones. A centred sum needs its ``rows``."""
    if part.shares:
        return _missing_of_shares(part, column, confidence=confidence, rows=rows)
    cut = part.cuts.get(column.name)
    if cut is None or not column.values or (cut.choice.cap >= cut.fit.largest and not part.left_out):
        return [NOTHING] * len(column.values)
    per_integer, values, beyond = float(cut.unit), _in_integers(cut, column), 1 - confidence
    clips, mosts, sizes = cut.choice.cap < cut.fit.largest, [0.0] * len(values), values
    if rows is None:
        mosts = _most(cut, values, beyond=beyond, terms=terms) if clips else mosts
    else:
        count = part.cuts[rows.name]
        counted = _in_integers(count, rows)
        mosts = _most_centred(cut, count, counted, beyond=beyond, terms=terms) if clips else mosts
        sizes = [UNLIKE_AVERAGE * max(abs(part.centre(column.name)) * each, 0.0) for each in counted]
    # The loss from a limit before a join is predicted, not bounded; a bar that ignored it would be worse.
    joined = min(part.left_out, LEFT_OUT_MOST) / (1 - min(part.left_out, LEFT_OUT_MOST))
    return [ClippingBias((most + joined * (abs(size) + most)) * per_integer, cut.signed) for most, size in zip(mosts, sizes, strict=True)]


def _missing_of_shares(part: Part, column: NoisyColumn, *, confidence: float, rows: NoisyColumn | None) -> list[ClippingBias]:
    """What may be missing of all shares together."""
    each = [
        missing_of(
            share.part,
            share.table.column(column.name),
            confidence=confidence,
            terms=1,
            rows=None if rows is None else share.table.column(rows.name),
        )
        for share in part.shares
    ]
    return [ClippingBias(sum(one.most for one in cell), any(one.signed for one in cell)) for cell in zip(*each, strict=True)]


def _in_integers(cut: ClippingBound, column: NoisyColumn) -> list[float]:
    """Released values in the measure's own integers."""
    parts, of = (column.step / cut.unit).as_integer_ratio()
    return [value * parts / of for value in column.values]


def _most_centred(cut: ClippingBound, count: ClippingBound, rows: Sequence[float], *, beyond: float, terms: int) -> list[float]:
    """The missing amount of each cell of a centred sum, by the rows of each cell."""
    choice, counted = (replace(each.choice, noise=each.choice.noise * math.sqrt(terms)) for each in (cut, count))
    return signed_bias_bound(
        cut.fit,
        choice,
        beyond=beyond,
        rows=rows,
        counted=count.fit,
        count=counted,
        cells=len(rows) * terms,
        extreme=cut.extreme(cut.fit.total()),
    )


def _most(cut: ClippingBound, values: Sequence[float], *, beyond: float, terms: int) -> list[float]:
    """The same in the measure's own integers."""
    cells = len(values)
    if cut.signed:
        # Values that cancel do not show the amount that can be clipped: any cell may lose all of it, most lose only a part.
        length = cut.fit.excess_upper(cut.choice.cap, beyond=beyond / 2) + max(cut.extreme(cut.fit.total()) - cut.choice.cap, 0.0)
        return [length * math.sqrt(terms) * min(1.0, 1 / math.sqrt(SHARE_OF_CELLS * cells))] * cells
    choice = replace(cut.choice, noise=cut.choice.noise * math.sqrt(terms))
    if cut.of_units:
        return _most_units(cut, values, beyond=beyond)
    extreme = cut.extreme(max(sum(values), 0.0) / (1 - min(choice.lost, 0.9)))
    return bias_bound(cut.fit, choice, cells=cells * terms, beyond=beyond, values=values, grain=cut.grain, extreme=extreme)


def _most_units(cut: ClippingBound, values: Sequence[float], *, beyond: float) -> list[float]:
    """For counts of units: a unit in d groups has norm sqrt(d), so the loss of each group follows from the norms alone."""
    fit, norms = cut.fit, cut.fit.norms()
    weights = fit.beyond_caps([cut.choice.cap], 1) * norms
    (upper,) = fit.upper(weights, beyond=beyond / 2)
    share = min(float(upper) / max(float(norms**2 @ fit.expected), 1e-9), 0.9)
    return [max(value, 0.0) * share / (1 - share) * (1 + UNLIKE_GROUPS) for value in values]


def reaching(interval: Interval, missing: ClippingBias) -> Interval:
    """The interval of the unclipped value from the interval of a released value."""
    return Interval(interval.lo - missing.below, interval.hi + missing.most)


def ratio_reaching(interval: Interval, *, top: ClippingBias, bottom: ClippingBias, count: float) -> Interval:
    """The interval of a ratio if parts of both sides may be missing; ``count`` is the released denominator, above 0."""
    lo, hi = interval.lo - top.below / count, interval.hi + top.most / count
    less = count / (count + bottom.most)
    return Interval(min(lo, lo * less), max(hi, hi * less))


def average_reaching(interval: Interval, *, rows: float, total: float, signed: bool, lo: float, hi: float) -> Interval:
    """The interval of an average of values from ``lo`` to ``hi``, whose sum and count were scaled down together.

    The missing part, at most the share ``rows`` of the rows and ``total`` of the sum, may have a different average: by
    ``UNLIKE_AVERAGE`` of the way from ``lo`` to the average, either way. Units that were cut for their sums have larger values than others,
    by ``LARGER_AVERAGE`` of the missing sum at most; where values have either sign, larger or smaller ones.
    """
    above = max(UNLIKE_AVERAGE * rows, LARGER_AVERAGE * total)
    below = above if signed else UNLIKE_AVERAGE * rows
    return Interval(interval.lo - below * (interval.lo - lo), interval.hi + above * min(interval.hi - lo, hi - interval.hi))


def centred_reaching(interval: Interval, *, rows: float, size: float, distance: float, either_way: bool) -> Interval:
    """The interval of an average whose centred sum and count were scaled down together; ``size`` is that of the average.

    The missing share ``rows`` of the rows may have a different average, by ``UNLIKE_AVERAGE`` of it. What is missing of the distances, at
    most ``distance`` for each row, is mostly above the centre: values are not negative, so below it none is farther than 0.
    """
    unlike, above = UNLIKE_AVERAGE * rows * size, DISTANCES_ABOVE * distance
    below = above if either_way else LARGER_AVERAGE * distance
    return Interval(interval.lo - unlike - below, interval.hi + unlike + above)
