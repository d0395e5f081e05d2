"""Blocks of time: which of them a query reads, for which neighbours it is certified, and what each block pays.

With blocks, neighbours differ in one person's rows of one block, or in one person's rows of all tables without blocks together, the
*standing block*. A query is certified for the declared relation if a neighbour changes all or nothing of each of its units: where persons
within a block are its units, and where it reads one block alone. Any other query sees a unit with other rows than before, which may have
rows on both sides, in either relation: it is certified for the replacement of one unit, and every block that it reads pays that.
Proof: docs/proofs/blocks.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from lapwing.errors import Refused
from lapwing.kernel.accounting import Cost
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import (
    Blocks,
    Filter,
    PerUnit,
    Project,
    PublicJoin,
    Relation,
    Scan,
    SemiJoin,
    Union,
    UnitJoin,
    UnitNorms,
    UnitWindow,
)
from lapwing.kernel.neighbours import Neighbours


@dataclass(frozen=True, slots=True)
class BlocksRead:
    """What one query reads: blocks of time, and the standing block or not."""

    blocks: tuple[Blocks, ...]
    standing: bool

    @property
    def apart(self) -> bool:
        """Whether its units are persons within one block."""
        return bool(self.blocks) and self.blocks[0].apart

    def reads(self, block: int) -> bool:
        """Whether it may read rows of this block of time."""
        return any(blocks.first <= block <= blocks.last for blocks in self.blocks)

    def facts(self, facts: Facts) -> Facts:
        """The facts for which the query is certified."""
        numbers = {number for blocks in self.blocks for number in (blocks.first, blocks.last)}
        if self.apart or len(numbers) + self.standing == 1:
            return facts
        return replace(facts, neighbours=Neighbours.BOUNDED)


@dataclass(frozen=True, slots=True)
class BlockCost:
    """What each block of time from ``first`` to ``last`` pays; without numbers, what the standing block pays."""

    first: int | None
    last: int | None
    cost: Cost


def reach_of(source: Relation | UnitNorms) -> BlocksRead:
    """What a query over this source reads, or refuse."""
    scans = list(_scans(source))
    blocks = tuple(dict.fromkeys(scan.blocks for scan in scans if scan.blocks is not None))
    standing = any(scan.blocks is None for scan in scans)
    if len({each.apart for each in blocks}) > 1 or (standing and blocks and blocks[0].apart):
        raise Refused("blocks-mixed", "a query takes persons within a block as units in all of its tables, or in none")
    return BlocksRead(blocks, standing)


def require_closed(table: str, blocks: Blocks, closed: tuple[int, int] | None) -> None:
    """Refuse blocks that are not all closed, and those of a table without blocks."""
    if closed is None:
        raise Refused("blocks-missing", f"the table {table!r} has no blocks")
    if not closed[0] <= blocks.first <= blocks.last <= closed[1]:
        raise Refused("blocks-open", f"of {table!r}, blocks {closed[0]} to {closed[1]} are closed")


def costs_by_block(reaches: Sequence[BlocksRead], cost: Callable[[Sequence[int]], Cost]) -> tuple[BlockCost, ...]:
    """What each block pays: the ``cost`` of the queries, by their numbers, that read it. Empty if no query reads a block of time."""
    starts = sorted({edge for reach in reaches for blocks in reach.blocks for edge in (blocks.first, blocks.last + 1)})
    if not starts:
        return ()
    found: list[BlockCost] = []
    for first, after in itertools.pairwise(starts):
        readers = [number for number, reach in enumerate(reaches) if reach.reads(first)]
        if readers:
            found.append(BlockCost(first, after - 1, cost(readers)))
    standing = [number for number, reach in enumerate(reaches) if reach.standing]
    return (*found, *([BlockCost(None, None, cost(standing))] if standing else []))


def _scans(relation: Relation | UnitNorms) -> list[Scan]:
    match relation:
        case Scan():
            return [relation]
        case Filter(source) | Project(source) | PublicJoin(source) | PerUnit(source) | UnitWindow(source) | UnitNorms(source):
            return _scans(source)
        case UnitJoin(left, right):
            return _scans(left) + _scans(right)
        case SemiJoin(source, other):
            return _scans(source) + _scans(other)
        case Union(sources):
            return [scan for source in sources for scan in _scans(source)]
        case _:
            assert_never(relation)
