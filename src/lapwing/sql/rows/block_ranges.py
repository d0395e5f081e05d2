"""Which blocks of time a statement reads: those that its conditions on time allow, up to the last closed one.

The binder names tables without blocks. Here every scan of a table with blocks gets the range in which its rows can meet the conditions
above it. The conditions stay, so a range that is too wide costs more and answers the same; it is never too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from lapwing.errors import Refused
from lapwing.kernel.block_calendar import days_of_block, within_blocks
from lapwing.kernel.calendar import to_date
from lapwing.kernel.expressions import Column, Expression, columns_of
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.ir import Filter, JoinKind, PerUnit, Project, PublicJoin, Relation, Scan, SemiJoin, Union, UnitJoin, UnitWindow
from lapwing.sql.rows import time_conditions
from lapwing.statements import Statement, conjuncts, substituted


@dataclass(frozen=True, slots=True)
class BlocksAsked:
    """What a statement asked of the blocks of its tables, for notes."""

    open_after: int | None = None
    """The last closed block, if the conditions allow later ones."""
    gone_before: int | None = None
    """The first block that has rows, if the conditions allow earlier ones that the owner's ``keep`` has retired."""


def with_blocks(statement: Statement, facts: Facts, declared: Mapping[str, tuple[int, int]]) -> Statement:
    """The statement with the blocks that it reads, and notes where it ends before its conditions do.

    ``declared`` are all blocks of each table that has some, also those that are still open and those whose rows are retired. Refuses
    (``blocks-open``) a statement of which no block is closed.
    """
    if not declared:
        return statement
    finder = _Finder(facts, declared)
    privates = tuple(replace(query, source=finder.read(query.source, ())) for query in statement.privates)
    first = tuple(with_blocks(part, facts, declared) for part in statement.first)
    return replace(statement, privates=privates, first=first, notes=(*statement.notes, *finder.notes()))


