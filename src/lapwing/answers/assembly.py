"""From a release to an answer: values, error bars, notes. Everything here is post-processing of noisy values and public facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol, assert_never

import pyarrow as pa

from lapwing.answers.clipping_bias import ClippingBias, missing_of, ratio_reaching
from lapwing.answers.empty_groups import occupied_groups, only
from lapwing.answers.estimates import Estimate, estimates_of
from lapwing.answers.intervals import Interval, ratio_interval
from lapwing.answers.post_processing import post_process, typed_array
from lapwing.answers.ratio_estimator import scaled_column, scaled_estimates
from lapwing.answers.simulated_intervals import NoisyCells, Redrawable, SimulatedPieces, SimulatedRelease, computed_intervals
from lapwing.answers.subtotals import Level, levels_of, shown_levels
from lapwing.answers.suppression import Judged, Marks
from lapwing.errors import Refused
from lapwing.kernel.domains import Domain, Kind, kind_of
from lapwing.kernel.expressions import Value
from lapwing.kernel.facts import Facts
from lapwing.kernel.release import NoisyColumn, NoisyTable, Released
from lapwing.kernel.stability import domain_of
from lapwing.planning.measures import CountMeasure, Recipe, SumMeasure, is_whole
from lapwing.planning.planned import Part, PlannedStatement
from lapwing.planning.quantiles import QuantileMeasure
from lapwing.statements import (
    CellMark,
    ComputedOutput,
    KeyOutput,
    LinearOutput,
    Noisy,
    Output,
    PostProcess,
    PrivateQuery,
    QuantileOutput,
    RatioOutput,
)

PAIRS_MAX = 1_000_000
"""Most pairs of rows that a join of answers without an equality may form."""


@dataclass(frozen=True, slots=True)
class AssembledAnswer:
    """The answer's table, and one interval per row for every column that has them."""

    table: pa.Table
    intervals: dict[str, list[Interval | None]]
    marks: dict[str, list[CellMark | None]]
    """One mark or None per row for every column that comes from noisy values."""
    aggregated: tuple[int, int] = (0, 0)
    """For answers that are aggregated again: how many of their groups are noise only, and how many there are."""


def assemble(
    planned: PlannedStatement, released: Released | None, post: PostProcess, *, confidence: Fraction, withholding: bool = True
) -> AssembledAnswer:
    """Estimates for every group, then HAVING, ORDER BY, LIMIT and expressions on the noisy tables alone.

    Without ``withholding`` no cell is marked or left out, as needed to measure error bars.
    """
    parts = [_part(part, planned, released, confidence, withholding=withholding) for part in planned.parts]
    kept = [_occupied(part, planned, released) if post.computes_over_rows else None for part in planned.parts]
    parts = [seen if places is None else _kept(seen, places) for seen, places in zip(parts, kept, strict=True)]
    if any(part.scaled for part in planned.parts):
        post = replace(post, outputs=tuple(_without_ratio(output) for output in post.outputs))
    redrawn: list[Redrawable] | None = None
    if released is not None and all(part.number is not None for part in planned.parts) and has_computed(post):
        redrawn = []
        for part, seen, places in zip(planned.parts, parts, kept, strict=True):
            redrawn.append(_redrawable(part, planned, released, confidence, places, seen.table))

    def ratio(output: RatioOutput, above: int, below: int) -> Interval | None:
        return _ratio_of_cells(output, parts, above, below, confidence)

    return put_together(parts, post, confidence=confidence, ratio=ratio, redrawn=redrawn)


class AnsweredPart(Protocol):
    """The noisy answer of one private query."""

    @property
    def estimates(self) -> Sequence[Sequence[Estimate]]:
        """By aggregate and row of the table."""
        ...

    @property
    def table(self) -> pa.Table:
        """The input of post-processing."""
        ...


