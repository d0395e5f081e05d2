"""Asking, one way for every face: read the text, bind it, price it, and answer or explain it.

A face gives the text and who asks, and gets an ``Answer`` or an ``Explanation``; it needs none of the parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from lapwing.answers.answer import Answer, CostView
from lapwing.answers.assembly import assemble, check_post
from lapwing.answers.notes import impossible_notes, notes_of
from lapwing.answers.quantile_notes import quantile_notes
from lapwing.curator.accuracy_search import Aim
from lapwing.curator.accuracy_targets import Target
from lapwing.curator.asked_price import Number, Terms, pilot_epsilons, scaled_groups_of, terms_of
from lapwing.curator.bought_norms import PricedNorms, buy_norms, fits_of, priced_norms
from lapwing.curator.bound_statement import BoundStatement, bound_statement
from lapwing.curator.charged_release import Answered
from lapwing.curator.explanation import Explanation, explanation, free_explanation
from lapwing.curator.introspection import about_itself, columns_alone, description
from lapwing.curator.life import Curator
from lapwing.curator.privacy_statements import budget_answer, described_answer, explained_answer
from lapwing.errors import Refused
from lapwing.kernel.accounting import Cost, statement_loss
from lapwing.planning.planned import Planned
from lapwing.sql.text.privacy_words import Question, ShowBudget, read_words
from lapwing.sql.text.refusals import span_of
from lapwing.statements import Statement


def ask(
    curator: Curator,
    sql: str,
    *,
    epsilon: Number | None = None,
    confidence: Number | None = None,
    analyst: str | None = None,
    request_id: str | None = None,
    dialect: str = "duckdb",
    scaled_groups: bool | None = None,
) -> Answer:
    """Answer a statement, or what Lapwing's own words ask; see :meth:`lapwing.client.dataset.DataSet.ask`."""
    usual, described = curator.declaration.defaults.confidence, about_itself(curator, sql, dialect=dialect, analyst=analyst)
    if described is not None:
        return described_answer(described, curator.budget(), confidence=usual)
    words = read_words(sql, settings=curator.settings, dialect=dialect)
    if isinstance(words, ShowBudget):
        return budget_answer(curator.budget(), confidence=usual)
    columns = columns_alone(curator, words.statement, dialect=dialect)
    if columns is not None and words.explain:
        return explained_answer(free_explanation(curator), curator.budget(), confidence=usual)
    if columns is not None:
        return described_answer(columns, curator.budget(), confidence=usual)
    posed = _posed(
        curator, sql, words, epsilon=epsilon, confidence=confidence, analyst=analyst, dialect=dialect, scaled_groups=scaled_groups
    )
    if words.explain:
        return explained_answer(posed.explained(), curator.budget(), confidence=posed.terms.confidence)
    return posed.answer(request_id=request_id)


def explain(
    curator: Curator,
    sql: str,
    *,
    epsilon: Number | None = None,
    confidence: Number | None = None,
    analyst: str | None = None,
    dialect: str = "duckdb",
    scaled_groups: bool | None = None,
) -> Explanation:
    """What asking would cost, how it would be bounded and how accurate it would be. Free; touches no data."""
    if about_itself(curator, sql, dialect=dialect, analyst=analyst) is not None:
        return free_explanation(curator)
    words = read_words(sql, settings=curator.settings, dialect=dialect)
    if isinstance(words, ShowBudget):
        message, place = "SHOW PRIVACY BUDGET is free: there is nothing to explain", span_of(sql, 0, len(sql))
        raise Refused("statement-unsupported", message, hint="ask for it as it is", span=place)
    if columns_alone(curator, words.statement, dialect=dialect) is not None:
        return free_explanation(curator)
    posed = _posed(
        curator, sql, words, epsilon=epsilon, confidence=confidence, analyst=analyst, dialect=dialect, scaled_groups=scaled_groups
    )
    return posed.explained()


def describe(curator: Curator, table: str | None = None) -> Answer:
    """What is declared: of all tables, or of the columns of one. Free; reads no row."""
    return described_answer(description(curator, table), curator.budget(), confidence=curator.declaration.defaults.confidence)


def plan_of(curator: Curator, sql: str, epsilon: Number | None = None) -> tuple[Statement, Planned]:
    """A statement without words of ours, and its plan at this epsilon; for audits."""
    bound = bound_statement(curator, sql, dialect="duckdb")
    terms = terms_of(None, epsilon=epsilon, confidence=None, declaration=curator.declaration, budget=bound.budget)
    assert isinstance(terms.goal, Fraction)
    return bound.statement, bound.checked_plan(terms.goal)


def _posed(
    curator: Curator,
    sql: str,
    words: Question,
    *,
    epsilon: Number | None,
    confidence: Number | None,
    analyst: str | None,
    dialect: str,
    scaled_groups: bool | None,
) -> _Posed:
    bound = bound_statement(curator, words, dialect=dialect, scaled_groups=scaled_groups_of(words.clause, scaled_groups))
    terms = terms_of(words.clause, epsilon=epsilon, confidence=confidence, declaration=curator.declaration, budget=bound.budget)
    return _Posed(curator, sql, words, dialect, bound, terms, curator.analyst_default if analyst is None else analyst)


