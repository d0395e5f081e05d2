"""Checks balances of blocks of time: derives them again from the entries, and compares them with the tree in the database.

Entries are counted as they come, in ranges: memory holds as many as there are edges of ranges, and a few thousand more.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from lapwing.errors import LedgerError
from lapwing.kernel.accounting import Budget, Cost, admits
from lapwing.kernel.blocks import BlockCost
from lapwing.ledger.amounts import budget_value, ranges_value
from lapwing.ledger.block_balances import BLOCK_MAX, BLOCK_MIN, BlockCharge, BlockTerms, Steps, most_of
from lapwing.ledger.postgres import rows
from lapwing.ledger.postgres.anchors import AnchorPoint, BlockSums
from lapwing.ledger.protocol import EntryKind

if TYPE_CHECKING:
    import psycopg

_RANGES_MAX = 20_000
_LEVEL_MAX = 6
_AMOUNTS = ("loss", "delta", "pure")
_NODE = ", ".join(f"{amount}_{what}::text[]" for what in ("own", "most") for amount in _AMOUNTS)


@dataclass(slots=True)
class _Raised:
    """A sum of ranges: those of many charges are added up from time to time."""

    ranges: list[tuple[int, int, Cost]] = field(default_factory=list)

    def add(self, first: int, last: int, cost: Cost) -> None:
        self.ranges.append((first, last, cost))
        if len(self.ranges) > _RANGES_MAX:
            self.ranges = [(*_numbers(each), each.cost) for each in Steps(self.ranges).ranges()]


@dataclass(slots=True)
class DerivedBlocks:
    """What the entries say of blocks."""

    terms: BlockTerms | None = None
    hull: tuple[int, int] | None = None
    sums: BlockSums = field(default_factory=BlockSums)
    balances: _Raised = field(default_factory=_Raised)
    years: _Raised = field(default_factory=_Raised)
    damaged: int = 0
    """Entries whose costs of blocks cannot be read."""

    def take(self, kind: str, cost: Cost, evidence: str, text: str | None) -> None:
        """Count an entry; ``cost`` is what it added to the balance of tables without time."""
        try:
            if kind == EntryKind.BLOCKS:
                every, _, cap = evidence.partition(" ")
                self.terms = BlockTerms(every, None if cap == "none" else Fraction(cap))
            if self.terms is not None and kind == EntryKind.RESTORE and text is not None:
                self._restore(json.loads(text))
            elif self.terms is not None and (text is not None or kind == EntryKind.RESERVE):
                ranges, person = ((), cost) if text is None else ranges_value(text)
                charge = BlockCharge.of(ranges, person, cost)
                of_years = [BlockCost(first, last, charge.person) for first, last in charge.years(self.terms.every)]
                hull = [number for each in charge.ranges for number in _numbers(each)]
                self._count(charge.ranges, of_years, hull, charge.person)
            else:
                self.damaged += text is not None
        except (ValueError, KeyError, TypeError, LedgerError):
            self.damaged += 1

    def _restore(self, fields: dict[str, Any]) -> None:
        """What was lost went to each block as far as its budget went: the entry says how far."""
        charged = {name: [_piece(*each) for each in fields[name]] for name in ("ranges", "years")}
        self._count(charged["ranges"], charged["years"], fields["hull"], most_of(each.cost for each in charged["years"]))

    def _count(self, of_blocks: Sequence[BlockCost], of_years: Sequence[BlockCost], hull: list[int], person: Cost) -> None:
        for raised, ranges in ((self.balances, of_blocks), (self.years, of_years)):
            for each in ranges:
                raised.add(*_numbers(each), each.cost)
        if hull:
            self.hull = min(*hull, *(self.hull or ())), max(*hull, *(self.hull or ()))
        self.sums = BlockSums(self.sums.blocks + most_of(each.cost for each in of_blocks), self.sums.persons + person)


def check_blocks(
    connection: psycopg.Connection[tuple[Any, ...]], state: AnchorPoint, derived: DerivedBlocks, problems: Counter[str]
) -> None:
    """Compare what the entries say with the state, and with the nodes of both trees."""
    problems["what an entry says of blocks cannot be read"] += derived.damaged
    kept = state.blocks
    problems["the terms of blocks are not those the entries set"] += derived.terms != (None if kept is None else kept.terms)
    if kept is None or derived.terms is None:
        return
    problems["the blocks that were charged are not those of the entries"] += derived.hull != kept.hull
    problems["the sums over blocks and persons are not those of the entries"] += derived.sums != kept.sums
    [(person_budget,)] = connection.execute(
        b"SELECT person_budget FROM lapwing.data_set WHERE ledger_id = %s", [state.ledger_id]
    ).fetchall()
    cap = None if person_budget is None else budget_value(person_budget)
    problems["the cap of a person has other deltas or another order than the budget"] += cap is not None and (
        (cap.account, cap.delta, cap.delta_keys, cap.order)
        != (state.budget.account, state.budget.delta, state.budget.delta_keys, state.budget.order)
    )
    _check_tree(connection, state.ledger_id, 1, derived.balances, state.budget, problems)
    _check_tree(connection, state.ledger_id, 2, derived.years, cap, problems)


_NAMES = {
    1: ("what a block has spent", "a block has spent more than its budget"),
    2: ("what a person lost", "a person lost more than the cap"),
}


def _check_tree(
    connection: psycopg.Connection[tuple[Any, ...]],
    ledger_id: str,
    tree: int,
    derived: _Raised,
    budget: Budget | None,
    problems: Counter[str],
) -> None:
    differs, above = _NAMES[tree]
    roots = connection.execute(
        b"SELECT loss_total::text, delta_total::text, pure_total::text, loss_most::text, delta_most::text, pure_most::text"
        b" FROM lapwing.block_tree WHERE ledger_id = %s AND tree = %s",
        [ledger_id, tree],
    ).fetchall()
    if not roots:
        problems[f"{differs} is missing"] += 1
        return
    *totals, loss, delta, pure = roots[0]
    granted = [None] * 3 if budget is None else [budget.loss_total, budget.delta_total, budget.pure_total]
    problems["a total that charges are compared with is not that of the budget"] += [_int(total) for total in totals] != granted
    nodes = _Nodes(connection, ledger_id, tree)
    pieces = list(nodes.pieces(_LEVEL_MAX, 0, Cost.zero()))
    nodes.wrong += nodes.most(_LEVEL_MAX, 0) != rows.cost_of(loss, delta, pure)
    problems["a most of a node is not that of the nodes below"] += nodes.wrong + (nodes.seen != len(nodes.stored))
    problems[f"{differs} is not the sum of the entries"] += Steps(pieces).ranges() != Steps(derived.ranges).ranges()
    problems[above] += budget is not None and any(not admits(budget, spent=cost, cost=Cost.zero()) for _, _, cost in pieces)


class _Nodes:
    """The nodes of one tree."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]], ledger_id: str, tree: int) -> None:
        statement = f"SELECT tree_level, place, {_NODE} FROM lapwing.block_node WHERE ledger_id = %s AND tree = %s"
        found = connection.execute(statement.encode(), [ledger_id, tree])
        self.stored = {(level, place): (_costs(*amounts[:3]), _costs(*amounts[3:])) for level, place, *amounts in found}
        self.wrong = self.seen = 0

    def most(self, level: int, place: int) -> Cost:
        """The most of a node, as its parts say."""
        return most_of(self.stored[level, place][1]) if (level, place) in self.stored else Cost.zero()

    def pieces(self, level: int, place: int, above: Cost) -> Iterator[tuple[int, int, Cost]]:
        """The ranges that have the same balance, from what the nodes own. Counts parts whose most is not what is below them."""
        first = BLOCK_MIN + (place << 3 * level)
        node = self.stored.get((level, place))
        if node is None:
            if first <= BLOCK_MAX:
                yield first, min(first + (1 << 3 * level) - 1, BLOCK_MAX), above
            return
        self.seen += 1
        for part, (own, most) in enumerate(zip(*node, strict=True)):
            self.wrong += most != own + self.most(level - 1, 8 * place + part)
            yield from self.pieces(level - 1, 8 * place + part, above + own)


def _piece(first: int, last: int, loss: str, delta: str, pure: str | None) -> BlockCost:
    return BlockCost(first, last, rows.cost_of(loss, delta, pure))


def _costs(loss: list[str], delta: list[str], pure: list[str | None]) -> list[Cost]:
    return [rows.cost_of(*amounts) for amounts in zip(loss, delta, pure, strict=True)]


def _numbers(each: BlockCost) -> tuple[int, int]:
    assert each.first is not None and each.last is not None, "the standing block has no numbers"
    return each.first, each.last


def _int(text: str | None) -> int | None:
    return None if text is None else int(text)
