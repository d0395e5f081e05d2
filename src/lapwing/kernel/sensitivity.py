"""How far one unit can move each output vector: the whole table of bounds, as exact integers.

Guarantee: for any two neighbouring data sets the exact difference of the vector has L1, squared L2 and Linf norm at most what is returned,
for the stated neighbour relation. Notation: M = max(|K_L|, |K_U|) and R = max(K_U, 0) - min(K_L, 0) of one row's integer value.
Proofs: docs/proofs/sensitivity.md, one section per function.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import assert_never

from lapwing.kernel.neighbours import Neighbours


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Bounds on the change of one vector between neighbours."""

    l1: int
    l2_squared: int
    linf: int

    def within(self, cells: int | None) -> Sensitivity:
        """Tighten the bounds by the number of cells: L1 <= cells * Linf and L2^2 <= cells * Linf^2."""
        if cells is None:
            return self
        by_cells = cells * self.linf
        return Sensitivity(
            l1=min(self.l1, by_cells),
            l2_squared=min(self.l2_squared, cells * self.linf**2),
            linf=self.linf,
        )


@dataclass(frozen=True, slots=True)
class RowRange:
    """Integer values one row can add to a cell. A row may also add nothing, so 0 always counts as possible."""

    lo: int
    hi: int

    @property
    def magnitude(self) -> int:
        """M: the largest absolute value."""
        return max(abs(self.lo), abs(self.hi))

    @property
    def spread(self) -> int:
        """R: the largest difference between two contributions, one of which may be zero."""
        return max(self.hi, 0) - min(self.lo, 0)

    @property
    def non_negative(self) -> bool:
        """No row can lower a cell."""
        return self.lo >= 0


COUNTED = RowRange(0, 1)
"""What one row adds to a count."""


def rows_weighing(neighbours: Neighbours, *, weight: int, row: RowRange) -> Sensitivity:
    """Ranked and weighted: a unit's rows weigh at most ``weight`` in all (k rows, or rows * 2^bits)."""
    largest, spread = weight * row.magnitude, weight * row.spread
    match neighbours:
        case Neighbours.UNBOUNDED:
            return Sensitivity(l1=largest, l2_squared=largest**2, linf=largest)
        case Neighbours.BOUNDED:
            return Sensitivity(l1=2 * largest, l2_squared=max(spread**2, 2 * largest**2), linf=spread)
        case _:
            assert_never(neighbours)


def clipped(neighbours: Neighbours, *, norm: int, cells: int, non_negative: bool) -> Sensitivity:
    """A unit's vector over ``cells`` known cells has Euclidean norm at most ``norm``. The L1 bound is loose: this is for Gaussian noise."""
    match neighbours:
        case Neighbours.UNBOUNDED:
            factor, linf = 1, norm
        case Neighbours.BOUNDED:
            factor, linf = (2, norm) if non_negative else (4, 2 * norm)
        case _:
            assert_never(neighbours)
    return Sensitivity(l1=cells * linf, l2_squared=factor * norm**2, linf=linf)


def grouped(neighbours: Neighbours, *, groups: int, cell: int, non_negative: bool) -> Sensitivity:
    """A unit touches at most ``groups`` cells, each by at most ``cell`` in absolute value."""
    match neighbours:
        case Neighbours.UNBOUNDED:
            return Sensitivity(l1=groups * cell, l2_squared=groups * cell**2, linf=cell)
        case Neighbours.BOUNDED:
            factor, linf = (2, cell) if non_negative else (4, 2 * cell)
            return Sensitivity(l1=2 * groups * cell, l2_squared=factor * groups * cell**2, linf=linf)
        case _:
            assert_never(neighbours)


def units_counted(neighbours: Neighbours, *, groups: int) -> Sensitivity:
    """Distinct units per group: a unit adds 1 to each of at most ``groups`` cells."""
    return grouped(neighbours, groups=groups, cell=1, non_negative=True)


def units_spread(neighbours: Neighbours, *, groups: int, bits: int) -> Sensitivity:
    """Units weighing floor(2^bits / sqrt(d)) in each of their d groups, of which there are at most ``groups``: the squares of one unit add
    up to at most 4^bits, whatever d.
    """
    l1, square = math.isqrt(groups * 4**bits), 4**bits
    match neighbours:
        case Neighbours.UNBOUNDED:
            return Sensitivity(l1=l1, l2_squared=square, linf=2**bits)
        case Neighbours.BOUNDED:
            return Sensitivity(l1=2 * l1, l2_squared=2 * square, linf=2**bits)
        case _:
            assert_never(neighbours)


def distinct_counted(neighbours: Neighbours, *, pairs: int) -> Sensitivity:
    """Distinct values per group: a unit brings at most ``pairs`` (group, value) pairs, each of which changes one cell by at most 1."""
    return rows_weighing(neighbours, weight=pairs, row=COUNTED)
