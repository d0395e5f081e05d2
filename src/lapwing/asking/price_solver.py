"""The least price at which every error bar is short enough, decided before the charge from plans and earlier releases."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from lapwing.asking.accuracy_targets import (
    PlanAt,
    Target,
    aimed,
    bars_of,
    divided,
    is_bounded_by_norms,
    is_direct,
    is_rearranged,
    rows_shown,
    size_from_declarations,
)
from lapwing.errors import Refused
from lapwing.kernel.accounting import LOSS_UNITS, Account
from lapwing.kernel.certify import CertifiedQuery, CertifiedVector
from lapwing.kernel.ir import KnownGroups
from lapwing.kernel.release import ChosenQuantiles, NoisyColumn, NoisyTable, Released
from lapwing.planning.measures import AverageMeasure
from lapwing.planning.planned import PlannedStatement
from lapwing.spread import half_width
from lapwing.sql.text.privacy_terms import ShareTerm
from lapwing.statements import PostProcess

STEP = Fraction(1004, 1000)
"""Least factor between two tried losses, so that the price exceeds the least by less than this factor."""
STEP_BY_NORMS = Fraction(105, 100)
"""The same if bounds are chosen from norms: their clipping bias shrinks slowly, and each plan takes longer."""
JUMP_MAX = 1000
"""Largest factor between two tried losses."""
LOSS_START = Fraction(1, 10**12)
LOSS_END = Fraction(10**9)
"""Least and largest loss that is tried."""

ROWS_LOOKED_AT = 32
"""Rows that are examined first if an answer has more."""


@dataclass(frozen=True, slots=True)
class Base:
    """An earlier release, and the plan that gives its numbers their meaning; None if the plan measures the same at every price."""

    released: Released
    planned: PlannedStatement | None = None


def least_loss(plan_at: PlanAt, post: PostProcess, target: Target, known: Base | None) -> PlannedStatement | None:
    """The plan with the least loss whose error bars will be short enough; None if no loss is enough or too little is known.

    The loss is raised from far too little. An error bar shrinks at most as 1 / loss (Laplace) or 1 / sqrt(loss) (Gaussian) while the bounds
    on a unit stay or are loosened, as they are when noise gets cheaper; so no sufficient loss is skipped. Where the
    planner changes to another kind of bounds, a longer bar may turn into a shorter one: the last step is halved to find that place.
    """
    first = _plan_or_none(plan_at, LOSS_END)
    if first is None:
        return None
    base = None if known is None else known.released
    before = first if known is None else known.planned or first
    rows = None if base is None else rows_shown(before, base, post)
    lengths = _required(before, post, target, base, rows)
    if lengths is None:
        return None

    few = _hardest(before, post, target, base, lengths, rows)

    def excess(loss: Fraction) -> tuple[PlannedStatement | None, float]:
        """The ratio of the worst error bar to its target."""
        planned = _plan_or_none(plan_at, loss)
        if planned is None:
            return None, math.inf
        times = 0.0 if few is None else _excess(planned, post, target, few.base, before, few.lengths, None)
        return planned, times if times > 1 else _excess(planned, post, target, base, before, lengths, rows)

    if excess(LOSS_END)[1] > 1:
        return None
    power = 1 if first.facts.account is Account.PURE else 2
    step = STEP_BY_NORMS if is_bounded_by_norms(first) else STEP
    low, loss = Fraction(0), LOSS_START
    while loss <= LOSS_END:
        planned, times = excess(loss)
        if planned is not None and times <= 1:
            return _halved(excess, low, loss, planned, step)
        low = loss
        factor = Fraction(min(max(times, 1.0), JUMP_MAX)) ** power
        loss = _whole(loss * max(step, factor))
    return None


@dataclass(frozen=True, slots=True)
class _Few:
    """Some rows of a release, with the targets of their error bars."""

    base: Released
    lengths: list[list[float]]


def _hardest(
    planned: PlannedStatement,
    post: PostProcess,
    target: Target,
    base: Released | None,
    lengths: list[list[float]],
    rows: Sequence[int] | None,
) -> _Few | None:
    """The rows whose error bars exceed their targets most, if there are many rows: most losses already fail on these."""
    if base is None or is_rearranged(planned) or is_direct(planned, post, target) or len(base.tables[0].groups) <= ROWS_LOOKED_AT:
        return None
    table = base.tables[0]
    listed = list(range(len(table.groups))) if rows is None else rows
    bars = bars_of(planned, base, post, confidence=target.rest, rows=rows)
    pairs = [list(zip(column, allowed, strict=True)) for column, allowed in zip(bars, lengths, strict=True)]
    worst = [max(math.inf if bar is None else bar.side / limit for bar, limit in row) for row in zip(*pairs, strict=True)]
    hardest = sorted(range(len(listed)), key=lambda i: -worst[i])[:ROWS_LOOKED_AT]
    columns = tuple(replace(column, values=tuple(column.values[listed[i]] for i in hardest)) for column in table.columns)
    fewer = replace(table, groups=tuple(table.groups[listed[i]] for i in hardest), columns=columns)
    return _Few(Released("", (fewer,)), [[allowed[i] for i in hardest] for allowed in lengths])


def _halved(
    excess: Callable[[Fraction], tuple[PlannedStatement | None, float]],
    low: Fraction,
    high: Fraction,
    best: PlannedStatement,
    step: Fraction,
) -> PlannedStatement:
    while high > step * low and high > LOSS_START:
        middle = _whole(Fraction((low + high) / 2))
        if not low < middle < high:
            break
        planned, times = excess(middle)
        if planned is not None and times <= 1:
            high, best = middle, planned
        else:
            low = middle
    return best


def _whole(loss: Fraction) -> Fraction:
    """A loss in whole ledger units, rounded up."""
    return Fraction(math.ceil(loss * LOSS_UNITS), LOSS_UNITS)


def _plan_or_none(plan_at: PlanAt, loss: Fraction) -> PlannedStatement | None:
    """The plan at a loss; None if the loss is too small for any available noise."""
    try:
        return plan_at(loss)
    except Refused as error:
        if error.code != "scale-invalid":
            raise
        return None


def _required(
    planned: PlannedStatement, post: PostProcess, target: Target, base: Released | None, rows: Sequence[int] | None
) -> list[list[float]] | None:
    """The target of each error bar, from public facts and ``base``; None if some value could be 0 or there is no ``base``."""
    if is_direct(planned, post, target):
        return [[target.allowed(0.0)] for _ in aimed(post)]
    if base is None:
        return None
    required: list[list[float]] = []
    for i, column in zip(aimed(post), bars_of(planned, base, post, confidence=target.sure, rows=rows), strict=True):
        public = size_from_declarations(planned, post, i)
        sizes = [public if bar is None else max(bar.size_min, public) for bar in column]
        if isinstance(target.asked, ShareTerm) and not all(sizes):
            return None
        required.append([target.allowed(size) for size in sizes])
    return required


def _excess(
    planned: PlannedStatement,
    post: PostProcess,
    target: Target,
    base: Released | None,
    before: PlannedStatement,
    lengths: list[list[float]],
    rows: Sequence[int] | None,
) -> float:
    """The largest ratio of an error bar's longer side to its target, under this plan."""
    direct = is_direct(planned, post, target)
    confidence = target.confidence if direct else target.rest
    worst = 0.0
    for supposed in _supposed(planned, post, None if direct else base, before, sure=target.sure):
        bars = bars_of(planned, supposed, post, confidence=confidence, rows=None if direct else rows)
        for column, allowed in zip(bars, lengths, strict=True):
            if not column:
                return math.inf
            limits = allowed if len(allowed) == len(column) else allowed * len(column)
            for bar, limit in zip(column, limits, strict=True):
                worst = max(worst, math.inf if bar is None else bar.side / limit)
    return worst


