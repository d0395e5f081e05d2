"""The norm histograms of a statement: the wanted ones, the plan that buys them, and the clipping bias of a vector by them.

A part of the statement's price first pays for measuring the lengths of units' vectors in this statement, after its filters and
joins and over its groups: units by the Euclidean norm of their vectors (one unit, one bin). From that the cap of each vector is chosen, and
its clipping bias is bounded. Released histograms are public: the same norms are not bought twice, even at another price.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from lapwing.contribution.clipping_bound import CapChoice
from lapwing.contribution.model import ContributionModel, NormHistogram
from lapwing.contribution.rows_per_unit import BIN, DEVIATION_LEAST, UNITS, units_by_bin
from lapwing.kernel.canonical import digest
from lapwing.kernel.domains import RealDomain
from lapwing.kernel.expressions import Column, Expression
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import (
    Filter,
    GridSum,
    Measure,
    PerUnit,
    Plan,
    Project,
    PublicJoin,
    Relation,
    RowCount,
    Scan,
    SemiJoin,
    UnitCount,
    UnitNorms,
    UnitWindow,
)
from lapwing.kernel.laws import DiscreteLaplace
from lapwing.kernel.release import NoisyTable
from lapwing.kernel.row_ranges import row_range
from lapwing.kernel.stability import Shape, domain_of, shape_of
from lapwing.kernel.unit_norms import value_of
from lapwing.spread import variance

OCTAVES_BELOW_ROW = 12
"""Norms of sums are resolved down to the largest value of a row, halved this many times."""
OCTAVES_BELOW_VALUE = 22
"""The same for values made of several rows of a unit, whose range is the product or difference of declared ones. Moments of a year are up
to 2^25 seconds apart, the ends of a session 2^8: with 12, the lowest bin had all units, and 8 % was cut off where 0.04 % was predicted."""
UNLIKE_OTHERS = 2.0
"""The rows of a unit with the maximum number of rows add up to at most this many times the usual sum."""
ROWS_WORTH_MEASURING = 3
"""Below this many rows of one unit no bound is sought: nothing is clipped."""


@dataclass(frozen=True, slots=True)
class ClippingBound:
    """A vector whose units are scaled down to a cap: the bought norms bound the clipping bias."""

    fit: ContributionModel
    choice: CapChoice
    """Its cap is in the measure's own integers: rows, units, or grid integers of a sum."""
    cells: int
    unit: Fraction
    """The value of one of those integers."""
    signed: bool
    """Cells can be negative, so the clipping bias can be too."""
    of_units: bool
    """Units are counted, so that every cell of a unit is 1."""
    grain: float | None
    """The norm of a unit with one row, where every row adds the same."""
    of_all: float | None
    """The share of all rows that one unit may have, by bought statistics. One such unit cannot be detected and is allowed for."""
    one_in: int = 1
    """The sampling rate of the norms: one unit in this many."""
    unseen: float = math.inf
    """The longest norm of a unit that the histogram may not show."""
    measure: Measure | None = None
    """What the norms are of."""

    def extreme(self, total: float) -> float:
        """The contribution of that unit, if its rows are usual ones and all units together contribute ``total``."""
        most = min(self.fit.largest, self.unseen)
        return most if self.of_all is None else min(most, UNLIKE_OTHERS * self.of_all * total)


def norms_of(
    source: Relation,
    keys: tuple[tuple[str, Expression], ...],
    measure: Measure,
    shape: Shape,
    *,
    one_in: int = 1,
    cells: int | None = None,
    rules: int = 1,
) -> UnitNorms:
    """Units by the norm of their vector of a measure over the groups of these keys; all units, or a sample of one in ``one_in``.

    There are ``cells`` groups, if their number is known. Units that add nothing to a sum, or to a count with a condition, say nothing about
    the others' contributions: 0 is an edge too, and they have a bin. Before rules 2, counts had none: their first bin was so full that the
    tail was fitted from it, through the hump of the units that count.
    """
    octaves = OCTAVES_BELOW_VALUE if rules >= 2 and not shape.weighable else OCTAVES_BELOW_ROW
    once = rules >= 2 and counts_once(source, keys, measure)
    edges = _of_units(shape, cells) if once else _squared_edges(measure, shape, octaves)
    if isinstance(measure, GridSum) or (rules >= 2 and value_of(measure) is not None):
        edges = (0, *edges)
    return UnitNorms(source, keys, measure, edges, BIN, one_in)


def norms_of_rows(scan: Scan, facts: Facts) -> UnitNorms:
    """The norms of a count of all rows of a scan: the rows of each unit."""
    return norms_of(scan, (), RowCount(), shape_of(scan, facts), rules=facts.planning_rules)


