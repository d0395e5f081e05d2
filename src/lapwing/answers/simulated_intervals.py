"""Error bars of outputs computed from several noisy values: ratios across queries, sums of answers, rounded averages.

All post-processing is repeated on tables with redrawn noise, and the
spread of an output over these runs is its error bar (docs/proofs/error-bars.md, "Functions of several cells"). Everything here is
post-processing of released values and public laws. No randomness is used, in particular not the kernel's noise: the replacement is
distributed like the noise, by a hash of its place, so that the same answer always has the same error bars.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Protocol, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lapwing.answers.clipping_bias import ClippingBias
from lapwing.answers.intervals import Interval
from lapwing.answers.post_processing import RUN, post_process_runs
from lapwing.answers.ratio_estimator import ScaledColumn
from lapwing.answers.simulation import Floats, noise_by_place
from lapwing.answers.subtotals import levels_of
from lapwing.answers.variances import moment_values
from lapwing.errors import Refused
from lapwing.kernel.release import NoisyTable
from lapwing.planning.measures import AverageMeasure, CountMeasure, Recipe, SumMeasure, is_whole
from lapwing.planning.quantiles import QuantileMeasure
from lapwing.planning.variances import Moments
from lapwing.statements import ROW, CellMark, ComputedOutput, PostProcess, PrivateQuery

RUNS = (999, 239, 79)
"""Number of repetitions of post-processing in each corner of what may be missing."""
CELLS_MAX = (1_000, 10_000, 50_000)
"""Most noisy cells of an answer, times corners, for this many runs. Larger answers have no computed error bars: each run computes all
cells."""
PAIRS_MAX = 5_000
"""Most pairs of rows of a join without an equality: each run pairs them all."""
_SELECTING = re.compile(
    r"\bcount\(DISTINCT|\b((arg_)?(max|min)|mode|quantile_\w+|stddev_\w+|var_\w+)\(|\b(OVER|LIMIT|DISTINCT ON)\b", re.IGNORECASE
)
"""The largest of noisy values is biased by choosing it; repetition does not measure that bias. The same holds for ranks; and
noise inflates the spread of values, and more noise inflates it further."""


class Redrawable(Protocol):
    """The answer of a query as input of post-processing, which can be redrawn with other noise."""

    @property
    def table(self) -> pa.Table:
        """The input of post-processing."""
        ...

    @property
    def recipes(self) -> Sequence[Recipe]:
        """The recipes of its aggregates."""
        ...

    def size(self) -> int:
        """The number of noisy cells."""
        ...

    def clipped(self, place: str) -> set[str]:
        """The places of columns of which something may be missing; columns that are clipped together have one place."""
        ...

    def values(self, place: str, runs: int, missing: MissingShares) -> list[Floats]:
        """Values with redrawn noise by aggregate, run and row of the table, and with these shares of what may be missing."""
        ...


class MissingShares:
    """What share of the possibly missing amount each cell has in each run: evenly from 0 to 1, as under planning rules 1."""

    def of(self, place: str, runs: int, groups: int) -> Floats:
        """By run and group, for the column at this place."""
        return np.repeat(((np.arange(runs) + 0.5) / runs)[:, None], groups, axis=1)


@dataclass(frozen=True, slots=True)
class Corner(MissingShares):
    """All or nothing is missing of a cell, by a binary digit of its number."""

    digit: int
    otherwise: bool
    """Whether a digit of 0 means all."""
    places: Mapping[str, int]
    """Numbers of the columns."""
    by_group: bool
    """Whether cells of different groups meet in an output, so that they have numbers of their own."""

    def of(self, place: str, runs: int, groups: int) -> Floats:
        """By run and group, for the column at this place."""
        numbers = self.places[place] + len(self.places) * np.arange(groups) * self.by_group
        return np.repeat(((numbers >> self.digit) & 1 != self.otherwise).astype(np.float64)[None, :], runs, axis=0)


def corners_of(parts: Sequence[Redrawable], *, by_group: bool) -> list[MissingShares]:
    """Corners in which any two cells miss both, none, and one or the other; one even spread where nothing may be missing.

    Two different numbers differ in some binary digit. So an output that rises or falls with each of two cells, like their difference or
    ratio, takes its largest and least values at these corners.
    """
    names = sorted({place for number, part in enumerate(parts) for place in part.clipped(str(number))})
    if not names:
        return [MissingShares()]
    numbers = len(names) * (max(part.table.num_rows for part in parts) if by_group else 1)
    digits = (numbers - 1).bit_length() + 1  # the last digit is 0 for all
    places = {name: number for number, name in enumerate(names)}
    return [Corner(digit, otherwise, places, by_group) for digit in range(digits) for otherwise in (False, True)]


@dataclass(frozen=True, slots=True)
class NoisyCells:
    """A release and the recipes of its aggregates."""

    recipes: Sequence[Recipe]
    noisy: NoisyTable
    missing: Mapping[str, Sequence[ClippingBias]]
    """By column: the possible missing amount of each cell."""
    scaled: Mapping[str, ScaledColumn] = field(default_factory=dict)
    """Columns that are scaled to a total by a model."""
    clipped_with: Mapping[str, str] = field(default_factory=dict)
    """By column of which something may be missing: the column with which it is clipped, or itself. Empty under planning rules 1."""

    def clipped(self, place: str) -> set[str]:
        """The places of columns of which something may be missing."""
        return {f"{place} {name}" for name in self.clipped_with.values()}

    def drawn(self, place: str, runs: int, missing: MissingShares) -> dict[str, Floats]:
        """Releases with redrawn noise by column, run and group, in the column's own unit."""
        cells, groups = {}, len(self.noisy.groups)
        for column in self.noisy.columns:
            noise = noise_by_place(column.law, f"{place} {column.name}", count=runs * groups).reshape(runs, groups)
            cells[column.name] = (np.array([float(value) for value in column.values]) - noise) * float(column.step)
            scaled = self.scaled.get(column.name)
            if scaled is None:
                with_it = self.clipped_with.get(column.name)
                shares = MissingShares().of("", runs, groups) if with_it is None else missing.of(f"{place} {with_it}", runs, groups)
                cells[column.name] += _put_back(self.missing[column.name], shares)
            else:
                cells[column.name] = scaled.redrawn(cells[column.name], f"{place} {column.name}")
        return cells


