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

RUNS = (999, 239)
"""Number of repetitions of post-processing, limited by the number of cells."""
CELLS_MAX = (1_000, 5_000)
"""Most noisy cells of an answer for this many runs. Larger answers have no computed error bars: each run computes all cells."""
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

    def values(self, place: str, runs: int) -> list[Floats]:
        """Values with redrawn noise by aggregate, run and row of the table."""
        ...


@dataclass(frozen=True, slots=True)
class NoisyCells:
    """A release and the recipes of its aggregates."""

    recipes: Sequence[Recipe]
    noisy: NoisyTable
    missing: Mapping[str, Sequence[ClippingBias]]
    """By column: the possible missing amount of each cell."""
    scaled: Mapping[str, ScaledColumn] = field(default_factory=dict)
    """Columns that are scaled to a total by a model."""

    def drawn(self, place: str, runs: int) -> dict[str, Floats]:
        """Releases with redrawn noise by column, run and group, in the column's own unit."""
        cells, groups = {}, len(self.noisy.groups)
        for column in self.noisy.columns:
            noise = noise_by_place(column.law, f"{place} {column.name}", count=runs * groups).reshape(runs, groups)
            cells[column.name] = (np.array([float(value) for value in column.values]) - noise) * float(column.step)
            scaled = self.scaled.get(column.name)
            cells[column.name] += _put_back(self.missing[column.name], runs) if scaled is None else 0.0
            if scaled is not None:
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

    def values(self, place: str, runs: int) -> list[Floats]:
        """Values with redrawn noise by aggregate, run and row of the table."""
        drawn = self.cells.drawn(place, runs)
        if self.query.levels is None:
            return [redrawn_values(recipe, drawn) for recipe in self.cells.recipes]
        levels: list[list[Floats]] = []
        for kept in self.query.levels:
            if kept in self.apart:
                own = self.apart[kept].drawn(f"{place} {kept}", runs)
                levels.append([redrawn_values(recipe, own) for recipe in self.apart[kept].recipes])
                continue
            for level in levels_of(self.cells.noisy.groups, (kept,), keys=len(self.query.keys)):
                added = {name: cells[:, np.array(level.members)].sum(axis=2) for name, cells in drawn.items()}
                levels.append([redrawn_values(recipe, added) for recipe in self.cells.recipes])
        nothing = np.zeros((runs, 0))
        return [np.concatenate([nothing, *(values[i] for values in levels)], axis=1) for i in range(len(self.cells.recipes))]


def computed_intervals(
    parts: Sequence[Redrawable], post: PostProcess, answer: pa.Table, rows: list[int] | None, *, confidence: Fraction
) -> dict[str, list[Interval | None]]:
    """Intervals of the computed outputs, by name: only numbers that depend on noise. Empty if none can be given."""
    computed = [
        i
        for i, output in enumerate(post.outputs)
        if isinstance(output.derivation, ComputedOutput) and _is_number(answer, i) and not _SELECTING.search(output.sql)
    ]
    cells = sum(part.size() for part in parts)
    runs = next((runs for runs, most in zip(RUNS, CELLS_MAX, strict=True) if cells <= most), 0)
    outside = int((1 - confidence) / 2 * (runs + 1))
    if not computed or outside < 1 or answer.num_rows == 0 or not _can_be_redrawn(parts, post):
        return {}
    again = replace(post, order_by=(), limit=None, offset=0)
    try:
        table = post_process_runs([_drawn(part, str(number), runs) for number, part in enumerate(parts)], again, runs=runs)
    except Refused:
        return {}  # the answer is valid without an error bar
    drawn_values = _by_row(table, answer, rows, computed, runs)
    if drawn_values is None:
        return {}
    intervals = {}
    for i, output in enumerate(computed):
        shown = [None if value is None else float(value) for value in answer.column(output).to_pylist()]
        if all(value is None or np.all(drawn_values[i, row] == value) for row, value in enumerate(shown)):
            continue  # a key, or a constant
        bars = [_interval(value, drawn_values[i, row], outside) for row, value in enumerate(shown)]
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
    """All but the ``outside`` outermost values on either side; a run without a value counts as outside on both."""
    if value is None:
        return None
    undefined = np.isnan(drawn)
    lower = float(np.sort(np.where(undefined, -np.inf, drawn))[outside - 1])
    upper = float(np.sort(np.where(undefined, np.inf, drawn))[-outside])
    return Interval(min(lower, value), max(upper, value)) if math.isfinite(lower) and math.isfinite(upper) else None


def _drawn(part: Redrawable, place: str, runs: int) -> pa.Table:
    """The input tables of post-processing with redrawn noise, concatenated, with the number of the run."""
    rows = part.table.num_rows
    table = part.table.take(np.tile(np.arange(rows), runs))
    for i, (recipe, drawn) in enumerate(zip(part.recipes, part.values(place, runs), strict=True)):
        values = drawn.ravel()
        # Withheld groups are left out of every run, as of the answer.
        withheld = np.asarray(table.column(f"m{i}")) >= CellMark.MEANINGLESS.code
        undefined = np.isnan(values) | withheld
        defined = np.where(undefined, 0.0, values)
        # Whole values and their noise are far inside 63 bits; the ends make the conversion total whatever happens.
        numbers = np.clip(defined, -(2.0**62), 2.0**62).astype(np.int64) if is_whole(recipe) else defined
        table = table.set_column(table.schema.get_field_index(f"a{i}"), f"a{i}", pa.array(numbers, mask=undefined))
    table = table.append_column(ROW, pa.array(np.tile(np.arange(rows), runs)))
    return table.append_column(RUN, pa.array(np.repeat(np.arange(runs), rows)))


def _put_back(missing: Sequence[ClippingBias], runs: int) -> Floats:
    """The missing amount, spread evenly over the runs: from 0 to all of it, or from its negative to its positive bound."""
    shares = (np.arange(runs) + 0.5) / runs
    below, most = np.array([item.below for item in missing]), np.array([item.most for item in missing])
    return np.asarray(np.outer(shares, most + below) - below)


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
