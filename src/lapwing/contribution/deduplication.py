"""Deduplication: the same query with fewer intermediate rows per unit, because distinct counts and groups need no duplicate rows.

Both rewrites are untrusted: the certifier derives rows and work from their result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from lapwing.contribution.relations import contributions_of, limited
from lapwing.contribution.rows_per_unit import Contributions
from lapwing.kernel.expressions import Column, Expression, columns_of
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import (
    Filter,
    JoinKind,
    PerUnit,
    Project,
    PublicJoin,
    Relation,
    Scan,
    SemiJoin,
    Union,
    UnitAggregateKind,
    UnitJoin,
    UnitWindow,
)
from lapwing.kernel.stability import shape_of
from lapwing.kernel.workload import kept_bytes, scans_of
from lapwing.statements import AggregateKind, PrivateQuery

_REPEATS_DO_NOT_MATTER = frozenset({AggregateKind.COUNT_UNITS, AggregateKind.COUNT_DISTINCT})
_UNIT_REPEATS_DO_NOT_MATTER = frozenset({UnitAggregateKind.MIN, UnitAggregateKind.MAX, UnitAggregateKind.ANY})


def without_repeats(query: PrivateQuery, facts: Facts) -> PrivateQuery:
    """The query with as few duplicate rows as possible. For example, joins whose columns are unused become conditions."""
    source = _shortened(query.source, facts)
    if all(aggregate.kind in _REPEATS_DO_NOT_MATTER for aggregate in query.aggregates):
        read = [key for _, key in query.keys]
        read += [part for aggregate in query.aggregates for part in (aggregate.value, aggregate.where) if part is not None]
        source = _distinct(source, _read(read), facts)
    return replace(query, source=source)


def _read(expressions: list[Expression]) -> frozenset[str]:
    return frozenset[str]().union(*(columns_of(expression) for expression in expressions))


def _shortened(relation: Relation, facts: Facts) -> Relation:
    """The same rows; behind a condition on the unit only existence counts, so duplicates there do not matter."""
    match relation:
        case Scan():
            return relation
        case Filter(source) | Project(source) | PublicJoin(source) | UnitWindow(source):
            return replace(relation, source=_shortened(source, facts))
        case PerUnit(source, columns, keys):
            if all(item.kind in _UNIT_REPEATS_DO_NOT_MATTER for _, item in columns):
                read = _read([*(item.value for _, item in columns if item.value), *(value for _, value in keys)])
                return replace(relation, source=_distinct(source, read, facts))
            return replace(relation, source=_shortened(source, facts))
        case UnitJoin(left, right):
            return replace(relation, left=_shortened(left, facts), right=_shortened(right, facts))
        case SemiJoin(source, other):
            return replace(relation, source=_shortened(source, facts), other=_distinct(other, _compared(relation), facts))
        case Union(sources):
            return Union(tuple(_shortened(source, facts) for source in sources))
        case _:
            assert_never(relation)


def _distinct(relation: Relation, read: frozenset[str], facts: Facts) -> Relation:
    """A relation whose rows have the same units and combinations of the columns read, each at least once; other rows may be removed."""
    match relation:
        case Scan():
            return relation
        case Filter(source, predicate):
            return replace(relation, source=_distinct(source, read | columns_of(predicate), facts))
        case Project(source, columns):
            kept = tuple((name, value) for name, value in columns if name in read)
            return Project(_distinct(source, _read([value for _, value in kept]), facts), kept)
        case PublicJoin(source, _, on, columns, kind):
            kept_public = tuple((name, column) for name, column in columns if name in read)
            if not kept_public and kind is JoinKind.LEFT:
                return _distinct(source, read, facts)
            return replace(relation, source=_distinct(source, read | columns_of(on), facts), columns=kept_public)
        case UnitJoin():
            return _distinct_join(relation, read, facts)
        case SemiJoin(source, other, on):
            compared = _read([] if relation.where is None else [relation.where]) - {name for name, _ in relation.columns}
            inner = _distinct(source, read | compared | {a for a, _ in on}, facts)
            return replace(relation, source=inner, other=_distinct(other, _compared(relation), facts))
        case Union(sources):
            parts = tuple(dict.fromkeys(_distinct(source, read, facts) for source in sources))
            return parts[0] if len(parts) == 1 else Union(parts)
        case PerUnit(_, columns, keys):
            # Unused keys cause duplicates, unless other columns differ for each of them.
            aggregates = tuple((name, item) for name, item in columns if name in read)
            by = tuple((name, value) for name, value in keys if aggregates or name in read)
            return _shortened(replace(relation, columns=aggregates, keys=by), facts)
        case UnitWindow(source, windows):
            # A window reads every row of its unit and distinguishes rows by all of their columns: below it no row may be removed.
            listed = tuple((name, item) for name, item in windows if name in read)
            return UnitWindow(_shortened(source, facts), listed) if listed else _distinct(source, read, facts)
        case _:
            assert_never(relation)


def _compared(join: SemiJoin) -> frozenset[str]:
    """The columns of the other side with which a row is compared."""
    return frozenset(b for _, b in join.on) | frozenset(column for _, column in join.columns)


def _distinct_join(join: UnitJoin, read: frozenset[str], facts: Facts) -> Relation:
    kept = tuple((name, column) for name, column in join.columns if name in read)
    if not kept and join.kind is JoinKind.LEFT:
        return _distinct(join.left, read, facts)
    if join.where is not None:  # pairs that it distinguishes stay distinct
        read |= columns_of(join.where)
        kept = tuple((name, column) for name, column in join.columns if name in read)
    of_left = read & frozenset(shape_of(join.left, facts).columns)
    left = _distinct(join.left, of_left | {a for a, _ in join.on}, facts)
    right = _distinct(join.right, frozenset(column for _, column in kept) | {b for _, b in join.on}, facts)
    if not kept and join.where is None:
        return SemiJoin(left, right, join.on)
    if not of_left and join.kind is JoinKind.INNER and join.where is None:
        turned = SemiJoin(right, left, tuple((b, a) for a, b in join.on))
        return Project(turned, tuple((name, Column(column)) for name, column in kept))
    return replace(join, left=left, right=right, columns=kept)


def fitting(query: PrivateQuery, facts: Facts, *, queries: int) -> PrivateQuery:
    """The query with the row limits of scans lowered so that one unit's rows respect the limits of every step, if one row per scan does.

    It is one of ``queries`` queries of its statement, which share the limit on kept rows.
    """
    columns = shape_of(query.source, facts).columns
    distinct = [item.value for item in query.aggregates if item.kind is AggregateKind.COUNT_DISTINCT and item.value is not None]
    most = facts.limits.size // queries // kept_bytes((key for _, key in query.keys), distinct, columns)
    return replace(query, source=within(query.source, max(1, min(facts.limits.rows, most)), facts))


def within(relation: Relation, rows_max: int, facts: Facts) -> Relation:
    """The relation with scans lowered until no step of it has more than ``rows_max`` rows of one unit, as far as one row each allows."""
    match relation:
        case Scan(_, rows):
            return replace(relation, rows_per_unit=min(rows, max(1, rows_max // relation.blocks_per_unit)))
        case Filter(source) | Project(source) | PublicJoin(source) | PerUnit(source) | UnitWindow(source):
            return replace(relation, source=within(source, rows_max, facts))
        case SemiJoin(source, other):
            return replace(relation, source=within(source, rows_max, facts), other=within(other, rows_max, facts))
        case UnitJoin(left, right):
            lowered: Relation = replace(relation, left=within(left, rows_max, facts), right=within(right, rows_max, facts))
            return limited(lowered, rows_max, facts)
        case Union(sources):
            return limited(Union(tuple(within(source, rows_max, facts) for source in sources)), rows_max, facts)
        case _:
            assert_never(relation)


def lost_by_lowering(before: Relation, after: Relation, facts: Facts, known: Mapping[str, Contributions], units: int | None) -> float:
    """Predicted share of rows that lowering the scans leaves out; for joins, rows that lose either side."""
    if before == after:
        return 0.0
    kept = 1.0
    for old, new in zip(scans_of(before), scans_of(after), strict=True):
        if new.rows_per_unit < old.rows_per_unit:
            rows = contributions_of(old, facts, known, units)
            kept *= 1 - min(rows.excess(new.rows_per_unit) / max(rows.rows(), 1.0), 1.0)
    return 1 - kept
