"""A private query over several blocks of time as the sum of the same query over each of them, where it is one.

A relation is *block-local* if its joins, windows and per-unit rows are within one block: then its rows over a range are those of the blocks
of the range, put together. Measures that add up over rows are the sums of those of the blocks; any measure is, of groups that lie in one
block each. The query of a block does not name the range: conditions on time that hold for all of its rows are left out. So a window that
slides finds the blocks that it had before. Nothing here is trusted: the query of each block is certified as it is, and pays for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import assert_never

from lapwing.kernel.block_calendar import Period, within_blocks
from lapwing.kernel.canonical import digest
from lapwing.kernel.domains import Domain, Kind
from lapwing.kernel.expressions import Call, Column, Expression, Function, Literal, columns_of
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Blocks, Filter, JoinKind, PerUnit, Project, PublicJoin, Relation, Scan, SemiJoin, Union, UnitJoin, UnitWindow
from lapwing.kernel.workload import scans_of
from lapwing.sql.rows.time_conditions import ends_of, is_surely_true, may_be_true
from lapwing.statements import Aggregate, AggregateKind, PrivateQuery, conjuncts, substituted, with_scans, with_sources

ADDED_UP = frozenset(AggregateKind) - {
    AggregateKind.COUNT_UNITS,
    AggregateKind.COUNT_DISTINCT,
    AggregateKind.QUANTILE_CONT,
    AggregateKind.QUANTILE_DISC,
    AggregateKind.MIN,
    AggregateKind.MAX,
}
"""Aggregates made of sums over rows, which are the sums of those of disjoint sets of rows."""
_NO_BLOCK = Blocks(0, 0)
_NEVER = Literal(False, Kind.BOOLEAN)


@dataclass(frozen=True, slots=True)
class BlockParts:
    """Blocks from ``first`` to ``last`` over each of which a query is the same but for the number of the block.

    They are one block alone if a condition on time is true of some of its rows, or cannot be decided.
    """

    first: int
    last: int
    query: PrivateQuery
    """The query of no block."""
    by_time: bool
    """Whether each of its groups lies in one block."""
    timed_keys: bool
    """Whether its groups differ from block to block."""

    def at(self, block: int, facts: Facts) -> PrivateQuery:
        """The query of one block."""
        return replace(self.query, source=in_block(self.query.source, block, facts))

    def newest(self, facts: Facts) -> PrivateQuery:
        """The query of the last block."""
        return self.at(self.last, facts)

    def name(self) -> str:
        """A digest of the query of no block."""
        return digest(self.query)


def in_block(relation: Relation, block: int, facts: Facts) -> Relation:
    """The relation over one block."""
    return with_scans(relation, lambda scan: replace(scan, blocks=facts.table(scan.table).blocks_between(block, block)))


def block_parts(query: PrivateQuery, facts: Facts) -> tuple[BlockParts, ...]:
    """The query as parts over blocks of time, in their order; empty if it is not their sum, and if it reads one block alone."""
    scans = scans_of(query.source)
    if query.groups is not None or any(scan.blocks is None for scan in scans):
        return ()
    first = min(scan.blocks.first for scan in scans if scan.blocks is not None)
    last = max(scan.blocks.last for scan in scans if scan.blocks is not None)
    closed = {facts.table(scan.table).blocks for scan in scans}
    if first == last or len(closed) > 1:
        return ()
    splitter = _Splitter(facts, first, last)
    return tuple(splitter.parts(query)) if splitter.is_sum(query) else ()


@dataclass(frozen=True, slots=True)
class _Run:
    """Blocks over each of which a query is the same. One block alone if its conditions on time are not decided for the whole of it."""

    first: int
    last: int
    query: PrivateQuery
    is_decided: bool


class _Splitter:
    """Splits queries over the blocks from ``first`` to ``last``."""

    def __init__(self, facts: Facts, first: int, last: int) -> None:
        self._first, self._last = first, last
        timed = {name: table for name, table in facts.tables.items() if table.times is not None}
        self._times = {name: table.times[0] for name, table in timed.items() if table.times is not None}
        self._every = next(table.times[1] for table in timed.values() if table.times is not None)
        self._domains = {_time_of(name, column): timed[name].columns[column] for name, column in self._times.items()}

    def is_sum(self, query: PrivateQuery) -> bool:
        """Whether the query is the sum of the same query over each block."""
        source = query.source
        if not self._is_local(source):
            return False
        tainted = self._tainted(source)
        values = [value for item in query.aggregates for value in (item.value, item.second) if value is not None]
        if any(columns_of(value) & tainted for value in values):
            return False  # its possible values, and so its grid, would be those of the block
        return all(item.kind in ADDED_UP for item in query.aggregates) or self._is_by_time(query)

    def _is_by_time(self, query: PrivateQuery) -> bool:
        """Whether each group lies in one block."""
        origins = self.origins(query.source)
        within = [number for number, (_, key) in enumerate(query.keys) if self._tells_blocks(_traced(key, origins))]
        shown = query.levels or (tuple(range(len(query.keys))),)
        return all(any(number in level for number in within) for level in shown)

    def parts(self, query: PrivateQuery) -> Iterator[BlockParts]:
        """The query over each run of blocks for which its conditions on time are decided alike."""
        by_time, tainted = self._is_by_time(query), self._tainted(query.source)
        timed_keys = any(columns_of(key) & tainted for _, key in query.keys)
        of_none = replace(query, source=_below_unions(with_scans(query.source, of_no_block)))
        open_times = timed_keys and self._has_open_times(of_none.source)
        for run in self._runs(of_none, self._first, self._last, each=open_times):
            yield BlockParts(run.first, run.last, run.query, by_time, timed_keys)

    def _has_open_times(self, relation: Relation) -> bool:
        """Whether it has conditions that concern the time of rows and are not made of that of their row alone: a block may have no group
        of time that meets them, while the next has."""
        conditions: Expression | None = None
        tainted = self._tainted(relation)
        sources: tuple[Relation, ...]
        match relation:
            case Scan():
                return False
            case Filter(source, predicate):
                origins, sources = self.origins(source), (source,)
                conditions = _all_of([each for each in conjuncts(predicate) if _traced(each, origins) is None])
            case Project(source) | PublicJoin(source) | PerUnit(source) | UnitWindow(source):
                sources = (source,)
            case UnitJoin(left, right):
                sources, conditions = (left, right), relation.where
            case SemiJoin(source, other):
                sources, conditions = (source, other), relation.where
            case Union(united):
                sources = united
            case _:
                assert_never(relation)
        is_open = conditions is not None and bool(columns_of(conditions) & tainted)
        return is_open or any(self._has_open_times(source) for source in sources)

    def _runs(self, query: PrivateQuery, first: int, last: int, *, each: bool) -> list[_Run]:
        within = {name: within_blocks(domain, first, last, self._every) for name, domain in self._domains.items()}
        reducer = _Reducer(within, self.origins)
        origins = self.origins(query.source)
        aggregates = tuple(reducer.aggregate(item, origins) for item in query.aggregates)
        reduced = replace(query, source=reducer.read(query.source), aggregates=aggregates)
        is_decided = reducer.is_decided and not each
        if is_decided or first == last:
            return [_Run(first, last, reduced, is_decided)]
        middle = (first + last) // 2
        before, after = self._runs(query, first, middle, each=each), self._runs(query, middle + 1, last, each=each)
        if before[-1].is_decided and after[0].is_decided and before[-1].query == after[0].query:
            return [*before[:-1], replace(before[-1], last=after[0].last), *after[1:]]
        return [*before, *after]

    def _is_local(self, relation: Relation) -> bool:
        """Whether no row of it is made of rows of two blocks."""
        match relation:
            case Scan(table):
                return table in self._times
            case Filter(source) | Project(source) | PublicJoin(source):
                return self._is_local(source)
            case UnitJoin(left, other, on) | SemiJoin(left, other, on):
                sides = self.origins(left), self.origins(other)
                met = [(sides[0].get(a), sides[1].get(b)) for a, b in on]
                return self._is_local(left) and self._is_local(other) and any(self._tells_blocks(*pair) for pair in met)
            case Union(sources):
                return all(self._is_local(source) for source in sources)
            case PerUnit(source, _, keys):
                origins = self.origins(source)
                return self._is_local(source) and any(self._tells_blocks(_traced(key, origins)) for _, key in keys)
            case UnitWindow(source, columns):
                origins = self.origins(source)
                of_block = (any(self._tells_blocks(_traced(key, origins)) for key in column.partition) for _, column in columns)
                return self._is_local(source) and all(of_block)
            case _:
                assert_never(relation)

    def _tells_blocks(self, *values: Expression | None) -> bool:
        """Whether values of time, equal in two rows, can only be of one block."""
        known = tuple(value for value in values if value is not None)
        if len(known) < len(values):
            return False
        domains = tuple(sorted(self._domains.items()))
        return _tells_blocks(known, domains, self._first, self._last, self._every)

    def origins(self, relation: Relation) -> dict[str, Expression]:
        """The columns that are made of the time of their row alone, as expressions over the times of tables."""
        match relation:
            case Scan(table):
                column = self._times.get(table)
                return {} if column is None else {column: Column(_time_of(table, column))}
            case Filter(source) | SemiJoin(source) | UnitWindow(source):
                return self.origins(source)
            case PublicJoin(source, columns=added):
                gone = {name for name, _ in added}
                return {name: value for name, value in self.origins(source).items() if name not in gone}
            case Project(source, columns) | PerUnit(source, keys=columns):
                inner = self.origins(source)
                found = {name: _traced(value, inner) for name, value in columns}
                return {name: value for name, value in found.items() if value is not None}
            case UnitJoin(left, right, columns=added):
                others = {} if relation.kind is JoinKind.LEFT else self.origins(right)
                return self.origins(left) | {name: others[column] for name, column in added if column in others}
            case Union(sources):
                first, *rest = (self.origins(source) for source in sources)
                return {name: value for name, value in first.items() if all(other.get(name) == value for other in rest)}
            case _:
                assert_never(relation)

    def _tainted(self, relation: Relation) -> frozenset[str]:
        """The columns that depend on the time of any row."""
        match relation:
            case Scan(table):
                return frozenset({self._times[table]})
            case Filter(source) | SemiJoin(source) | PublicJoin(source):
                return self._tainted(source)
            case Project(source, columns):
                inner = self._tainted(source)
                return frozenset(name for name, value in columns if columns_of(value) & inner)
            case UnitJoin(left, right, columns=added):
                others = self._tainted(right)
                return self._tainted(left) | {name for name, column in added if column in others}
            case Union(sources):
                return frozenset[str]().union(*(self._tainted(source) for source in sources))
            case PerUnit(source, columns, keys):
                inner = self._tainted(source)
                made = {name for name, item in columns if item.value is not None and columns_of(item.value) & inner}
                return frozenset(made | {name for name, value in keys if columns_of(value) & inner})
            case UnitWindow(source, columns):
                inner = self._tainted(source)
                return inner | {name for name, item in columns if item.value is not None and columns_of(item.value) & inner}
            case _:
                assert_never(relation)


class _Reducer:
    """Leaves out conditions on time that are true of every row within these times, and notes whether any is left undecided."""

    def __init__(self, within: Mapping[str, Domain], origins: Callable[[Relation], Mapping[str, Expression]]) -> None:
        self._within, self._origins = within, origins
        self.is_decided = True

    def read(self, relation: Relation) -> Relation:
        """The relation without them."""
        if not isinstance(relation, Filter):
            return with_sources(relation, self.read)
        kept, source = self._kept(relation.predicate, self._origins(relation.source)), self.read(relation.source)
        condition = _all_of(kept)
        return source if condition is None else Filter(source, condition)

    def aggregate(self, aggregate: Aggregate, origins: Mapping[str, Expression]) -> Aggregate:
        """The aggregate without those of its FILTER."""
        if aggregate.where is None:
            return aggregate
        return replace(aggregate, where=_all_of(self._kept(aggregate.where, origins)))

    def _kept(self, predicate: Expression, origins: Mapping[str, Expression]) -> list[Expression]:
        kept = []
        for each in conjuncts(predicate):
            traced = _traced(each, origins)
            if traced is None:
                kept.append(each)
            elif is_surely_true(traced, self._within):
                continue
            elif not may_be_true(traced, self._within):
                kept.append(_NEVER)
            else:
                self.is_decided = False
                kept.append(each)
        return kept


def _below_unions(relation: Relation) -> Relation:
    """The relation with conditions on the rows of a union as conditions on those of each of its sources."""
    if isinstance(relation, Filter):
        source, predicate = _below_unions(relation.source), relation.predicate
        if isinstance(source, Union):
            return Union(tuple(_below_unions(Filter(each, predicate)) for each in source.sources))
        if isinstance(source, Project) and isinstance(source.source, Union):
            below = Filter(source.source, substituted(predicate, dict(source.columns)))
            return replace(source, source=_below_unions(below))
        return Filter(source, predicate)
    return with_sources(relation, _below_unions)


def _all_of(conditions: Sequence[Expression]) -> Expression | None:
    """All conditions as one; None for none."""
    if not conditions:
        return None
    return conditions[0] if len(conditions) == 1 else Call(Function.AND, tuple(conditions))


def _traced(value: Expression, origins: Mapping[str, Expression]) -> Expression | None:
    """A value made of the time of its row alone, as an expression over times; None for any other."""
    used = columns_of(value)
    return substituted(value, origins) if used and used <= origins.keys() else None


def _time_of(table: str, column: str) -> str:
    return f"{table}.{column}"


@lru_cache(maxsize=256)
def _tells_blocks(values: tuple[Expression, ...], domains: tuple[tuple[str, Domain], ...], first: int, last: int, every: Period) -> bool:
    """Whether all values of one block are below all values of the next."""
    before = None
    for block in range(first, last + 1):
        within = {name: within_blocks(domain, block, block, every) for name, domain in domains}
        ends = [ends_of(value, within) for value in values]
        known = [each for each in ends if each is not None]
        if len(known) < len(ends) or (before is not None and min(low for low, _ in known) <= before):
            return False
        before = max(high for _, high in known)
    return True


def of_no_block(scan: Scan) -> Scan:
    """The scan as that of any block."""
    return replace(scan, blocks=_NO_BLOCK)
