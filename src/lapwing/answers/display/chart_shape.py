"""The parts of an answer that every chart draws: the column and its keys, the extent of its error bars, and the values hidden by noise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lapwing.answers.intervals import Interval
from lapwing.errors import Refused
from lapwing.statements import CellMark

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class DrawnColumn:
    """A column to be drawn: values, the extent of error bars on both sides, and marks. A missing value is NaN."""

    name: str
    heights: Sequence[float]
    below: Sequence[float]
    above: Sequence[float]
    marks: Sequence[CellMark | None]

    @property
    def doubtful(self) -> list[bool]:
        """Flags of the values that are not ordinary."""
        return [mark is not None and mark is not CellMark.SCALED for mark in self.marks]

    def ends(self) -> list[float]:
        """The ends of all error bars except doubtful ones: noise does not affect the scale, unless there is nothing else."""
        sides = [side for side in zip(self.heights, self.below, self.above, self.doubtful, strict=True) if not math.isnan(side[0])]
        drawn = [side for side in sides if not side[3]] or sides
        return [end for height, down, up, _ in drawn for end in (height - down, height + up)]

    def of_rows(self, rows: Iterable[int]) -> DrawnColumn:
        """The same for some rows."""
        some = list(rows)
        heights, below, above = ([side[row] for row in some] for side in (self.heights, self.below, self.above))
        return DrawnColumn(self.name, heights, below, above, [self.marks[row] for row in some])


def drawn_column(
    table: pa.Table,
    intervals: Mapping[str, Sequence[Interval | None]],
    marks: Mapping[str, Sequence[CellMark | None]],
    *,
    value: str | None,
) -> DrawnColumn:
    """The column of this name, or the first with error bars."""
    name = value if value is not None else next(iter(intervals), None)
    if name is None or name not in intervals:
        raise Refused("plot-column", "there is no column with error bars to plot", hint="name one with value=")
    heights = [math.nan if height is None else float(height) for height in table.column(name).to_pylist()]
    below = [0.0 if i is None else max(h - i.lo, 0.0) for h, i in zip(heights, intervals[name], strict=True)]
    above = [0.0 if i is None else max(i.hi - h, 0.0) for h, i in zip(heights, intervals[name], strict=True)]
    return DrawnColumn(name, heights, below, above, marks.get(name, [None] * len(table)))


def key_names(table: pa.Table, noisy: Mapping[str, object]) -> list[str]:
    """The columns that distinguish the values."""
    from pyarrow import types

    return [field.name for field in table.schema if field.name not in noisy and not types.is_floating(field.type)]
