"""Sums and averages of per-unit values: the range they are clamped to.

The declared bound of a unit's sum is its rows times the bound of a value; few units come near it, and noise grows with it.
So a sum over units clamps each unit's value to an end that is chosen here for the least predicted error, from publicly
known rows per unit. The engine clamps to it and the certifier derives the sensitivity from it: the choice affects accuracy, never
privacy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import assert_never

from lapwing.contribution.bounding import NEGLIGIBLE, SKEW, candidate_limits
from lapwing.contribution.relations import contributions_of, kept_of, limited
from lapwing.contribution.rows_per_unit import Contributions
from lapwing.kernel.domains import IntegerDomain, bounds, is_numeric
from lapwing.kernel.expressions import Expression, columns_of
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import (
    Filter,
    GridSum,
    Measure,
    PerUnit,
    Project,
    PublicJoin,
    Relation,
    Scan,
    SemiJoin,
    Union,
    UnitAggregateKind,
    UnitJoin,
    UnitWindow,
)
from lapwing.kernel.stability import domain_of, shape_of
from lapwing.planning.grids import centred
from lapwing.planning.measures import AverageMeasure, Measured, Recipe, SumMeasure

TYPICAL_SHARE = Fraction(1, 10)
"""A typical value is assumed to be this share of its bound, as for sums over rows."""
ROOM = 2
"""Sums of up to the limit's rows, with values up to this many times the typical one, are not clamped."""

CENTRED_SHARE = Fraction(1, 2)
"""The sum under an average is of distances from the middle of the range, so a unit moves it by at most this share of the range."""


def narrowed(
    needed: Measured,
    source: Relation,
    facts: Facts,
    *,
    contributions: Mapping[str, Contributions],
    units: int | None,
    noise: float,
    cells: int,
) -> tuple[Measured, dict[int, Fraction]]:
    """The same measures with per-unit values clamped to narrower ends, and by the number of its recipe the upper end of each.

    ``noise`` is the standard deviation of the noise of a vector that one unit moves by 1. Nothing changes where noise is negligible.
    """
    per_unit = next(_per_units(source), None)
    if per_unit is None or shape_of(source, facts).rows_per_unit != 1:
        return needed, {}
    cap = shape_of(per_unit.source, facts).rows_per_unit
    known = contributions_of(per_unit.source, facts, contributions, units)
    kept, behind = kept_of(per_unit.source, facts), kinds_behind(source)
    measures, recipes, ends = dict(needed.measures), list(needed.recipes), {}
    for index, recipe in enumerate(recipes):
        name = _vector(recipe)
        grid = None if name is None else needed.measures[name]
        if name is None or not isinstance(grid, GridSum) or sum(name == _vector(other) for other in recipes) > 1:
            continue
        of_sums = UnitAggregateKind.SUM in kinds_of(grid.value, behind)
        weight = float((ROOM if of_sums else 1) * (CENTRED_SHARE if isinstance(recipe, AverageMeasure) else 1))
        if noise * weight * cap < NEGLIGIBLE:
            continue
        limit = _limit(known, kept=kept, cap=cap, weight=weight, noise=noise, cells=cells)
        lower, upper = _ends(grid, source, facts, limit, ROOM * TYPICAL_SHARE if of_sums else Fraction(1))
        if (lower, upper) == (grid.lower, grid.upper):
            continue
        measures[name], recipes[index] = _with_ends(grid, recipe, lower, upper)
        ends[index] = upper
    return replace(needed, measures=measures, recipes=tuple(recipes)), ends


def _limit(known: Contributions, *, kept: float, cap: int, weight: float, noise: float, cells: int) -> int:
    """Rows of a unit up to which its value is not clamped: this minimises clipping bias and noise together."""
    groups = cells / SKEW if cells > 1 else 1.0

    def error(limit: float) -> float:
        return math.hypot(known.excess(limit, share=min(kept, 1.0)) / groups, noise * weight * limit)

    return int(min(candidate_limits(cap, whole=True), key=error))


