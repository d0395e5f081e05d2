"""Blocks of time: which of them a query reads, for which neighbours it is certified, and what each block pays.

With blocks, neighbours differ in one person's rows of one block, or in one person's rows of all tables without blocks together, the
*standing block*. A query is certified for the declared relation if a neighbour changes all or nothing of each of its units: where persons
within a block are its units, and where it reads one block alone. Any other query sees a unit with other rows than before, which may have
rows on both sides, in either relation: it is certified for the replacement of one unit, and every block that it reads pays that.
Proof: docs/proofs/blocks.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from lapwing.errors import Refused
from lapwing.kernel.accounting import DELTA_UNITS, Account, Cost
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Blocks, Relation, UnitNorms
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.workload import scans_of


@dataclass(frozen=True, slots=True)
class BlocksRead:
    """What one query reads: blocks of time, and the standing block or not."""

    blocks: tuple[Blocks, ...]
    standing: bool

    @property
    def apart(self) -> bool:
        """Whether its units are persons within one block."""
        return bool(self.blocks) and self.blocks[0].apart

    @property
    def units_per_person(self) -> int:
        """How many of its units one person may be: one, or one for each block that is read."""
        return sum(last - first + 1 for first, last in merged(self.blocks)) if self.apart else 1

    def reads(self, block: int) -> bool:
        """Whether it may read rows of this block of time."""
        return any(blocks.first <= block <= blocks.last for blocks in self.blocks)

    @property
    def is_local(self) -> bool:
        """Whether a neighbour changes all or nothing of each of its units: units within blocks, or one block alone."""
        numbers = {number for blocks in self.blocks for number in (blocks.first, blocks.last)}
        return self.apart or len(numbers) + self.standing == 1

    def facts(self, facts: Facts) -> Facts:
        """The facts for which the query is certified."""
        return facts if self.is_local else replace(facts, neighbours=Neighbours.BOUNDED)


@dataclass(frozen=True, slots=True)
class BlockCost:
    """What each block of time from ``first`` to ``last`` pays; without numbers, what the standing block pays."""

    first: int | None
    last: int | None
    cost: Cost


def group_cost(cost: Cost, units: int, account: Account) -> Cost:
    """At least the cost for neighbours that differ in ``units`` units, from the cost for one unit (group privacy).

    Thresholds are chosen for one unit, so a delta says nothing about several, and becomes 1.
    """
    return cost if units == 1 else replace(exchange_cost(cost, units, account), delta=DELTA_UNITS if cost.delta else 0)


def exchange_cost(cost: Cost, steps: int, account: Account) -> Cost:
    """At least the cost for exchanging the rows of one unit for others, which takes so many steps of the neighbours that ``cost`` is for:
    two where these add or remove a unit, one where they replace it.

    A divergence grows with the square of the distance, an epsilon with the distance. A threshold is chosen for the keys of one unit, on
    either side, so deltas stay (docs/proofs/key-threshold.md).
    """
    pure = None if cost.pure is None else cost.pure * steps
    return Cost(loss=cost.loss * (steps if account is Account.PURE else steps**2), delta=cost.delta, pure=pure)


def merged(blocks: Iterable[Blocks]) -> list[tuple[int, int]]:
    """The blocks as ranges that do not meet, in order."""
    ranges: list[tuple[int, int]] = []
    for first, last in sorted((each.first, each.last) for each in blocks):
        if ranges and first <= ranges[-1][1] + 1:
            ranges[-1] = ranges[-1][0], max(last, ranges[-1][1])
        else:
            ranges.append((first, last))
    return ranges


def reach_of(source: Relation | UnitNorms) -> BlocksRead:
    """What a query over this source reads, or refuse."""
    scans = scans_of(source)
    blocks = tuple(dict.fromkeys(scan.blocks for scan in scans if scan.blocks is not None))
    standing = any(scan.blocks is None for scan in scans)
    if len({each.apart for each in blocks}) > 1 or (standing and blocks and blocks[0].apart):
        raise Refused("blocks-mixed", "a query takes persons within a block as units in all of its tables, or in none")
    return BlocksRead(blocks, standing)


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
