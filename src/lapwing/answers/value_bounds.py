"""The possible range of an aggregate, from declarations, the statistics of the version and the statement's own structure.

Every bound holds for the true value: on the declared data, and after contribution bounding, which only removes rows of units or makes
their share smaller. So an interval that holds the truth still holds it when it is cut at these bounds. Bounds from statistics fail with
a small chance, which belongs to that of the interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import assert_never

from lapwing.answers.post_processing import evaluate
from lapwing.answers.table_totals import TableTotals
from lapwing.kernel.domains import Domain, bounds, is_numeric
from lapwing.kernel.expressions import Expression
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Filter, JoinKind, PerUnit, Project, PublicJoin, Relation, Scan, SemiJoin, Union, UnitJoin, UnitWindow
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.stability import domain_of, shape_of
from lapwing.planning.grids import filtered
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.measures import number_of_values
from lapwing.planning.value_ranges import ranges_of
from lapwing.statements import Aggregate, AggregateKind, Derivation, LinearOutput, PrivateQuery, RatioOutput

DISTINCT_LISTED_MAX = 1_000
"""Most values that are listed to find which of them meet the conditions of a COUNT(DISTINCT)."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Ends of the possible range, included; None if unbounded."""

    lo: Fraction | None = None
    hi: Fraction | None = None

    def moved(self, scale: Fraction, shift: Fraction) -> Bounds:
        """The bounds of scale * value + shift."""
        lo, hi = (None if end is None else scale * end + shift for end in (self.lo, self.hi))
        return Bounds(lo, hi) if scale >= 0 else Bounds(hi, lo)


@dataclass(frozen=True, slots=True)
class PossibleAggregates:
    """The aggregates of private queries over one version. ``units`` is the public number of all units, where neighbours are bounded."""

    facts: Facts
    units: int | None = None
    totals: Mapping[str, TableTotals] = field(default_factory=dict)
    """By table: upper ends of its units and rows."""

    @classmethod
    def of(cls, facts: Facts, units: int | None, totals: Mapping[str, TableTotals] | None = None) -> PossibleAggregates:
        """With the declared number of units, which is more than an estimate only where neighbours are bounded.

        ``totals`` are upper ends by the statistics of the version.
        """
        totals = totals or {}
        tables = {
            name: replace(table, rows_max=min(table.rows_max, totals[name].rows)) if name in totals else table
            for name, table in facts.tables.items()
        }
        return cls(replace(facts, tables=tables), units if facts.neighbours is Neighbours.BOUNDED else None, totals)

    def output(self, derivation: Derivation, queries: tuple[PrivateQuery, ...]) -> Bounds:
        """The possible range of an output: for one aggregate its own bounds, for a ratio only the sign, otherwise unbounded."""
        match derivation:
            case LinearOutput(noisy, scale, shift):
                query = queries[noisy.query]
                return self.aggregate(query.aggregates[noisy.index], query).moved(scale, shift)
            case RatioOutput(numerator, denominator, scale):
                above, below = (
                    self.aggregate(queries[noisy.query].aggregates[noisy.index], queries[noisy.query]) for noisy in (numerator, denominator)
                )
                if below.lo is None or below.lo < 0:
                    return Bounds()
                return Bounds(*(Fraction(0) if end == 0 else None for end in (above.lo, above.hi))).moved(scale, Fraction(0))
            case _:
                return Bounds()

    def aggregate(self, aggregate: Aggregate, query: PrivateQuery) -> Bounds:
        """The possible range of a count or a sum in any group of a query and in any total of groups; other aggregates are unbounded."""
        match aggregate.kind:
            case AggregateKind.COUNT:
                return Bounds(Fraction(0), Fraction(self.rows(query.source)))
            case AggregateKind.COUNT_UNITS:
                return Bounds(Fraction(0), Fraction(self.units_in(query.source)))
            case AggregateKind.COUNT_DISTINCT:
                return Bounds(Fraction(0), Fraction(self._values(aggregate, query.source)))
            case AggregateKind.SUM:
                return self._sum(aggregate, query.source)
            case _:
                return Bounds()

    def rows(self, relation: Relation) -> int:
        """An upper bound of the rows of a relation."""
        shape = shape_of(relation, self.facts)
        return min(shape.rows_max, self.units_in(relation) * shape.rows_per_unit)

    def units_in(self, relation: Relation) -> int:
        """An upper bound of the units with a row in a relation: every unit has a row, and joins and conditions add none."""
        match relation:
            case Scan(table):
                most = self.facts.table(table).rows_max
                return self._all(min(most, self.totals[table].units) if table in self.totals else most)
            case Filter(source) | Project(source) | PublicJoin(source) | PerUnit(source) | UnitWindow(source):
                return self.units_in(source)
            case UnitJoin(left, right, kind=kind):
                return self.units_in(left) if kind is JoinKind.LEFT else min(self.units_in(left), self.units_in(right))
            case SemiJoin(source, other, negated=negated):
                return self.units_in(source) if negated else min(self.units_in(source), self.units_in(other))
            case Union(sources):
                return self._all(sum(self.units_in(source) for source in sources))
            case _:
                assert_never(relation)

    def _all(self, most: int) -> int:
        """At most the number of all units."""
        return most if self.units is None else min(most, self.units)

    def _sum(self, aggregate: Aggregate, source: Relation) -> Bounds:
        """The range for zero to all rows, each with the least or the greatest declared value."""
        value, domain = self._value(aggregate, source)
        if value is None or domain is None or not is_numeric(domain):
            return Bounds()
        lower, upper = bounds(domain)
        rows = self.rows(source)
        return Bounds(rows * min(Fraction(lower), Fraction(0)), rows * max(Fraction(upper), Fraction(0)))

    def _values(self, aggregate: Aggregate, source: Relation) -> int:
        """An upper bound of the distinct values other than NULL: declared ones that meet the conditions, and at most the rows."""
        rows = self.rows(source)
        value, domain = self._value(aggregate, source)
        if value is None or domain is None:
            return rows
        declared = number_of_values(domain)
        most = rows if declared is None else min(rows, declared)
        found = GroupFinder(evaluate).find(source, (("v", value),), self.facts, cells_max=DISTINCT_LISTED_MAX)
        return most if found.groups is None else min(most, sum(one is not None for (one,) in found.groups))

    def _value(self, aggregate: Aggregate, source: Relation) -> tuple[Expression | None, Domain | None]:
        """The aggregated value, NULL where the FILTER is not true, and its domain."""
        if aggregate.value is None:
            return None, None
        shape = shape_of(source, self.facts)
        columns: Mapping[str, Domain] = shape.columns
        value = filtered(aggregate.value, aggregate.where, shape)
        return value, domain_of(value, columns) if self.facts.planning_rules < 2 else ranges_of(source, self.facts).of(value)
