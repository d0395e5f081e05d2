"""From a private query and a price to a plan: groups, bounding, noise, split of the budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import assert_never

from lapwing.errors import Refused
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import Certified, certify
from lapwing.kernel.domains import Domain, RealDomain
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import (
    Bounding,
    Cap,
    Clipped,
    DiscoveredGroups,
    Filter,
    Follow,
    GridSum,
    Grouped,
    KnownGroups,
    Measure,
    PerUnit,
    Plan,
    Project,
    PublicJoin,
    Query,
    Ranked,
    Relation,
    Scan,
    SemiJoin,
    Union,
    UnitCount,
    UnitJoin,
    Vector,
)
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Family, Law, law_for
from lapwing.kernel.stability import Shape, domain_of, shape_of
from lapwing.planning.bounding import Choice, Situation, choose, groups_for
from lapwing.planning.contributions import Contributions, assumed
from lapwing.planning.groups import Evaluate, known_groups
from lapwing.planning.measures import Averaged, Measured, Recipe, measured
from lapwing.planning.selectivity import kept_share
from lapwing.statements import PrivateQuery

CLIP_BITS = 10
PLACEHOLDER = Fraction(1)


@dataclass(frozen=True, slots=True)
class Price:
    """What a statement may use: loss (epsilon or rho) and delta for discovering keys."""

    loss: Fraction
    delta: Fraction


@dataclass(frozen=True, slots=True)
class Limits:
    """Public limits on groups."""

    known_cells_max: int
    groups_max: int


@dataclass(frozen=True, slots=True)
class Planned:
    """A certified plan with what the answer and the explanation need to know about it."""

    certified: Certified
    recipes: tuple[Recipe, ...]
    choice: Choice
    kept: float
    known: bool


def plan_query(
    query: PrivateQuery,
    facts: Facts,
    price: Price,
    *,
    contributions: Mapping[str, Contributions],
    units: int | None,
    limits: Limits,
    evaluate: Evaluate,
) -> Planned:
    """The plan with the least predicted error for the price; its certified cost is at most the price."""
    shape = shape_of(query.source, facts)
    wanted = measured(query.aggregates, shape)
    found = known_groups(query.keys, shape.columns, cells_max=limits.known_cells_max, evaluate=evaluate) if query.keys else ((),)
    if found is None and facts.account is Account.PURE:
        raise Refused(
            "keys-need-delta",
            "the values of a GROUP BY key are not declared, and this data set has no delta to discover them with",
            hint="group by a declared column, or let the owner declare its values",
        )
    share = price.loss / (len(wanted.measures) + (1 if found is None else 0))
    situation = Situation(
        contributions=_contributions(query.source, facts, contributions, units),
        rows_per_unit_max=shape.rows_per_unit,
        kept=_kept(query.source, facts),
        cells=None if found is None else len(found),
        account=facts.account,
        loss_per_vector=float(share),
        has_average=wanted.has_average,
        units_only=wanted.units_only,
        real_keys=any(_is_computed_real(domain_of(key, shape.columns)) for _, key in query.keys),
        loss_weight=_weight(wanted, of_noise=False),
        noise_weight=_weight(wanted, of_noise=True),
    )
    choice = choose(situation)
    draft = _draft(query, shape, wanted, choice, found, price, limits)
    certified = certify(Plan((_with_noise(draft, facts, share),)), facts)
    return Planned(certified, wanted.recipes, choice, situation.kept, found is not None)


def _is_computed_real(domain: Domain) -> bool:
    return isinstance(domain, RealDomain) and domain.steps is None


def _weight(wanted: Measured, *, of_noise: bool) -> float:
    """Root mean square over vectors of how much lost rows, or noise, matter to them. A typical value is taken as a tenth of its bound."""
    averaged = {name for recipe in wanted.recipes if isinstance(recipe, Averaged) for name in (recipe.total, recipe.count)}
    squares = []
    for name, measure in wanted.measures.items():
        noise = 1.0 if not isinstance(measure, GridSum) else 5.0 if measure.offset else 10.0
        squares.append(noise**2 if of_noise else (0.2 if name in averaged else 1.0) ** 2)
    return math.sqrt(sum(squares) / len(squares)) if squares else 1.0


def _draft(
    query: PrivateQuery,
    shape: Shape,
    wanted: Measured,
    choice: Choice,
    found: tuple[tuple[object, ...], ...] | None,
    price: Price,
    limits: Limits,
) -> Query:
    """The query with its bounds and a placeholder for the noise."""
    source, bounding = query.source, _bounding(choice, shape, wanted, cells=None if found is None else len(found))
    if choice.kind == "ranked":
        source = limited(source, int(choice.limit))
    vectors = tuple(
        Vector(name, measure, _placeholder(price), _bound(measure, bounding, choice, wanted, name))
        for name, measure in wanted.measures.items()
    )
    groups = (
        DiscoveredGroups(_placeholder(price), price.delta, limits.groups_max) if found is None else KnownGroups(found)  # type: ignore[arg-type]
    )
    return Query(source, query.keys, groups, bounding, vectors)


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
    return replace(draft, vectors=vectors, groups=groups)


def limited(relation: Relation, rows: int) -> Relation:
    """The relation with every scan lowered to at most ``rows`` rows per unit."""
    match relation:
        case Scan(table, at_most):
            return Scan(table, min(rows, at_most))
        case Filter(source, predicate):
            return Filter(limited(source, rows), predicate)
        case Project(source, columns):
            return Project(limited(source, rows), columns)
        case PublicJoin(source):
            return replace(relation, source=limited(source, rows))
        case UnitJoin() | SemiJoin() | Union() | PerUnit():
            return relation
        case _:
            assert_never(relation)


def _tables(relation: Relation) -> tuple[str, ...]:
    match relation:
        case Scan(table):
            return (table,)
        case Filter(source) | Project(source) | PublicJoin(source) | PerUnit(source):
            return _tables(source)
        case SemiJoin(source):
            return _tables(source)
        case UnitJoin(left, right):
            return (*_tables(left), *_tables(right))
        case Union(sources):
            return tuple(table for source in sources for table in _tables(source))
        case _:
            assert_never(relation)


def _contributions(relation: Relation, facts: Facts, known: Mapping[str, Contributions], units: int | None) -> Contributions:
    table = _tables(relation)[0]
    declared = facts.table(table)
    if table in known:
        return known[table]
    return assumed(rows_per_unit_max=declared.rows_per_unit_max, rows_max=declared.rows_max, units=units)


def _kept(relation: Relation, facts: Facts) -> float:
    """Share of rows that all filters of the relation keep."""
    match relation:
        case Filter(source, predicate):
            return max(kept_share(predicate, shape_of(source, facts).columns), 1e-9) * _kept(source, facts)
        case Project(source) | PublicJoin(source) | PerUnit(source) | SemiJoin(source):
            return _kept(source, facts)
        case _:
            return 1.0
