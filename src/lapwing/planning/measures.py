"""Aggregates as the kernel measures them: counts, sums on a grid, and averages as a count and a centred sum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, assert_never

from lapwing.errors import Refused
from lapwing.kernel.domains import (
    DOUBLE_EXACT_LIMIT,
    INTEGER_LIMIT,
    Domain,
    IntegerDomain,
    RealDomain,
    bounds,
    grid_integer,
    is_numeric,
    kind_of,
)
from lapwing.kernel.expressions import Case, Expression, Function, Literal, call, not_null
from lapwing.kernel.ir import DistinctCount, GridSum, Measure, RowCount, UnitCount
from lapwing.kernel.stability import Shape, domain_of
from lapwing.statements import Aggregate, AggregateKind

STEPS_MAX = 10**6


@dataclass(frozen=True, slots=True)
class Counted:
    """The aggregate is one count vector."""

    vector: str


@dataclass(frozen=True, slots=True)
class Summed:
    """The aggregate is one sum vector."""

    vector: str
    whole: bool
    """The sum is of integers."""


@dataclass(frozen=True, slots=True)
class Averaged:
    """The aggregate is centred sum / count + offset."""

    total: str
    count: str
    offset: int
    steps: int
    lower: Fraction
    upper: Fraction


Recipe: TypeAlias = Counted | Summed | Averaged


def is_whole(recipe: Recipe) -> bool:
    """Whether the aggregate is a whole number."""
    return isinstance(recipe, Counted) or (isinstance(recipe, Summed) and recipe.whole)


@dataclass(frozen=True, slots=True)
class Measured:
    """All vectors a statement needs, each once, and how its aggregates come from them."""

    measures: Mapping[str, Measure]
    recipes: tuple[Recipe, ...]

    @property
    def units_only(self) -> bool:
        """Whether nothing but distinct units is counted."""
        return all(isinstance(measure, UnitCount) for measure in self.measures.values())

    @property
    def has_distinct(self) -> bool:
        """Whether distinct values are counted, which only a limit on rows bounds."""
        return any(isinstance(measure, DistinctCount) for measure in self.measures.values())

    @property
    def has_average(self) -> bool:
        """Whether some count and sum must be bounded alike."""
        return any(isinstance(recipe, Averaged) for recipe in self.recipes)


def measured(aggregates: tuple[Aggregate, ...], shape: Shape) -> Measured:
    """Vectors for the aggregates; equal measures are measured once."""
    names: dict[Measure, str] = {}

    def vector(measure: Measure) -> str:
        return names.setdefault(measure, f"v{len(names)}")

    recipes: list[Recipe] = []
    for aggregate in aggregates:
        match aggregate.kind:
            case AggregateKind.COUNT:
                recipes.append(Counted(vector(RowCount(_counted(aggregate)))))
            case AggregateKind.COUNT_UNITS:
                recipes.append(Counted(vector(UnitCount(aggregate.where))))
            case AggregateKind.COUNT_DISTINCT:
                recipes.append(Counted(vector(DistinctCount(_filtered(aggregate, shape)))))
            case AggregateKind.SUM:
                grid = grid_of(_filtered(aggregate, shape), shape)
                recipes.append(Summed(vector(grid), isinstance(domain_of(grid.value, shape.columns), IntegerDomain)))
            case AggregateKind.AVG:
                grid = centred(grid_of(_filtered(aggregate, shape), shape))
                count = vector(RowCount(not_null(grid.value)))
                recipes.append(Averaged(vector(grid), count, grid.offset, grid.steps, grid.lower, grid.upper))
            case _:
                assert_never(aggregate.kind)
    return Measured({name: measure for measure, name in names.items()}, tuple(recipes))


def _counted(aggregate: Aggregate) -> Expression | None:
    """Condition under which a row counts."""
    parts: list[Expression] = [] if aggregate.value is None else [not_null(aggregate.value)]
    if aggregate.where is not None:
        parts.append(aggregate.where)
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else call(Function.AND, *parts)


def _filtered(aggregate: Aggregate, shape: Shape) -> Expression:
    """The value, or NULL where the FILTER is not true."""
    if aggregate.value is None:
        raise Refused("wrong-arguments", f"{aggregate.kind.value.upper()} needs a value")
    if aggregate.where is None:
        return aggregate.value
    nothing = Literal(None, kind_of(domain_of(aggregate.value, shape.columns)))
    return Case(((aggregate.where, aggregate.value),), nothing)


def grid_of(value: Expression, shape: Shape) -> GridSum:
    """A sum over the value's own interval, on its own grid or the finest decimal one that fits."""
    domain = domain_of(value, shape.columns)
    if not is_numeric(domain):
        raise Refused("type-mismatch", f"a sum or average needs a number, not a {kind_of(domain).value}")
    lower, upper = bounds(domain)
    return GridSum(value, lower, upper, _steps(domain, shape.rows_max))


def _steps(domain: Domain, rows_max: int) -> int:
    if isinstance(domain, IntegerDomain):
        return 1
    if isinstance(domain, RealDomain) and domain.steps is not None:
        return domain.steps
    largest = max(abs(end) for end in bounds(domain))
    steps = STEPS_MAX
    # One bit of room each for the finer grid of clipping and for the offset of averages.
    while steps > 1 and (largest * steps >= DOUBLE_EXACT_LIMIT // 4 or largest * steps * rows_max >= INTEGER_LIMIT >> 11):
        steps //= 10
    return steps


def centred(grid: GridSum) -> GridSum:
    """The same sum with the middle of its range subtracted, where that makes one row matter less."""
    lo, hi = grid_integer(grid.lower, grid.steps), grid_integer(grid.upper, grid.steps)
    middle = (lo + hi) // 2
    smaller = max(hi - middle, middle - lo) < max(abs(lo), abs(hi))
    return GridSum(grid.value, grid.lower, grid.upper, grid.steps, middle if smaller else 0)
