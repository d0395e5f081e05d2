"""From a private query and a price to a plan: groups, bounding, noise, split of the budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import assert_never

from lapwing.errors import Refused
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import Certified, certify
from lapwing.kernel.domains import Domain, RealDomain
from lapwing.kernel.expressions import Value
from lapwing.kernel.facts import Facts
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
    Plan,
    Query,
    Ranked,
    UnitCount,
    UnitNorms,
    Vector,
)
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Family, Law, law_for
from lapwing.kernel.stability import Shape, domain_of, shape_of
from lapwing.planning.bounding import BoundingKind, Choice, Situation, best_ranked, choose, groups_for, lost_share, unit_noise_of
from lapwing.planning.contributions import Contributions
from lapwing.planning.fewer_rows import fitting, lost_by_lowering, without_repeats
from lapwing.planning.groups import Evaluate, known_groups
from lapwing.planning.key_selection import with_spread_weights
from lapwing.planning.measures import Averaged, Counted, Measured, Recipe, measured
from lapwing.planning.moments import Moments
from lapwing.planning.norm_bounds import Asked, Bounded, bounded, shares_by_need, wanted_norms
from lapwing.planning.norm_fit import NormFit
from lapwing.planning.norms import NormCut
from lapwing.planning.per_unit_bounds import narrowed
from lapwing.planning.quantiles import with_scale
from lapwing.planning.relations import contributions_of, fans_out, kept_of, limited, tables_of
from lapwing.statements import PrivateQuery, scans_of

__all__ = ["GroupLimits", "Part", "Planned", "Price", "limited", "plan_query", "plan_statement"]

CLIP_BITS = 10
PLACEHOLDER = Fraction(1)

COUNT_NOISE = 1.0
"""Noise of a count, in rows, when one row moves it by 1. The weights below are in the same unit."""
SUM_NOISE = 10.0
"""The same of a sum: a typical value is taken as a tenth of its bound."""
CENTRED_SUM_NOISE = SUM_NOISE / 2
"""Of a sum of distances from the middle of the range, which are at most half as large."""
QUANTILE_NOISE = 10.0
"""A rank that is off by the largest share of one row is off by several: a selection looks at many candidates."""
TOTAL_LOSS = 1.0
"""How much a lost row matters to a count or a sum: it is missing."""
RATIO_LOSS = 0.2
"""How much it matters to an average, a moment or a quantile: the other rows of its group say much the same."""


@dataclass(frozen=True, slots=True)
class Price:
    """What a statement may use: loss (epsilon or rho) and delta for discovering keys."""

    loss: Fraction
    delta: Fraction


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """Public limits on groups."""

    known_cells_max: int
    groups_max: int


@dataclass(frozen=True, slots=True)
class Part:
    """One private query as it is measured, with what the answer and the explanation need to know about it."""

    query: PrivateQuery
    number: int | None
    """Which query of the certified plan it is; None where its groups are declared and nothing is measured."""
    groups: tuple[tuple[Value, ...], ...] | None
    """The groups, where they are known beforehand."""
    recipes: tuple[Recipe, ...]
    choice: Choice
    kept: float
    lost: float = 0.0
    """Share of the rows that the bound is predicted to leave out."""
    rows: float | None = None
    """Rows predicted in all groups together before bounding; None where nothing was bought or declared that says it."""
    ends: Mapping[int, Fraction] = field(default_factory=dict)
    """By number of the recipe: the upper end that each unit's value is clamped to, where planning chose one below the declared."""

    rows_upper: float | None = None
    """More rows than there are in all groups together, by all that was bought; None where nothing was."""
    cuts: Mapping[str, NormCut] = field(default_factory=dict)
    """By vector: the cap that was chosen from bought norms, and what it may cut off."""
    together: Mapping[str, str] = field(default_factory=dict)
    """By vector: the other one that it is scaled down with."""

    @property
    def known(self) -> bool:
        """Whether its groups are known beforehand."""
        return self.groups is not None


