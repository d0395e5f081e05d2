"""The norm histograms of a statement: the wanted ones, the plan that buys them, and the clipping bias of a vector by them.

A part of the statement's price first pays for measuring the lengths of units' vectors in this statement, after its filters and
joins and over its groups: units by the Euclidean norm of their vectors (one unit, one bin). From that the cap of each vector is chosen, and
its clipping bias is bounded. Released histograms are public: the same norms are not bought twice, even at another price.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from lapwing.contribution.clipping_bound import CapChoice
from lapwing.contribution.model import ContributionModel, NormHistogram
from lapwing.contribution.rows_per_unit import BIN, DEVIATION_LEAST, UNITS, units_by_bin
from lapwing.kernel.canonical import digest
from lapwing.kernel.domains import RealDomain
from lapwing.kernel.expressions import Expression
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import GridSum, Measure, Plan, Relation, RowCount, UnitCount, UnitNorms
from lapwing.kernel.laws import DiscreteLaplace
from lapwing.kernel.release import NoisyTable
from lapwing.kernel.row_ranges import row_range
from lapwing.kernel.stability import Shape, domain_of, shape_of
from lapwing.spread import variance

OCTAVES_BELOW_ROW = 12
"""Norms of sums are resolved down to the largest value of a row, halved this many times."""
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

    def extreme(self, total: float) -> float:
        """The contribution of that unit, if its rows are usual ones and all units together contribute ``total``."""
        return self.fit.largest if self.of_all is None else min(self.fit.largest, UNLIKE_OTHERS * self.of_all * total)


def norms_of(source: Relation, keys: tuple[tuple[str, Expression], ...], measure: Measure, shape: Shape, *, one_in: int = 1) -> UnitNorms:
    """Units by the norm of their vector of a measure over the groups of these keys; all units, or a sample of one in ``one_in``."""
    return UnitNorms(source, keys, norms_measure(measure), _squared_edges(norms_measure(measure), shape), BIN, one_in)


def norms_measure(measure: Measure) -> Measure:
    """The measure of the norms: a centred sum is looked up by the sum itself."""
    return replace(measure, offset=0) if isinstance(measure, GridSum) else measure


def _largest_square(measure: Measure, shape: Shape) -> int:
    row, _, _ = row_range(measure, shape.columns)
    if isinstance(measure, UnitCount):
        return shape.rows_per_unit
    return max((row.magnitude * shape.rows_per_unit) ** 2, 1)


def _squared_edges(measure: Measure, shape: Shape) -> tuple[int, ...]:
    """Powers of two below the largest square; larger norms are in the last bin.

    Units that add nothing to a sum say nothing about the others' contributions: 0 is an edge too, and they have a bin. With a count they
    stay with those of one row, like most of the others.
    """
    row, _, _ = row_range(measure, shape.columns)
    first = max(2 * (row.magnitude.bit_length() - 1 - OCTAVES_BELOW_ROW), 0)
    most = _largest_square(measure, shape)
    edges = [2**power for power in range(first, most.bit_length()) if 2**power < most] or [most]
    return (0, *edges) if isinstance(measure, GridSum) else tuple(edges)


def are_measurable(keys: Sequence[tuple[str, Expression]], measures: Sequence[Measure], shape: Shape) -> bool:
    """Whether all measures of a query over these keys have norms."""
    if any(isinstance(d := domain_of(key, shape.columns), RealDomain) and d.steps is None for _, key in keys):
        return False
    return bool(measures) and all(isinstance(measure, RowCount | GridSum | UnitCount) for measure in measures)


def norms_plan(norms: UnitNorms, facts: Facts, *, loss: Fraction) -> Plan:
    """The plan that buys a histogram for ``loss``."""
    return units_by_bin(norms, range(len(norms.squared_edges) + 1), facts, loss=loss)


def histogram_of(norms: UnitNorms, released: NoisyTable, facts: Facts) -> NormHistogram:
    """A released histogram, with the ends of its bins; each unit of a sample represents as many as it was drawn from."""
    column, last, one_in = released.column(UNITS), math.sqrt(norms.squared_edges[-1]), norms.one_in
    shape = shape_of(norms.source, facts)
    largest = math.sqrt(_largest_square(norms.measure, shape))
    row, _, _ = row_range(norms.measure, shape.columns)
    edges = (*(math.sqrt(edge) for edge in norms.squared_edges if edge), max(largest, last * (1 + 1e-9)))
    units = tuple(float(one_in * value) for value in column.values)
    zeros, noisy = (units[0], units[1:]) if norms.squared_edges[0] == 0 else (None, units)
    deviation = one_in * max(math.sqrt(variance(column.law)), DEVIATION_LEAST)
    return NormHistogram(
        edges,
        noisy,
        deviation,
        one_in,
        row=float(max(row.magnitude, 1)),
        zeros=zeros,
        whole=2 if norms.keys else 1,
        laplace=isinstance(column.law, DiscreteLaplace),
        mixed=not isinstance(norms.measure, RowCount | UnitCount) or norms.measure.where is not None,
    )


def name_of(norms: UnitNorms) -> str:
    """A short name of the measured norms, independent of the price: equal for equal norms of the same sample."""
    return digest(norms)[:16]