@dataclass(frozen=True, slots=True)
class SimulatedRelease:
    """The release of a query, and the input table of post-processing."""

    query: PrivateQuery
    cells: NoisyCells
    table: pa.Table
    apart: Mapping[tuple[int, ...], NoisyCells] = field(default_factory=dict)
    """Releases of separately measured levels."""

    @property
    def recipes(self) -> Sequence[Recipe]:
        """The recipes of its aggregates."""
        return self.cells.recipes

    def size(self) -> int:
        """The number of noisy cells."""
        return sum(len(each.noisy.groups) * max(len(each.noisy.columns), 1) for each in (self.cells, *self.apart.values()))

    def clipped(self, place: str) -> set[str]:
        """The places of columns of which something may be missing; columns that are clipped together have one place."""
        return self.cells.clipped(place).union(*(cells.clipped(f"{place} {kept}") for kept, cells in self.apart.items()))

    def values(self, place: str, runs: int, missing: MissingShares) -> list[Floats]:
        """Values with redrawn noise by aggregate, run and row of the table, and with these shares of what may be missing."""
        drawn = self.cells.drawn(place, runs, missing)
        if self.query.levels is None:
            return [redrawn_values(recipe, drawn) for recipe in self.cells.recipes]
        levels: list[list[Floats]] = []
        for kept in self.query.levels:
            if kept in self.apart:
                own = self.apart[kept].drawn(f"{place} {kept}", runs, missing)
                levels.append([redrawn_values(recipe, own) for recipe in self.apart[kept].recipes])
                continue
            for level in levels_of(self.cells.noisy.groups, (kept,), keys=len(self.query.keys)):
                added = {name: cells[:, np.array(level.members)].sum(axis=2) for name, cells in drawn.items()}
                levels.append([redrawn_values(recipe, added) for recipe in self.cells.recipes])
        nothing = np.zeros((runs, 0))
        return [np.concatenate([nothing, *(values[i] for values in levels)], axis=1) for i in range(len(self.cells.recipes))]


