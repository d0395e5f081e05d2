"""The value of an expression in each bin of its columns, or the bin in which it has several values.

The values are exact: it is evaluated on every declared value of a bin or, if it only compares a column with constants, on the
ends of the bins and next to the constants, between which it cannot change. Public facts only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lapwing.answers.post_processing import values_on
from lapwing.kernel.domains import DateDomain, Domain, RealDomain, TimestampDomain
from lapwing.kernel.expressions import Call, Case, Column, Expression, Function, Literal, Value, columns_of
from lapwing.kernel.stability import domain_of
from lapwing.planning.group_enumeration.listing import ENUMERATED_MAX, MOMENTS_MAX, TimestampUse, uses_of
from lapwing.releases.marginals.axes import Axis
from lapwing.render.arrow_values import key_values

Whole: TypeAlias = npt.NDArray[np.int64]

_COMPARISONS = {
    Function.EQUAL,
    Function.NOT_EQUAL,
    Function.LESS,
    Function.LESS_EQUAL,
    Function.GREATER,
    Function.GREATER_EQUAL,
    Function.IN,
}


class NotOneValue(Exception):
    """The reason why an expression is not known to have one value in each bin."""


@dataclass(frozen=True, slots=True)
class BinValues:
    """The value of an expression in each bin."""

    axes: tuple[int, ...]
    """The axes it reads, ascending."""
    values: tuple[Value, ...]
    """Its distinct values without NULL."""
    codes: Whole
    """The number of the value in each cell over the axes; -1 for NULL."""

    def numbers(self, null: float) -> npt.NDArray[np.float64]:
        """The values of a number, or of a condition, by cell."""
        listed = [float(value) for value in self.values if not isinstance(value, str) and value is not None]
        return np.array([*listed, null])[self.codes]


def bin_values(expressions: Sequence[Expression], axes: Sequence[Axis]) -> list[BinValues]:
    """The value of each expression in each bin, or ``NotOneValue``. They read columns of the axes only."""
    numbers = {axis.column: number for number, axis in enumerate(axes)}
    domains = {axis.column: axis.domain for axis in axes}
    found: dict[int, BinValues] = {}
    together: dict[tuple[int, ...], list[int]] = {}
    for place, expression in enumerate(expressions):
        if isinstance(expression, Column) and (values := axes[numbers[expression.name]].values) is not None:
            codes = np.array([*range(len(values)), *([-1] * domains[expression.name].nullable)])
            found[place] = BinValues((numbers[expression.name],), values, codes)
            continue
        together.setdefault(tuple(sorted(numbers[name] for name in columns_of(expression))), []).append(place)
    for own, places in together.items():
        asked = [expressions[place] for place in places]
        points = {axes[number].column: _points(axes[number], asked) for number in own}
        if math.prod(len(each.values) for each in points.values()) > ENUMERATED_MAX:
            raise NotOneValue(f"an expression of {_listed(points)} has too many combinations of values to check")
        seen = {name: domains[name] for name in points}
        columns = values_on({name: each.values for name, each in points.items()}, seen, asked)
        for place, expression, column in zip(places, asked, columns, strict=True):
            found[place] = _binned(column, domain_of(expression, seen), [axes[number] for number in own], [*points.values()], own)
    return [found[place] for place in range(len(expressions))]


@dataclass(frozen=True, slots=True)
class _Points:
    """Representative values of a column, and the bin of each; those of a bin are adjacent."""

    values: tuple[Value, ...]
    bins: Whole


def _points(axis: Axis, expressions: Sequence[Expression]) -> _Points:
    null: tuple[Value, ...] = (None,) if axis.domain.nullable else ()
    if axis.values is not None:
        return _Points((*axis.values, *null), np.arange(axis.size))
    steps = axis.domain.steps or 1 if isinstance(axis.domain, RealDomain) else 1
    spans = [(int(low * steps), int(high * steps)) for low, high in axis.spans()]
    telling = _telling(axis, expressions, spans[0][0], spans[-1][1], steps)
    if telling is None and sum(high - low + 1 for low, high in spans) > ENUMERATED_MAX:
        raise NotOneValue(f"{axis.column!r} has too many values in its bins for this expression; comparisons with constants work")
    listed: list[int] = []
    bins: list[int] = []
    for number, (low, high) in enumerate(spans):
        inside = range(low, high + 1) if telling is None else sorted({low, high, *(point for point in telling if low <= point <= high)})
        listed += inside
        bins += [number] * len(inside)
    values = tuple(Fraction(value, steps) if isinstance(axis.domain, RealDomain) else value for value in listed)
    return _Points((*values, *null), np.array([*bins, *([len(spans)] * len(null))]))


def _telling(axis: Axis, expressions: Sequence[Expression], least: int, greatest: int, steps: int) -> set[int] | None:
    """The only points next to which expressions may change; None if unknown."""
    if isinstance(axis.domain, TimestampDomain):
        return _moments([uses_of(expression, axis.column) for expression in expressions], least, greatest)
    points: set[int] = set()
    for expression in expressions:
        constants = compared_with(expression, axis.column)
        if constants is None:
            return None
        # Comparisons are of doubles at worst, and these rise with the grid: a constant separates only adjacent values.
        points |= {math.floor(constant * steps) + beside for constant in constants for beside in (-1, 0, 1, 2)}
    return points


def _moments(uses: Iterable[TimestampUse | None], least: int, greatest: int) -> set[int] | None:
    points: set[int] = set()
    for use in uses:
        if use is None:
            return None
        points |= {constant + beside for constant in use.constants for beside in (-1, 0, 1)}
        if use.step is not None:
            if (greatest - least) // use.step >= MOMENTS_MAX:
                return None
            points |= set(range(-(-least // use.step) * use.step, greatest + 1, use.step))
    return points


def compared_with(expression: Expression, name: str) -> frozenset[Fraction] | None:
    """The constants that a column of numbers or days is compared with; None if it is used otherwise."""
    match expression:
        case Literal():
            return frozenset()
        case Column(other):
            return None if other == name else frozenset()
        case Call(Function.IS_NULL, (Column(),)):
            return frozenset()
        case Call(function, (Column(other), *options)) if function in _COMPARISONS and other == name:
            return _constants(options)
        case Call(function, (Literal() as option, Column(other))) if function in _COMPARISONS and other == name:
            return _constants((option,))
        case Call(_, arguments):
            return _all_constants(compared_with(argument, name) for argument in arguments)
        case Case(branches, otherwise):
            return _all_constants(compared_with(part, name) for part in (otherwise, *(part for branch in branches for part in branch)))
        case _:
            assert_never(expression)


def _constants(options: Iterable[Expression]) -> frozenset[Fraction] | None:
    found = set()
    for option in options:
        if not isinstance(option, Literal) or isinstance(option.value, str):
            return None
        if option.value is not None:
            found.add(Fraction(option.value))
    return frozenset(found)


def _all_constants(parts: Iterable[frozenset[Fraction] | None]) -> frozenset[Fraction] | None:
    found: frozenset[Fraction] = frozenset()
    for part in parts:
        if part is None:
            return None
        found |= part
    return found


def _binned(column: pa.ChunkedArray, domain: Domain, axes: Sequence[Axis], points: Sequence[_Points], own: tuple[int, ...]) -> BinValues:
    encoded = column.combine_chunks().dictionary_encode()
    values = tuple(key_values(pa.chunked_array([encoded.dictionary]), domain))
    codes = np.asarray(encoded.indices.fill_null(-1), dtype=np.int64).reshape([len(each.values) for each in points])
    for place, (axis, each) in enumerate(zip(axes, points, strict=True)):
        first = np.searchsorted(each.bins, np.arange(axis.size))
        binned = np.take(codes, first, axis=place)
        if axis.values is None and not np.array_equal(np.take(binned, each.bins, axis=place), codes):
            unlike = np.moveaxis(np.take(binned, each.bins, axis=place) != codes, place, 0).reshape(len(each.bins), -1).any(axis=1)
            raise NotOneValue(f"values of {axis.column!r} {bin_text(axis, int(each.bins[int(np.argmax(unlike))]))} are in one bin")
        codes = binned
    return BinValues(own, values, codes)


def bin_text(axis: Axis, number: int) -> str:
    """A span as text: from its least value to its greatest."""
    low, high = axis.spans()[number]
    return f"from {value_text(low, axis.domain)} to {value_text(high, axis.domain)}"


def value_text(value: Fraction, domain: Domain) -> str:
    """A value of a column as text."""
    epoch: Any = datetime(1970, 1, 1, tzinfo=UTC)
    match domain:
        case DateDomain():
            return str((epoch + timedelta(days=int(value))).date())
        case TimestampDomain():
            return str((epoch + timedelta(microseconds=int(value))).replace(tzinfo=None))
        case _:
            return f"{int(value)}" if value.denominator == 1 else f"{float(value):g}"


def _listed(points: Mapping[str, object]) -> str:
    return ", ".join(repr(name) for name in points)
