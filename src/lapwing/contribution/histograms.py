"""The norm histogram of a statement: which ones it wants, the plan that buys them, and what a vector's clipping cut off by them.

For a part of the statement's price it is first measured how long the vectors of units are in this very statement, after its filters and
joins and over its groups: units by the Euclidean norm of what they add (one unit, one bin). From that the cap of each vector is chosen, and
what the cap cuts off is bounded. Released histograms are public: the same norms asked again, at another price too, are not bought twice.
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
"""Norms of sums are told apart down to the largest value of a row divided by two so many times."""
UNLIKE_OTHERS = 2.0
"""Rows of a unit that has as many as are allowed add up to this many times what rows usually do, at most."""
ROWS_WORTH_MEASURING = 3
"""Below so many rows of one unit no bound is looked for: nothing is cut off."""


@dataclass(frozen=True, slots=True)
class ClippingBound:
    """A vector whose units are scaled down to a cap: what was bought about their norms says how much that may cut off."""

    fit: ContributionModel
    choice: CapChoice
    """Its cap is in the measure's own integers: rows, units, or grid integers of a sum."""
    cells: int
    unit: Fraction
    """What one of those integers stands for."""
    signed: bool
    """Cells can be negative, so that what is cut off may be too."""
    of_units: bool
    """Units are counted, so that every cell of a unit is 1."""
    grain: float | None
    """The norm of a unit with one row, where every row adds the same."""
    of_all: float | None
    """The share of all rows that one unit may have, as far as bought statistics say. One such unit is never seen, and is allowed for."""
    one_in: int = 1
    """Norms are those of a sample: of one unit in so many."""

    def extreme(self, total: float) -> float:
        """What that unit adds, if its rows are of the usual kind, and all units together add ``total``."""
        return self.fit.largest if self.of_all is None else min(self.fit.largest, UNLIKE_OTHERS * self.of_all * total)


def norms_of(source: Relation, keys: tuple[tuple[str, Expression], ...], measure: Measure, shape: Shape, *, one_in: int = 1) -> UnitNorms:
    """Units by the norm of what they add to a measure over the groups of these keys; of all units, or of one in so many."""
    return UnitNorms(source, keys, norms_measure(measure), _squared_edges(norms_measure(measure), shape), BIN, one_in)


def norms_measure(measure: Measure) -> Measure:
    """What norms are measured of: a centred sum is looked up by the sum itself."""
    return replace(measure, offset=0) if isinstance(measure, GridSum) else measure


def _largest_square(measure: Measure, shape: Shape) -> int:
    row, _, _ = row_range(measure, shape.columns)
    if isinstance(measure, UnitCount):
        return shape.rows_per_unit
    return max((row.magnitude * shape.rows_per_unit) ** 2, 1)


def _squared_edges(measure: Measure, shape: Shape) -> tuple[int, ...]:
    """Powers of two below the largest square; what is above the last of them is in the last bin.

    Units that add nothing to a sum say nothing about how much the others add: 0 is an edge too, and they have a bin. With a count they stay
    beside those of one row, which is what most of the others have.
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
    """A released histogram, with the ends of its bins; each unit of a sample stands for as many as it was drawn from."""
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
    """A short name of what is measured, whatever it costs: the same for the same norms of the same sample."""
    return digest(norms)[:16]