@dataclass(frozen=True, slots=True)
class SimulatedPieces:
    """The releases of groups that were measured in pieces, in the order of the rows of the table."""

    pieces: Sequence[Redrawable]
    table: pa.Table

    @property
    def recipes(self) -> Sequence[Recipe]:
        """The recipes of the aggregates, the same in all pieces."""
        return self.pieces[0].recipes

    def size(self) -> int:
        """The number of noisy cells."""
        return sum(piece.size() for piece in self.pieces)

    def clipped(self, place: str) -> set[str]:
        """The places of columns of which something may be missing."""
        return set[str]().union(*(piece.clipped(f"{place} {number}") for number, piece in enumerate(self.pieces)))

    def values(self, place: str, runs: int, missing: MissingShares) -> list[Floats]:
        """Values with redrawn noise by aggregate, run and row of the table, and with these shares of what may be missing."""
        drawn = [piece.values(f"{place} {number}", runs, missing) for number, piece in enumerate(self.pieces)]
        return [np.concatenate(of_pieces, axis=1) for of_pieces in zip(*drawn, strict=True)]


def computed_intervals(
    parts: Sequence[Redrawable], post: PostProcess, answer: pa.Table, rows: list[int] | None, *, confidence: Fraction
) -> dict[str, list[Interval | None]]:
    """Intervals of the computed outputs, by name: only numbers that depend on noise. Empty if none can be given."""
    computed = [
        i
        for i, output in enumerate(post.outputs)
        if isinstance(output.derivation, ComputedOutput) and _is_number(answer, i) and not _SELECTING.search(output.sql)
    ]
    corners = corners_of(parts, by_group=post.rows_of is None)
    cells = sum(part.size() for part in parts) * len(corners)
    runs = next((runs for runs, most in zip(RUNS, CELLS_MAX, strict=True) if cells <= most), 0)
    outside = int((1 - confidence) / 2 * (runs + 1))
    if not computed or outside < 1 or answer.num_rows == 0 or not _can_be_redrawn(parts, post):
        return {}
    again = replace(post, order_by=(), limit=None, offset=0)
    try:
        every = [_drawn(part, str(number), runs, corners) for number, part in enumerate(parts)]
        table = post_process_runs(every, again, runs=runs * len(corners))
    except Refused:
        return {}  # the answer is valid without an error bar
    drawn_values = _by_row(table, answer, rows, computed, runs * len(corners))
    if drawn_values is None:
        return {}
    intervals = {}
    for i, output in enumerate(computed):
        shown = [None if value is None else float(value) for value in answer.column(output).to_pylist()]
        if all(value is None or np.all(drawn_values[i, row] == value) for row, value in enumerate(shown)):
            continue  # a key, or a constant
        bars = [_interval(value, drawn_values[i, row].reshape(len(corners), runs), outside) for row, value in enumerate(shown)]
        if any(bar is not None for bar in bars):
            intervals[post.outputs[output].name] = bars
    return intervals


def _by_row(table: pa.Table, answer: pa.Table, rows: list[int] | None, computed: list[int], runs: int) -> npt.NDArray[np.float64] | None:
    """Values of all runs by output, row of the answer and run, NaN where there is none; None if rows cannot be distinguished."""
    run = table.column(0).to_pylist()
    outputs = [table.column(i + 1) for i in range(answer.num_columns)]
    if rows is not None:
        names: list[Any] = list(rows)
        others: list[Any] = table.column(table.num_columns - 1).to_pylist()
    else:
        telling = [] if answer.num_rows == 1 else _telling(answer, outputs, run)
        names = _tuples([answer.column(i) for i in telling], answer.num_rows)
        others = _tuples([outputs[i] for i in telling], table.num_rows)
    place = {name: row for row, name in enumerate(names)}
    if len(place) < len(names):
        return None
    drawn = np.full((len(computed), answer.num_rows, runs), np.nan)
    columns = [outputs[output].to_pylist() for output in computed]
    for number, name in enumerate(others):
        if (row := place.get(name)) is not None:
            for i, column in enumerate(columns):
                drawn[i, row, run[number]] = math.nan if column[number] is None else float(column[number])
    return drawn


