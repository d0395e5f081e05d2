"""Answers by block of time: a statement that adds up over blocks is measured once in each of them, and never again.

A window pays only for the blocks that were not measured before; the others are found in the ledger.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from lapwing.answers.answer import Answer
from lapwing.asking.bound_request import BoundRequest
from lapwing.asking.bound_statement import SteadyPlanner
from lapwing.asking.by_block.series import BlockSeries, BoughtBlock
from lapwing.asking.explaining.block_lines import BlockQuote, count
from lapwing.asking.explaining.explanation import Explanation, explanation
from lapwing.asking.explaining.predicted_errors import predicted_errors
from lapwing.asking.options import Terms
from lapwing.asking.purchase import PriorCharge, Purchase
from lapwing.kernel.accounting import LOSS_UNITS, Cost
from lapwing.kernel.blocks import BlocksRead
from lapwing.kernel.certify import Certified, CertifiedQuery
from lapwing.kernel.ir import Blocks
from lapwing.kernel.release import NoisyTable, Released
from lapwing.ledger.block_balances import most_of
from lapwing.planning.planned import Part, PlannedStatement
from lapwing.sql.rows.block_parts import block_parts
from lapwing.sql.text.privacy_terms import Reuse


@dataclass(frozen=True)
class BlockAnswers:
    """A request whose statement is measured block by block; one series for each of its private queries."""

    whole: BoundRequest
    series: tuple[BlockSeries, ...]

    @property
    def terms(self) -> Terms:
        """What it is asked at."""
        return self.whole.terms

    @cached_property
    def bought(self) -> list[dict[int, BoughtBlock]]:
        """What was bought before, by series and block."""
        return [each.answers() for each in self.series]

    @cached_property
    def over_range(self) -> PlannedStatement:
        """The plan that measures the range as a whole."""
        goal = self.whole.terms.goal
        assert isinstance(goal, Fraction)
        return self.whole.bound.checked_plan(goal)

    def answer(self) -> Answer:
        """Buy the blocks that were not bought, and put all together."""
        missing = self._missing()
        if missing:
            self._require_payable(missing)
        paid = [each.buy(answers) for each, answers in zip(self.series, self.bought, strict=True)]
        by_block: dict[int, Cost] = {}
        for block, cost in (item for costs in paid for item in costs.items()):
            by_block[block] = by_block.get(block, Cost.zero()) + cost
        planned, tables = self._put_together()
        bought = Purchase(planned, None, most_of(by_block.values()), (self._note(len(by_block)),))
        return self.whole.assembled(bought, Released("", tuple(tables)), PriorCharge())

    def explained(self) -> Explanation:
        """What asking would do."""
        planned, _ = self._put_together()
        whole, quote = self.whole, self._quote()
        statement, confidence, analyst = whole.bound.statement, whole.terms.confidence, whole.request.analyst
        return explanation(statement, planned, whole.curator, confidence=confidence, analyst=analyst, quote=quote)

    @property
    def _blocks(self) -> set[int]:
        return {block for each in self.series for block in each.blocks}

    def _note(self, new: int) -> str:
        declared, blocks = self.whole.curator.declaration.blocks, len(self._blocks)
        assert declared is not None
        every = declared.every.value
        if not new:
            return f"measured by {every}: all of {count(blocks, every)} were measured before, so this is free"
        free = "" if new == blocks else f"; the other {count(blocks - new, every)} were measured before and are free"
        return f"measured by {every}: {count(new, every)} paid{free}"

    def _quote(self) -> BlockQuote:
        """What it would cost, and what measuring the range as a whole would."""
        missing, whole, blocks = self._missing(), self.whole, self._blocks
        return BlockQuote(
            cost=most_of(missing.values()),
            person=sum(missing.values(), Cost.zero()),
            reads=_reads(missing or blocks),
            blocks=len(blocks),
            missing=len(missing),
            whole_cost=self.over_range.certified.cost,
            whole_errors=predicted_errors(whole.bound.statement, self.over_range, units=whole.curator.declaration.dataset.units),
        )

    def _missing(self) -> dict[int, Cost]:
        """The blocks that have still to be bought, and what each pays at most."""
        costs: dict[int, Cost] = {}
        for each, answers in zip(self.series, self.bought, strict=True):
            missing = each.missing(answers)
            price = each.quoted() if missing else Cost.zero()
            for block in missing:
                costs[block] = costs.get(block, Cost.zero()) + price
        return costs

    def _require_payable(self, missing: Mapping[int, Cost]) -> None:
        """Refuse, before anything is charged, what the budget of any block cannot pay."""
        person, whole = sum(missing.values(), Cost.zero()), self.whole
        whole.curator.require_payable(whole.request.analyst, most_of(missing.values()), _reads(missing), person)

    def _put_together(self) -> tuple[PlannedStatement, list[NoisyTable]]:
        """The plan and the release of the answer over all blocks; of those that were bought so far."""
        parts, queries, tables = list[Part](), list[CertifiedQuery](), list[NoisyTable]()
        measured: Certified | None = None
        for number, (each, answers) in enumerate(zip(self.series, self.bought, strict=True)):
            template, summed = each.put_together(answers, self.over_range.parts[number], first=len(queries))
            measured = measured or template.planned.measured
            parts.append(summed.part)
            queries += summed.queries
            tables += summed.tables
        planned = PlannedStatement(measured, tuple(parts), self.over_range.facts, over_blocks=tuple(queries))
        return planned, tables


def _reads(blocks: Iterable[int]) -> tuple[BlocksRead, ...]:
    return (BlocksRead(tuple(Blocks(first, last) for first, last in _ranges(sorted(blocks))), standing=False),)


def _ranges(blocks: list[int]) -> Iterator[tuple[int, int]]:
    """Numbers in order as ranges."""
    start = 0
    for place, block in enumerate(blocks):
        if place + 1 == len(blocks) or blocks[place + 1] != block + 1:
            yield blocks[start], block
            start = place + 1


def block_answers(whole: BoundRequest) -> BlockAnswers | None:
    """The request measured block by block; None where it is not the sum of its blocks, and where its range was bought as a whole."""
    statement, terms, curator = whole.bound.statement, whole.terms, whole.curator
    goal = terms.goal
    if curator.declaration.blocks is None or isinstance(goal, Fraction) is False or terms.scaled_groups or terms.reuse is Reuse.ONLY:
        return None
    parts = [block_parts(query, curator.facts) for query in statement.privates]
    planner = SteadyPlanner(curator)
    known = all(of and all(planner.groups(part.newest(curator.facts)) is not None for part in of) for of in parts)
    units = math.floor(goal * LOSS_UNITS / len(parts)) if isinstance(goal, Fraction) and parts else 0
    if not known or not units:
        return None
    found = BlockAnswers(whole, tuple(BlockSeries(whole, of, Fraction(units, LOSS_UNITS), planner) for of in parts))
    if not all(each.blocks and each.is_sum for each in found.series) or (not any(found.bought) and whole.is_stored):
        return None
    return found
