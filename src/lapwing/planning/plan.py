"""From a private query and a price to a plan: groups, bounding, noise, split of the budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

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
    Vector,
)
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Family, Law, law_for
from lapwing.kernel.stability import Shape, domain_of, shape_of
from lapwing.planning.bounding import Choice, Situation, best_ranked, choose, groups_for, lost_share
from lapwing.planning.contributions import Contributions
from lapwing.planning.fewer_rows import fitting, lost_by_lowering, without_repeats
from lapwing.planning.groups import Evaluate, known_groups
from lapwing.planning.measures import Averaged, Counted, Measured, Recipe, measured
from lapwing.planning.moments import Moments
from lapwing.planning.per_unit_bounds import narrowed
from lapwing.planning.quantiles import with_scale
from lapwing.planning.relations import contributions_of, fans_out, kept_of, limited, tables_of
from lapwing.statements import PrivateQuery

__all__ = ["GroupLimits", "Part", "Planned", "Price", "limited", "plan_query", "plan_statement"]

CLIP_BITS = 10
PLACEHOLDER = Fraction(1)


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

    def columns(self, part: Part) -> Mapping[str, Domain]:
        """The columns that a part's keys are written over."""
        return shape_of(part.query.source, self.facts).columns


def plan_statement(
    queries: Sequence[PrivateQuery],
    facts: Facts,
    price: Price,
    *,
    contributions: Mapping[str, Contributions],
    units: int | None,
    limits: GroupLimits,
    evaluate: Evaluate,
) -> Planned:
    """The plan with the least predicted error for the price; its certified cost is at most the price.

    Every vector of the statement gets the same share of the loss, and every query that discovers groups the same share of the delta.
    """
    drafts = [_Draft.of(query, facts, limits, evaluate, contributions, units, queries=len(queries)) for query in queries]
    vectors = sum(draft.vectors for draft in drafts)
    discovering = sum(draft.found is None for draft in drafts)
    share = price.loss / max(vectors, 1)
    delta = price.delta / max(discovering, 1)
    parts: list[Part] = []
    measured_queries: list[Query] = []
    for draft in drafts:
        situation = draft.situation(facts, share, contributions, units)
        draft, ends = draft.narrowed(facts, contributions, units, situation)
        choice = choose(situation)
        if draft.vectors == 0:
            parts.append(Part(draft.query, None, draft.found, (), choice, situation.kept))
            continue
        choice, query = _fitting(draft, situation, choice, Price(price.loss, delta), share, limits, facts)
        lost = max(draft.lost, 0.0 if situation.units_only else lost_share(situation, choice))
        rows = draft.rows(situation, contributions)
        parts.append(Part(draft.query, len(measured_queries), draft.found, draft.wanted.recipes, choice, situation.kept, lost, rows, ends))
        measured_queries.append(query)
    certified = certify(Plan(tuple(measured_queries)), facts) if measured_queries else None
    return Planned(certified, tuple(parts), facts)


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
        drafted = _draft(draft.query, draft.shape, draft.wanted, candidate, draft.found, price, limits, facts)
        try:
            return candidate, _with_noise(drafted, facts, share)
        except Refused as error:
            if error.code != "range-too-wide" or candidate.kind == "ranked":
                raise
            candidate = best_ranked(situation)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A query before its bounds and noise are chosen."""

    query: PrivateQuery
    shape: Shape
    wanted: Measured
    found: tuple[tuple[Value, ...], ...] | None
    lost: float
    """Share of the rows that is predicted to be left out so that no step has too many rows of one unit."""

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
        found = query.groups
        if found is None:
            found = known_groups(query.keys, shape.columns, cells_max=limits.known_cells_max, evaluate=evaluate) if query.keys else ((),)
        if found is None and facts.account is Account.PURE:
            raise Refused(
                "keys-need-delta",
                "the values of a GROUP BY key are not declared, and this data set has no delta to discover them with",
                hint="group by a declared column, or let the owner declare its values",
            )
        if found is None and any(isinstance(domain_of(key, shape.columns), RealDomain) for _, key in query.keys):
            message, hint = "a real number makes too many groups to know them beforehand", "bin it into whole numbers, as in FLOOR(x / 10)"
            raise Refused("groups-by-real", message, hint=hint)
        return _Draft(query, shape, measured(query.aggregates, shape), found, lost)

    @property
    def vectors(self) -> int:
        """How many vectors and sets of quantiles share the loss; discovering groups takes one more."""
        return len(self.wanted.measures) + len(self.wanted.quantiles) + (1 if self.found is None else 0)

    def narrowed(
        self, facts: Facts, contributions: Mapping[str, Contributions], units: int | None, situation: Situation
    ) -> tuple[_Draft, dict[int, Fraction]]:
        """With narrower ends for what is added up over per-unit rows, and those ends."""
        cells = situation.groups_guess if situation.cells is None else max(situation.cells, 1)
        wanted, ends = narrowed(
            self.wanted, self.query.source, facts, contributions=contributions, units=units, noise=situation.unit_noise, cells=cells
        )
        return replace(self, wanted=wanted), ends

    def rows(self, situation: Situation, contributions: Mapping[str, Contributions]) -> float | None:
        """Rows that are predicted, as far as bought statistics say."""
        if any(table not in contributions for table in tables_of(self.query.source)):
            return None
        found = situation.contributions
        return situation.kept * (found.units() if self.shape.rows_per_unit == 1 else found.rows())

    def situation(self, facts: Facts, share: Fraction, contributions: Mapping[str, Contributions], units: int | None) -> Situation:
        """What the choice of bounds depends on."""
        query, wanted = self.query, self.wanted
        return Situation(
            contributions=contributions_of(query.source, facts, contributions, units),
            rows_per_unit_max=self.shape.rows_per_unit,
            kept=kept_of(query.source, facts),
            cells=None if self.found is None else len(self.found),
            account=facts.account,
            loss_per_vector=float(share),
            has_average=wanted.has_average,
            units_only=wanted.units_only,
            fans_out=fans_out(query.source, facts),
            values=max((r.most for r in wanted.recipes if isinstance(r, Counted) and r.most is not None), default=None),
            distinct=wanted.has_distinct,
            ratios=wanted.has_moments or bool(wanted.quantiles),
            real_keys=any(_is_computed_real(domain_of(key, self.shape.columns)) for _, key in query.keys),
            loss_weight=_weight(wanted, of_noise=False),
            noise_weight=_weight(wanted, of_noise=True),
        )


def _is_computed_real(domain: Domain) -> bool:
    return isinstance(domain, RealDomain) and domain.steps is None


def _weight(wanted: Measured, *, of_noise: bool) -> float:
    """Root mean square over vectors of how much lost rows, or noise, matter to them. A typical value is taken as a tenth of its bound."""
    averaged = {name for recipe in wanted.recipes if isinstance(recipe, Averaged) for name in (recipe.total, recipe.count)}
    averaged |= {name for recipe in wanted.recipes if isinstance(recipe, Moments) for name in recipe.vectors}
    squares = []
    for name, measure in wanted.measures.items():
        noise = 1.0 if not isinstance(measure, GridSum) else 5.0 if measure.offset else 10.0
        squares.append(noise**2 if of_noise else (0.2 if name in averaged else 1.0) ** 2)
    # A rank that is off by the largest share of one row is off by several: a selection looks at many candidates.
    squares += [(10.0 if of_noise else 0.2) ** 2] * len(wanted.quantiles)
    return math.sqrt(sum(squares) / len(squares)) if squares else 1.0


def _draft(
    query: PrivateQuery,
    shape: Shape,
    wanted: Measured,
    choice: Choice,
    found: tuple[tuple[Value, ...], ...] | None,
    price: Price,
    limits: GroupLimits,
    facts: Facts,
) -> Query:
    """The query with its bounds and a placeholder for the noise."""
    source, bounding = query.source, _bounding(choice, shape, wanted, cells=None if found is None else len(found))
    if choice.kind == "ranked":
        source = limited(source, int(choice.limit), facts)
    vectors = tuple(
        Vector(name, measure, _placeholder(price), _bound(measure, bounding, choice, wanted, name))
        for name, measure in wanted.measures.items()
    )
    groups = DiscoveredGroups(_placeholder(price), price.delta, limits.groups_max) if found is None else KnownGroups(found)
    quantiles = tuple(item.unscaled(name) for name, item in wanted.quantiles.items())
    return Query(source, query.keys, groups, bounding, vectors, quantiles)


def _placeholder(price: Price) -> Law:
    return DiscreteGaussian(PLACEHOLDER) if price.delta else DiscreteLaplace(PLACEHOLDER)


def _bounding(choice: Choice, shape: Shape, wanted: Measured, *, cells: int | None) -> Bounding:
    match choice.kind:
        case "ranked":
            return Ranked()
        case "clipped":
            return Clipped(CLIP_BITS)
        case _:
            groups = int(choice.limit) if wanted.units_only else groups_for(choice.limit, cells)
            return Grouped(min(groups, shape.rows_per_unit))


def _rows_per_cell(choice: Choice, bounding: Bounding) -> int:
    assert isinstance(bounding, Grouped)
    return max(1, math.ceil(choice.limit / bounding.groups))


def _bound(measure: Measure, bounding: Bounding, choice: Choice, wanted: Measured, name: str) -> Cap | Follow | None:
    """How one unit's share of a vector is bounded."""
    match bounding:
        case Ranked():
            return None
        case Clipped():
            if isinstance(measure, UnitCount):
                return None
            leader = next((r.count for r in wanted.recipes if isinstance(r, Averaged) and r.total == name), None)
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


def _with_noise(draft: Query, facts: Facts, share: Fraction) -> Query:
    """Give every vector the noise that its equal share of the loss buys; sensitivities come from the certifier itself."""
    derived = certify(Plan((draft,)), facts).queries[0]
    family = Family.LAPLACE if facts.account is Account.PURE else Family.GAUSSIAN

    def law(l1: int, l2_squared: int) -> Law:
        return law_for(facts.account, loss=share, l1=max(l1, 1), l2_squared=max(l2_squared, 1), family=family)

    vectors = tuple(replace(item.vector, law=law(item.sensitivity.l1, item.sensitivity.l2_squared)) for item in derived.vectors)
    groups = draft.groups
    if isinstance(groups, DiscoveredGroups) and derived.keys is not None:
        groups = replace(groups, law=law(derived.keys.sensitivity.l1, derived.keys.sensitivity.l2_squared))
    quantiles = tuple(with_scale(item, facts, share) for item in derived.quantiles)
    return replace(draft, vectors=vectors, groups=groups, quantiles=quantiles)
