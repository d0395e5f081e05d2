"""Drafting from the norms bought for a statement: a cap for each vector, and shares of the loss by need."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from lapwing.contribution.bounding import unit_noise_of
from lapwing.contribution.model import ContributionModel
from lapwing.contribution.relations import limited
from lapwing.errors import Refused
from lapwing.kernel.certify import derived_queries
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Cap, Clipped, DiscoveredGroups, Follow, KnownGroups, Plan, Query, Ranked, UnitCount, UnitNorms, Vector
from lapwing.planning.drafts import CLIP_BITS, Draft, DraftedPart, PlanningFacts
from lapwing.planning.key_selection import with_spread_weights
from lapwing.planning.planned import Part, Price
from lapwing.planning.ratio_estimator import GroupsAndTotals, shares_with_totals, with_low_caps
from lapwing.planning.vector_bounds import BoundedQuery, bounded
from lapwing.planning.vector_noise import placeholder, with_noise


@dataclass(frozen=True, slots=True)
class NormBounds:
    """Bounds of the queries of a statement with bought norms, by the query's number."""

    by_query: Mapping[int, BoundedQuery] = field(default_factory=dict)
    shares: Mapping[tuple[int, str], Fraction] = field(default_factory=dict)
    """The loss of a vector, by number of its query and its name, if the loss is shared by need."""
    errors: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    """For each query with groups scaled to totals: the predicted error of each scaled vector."""


def norm_bounds(
    drafts: Sequence[Draft],
    known: PlanningFacts,
    price: Price,
    share: Fraction,
    norms: Mapping[UnitNorms, ContributionModel],
    pairs: Mapping[int, GroupsAndTotals],
) -> NormBounds:
    """Caps of the queries with bought norms, and the loss of each vector: by need if all queries of the statement have norms.

    ``pairs`` are queries whose groups are scaled to totals, by number.
    """
    facts = known.facts
    shares: dict[tuple[int, str], Fraction] = {}
    by_query: dict[int, BoundedQuery] = {}
    errors: dict[int, Mapping[str, float]] = {}
    totals = {pair.totals for pair in pairs.values()}
    for _ in range(2):
        noise_of = [_NoiseOf(draft.certified_for(facts), shares, share, number) for number, draft in enumerate(drafts)]
        for number, draft in enumerate(drafts):
            bounds = bounded(draft.query_to_bound(known), norms, noise_of[number])
            if bounds is not None and _fits(_draft(draft, bounds, price.delta, known), facts):
                by_query[number] = bounds
        for number, pair in pairs.items():
            if number in by_query and pair.totals in by_query:
                low = with_low_caps(by_query[number], by_query[pair.totals], pair, noise_of[number])
                by_query[number], errors[number] = low
        needs = {(number, name): need for number, bounds in by_query.items() for name, need in bounds.needs().items()}
        every = sum(len(bounds.needed.measures) for bounds in by_query.values())
        if len(by_query) < len(drafts) or len(needs) < every or every < 2 or any(draft.groups is None for draft in drafts):
            break
        shares = shares_with_totals(needs, totals, price.loss, facts.account)
    return NormBounds(by_query, shares, errors)


@dataclass(frozen=True, slots=True)
class _NoiseOf:
    """The noise of a vector of a query when a unit adds 1 to it, by its name."""

    facts: Facts
    shares: Mapping[tuple[int, str], Fraction]
    share: Fraction
    number: int

    def __call__(self, name: str) -> float:
        loss = self.shares.get((self.number, name), self.share)
        return unit_noise_of(self.facts.account, float(loss), self.facts.neighbours)


def drafted_by_norms(
    draft: Draft,
    bounds: BoundedQuery,
    known: PlanningFacts,
    share: Fraction,
    given: Mapping[str, Fraction],
    delta: Fraction,
    *,
    number: int,
) -> DraftedPart:
    """The query with these caps: each vector uses its given loss or else ``share``, and keys are discovered with ``delta``."""
    situation = draft.situation(known, share)
    query = _draft(draft, bounds, delta, known)
    lost, rows = max(draft.lost, *(cut.choice.lost for cut in bounds.cuts.values())), draft.rows(known, situation)
    part = Part(
        query=draft.query,
        number=number,
        groups=draft.groups,
        recipes=bounds.needed.recipes,
        choice=bounds.choice(),
        kept=situation.kept,
        lost=lost,
        rows=rows,
        rows_upper=bounds.rows_upper,
        cuts=bounds.cuts,
        together={**bounds.followers, **bounds.alike},
        centred=bounds.centred,
        too_many=draft.too_many,
        nothing_to_sum=draft.nothing_to_sum,
    )
    return DraftedPart(part, with_noise(query, known.facts, share, given))


def _fits(query: Query, facts: Facts) -> bool:
    """Whether the finer grid of clipping fits the integers."""
    try:
        derived_queries(Plan((query,)), facts)
    except Refused as error:
        if error.code != "range-too-wide":
            raise
        return False
    return True


def _draft(draft: Draft, bounds: BoundedQuery, delta: Fraction, known: PlanningFacts) -> Query:
    """The query with caps from bought norms and a placeholder for the noise."""
    source, bounding, facts = draft.query.source, Ranked() if bounds.whole_rows else Clipped(CLIP_BITS), known.facts
    if bounds.whole_rows:
        source = limited(source, min(int(cut.choice.cap) for cut in bounds.cuts.values()), facts)

    def bound(name: str) -> Cap | Follow | None:
        if bounds.whole_rows:
            return None
        if name in bounds.followers:
            return Follow(bounds.followers[name])
        if name in bounds.whole and not isinstance(bounds.needed.measures[name], UnitCount):
            return Cap(bounds.whole[name].most << CLIP_BITS)
        if name not in bounds.cuts:
            return None
        cut = bounds.cuts[name]
        # A cap at the largest norm possible clips nothing, so it is rounded up.
        whole = math.ceil if facts.planning_rules >= 2 and cut.choice.cap >= cut.fit.largest else int
        return Cap(max(1, whole(cut.choice.cap * 2**CLIP_BITS)), bounds.alike.get(name))

    law = placeholder(facts)
    vectors = tuple(Vector(name, measure, law, bound(name)) for name, measure in bounds.needed.measures.items())
    groups = DiscoveredGroups(law, delta, known.limits.groups_max) if draft.groups is None else KnownGroups(draft.groups)
    return with_spread_weights(Query(source, draft.query.keys, groups, bounding, vectors), facts)
