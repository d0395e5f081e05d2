"""Sums on a grid: the choice of the grid and the centre of a sum, so that no sum can overflow."""

from __future__ import annotations

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
from lapwing.kernel.expressions import Case, Column, Expression, Function, Literal, call, not_null
from lapwing.kernel.ir import GridSum, RowCount
from lapwing.kernel.stability import Shape, domain_of

STEPS_MAX = 10**6


def filtered(value: Expression, where: Expression | None, shape: Shape) -> Expression:
    """The value, or NULL where a FILTER is not true."""
    if where is None:
        return value
    return Case(((where, value),), Literal(None, kind_of(domain_of(value, shape.columns))))


def present(conditions: list[Expression]) -> Expression | None:
    """All of these conditions, or None where there is none."""
    return None if not conditions else conditions[0] if len(conditions) == 1 else call(Function.AND, *conditions)


def count_of(value: Expression, shape: Shape) -> RowCount:
    """The count of the rows that a sum of this value adds up."""
    return RowCount(not_null(value) if domain_of(value, shape.columns).nullable else None)


def grid_of(value: Expression, shape: Shape) -> GridSum:
    """A sum over the value's own interval, on its own grid or the finest decimal one that fits."""
    domain = domain_of(value, shape.columns)
    if not is_numeric(domain):
        raise Refused("type-mismatch", f"a sum or average needs a number, not a {kind_of(domain).value}")
    lower, upper = bounds(domain)
    return GridSum(value, lower, upper, _steps(domain, shape.rows_max, stored=isinstance(value, Column)))


def _steps(domain: Domain, rows_max: int, *, stored: bool) -> int:
    """The grid of a sum; what is computed is put on a coarser one than its own where its sum could overflow."""
    if isinstance(domain, IntegerDomain):
        return 1
    largest = max(abs(end) for end in bounds(domain))
    if isinstance(domain, RealDomain) and domain.steps is not None and (stored or largest * domain.steps < row_limit(rows_max)):
        return domain.steps
    steps = STEPS_MAX
    while steps > 1 and largest * steps >= row_limit(rows_max):
        steps //= 10
    return steps


def row_limit(rows_max: int) -> int:
    """Grid integers of one row stay below this, so that no sum of them overflows.

    One bit of room is left for the offset of averages, and ten more in the sum for the finer grid of clipping.
    """
    return min(DOUBLE_EXACT_LIMIT // 4, (INTEGER_LIMIT >> 11) // max(rows_max, 1))


def centred(grid: GridSum) -> GridSum:
    """The same sum with the middle of its range subtracted, if that lowers the sensitivity to one row."""
    lo, hi = grid_integer(grid.lower, grid.steps), grid_integer(grid.upper, grid.steps)
    middle = (lo + hi) // 2
    smaller = max(hi - middle, middle - lo) < max(abs(lo), abs(hi))
    return GridSum(grid.value, grid.lower, grid.upper, grid.steps, middle if smaller else 0)