@dataclass(frozen=True, slots=True)
class Planned:
    """All parts of a statement, and the certified plan that measures them; None where nothing is measured, which is free."""

    measured: Certified | None
    parts: tuple[Part, ...]
    facts: Facts
    wanted: tuple[UnitNorms, ...] = ()
    """Norms from which its bounds would be chosen, had they been bought."""

    @property
    def certified(self) -> Certified:
        """The certified plan of a statement that measures something."""
        assert self.measured is not None
        return self.measured

    @property
    def only(self) -> Part:
        """The part of a statement that has one."""
        (part,) = self.parts
        return part

    def shape(self, part: Part) -> Shape:
        """What is publicly known of a part's rows before bounds are put on them."""
        return shape_of(part.query.source, self.facts)

    def columns(self, part: Part) -> Mapping[str, Domain]:
        """The columns that a part's keys are written over."""
        return self.shape(part).columns


def plan_statement(
    queries: Sequence[PrivateQuery],
    facts: Facts,
    price: Price,
    *,
    contributions: Mapping[str, Contributions],
    units: int | None,
    limits: GroupLimits,
    evaluate: Evaluate,
    norms: Mapping[UnitNorms, NormFit] | None = None,
) -> Planned:
    """The plan with the least predicted error for the price; its certified cost is at most the price.

    Bounds come from ``norms`` that were bought for this statement; what is still wanted of them is said. Without them, every vector of
    the statement gets the same share of the loss, and every query that discovers groups the same share of the delta.
    """
    drafts = [_Draft.of(query, facts, limits, evaluate, contributions, units, queries=len(queries)) for query in queries]
    vectors = sum(draft.vectors for draft in drafts)
    discovering = sum(draft.groups is None for draft in drafts)
    share = price.loss / max(vectors, 1)
    delta = price.delta / max(discovering, 1)
    by_norms, shares = _by_norms(drafts, facts, Price(price.loss, delta), limits, share, norms or {}, contributions)
    each = [len(by_norms[n].needed.measures) + (draft.groups is None) if n in by_norms else draft.vectors for n, draft in enumerate(drafts)]
    share = price.loss / max(sum(each), 1)
    parts: list[Part] = []
    measured_queries: list[Query] = []
    wanted: list[UnitNorms] = []
    for number, draft in enumerate(drafts):
        situation = draft.situation(facts, share, contributions, units)
        rows = draft.rows(situation, contributions)
        if (bounds := by_norms.get(number)) is not None:
            draft = replace(draft, needed=bounds.needed)
            choice = bounds.choice()
            given = {name: shares.get((number, name), share) for name in draft.needed.measures}
            query = _draft_by_norms(draft, bounds, Price(price.loss, delta), limits, facts)
            lost = max(draft.lost, *(cut.choice.lost for cut in bounds.cuts.values()))
            part = Part(draft.query, len(measured_queries), draft.groups, draft.needed.recipes, choice, situation.kept, lost, rows)
            parts.append(replace(part, rows_upper=bounds.rows_upper, cuts=bounds.cuts, together={**bounds.followers, **bounds.alike}))
            measured_queries.append(_with_noise(query, facts, share, given))
            continue
        draft, ends = draft.narrowed(facts, contributions, units, situation)
        choice = choose(situation)
        if draft.vectors == 0:
            parts.append(Part(draft.query, None, draft.groups, (), choice, situation.kept))
            continue
        wanted += wanted_norms(draft.asked(facts, contributions), unit_noise=situation.unit_noise)
        choice, query = _fitting(draft, situation, choice, Price(price.loss, delta), share, limits, facts)
        lost = max(draft.lost, lost_share(situation, choice))
        parts.append(Part(draft.query, len(measured_queries), draft.groups, draft.needed.recipes, choice, situation.kept, lost, rows, ends))
        measured_queries.append(query)
    certified = certify(Plan(tuple(measured_queries)), facts) if measured_queries else None
    return Planned(certified, tuple(parts), facts, tuple(dict.fromkeys(wanted)))