def _of_units(shape: Shape, cells: int | None) -> tuple[int, ...]:
    """Squared edges of a count of units: a unit counts once in each of its groups, which are at most its rows and at most all groups.

    The last edge is that number. No norm is longer, so there is no bin above.
    """
    most = shape.rows_per_unit if cells is None else min(shape.rows_per_unit, cells)
    return (*(2**power for power in range(most.bit_length()) if 2**power < most), most)


def counts_once(source: Relation, keys: Sequence[tuple[str, Expression]], measure: Measure) -> bool:
    """Whether a unit adds at most 1 to each group: units are counted, or rows of which a unit has at most one in each group."""
    if not isinstance(measure, RowCount):
        return isinstance(measure, UnitCount)
    apart = _telling_apart(source)
    return apart is not None and apart <= {key.name for _, key in keys if isinstance(key, Column)}


def _telling_apart(relation: Relation) -> frozenset[str] | None:
    """Columns in which no two rows of a unit are equal; None if none are known, or none are needed."""
    match relation:
        case PerUnit(_, _, keys) if keys:
            return frozenset(name for name, _ in keys)
        case Filter(source) | SemiJoin(source) | PublicJoin(source) | UnitWindow(source):
            return _telling_apart(source)
        case Project(source, columns):
            names = {value.name: name for name, value in columns if isinstance(value, Column)}
            inner = _telling_apart(source)
            return None if inner is None or not inner <= names.keys() else frozenset(names[name] for name in inner)
        case _:
            return None


def _largest_square(measure: Measure, shape: Shape) -> int:
    row, _, _ = row_range(measure, shape.columns)
    if isinstance(measure, UnitCount):
        return shape.rows_per_unit
    return max((row.magnitude * shape.rows_per_unit) ** 2, 1)


def _squared_edges(measure: Measure, shape: Shape, octaves: int) -> tuple[int, ...]:
    """Powers of two below the largest square; larger norms are in the last bin."""
    row, _, _ = row_range(measure, shape.columns)
    first = max(2 * (row.magnitude.bit_length() - 1 - octaves), 0)
    most = _largest_square(measure, shape)
    return tuple(2**power for power in range(first, most.bit_length()) if 2**power < most) or (most,)


def are_measurable(keys: Sequence[tuple[str, Expression]], measures: Sequence[Measure], shape: Shape) -> bool:
    """Whether all measures of a query over these keys have norms."""
    if any(isinstance(d := domain_of(key, shape.columns), RealDomain) and d.steps is None for _, key in keys):
        return False
    return bool(measures) and all(isinstance(measure, RowCount | GridSum | UnitCount) for measure in measures)


def norms_plan(norms: UnitNorms, facts: Facts, *, loss: Fraction) -> Plan:
    """The plan that buys a histogram for ``loss``."""
    return units_by_bin(norms, range(len(norms.squared_edges) + (not _is_closed(norms, facts))), facts, loss=loss)


def _is_closed(norms: UnitNorms, facts: Facts) -> bool:
    """Whether no norm is longer than the last edge."""
    return facts.planning_rules >= 2 and counts_once(norms.source, norms.keys, norms.measure)


def histogram_of(norms: UnitNorms, released: NoisyTable, facts: Facts) -> NormHistogram:
    """A released histogram, with the ends of its bins; each unit of a sample represents as many as it was drawn from."""
    column, last, one_in = released.column(UNITS), math.sqrt(norms.squared_edges[-1]), norms.one_in
    shape = shape_of(norms.source, facts)
    largest = math.sqrt(_largest_square(norms.measure, shape))
    row, _, _ = row_range(norms.measure, shape.columns)
    above = () if _is_closed(norms, facts) else (max(largest, last * (1 + 1e-9)),)
    edges = (*(math.sqrt(edge) for edge in norms.squared_edges if edge), *above)
    units = tuple(float(one_in * value) for value in column.values)
    apart, is_sum = norms.squared_edges[0] == 0, isinstance(norms.measure, GridSum)
    noisy = units[1:] if apart else units
    deviation = one_in * max(math.sqrt(variance(column.law)), DEVIATION_LEAST)
    return NormHistogram(
        edges,
        noisy,
        deviation,
        one_in,
        row=float(max(row.magnitude, 1)),
        zeros=units[0] if apart and is_sum else None,
        whole=2 if norms.keys else 1,
        laplace=isinstance(column.law, DiscreteLaplace),
        mixed=is_sum or (not apart and value_of(norms.measure) is not None),
    )


def name_of(norms: UnitNorms) -> str:
    """A short name of the measured norms, independent of the price: equal for equal norms of the same sample."""
    return digest(norms)[:16]
