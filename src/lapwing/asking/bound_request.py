"""A request whose statement is bound: it is bought and answered, or explained, at a price or for an accuracy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from lapwing.answers.answer import Answer, CostView
from lapwing.answers.assembly import assemble, check_post
from lapwing.answers.notes.all_notes import declared_notes, impossible_notes, notes_of
from lapwing.answers.notes.quantiles import quantile_notes
from lapwing.answers.shown_values import PossibleOutputs, shown
from lapwing.answers.table_totals import totals_of
from lapwing.asking.accuracy_solver import AccuracySolver
from lapwing.asking.accuracy_targets import Target
from lapwing.asking.bound_statement import BoundStatement
from lapwing.asking.explaining.explanation import Explanation, explanation, unit_counted
from lapwing.asking.norm_histograms import PricedNorms, buy_norms, fits_of, priced_norms
from lapwing.asking.options import AskRequest, Terms, pilot_epsilons
from lapwing.asking.purchase import PriorCharge, Purchase
from lapwing.asking.release_reuse import ReusableStatement, ServingRelease
from lapwing.curator.curator import Curator
from lapwing.kernel.accounting import Cost
from lapwing.kernel.release import Released
from lapwing.ledger.purchases import PurchaseRecord
from lapwing.planning.planned import PlannedStatement
from lapwing.prices import statement_loss
from lapwing.receipts import Receipt
from lapwing.sql.text.privacy_terms import Reuse
from lapwing.sql.text.privacy_words import Question


@dataclass(frozen=True, slots=True)
class BoundRequest:
    """A request, its bound statement and its terms."""

    curator: Curator
    request: AskRequest
    words: Question
    bound: BoundStatement
    terms: Terms
    purchase: PurchaseRecord
    """What the ledger records of it, but for the histograms that its bounds are chosen from."""

    def pilots(self) -> tuple[Fraction, ...]:
        """The losses of pilots, for a statement asked for an accuracy."""
        return tuple(statement_loss(self.bound.budget, pilot) for pilot in pilot_epsilons(self.curator.prepared))

    def _usual(self) -> Fraction:
        """The loss of a question that named no price when the version was prepared."""
        return statement_loss(self.bound.budget, self.curator.prepared.defaults.epsilon)

    def answer(self, before: PriorCharge | None = None) -> Answer:
        """The answer; ``before`` is what was asked first and belongs to it."""
        before = PriorCharge() if before is None else before
        if (served := self._served()) is not None:
            return served
        bought = self.bought()
        if bought.answered is None:
            return self._declared(bought.planned, before)
        receipt = self.curator.receipt(bought.answered.stored, analyst=self.request.analyst)
        return self.assembled(bought, bought.answered.released, before, receipt=receipt, stored=bought.answered.stored.payload)

    def bought(self) -> Purchase:
        """What the statement needs is bought, or found."""
        goal, request = self.terms.goal, self.request
        planned = self.bound.plan_at(goal if isinstance(goal, Fraction) else self.pilots()[0])
        if planned.measured is None:
            return Purchase(planned, None, Cost.zero())
        check_post(planned, self.bound.statement.post)
        if isinstance(goal, Target):
            return self._aim(goal).reach()
        priced, paid, record = self._norms(planned, goal), Cost.zero(), self.purchase
        sql, analyst, request_id = request.sql, request.analyst, request.request_id
        if priced.wanted:
            self._require_affordable(planned, priced)
            fits, paid = buy_norms(self.curator, priced, request=request, terms=record.terms)
            record = replace(record, histograms=priced.digests())
            planned = self.bound.plan_with(goal - priced.loss, fits)
        answered = self.curator.answer(planned.certified.plan, summary=sql, purchase=record, analyst=analyst, request_id=request_id)
        notes = ("answered before on this version: free, the same answer bit for bit",) if answered.free else ()
        return Purchase(planned, answered, paid if answered.free else paid + planned.certified.cost, notes)

    def explained(self) -> Explanation:
        """What asking would do."""
        goal, server = self.terms.goal, self._server()
        if server is not None and (not isinstance(goal, Target) or self._reusable().answer_within(server, goal) is not None):
            return self._reusable().explanation(server)
        if isinstance(goal, Target):
            planned, priced = self.bound.checked_plan(self.pilots()[0]), PricedNorms()
            if planned.measured is not None:
                return self._aim(goal).explanation()
        else:
            planned, priced = self.priced(goal)
        confidence, analyst = self.terms.confidence, self.request.analyst
        return explanation(self.bound.statement, planned, self.curator, confidence=confidence, analyst=analyst, norms=priced)

    @property
    def is_stored(self) -> bool:
        """Whether it was bought before at this price, as a whole."""
        goal = self.terms.goal
        if isinstance(goal, Target):
            return False
        planned, norms = self.priced(goal)
        bought = planned.measured is not None and not norms.missing()
        return bought and self.curator.stored(planned.certified, analyst=self.request.analyst) is not None

    def _reusable(self) -> ReusableStatement:
        return ReusableStatement(self.curator, self.bound.statement, self.terms.confidence, self.request.analyst, self.terms.reuse)

    def _server(self) -> ServingRelease | None:
        """The release that may answer it; None where what was bought before does, where nothing has to be bought, or where none may."""
        goal = self.terms.goal
        if self.terms.reuse is Reuse.NEVER or not self.bound.statement.privates:
            return None
        if self.terms.reuse is Reuse.ONLY or (isinstance(goal, Target) and self._reusable().is_possible):
            return self._reusable().server(None)
        if isinstance(goal, Target) or not self._reusable().is_possible:
            return None
        planned, _ = self.priced(goal)
        return None if planned.measured is None or self.is_stored else self._reusable().server(planned)

    def _served(self) -> Answer | None:
        server, goal = self._server(), self.terms.goal
        if server is None:
            return None
        return self._reusable().answer_within(server, goal) if isinstance(goal, Target) else self._reusable().answer(server)

    def priced(self, goal: Fraction) -> tuple[PlannedStatement, PricedNorms]:
        """The plan at this loss, with bounds from norms where these are bought already; and the norms."""
        planned = self.bound.checked_plan(goal)
        priced = self._norms(planned, goal)
        if priced.wanted:
            planned = self.bound.plan_with(goal - priced.loss, {} if priced.missing() else fits_of(self.curator, priced.found))
        return planned, priced

    def _norms(self, planned: PlannedStatement, price: Fraction) -> PricedNorms:
        is_pure = planned.measured is not None and planned.measured.cost.pure is not None
        return priced_norms(self.curator, planned.wanted, price=price, analyst=self.request.analyst, pure=is_pure)

    def _require_affordable(self, planned: PlannedStatement, priced: PricedNorms) -> None:
        """Refuse, before anything is charged, what the budget or a limit cannot pay as a whole, unless it was paid before."""
        cost = priced.cost()
        if cost.loss:
            whole = planned.certified.cost
            pure = None if whole.pure is None or cost.pure is None else max(whole.pure, cost.pure)
            self.curator.require_payable(self.request.analyst, Cost(max(whole.loss, cost.loss), whole.delta, pure), self.bound.reads)

    def _aim(self, target: Target) -> AccuracySolver:
        bound = self.bound.without_profiles()
        return AccuracySolver(self.curator, self.request, self.words, bound, target, self.pilots(), self._usual(), self.purchase)

    def _declared(self, planned: PlannedStatement, before: PriorCharge) -> Answer:
        """An answer that measures nothing."""
        assembled = assemble(planned, None, self.bound.statement.post, confidence=self.terms.confidence)
        cost = CostView.of(before.cost, self.curator.declaration.budget(), free=before.cost == Cost.zero())
        free = () if before.cost.loss else ("answered from declarations alone: free",)
        statement = self.bound.statement
        notes = (*before.notes, *free, *impossible_notes(planned), *declared_notes(planned, statement.post), *statement.notes)
        confidence, marks = float(self.terms.confidence), assembled.marks
        return Answer(assembled.table, assembled.intervals, confidence, cost, self.curator.budget(), notes, marks=marks)

    def assembled(
        self, bought: Purchase, released: Released, before: PriorCharge, *, receipt: Receipt | None = None, stored: bytes | None = None
    ) -> Answer:
        """The answer from what was bought."""
        confidence, declaration = self.terms.confidence, self.curator.declaration
        planned, cost = bought.planned, before.cost + bought.cost
        possible = self._possible(planned)
        assembled = assemble(planned, released, self.bound.statement.post, confidence=possible.confidence)
        post, unit = self.bound.statement.post, unit_counted(declaration, planned)
        about = notes_of(planned, released, assembled, post, unit=unit, confidence=confidence)
        about += quantile_notes(self.bound.statement, planned, confidence=confidence)
        seen = shown(assembled, self.bound.statement, planned.facts, possible)
        return Answer(
            seen.assembled.table,
            seen.assembled.intervals,
            float(confidence),
            CostView.of(cost, declaration.budget(), free=cost == Cost.zero()),
            self.curator.budget_of(self.bound.reads),
            (*before.notes, *bought.notes, *about, *seen.notes, *self.bound.statement.notes),
            marks=seen.assembled.marks,
            receipt=receipt,
            stored=stored,
        )

    def _possible(self, planned: PlannedStatement) -> PossibleOutputs:
        """What is possible for its outputs. Bars that were asked for by their length are computed at the requested confidence."""
        return PossibleOutputs.of(
            self.bound.statement,
            planned.facts,
            units=self.curator.prepared.dataset.units,
            totals=totals_of(self.curator.state.statistics(), planned.facts),
            confidence=self.terms.confidence,
            longer=isinstance(self.terms.goal, Fraction),
        )