def _is_number(table: pa.Table, output: int) -> bool:
    kind = table.schema.field(output).type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _can_be_redrawn(parts: Sequence[Redrawable], post: PostProcess) -> bool:
    if post.distinct or post.distinct_on or post.qualify is not None or _SELECTING.search(post.source):
        return False
    groups = [part.table.num_rows for part in parts]
    if any((pairs.given(groups) or 0) > PAIRS_MAX for pairs in post.crossed):
        return False
    # A quantile is selected, not noised.
    return not any(isinstance(recipe, QuantileMeasure) for part in parts for recipe in part.recipes)


def _telling(answer: pa.Table, outputs: Sequence[pa.ChunkedArray], run: list[int]) -> list[int]:
    """Columns that distinguish rows in every run: columns that are not numbers, and whole numbers that do not depend on noise, which are
    keys.
    """
    telling = []
    for i in range(answer.num_columns):
        if not _is_number(answer, i):
            telling.append(i)
        elif pa.types.is_integer(answer.schema.field(i).type):
            values = outputs[i].to_pylist()
            first, second = ({value for value, at in zip(values, run, strict=True) if at == one} for one in (0, 1))
            if set(answer.column(i).to_pylist()) <= first & second:
                telling.append(i)
    return telling


def _tuples(columns: Sequence[pa.ChunkedArray], count: int) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in columns), strict=True)) if columns else [()] * count


def _interval(value: float | None, drawn: Floats, outside: int) -> Interval | None:
    """All but the ``outside`` outermost values on either side in each corner; a run without a value counts as outside on both."""
    if value is None:
        return None
    undefined = np.isnan(drawn)
    lower = float(np.sort(np.where(undefined, -np.inf, drawn))[:, outside - 1].min())
    upper = float(np.sort(np.where(undefined, np.inf, drawn))[:, -outside].max())
    return Interval(min(lower, value), max(upper, value)) if math.isfinite(lower) and math.isfinite(upper) else None


def _drawn(part: Redrawable, place: str, runs: int, corners: Sequence[MissingShares]) -> pa.Table:
    """The input tables of post-processing with redrawn noise, concatenated, with the number of the run."""
    rows = part.table.num_rows
    table = part.table.take(np.tile(np.arange(rows), runs * len(corners)))
    drawn = [part.values(place, runs, corner) for corner in corners]
    for i, recipe in enumerate(part.recipes):
        values = np.concatenate([of_corner[i].ravel() for of_corner in drawn])
        # Withheld groups are left out of every run, as of the answer.
        withheld = np.asarray(table.column(f"m{i}")) >= CellMark.MEANINGLESS.code
        undefined = np.isnan(values) | withheld
        defined = np.where(undefined, 0.0, values)
        # Whole values and their noise are far inside 63 bits; the ends make the conversion total whatever happens.
        numbers = np.clip(defined, -(2.0**62), 2.0**62).astype(np.int64) if is_whole(recipe) else defined
        table = table.set_column(table.schema.get_field_index(f"a{i}"), f"a{i}", pa.array(numbers, mask=undefined))
    table = table.append_column(ROW, pa.array(np.tile(np.arange(rows), runs * len(corners))))
    return table.append_column(RUN, pa.array(np.repeat(np.arange(runs * len(corners)), rows)))


def _put_back(missing: Sequence[ClippingBias], shares: Floats) -> Floats:
    """The missing amount by run and group: shares from 0 to all of it, or from its negative to its positive bound."""
    below, most = np.array([item.below for item in missing]), np.array([item.most for item in missing])
    return np.asarray(shares * (most + below) - below)


def redrawn_values(recipe: Recipe, cells: dict[str, Floats]) -> Floats:
    """An aggregate's values from its noisy sums, as they would be displayed."""
    match recipe:
        case CountMeasure(vector):
            return np.rint(cells[vector])
        case SumMeasure(vector, whole):
            return np.rint(cells[vector]) if whole else cells[vector]
        case AverageMeasure():
            count = cells[recipe.count]
            with np.errstate(all="ignore"):
                mean = cells[recipe.total] / count + recipe.offset / recipe.steps
            return np.where(np.rint(count) >= 1, np.clip(mean, float(recipe.lower), float(recipe.upper)), np.nan)
        case Moments():
            return moment_values(recipe, cells)
        case QuantileMeasure():
            raise AssertionError("quantiles are not redrawn")
        case _:
            assert_never(recipe)