def _redrawable(
    part: Part, planned: PlannedStatement, released: Released, confidence: Fraction, places: Sequence[int] | None, table: pa.Table
) -> Redrawable:
    """A part whose noise can be redrawn; ``places`` are those of its groups that are kept."""
    rules = planned.facts.planning_rules
    if not part.pieces:
        apart = {level: _cells(total, released, confidence, rules=rules) for level, total in part.apart.items()}
        return SimulatedRelease(part.query, _cells(part, released, confidence, places, rules=rules), table, apart)
    pieces, start = list[Redrawable](), 0
    for piece in part.pieces:
        many = len(released.tables[piece.number or 0].groups)
        own = None if places is None else [place - start for place in places if start <= place < start + many]
        pieces.append(_redrawable(piece, planned, released, confidence, own, table))
        start += many
    return SimulatedPieces(pieces, table)


def has_computed(post: PostProcess) -> bool:
    """Whether some outputs have simulated error bars."""
    return any(isinstance(output.derivation, ComputedOutput) for output in post.outputs)


def put_together(
    parts: Sequence[AnsweredPart],
    post: PostProcess,
    *,
    confidence: Fraction,
    ratio: Callable[[RatioOutput, int, int], Interval | None],
    redrawn: Sequence[Redrawable] | None,
) -> AssembledAnswer:
    """The answer of a statement from those of its private queries, freshly measured or released.

    ``ratio`` gives the interval of a ratio of an aggregate in one row and another in another; ``redrawn`` are the parts with redrawn noise,
    None if unavailable: computed outputs have no intervals then.
    """
    processed = post_process([part.table for part in parts], post)
    table, rows = processed.table, processed.rows
    intervals: dict[str, list[Interval | None]] = {}
    places = [None] * table.num_rows if rows is None else rows
    for output in post.outputs:
        derivation = output.derivation
        if isinstance(derivation, QuantileOutput):  # only those that are read off a tree have bars
            bars = _derived(derivation, parts, post.rows_of, places, ratio)
            if any(bar is not None for bar in bars):
                intervals[output.name] = bars
        elif not isinstance(derivation, KeyOutput | ComputedOutput):
            intervals[output.name] = _derived(derivation, parts, post.rows_of, places, ratio)
    if redrawn is not None and has_computed(post):
        intervals |= computed_intervals(redrawn, post, table, rows, confidence=confidence)
    for name in intervals.keys() & processed.marks.keys():
        pairs = zip(intervals[name], processed.marks[name], strict=True)
        intervals[name] = [None if mark is CellMark.MEANINGLESS else interval for interval, mark in pairs]
    return AssembledAnswer(table, intervals, processed.marks, _aggregated(parts) if post.aggregates else (0, 0))


def _aggregated(parts: Sequence[AnsweredPart]) -> tuple[int, int]:
    """Among answers with several groups: the number of groups with a value that is noise only, and the number of groups."""
    noise = groups = 0
    for table in (part.table for part in parts if part.table.num_rows > 1):
        codes = [table.column(name).to_pylist() for name in table.column_names if name.startswith("m")]
        noise += sum(CellMark.NOISE_ONLY.code in row for row in zip(*codes, strict=True))
        groups += table.num_rows
    return noise, groups


def _occupied(part: Part, planned: PlannedStatement, released: Released | None) -> list[int] | None:
    """The indices of the groups that have rows, where the noise allows to tell."""
    if part.number is None or released is None:
        return None
    if part.pieces:
        found, start = list[int](), 0
        for piece in part.pieces:
            places = _occupied(piece, planned, released)
            if places is None:
                return None
            found += [start + place for place in places]
            start += len(released.tables[piece.number or 0].groups)
        return found
    return occupied_groups(part, planned.queries[part.number], released.tables[part.number], planned.facts)


def _kept(part: NoisyPart, places: Sequence[int]) -> NoisyPart:
    """Only the groups at these indices."""
    estimates = [[column[place] for place in places] for column in part.estimates]
    return NoisyPart([part.rows[place] for place in places], estimates, part.table.take(pa.array(places, pa.int64())))


