"""Variances, covariances, correlations and regressions from noisy moments, with error bars. Post-processing only.

The interval is that of the aggregate over all moments the noise could have been added to: noisy value less noise, for a fixed set of
points spread like the noise (docs/proofs/error-bars.md, "Functions of several cells"). Where a point makes no sense, such as a variance
below zero in a divisor, it counts as any value at all; so an interval grows to the possible range as the noise dominates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from lapwing.answers.intervals import Interval
from lapwing.answers.simulation import Floats, noise_points
from lapwing.kernel.release import NoisyTable
from lapwing.planning.variances import Moment, Moments
from lapwing.statements import AggregateKind

_AT_ONCE = 64
"""Groups processed together: a few megabytes of points."""
_FLOATS = 1e-12
"""Bound of the floating-point error of a value, as a share of the possible range."""
_SAMPLE = frozenset({AggregateKind.VAR_SAMP, AggregateKind.STDDEV_SAMP, AggregateKind.COVAR_SAMP})
_DEVIATION = frozenset({AggregateKind.STDDEV_SAMP, AggregateKind.STDDEV_POP})


@dataclass(frozen=True, slots=True)
class _Means:
    """A count, and means over the rows: of y, of its square, and so on. Arrays of one shape; unmeasured ones are None."""

    count: Floats
    y: Floats
    yy: Floats | None
    x: Floats | None
    xx: Floats | None
    xy: Floats | None


def moment_estimates(recipe: Moments, noisy: NoisyTable, *, confidence: float, terms: int) -> list[tuple[float | None, Interval | None]]:
    """Value and interval of every group; neither if there are too few rows or the divisor's spread is 0."""
    measured = {name: noisy.column(name) for name in recipe.vectors}
    values = {name: np.array([float(value) for value in column.values]) for name, column in measured.items()}
    noise = {name: noise_points(column.law, dimension=number, terms=terms) for number, (name, column) in enumerate(measured.items())}
    steps = {name: float(column.step) for name, column in measured.items()}
    roundings = {
        field: float(moment.unit * measured[moment.vector].rounding) for field, moment in _moments(recipe).items() if moment.rounded
    }
    low, high = possible(recipe)
    estimates: list[tuple[float | None, Interval | None]] = []
    for start in range(0, len(noisy.groups), _AT_ONCE):
        cells = {name: column[start : start + _AT_ONCE, None] for name, column in values.items()}
        exact = _means(recipe, {name: column * steps[name] for name, column in cells.items()})
        shown = _shown(recipe, exact)
        drawn = _aggregate(recipe, _means(recipe, {name: (column - noise[name]) * steps[name] for name, column in cells.items()}))
        extra = _rounding(recipe, exact, shown, roundings)
        lower, upper = _quantiles(drawn, confidence)
        for value, below, above, more in zip(shown[:, 0], lower, upper, extra[:, 0], strict=True):
            estimates.append(_estimate(recipe, float(value), float(below - more), float(above + more), low, high))
    return estimates


def _estimate(recipe: Moments, value: float, below: float, above: float, low: float, high: float) -> tuple[float | None, Interval | None]:
    if not math.isfinite(value):
        return None, None
    value = min(max(value, low), high)
    slack = _FLOATS * (abs(value) if math.isinf(high) else high - low)
    below, above = max(min(below, value) - slack, low), min(max(above, value) + slack, high)
    if recipe.kind is AggregateKind.REGR_R2:
        ends = sorted((below**2, above**2))
        return value**2, Interval(0.0 if below < 0 < above else ends[0], ends[1])
    return value, Interval(below, above) if math.isfinite(below) and math.isfinite(above) else None


def moment_values(recipe: Moments, cells: dict[str, Floats]) -> Floats:
    """The aggregate of noisy sums in their own units, vector by vector; not a number where there is none."""
    low, high = possible(recipe)
    values = np.clip(_shown(recipe, _means(recipe, cells)), low, high)
    return np.square(values) if recipe.kind is AggregateKind.REGR_R2 else values


def _shown(recipe: Moments, means: _Means) -> Floats:
    """The displayed value: at least one row is required after rounding, and two for a sample."""
    return _aggregate(recipe, means, at_least=1.5 if recipe.kind in _SAMPLE else 0.5)


