"""Releases of one query over each of several blocks of time, put together: an answer over all of them.

Cells of the same group add up, and so do the variances of their noise. What clipping cut off is bounded by the histograms of all blocks
together. Blocks that were bounded alike are a *share*: each share has noise and a clipping bias of its own. Groups that have equally many
blocks of each share are a *piece*: all its cells have the same noise. Post-processing of noisy values and public facts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist

from lapwing.answers.empty_groups import only
from lapwing.answers.noise_sums import half_width_of_sum
from lapwing.contribution.clipping_bound import predicted
from lapwing.contribution.histograms import ClippingBound
from lapwing.contribution.model import ContributionModel
from lapwing.kernel.certify import CertifiedQuery
from lapwing.kernel.expressions import Value
from lapwing.kernel.ir import KnownGroups, Measure
from lapwing.kernel.laws import SCALE_MAX, DiscreteGaussian, DiscreteLaplace, Law
from lapwing.kernel.release import ChosenQuantiles, NoisyColumn, NoisyTable
from lapwing.planning.planned import Part, PlannedStatement, Share
from lapwing.prices import scale_root_at_least
from lapwing.statements import PrivateQuery

Group = tuple[Value, ...]
Draws = Sequence[tuple[Law, int]]
"""Laws, and how many draws there are of each."""


def summed(tables: Sequence[NoisyTable], order: Sequence[Group], *, confidence: Fraction) -> NoisyTable:
    """The releases of one query over disjoint blocks as one release, its groups in this order, and those that are not named behind.

    All cells count as sums of as many draws as the cell of the most blocks.
    """
    blocks = Counter(group for table in tables for group in table.groups)
    known = {group: None for group in order if group in blocks}
    listed = [*known, *(group for group in blocks if group not in known)]
    most = max(blocks.values(), default=1)
    place = {group: number for number, group in enumerate(listed)}
    columns = tuple(_added(column.name, tables, place, terms=most, confidence=confidence) for column in tables[0].columns)
    quantiles = tuple(_side_by_side(chosen.name, tables, place) for chosen in tables[0].quantiles)
    rows_max = sum(table.rows_max for table in tables)
    return replace(tables[0], groups=tuple(listed), columns=columns, rows_max=rows_max, quantiles=quantiles)


def _added(name: str, tables: Sequence[NoisyTable], place: Mapping[Group, int], *, terms: int, confidence: Fraction) -> NoisyColumn:
    columns = [table.column(name) for table in tables]
    step = _common_step({column.step for column in columns})
    values, laws = [0] * len(place), dict[Law, None]()
    for table, column in zip(tables, columns, strict=True):
        times = int(column.step / step)
        laws[_times(column.law, times)] = None
        for group, value in zip(table.groups, column.values, strict=True):
            if (at := place.get(group)) is not None:
                values[at] += times * value
    law = law_of_sum([(max(laws, key=lambda law: law.scale), terms)], confidence=confidence)
    return NoisyColumn(name, tuple(values), law, step, max(column.rounding for column in columns))


def _common_step(steps: set[Fraction]) -> Fraction:
    """The largest step of which all of these are multiples."""
    below = math.lcm(*(step.denominator for step in steps))
    return Fraction(math.gcd(*(int(step * below) for step in steps)), below)


def _times(law: Law, times: int) -> Law:
    return law if times == 1 else replace(law, scale=_scale(law.scale * times))


def _scale(value: Fraction) -> Fraction:
    """At least this value, as the scale of a law."""
    return min(Fraction(math.nextafter(float(value), math.inf)), SCALE_MAX)


def law_of_sum(draws: Draws, *, confidence: Fraction) -> Law:
    """A law whose interval at this confidence holds a sum of these draws.

    Gaussian draws add up to a Gaussian. A sum with Laplace draws is described by the Gaussian whose interval at this confidence is as wide
    as that of as many draws of the widest law.
    """
    if sum(number for _, number in draws) == 1:
        return next(law for law, number in draws if number)
    if all(isinstance(law, DiscreteGaussian) for law, _ in draws):
        return DiscreteGaussian(min(scale_root_at_least(sum((number * law.scale**2 for law, number in draws), Fraction(0))), SCALE_MAX))
    # A Gaussian draw is no wider than one of the Laplace law of its scale, by the bound on moments that sums are computed with.
    widest, terms = max(law.scale for law, _ in draws), sum(number for _, number in draws)
    width = half_width_of_sum(DiscreteLaplace(widest), terms=terms, confidence=confidence)
    deviations = NormalDist().inv_cdf(1 - float(1 - confidence) / 2)
    return DiscreteGaussian(_scale(max((width + 1) / Fraction(deviations), widest)))


def _side_by_side(name: str, tables: Sequence[NoisyTable], place: Mapping[Group, int]) -> ChosenQuantiles:
    """Quantiles of groups that are in one block each."""
    chosen = [table.chosen(name) for table in tables]
    values = [[0] * len(place) for _ in chosen[0].values]
    for table, item in zip(tables, chosen, strict=True):
        for target, column in zip(values, item.values, strict=True):
            for group, value in zip(table.groups, column, strict=True):
                if (at := place.get(group)) is not None:
                    target[at] = value
    return replace(chosen[0], values=tuple(tuple(column) for column in values))


@dataclass(frozen=True, slots=True)
class MeasuredAlike:
    """Blocks whose answers were bounded alike."""

    template: PlannedStatement
    """The plan of one of them."""
    released: Sequence[tuple[NoisyTable, ...]]
    """The release of each block; of none where the answer is only explained."""
    blocks: int
    fits: Callable[[float], Mapping[Measure, ContributionModel]]
    """The fitted norms of each measure in such a part of these blocks."""


@dataclass(frozen=True, slots=True)
class SumOfBlocks:
    """The part of an answer over blocks, its releases, and what was measured with the noise of the sum."""

    part: Part
    tables: tuple[NoisyTable, ...]
    queries: tuple[CertifiedQuery, ...]


def sum_of_blocks(whole: Part, shares: Sequence[MeasuredAlike], *, first: int, confidence: Fraction) -> SumOfBlocks:
    """Blocks put together, the newest share last; ``whole`` is the part as it is planned over the whole range.

    The queries of the part are numbered from ``first`` on.
    """
    newest = shares[-1].template
    if whole.query.levels is None and len(newest.certified.queries) == 1 and newest.only.number is not None and shares[-1].released:
        return _in_pieces(whole, shares, first=first, confidence=confidence)
    return _as_one(whole, shares, first=first, confidence=confidence)


def _in_pieces(whole: Part, shares: Sequence[MeasuredAlike], *, first: int, confidence: Fraction) -> SumOfBlocks:
    blocks = [Counter(group for (table,) in share.released for group in table.groups) for share in shares]
    order = dict.fromkeys((*(whole.groups or ()), *(group for counted in blocks for group in counted)))
    by_blocks: dict[tuple[int, ...], list[Group]] = {}
    for group in order:
        if any(numbers := tuple(counted[group] for counted in blocks)):
            by_blocks.setdefault(numbers, []).append(group)
    pieces, tables, queries = list[Part](), list[NoisyTable](), list[CertifiedQuery]()
    for numbers, groups in by_blocks.items():
        parts = list[Share]()
        for share, counted, number in zip(shares, blocks, numbers, strict=True):
            if not number:
                continue
            own = set(groups)
            table = summed(
                [_of_groups(table, own) for (table,) in share.released if own & set(table.groups)], groups, confidence=confidence
            )
            fits = share.fits(number * len(groups) / sum(counted.values()))
            parts.append(Share(_share_of(share.template.only, whole, fits, terms=number, cells=len(groups)), table))
        table = _laid_over([each.table for each in parts], confidence=confidence)
        part = replace(parts[-1].part, number=first + len(pieces), groups=tuple(groups), shares=tuple(parts), query=whole.query)
        pieces.append(replace(part, nothing_to_sum=whole.nothing_to_sum))
        tables.append(table)
        (query,) = shares[-1].template.certified.queries
        queries.append(_with_laws(query, {column.name: column.law for column in table.columns}, groups))
    main = pieces[-1] if len(pieces) == 1 else replace(pieces[-1], groups=tuple(order), pieces=tuple(pieces))
    return SumOfBlocks(main, tuple(tables), tuple(queries))


def _of_groups(table: NoisyTable, groups: set[Group]) -> NoisyTable:
    return only(table, [place for place, group in enumerate(table.groups) if group in groups])


def _laid_over(tables: Sequence[NoisyTable], *, confidence: Fraction) -> NoisyTable:
    """The sum of the shares of a piece, which have the same groups in the same order."""
    whole = summed(tables, tables[0].groups, confidence=confidence)
    columns = []
    for column in whole.columns:
        parts = [table.column(column.name) for table in tables]
        draws = [(_times(part.law, int(part.step / column.step)), 1) for part in parts]
        columns.append(replace(column, law=law_of_sum(draws, confidence=confidence)))
    return replace(whole, columns=tuple(columns))


def _as_one(whole: Part, shares: Sequence[MeasuredAlike], *, first: int, confidence: Fraction) -> SumOfBlocks:
    """With subtotals or quantiles, or before anything was bought: every cell has the noise of the most blocks, and of the widest share."""
    newest, blocks = shares[-1], sum(share.blocks for share in shares)
    queries, fits = newest.template.certified.queries, newest.fits(blocks / max(newest.blocks, 1))
    released = [tables for share in shares for tables in share.released]
    known = newest.template.only.number
    orders = [whole.groups or () if number == known else () for number in range(len(queries))]
    of_queries = [*zip(*released, strict=True)]
    tables = tuple(
        summed(tables, order, confidence=confidence) for tables, order in zip(of_queries, orders[: len(of_queries)], strict=True)
    )

    def part_of(part: Part) -> Part:
        is_whole = _is_whole(part.query, whole)
        cells = len(part.groups or ((),))
        terms = _terms(cells, whole if is_whole else None, blocks)
        over_all = _share_of(part, whole, fits, terms=terms, cells=len(whole.groups) if is_whole and whole.groups else cells)
        return replace(
            over_all,
            query=whole.query if is_whole else part.query,
            number=None if part.number is None else part.number + first,
            groups=whole.groups if is_whole else part.groups,
            nothing_to_sum=whole.nothing_to_sum if is_whole else {},
            apart={level: part_of(total) for level, total in part.apart.items()},
            quantiles=None if part.quantiles is None else part_of(part.quantiles),
        )

    measured = []
    for query in queries:
        of_whole = whole if _is_whole(query.query, whole) else None
        terms = _terms(query.query.groups.cells, of_whole, blocks) if isinstance(query.query.groups, KnownGroups) else blocks
        laws = {item.vector.name: law_of_sum([(item.vector.law, terms)], confidence=confidence) for item in query.vectors}
        measured.append(_with_laws(query, laws, of_whole.groups if of_whole is not None and query.query.keys else None))
    return SumOfBlocks(part_of(newest.template.only), tables, tuple(measured))


def _is_whole(query: PrivateQuery | object, whole: Part) -> bool:
    return getattr(query, "keys", None) == whole.query.keys


def _terms(cells: int, whole: Part | None, blocks: int) -> int:
    """How many blocks have each group, of so many in a block."""
    groups = cells if whole is None or not whole.groups else len(whole.groups)
    return max(round(blocks * cells / groups), 1)


def _share_of(part: Part, whole: Part, fits: Mapping[Measure, ContributionModel], *, terms: int, cells: int) -> Part:
    """The part of one block as that of so many of its kind."""
    cuts = {name: _cut(cut, fits, terms, cells if _is_whole(part.query, whole) else cut.cells) for name, cut in part.cuts.items()}
    return replace(
        part,
        rows=None if part.rows is None else part.rows * terms,
        rows_upper=None,
        choice=replace(part.choice, truncation=part.choice.truncation * terms, noise=part.choice.noise * math.sqrt(terms)),
        cuts=cuts,
        lost=part.lost if part.left_out or not cuts else max(cut.choice.lost for cut in cuts.values()),
    )


def _cut(cut: ClippingBound, fits: Mapping[Measure, ContributionModel], terms: int, cells: int) -> ClippingBound:
    fit, choice = None if cut.measure is None else fits.get(cut.measure), cut.choice
    if fit is None:
        return cut
    total = float(fit.norms() ** 2 @ fit.expected) if cut.of_units else None
    unit_noise = choice.noise / choice.cap * math.sqrt(terms)
    choice = predicted(fit, choice.cap, unit_noise=unit_noise, cells=cells, total_l1=total, grain=cut.grain)
    return replace(cut, fit=fit, choice=choice, cells=cells)


def _with_laws(query: CertifiedQuery, laws: Mapping[str, Law], groups: Sequence[Group] | None) -> CertifiedQuery:
    """What is measured of one block with the noise of the sum: by this an answer is explained and judged, and nothing is released."""
    vectors = tuple(replace(each, vector=replace(each.vector, law=laws[each.vector.name])) for each in query.vectors)
    listed = query.query.groups if not groups else KnownGroups(tuple(groups))
    return replace(query, query=replace(query.query, groups=listed), vectors=vectors)