def _supposed(
    planned: PlannedStatement, post: PostProcess, base: Released | None, before: PlannedStatement, *, sure: Fraction
) -> Iterator[Released]:
    """Possible releases of this plan: zeros if values do not matter, otherwise the earlier release at unfavourable ends.

    Divisors are taken at the lower end of their error bars, dividends at both ends and in the middle. Of both, bounds from
    norms keep only a share, and a cheap plan a small one: noise is divided by that. A sum may have another centre.
    """
    queries = planned.certified.queries
    kept = {(part.number, name): 1 - Fraction(min(cut.choice.lost, 1.0)) for part in planned.parts for name, cut in part.cuts.items()}
    if base is None:
        yield Released("", tuple(_zeros(query, whole=is_rearranged(planned)) for query in queries))
        return
    above, below = divided(planned, post)
    centres = _moved_centres(planned, before)
    for sign in (-1, 0, 1) if above else (0,):
        tables = []
        for number, (query, table) in enumerate(zip(queries, base.tables, strict=True)):
            supposed = dict[str, list[Fraction]]()
            for column in table.columns:
                place = (number, column.name)
                side = -1 if place in below else sign if place in above else 0
                share = kept.get(place, Fraction(1)) if place in above | below else Fraction(1)
                away = side * half_width(column.law, confidence=sure)
                supposed[column.name] = [share * (value + away) * column.step for value in column.values]
            for name, (count, by) in centres[number].items():
                supposed[name] = [value + by * rows for value, rows in zip(supposed[name], supposed[count], strict=True)]
            laws = {vector.vector.name: vector for vector in query.vectors}
            columns = [_under(laws.get(column.name), column, supposed[column.name]) for column in table.columns]
            tables.append(replace(table, columns=tuple(columns)))
        yield Released("", tuple(tables))


