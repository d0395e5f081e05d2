"""One private query over blocks of time: what the ledger has of it, and how one more block is bought.

What is bought for a block is found again by a name: a digest of the query without its range and of its share of the price, then the block,
the number of its correction, and what it is. So a window that slides finds the blocks that it had. The bounds of a query are chosen from
histograms of the norms within some blocks of its first window, the *evidence*, which the name of every answer tells. So all blocks are
bounded alike, and their answers add up. Each block buys its own histograms too, from which error bars of any window follow.

Names, plans and prices depend on public facts and the ledger. What a block is charged for is certified like any other plan.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TypeVar, cast
from weakref import WeakKeyDictionary

from lapwing.answers.block_sums import MeasuredAlike, SumOfBlocks, sum_of_blocks, summed
from lapwing.asking.bound_request import BoundRequest
from lapwing.asking.bound_statement import SteadyPlanner
from lapwing.contribution.histograms import histogram_of, norms_plan
from lapwing.contribution.model import ContributionModel, NormHistogram, fitted_norms
from lapwing.curator.curator import Curator
from lapwing.curator.stored_tables import decode
from lapwing.kernel.accounting import LOSS_UNITS, Cost
from lapwing.kernel.block_calendar import days_of_block
from lapwing.kernel.calendar import to_date
from lapwing.kernel.canonical import digest
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import KnownGroups, Plan, Query, UnitNorms
from lapwing.kernel.release import NoisyTable
from lapwing.ledger.purchases import PurchaseKind, PurchaseRecord
from lapwing.planning.planned import Part, PlannedStatement
from lapwing.sql.rows.block_parts import BlockParts, in_block

EVIDENCE_MAX = 32
"""Most blocks whose histograms choose the bounds of a query."""
DIGITS_OF_KEY = 32
"""The part of a digest that names a query; 128 bits."""
MODELS_KEPT = 256
"""Plans and fits of one data set that stay in memory."""
_FIRST_BLOCK = 10_000_000
"""Added to the numbers of blocks in names, so that these are not negative and sort as the blocks do."""
_ANSWER, _HISTOGRAM = "a", "n"
_models: WeakKeyDictionary[Curator, dict[Hashable, object]] = WeakKeyDictionary()
"""What was planned and fitted of each data set, the newest last."""
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Evidence:
    """The blocks whose histograms chose the bounds of an answer; none where no bound is chosen from histograms."""

    first: int = 0
    last: int = -1
    key: str = ""
    """The name of the query that its histograms are of: that of another part, where conditions on time differ from block to block."""

    @property
    def blocks(self) -> range:
        """Their numbers."""
        return range(self.first, self.last + 1)

    def __str__(self) -> str:
        return f"{_FIRST_BLOCK + self.first}-{_FIRST_BLOCK + self.last}-{self.key}"

    @staticmethod
    def of_text(text: str) -> Evidence:
        """The evidence that a name tells."""
        first, last, key = text.split("-")
        return Evidence(int(first) - _FIRST_BLOCK, int(last) - _FIRST_BLOCK, key)


@dataclass(frozen=True, slots=True)
class BoughtBlock:
    """The answer of one block as it is stored, and the evidence for its bounds."""

    payload: bytes
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Template:
    """The plan of one block, of which those of the others differ in the number of the block and in groups of time."""

    planned: PlannedStatement
    wanted: tuple[UnitNorms, ...]
    fits: tuple[ContributionModel, ...]
    """From which its bounds were chosen: one for each of the wanted norms."""

    def form(self) -> Hashable:
        """What must be equal in two templates so that their answers add up."""
        queries = self.planned.certified.queries
        vectors = tuple((number, item.vector.name, item.vector.measure) for number, query in enumerate(queries) for item in query.vectors)
        return vectors, tuple(part.recipes for part in self.planned.parts_and_totals)


class BlockSeries:
    """One private query of a request over the blocks that it reads; a share of the price, the ``loss``, is paid by each of them."""

    def __init__(self, request: BoundRequest, parts: Sequence[BlockParts], loss: Fraction, planner: SteadyPlanner) -> None:
        self._request, self._planner = request, planner
        self.loss = loss
        named = [(digest((part.name(), loss))[:DIGITS_OF_KEY], part) for part in parts if planner.groups(part.newest(self._facts)) != ()]
        self._parts = {key: part for key, part in dict(named).items() if self._open(part).measured is not None}
        listed = [(block, key, part) for key, part in named if key in self._parts for block in range(part.first, part.last + 1)]
        self.blocks: dict[int, tuple[str, BlockParts]] = {block: (key, part) for block, key, part in sorted(listed, key=lambda one: one[0])}
        """The blocks in which something is measured, in order, each with the name and the part of its query."""

    @property
    def is_sum(self) -> bool:
        """Whether the same is measured of each block, and of any."""
        return len({Template(self._open(part), (), ()).form() for part in self._parts.values()}) == 1

    def _open(self, part: BlockParts) -> PlannedStatement:
        """The plan of a block without bounds from histograms."""
        return self._planner.plan(part.newest(self._facts), self.loss, {})

    @property
    def _curator(self) -> Curator:
        return self._request.curator

    @property
    def _facts(self) -> Facts:
        return self._curator.facts

    @cached_property
    def _corrections(self) -> dict[int, int]:
        return {block: number for table in self._facts.tables.values() for block, number in table.corrected}

    @cached_property
    def _main(self) -> tuple[str, BlockParts]:
        """The name and the part that most blocks have: its histograms are the evidence for all."""
        number = Counter(key for key, _ in self.blocks.values())
        return max(self._parts.items(), key=lambda item: number[item[0]])

    # What the ledger has

    def answers(self) -> dict[int, BoughtBlock]:
        """The answers of its blocks that this analyst may see, as they stand after their corrections, in the order of blocks."""
        found: dict[int, BoughtBlock] = {}
        for key in self._parts:
            own = [block for block, (name, _) in self.blocks.items() if name == key]
            for block, evidence, payload in self._stored(key, _ANSWER, own[0], own[-1]):
                if block in self.blocks and self.blocks[block][0] == key:
                    found.setdefault(block, BoughtBlock(payload, Evidence.of_text(evidence)))
        if len({item.evidence for item in found.values()}) > 1:
            form = self.template(found[max(found)].evidence).form()
            fitting = {evidence: self.template(evidence).form() == form for evidence in {item.evidence for item in found.values()}}
            found = {block: item for block, item in found.items() if fitting[item.evidence]}
        return dict(sorted(found.items()))

    def _stored(self, key: str, what: str, first: int, last: int, *, earlier: bool = False) -> Iterator[tuple[int, str, bytes]]:
        """What was bought under a name in these blocks: the block, the rest of the name, and the bytes. With ``earlier``, also of rows that
        were corrected since, the earliest first."""
        ends = [f"{key}/{what}/{_FIRST_BLOCK + block:08d}" for block in (first, last + 1)]
        for item in self._curator.ledger.named(ends[0], ends[1], version=self._facts.version, analyst=self._request.request.analyst):
            _, _, block, correction, rest = item.name.split("/")
            if earlier or int(correction) == self._corrections.get(int(block) - _FIRST_BLOCK, 0):
                yield int(block) - _FIRST_BLOCK, rest, item.stored.payload

    def _histograms(self, key: str, first: int, last: int, *, earlier: bool = False) -> dict[int, dict[int, bytes]]:
        """The stored histograms by block and number of the norms."""
        found: dict[int, dict[int, bytes]] = {}
        for block, number, payload in self._stored(key, _HISTOGRAM, first, last, earlier=earlier):
            found.setdefault(block, {}).setdefault(int(number), payload)
        return found

    def name(self, key: str, block: int, what: str, rest: str) -> str:
        """The name under which something is bought for a block."""
        return f"{key}/{what}/{_FIRST_BLOCK + block:08d}/{self._corrections.get(block, 0):04d}/{rest}"

    # Plans

    def template(self, evidence: Evidence, key: str | None = None) -> Template:
        """The plan of a block with bounds from this evidence."""
        main, _ = self._main
        name = main if key is None else key

        def planned() -> Template:
            part = self._parts[name]
            open_plan = self._open(part)
            if not evidence.blocks:
                return Template(open_plan, (), ())
            fits = self._evident(evidence, open_plan.wanted) if name == main else self.template(evidence).fits
            norms = dict(zip(open_plan.wanted, fits, strict=True))
            plan = self._planner.plan(part.newest(self._facts), self.loss - self._norms_loss, norms)
            return Template(plan, open_plan.wanted, fits)

        return self._kept(("plan", name, evidence), planned)

    def _kept(self, place: Hashable, make: Callable[[], Made]) -> Made:
        """What was made before for this place, on this version and for this analyst; or it is made now."""
        kept = _models.setdefault(self._curator, {})
        key = (self._facts.version, self._request.request.analyst, place)
        if key not in kept:
            made = make()
            for old in [*kept][: max(len(kept) - MODELS_KEPT, 0)]:
                kept.pop(old, None)
            kept[key] = made
        return cast("Made", kept[key])

    @property
    def _norms_loss(self) -> Fraction:
        """The part of the price for histograms, where any are wanted."""
        share = self._curator.prepared.declared_budget.norms_share
        return Fraction(int(self.loss * share * LOSS_UNITS), LOSS_UNITS)

    def _evident(self, evidence: Evidence, wanted: Sequence[UnitNorms]) -> tuple[ContributionModel, ...]:
        """The fits that bounds are chosen from. A window adds up the errors of its blocks by their squares, and what they cut off as it is:
        the bounds are the best ones for a window of as many blocks as the evidence has."""
        _, part = self._main
        held = self._histograms(evidence.key, evidence.first, evidence.last, earlier=True)
        weight = 1 / (len(held) if part.by_time else math.sqrt(len(held)))
        return tuple(fitted_norms(each.scaled(weight)) for each in self._pooled(held, wanted))

    def _pooled(self, held: Mapping[int, Mapping[int, bytes]], wanted: Sequence[UnitNorms]) -> list[NormHistogram]:
        """Histograms of several blocks as one, by number of the norms."""
        confidence = self._request.terms.confidence
        stored = [[decode(of_block[number]).tables[0] for of_block in held.values() if number in of_block] for number in range(len(wanted))]
        pairs = zip(wanted, stored, strict=True)
        return [histogram_of(norms, summed(tables, tables[0].groups, confidence=confidence), self._facts) for norms, tables in pairs]

    def _placed(self, plan: Plan, key: str, block: int) -> Plan:
        """The plan of another block."""

        def of_block(query: Query) -> Query:
            assert not isinstance(query.source, UnitNorms)
            moved = replace(query, source=in_block(query.source, block, self._facts))
            groups = self._planner.groups(moved) if self.blocks[block][1].timed_keys and query.keys else None
            return moved if groups is None else replace(moved, groups=KnownGroups(groups))

        return Plan(tuple(of_block(query) for query in plan.queries))

    # Buying

    def evidence_for(self, answers: Mapping[int, BoughtBlock]) -> Evidence:
        """The evidence for new blocks: that of the newest one that was bought, until there is twice as much, or it is old."""
        if not self.template(Evidence()).planned.wanted:
            return Evidence()
        key, _ = self._main
        own = {block for block, (name, _) in self.blocks.items() if name == key}
        last = max(own)
        known = own | self._histograms(key, last - EVIDENCE_MAX + 1, last).keys()
        first = last
        while first - 1 in known and last - first + 1 < EVIDENCE_MAX:
            first -= 1
        new = Evidence(first, last, key)
        if not answers:
            return new
        before = answers[max(answers)].evidence
        is_better = len(new.blocks) >= 2 * len(before.blocks) or last - before.last >= EVIDENCE_MAX
        return new if is_better else before

    def quoted(self) -> Cost:
        """What a new block pays at most."""
        cost = self.template(Evidence()).planned.certified.cost
        return Cost(max(cost.loss, math.floor(self.loss * LOSS_UNITS)), cost.delta, cost.pure)

    def missing(self, answers: Mapping[int, BoughtBlock]) -> list[int]:
        """The blocks without an answer."""
        return [block for block in self.blocks if block not in answers]

    def buy(self, answers: dict[int, BoughtBlock]) -> dict[int, Cost]:
        """Buy the answers that are missing, into ``answers``; what each block paid."""
        missing, paid = self.missing(answers), dict[int, Cost]()
        if not missing:
            return paid
        evidence = self.evidence_for(answers)
        self._buy_histograms([*dict.fromkeys([*(block for block in evidence.blocks if block in self.blocks), *missing])], evidence, paid)
        if (
            answers
            and evidence != (before := answers[max(answers)].evidence)
            and self.template(evidence).form() != self.template(before).form()
        ):
            evidence = before  # answers over both would not add up
        for block in missing:
            key = self.blocks[block][0]
            plan = self._placed(self.template(evidence, key).planned.certified.plan, key, block)
            payload = self._charge(plan, self.name(key, block, _ANSWER, str(evidence)), block, paid)
            answers[block] = BoughtBlock(payload, evidence)
        return paid

    def _buy_histograms(self, blocks: Sequence[int], evidence: Evidence, paid: dict[int, Cost]) -> None:
        """The histograms of these blocks, where bounds are chosen from any."""
        if not evidence.blocks:
            return
        held = {key: self._histograms(key, min(blocks), max(blocks)) for key in {self.blocks[block][0] for block in blocks}}
        for block in blocks:
            key, _ = self.blocks[block]
            wanted = self.template(Evidence(), key).planned.wanted
            loss = Fraction(int(self._norms_loss * LOSS_UNITS / max(len(wanted), 1)), LOSS_UNITS)
            for number, norms in enumerate(wanted):
                if number not in held[key].get(block, {}):
                    moved = replace(norms, source=in_block(norms.source, block, self._facts))
                    name = self.name(key, block, _HISTOGRAM, str(number))
                    self._charge(norms_plan(moved, self._facts, loss=loss), name, block, paid)

    def _charge(self, plan: Plan, name: str, block: int, paid: dict[int, Cost]) -> bytes:
        """Buy a plan for a block under a name, and note what was paid."""
        request = self._request.request
        record = PurchaseRecord(PurchaseKind.BLOCK, name=name, terms=self._request.purchase.terms)
        own = None if request.request_id is None else f"{request.request_id}/block-{digest(name)[:DIGITS_OF_KEY]}"
        summary = f"{self._days(block)}: {request.sql}"
        answered = self._curator.answer(plan, summary=summary, purchase=record, analyst=request.analyst, request_id=own)
        if not answered.free:
            paid[block] = paid.get(block, Cost.zero()) + self._curator.preview(plan).cost
        return answered.stored.payload

    def _days(self, block: int) -> str:
        declared = self._curator.declaration.blocks
        assert declared is not None
        first, last = (to_date(day) for day in days_of_block(block, declared.every))
        return f"{first}" if first == last else f"{first} to {last}"

    # Putting together

    def put_together(self, answers: Mapping[int, BoughtBlock], whole: Part, *, first: int) -> tuple[Template, SumOfBlocks]:
        """A plan of a block, and the part of the answer over all blocks: as it was bought, or as it would be.

        Its queries are numbered from ``first`` on.
        """
        confidence = self._request.terms.confidence
        if not answers:
            template = self.template(Evidence())
            return template, sum_of_blocks(
                whole, [self._alike(template, [], len(self.blocks), answers)], first=first, confidence=confidence
            )
        shares: dict[Evidence, list[int]] = {}
        for block, item in answers.items():
            shares.setdefault(item.evidence, []).append(block)
        alike = [
            self._alike(self.template(evidence), [decode(answers[block].payload).tables for block in blocks], len(blocks), answers)
            for evidence, blocks in shares.items()
        ]
        newest = self.template(answers[max(answers)].evidence)
        return newest, sum_of_blocks(whole, alike, first=first, confidence=confidence)

    def _alike(
        self, template: Template, released: Sequence[tuple[NoisyTable, ...]], blocks: int, answers: Mapping[int, BoughtBlock]
    ) -> MeasuredAlike:
        """Blocks with the same template; their histograms are taken to be like those of all blocks of the answer."""

        def fits(part: float) -> dict[int, ContributionModel]:
            if not template.wanted:
                return {}
            fitted = self._fitted(template.wanted, tuple(answers), part * blocks / len(answers))
            return {id(fit): of_blocks for fit, of_blocks in zip(template.fits, fitted, strict=True)}

        return MeasuredAlike(template.planned, released, blocks, fits)

    def _fitted(self, wanted: Sequence[UnitNorms], blocks: tuple[int, ...], share: float) -> tuple[ContributionModel, ...]:
        """The fits to the histograms of such a share of these blocks."""

        def pooled() -> list[NormHistogram]:
            held: dict[int, dict[int, bytes]] = {}
            for key in self._parts:
                own = {block for block in blocks if self.blocks[block][0] == key}
                held |= {block: found for block, found in self._histograms(key, min(own), max(own)).items() if block in own} if own else {}
            return self._pooled(held, wanted)

        place = (tuple(self._parts), blocks, tuple(self._corrections.items()))
        return self._kept(
            ("fits", *place, share), lambda: tuple(fitted_norms(each.scaled(share)) for each in self._kept(("pool", *place), pooled))
        )