def _by_norms(
    drafts: Sequence[_Draft],
    facts: Facts,
    price: Price,
    limits: GroupLimits,
    share: Fraction,
    norms: Mapping[UnitNorms, NormFit],
    contributions: Mapping[str, Contributions],
) -> tuple[dict[int, Bounded], dict[tuple[int, str], Fraction]]:
    """Caps of the queries whose norms were bought, and what each vector gets: by need, where all of the statement are such."""
    if not norms:
        return {}, {}
    shares: dict[tuple[int, str], Fraction] = {}
    by_norms: dict[int, Bounded] = {}
    for _ in range(2):
        for number, draft in enumerate(drafts):

            def noise_of(name: str, number: int = number, given: Mapping[tuple[int, str], Fraction] = shares) -> float:
                return unit_noise_of(facts.account, float(given.get((number, name), share)), facts.neighbours)

            bounds = bounded(draft.asked(facts, contributions), norms, noise_of)
            if bounds is not None and draft.fits(bounds, price, limits, facts):
                by_norms[number] = bounds
        needs = {(number, name): need for number, bounds in by_norms.items() for name, need in bounds.needs().items()}
        every = sum(len(bounds.needed.measures) for bounds in by_norms.values())
        if len(by_norms) < len(drafts) or len(needs) < every or every < 2 or any(draft.groups is None for draft in drafts):
            break
        shares = shares_by_need(needs, price.loss, facts.account)
    return by_norms, shares


def plan_query(
    query: PrivateQuery,
    facts: Facts,
    price: Price,
    *,
    contributions: Mapping[str, Contributions],
    units: int | None,
    limits: GroupLimits,
    evaluate: Evaluate,
) -> Planned:
    """The plan of a statement that is one private query."""
    return plan_statement((query,), facts, price, contributions=contributions, units=units, limits=limits, evaluate=evaluate)


