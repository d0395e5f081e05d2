"""Accuracy targets: the allowed length of error bars, and the length of those of a release or of a plan.

For counts and sums the plan determines the length of an error bar. For averages and ratios it also depends on the count they are
divided by, and a target in per cent depends on the value itself: then released values are used, at the unfavourable end of
their own error bars. This module reads no rows: its inputs are plans, which follow from public facts, and releases.

The failure probability is split so that the target holds with the requested confidence. Of alpha = 1 - confidence, the releases
from which a price is solved may mislead with a tenth (a fourth of that each, for at most four pilots), and the answer itself may miss with
the other nine tenths. A target that follows from the plan alone leaves all of it to the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from lapwing.answers.assembly import assemble
from lapwing.kernel.ir import KnownGroups
from lapwing.kernel.release import UNITS_COLUMN, Released
from lapwing.planning.measures import AverageMeasure, CountMeasure, Recipe, SumMeasure
from lapwing.planning.planned import PlannedStatement
from lapwing.planning.variances import Moments
from lapwing.spread import half_width
from lapwing.sql.text.privacy_terms import ErrorTerm, ShareTerm
from lapwing.statements import ROW, ComputedOutput, KeyOutput, LinearOutput, Noisy, Output, PostProcess, RatioOutput

PILOTS_MAX = 4
PlanAt = Callable[[Fraction], PlannedStatement]
"""The plan of the statement at a loss."""


@dataclass(frozen=True, slots=True)
class Target:
    """The longer side of every error bar is at most an amount, or a share of the value's size, at the confidence."""

    asked: ErrorTerm | ShareTerm
    confidence: Fraction

    @property
    def sure(self) -> Fraction:
        """Confidence of the error bars of releases from which a price is solved."""
        return 1 - (1 - self.confidence) / (10 * PILOTS_MAX)

    @property
    def rest(self) -> Fraction:
        """Confidence that remains for the answer."""
        return 1 - (1 - self.confidence) * 9 / 10

    def allowed(self, size: float) -> float:
        """The longest allowed side for a value of this size."""
        return float(self.asked.half_width) if isinstance(self.asked, ErrorTerm) else float(self.asked.share) * size


@dataclass(frozen=True, slots=True)
class Bar:
    """An error bar around a value."""

    value: float
    lo: float
    hi: float

    @property
    def side(self) -> float:
        """Its longer side."""
        return max(self.value - self.lo, self.hi - self.value)

    @property
    def size_min(self) -> float:
        """The least absolute value inside it."""
        return max(self.lo, -self.hi, 0.0)


Bars = list[list[Bar | None]]
"""For each output with error bars, one bar per row; None where there is no value."""


def aimed(post: PostProcess) -> tuple[int, ...]:
    """The outputs that have error bars, by number."""
    return tuple(i for i, output in enumerate(post.outputs) if not isinstance(output.derivation, KeyOutput | ComputedOutput))


def bars_of(
    planned: PlannedStatement, released: Released, post: PostProcess, *, confidence: Fraction, rows: Sequence[int] | None = None
) -> Bars:
    """Error bars of a release by row of the noisy table, before rows are left out or sorted; of all rows, or of the given ones."""
    outputs = tuple(replace(post.outputs[i], name=f"c{i}") for i in aimed(post))
    assembled = assemble(planned, released, replace(_unfiltered(post), outputs=outputs), confidence=confidence, withholding=False)
    bars: Bars = []
    for output in outputs:
        values, intervals = assembled.table.column(output.name).to_pylist(), assembled.intervals[output.name]
        pairs = list(zip(values, intervals, strict=True))
        shown = pairs if rows is None else [pairs[row] for row in rows]
        bars.append([None if value is None or bar is None else Bar(float(value), bar.lo, bar.hi) for value, bar in shown])
    return bars


def _unfiltered(post: PostProcess) -> PostProcess:
    """The same without the clauses that leave out or sort rows."""
    kept = replace(post, having=None, qualify=None, distinct_on=(), order_by=(), limit=None, offset=0)
    return kept if post.rows_of is None else replace(kept, where=None)


def rows_shown(planned: PlannedStatement, released: Released, post: PostProcess) -> list[int] | None:
    """The rows of the noisy table that an answer from this release shows, after HAVING, ORDER BY and LIMIT; None for all of them."""
    if post == _unfiltered(post) or post.rows_of is None or post.distinct:
        return None
    number = Output("row", f"q{post.rows_of}.{ROW}", KeyOutput(0))
    # Error bars are not used here, so the confidence has no effect.
    numbered = assemble(planned, released, replace(post, outputs=(number,)), confidence=Fraction(1, 2))
    return sorted(int(row) for row in numbered.table.column("row").to_pylist())


def met_by(planned: PlannedStatement, released: Released, post: PostProcess, target: Target, *, confidence: Fraction) -> tuple[int, int]:
    """How many error bars of a release are short enough for their values, and how many there are."""
    rows = rows_shown(planned, released, post)
    bars = [bar for column in bars_of(planned, released, post, confidence=confidence, rows=rows) for bar in column]
    return sum(bar is not None and bar.side <= target.allowed(abs(bar.value)) for bar in bars), len(bars)