def _cells(part: Part, released: Released, confidence: Fraction, places: Sequence[int] | None = None, *, rules: int) -> NoisyCells:
    noisy = released.tables[part.number or 0]
    noisy = noisy if places is None else only(noisy, places)
    rows = {total: noisy.column(count) for total, count in part.centred.items()}
    missing = {
        column.name: missing_of(part, column, confidence=float(confidence), terms=1, rows=rows.get(column.name)) for column in noisy.columns
    }
    clipped = {name for name, cells in missing.items() if any(cell.most or cell.below for cell in cells)} - part.scaled.keys()
    pairs = {**part.together, **part.centred}
    leaders = {name: other for name, other in pairs.items() if pairs.get(other) != name or other < name}  # some pairs are named both ways
    clipped_with = {name: leaders.get(name, name) for name in clipped} if rules >= 2 else {}
    return NoisyCells(part.recipes, noisy, missing, {name: scaled_column(part, name, released) for name in part.scaled}, clipped_with)


@dataclass(frozen=True, slots=True)
class NoisyRow:
    """The origin of a row of a part's table."""

    recipes: tuple[Recipe, ...]
    table: NoisyTable
    place: int
    terms: int
    """The number of released groups that it adds up."""


@dataclass(frozen=True, slots=True)
class NoisyPart:
    """One private query's release with its estimates, and the input table of post-processing."""

    rows: Sequence[NoisyRow]
    estimates: Sequence[Sequence[Estimate]]
    table: pa.Table


def _without_ratio(output: Output) -> Output:
    """A ratio of scaled groups is not a ratio of two released cells: its bar is simulated like that of any computed output."""
    return replace(output, derivation=ComputedOutput()) if isinstance(output.derivation, RatioOutput) else output


def _part(part: Part, planned: PlannedStatement, released: Released | None, confidence: Fraction, *, withholding: bool) -> NoisyPart:
    if part.number is None or released is None:
        groups = part.groups or (() if part.query.keys else ((),))
        known = Estimate(0, Interval(0.0, 0.0))
        nothing = [_of_no_rows(recipe, planned.facts) for recipe in part.recipes]
        certain = [[Estimate(None, None) if value is None else known] * len(groups) for value in nothing]
        return NoisyPart((), certain, empty_or_declared(part, planned, groups))
    shown = shown_levels(part, released.tables)
    estimates: list[list[Estimate]] = [[] for _ in part.recipes]
    marks: list[Marks] = [[] for _ in part.recipes]
    rows: list[NoisyRow] = []
    for one in shown:
        table, terms = one.table, one.level.terms
        for i, recipe in enumerate(one.part.recipes):
            measuring, noisy = one.part, table
            if isinstance(recipe, QuantileMeasure) and one.part.quantiles is not None:
                measuring = one.part.quantiles
                noisy = released.tables[measuring.number or 0]
            query = planned.queries[measuring.number or 0]
            if isinstance(recipe, CountMeasure | SumMeasure) and recipe.vector in one.part.scaled:
                found = scaled_estimates(recipe, one.part, released, planned, confidence=confidence)
            else:
                rules = planned.facts.planning_rules
                found = estimates_of(recipe, measuring, noisy, query, confidence=confidence, terms=terms, rules=rules)
            void = one.part.nothing_to_sum.get(i, frozenset())
            if void:
                found = [Estimate(None, None) if group in void else each for group, each in zip(table.groups, found, strict=True)]
            own: Marks = [None] * len(found)
            if withholding:
                own = Judged(measuring, query, noisy, terms).marks(recipe, found, confidence=confidence)
            own = [None if group in void else mark for group, mark in zip(table.groups, own, strict=True)] if void else own
            pairs = zip(found, own, strict=True)
            estimates[i] += [Estimate(None, None) if mark is CellMark.MEANINGLESS else estimate for estimate, mark in pairs]
            marks[i] += own
        rows += [NoisyRow(one.part.recipes, table, place, terms) for place in range(len(table.groups))]
    values = [[estimate.value for estimate in column] for column in estimates]
    return NoisyPart(
        rows, estimates, noisy_table(part.query, planned.columns(part), part.recipes, [one.level for one in shown], values, marks)
    )


