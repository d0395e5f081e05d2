"""One private query over blocks of time: what the ledger has of it, and how one more block is bought.

What is bought for a block is found again by a name: a digest of the query without its range and of its share of the price, then the block,
the number of its correction, and what it is. So a window that slides finds the blocks that it had. The bounds of a query are chosen from
histograms of the norms within some blocks, and from profiles that preparation bought: the *evidence*, which the name of every answer tells.
Blocks with the same evidence are bounded alike. Each block buys its own histograms too, from which error bars of any window follow.

Names, plans and prices depend on public facts and the ledger. What a block is charged for is certified like any other plan.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TypeVar, cast
from weakref import WeakKeyDictionary

from lapwing.answers.block_sums import MeasuredAlike, SumOfBlocks, sum_of_blocks
from lapwing.asking.bound_request import BoundRequest
from lapwing.asking.bound_statement import SteadyPlanner
from lapwing.asking.by_block.evidence import EVIDENCE_MAX, HISTOGRAM, BlockHistograms, Evidence, is_precise, norms_name, run_to, weight_of
from lapwing.contribution.histograms import norms_plan
from lapwing.contribution.model import ContributionModel, NormHistogram, fitted_norms
from lapwing.curator.curator import Curator
from lapwing.curator.stored_tables import decode
from lapwing.kernel.accounting import LOSS_UNITS, Cost
from lapwing.kernel.block_calendar import days_of_block
from lapwing.kernel.calendar import to_date
from lapwing.kernel.canonical import digest
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import KnownGroups, Measure, Plan, Query, UnitNorms
from lapwing.kernel.workload import scans_of
from lapwing.ledger.purchases import BlockName, PurchaseKind, PurchaseRecord
from lapwing.planning.planned import Part, PlannedStatement
from lapwing.sql.rows.block_parts import BlockParts, in_block

DIGITS_OF_KEY = 32
"""The part of a digest that names a query; 128 bits."""
MODELS_KEPT = 256
"""Plans and fits of one data set that stay in memory."""
_ANSWER = "a"
_models: WeakKeyDictionary[Curator, dict[Hashable, object]] = WeakKeyDictionary()
"""What was planned and fitted of each data set, the newest last."""
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class BoughtBlock:
    """The answer of one block as it is stored, and the evidence for its bounds."""

    payload: bytes
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Template:
    """The plan of one block, of which those of the others differ in the number of the block and in groups of time."""

    planned: PlannedStatement
    wanted: tuple[UnitNorms, ...] = ()
    """The norms whose histograms its bounds were chosen from, beside profiles."""

    def form(self) -> Hashable:
        """What must be equal in two templates so that their answers add up."""
        queries = self.planned.certified.queries
        vectors = tuple((number, item.vector.name, item.vector.measure) for number, query in enumerate(queries) for item in query.vectors)
        return vectors, tuple(part.recipes for part in self.planned.parts_and_totals)


class BlockSeries:
    """One private query of a request over the blocks that it reads; a share of the price, the ``loss``, is paid by each of them."""

    def __init__(self, request: BoundRequest, parts: Sequence[BlockParts], loss: Fraction, planner: SteadyPlanner) -> None:
        self._request, self._planner = request, planner
        self._known = BlockHistograms(request.curator, request.request.analyst, request.terms.confidence)
        self.loss = loss
        named = [(digest((part.name(), loss))[:DIGITS_OF_KEY], part) for part in parts if planner.groups(part.newest(self._facts)) != ()]
        self._parts = {key: part for key, part in dict(named).items() if self._open(part).measured is not None}
        listed = [(block, key, part) for key, part in named if key in self._parts for block in range(part.first, part.last + 1)]
        self.blocks: dict[int, tuple[str, BlockParts]] = {block: (key, part) for block, key, part in sorted(listed, key=lambda one: one[0])}
        """The blocks in which something is measured, in order, each with the name and the part of its query."""

    @property
    def is_sum(self) -> bool:
        """Whether the same is measured of each block, and of any."""
        return len({Template(self._open(part)).form() for part in self._parts.values()}) == 1

    def _open(self, part: BlockParts) -> PlannedStatement:
        """The plan of a block without bounds from histograms."""
        return self._planner.plan(part.newest(self._facts), self.loss)

    @property
    def _curator(self) -> Curator:
        return self._request.curator

    @property
    def _facts(self) -> Facts:
        return self._curator.facts

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
            for name, payload in self._known.stored(key, _ANSWER, own[0], own[-1]):
                if name.block in self.blocks and self.blocks[name.block][0] == key:
                    found.setdefault(name.block, BoughtBlock(payload, Evidence.of_text(name.rest)))
        if len({item.evidence for item in found.values()}) > 1:
            form = self.template(found[max(found)].evidence).form()
            fitting = {evidence: self.template(evidence).form() == form for evidence in {item.evidence for item in found.values()}}
            found = {block: item for block, item in found.items() if fitting[item.evidence]}
        return dict(sorted(found.items()))

    # Plans

    def template(self, evidence: Evidence, key: str | None = None) -> Template:
        """The plan of a block with bounds from this evidence."""
        name, part = self._main if key is None else (key, self._parts[key])

        def planned() -> Template:
            query = part.newest(self._facts)
            profiles = self._profiles_at(part, evidence)
            unbounded = self._planner.plan(query, self.loss, profiles=profiles)
            if not unbounded.wanted or not evidence.norms:
                return Template(unbounded)
            norms = dict(zip(unbounded.wanted, self._evident(evidence), strict=True))
            return Template(self._planner.plan(query, self.loss - self._norms_loss, norms, profiles), unbounded.wanted)

        return self._kept(("plan", name, evidence), planned)

    def _profiles_at(self, part: BlockParts, evidence: Evidence) -> dict[str, NormHistogram]:
        """The profiles of the evidence, for the block in which a part is planned."""
        blocks = weight_of(len(evidence.norms) or len(evidence.profiles), by_time=part.by_time)
        held = self._known.of_profiles(self._tables, evidence.profiles.start, evidence.profiles.stop - 1) if evidence.profiles else {}
        return self._known.pooled_profiles(held, part.last, blocks=blocks)

    @cached_property
    def _tables(self) -> list[str]:
        """The tables that it reads, but for those of which no unit has several rows."""
        tables = {scan.table for scan in scans_of(self._main[1].query.source)}
        return sorted(table for table in tables if self._facts.table(table).rows_per_unit_max > 1)

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

    def _evident(self, evidence: Evidence) -> list[ContributionModel]:
        """The fits to the histograms of the evidence, one for each of the norms that its main part wants."""
        key, part = self._main
        wanted = self._wanted(key, evidence)
        held = self._known.of_norms(evidence.key, evidence.norms.start, evidence.norms.stop - 1, earlier=True)
        weight = weight_of(len(evidence.norms), by_time=part.by_time)
        return [fitted_norms(pooled.scaled(weight / many)) for pooled, many in self._known.pooled(held, wanted).values()]

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
        key, _ = self._main
        own = {block for block, (name, _) in self.blocks.items() if name == key}
        first, last = max(own) - EVIDENCE_MAX + 1, max(own)
        profiled = self._known.of_profiles(self._tables, first, last)
        new = Evidence(profiles=run_to(max(profiled, default=last), profiled))
        if self._wanted(key, new):
            new = replace(new, norms=run_to(last, own | self._known.of_norms(key, first, last).keys()), key=key)
        if not answers:
            return new
        before = answers[max(answers)].evidence
        grown = any(len(now) >= 2 * len(then) > 0 or (now and not then) for now, then in zip(new.ranges, before.ranges, strict=True))
        return new if grown or last - before.last >= EVIDENCE_MAX else before

    @property
    def _profiled(self) -> Evidence:
        """The evidence that is there before anything is bought."""
        return replace(self.evidence_for({}), norms=range(0))

    def quoted(self) -> Cost:
        """What a new block pays at most."""
        cost = self.template(self._profiled).planned.certified.cost
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
        before = answers[max(answers)].evidence if answers else evidence
        if evidence.norms and not before.norms:
            evidence = before  # histograms would come on top of the price
        self._buy_histograms([*dict.fromkeys([*(block for block in evidence.norms if block in self.blocks), *missing])], evidence, paid)
        if evidence != before and self.template(evidence).form() != self.template(before).form():
            evidence = before  # answers over both would not add up
        for block in missing:
            key = self.blocks[block][0]
            plan = self._placed(self.template(evidence, key).planned.certified.plan, key, block)
            payload = self._charge(plan, key, _ANSWER, block, str(evidence), paid)
            answers[block] = BoughtBlock(payload, evidence)
        return paid

    def _buy_histograms(self, blocks: Sequence[int], evidence: Evidence, paid: dict[int, Cost]) -> None:
        """The histograms of these blocks, where bounds are chosen from any."""
        if not evidence.norms:
            return
        held = {key: self._known.of_norms(key, min(blocks), max(blocks)) for key in {self.blocks[block][0] for block in blocks}}
        wanted = {key: self._wanted(key, evidence) for key in held}
        for block in blocks:
            key, _ = self.blocks[block]
            loss = Fraction(int(self._norms_loss * LOSS_UNITS / max(len(wanted[key]), 1)), LOSS_UNITS)
            for norms in wanted[key]:
                if norms_name(norms) not in held[key].get(block, {}):
                    moved = replace(norms, source=in_block(norms.source, block, self._facts))
                    self._charge(norms_plan(moved, self._facts, loss=loss), key, HISTOGRAM, block, norms_name(norms), paid)

    def _wanted(self, key: str, evidence: Evidence) -> tuple[UnitNorms, ...]:
        part = self._parts[key]
        return self._planner.plan(part.newest(self._facts), self.loss, profiles=self._profiles_at(part, evidence)).wanted

    def _charge(self, plan: Plan, key: str, what: str, block: int, rest: str, paid: dict[int, Cost]) -> bytes:
        """Buy a plan for a block under its name, and note what was paid."""
        request = self._request.request
        name = str(BlockName(key, what, block, self._known.corrections.get(block, 0), rest))
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
            template = self.template(self._profiled)
            unbought = self._alike(template, [*self.blocks], answers)
            return template, sum_of_blocks(whole, [unbought], first=first, confidence=confidence)
        shares: dict[Evidence, list[int]] = {}
        for block, item in answers.items():
            shares.setdefault(item.evidence, []).append(block)
        alike = [self._alike(self.template(evidence), blocks, answers) for evidence, blocks in shares.items()]
        newest = self.template(answers[max(answers)].evidence)
        return newest, sum_of_blocks(whole, alike, first=first, confidence=confidence)

    def _alike(self, template: Template, blocks: Sequence[int], answers: Mapping[int, BoughtBlock]) -> MeasuredAlike:
        """Blocks with the same template."""

        def fits(part: float) -> dict[Measure, ContributionModel]:
            corrected = tuple(self._known.corrections.items())
            place = ("fits", template.wanted, tuple(self._parts), tuple(answers), tuple(blocks), corrected, part)
            return self._kept(place, lambda: self._fitted(template, blocks, answers, part))

        released = [decode(answers[block].payload).tables for block in blocks if block in answers]
        return MeasuredAlike(template.planned, released, len(blocks), fits)

    def _fitted(
        self, template: Template, blocks: Sequence[int], answers: Mapping[int, BoughtBlock], part: float
    ) -> dict[Measure, ContributionModel]:
        """The fitted norms of each measure in such a part of these blocks: by their own histograms where these are precise, and otherwise
        by those of all blocks of the answer."""
        _, main = self._main
        held: dict[int, dict[str, bytes]] = {}
        for key in self._parts:
            of_key = {block for block in answers if self.blocks[block][0] == key}
            if of_key and template.wanted:
                found = self._known.of_norms(key, min(of_key), max(of_key))
                held |= {block: histograms for block, histograms in found.items() if block in of_key}
        own, every = ({block: held[block] for block in of if block in held} for of in (blocks, held))
        # The template may be of another window, whose newest block is another.
        wanted = [replace(norms, source=in_block(norms.source, main.last, self._facts)) for norms in template.wanted]
        of_own, of_all = (self._known.pooled(each, wanted) for each in (own, every))
        many = part * len(blocks)
        pools = {one: pool if is_precise((pool := of_own.get(one, (None, 0)))[0]) else of_all[one] for one in of_all}
        norms = {one: fitted_norms(pooled.scaled(many / number)) for one, (pooled, number) in pools.items() if pooled is not None}
        near = {*answers, *(answers[max(answers)].evidence.profiles if answers else ())}
        profiled = self._known.of_profiles(self._tables, min(near), max(near)) if near else {}
        of_blocks, of_near = ({block: profiled[block] for block in sorted(of) if block in profiled} for of in (set(blocks), near))
        profiles = self._known.pooled_profiles(of_blocks, main.last, blocks=len(of_blocks))
        if not profiles or not all(map(is_precise, profiles.values())):
            of_blocks, profiles = of_near, self._known.pooled_profiles(of_near, main.last, blocks=len(of_near))
        profiles = {name: profile.scaled(many / len(of_blocks)) for name, profile in profiles.items()}
        return self._planner.fits(main.newest(self._facts), norms, profiles)