def is_direct(planned: PlannedStatement, post: PostProcess, target: Target) -> bool:
    """Whether the plan alone determines the length of all error bars and their targets.

    Bounds chosen from norms prevent that: bars include the clipping bias, which is a share of the values.
    """
    derivations = [post.outputs[i].derivation for i in aimed(post)]
    plain = all(isinstance(d, LinearOutput) and isinstance(recipe_of(planned, d.aggregate), CountMeasure | SumMeasure) for d in derivations)
    return plain and isinstance(target.asked, ErrorTerm) and not is_bounded_by_norms(planned)


def is_bounded_by_norms(planned: PlannedStatement) -> bool:
    """Whether bounds are chosen from norms, so that error bars include the clipping bias."""
    return any(part.cuts for part in planned.parts)


def recipe_of(planned: PlannedStatement, aggregate: Noisy) -> Recipe:
    return planned.parts[aggregate.query].recipes[aggregate.index]


def fits(planned: PlannedStatement, released: Released) -> bool:
    """Whether a release for the same text is for the same plan, apart from its price."""
    queries = planned.certified.queries
    return len(queries) == len(released.tables) and all(
        table.keys == tuple(name for name, _ in query.query.keys)
        and {column.name for column in table.columns} - {UNITS_COLUMN} == {vector.vector.name for vector in query.vectors}
        and (not isinstance(query.query.groups, KnownGroups) or query.query.groups.groups == table.groups)
        for query, table in zip(queries, released.tables, strict=True)
    )


def size_from_declarations(planned: PlannedStatement, post: PostProcess, number: int) -> float:
    """The least size an output can have by its declared bounds alone: an average lies in the range of its values."""
    derivation = post.outputs[number].derivation
    if not isinstance(derivation, LinearOutput):
        return 0.0
    recipe = recipe_of(planned, derivation.aggregate)
    if not isinstance(recipe, AverageMeasure):
        return 0.0
    ends = sorted(derivation.scale * end + derivation.shift for end in (recipe.lower, recipe.upper))
    return max(float(ends[0]), float(-ends[1]), 0.0)


def is_rearranged(planned: PlannedStatement) -> bool:
    """Whether the rows of the noisy table may differ from the groups of one query: joined tables, sub-totals."""
    return len(planned.parts) > 1 or any(part.query.levels is not None for part in planned.parts)


Place = tuple[int, str]
"""A vector: number of its query in the plan, and its name there."""


def divided(planned: PlannedStatement, post: PostProcess) -> tuple[set[Place], set[Place]]:
    """Vectors in the numerator and the denominator of a division behind some error bar."""
    above: set[Place] = set()
    below: set[Place] = set()
    for i in aimed(post):
        derivation = post.outputs[i].derivation
        if isinstance(derivation, LinearOutput):
            recipe, number = recipe_of(planned, derivation.aggregate), planned.parts[derivation.aggregate.query].number
            if isinstance(recipe, AverageMeasure | Moments) and number is not None:
                below.add((number, recipe.count))
            if isinstance(recipe, AverageMeasure) and number is not None:
                above.add((number, recipe.total))
        elif isinstance(derivation, RatioOutput):
            for places, aggregate in ((above, derivation.numerator), (below, derivation.denominator)):
                recipe, number = recipe_of(planned, aggregate), planned.parts[aggregate.query].number
                if isinstance(recipe, CountMeasure | SumMeasure) and number is not None:
                    places.add((number, recipe.vector))
    return above - below, below


def is_informative(planned: PlannedStatement, post: PostProcess, target: Target, base: Released) -> bool:
    """Whether a release is informative: no value and no divisor can be less than half of its released size.

    For relative clipping bias the sum of all groups suffices, but a value with much of it says little.

    Solving from a less informative release would be sound but expensive: a more expensive pilot saves more.
    """
    rows = rows_shown(planned, base, post)
    for number, name in divided(planned, post)[1]:
        column = base.tables[number].column(name)
        width = half_width(column.law, confidence=target.sure)
        values = column.values if rows is None or is_rearranged(planned) else [column.values[row] for row in rows]
        if any(2 * (value - width) < value for value in values):
            return False
    for part in planned.parts:
        for column in [] if part.number is None else [base.tables[part.number].column(name) for name in part.cuts]:
            uncertain = half_width(column.law, confidence=target.sure) * math.sqrt(len(column.values))
            if sum(column.values) < 2 * uncertain:
                return False
    for i, bars in zip(aimed(post), bars_of(planned, base, post, confidence=target.sure, rows=rows), strict=True):
        public = size_from_declarations(planned, post, i)
        if not bars:
            return False
        for bar in bars:
            size = 0.0 if bar is None else max(bar.size_min, public)
            if bar is None:
                return False
            largest = max(abs(bar.lo), abs(bar.hi)) if is_bounded_by_norms(planned) else abs(bar.value)
            if isinstance(target.asked, ShareTerm) and (size == 0 or 2 * size < largest):
                return False
    return True