def possible(recipe: Moments) -> tuple[float, float]:
    """Ends of what the aggregate can be, whatever the rows; of the correlation for its square. The least sample has two rows."""
    y = float(recipe.y.upper - recipe.y.lower)
    x = 0.0 if recipe.x is None else float(recipe.x.upper - recipe.x.lower)
    match recipe.kind:
        case AggregateKind.VAR_SAMP:
            return 0.0, y * y / 2
        case AggregateKind.VAR_POP:
            return 0.0, y * y / 4
        case AggregateKind.STDDEV_SAMP:
            return 0.0, y / math.sqrt(2)
        case AggregateKind.STDDEV_POP:
            return 0.0, y / 2
        case AggregateKind.COVAR_SAMP:
            return -x * y / 2, x * y / 2
        case AggregateKind.COVAR_POP:
            return -x * y / 4, x * y / 4
        case AggregateKind.CORR | AggregateKind.REGR_R2:
            return -1.0, 1.0
        case _:
            return -math.inf, math.inf


def _moments(recipe: Moments) -> dict[str, Moment]:
    """The moments by the field of ``_Means`` that they are the mean of."""
    moments = {"y": recipe.y.mean, "yy": recipe.y.square, "xy": recipe.product}
    if recipe.x is not None:
        moments |= {"x": recipe.x.mean, "xx": recipe.x.square}
    return {field: moment for field, moment in moments.items() if moment is not None}


def _means(recipe: Moments, cells: dict[str, Floats]) -> _Means:
    count = cells[recipe.count]
    with np.errstate(all="ignore"):
        means = {
            field: float(moment.unit) * cells[moment.vector] / count + float(moment.shift) for field, moment in _moments(recipe).items()
        }
    return _Means(count, means["y"], means.get("yy"), means.get("x"), means.get("xx"), means.get("xy"))


def _aggregate(recipe: Moments, means: _Means, *, at_least: float | None = None) -> Floats:
    """The aggregate, not a number where it is not defined. A variance may come out below zero, and its root then with a minus sign.

    ``at_least``: how many rows there must be; without it as many as the arithmetic needs.
    """
    kind = recipe.kind
    least = (1.0 if kind in _SAMPLE else 0.0) if at_least is None else at_least
    with np.errstate(all="ignore"):
        spread = _spread(recipe, means)
        if kind in _SAMPLE:
            spread = spread * means.count / (means.count - 1)
        if kind in _DEVIATION:
            spread = np.sign(spread) * np.sqrt(np.abs(spread))
        return np.where(means.count > least, spread, np.nan)


def _spread(recipe: Moments, means: _Means) -> Floats:
    """Variance, covariance, or the requested quotient, as over a whole population."""
    y_squares = None if means.yy is None else means.yy - means.y**2
    if means.x is None or means.xy is None:
        assert y_squares is not None
        return y_squares
    both = means.xy - means.x * means.y
    x_squares = None if means.xx is None else np.where(means.xx - means.x**2 > 0, means.xx - means.x**2, np.nan)
    match recipe.kind:
        case AggregateKind.COVAR_SAMP | AggregateKind.COVAR_POP:
            return both
        case AggregateKind.CORR | AggregateKind.REGR_R2:
            assert x_squares is not None and y_squares is not None
            return np.asarray(both / np.sqrt(x_squares * np.where(y_squares > 0, y_squares, np.nan)))
        case AggregateKind.REGR_SLOPE:
            assert x_squares is not None
            return both / x_squares
        case AggregateKind.REGR_INTERCEPT:
            assert x_squares is not None and recipe.x is not None
            slope = both / x_squares
            return means.y + float(recipe.y.centre) - slope * (means.x + float(recipe.x.centre))
        case _:
            raise AssertionError("this is no aggregate of pairs")


def _quantiles(drawn: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Lower and upper quantile of every row, outwards; what is not a number counts as too low and as too high."""
    outside = (1 - confidence) / 2
    undefined = np.isnan(drawn)
    lower = np.quantile(np.where(undefined, -np.inf, drawn), outside, axis=1, method="lower")
    upper = np.quantile(np.where(undefined, np.inf, drawn), 1 - outside, axis=1, method="higher")
    return lower, upper


def _rounding(recipe: Moments, exact: _Means, shown: Floats, roundings: dict[str, float]) -> Floats:
    """Bound of the effect of rounding of rows on the aggregate: each mean by at most its own rounding, one after the other."""
    total = np.zeros_like(shown)
    for field, most in roundings.items():
        moved = [_aggregate(recipe, replace(exact, **{field: getattr(exact, field) + way * most})) for way in (1, -1)]
        total += np.nanmax(np.abs(np.where(np.isnan(moved), shown, moved) - shown), axis=0, initial=0.0)
    return np.nan_to_num(total)
