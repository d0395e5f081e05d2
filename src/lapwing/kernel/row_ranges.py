"""What one row can add to a measure, on which grid. Proof: docs/proofs/sensitivity.md."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import assert_never

from lapwing.errors import Refused
from lapwing.kernel.domains import DOUBLE_EXACT_LIMIT, Domain, Kind, RealDomain, grid_integer, is_numeric, kind_of
from lapwing.kernel.expression_domains import domain_of
from lapwing.kernel.grid_functions import STEPS_MAX
from lapwing.kernel.ir import DistinctCount, GridSum, Measure, RowCount, UnitCount
from lapwing.kernel.sensitivity import COUNTED, RowRange


def row_range(measure: Measure, columns: Mapping[str, Domain]) -> tuple[RowRange, Fraction, Fraction]:
    """What one row can add, what one integer stands for, and how far one row was rounded."""
    match measure:
        case RowCount(where) | UnitCount(where):
            if where is not None and kind_of(domain_of(where, columns)) is not Kind.BOOLEAN:
                raise Refused("type-mismatch", "a condition must be true or false")
            return COUNTED, Fraction(1), Fraction(0)
        case DistinctCount(value):
            if isinstance(domain_of(value, columns), RealDomain):
                raise Refused("type-mismatch", "distinct values of a real number cannot be counted", hint="round it to an integer first")
            return COUNTED, Fraction(1), Fraction(0)
        case GridSum():
            domain = domain_of(measure.value, columns)
            if not is_numeric(domain):
                raise Refused("type-mismatch", f"a sum needs a number, not a {kind_of(domain).value}")
            lo, hi = grid_bounds(measure)
            rounding = Fraction(1, 2 * measure.steps) if isinstance(domain, RealDomain) or measure.steps != 1 else Fraction(0)
            return RowRange(lo - measure.offset, hi - measure.offset), Fraction(1, measure.steps), rounding
        case _:
            assert_never(measure)


def grid_bounds(measure: GridSum) -> tuple[int, int]:
    """[K_L, K_U]: the integers a gridded value is clamped to."""
    if not 1 <= measure.steps <= STEPS_MAX or measure.lower > measure.upper:
        raise Refused("sum-bounds", "a sum needs a positive grid and a lower bound below its upper bound")
    lo, hi = grid_integer(measure.lower, measure.steps), grid_integer(measure.upper, measure.steps)
    if max(abs(lo), abs(hi), abs(measure.offset)) >= DOUBLE_EXACT_LIMIT:
        raise Refused("range-too-wide", "the grid of a sum is too fine for its bounds")
    return lo, hi