def _of_no_rows(recipe: Recipe, facts: Facts) -> int | None:
    """The value of an aggregate of no rows: 0 for counts, else NULL. Versions without stored number types keep sums of 0."""
    return 0 if isinstance(recipe, CountMeasure) or (isinstance(recipe, SumMeasure) and not facts.typed_numbers) else None


def empty_or_declared(part: Part, planned: PlannedStatement, groups: Sequence[tuple[Value, ...]]) -> pa.Table:
    """A table of the right types with these groups and no measured value: of groups that cannot have a row, counts are 0."""
    levels = levels_of(groups, part.query.levels, keys=len(part.query.keys))
    rows = sum(len(level.groups) for level in levels)
    values = [[_of_no_rows(recipe, planned.facts)] * rows for recipe in part.recipes]
    return noisy_table(part.query, planned.columns(part), part.recipes, levels, values, [[None] * rows for _ in part.recipes])


def check_post(planned: PlannedStatement, post: PostProcess) -> None:
    """Refuse post-processing that cannot be computed, before anything is charged: it is run on tables without rows.

    Joins that pair any row with any row of answers need groups that are known, and not too many.
    """
    check_pairs([1 if not part.query.keys else None if part.groups is None else len(part.groups) for part in planned.parts], post)
    empty_answer(planned, post)


def check_pairs(groups: Sequence[int | None], post: PostProcess) -> None:
    """Refuse joins of answers that pair too many rows, by how many groups each answer has."""
    for pairs in post.crossed:
        many = pairs.given(groups)
        factors = [query for query in pairs.queries if query >= len(groups) or groups[query] != 1]
        if len(factors) + (pairs.many > 1) > 1 and (many is None or many > PAIRS_MAX):
            message = "every row of one answer would be paired with every row of another, and these are too many, or not known"
            raise Refused("join-unconditional", message, hint="join answers on an equality of keys, or group by declared columns")


def empty_answer(planned: PlannedStatement, post: PostProcess) -> pa.Table:
    """The result of post-processing on tables without rows: its columns and their types."""
    return post_process([empty_or_declared(part, planned, ()) for part in planned.parts], post).table


def noisy_table(
    query: PrivateQuery,
    columns: Mapping[str, Domain],
    recipes: Sequence[Recipe],
    levels: Sequence[Level],
    values: Sequence[Sequence[float | int | None]],
    marks: Sequence[Marks],
) -> pa.Table:
    """The input of post-processing for a private query: keys, levels, aggregates and their marks, by row."""
    groups = [group for level in levels for group in level.groups]
    names, arrays = [], []
    for i, (_, key) in enumerate(query.keys):
        arrays.append(typed_array([group[i] for group in groups], kind_of(domain_of(key, columns))))
        names.append(f"k{i}")
    for i in range(len(query.keys) if query.levels is not None else 0):
        arrays.append(pa.array([int(i not in level.kept) for level in levels for _ in level.groups], pa.int64()))
        names.append(f"g{i}")
    for i, (recipe, column, column_marks) in enumerate(zip(recipes, values, marks, strict=True)):
        kind = recipe.kind if isinstance(recipe, QuantileMeasure) else Kind.INTEGER if is_whole(recipe) else Kind.REAL
        arrays.append(typed_array(column, kind))
        arrays.append(pa.array([0 if mark is None else mark.code for mark in column_marks], pa.int64()))
        names += [f"a{i}", f"m{i}"]
    return pa.table(arrays, names=names) if names else pa.table({"_": pa.array([0] * len(groups), pa.int64())})