@dataclass(frozen=True, slots=True)
class _Posed:
    """A statement that somebody asks: bound, with its terms."""

    curator: Curator
    sql: str
    words: Question
    dialect: str
    bound: BoundStatement
    terms: Terms
    analyst: str

    def pilots(self) -> tuple[Fraction, ...]:
        """The losses of pilots, for a statement asked for an accuracy."""
        return tuple(statement_loss(self.bound.budget, pilot) for pilot in pilot_epsilons(self.curator.declaration))

    def _usual(self) -> Fraction:
        """The loss of a question that names no price."""
        return statement_loss(self.bound.budget, self.curator.declaration.defaults.epsilon)

    def answer(self, *, request_id: str | None) -> Answer:
        goal = self.terms.goal
        planned = self.bound.plan_at(goal if isinstance(goal, Fraction) else self.pilots()[0])
        if planned.measured is None:
            return self._declared(planned)
        check_post(planned, self.bound.statement.post)
        if isinstance(goal, Target):
            hit = self._aim(goal).reach(request_id=request_id)
            return self._assembled(hit.planned, hit.answered, cost=hit.cost, notes=hit.notes)
        priced, paid = self._norms(planned, goal), Cost.zero()
        if priced.wanted:
            self._require_affordable(planned, priced)
            fits, paid = buy_norms(self.curator, priced, sql=self.sql, analyst=self.analyst, request_id=request_id)
            planned = self.bound.plan_with(goal - priced.loss, fits)
        answered = self.curator.answer(planned.certified.plan, summary=self.sql, analyst=self.analyst, request_id=request_id)
        notes = ("answered before on this version: free, the same answer bit for bit",) if answered.free else ()
        return self._assembled(planned, answered, cost=paid if answered.free else paid + planned.certified.cost, notes=notes)

    def explained(self) -> Explanation:
        goal = self.terms.goal
        planned = self.bound.checked_plan(goal if isinstance(goal, Fraction) else self.pilots()[0])
        if isinstance(goal, Target) and planned.measured is not None:
            return self._aim(goal).explanation()
        priced = PricedNorms()
        if isinstance(goal, Fraction):
            priced = self._norms(planned, goal)
            if priced.wanted:
                planned = self.bound.plan_with(goal - priced.loss, {} if priced.missing() else fits_of(self.curator, priced.found))
        confidence, analyst = self.terms.confidence, self.analyst
        return explanation(self.bound.statement, planned, self.curator, confidence=confidence, analyst=analyst, norms=priced)

    def _norms(self, planned: Planned, price: Fraction) -> PricedNorms:
        is_pure = planned.measured is not None and planned.measured.cost.pure is not None
        return priced_norms(self.curator, planned.wanted, price=price, analyst=self.analyst, pure=is_pure)

    def _require_affordable(self, planned: Planned, priced: PricedNorms) -> None:
        """Refuse, before anything is charged, what the budget or a limit cannot pay as a whole, unless it was paid before."""
        cost = priced.cost()
        if cost.loss:
            whole = planned.certified.cost
            pure = None if whole.pure is None or cost.pure is None else max(whole.pure, cost.pure)
            self.curator.ledger.require_payable(self.analyst, Cost(max(whole.loss, cost.loss), whole.delta, pure))

    def _aim(self, target: Target) -> Aim:
        return Aim(self.curator, self.analyst, self.sql, self.words, self.dialect, self.bound, target, self.pilots(), self._usual())

    def _declared(self, planned: Planned) -> Answer:
        """An answer that measures nothing."""
        assembled = assemble(planned, None, self.bound.statement.post, confidence=self.terms.confidence)
        cost = CostView.of(Cost.zero(), self.curator.declaration.budget(), free=True)
        notes = ("answered from declarations alone: free", *impossible_notes(planned), *self.bound.statement.notes)
        confidence, marks = float(self.terms.confidence), assembled.marks
        return Answer(assembled.table, assembled.intervals, confidence, cost, self.curator.budget(), notes, marks=marks)

    def _assembled(self, planned: Planned, answered: Answered, *, cost: Cost, notes: tuple[str, ...]) -> Answer:
        released, confidence, declaration = answered.released, self.terms.confidence, self.curator.declaration
        assembled = assemble(planned, released, self.bound.statement.post, confidence=confidence)
        about = notes_of(planned, released, assembled, unit=declaration.dataset.unit)
        about += quantile_notes(self.bound.statement, planned, confidence=confidence)
        return Answer(
            assembled.table,
            assembled.intervals,
            float(confidence),
            CostView.of(cost, declaration.budget(), free=cost == Cost.zero()),
            self.curator.budget(),
            (*notes, *about, *self.bound.statement.notes),
            marks=assembled.marks,
            receipt=self.curator.receipt(answered.stored),
            stored=answered.stored.payload,
        )
