"""Asking, one way for every face: read the text, bind it, price it, and answer or explain it.

A face gives the text and who asks, and gets an ``Answer`` or an ``Explanation``; it needs none of the parts.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

from lapwing.answers.answer import Answer
from lapwing.asking.bound_statement import bound_statement
from lapwing.asking.explanation import Explanation, free_explanation
from lapwing.asking.introspection import about_itself, columns_alone, description
from lapwing.asking.options import Number, reuse_of, scaled_groups_of, terms_of
from lapwing.asking.privacy_statements import budget_answer, described_answer, explained_answer
from lapwing.asking.replay_terms import recorded_terms
from lapwing.asking.request import Posed
from lapwing.asking.staged_query import StagedQuery
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
    reuse: str | None = None,
) -> Answer:
    """Answer a statement, or what Lapwing's own words ask; see :meth:`lapwing.data_set.DataSet.ask`."""
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
    request_id = secrets.token_hex(16) if request_id is None else request_id  # what is bought in several charges belongs to one request
    with answering(request_id), _told_what_waits(curator):
        with curator.planning.one_by_one(analyst):
            posed = _posed(
                curator,
                sql,
                words,
                epsilon=epsilon,
                confidence=confidence,
                analyst=analyst,
                dialect=dialect,
                scaled_groups=scaled_groups,
                reuse=reuse,
            )
        if words.explain:
            return explained_answer(posed.explained(), curator.budget(), confidence=posed.terms.confidence)
        return posed.answer(request_id=request_id)


@contextmanager
def _told_what_waits(curator: Curator) -> Iterator[None]:
    """Whoever is refused for the budget hears that the catalogue has a higher one. No question raises it: that is the owner's act."""
    try:
        yield
    except BudgetRefused as error:
        if error.code in ("budget-exceeded", "error-too-dear"):
            error.hint = curator.budget_waiting() or error.hint
        raise


@one_version()
def explain(
    curator: Curator,
    sql: str,
    *,
    epsilon: Number | None = None,
    confidence: Number | None = None,
    analyst: str | None = None,
    dialect: str = "duckdb",
    scaled_groups: bool | None = None,
    reuse: str | None = None,
) -> Explanation:
    """What asking would cost, how it would be bounded and how accurate it would be. Free; touches no data."""
    with curator.planning.one_by_one(analyst):
        if about_itself(curator, sql, dialect=dialect, analyst=analyst) is not None:
            return free_explanation(curator)
        words = read_words(sql, settings=curator.settings, dialect=dialect)
        if isinstance(words, ShowBudget):
            message, place = "SHOW PRIVACY BUDGET is free: there is nothing to explain", span_of(sql, 0, len(sql))
            raise Refused("statement-unsupported", message, hint="ask for it as it is", span=place)
        if columns_alone(curator, words.statement, dialect=dialect) is not None:
            return free_explanation(curator)
        posed = _posed(
            curator,
            sql,
            words,
            epsilon=epsilon,
            confidence=confidence,
            analyst=analyst,
            dialect=dialect,
            scaled_groups=scaled_groups,
            reuse=reuse,
        )
        return posed.explained()


@one_version()
def describe(curator: Curator, table: str | None = None) -> Answer:
    """What is declared: of all tables, or of the columns of one. Free; reads no row."""
    return described_answer(description(curator, table), curator.budget(), confidence=curator.declaration.defaults.confidence)


def plan_of(curator: Curator, sql: str, epsilon: Number | None = None, *, dialect: str = "duckdb") -> tuple[Statement, PlannedStatement]:
    """A statement without words of ours, and its plan at this epsilon; for audits. Of one with answers that come first: as supposed."""
    bound = bound_statement(curator, sql, dialect=dialect)
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
    reuse: str | None,
) -> Posed | StagedQuery:
    scaled, reused = scaled_groups_of(words.clause, scaled_groups), reuse_of(words.clause, reuse)
    bound = bound_statement(curator, words, dialect=dialect, scaled_groups=scaled)
    terms = terms_of(words.clause, epsilon=epsilon, confidence=confidence, declaration=curator.declaration, budget=bound.budget)
    default = curator.declaration.defaults.epsilon
    asked = recorded_terms(words.clause, epsilon, default, terms, dialect=dialect, reuse=reused, scaled_groups=scaled)
    record = PurchaseRecord(PurchaseKind.STATEMENT, terms=asked)
    # Groups that are scaled by a model are asked for by name: no release has them.
    reused = Reuse.NEVER if scaled and reused is Reuse.AUTO else reused
    posed = Posed(curator, sql, words, dialect, bound, terms, curator.analyst_default if analyst is None else analyst, reused, record)
    if bound.statement.first and reused is Reuse.ONLY:
        raise Refused("release-not-covered", "no release answers this: another answer decides which rows count")
    return StagedQuery(posed, words, scaled) if bound.statement.first else posed
