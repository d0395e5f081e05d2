"""Asking, the same for every interface: read the text, bind it, price it, and answer or explain it.

An interface passes an ``AskRequest`` and gets an ``Answer`` or an ``Explanation``; it needs none of the parts.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction

from lapwing.answers.answer import Answer
from lapwing.asking.bound_request import BoundRequest
from lapwing.asking.bound_statement import bound_statement
from lapwing.asking.by_block.answers import BlockAnswers, block_answers
from lapwing.asking.explaining.explanation import Explanation, free_explanation
from lapwing.asking.introspection import about_itself, columns_alone, description
from lapwing.asking.options import AskOptions, AskRequest, Number, reuse_of, scaled_groups_of, terms_of
from lapwing.asking.privacy_statements import budget_answer, described_answer, explained_answer
from lapwing.asking.replay_terms import recorded_terms
from lapwing.asking.staged_query import StagedQuery
from lapwing.curator.cost_estimate import on_charge, only_free
from lapwing.curator.curator import Curator
from lapwing.curator.request_name import answering
from lapwing.curator.version_use import one_version
from lapwing.errors import BudgetRefused, Refused
from lapwing.ledger.purchases import PurchaseKind, PurchaseRecord
from lapwing.planning.planned import PlannedStatement
from lapwing.sql.text.privacy_terms import Reuse
from lapwing.sql.text.privacy_words import Question, ShowBudget, read_words
from lapwing.sql.text.refusals import span_of
from lapwing.statements import Statement


@one_version()
def ask(curator: Curator, request: AskRequest) -> Answer:
    """Answer a statement, or what Lapwing's own words ask; see :meth:`lapwing.data_set.DataSet.ask`."""
    sql, dialect, usual = request.sql, request.options.dialect, curator.declaration.defaults.confidence
    described = about_itself(curator, sql, dialect=dialect, analyst=request.analyst)
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
    if request.request_id is None:  # several charges of one request name it as their parent
        request = replace(request, request_id=secrets.token_hex(16))
    with answering(request.request_id), _budget_hint(curator):
        with curator.planning.one_by_one(request.analyst):
            bound = _bound(curator, request, words)
        if words.explain:
            return explained_answer(bound.explained(), curator.budget(), confidence=bound.terms.confidence)
        return bound.answer()


def replay(curator: Curator, request: AskRequest) -> Answer:
    """The answer to what was answered before; refused (``not-answered-before``) where it would cost something."""
    with on_charge(only_free):
        return ask(curator, request)


@contextmanager
def _budget_hint(curator: Curator) -> Iterator[None]:
    """A refusal for the budget says that the catalogue has a higher one, if it does. Only the owner raises it, no question does."""
    try:
        yield
    except BudgetRefused as error:
        if error.code in ("budget-exceeded", "error-too-dear"):
            error.hint = curator.budget_waiting() or error.hint
        raise


@one_version()
def explain(curator: Curator, request: AskRequest) -> Explanation:
    """What asking would cost, how it would be bounded and how accurate it would be. Free; touches no data."""
    sql, dialect = request.sql, request.options.dialect
    with curator.planning.one_by_one(request.analyst):
        if about_itself(curator, sql, dialect=dialect, analyst=request.analyst) is not None:
            return free_explanation(curator)
        words = read_words(sql, settings=curator.settings, dialect=dialect)
        if isinstance(words, ShowBudget):
            message, place = "SHOW PRIVACY BUDGET is free: there is nothing to explain", span_of(sql, 0, len(sql))
            raise Refused("statement-unsupported", message, hint="ask for it as it is", span=place)
        if columns_alone(curator, words.statement, dialect=dialect) is not None:
            return free_explanation(curator)
        return _bound(curator, request, words).explained()


@one_version()
def describe(curator: Curator, table: str | None = None) -> Answer:
    """What is declared: of all tables, or of the columns of one. Free; reads no row."""
    return described_answer(description(curator, table), curator.budget(), confidence=curator.declaration.defaults.confidence)


def plan_of(curator: Curator, sql: str, epsilon: Number | None = None, *, dialect: str = "duckdb") -> tuple[Statement, PlannedStatement]:
    """A statement without Lapwing's clauses, and its plan at this epsilon; for audits. A staged one is planned with undecided parts."""
    bound = bound_statement(curator, sql, dialect=dialect)
    terms = terms_of(None, AskOptions(epsilon=epsilon), declaration=curator.declaration, budget=bound.budget)
    assert isinstance(terms.goal, Fraction)
    return bound.statement, bound.checked_plan(terms.goal)


def _bound(curator: Curator, request: AskRequest, words: Question) -> BoundRequest | BlockAnswers | StagedQuery:
    options = request.options
    scaled, reuse = scaled_groups_of(words.clause, options), reuse_of(words.clause, options)
    bound = bound_statement(curator, words, dialect=options.dialect, scaled_groups=scaled)
    terms = terms_of(words.clause, options, declaration=curator.declaration, budget=bound.budget)
    asked = recorded_terms(words.clause, options, terms, curator.declaration.defaults.epsilon)
    whole = BoundRequest(curator, request, words, bound, terms, PurchaseRecord(PurchaseKind.STATEMENT, terms=asked))
    if bound.statement.first and reuse is Reuse.ONLY:
        raise Refused("release-not-covered", "no release answers this: another answer decides which rows count")
    if bound.statement.first:
        return StagedQuery(whole)
    return block_answers(whole) or whole
