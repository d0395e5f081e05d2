"""Error bars of what is computed from several noisy values: ratios across queries, sums of answers, rounded averages.

The noise could have been different: all post-processing is done again on tables with the noise taken off and drawn anew, and the
spread of an output over these runs is its error bar (docs/proofs/error-bars.md, "Functions of several cells"). Everything here is
post-processing of released values and public laws. Nothing random is used, least of all the kernel's noise: what replaces the noise is
spread like it, by a hash of its place, so that the same answer always has the same error bars.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lapwing.answers.cut_off import Missing
from lapwing.answers.intervals import Interval
from lapwing.answers.moments import moment_values
from lapwing.answers.post_processing import RUN, post_process_runs
from lapwing.answers.simulation import Floats, noise_by_place
from lapwing.answers.subtotals import levels_of
from lapwing.errors import Refused
from lapwing.kernel.release import NoisyTable
from lapwing.planning.measures import Averaged, Counted, Recipe, Summed, is_whole
from lapwing.planning.moments import Moments
from lapwing.planning.plan import Part
from lapwing.planning.quantiles import Chosen
from lapwing.statements import ROW, CellMark, ComputedOutput, PostProcess

RUNS = (999, 239)
"""How often post-processing is done again: as often as the cells allow."""
CELLS_MAX = (1_000, 5_000)
"""Most noisy cells of an answer for this many runs. Larger answers have no computed error bars: each run computes all cells."""
_SELECTING = re.compile(r"\b(max|min)\(|\bOVER\b|\bLIMIT\b", re.IGNORECASE)
"""The largest of noisy values is biased by choosing it; doing so again says nothing about the truth. So is a place among them."""


@dataclass(frozen=True, slots=True)
class Redrawn:
    """A noisy table with its part, and the table that post-processing sees."""

    part: Part
    noisy: NoisyTable
    table: pa.Table
    missing: Mapping[str, Sequence[Missing]]
    """By column: what may be missing from each cell."""


def computed_intervals(
    parts: Sequence[Redrawn], post: PostProcess, answer: pa.Table, rows: list[int] | None, *, confidence: Fraction
) -> dict[str, list[Interval | None]]:
    """Intervals of the computed outputs, by name: only those that are numbers, and that noise moves. Empty where none can be given."""
    computed = [
        i
        for i, output in enumerate(post.outputs)
        if isinstance(output.derivation, ComputedOutput) and _is_number(answer, i) and not _SELECTING.search(output.sql)
    ]
    cells = sum(len(part.noisy.groups) * max(len(part.noisy.columns), 1) for part in parts)
    runs = next((runs for runs, most in zip(RUNS, CELLS_MAX, strict=True) if cells <= most), 0)
    outside = int((1 - confidence) / 2 * (runs + 1))
    if not computed or outside < 1 or answer.num_rows == 0 or not _can_be_redrawn(parts, post):
        return {}
    again = replace(post, order_by=(), limit=None, offset=0)
    try:
        table = post_process_runs([_drawn(part, str(number), runs) for number, part in enumerate(parts)], again, runs=runs)
    except Refused:
        return {}  # the answer stands; it only has no error bar
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
    """Values of all runs by output, row of the answer and run, not a number where there is none; None if rows cannot be told apart."""
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


def _can_be_redrawn(parts: Sequence[Redrawn], post: PostProcess) -> bool:
    if post.distinct or _SELECTING.search(post.source):
        return False
    # A quantile is selected, not noised.
    return not any(isinstance(recipe, Chosen) for part in parts for recipe in part.part.recipes)


def _telling(answer: pa.Table, outputs: Sequence[pa.ChunkedArray], run: list[int]) -> list[int]:
    """Columns that tell rows apart in every run: whatever is not a number, and whole numbers that other noise would not change, which are
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
    """All but the ``outside`` outermost values on either side; what has no value in a run counts as outside on both."""
    if value is None:
        return None
    undefined = np.isnan(drawn)
    lower = float(np.sort(np.where(undefined, -np.inf, drawn))[outside - 1])
    upper = float(np.sort(np.where(undefined, np.inf, drawn))[-outside])
    return Interval(min(lower, value), max(upper, value)) if math.isfinite(lower) and math.isfinite(upper) else None


def _drawn(part: Redrawn, place: str, runs: int) -> pa.Table:
    """The tables that post-processing would see, had the noise been another; one below the other, with the number of the run."""
    groups = len(part.noisy.groups)
    cells = {}
    for column in part.noisy.columns:
        noise = noise_by_place(column.law, f"{place} {column.name}", count=runs * groups).reshape(runs, groups)
        cells[column.name] = (np.array([float(value) for value in column.values]) - noise) * float(column.step)
        cells[column.name] += _put_back(part.missing[column.name], runs)
    if part.part.query.levels is not None:
        levels = levels_of(part.noisy.groups, part.part.query.levels, keys=len(part.part.query.keys))
        members = [list(added) for level in levels for added in level.members]
        cells = {name: np.stack([values[:, added].sum(axis=1) for added in members], axis=1) for name, values in cells.items()}
    rows = part.table.num_rows
    table = part.table.take(np.tile(np.arange(rows), runs))
    for i, recipe in enumerate(part.part.recipes):
        values = _values(recipe, cells).ravel()
        # What is withheld is in no run, as it is in no answer.
        withheld = np.asarray(table.column(f"m{i}")) >= CellMark.MEANINGLESS.code
        undefined = np.isnan(values) | withheld
        defined = np.where(undefined, 0.0, values)
        # Whole values and their noise are far inside 63 bits; the ends make the conversion total whatever happens.
        numbers = np.clip(defined, -(2.0**62), 2.0**62).astype(np.int64) if is_whole(recipe) else defined
        table = table.set_column(table.schema.get_field_index(f"a{i}"), f"a{i}", pa.array(numbers, mask=undefined))
    table = table.append_column(ROW, pa.array(np.tile(np.arange(rows), runs)))
    return table.append_column(RUN, pa.array(np.repeat(np.arange(runs), rows)))


def _put_back(missing: Sequence[Missing], runs: int) -> Floats:
    """What may be missing, more of it from run to run: from nothing to all of it, or from less to more than nothing."""
    shares = (np.arange(runs) + 0.5) / runs
    below, most = np.array([item.below for item in missing]), np.array([item.most for item in missing])
    return np.asarray(np.outer(shares, most + below) - below)


def _values(recipe: Recipe, cells: dict[str, Floats]) -> Floats:
    """An aggregate's values from its noisy sums, as they would be shown."""
    match recipe:
        case Counted(vector):
            return np.rint(cells[vector])
        case Summed(vector, whole):
            return np.rint(cells[vector]) if whole else cells[vector]
        case Averaged():
            count = cells[recipe.count]
            with np.errstate(all="ignore"):
                mean = cells[recipe.total] / count + recipe.offset / recipe.steps
            return np.where(np.rint(count) >= 1, np.clip(mean, float(recipe.lower), float(recipe.upper)), np.nan)
        case Moments():
            return moment_values(recipe, cells)
        case Chosen():
            raise AssertionError("quantiles are not redrawn")
        case _:
            assert_never(recipe)