class _Finder:
    """Gives the scans of relations their blocks, and remembers what they left out."""

    def __init__(self, facts: Facts, declared: Mapping[str, tuple[int, int]]) -> None:
        self._facts, self._declared = facts, declared
        self._asked = BlocksAsked()
        self._every = next(known.times[1] for known in facts.tables.values() if known.times is not None)

    def notes(self) -> list[str]:
        """What the author should know."""
        found = []
        if self._asked.open_after is not None:
            day = to_date(days_of_block(self._asked.open_after, self._every)[1])
            found.append(f"ends with {day}, the last day of the last closed block: later rows are read once their block has closed")
        if self._asked.gone_before is not None:
            day = to_date(days_of_block(self._asked.gone_before, self._every)[0])
            found.append(f"begins with {day}: the rows of earlier blocks are retired")
        return found

    def read(self, relation: Relation, conditions: Sequence[Expression]) -> Relation:
        """The relation with blocks; ``conditions`` over its columns are all true of the rows that count."""
        match relation:
            case Scan(table):
                known = self._facts.table(table)
                return relation if known.times is None else self._scan(relation, known, conditions)
            case Filter(source, predicate):
                return replace(relation, source=self.read(source, (*conditions, *conjuncts(predicate))))
            case Project(source, columns):
                named = dict(columns)
                return replace(relation, source=self.read(source, [substituted(each, named) for each in _of(conditions, named)]))
            case PublicJoin(source, _, _, columns):
                public = {name for name, _ in columns}
                return replace(relation, source=self.read(source, [each for each in conditions if not columns_of(each) & public]))
            case UnitJoin(left, right, on, columns):
                added = dict(columns)
                of_left = [each for each in conditions if not columns_of(each) & added.keys()]
                of_right = [substituted(each, {a: Column(b) for a, b in added.items()}) for each in _of(conditions, added)]
                matched = {a: Column(b) for a, b in on}
                of_right += [substituted(each, matched) for each in _of(of_left, matched)]
                pairs = [] if relation.where is None else [*conjuncts(relation.where)]
                of_right += [substituted(each, {a: Column(b) for a, b in added.items()}) for each in _of(pairs, added)]
                if relation.kind is JoinKind.INNER:
                    of_left += [each for each in pairs if not columns_of(each) & added.keys()]
                return replace(relation, left=self.read(left, of_left), right=self.read(right, of_right))
            case SemiJoin(source, other, on):
                matched = {a: Column(b) for a, b in on}
                of_other = [substituted(each, matched) for each in _of(conditions, matched)]
                named = {a: Column(b) for a, b in relation.columns}
                pairs = [] if relation.where is None else [*conjuncts(relation.where)]
                of_other += [substituted(each, named) for each in _of(pairs, named)]
                return replace(relation, source=self.read(source, conditions), other=self.read(other, of_other))
            case Union(sources):
                return Union(tuple(self.read(source, conditions) for source in sources))
            case PerUnit(source, _, keys):
                named = dict(keys)
                return replace(relation, source=self.read(source, [substituted(each, named) for each in _of(conditions, named)]))
            case UnitWindow(source):
                return replace(relation, source=self.read(source, ()))  # rows that do not count are in the windows of those that do
            case _:
                assert_never(relation)

    def _scan(self, scan: Scan, known: TableFacts, conditions: Sequence[Expression]) -> Scan:
        assert known.times is not None and known.blocks is not None
        column, closed, declared = known.times[0], known.blocks, self._declared[scan.table]
        on_time = [each for each in conditions if columns_of(each) == {column}]

        def possible(first: int, last: int) -> bool:
            domain = within_blocks(known.columns[column], first, last, self._every)
            return all(time_conditions.may_be_true(each, {column: domain}) for each in on_time)

        wanted = _ends(declared, possible)
        if wanted is None:  # no row meets the conditions, whatever is read
            wanted = closed[1], closed[1]
        first, last = max(wanted[0], closed[0]), min(wanted[1], closed[1])
        if first > last:
            raise self._refused(closed, wanted)
        if wanted[1] > closed[1]:
            self._asked = replace(self._asked, open_after=closed[1])
        if wanted[0] < closed[0] and closed[0] > declared[0]:
            self._asked = replace(self._asked, gone_before=closed[0])
        return replace(scan, blocks=known.blocks_between(first, last))

    def _refused(self, closed: tuple[int, int], wanted: tuple[int, int]) -> Refused:
        first, last = to_date(days_of_block(closed[0], self._every)[0]), to_date(days_of_block(closed[1], self._every)[1])
        if wanted[0] > closed[1]:
            return Refused("blocks-open", f"these days are not closed yet: {last} is the last one that is", hint=f"ask up to {last}")
        message = f"the rows of these days are retired: {first} is the first one that is kept"
        return Refused("blocks-open", message, hint=f"ask from {first} on")


def _of(conditions: Sequence[Expression], columns: Mapping[str, object]) -> list[Expression]:
    """The conditions over these columns alone."""
    return [each for each in conditions if columns_of(each) and columns_of(each) <= columns.keys()]


def _ends(blocks: tuple[int, int], possible: Callable[[int, int], bool]) -> tuple[int, int] | None:
    """The first and the last block that is possible; None if none is."""
    first, last = _end(*blocks, possible, last=False), _end(*blocks, possible, last=True)
    return None if first is None or last is None else (first, last)


def _end(low: int, high: int, possible: Callable[[int, int], bool], *, last: bool) -> int | None:
    """The first or the last possible block from ``low`` to ``high``. A range that is not possible has no possible block in it."""
    if low > high or not possible(low, high):
        return None
    if low == high:
        return low
    middle = (low + high) // 2
    halves = [(low, middle), (middle + 1, high)]
    return next((found for half in (reversed(halves) if last else halves) if (found := _end(*half, possible, last=last)) is not None), None)
