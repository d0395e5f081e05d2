"""An answer over time, for every chart: its lines, their gaps, and the parts hidden by noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from lapwing.answers.display.chart_shape import DrawnColumn
from lapwing.answers.display.time_axis import TimeAxis, key_texts, moment_number, time_axis

LINE_COLOURS = ("#2d45df", "#d55e00", "#14a776", "#5f0d7b", "#a283ba", "#1a2d22")
"""Colours of adjacent lines on white. A test checks their contrast for colour-blind readers."""
LINES_MAX = len(LINE_COLOURS)
MOMENTS_MIN = 3
"""Number of times from which several lines are clearer than a heat map."""
DOTS_MAX = 60
"""Number of points of a line below which each has a dot."""
_EVEN = 1.12
"""Ratio up to which steps are regular: months have 28 to 31 days."""


@dataclass(frozen=True, slots=True)
class ChartLine:
    """One line: its name, and the rows on it in the order of time."""

    name: str
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TimeLines:
    """The drawn lines, and those that are not drawn."""

    axis: TimeAxis
    moments: Mapping[int, float]
    """The time of each row that has one, as seconds."""
    lines: tuple[ChartLine, ...]
    total: int
    """The number of lines, including those that are not drawn."""
    notes: tuple[str, ...]
    """The omissions as text."""
    step_max: float
    """Seconds from one point to the next, beyond which something between them is missing."""

    @property
    def has_dots(self) -> bool:
        """Whether each point has a dot."""
        return all(len(line.rows) < DOTS_MAX for line in self.lines)

    def pieces(self, line: ChartLine, column: DrawnColumn) -> Iterator[list[int]]:
        """The rows of a line between its gaps: where a time is missing in the answer, or its value is."""
        piece: list[int] = []
        for row in line.rows:
            is_missing = math.isnan(column.heights[row])
            if piece and (is_missing or self.moments[row] - self.moments[piece[-1]] > self.step_max):
                yield piece
                piece = []
            piece += [] if is_missing else [row]
        if piece:
            yield piece


def clear_parts(piece: Sequence[int], doubtful: Sequence[bool]) -> Iterator[list[int]]:
    """The parts of a piece that are larger than their noise."""
    part: list[int] = []
    for row in piece:
        if doubtful[row]:
            if part:
                yield part
            part = []
        else:
            part.append(row)
    if part:
        yield part


def time_lines(columns: Mapping[str, Sequence[Any]], column: DrawnColumn) -> TimeLines | None:
    """The lines of an answer with these keys; None where they are not a time and at most one other key."""
    axis = time_axis(columns)
    others = [name for name in columns if axis is not None and name not in axis.keys]
    if axis is None or len(others) > 1:
        return None
    names = key_texts(others[0], columns[others[0]]) if others else [""] * len(axis.at)
    moments = {row: moment_number(at) for row, at in enumerate(axis.at) if at is not None}
    distinct = sorted(set(moments.values()))
    if len(distinct) < (MOMENTS_MIN if others else 2) or len({(names[row], at) for row, at in moments.items()}) < len(moments):
        return None
    by_name: dict[str, list[int]] = {}
    for row in sorted(moments, key=moments.__getitem__):
        by_name.setdefault(names[row], []).append(row)
    size = {name: sum(column.heights[row] for row in mine if not math.isnan(column.heights[row])) for name, mine in by_name.items()}
    largest = sorted(by_name, key=lambda name: -size[name])[:LINES_MAX]
    hidden, untimed = len(by_name) - len(largest), len(axis.at) - len(moments)
    notes = [f"The {LINES_MAX} largest of {len(by_name):,} lines are drawn; {hidden:,} left out."] if hidden else []
    notes += [f"{untimed:,} value{' is' if untimed == 1 else 's are'} at no time, and left out."] if untimed else []
    lines = tuple(ChartLine(name, tuple(mine)) for name, mine in by_name.items() if name in largest)
    return TimeLines(axis, moments, lines, len(by_name), tuple(notes), _step_max(distinct))


def _step_max(moments: Sequence[float]) -> float:
    """One and a half steps if most steps are equal; no bound if times are irregular."""
    steps = [b - a for a, b in pairwise(moments)]
    pace = min(steps)
    is_even = sum(step <= _EVEN * pace for step in steps) * 2 >= len(steps)
    return 1.5 * pace if is_even else math.inf
