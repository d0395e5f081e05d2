"""Axes of a release: the bins of each column, from declared facts alone.

A column with few declared values has a bin for each; numbers, dates and timestamps may be cut into spans instead. Where a column may be
NULL, the last bin is NULL. Identifiers and text without declared values have no axis: their values are not public, and listing them has a
price.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from lapwing.errors import Refused
from lapwing.kernel.domains import (
    BooleanDomain,
    DateDomain,
    Domain,
    IntegerDomain,
    Kind,
    RealDomain,
    TextDomain,
    TimestampDomain,
    bounds,
    kind_of,
)
from lapwing.kernel.expressions import Case, Column, Expression, Function, Literal, Value, call

VALUES_MAX = 10_000
"""A column with more declared values needs spans."""
BINS_MAX = 1_000
"""Spans of one column."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One column in bins: one for each of ``values``, or spans, each from one of the ``edges`` to below the next.

    The last edge is one step of the column's grid above its greatest value; :meth:`spans` has ends that are included.
    """

    column: str
    domain: Domain
    values: tuple[Value, ...] | None
    edges: tuple[Fraction, ...] | None = None

    @property
    def size(self) -> int:
        """Bins, with the one for NULL."""
        return len(self.cells())

    def cells(self) -> tuple[Value, ...]:
        """The value of :meth:`key` in each bin, in order."""
        bins = self.values if self.edges is None else tuple(range(len(self.edges) - 1))
        assert bins is not None
        return (*bins, None) if self.domain.nullable else bins

    def key(self) -> Expression:
        """The expression by which rows are grouped: the column itself, or the number of its span."""
        column = Column(self.column)
        if self.edges is None:
            return column
        inner = self.edges[1:-1]
        below = tuple((call(Function.LESS, column, self._literal(edge)), _number(place)) for place, edge in enumerate(inner))
        if not self.domain.nullable:
            return Case(below, _number(len(inner))) if below else _number(0)
        present = call(Function.NOT, call(Function.IS_NULL, column))
        return Case((*below, (present, _number(len(inner)))), Literal(None, Kind.INTEGER))

    def spans(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """Least and greatest value of each span, ends included, on the column's own grid."""
        if self.edges is None:
            raise ValueError("no spans")
        step = _range(self.column, self.domain)[2]
        return tuple((low, high - step) for low, high in pairwise(self.edges))

    def _literal(self, edge: Fraction) -> Literal:
        kind = kind_of(self.domain)
        return Literal(edge if kind is Kind.REAL else int(edge), kind)


def _number(place: int) -> Literal:
    return Literal(place, Kind.INTEGER)


def axis_of(column: str, domain: Domain, *, bins: int | Sequence[Fraction] | None = None) -> Axis:
    """The axis of a column: a bin for each declared value, or ``bins`` spans of nearly the same width, or spans between given edges."""
    if bins is not None:
        return Axis(column, domain, None, _edges(column, domain, bins))
    match domain:
        case BooleanDomain():
            return Axis(column, domain, (False, True))
        case TextDomain(tuple() as values) if values:
            return Axis(column, domain, values)
        case IntegerDomain(lo, hi) | DateDomain(lo, hi) if hi - lo < VALUES_MAX:
            return Axis(column, domain, tuple(range(lo, hi + 1)))
        case IntegerDomain() | DateDomain() | RealDomain() | TimestampDomain():
            raise Refused(
                "axis-needs-bins", f"the column {column!r} has too many values to give each a bin", hint="give the number of bins"
            )
        case _:
            hint = "declare its values" if isinstance(domain, TextDomain) else ""
            raise Refused(
                "axis-unknown", f"the values of the column {column!r} are not declared, so it cannot be part of a release", hint=hint
            )


def _edges(column: str, domain: Domain, bins: int | Sequence[Fraction]) -> tuple[Fraction, ...]:
    lo, hi, step = _range(column, domain)
    if isinstance(bins, int):
        values = int((hi - lo) / step) + 1
        if not 1 <= bins <= min(values, BINS_MAX):
            raise Refused("axis-bins", f"the column {column!r} can be cut into 1 to {min(values, BINS_MAX):,} spans")
        return tuple(lo + values * place // bins * step for place in range(bins + 1))
    edges = tuple(Fraction(edge) for edge in bins)
    if len(edges) == 0 or any(one >= other for one, other in pairwise(edges)) or edges[0] <= lo or edges[-1] > hi:
        raise Refused("axis-bins", f"edges of the column {column!r} must increase, from above its least value up to its greatest")
    if len(edges) >= BINS_MAX or any((edge - lo) % step for edge in edges):
        raise Refused("axis-bins", f"edges of the column {column!r} must be values that it can have, fewer than {BINS_MAX:,}")
    return (lo, *edges, hi + step)


def _range(column: str, domain: Domain) -> tuple[Fraction, Fraction, Fraction]:
    """Least and greatest value, and the step between two."""
    match domain:
        case IntegerDomain() | RealDomain(steps=int()):
            steps = domain.steps if isinstance(domain, RealDomain) else 1
            return *bounds(domain), Fraction(1, steps or 1)
        case DateDomain(lo, hi) | TimestampDomain(lo, hi):
            return Fraction(lo), Fraction(hi), Fraction(1)
        case _:
            raise Refused("axis-bins", f"the column {column!r} has no range to cut into spans")
