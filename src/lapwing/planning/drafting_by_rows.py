"""Drafting without norms: one bound on the rows of a unit, chosen by the predicted rows per unit."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import assert_never

from lapwing.contribution.bounding import BoundingInputs, BoundingKind, BoundingPlan, best_ranked, choose, groups_for, lost_share
from lapwing.contribution.relations import limited
from lapwing.contribution.row_sample import RowSample
from lapwing.contribution.rows_per_unit import Contributions
from lapwing.errors import Refused
from lapwing.kernel.ir import (
    Bounding,
    Cap,
    Clipped,
    DiscoveredGroups,
    Follow,
    GridSum,
    Grouped,
    KnownGroups,
    Measure,
    Query,
    Ranked,
    UnitCount,
    UnitNorms,
    Vector,
)
from lapwing.kernel.stability import Shape, shape_of
from lapwing.planning.drafts import CLIP_BITS, Draft, DraftedPart, PlanningFacts
from lapwing.planning.key_selection import with_spread_weights
from lapwing.planning.measures import AverageMeasure, Measured
from lapwing.planning.planned import Part
from lapwing.planning.quantile_bars import MeasuredBars, measured_bars
from lapwing.planning.vector_noise import placeholder, with_noise


def drafted_by_rows(draft: Draft, known: PlanningFacts, share: Fraction, delta: Fraction, *, number: int) -> DraftedPart:
    """The query with a bound on rows: every vector uses ``share``, and keys are discovered with ``delta``."""
    situation = draft.situation(known, share)
    choice = choose(situation)
    if draft.vectors == 0:
        return DraftedPart(Part(draft.query, None, draft.groups, draft.needed.recipes, choice, situation.kept), None)
    wanted = draft.wanted(known, share)
    draft, ends = draft.narrowed(known, situation)
    choice, query, bars = _fitting(draft, situation, choice, share, delta, known)
    lost, rows = max(draft.lost, lost_share(situation, choice)), draft.rows(known, situation)
    part = Part(draft.query, number, draft.groups, draft.needed.recipes, choice, situation.kept, lost, rows, ends)
    if known.facts.planning_rules >= 2:
        part = replace(part, rows_upper=draft.query_to_bound(known).rows_upper)
    part = replace(part, too_many=draft.too_many, nothing_to_sum=draft.nothing_to_sum, bars=bars)
    return DraftedPart(part, query, wanted)


def _fitting(
    draft: Draft, situation: BoundingInputs, choice: BoundingPlan, share: Fraction, delta: Fraction, known: PlanningFacts
) -> tuple[BoundingPlan, Query, MeasuredBars | None]:
    """The query with this bounding plan or, if its finer grid does not fit the integers, with a limit on rows."""
    candidate = choice
    while True:
        try:
            query = _draft(draft, candidate, delta, known)
            bars = _bars(draft, query, situation, candidate, share, known)
            if bars is None:
                return candidate, with_noise(query, known.facts, share), None
            return candidate, with_noise(bars.added_to(query), known.facts, share, bars.given), bars
        except Refused as error:
            if error.code != "range-too-wide" or candidate.kind is BoundingKind.RANKED:
                raise
            candidate = best_ranked(situation)


def _bars(
    draft: Draft, query: Query, situation: BoundingInputs, choice: BoundingPlan, share: Fraction, known: PlanningFacts
) -> MeasuredBars | None:
    """What is measured for the error bars of quantiles; None where there are no quantiles or bars."""
    facts = known.facts
    if not query.quantiles or facts.planning_rules < 2:
        return None
    contributions = situation.contributions
    if draft.shape.rows_per_unit == 1:
        contributions = Contributions(((1.0, contributions.units()),))
    assert not isinstance(query.source, UnitNorms)
    limit = shape_of(query.source, facts).rows_per_unit
    sample = RowSample.of(contributions, limit, computed=situation.computed)
    cells = situation.groups_guess if situation.cells is None else situation.cells
    known_rows = situation.kept >= 1.0 and situation.cells == 1 and draft.rows(known, situation) is not None
    rows = min(situation.kept, 1.0) * sample.rows / cells
    return measured_bars(query, sample, facts, share, rows=rows, known_rows=known_rows)


def _draft(draft: Draft, choice: BoundingPlan, delta: Fraction, known: PlanningFacts) -> Query:
    """The query with its bounds and a placeholder for the noise."""
    needed, cells, facts = draft.needed, None if draft.groups is None else len(draft.groups), known.facts
    source, bounding = draft.query.source, _bounding(choice, draft.shape, needed, cells=cells)
    if choice.kind is BoundingKind.RANKED:
        source = limited(source, int(choice.limit), facts)
    law = placeholder(facts)
    vectors = tuple(Vector(name, item, law, _bound(item, bounding, choice, needed, name)) for name, item in needed.measures.items())
    groups = DiscoveredGroups(law, delta, known.limits.groups_max) if draft.groups is None else KnownGroups(draft.groups)
    quantiles = tuple(item.unscaled(name) for name, item in needed.quantiles.items())
    return with_spread_weights(Query(source, draft.query.keys, groups, bounding, vectors, quantiles), facts)


def _bounding(choice: BoundingPlan, shape: Shape, needed: Measured, *, cells: int | None) -> Bounding:
    match choice.kind:
        case BoundingKind.RANKED:
            return Ranked()
        case BoundingKind.CLIPPED:
            return Clipped(CLIP_BITS)
        case BoundingKind.GROUPED:
            groups = int(choice.limit) if needed.units_only else groups_for(choice.limit, cells)
            return Grouped(min(groups, shape.rows_per_unit))
        case _:
            assert_never(choice.kind)


def _rows_per_cell(choice: BoundingPlan, bounding: Bounding) -> int:
    assert isinstance(bounding, Grouped)
    return max(1, math.ceil(choice.limit / bounding.groups))


def _bound(measure: Measure, bounding: Bounding, choice: BoundingPlan, needed: Measured, name: str) -> Cap | Follow | None:
    """How one unit's share of a vector is bounded."""
    match bounding:
        case Ranked():
            return None
        case Clipped():
            if isinstance(measure, UnitCount):
                return None
            leader = next((r.count for r in needed.recipes if isinstance(r, AverageMeasure) and r.total == name), None)
            if leader is not None:
                return Follow(leader)
            return Cap(max(1, int(choice.limit * 2**CLIP_BITS * _row_size(measure))))
        case Grouped():
            if isinstance(measure, UnitCount):
                return None
            return Cap(max(1, _rows_per_cell(choice, bounding) * _row_size(measure)))
        case _:
            raise AssertionError("planning does not weigh rows")


def _row_size(measure: Measure) -> int:
    if not isinstance(measure, GridSum):
        return 1
    ends = (measure.lower * measure.steps - measure.offset, measure.upper * measure.steps - measure.offset)
    return max(1, math.ceil(max(abs(end) for end in ends)))
