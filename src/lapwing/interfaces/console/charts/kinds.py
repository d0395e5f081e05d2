"""Chooses the kind of chart for an answer, by types and keys and never by noisy values: two runs of one question look alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from lapwing.answers.display.chart_lines import LINES_MAX, TimeLines, time_lines
from lapwing.answers.display.chart_shape import DrawnColumn, drawn_column, key_names
from lapwing.answers.display.error_bar_text import decimals_of, margin_text, number_text
from lapwing.answers.display.mark_text import SIGNS, missing_text
from lapwing.answers.display.time_axis import key_texts, time_axis

if TYPE_CHECKING:
    import pyarrow as pa

    from lapwing.answers.answer import Answer

BINS_MIN, BINS_MAX = 3, 200
SIDE_MAX = 40
"""The largest number of values of a key in a heat map."""
FILLED_MIN = 0.3
"""The share of a heat map's fields that must have a value."""


class ChartKind(StrEnum):
    """How an answer is drawn."""

    BARS = "bars"
    LINE = "line"
    POINTS = "points"
    HISTOGRAM = "histogram"
    HEAT_MAP = "heat-map"


@dataclass(frozen=True, slots=True)
class Drawable:
    """One column of an answer with its keys, and its values as text."""

    column: DrawnColumn
    keys: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    """The keys of each row."""
    texts: Sequence[tuple[str, ...]]
    """The keys of each row as text."""
    written: Sequence[str]
    """Each value with its error bar, as text."""
    is_whole: bool
    """Whether the values are integers: counts, or sums of integers."""
    confidence: float
    kinds: tuple[ChartKind, ...]
    """The suitable kinds of chart, the best first."""
    lines: TimeLines | None
    """Its lines, if a key is time."""

    def label(self, row: int) -> str:
        """The label of a value."""
        return ", ".join(self.texts[row]) or self.column.name

    def hint(self, row: int) -> str:
        """The tooltip of a value."""
        label = f"{self.label(row)}: " if self.keys else ""
        return f"{label}{self.written[row]}"


def drawable(answer: Answer, value: str | None = None) -> Drawable:
    """The column of this name, or the first with error bars; ``plot-column`` if there is none."""
    table, noisy = answer.table, {**answer.intervals, **answer.marks}
    column = drawn_column(table, answer.intervals, answer.marks, value=value)
    keys = key_names(table, noisy)
    if not keys and len(table) > 1:
        keys = [name for name in table.column_names if name not in noisy][:1]  # binned numbers with decimals
    columns: dict[str, list[Any]] = {key: table.column(key).to_pylist() for key in keys}
    rows = list(zip(*columns.values(), strict=True)) if keys else [()] * len(table)
    texts = list(zip(*(key_texts(*item) for item in columns.items()), strict=True)) if keys else rows
    values, intervals = table.column(column.name).to_pylist(), answer.intervals[column.name]
    decimals = decimals_of(values, intervals)
    cells = zip(values, intervals, column.marks, strict=True)
    written = [
        _written(number_text(value, decimals), margin_text(value, interval, decimals), "" if mark is None else f" {SIGNS[mark]}")
        if value is not None
        else missing_text(mark)
        for value, interval, mark in cells
    ]
    is_whole = _is_whole(table, column.name)
    lines = time_lines(columns, column)
    kinds = _kinds(rows, lines, is_whole=is_whole)
    return Drawable(column, tuple(keys), rows, texts, written, is_whole, answer.confidence, kinds, lines)


def _written(number: str, margin: str, sign: str) -> str:
    if not margin:
        return f"{number}{sign}"
    return f"{number} {margin}{sign}" if margin.startswith("-") else f"{number} ± {margin}{sign}"


def _is_whole(table: pa.Table, name: str) -> bool:
    from pyarrow import types

    return bool(types.is_integer(table.schema.field(name).type))


def _kinds(rows: Sequence[tuple[Any, ...]], lines: TimeLines | None, *, is_whole: bool) -> tuple[ChartKind, ...]:
    flat: tuple[ChartKind, ...] = (ChartKind.BARS, ChartKind.POINTS)
    if not is_whole or len(rows) == 1:
        flat = flat[::-1]
    keys = len(rows[0])
    if keys == 1 and bin_width([row[0] for row in rows]) is not None:
        flat = (ChartKind.HISTOGRAM, *flat) if is_whole else (*flat, ChartKind.HISTOGRAM)
    if keys == 2 and _fills_a_map(rows):
        if lines is not None and lines.total > LINES_MAX:
            return (ChartKind.HEAT_MAP, ChartKind.LINE, *flat)
        flat = (ChartKind.HEAT_MAP, *flat)
    return flat if lines is None else (ChartKind.LINE, *flat)


def bin_width(keys: Sequence[Any]) -> float | None:
    """The bin width of numbers that are whole steps apart, with no more steps than fit; None for anything else."""
    numbers = sorted({float(key) for key in keys if isinstance(key, int | float) and not isinstance(key, bool)})
    if len(numbers) < BINS_MIN or any(key is not None and not isinstance(key, int | float) for key in keys):
        return None
    step = min(b - a for a, b in pairwise(numbers))
    steps = [(number - numbers[0]) / step for number in numbers]
    regular = all(math.isclose(at, round(at), abs_tol=1e-6) for at in steps)
    return step if regular and steps[-1] < BINS_MAX and len(numbers) >= FILLED_MIN * (steps[-1] + 1) else None


def _fills_a_map(rows: Sequence[tuple[Any, ...]]) -> bool:
    down, across = {row[0] for row in rows}, {row[1] for row in rows}
    fits = 2 <= len(down) <= SIDE_MAX and 2 <= len(across) <= SIDE_MAX
    return fits and len(set(rows)) == len(rows) and len(rows) >= FILLED_MIN * len(down) * len(across)


def in_order(name: str, values: Sequence[Any]) -> list[Any]:
    """The distinct values of a key: numbers, dates and times sorted, words in the order of the answer, and NULL last."""
    distinct = list(dict.fromkeys(value for value in values if value is not None))
    if all(isinstance(value, int | float | date) for value in distinct) or time_axis({name: distinct}) is not None:
        distinct.sort()
    return distinct + ([None] if None in values else [])