def _derived(
    derivation: LinearOutput | RatioOutput | QuantileOutput,
    parts: Sequence[AnsweredPart],
    rows_of: int | None,
    rows: Sequence[int | None],
    ratio: Callable[[RatioOutput, int, int], Interval | None],
) -> list[Interval | None]:
    """The intervals of an output. Any query other than that of the rows has a single row, its value."""

    def places(aggregate: Noisy) -> Sequence[int | None]:
        if aggregate.query == rows_of:
            return rows
        return [0 if parts[aggregate.query].table.num_rows == 1 else None] * len(rows)

    match derivation:
        case QuantileOutput(aggregate):
            return _derived(LinearOutput(aggregate), parts, rows_of, rows, ratio)
        case LinearOutput(aggregate, scale, shift):
            estimates = parts[aggregate.query].estimates[aggregate.index]
            found = [None if at is None else estimates[at].interval for at in places(aggregate)]
            return found if scale == 1 and shift == 0 else [_moved(interval, float(scale), float(shift)) for interval in found]
        case RatioOutput(numerator, denominator):
            pairs = zip(places(numerator), places(denominator), strict=True)
            return [None if above is None or below is None else ratio(derivation, above, below) for above, below in pairs]
        case _:
            assert_never(derivation)


def _moved(interval: Interval | None, scale: float, shift: float) -> Interval | None:
    if interval is None:
        return None
    ends = sorted((scale * interval.lo + shift, scale * interval.hi + shift))
    return Interval(ends[0], ends[1])


def _ratio_of_cells(output: RatioOutput, parts: Sequence[NoisyPart], above: int, below: int, confidence: Fraction) -> Interval | None:
    """The interval of a ratio of two released cells, where their noises are independent."""
    numerator, denominator = output.numerator, output.denominator
    top, bottom = _plain_cell(parts[numerator.query], numerator, above), _plain_cell(parts[denominator.query], denominator, below)
    same = numerator.query == denominator.query
    if top is None or bottom is None or (same and top.column.name == bottom.column.name) or top.terms != bottom.terms:
        return None
    return _ratio(top, bottom, float(output.scale), confidence)


@dataclass(frozen=True, slots=True)
class _Cell:
    """A noisy integer, its column, and the number of released cells in the sum."""

    column: NoisyColumn
    value: int
    terms: int
    missing: ClippingBias


def _plain_cell(part: NoisyPart, aggregate: Noisy, row: int) -> _Cell | None:
    """The noisy integer of an aggregate that consists of one."""
    if not part.rows:
        return None
    at = part.rows[row]
    recipe = at.recipes[aggregate.index]
    if not isinstance(recipe, CountMeasure | SumMeasure):
        return None
    column = at.table.column(recipe.vector)
    return _Cell(column, column.values[at.place], at.terms, part.estimates[aggregate.index][row].missing)


def _ratio(top: _Cell, bottom: _Cell, scale: float, confidence: Fraction) -> Interval | None:
    """Fieller interval of a ratio of two plain aggregates whose noises are independent."""
    if bottom.value <= 0:
        return None
    per = float(top.column.step / bottom.column.step)
    reach = 1e12 * (1 + abs(top.value))
    _, interval = ratio_interval(
        total=float(top.value),
        count=float(bottom.value),
        sum_law=top.column.law,
        count_law=bottom.column.law,
        confidence=float(confidence),
        lo=-reach,
        hi=reach,
        terms=top.terms,
    )
    if max(abs(interval.lo), abs(interval.hi)) >= reach:
        return None
    count = float(bottom.value * bottom.column.step)
    whole = ratio_reaching(Interval(interval.lo * per, interval.hi * per), top=top.missing, bottom=bottom.missing, count=count)
    ends = sorted((whole.lo * scale, whole.hi * scale))
    return Interval(ends[0], ends[1])
