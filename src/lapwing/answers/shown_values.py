"""The displayed numbers: impossible ones are moved. This is the last step of an answer, after all computing, sorting and comparing.

Released numbers are stored, added up, averaged, sorted, compared and computed with unchanged: moved ones would be
biased. Only the displayed table and its error bars are moved into the possible range. docs/explanation/accuracy.md, "What cannot
be", says why bars hold as often as before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa

from lapwing.answers.assembly import AssembledAnswer
from lapwing.answers.intervals import Interval
from lapwing.answers.table_totals import TableTotals, bar_confidence
from lapwing.answers.value_bounds import Bounds, PossibleAggregates
from lapwing.kernel.facts import Facts
from lapwing.statements import RatioOutput, Statement

_SAME = 1e-12
"""A value that is outside by less than this share of its size was rounded, and is not moved."""


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer as it is displayed, and its notes."""

    assembled: AssembledAnswer
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PossibleOutputs:
    """What is possible for each output of a statement."""

    values: tuple[Bounds, ...]
    bars: tuple[Bounds, ...]
    """The same for error bars: by declarations alone where their own chance has no room for that of the statistics."""
    confidence: Fraction
    """The confidence at which bars are computed, so that they have the requested one after they were cut."""

    @classmethod
    def of(
        cls,
        statement: Statement,
        facts: Facts,
        *,
        units: int | None,
        totals: Mapping[str, TableTotals] | None = None,
        confidence: Fraction,
        longer: bool = True,
    ) -> PossibleOutputs:
        """By the declared number of units and the upper ends of the version's statistics.

        ``longer``: bars may be computed at a slightly higher confidence.
        """

        def all_outputs(by: PossibleAggregates) -> tuple[Bounds, ...]:
            return tuple(by.output(output.derivation, statement.privates) for output in statement.post.outputs)

        declared = all_outputs(PossibleAggregates.of(facts, units))
        values = all_outputs(PossibleAggregates.of(facts, units, totals)) if totals else declared
        sure = bar_confidence(confidence) if longer and values != declared else None
        return cls(values, declared if sure is None else values, confidence if sure is None else sure)


def shown(assembled: AssembledAnswer, statement: Statement, facts: Facts, possible: PossibleOutputs) -> ShownAnswer:
    """The answer with values and error bars in the possible range.

    Versions without stored number types display unchanged numbers.
    """
    if not facts.typed_numbers:
        return ShownAnswer(assembled)
    table, intervals = assembled.table, dict(assembled.intervals)
    moved: dict[str, int] = {}
    for number, output in enumerate(statement.post.outputs):
        bars, kind = intervals.get(output.name), table.schema.field(number).type
        if bars is None or possible.values[number] == Bounds():
            continue
        values, ends = table.column(number).to_pylist(), ValueBounds.of(possible.bars[number], kind)
        if isinstance(output.derivation, RatioOutput):
            intervals[output.name] = [ends.cut(value, bar) for value, bar in zip(values, bars, strict=True)]
            continue
        nearest = ValueBounds.of(possible.values[number], kind).nearest
        inside = [value if bar is None else nearest(value) for value, bar in zip(values, bars, strict=True)]
        intervals[output.name] = [ends.moved(*cell) for cell in zip(values, inside, bars, strict=True)]
        many = sum(before != after for before, after in zip(values, inside, strict=True))
        if many:
            moved[output.name] = many
            table = table.set_column(number, table.schema.field(number), pa.array(inside, kind))
    return ShownAnswer(replace(assembled, table=table, intervals=intervals), _notes(moved))


def _notes(moved: dict[str, int]) -> tuple[str, ...]:
    """The note that values were moved, once for all columns."""
    many = sum(moved.values())
    if not many:
        return ()
    lie = f"a value of {', '.join(moved)} lies" if many == 1 else f"{many:,} values of {', '.join(moved)} lie"
    shown_at = "is shown at the nearest possible value" if many == 1 else "are shown at the nearest possible values"
    return (f"{lie} outside what is possible and {shown_at}; what the statement computes, sorts or compares is as released",)


@dataclass(frozen=True, slots=True)
class ValueBounds:
    """The possible range of a column, prepared for many cells."""

    lo: float
    hi: float
    least: int | float | Decimal | None
    """The ends as values of the column's own type; None where there is none."""
    most: int | float | Decimal | None

    @classmethod
    def of(cls, bounds: Bounds, kind: pa.DataType) -> ValueBounds:
        """The ends of a column of this type."""
        return cls(
            -math.inf if bounds.lo is None else float(bounds.lo),
            math.inf if bounds.hi is None else float(bounds.hi),
            None if bounds.lo is None else _in_type(bounds.lo, kind, up=True),
            None if bounds.hi is None else _in_type(bounds.hi, kind, up=False),
        )

    def nearest(self, value: Any) -> Any:
        """The nearest possible value; the value itself if it is possible or not a number."""
        if not isinstance(value, int | float | Decimal) or isinstance(value, bool):
            return value
        if self.least is not None and value < self.lo and value < self.lo - _SAME * abs(self.lo):
            return self.least
        if self.most is not None and value > self.hi and value > self.hi + _SAME * abs(self.hi):
            return self.most
        return value

    def moved(self, before: Any, after: Any, bar: Interval | None) -> Interval | None:
        """The bar of a value that was moved: moved along with it, then cut to the possible range.

        It contains the possible part of the bar and the displayed value. If it were only cut, a bar would be shorter the larger its noise
        was, down to length 0; moved first, it is as long on the inside as that of a value at the end.
        """
        if bar is None or before is None or before == after:
            return self.cut(after, bar)
        by = float(after) - float(before)
        return self.cut(after, Interval(bar.lo + by, bar.hi + by))

    def cut(self, value: Any, bar: Interval | None) -> Interval | None:
        """The possible part of a bar, extended to the displayed value."""
        if bar is None or value is None or (bar.lo >= self.lo and bar.hi <= self.hi):
            return bar
        shown_at = float(value)
        return Interval(min(max(bar.lo, self.lo), shown_at), max(min(bar.hi, self.hi), shown_at))


def _in_type(end: Fraction, kind: pa.DataType, *, up: bool) -> int | float | Decimal:
    """An end as a value of a type, rounded to the inside."""
    if pa.types.is_floating(kind):
        return float(end)
    places = kind.scale if pa.types.is_decimal(kind) else 0
    whole = math.ceil(end * 10**places) if up else math.floor(end * 10**places)
    return Decimal(whole).scaleb(-places) if pa.types.is_decimal(kind) else whole