def _fitting(
    draft: _Draft, situation: Situation, choice: Choice, price: Price, share: Fraction, limits: GroupLimits, facts: Facts
) -> tuple[Choice, Query]:
    """The query with this choice of bounds or, where its finer grid would not fit the integers, with a limit on rows."""
    candidate = choice
    while True:
        drafted = _draft(draft.query, draft.shape, draft.needed, candidate, draft.groups, price, limits, facts)
        try:
            return candidate, _with_noise(drafted, facts, share)
        except Refused as error:
            if error.code != "range-too-wide" or candidate.kind is BoundingKind.RANKED:
                raise
            candidate = best_ranked(situation)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A query before its bounds and noise are chosen."""

    query: PrivateQuery
    shape: Shape
    needed: Measured
    groups: tuple[tuple[Value, ...], ...] | None
    lost: float
    """Predicted share of the rows that are left out so that no step has too many rows of one unit."""

    @staticmethod
    def of(
        query: PrivateQuery,
        facts: Facts,
        limits: GroupLimits,
        evaluate: Evaluate,
        contributions: Mapping[str, Contributions],
        units: int | None,
        *,
        queries: int,
    ) -> _Draft:
        whole = without_repeats(query, facts)
        query = fitting(whole, facts, queries=queries)
        lost = lost_by_lowering(whole.source, query.source, facts, contributions, units)
        shape = shape_of(query.source, facts)
        groups = query.groups
        if groups is None:
            groups = known_groups(query.keys, shape.columns, cells_max=limits.known_cells_max, evaluate=evaluate) if query.keys else ((),)
        if groups is None and facts.account is Account.PURE:
            raise Refused(
                "keys-need-delta",
                "the values of a GROUP BY key are not declared, and this data set has no delta to discover them with",
                hint="group by a declared column, or let the owner declare its values",
            )
        if groups is None and any(isinstance(domain_of(key, shape.columns), RealDomain) for _, key in query.keys):
            message, hint = "a real number makes too many groups to know them beforehand", "bin it into whole numbers, as in FLOOR(x / 10)"
            raise Refused("groups-by-real", message, hint=hint)
        return _Draft(query, shape, measured(query.aggregates, shape), groups, lost)

    def asked(self, facts: Facts, contributions: Mapping[str, Contributions]) -> Asked:
        """What bounds by norms are chosen for."""
        cells = None if self.groups is None else len(self.groups)
        source = self.query.source
        allowed = max(scan.rows_per_unit for scan in scans_of(source))
        bought = all(table in contributions for table in tables_of(source))
        rows = contributions_of(source, facts, contributions, None).rows() if bought else None
        return Asked(source, self.query.keys, self.shape, self.needed, cells, facts.account, allowed, rows)

    def fits(self, bounds: Bounded, price: Price, limits: GroupLimits, facts: Facts) -> bool:
        """Whether the finer grid of clipping fits the integers."""
        try:
            query = _draft_by_norms(replace(self, needed=bounds.needed), bounds, price, limits, facts)
            certify(Plan((query,)), facts)
        except Refused as error:
            if error.code != "range-too-wide":
                raise
            return False
        return True

    @property
    def vectors(self) -> int:
        """How many vectors and sets of quantiles share the loss; discovering groups takes one more."""
        return len(self.needed.measures) + len(self.needed.quantiles) + (1 if self.groups is None else 0)

    def narrowed(
        self, facts: Facts, contributions: Mapping[str, Contributions], units: int | None, situation: Situation
    ) -> tuple[_Draft, dict[int, Fraction]]:
        """With narrower ends for what is added up over per-unit rows, and those ends."""
        cells = situation.groups_guess if situation.cells is None else max(situation.cells, 1)
        needed, ends = narrowed(
            self.needed, self.query.source, facts, contributions=contributions, units=units, noise=situation.unit_noise, cells=cells
        )
        return replace(self, needed=needed), ends

    def rows(self, situation: Situation, contributions: Mapping[str, Contributions]) -> float | None:
        """Rows that are predicted, as far as bought statistics say."""
        if any(table not in contributions for table in tables_of(self.query.source)):
            return None
        known = situation.contributions
        return situation.kept * (known.units() if self.shape.rows_per_unit == 1 else known.rows())

    def situation(self, facts: Facts, share: Fraction, contributions: Mapping[str, Contributions], units: int | None) -> Situation:
        """What the choice of bounds depends on."""
        query, needed = self.query, self.needed
        return Situation(
            contributions=contributions_of(query.source, facts, contributions, units),
            rows_per_unit_max=self.shape.rows_per_unit,
            kept=kept_of(query.source, facts),
            cells=None if self.groups is None else len(self.groups),
            account=facts.account,
            loss_per_vector=float(share),
            has_average=needed.has_average,
            units_only=needed.units_only,
            keys_only=self.groups is None and not needed.measures and not needed.quantiles,
            fans_out=fans_out(query.source, facts),
            values=max((r.most for r in needed.recipes if isinstance(r, Counted) and r.most is not None), default=None),
            distinct=needed.has_distinct,
            ratios=needed.has_moments or bool(needed.quantiles),
            real_keys=any(_is_computed_real(domain_of(key, self.shape.columns)) for _, key in query.keys),
            loss_weight=_weight(needed, of_noise=False),
            noise_weight=_weight(needed, of_noise=True),
        )


def _is_computed_real(domain: Domain) -> bool:
    return isinstance(domain, RealDomain) and domain.steps is None


def _weight(needed: Measured, *, of_noise: bool) -> float:
    """Root mean square over vectors of how much lost rows, or noise, matter to them."""
    averaged = {name for recipe in needed.recipes if isinstance(recipe, Averaged) for name in (recipe.total, recipe.count)}
    averaged |= {name for recipe in needed.recipes if isinstance(recipe, Moments) for name in recipe.vectors}
    squares = []
    for name, measure in needed.measures.items():
        noise = COUNT_NOISE if not isinstance(measure, GridSum) else CENTRED_SUM_NOISE if measure.offset else SUM_NOISE
        lost = RATIO_LOSS if name in averaged else TOTAL_LOSS
        squares.append(noise**2 if of_noise else lost**2)
    squares += [(QUANTILE_NOISE if of_noise else RATIO_LOSS) ** 2] * len(needed.quantiles)
    return math.sqrt(sum(squares) / len(squares)) if squares else 1.0


def _draft(
    query: PrivateQuery,
    shape: Shape,
    needed: Measured,
    choice: Choice,
    groups: tuple[tuple[Value, ...], ...] | None,
    price: Price,
    limits: GroupLimits,
    facts: Facts,
) -> Query:
    """The query with its bounds and a placeholder for the noise."""
    source, bounding = query.source, _bounding(choice, shape, needed, cells=None if groups is None else len(groups))
    if choice.kind is BoundingKind.RANKED:
        source = limited(source, int(choice.limit), facts)
    vectors = tuple(
        Vector(name, measure, _placeholder(price), _bound(measure, bounding, choice, needed, name))
        for name, measure in needed.measures.items()
    )
    key_groups = DiscoveredGroups(_placeholder(price), price.delta, limits.groups_max) if groups is None else KnownGroups(groups)
    quantiles = tuple(item.unscaled(name) for name, item in needed.quantiles.items())
    return with_spread_weights(Query(source, query.keys, key_groups, bounding, vectors, quantiles), facts)


def _draft_by_norms(draft: _Draft, bounds: Bounded, price: Price, limits: GroupLimits, facts: Facts) -> Query:
    """The query with caps from bought norms and a placeholder for the noise."""
    source, bounding = draft.query.source, Ranked() if bounds.whole_rows else Clipped(CLIP_BITS)
    if bounds.whole_rows:
        source = limited(source, min(int(cut.choice.cap) for cut in bounds.cuts.values()), facts)

    def bound(name: str) -> Cap | Follow | None:
        if bounds.whole_rows:
            return None
        if name in bounds.followers:
            return Follow(bounds.followers[name])
        if name not in bounds.cuts:
            return None
        return Cap(max(1, int(bounds.cuts[name].choice.cap * 2**CLIP_BITS)), bounds.alike.get(name))

    law = DiscreteLaplace(PLACEHOLDER) if facts.account is Account.PURE else DiscreteGaussian(PLACEHOLDER)
    vectors = tuple(Vector(name, measure, law, bound(name)) for name, measure in draft.needed.measures.items())
    groups = DiscoveredGroups(law, price.delta, limits.groups_max) if draft.groups is None else KnownGroups(draft.groups)
    return with_spread_weights(Query(source, draft.query.keys, groups, bounding, vectors), facts)


def _placeholder(price: Price) -> Law:
    return DiscreteGaussian(PLACEHOLDER) if price.delta else DiscreteLaplace(PLACEHOLDER)


def _bounding(choice: Choice, shape: Shape, needed: Measured, *, cells: int | None) -> Bounding:
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


def _rows_per_cell(choice: Choice, bounding: Bounding) -> int:
    assert isinstance(bounding, Grouped)
    return max(1, math.ceil(choice.limit / bounding.groups))


def _bound(measure: Measure, bounding: Bounding, choice: Choice, needed: Measured, name: str) -> Cap | Follow | None:
    """How one unit's share of a vector is bounded."""
    match bounding:
        case Ranked():
            return None
        case Clipped():
            if isinstance(measure, UnitCount):
                return None
            leader = next((r.count for r in needed.recipes if isinstance(r, Averaged) and r.total == name), None)
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


def _with_noise(draft: Query, facts: Facts, share: Fraction, given: Mapping[str, Fraction] | None = None) -> Query:
    """Give every vector the noise that its share of the loss buys; sensitivities come from the certifier itself."""
    derived = certify(Plan((draft,)), facts).queries[0]
    family = Family.LAPLACE if facts.account is Account.PURE else Family.GAUSSIAN

    def law(l1: int, l2_squared: int, loss: Fraction = share) -> Law:
        return law_for(facts.account, loss=loss, l1=max(l1, 1), l2_squared=max(l2_squared, 1), family=family)

    losses = given or {}
    vectors = tuple(
        replace(item.vector, law=law(item.sensitivity.l1, item.sensitivity.l2_squared, losses.get(item.vector.name, share)))
        for item in derived.vectors
    )
    groups = draft.groups
    if isinstance(groups, DiscoveredGroups) and derived.keys is not None:
        groups = replace(groups, law=law(derived.keys.sensitivity.l1, derived.keys.sensitivity.l2_squared))
    quantiles = tuple(with_scale(item, facts, share) for item in derived.quantiles)
    return replace(draft, vectors=vectors, groups=groups, quantiles=quantiles)
