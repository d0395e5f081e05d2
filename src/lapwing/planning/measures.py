"""Aggregates in terms of the kernel's measures: counts, sums on a grid, averages as a count and a centred sum, others from moments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias, assert_never

from lapwing.errors import Refused
from lapwing.kernel.domains import BooleanDomain, DateDomain, Domain, IntegerDomain, TextDomain
from lapwing.kernel.expressions import Expression, not_null
from lapwing.kernel.ir import DistinctCount, GridSum, Measure, RowCount, UnitCount
from lapwing.kernel.stability import Shape, domain_of
from lapwing.planning.grids import centred, count_of, filtered, grid_of, present
from lapwing.planning.quantiles import QuantileMeasure, QuantileRequest, wanted_quantiles
from lapwing.planning.value_ranges import ValueRanges, within_ranges
from lapwing.planning.variances import Moments, moments_of
from lapwing.statements import Aggregate, AggregateKind


@dataclass(frozen=True, slots=True)
class CountMeasure:
    """The aggregate is one count vector."""

    vector: str
    most: int | None = None
    """Its declared maximum: the number of values among which distinct ones are counted."""


@dataclass(frozen=True, slots=True)
class SumMeasure:
    """The aggregate is one sum vector."""

    vector: str
    whole: bool
    """The sum is of integers."""


@dataclass(frozen=True, slots=True)
class AverageMeasure:
    """The aggregate is centred sum / count + offset."""

    total: str
    count: str
    offset: int
    steps: int
    lower: Fraction
    upper: Fraction


Recipe: TypeAlias = CountMeasure | SumMeasure | AverageMeasure | Moments | QuantileMeasure


def is_whole(recipe: Recipe) -> bool:
    """Whether the aggregate is a whole number."""
    return isinstance(recipe, CountMeasure) or (isinstance(recipe, SumMeasure) and recipe.whole)


@dataclass(frozen=True, slots=True)
class Measured:
    """All vectors and sets of quantiles a statement needs, each once, and how its aggregates are derived from them."""

    measures: Mapping[str, Measure]
    recipes: tuple[Recipe, ...]
    quantiles: Mapping[str, QuantileRequest] = field(default_factory=dict)

    @property
    def units_only(self) -> bool:
        """Whether nothing but distinct units is counted."""
        return not self.quantiles and all(isinstance(measure, UnitCount) for measure in self.measures.values())

    @property
    def has_distinct(self) -> bool:
        """Whether distinct values are counted, which requires a limit on rows."""
        return any(isinstance(measure, DistinctCount) for measure in self.measures.values())

    @property
    def has_average(self) -> bool:
        """Whether some count and sum must be bounded alike."""
        return any(isinstance(recipe, AverageMeasure) for recipe in self.recipes)

    def is_shown(self, name: str) -> bool:
        """Whether a vector is an output by itself, so that no other vector may scale it."""
        return any(isinstance(recipe, CountMeasure | SumMeasure) and recipe.vector == name for recipe in self.recipes)

    @property
    def has_moments(self) -> bool:
        """Whether a count and several sums must keep their ratios, which requires a limit on rows."""
        return any(isinstance(recipe, Moments) for recipe in self.recipes)


def number_of_values(domain: Domain) -> int | None:
    """The declared number of values other than NULL."""
    match domain:
        case BooleanDomain():
            return 2
        case TextDomain(values) if values is not None:
            return len(values)
        case IntegerDomain(lo, hi) | DateDomain(lo, hi):
            return hi - lo + 1
        case _:
            return None


def measured(aggregates: tuple[Aggregate, ...], shape: Shape, ranges: ValueRanges | None = None) -> Measured:
    """Vectors for the aggregates; equal measures are measured once. Sums and averages are clamped to the ``ranges`` of their values."""
    names: dict[Measure, str] = {}

    def vector(measure: Measure) -> str:
        return names.setdefault(measure, f"v{len(names)}")

    def grid(aggregate: Aggregate) -> GridSum:
        whole = grid_of(_filtered(aggregate, shape), shape)
        return whole if ranges is None else within_ranges(whole, ranges)

    quantiles, chosen = wanted_quantiles(aggregates, shape)
    recipes: list[Recipe] = []
    for aggregate in aggregates:
        match aggregate.kind:
            case AggregateKind.COUNT:
                recipes.append(CountMeasure(vector(RowCount(_counted(aggregate, shape)))))
            case AggregateKind.COUNT_UNITS:
                recipes.append(CountMeasure(vector(UnitCount(aggregate.where))))
            case AggregateKind.COUNT_DISTINCT:
                counted = _filtered(aggregate, shape)
                recipes.append(CountMeasure(vector(DistinctCount(counted)), number_of_values(domain_of(counted, shape.columns))))
            case AggregateKind.SUM:
                total = grid(aggregate)
                recipes.append(SumMeasure(vector(total), isinstance(domain_of(total.value, shape.columns), IntegerDomain)))
            case AggregateKind.AVG:
                total = centred(grid(aggregate))
                count = vector(count_of(total.value, shape))
                recipes.append(AverageMeasure(vector(total), count, total.offset, total.steps, total.lower, total.upper))
            case (
                AggregateKind.VAR_SAMP
                | AggregateKind.VAR_POP
                | AggregateKind.STDDEV_SAMP
                | AggregateKind.STDDEV_POP
                | AggregateKind.COVAR_SAMP
                | AggregateKind.COVAR_POP
                | AggregateKind.CORR
                | AggregateKind.REGR_SLOPE
                | AggregateKind.REGR_INTERCEPT
                | AggregateKind.REGR_R2
            ):
                recipes.append(moments_of(aggregate, shape, vector))
            case AggregateKind.QUANTILE_CONT | AggregateKind.QUANTILE_DISC | AggregateKind.MIN | AggregateKind.MAX:
                recipes.append(chosen[aggregate])
            case _:
                assert_never(aggregate.kind)
    return Measured({name: measure for measure, name in names.items()}, tuple(recipes), quantiles)


def _counted(aggregate: Aggregate, shape: Shape) -> Expression | None:
    """Condition under which a row counts."""
    value = aggregate.value
    tests = [] if value is None or not domain_of(value, shape.columns).nullable else [not_null(value)]
    return present([*tests, *([] if aggregate.where is None else [aggregate.where])])


def _filtered(aggregate: Aggregate, shape: Shape) -> Expression:
    """The value, or NULL where the FILTER is not true."""
    if aggregate.value is None:
        raise Refused("wrong-arguments", f"{aggregate.kind.value.upper()} needs a value")
    return filtered(aggregate.value, aggregate.where, shape)