def _under(vector: CertifiedVector | None, column: NoisyColumn, supposed: Sequence[Fraction]) -> NoisyColumn:
    """A column of these numbers in the form of a vector of another plan."""
    if vector is None:
        return column
    return NoisyColumn(
        column.name, tuple(round(value / vector.step) for value in supposed), vector.vector.law, vector.step, vector.rounding
    )


def _moved_centres(planned: PlannedStatement, before: PlannedStatement) -> dict[int, dict[str, tuple[str, Fraction]]]:
    """By query, the sums that two plans centre differently: the count of each, and the difference per row."""
    moved: dict[int, dict[str, tuple[str, Fraction]]] = {number: {} for number in range(len(planned.certified.queries))}
    for new, old in zip(planned.parts, before.parts, strict=True):
        for recipe, was in zip(new.recipes, old.recipes, strict=True):
            if new.number is not None and isinstance(recipe, AverageMeasure) and isinstance(was, AverageMeasure):
                by = Fraction(was.offset, was.steps) - Fraction(recipe.offset, recipe.steps)
                if by:
                    moved[new.number][recipe.total] = recipe.count, by
    return moved


def _zeros(query: CertifiedQuery, *, whole: bool) -> NoisyTable:
    """A table of zeros: all groups are alike, unless subtotals are formed of them or they are joined."""
    groups = query.query.groups.groups if isinstance(query.query.groups, KnownGroups) else ((None,) * len(query.query.keys),)
    groups = groups if whole else groups[:1]
    zeros = (0,) * len(groups)
    columns = tuple(NoisyColumn(v.vector.name, zeros, v.vector.law, v.step, v.rounding) for v in query.vectors)
    chosen = tuple(ChosenQuantiles(q.quantiles.name, (zeros,) * len(q.quantiles.targets), q.step) for q in query.quantiles)
    return NoisyTable(tuple(name for name, _ in query.query.keys), groups, columns, None, query.shape.rows_max, chosen)