def _ends(grid: GridSum, source: Relation, facts: Facts, limit: int, share: Fraction) -> tuple[Fraction, Fraction]:
    """Ends of the value where a unit has at most ``limit`` rows, of a share of that; never beyond the present ends, in whole numbers."""
    domain = domain_of(grid.value, shape_of(_lowered(source, limit, facts), facts).columns)
    one_row = domain_of(grid.value, shape_of(_lowered(source, 1, facts), facts).columns)
    if not is_numeric(domain) or bounds(domain) == bounds(one_row):
        return grid.lower, grid.upper  # it does not grow with the rows of a unit
    lower, upper = bounds(domain)
    lower = lower if lower >= 0 else Fraction(math.floor(share * lower))
    upper = upper if upper <= 0 else Fraction(math.ceil(share * upper))
    if isinstance(domain_of(grid.value, shape_of(source, facts).columns), IntegerDomain):
        lower, upper = Fraction(math.floor(lower)), Fraction(math.ceil(upper))
    lower, upper = max(lower, grid.lower), min(upper, grid.upper)
    return (lower, upper) if lower < upper else (grid.lower, grid.upper)


def _with_ends(grid: GridSum, recipe: Recipe, lower: Fraction, upper: Fraction) -> tuple[Measure, Recipe]:
    narrower = replace(grid, lower=lower, upper=upper, offset=0)
    if not isinstance(recipe, AverageMeasure):
        return narrower, recipe
    narrower = centred(narrower)
    return narrower, replace(recipe, offset=narrower.offset, lower=lower, upper=upper)


def _vector(recipe: Recipe) -> str | None:
    """The sum a recipe clamps, if it is a plain sum or an average."""
    return recipe.vector if isinstance(recipe, SumMeasure) else recipe.total if isinstance(recipe, AverageMeasure) else None


def _per_units(relation: Relation) -> Iterator[PerUnit]:
    """The per-unit relations in a relation."""
    match relation:
        case PerUnit():
            yield relation
        case Filter(source) | Project(source) | PublicJoin(source) | SemiJoin(source) | UnitWindow(source):
            yield from _per_units(source)
        case UnitJoin(left, right):
            yield from _per_units(left)
            yield from _per_units(right)
        case Scan() | Union():
            return
        case _:
            assert_never(relation)


def _lowered(relation: Relation, rows: int, facts: Facts) -> Relation:
    """The relation with at most ``rows`` rows behind each per-unit row; used only to derive the domains of its columns."""
    match relation:
        case PerUnit(source):
            return replace(relation, source=limited(source, rows, facts))
        case Filter(source) | Project(source) | PublicJoin(source) | SemiJoin(source) | UnitWindow(source):
            return replace(relation, source=_lowered(source, rows, facts))
        case UnitJoin(left, right):
            return replace(relation, left=_lowered(left, rows, facts), right=_lowered(right, rows, facts))
        case Scan() | Union():
            return relation
        case _:
            assert_never(relation)


def kinds_behind(relation: Relation) -> Mapping[str, frozenset[UnitAggregateKind]]:
    """For each column that is made of aggregates over the rows of a unit: their kinds."""
    match relation:
        case PerUnit(_, columns):
            return {name: frozenset({aggregate.kind}) for name, aggregate in columns}
        case Filter(source) | PublicJoin(source) | SemiJoin(source) | UnitWindow(source):
            return kinds_behind(source)
        case Project(source, projected):
            inner = kinds_behind(source)
            return {name: found for name, value in projected if (found := kinds_of(value, inner))}
        case UnitJoin(left, right, _, added):
            inner = kinds_behind(right)
            return {**kinds_behind(left), **{name: inner[column] for name, column in added if column in inner}}
        case Scan() | Union():
            return {}
        case _:
            assert_never(relation)


def kinds_of(value: Expression, behind: Mapping[str, frozenset[UnitAggregateKind]]) -> frozenset[UnitAggregateKind]:
    """The kinds of the aggregates that an expression is made of."""
    return frozenset(kind for name in columns_of(value) for kind in behind.get(name, frozenset()))
