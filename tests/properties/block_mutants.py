"""Deliberate bugs of blocks of time: each charges too few blocks, or certifies too little for one of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lapwing.catalog import blocks as calendar_blocks
from lapwing.engines import prepare
from lapwing.kernel import blocks, certify, stability
from lapwing.kernel.accounting import Account
from lapwing.kernel.blocks import BlocksRead
from lapwing.kernel.expressions import Column, Function, call
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Scan, SemiJoin, UnitJoin
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.workload import scans_of
from lapwing.render import relations

_SCAN, _SCANS, _COSTS = stability._scan, scans_of, blocks.costs_by_block
_BLOCK_PREDICATE, _RANK_OF = relations.block_predicate, prepare.rank_of


@dataclass(frozen=True)
class BlockMutant:
    """A bug: what is replaced, and where it must be seen."""

    name: str
    patches: tuple[tuple[object, str, Any], ...]
    shapes: tuple[str, ...]
    """Shapes whose names start so."""
    relation: str = "unbounded"
    account: Account = Account.APPROXIMATE


def _declared(self: BlocksRead, facts: Facts) -> Facts:
    return facts


def _one_range_is_one_block(self: BlocksRead, facts: Facts) -> Facts:
    alone = self.apart or len({each.first for each in self.blocks}) + self.standing == 1
    return facts if alone else replace(facts, neighbours=Neighbours.BOUNDED)


def _people_do_not_count(self: BlocksRead, facts: Facts) -> Facts:
    numbers = {number for each in self.blocks for number in (each.first, each.last)}
    return facts if self.apart or len(numbers) <= 1 else replace(facts, neighbours=Neighbours.BOUNDED)


def _rows_of_one_block(scan: Scan, facts: Facts) -> stability.Shape:
    shape = _SCAN(scan, facts)
    return replace(shape, rows_per_unit=scan.rows_per_unit)


def _left_side_alone(relation: Any) -> tuple[Scan, ...]:
    return _SCANS(relation.left if isinstance(relation, UnitJoin) else relation)


def _without_other(relation: Any) -> tuple[Scan, ...]:
    return _SCANS(relation.source if isinstance(relation, SemiJoin) else relation)


def _standing_is_free(reaches: Any, cost: Any) -> Any:
    return tuple(block for block in _COSTS(reaches, cost) if block.first is not None)


def _first_query_pays(reaches: Any, cost: Any) -> Any:
    return _COSTS(reaches[:1], cost)


def _last_block_is_free(reaches: Any, cost: Any) -> Any:
    return tuple(replace(block, last=block.last - 1) if block.last is not None else block for block in _COSTS(reaches, cost))


def _first_range_alone(self: BlocksRead, block: int) -> bool:
    return self.blocks[0].first <= block <= self.blocks[0].last


def _shifted(first: int, last: int) -> Any:
    def mutated(alias: str, read: Any) -> str:
        return _BLOCK_PREDICATE(alias, replace(read, first=read.first + first, last=read.last + last))

    return mutated


def _rank_within_person(window: str) -> str:
    return _RANK_OF(window.replace(", c._block", ""))


def _late_days_elsewhere(declared: Any) -> Any:
    """Days from the 16th on are in the block half a year later."""
    late = call(Function.INTEGER_DIVIDE, call(Function.DAY, Column(declared.column)), calendar_blocks._number(16))
    later = call(Function.MULTIPLY, late, calendar_blocks._number(6))
    return call(Function.ADD, calendar_blocks.number_of_block(declared), later)


def _any_block(declared: Any) -> Any:
    """Rows without a day go to the first block."""
    first = calendar_blocks._number(12 * 2024)
    return call(Function.COALESCE, calendar_blocks.number_of_block(declared), first)


MUTANTS: tuple[BlockMutant, ...] = (
    BlockMutant(
        "persons over blocks certified like persons within them",
        ((BlocksRead, "facts", _declared),),
        ("clipped, over", "norms of counts, over"),
    ),
    BlockMutant(
        "a range taken for one block", ((BlocksRead, "facts", _one_range_is_one_block),), ("clipped, over", "norms of counts, over")
    ),
    BlockMutant(
        "people beside one block not seen as another block", ((BlocksRead, "facts", _people_do_not_count),), ("visits of one", "people")
    ),
    BlockMutant("rows of one block for a range", ((stability, "_scan", _rows_of_one_block),), ("a join of two",)),
    BlockMutant("the right side of a join is free", ((blocks, "scans_of", _left_side_alone),), ("a join of two", "visits of one")),
    BlockMutant("the other side of a semi-join is free", ((blocks, "scans_of", _without_other),), ("came in", "people")),
    BlockMutant("a static join charged to events only", ((certify, "costs_by_block", _standing_is_free),), ("visits of one", "people")),
    BlockMutant(
        "the first query pays for all", ((certify, "costs_by_block", _first_query_pays),), ("two queries", "norms of counts, over")
    ),
    BlockMutant("the last block of a range is free", ((certify, "costs_by_block", _last_block_is_free),), ("ranked, one group", "norms")),
    BlockMutant("only the first range is read", ((BlocksRead, "reads", _first_range_alone),), ("a union of two", "a union within")),
    BlockMutant("a range one block longer", ((relations, "block_predicate", _shifted(0, 1)),), ("ranked, by clinic", "a union", "came in")),
    BlockMutant(
        "a range one block earlier", ((relations, "block_predicate", _shifted(-1, 0)),), ("ranked, by clinic", "a union", "came in")
    ),
    BlockMutant(
        "no range at all", ((relations, "block_predicate", lambda alias, read: "TRUE"),), ("ranked, by clinic, of one", "clipped, of one")
    ),
    BlockMutant(
        "a join through another table's block",
        ((relations, "unit_of_block", lambda alias, dialect: f"CAST({alias}._unit AS {dialect.text})"),),
        ("a join within", "clipped, within", "units with many visits of"),
    ),
    BlockMutant("ranks within the person", ((prepare, "rank_of", _rank_within_person),), ("ranked, by clinic", "a join within")),
    BlockMutant(
        "late days in another block", ((prepare, "number_of_block", _late_days_elsewhere),), ("ranked, one group", "clipped, of one")
    ),
    BlockMutant("rows without a day in the first block", ((prepare, "number_of_block", _any_block),), ("ranked, by clinic",)),
    BlockMutant(
        "persons over blocks in a bounded relation, as if nobody had rows on both sides",
        ((BlocksRead, "facts", lambda self, facts: replace(facts, neighbours=Neighbours.UNBOUNDED)),),
        ("clipped", "ranked, one group", "norms"),
        relation="bounded",
    ),
    BlockMutant(
        "a pure account pays for the first range alone",
        ((certify, "costs_by_block", _first_query_pays),),
        ("two queries", "norms of counts, over"),
        account=Account.PURE,
    ),
)
BY_NAME = {mutant.name: mutant for mutant in MUTANTS}
