"""Variances, covariances, correlations and regressions from noisy moments: a count, centred sums, and sums of squares and products.

Values are centred at the public middle of their range before they are squared or multiplied: this minimises the sensitivity to a row, and
the moments are of the size of the spread. Sums of squares are centred themselves at half their largest value, for the same reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from lapwing.errors import Refused
from lapwing.kernel.domains import IntegerDomain, Kind, RealDomain
from lapwing.kernel.expressions import Expression, Function, Literal, call, not_null
from lapwing.kernel.ir import GridSum, Measure, RowCount
from lapwing.kernel.stability import Shape, domain_of
from lapwing.planning.grids import centred, count_of, filtered, grid_of, present, row_limit
from lapwing.statements import Aggregate, AggregateKind

_PRODUCT_STEPS_MAX = 10**9
"""Finest grid of a square or product whose largest value is scaled to 1; noise is coarser by far."""

_K = AggregateKind
_SQUARES_OF_Y = frozenset({_K.VAR_SAMP, _K.VAR_POP, _K.STDDEV_SAMP, _K.STDDEV_POP, _K.CORR, _K.REGR_R2})
_SQUARES_OF_X = frozenset({_K.CORR, _K.REGR_SLOPE, _K.REGR_INTERCEPT, _K.REGR_R2})
MOMENTS = _SQUARES_OF_Y | _SQUARES_OF_X | frozenset({_K.COVAR_SAMP, _K.COVAR_POP})
"""The aggregates made here."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One measured moment: its mean over the rows is unit * vector / count + shift, vector and count in their own steps."""

    vector: str
    unit: Fraction = Fraction(1)
    shift: Fraction = Fraction(0)
    rounded: bool = False
    """Whether rows were rounded to the grid of the sum; values declared on a grid were not."""


@dataclass(frozen=True, slots=True)
class CentredValue:
    """A value with moments: the public centre that was subtracted, and the ends of its range."""

    mean: Moment
    centre: Fraction
    lower: Fraction
    upper: Fraction
    square: Moment | None


@dataclass(frozen=True, slots=True)
class Moments:
    """The aggregate follows from a count and moments of y alone, or of y and x."""

    kind: AggregateKind
    count: str
    y: CentredValue
    x: CentredValue | None = None
    product: Moment | None = None

    @property
    def vectors(self) -> dict[str, str]:
        """Its vectors with their roles."""
        described = {self.count: "count"}
        for name, value in (("y", self.y), ("x", self.x)):
            if value is not None:
                described.setdefault(value.mean.vector, f"sum of {name}" if self.x is not None else "sum")
            if value is not None and value.square is not None:
                described.setdefault(value.square.vector, f"squares of {name}" if self.x is not None else "squares")
        if self.product is not None:
            described.setdefault(self.product.vector, "products")
        return described


def moments_of(aggregate: Aggregate, shape: Shape, vector: Callable[[Measure], str]) -> Moments:
    """The recipe of an aggregate of ``MOMENTS``; ``vector`` names a measure, equal ones alike. Pairs with a NULL are left out."""
    y, x = aggregate.value, aggregate.second
    if y is None:
        raise Refused("wrong-arguments", f"{aggregate.kind.value.upper()} needs a value")
    kind = aggregate.kind
    if x is None:
        grid = centred(grid_of(filtered(y, aggregate.where, shape), shape))
        return Moments(kind, vector(count_of(grid.value, shape)), _centred(grid, y, aggregate.where, shape, vector, squares=True))
    conditions = [] if aggregate.where is None else [aggregate.where]
    nullable = {side: not_null(side) for side in (y, x) if domain_of(side, shape.columns).nullable}
    count = vector(RowCount(present([*conditions, *nullable.values()])))

    def side(value: Expression, squares: frozenset[AggregateKind]) -> tuple[GridSum, CentredValue]:
        where = present([*conditions, *(test for other, test in nullable.items() if other != value)])
        grid = centred(grid_of(filtered(value, where, shape), shape))
        return grid, _centred(grid, value, where, shape, vector, squares=kind in squares)

    (y_grid, of_y), (x_grid, of_x) = side(y, _SQUARES_OF_Y), side(x, _SQUARES_OF_X)
    # In a fixed order, whichever was written first: the products are measured once.
    first, second = sorted(((y, y_grid), (x, x_grid)), key=lambda item: repr(item[0]))
    product = _product(first, second, present(conditions), shape, vector)
    return Moments(kind, count, of_y, of_x, product)


def _centred(
    grid: GridSum, value: Expression, where: Expression | None, shape: Shape, vector: Callable[[Measure], str], *, squares: bool
) -> CentredValue:
    domain = domain_of(value, shape.columns)
    mean = Moment(vector(grid), rounded=isinstance(domain, RealDomain) and domain.steps is None)
    square = _product((value, grid), (value, grid), where, shape, vector) if squares else None
    return CentredValue(mean, _centre(grid), grid.lower, grid.upper, square)


def _centre(grid: GridSum) -> Fraction:
    return Fraction(grid.offset, grid.steps)


def _product(
    left: tuple[Expression, GridSum],
    right: tuple[Expression, GridSum],
    where: Expression | None,
    shape: Shape,
    vector: Callable[[Measure], str],
) -> Moment:
    """The sum of products of two centred values: of integers as integers where they fit, else scaled by a power of two to at most 1."""
    corners = [(a - _centre(left[1])) * (b - _centre(right[1])) for a in _ends(left[1]) for b in _ends(right[1])]
    square = left == right
    lower, upper = (Fraction(0) if square and min(corners) < 0 else min(corners)), max(corners)
    largest, limit = max(abs(lower), abs(upper)), row_limit(shape.rows_max)
    whole = all(isinstance(domain_of(value, shape.columns), IntegerDomain) for value, _ in (left, right)) and largest < limit
    unit, steps = Fraction(1), 1
    if not whole:
        unit = _power_of_two(largest)
        steps = 10 ** (len(str(min(limit, _PRODUCT_STEPS_MAX))) - 1)
    factors = [_less(value, grid, whole=whole) for value, grid in (left, right)]
    if unit != 1:
        factors[0] = call(Function.MULTIPLY, factors[0], Literal(1 / unit, Kind.REAL))
    value = filtered(call(Function.MULTIPLY, *factors), where, shape)
    grid = centred(GridSum(value, lower / unit, upper / unit, steps))
    return Moment(vector(grid), unit, Fraction(grid.offset, steps) * unit, rounded=not whole)


def _ends(grid: GridSum) -> tuple[Fraction, Fraction]:
    return grid.lower, grid.upper


def _less(value: Expression, grid: GridSum, *, whole: bool) -> Expression:
    """The value less its centre."""
    if whole:
        return call(Function.SUBTRACT, value, Literal(grid.offset, Kind.INTEGER)) if grid.offset else value
    return call(Function.SUBTRACT, call(Function.TO_REAL, value), Literal(_centre(grid), Kind.REAL))


def _power_of_two(largest: Fraction) -> Fraction:
    """The least power of two that is at least the value; 1 for 0."""
    if largest == 0:
        return Fraction(1)
    exponent = largest.numerator.bit_length() - largest.denominator.bit_length()
    power = Fraction(2) ** (exponent - 1)
    while power < largest:
        power *= 2
    return power
