"""The public distribution of rows per unit: bought once under the budget, or assumed.

The histogram of rows per unit is an ordinary plan (one row per unit, one bin per row, sensitivity 1), certified and charged like any other.
Its use in planning affects accuracy only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

from lapwing.contribution.model import NormHistogram, fitted_norms
from lapwing.kernel.accounting import Account
from lapwing.kernel.blocks import reach_of
from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Case, Column, Expression, Function, Literal, call
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import (
    KnownGroups,
    PerUnit,
    Plan,
    Project,
    Query,
    Ranked,
    Relation,
    RowCount,
    Scan,
    UnitAggregate,
    UnitAggregateKind,
    UnitNorms,
    Vector,
)
from lapwing.kernel.neighbours import Neighbours
from lapwing.prices import Family, law_for

ROWS = "rows"
BIN = "bin"
UNITS = "units"
POISSON_MEAN_MAX = 50.0
"""Above this mean the number of rows that pass a filter is approximated by the mean."""
TAIL_EXPONENT_DEFAULT = 1.2
DEVIATION_LEAST = 0.1
"""Assumed minimum noise of bins, even if a large price made it 0: curves are weighted by it."""


@dataclass(frozen=True, slots=True)
class Contributions:
    """Units by their number of rows: pairs (rows, units), both estimates."""

    bins: tuple[tuple[float, float], ...]

    def units(self) -> float:
        """The number of units."""
        return sum(units for _, units in self.bins)

    def rows(self) -> float:
        """The number of rows."""
        return sum(rows * units for rows, units in self.bins)

    def thinned(self, share: float) -> Contributions:
        """The same rows per unit, of a share of the units."""
        return Contributions(tuple((rows, units * share) for rows, units in self.bins))

    def scaled(self, factor: float) -> Contributions:
        """The same units, each with this many times the rows."""
        return Contributions(tuple((rows * factor, units) for rows, units in self.bins))

    def excess(self, limit: float, *, share: float = 1.0) -> float:
        """Expected rows above ``limit`` per unit, when each row passes a filter with probability ``share``."""
        if share >= 1.0:
            return sum([units * (rows * share - limit) for rows, units in self.bins if rows * share > limit], 0.0)
        return sum([units * _thinned_excess(rows * share, limit) for rows, units in self.bins], 0.0)


def _thinned_excess(mean: float, limit: float) -> float:
    """E[(X - limit)+] for a unit's rows X after a filter: Poisson, or the mean if that is large."""
    if mean > POISSON_MEAN_MAX:
        return max(mean - limit, 0.0)
    first = math.ceil(limit)
    chances, moments = _poisson_tails(mean)
    return moments[first] - limit * chances[first] if first < len(chances) else 0.0


@lru_cache(maxsize=4096)
def _poisson_tails(mean: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """P[X >= k] and E[X; X >= k] for k = 0, 1, 2, ..., as far as they matter."""
    chances = [math.exp(-mean)]
    for rows in range(1, int(mean + 12 * math.sqrt(mean) + 12)):
        chances.append(chances[-1] * mean / rows)
    above, moment = [0.0], [0.0]
    for rows in range(len(chances) - 1, -1, -1):
        above.append(above[-1] + chances[rows])
        moment.append(moment[-1] + rows * chances[rows])
    return tuple(above[:0:-1]), tuple(moment[:0:-1])


def bin_edges(rows_per_unit_max: int) -> tuple[int, ...]:
    """Upper ends of the bins: 1, 2, 3, 4, 6, 8, 12, 16, ... up to the cap."""
    edges = [1, 2, 3]
    while edges[-1] < rows_per_unit_max:
        power = 2 ** math.ceil(math.log2(edges[-1] + 1))
        edges += [power, power * 3 // 2]
    kept = sorted({edge for edge in edges if edge < rows_per_unit_max})
    return (*kept, rows_per_unit_max)


def histogram_plan(table: str, facts: Facts, *, loss: Fraction) -> Plan:
    """The plan that buys the histogram of rows per unit of one table for ``loss``."""
    cap = facts.table(table).rows_per_unit_max
    edges = bin_edges(cap)
    branches = tuple((call(Function.LESS_EQUAL, Column(ROWS), _integer(edge)), _integer(edge)) for edge in edges[:-1])
    binned = Case(branches, _integer(edges[-1])) if branches else _integer(edges[-1])
    counted = PerUnit(Scan(table, cap), ((ROWS, UnitAggregate(UnitAggregateKind.COUNT, None)),))
    return units_by_bin(Project(counted, ((BIN, binned),)), edges, facts, loss=loss)


def units_by_bin(source: Relation | UnitNorms, bins: Iterable[int], facts: Facts, *, loss: Fraction) -> Plan:
    """The plan that counts units by their bin for ``loss``. Pre: the source has one row per unit, with its ``BIN``."""
    moved = 2 if reach_of(source).facts(facts).neighbours is Neighbours.BOUNDED else 1
    family = Family.LAPLACE if facts.account is Account.PURE else Family.GAUSSIAN
    law = law_for(facts.account, loss=loss, l1=moved, l2_squared=moved, family=family)
    groups = KnownGroups(tuple((number,) for number in bins))
    return Plan((Query(source, ((BIN, Column(BIN)),), groups, Ranked(), (Vector(UNITS, RowCount(), law),)),))


def _integer(value: int) -> Expression:
    return Literal(value, Kind.INTEGER)


def fitted(edges: Sequence[int], noisy: Sequence[float], deviation: float) -> Contributions:
    """Contributions from a noisy histogram: significant bins nearly as they are, and beyond them curves weighted by all bins, also empty
    ones.

    In a heavy tail most rows belong to a few units, far fewer than the noise of a bin; ignoring them would set every bound too low. With
    a sharp end there are none, and bins that look empty together say so. The last bin also holds the units that preparation cut at the cap.
    """
    if len(edges) == 1:
        return Contributions(((float(edges[0]), max(noisy[0], 0.0)),))
    fit = fitted_norms(NormHistogram(tuple(float(edge) for edge in edges), tuple(noisy), max(deviation, DEVIATION_LEAST)))
    middles = [math.sqrt((low + 1) * high) for low, high in pairwise((0, *edges))]
    units = [max(float(value), 0.0) for value in fit.expected]
    return Contributions(tuple(zip((*middles, float(edges[-1])), units, strict=True)))


def contributions_of_tables(statistics: Mapping[str, Mapping[str, Any]]) -> dict[str, Contributions]:
    """Rows per unit by table, from the kept figures of any version."""
    return {table: fitted(kept["edges"], kept["noisy"], kept["deviation"]) for table, kept in statistics.items()}


def assumed(*, rows_per_unit_max: int, rows_max: int, units: int | None) -> Contributions:
    """Contributions from declarations alone: a heavy tail up to the cap, over the declared or a cautious number of units."""
    if rows_per_unit_max == 1:
        return Contributions(((1.0, float(units or min(rows_max, 10_000))),))
    edges = bin_edges(rows_per_unit_max)
    total = float(units or min(rows_max // 10 + 1, 10_000))
    ends = [0, *edges]
    shares = [max(low, 1) ** -TAIL_EXPONENT_DEFAULT - high**-TAIL_EXPONENT_DEFAULT if low else 0.5 for low, high in pairwise(ends)]
    scale = sum(shares)
    return Contributions(
        tuple((math.sqrt((low + 1) * high), total * s / scale) for (low, high), s in zip(pairwise(ends), shares, strict=True))
    )
