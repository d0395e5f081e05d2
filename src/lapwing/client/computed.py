"""Error bars of what is computed from several noisy values: ratios across queries, sums of answers, rounded averages.

The noise could have been another: the whole of post-processing is done again on tables with the noise taken off and drawn anew, and the
spread of an output over these runs is its error bar (docs/proofs/error-bars.md, "Functions of several cells"). Everything here is
post-processing of released values and public laws. Nothing random is used, least of all the kernel's noise: what is put in
the place of the noise is spread like it by a hash of its place, so that the same answer always has the same error bars.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, assert_never

import numpy as np
import pyarrow as pa

from lapwing.client.levels import levels_of
from lapwing.client.moment_estimates import moment_values
from lapwing.client.simulation import Floats, noise_by_place
from lapwing.engines.scratch import post_process
from lapwing.kernel.intervals import Interval
from lapwing.kernel.release import NoisyTable
from lapwing.planning.measures import Averaged, Counted, Recipe, Summed, is_whole
from lapwing.planning.moments import Moments
from lapwing.planning.plan import Part
from lapwing.planning.quantiles import Chosen
from lapwing.statements import ComputedOutput, PostProcess

RUNS = (239, 399)
"""How often post-processing is done again; the larger number for confidences that the smaller cannot tell."""
CELLS_MAX = 5_000
"""Error bars are computed for answers with at most so many noisy cells: each run computes all of them."""
_SELECTING = re.compile(r"\b(max|min)\(|\bOVER\b|\bLIMIT\b", re.IGNORECASE)
"""The largest of noisy values is biased by choosing it; doing so again says nothing of the truth. So is a place among them."""


@dataclass(frozen=True, slots=True)
class Redrawn:
    """A noisy table with its part, and the table that post-processing sees."""

    part: Part
    noisy: NoisyTable
    table: pa.Table


def computed_intervals(
    parts: Sequence[Redrawn], post: PostProcess, answer: pa.Table, rows: list[int] | None, *, confidence: Fraction
) -> dict[str, list[Interval | None]]:
    """Intervals of the computed outputs, by name: only those that are numbers, and that noise moves. Empty where none can be given."""
    wanted = [
        i
        for i, output in enumerate(post.outputs)
        if isinstance(output.derivation, ComputedOutput) and _is_number(answer, i) and not _SELECTING.search(output.sql)
    ]
    runs = next((runs for runs in RUNS if (1 - confidence) / 2 * (runs + 1) >= 1), None)
    if not wanted or runs is None or answer.num_rows == 0 or not _can_be_redrawn(parts, post):
        return {}
    again = replace(post, order_by=(), limit=None, offset=0)

    def redone(run: int) -> tuple[pa.Table, list[int] | None]:
        return post_process([_drawn(part, f"{run} {number}") for number, part in enumerate(parts)], again)

    telling = [] if rows is not None or answer.num_rows == 1 else _telling(answer, [redone(run)[0] for run in range(2)])
    names = _identities(answer, rows, telling)
    if len(set(names)) < len(names):
        return {}
    place = {name: row for row, name in enumerate(names)}
    found = np.full((len(wanted), answer.num_rows, runs), np.nan)
    for run in range(runs):
        table, numbers = redone(run)
        columns = [table.column(output).to_pylist() for output in wanted]
        for row, name in enumerate(_identities(table, numbers, telling)):
            if name in place:
                for i, column in enumerate(columns):
                    found[i, place[name], run] = math.nan if column[row] is None else float(column[row])
    outside = int((1 - confidence) / 2 * (runs + 1))
    intervals = {}
    for i, output in enumerate(wanted):
        shown = [None if value is None else float(value) for value in answer.column(output).to_pylist()]
        if all(value is None or np.all(found[i, row] == value) for row, value in enumerate(shown)):
            continue  # a key, or a constant
        bars = [_interval(value, found[i, row], outside) for row, value in enumerate(shown)]
        if any(bar is not None for bar in bars):
            intervals[post.outputs[output].name] = bars
    return intervals


def _is_number(table: pa.Table, output: int) -> bool:
    kind = table.schema.field(output).type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _can_be_redrawn(parts: Sequence[Redrawn], post: PostProcess) -> bool:
    if post.distinct or _SELECTING.search(post.source):
        return False
    if any(isinstance(recipe, Chosen) for part in parts for recipe in part.part.recipes):
        return False  # a quantile is selected, not noised
    return sum(len(part.noisy.groups) * max(len(part.noisy.columns), 1) for part in parts) <= CELLS_MAX


def _telling(answer: pa.Table, others: Sequence[pa.Table]) -> list[int]:
    """Columns that tell rows apart in every run: what is no number, and whole numbers that no other noise changed, which are keys."""
    found = []
    for i in range(answer.num_columns):
        values = set(answer.column(i).to_pylist())
        whole = pa.types.is_integer(answer.schema.field(i).type)
        if not _is_number(answer, i) or (whole and all(values <= set(table.column(i).to_pylist()) for table in others)):
            found.append(i)
    return found


def _identities(table: pa.Table, rows: list[int] | None, telling: list[int]) -> list[Any]:
    """What a row goes by: its place in a noisy table, or the values that tell it apart; nothing for the only row."""
    if rows is not None:
        return list(rows)
    columns = [table.column(i).to_pylist() for i in telling]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _interval(value: float | None, drawn: Floats, outside: int) -> Interval | None:
    """All but the ``outside`` outermost values on either side; what has no value in a run counts as outside on both."""
    if value is None:
        return None
    undefined = np.isnan(drawn)
    lower = float(np.sort(np.where(undefined, -np.inf, drawn))[outside - 1])
    upper = float(np.sort(np.where(undefined, np.inf, drawn))[-outside])
    return Interval(min(lower, value), max(upper, value)) if math.isfinite(lower) and math.isfinite(upper) else None


def _drawn(part: Redrawn, run: str) -> pa.Table:
    """The table as post-processing sees it, had the noise been another."""
    columns = {column.name: column for column in part.noisy.columns}
    cells = {
        name: (np.array([float(value) for value in column.values]) - noise_by_place(column.law, f"{run} {name}", count=len(column.values)))
        * float(column.step)
        for name, column in columns.items()
    }
    levels = levels_of(part.noisy.groups, part.part.query.levels, keys=len(part.part.query.keys))
    summed = {
        name: np.array([values[list(members)].sum() for level in levels for members in level.members]) if part.part.query.levels else values
        for name, values in cells.items()
    }
    table = part.table
    for i, recipe in enumerate(part.part.recipes):
        values = _values(recipe, summed)
        undefined = np.isnan(values)
        defined = np.where(undefined, 0.0, values)
        # Whole values and their noise are far inside 63 bits; the ends make the conversion total whatever happens.
        numbers = np.clip(defined, -(2.0**62), 2.0**62).astype(np.int64) if is_whole(recipe) else defined
        array = pa.array(numbers, mask=undefined)
        table = table.set_column(table.schema.get_field_index(f"a{i}"), f"a{i}", array)
    return table


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
