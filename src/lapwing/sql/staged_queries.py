"""Answers used with rows: each is a separate statement that is bought first, and its rows are constants here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from lapwing.kernel.domains import Kind
from lapwing.sql.over_answers.answers import AnsweredSelect
from lapwing.sql.rows.names import Environment, Named, NoisyItem, SubqueryResult, restore
from lapwing.sql.scalars.scope import Rows
from lapwing.sql.text.reader import Session
from lapwing.statements import KeyOutput, PostProcess, PrivateQuery, RowsAtMost, Statement

DECIDING_MAX = 8
"""Most answers used with rows in one statement. Each is bound twice, first to recognise it as an answer, so nested ones multiply."""


@dataclass(frozen=True, slots=True)
class PriorBinding:
    """The state of binding before a query that may turn out to be an answer of a separate statement."""

    privates: int
    spans: int
    first: int
    crossed: tuple[RowsAtMost, ...]
    aggregates_answers: bool
    names: list[tuple[Named, Rows | NoisyItem | None]]

    @classmethod
    def of(cls, session: Session, environment: Environment, privates: int, spans: int) -> PriorBinding:
        """The current state."""
        return cls(privates, spans, len(session.first), tuple(session.crossed), session.aggregates_answers, environment.bound())

    def return_to(self, session: Session) -> None:
        """Return to this state."""
        del session.first[self.first :]
        session.crossed, session.aggregates_answers = list(self.crossed), self.aggregates_answers
        restore(self.names)


def decided(
    session: Session, node: exp.Expr, answered: AnsweredSelect, privates: Sequence[PrivateQuery], post: PostProcess, statement: Statement
) -> SubqueryResult:
    """The answer of a statement that is bought first; without rows until it is bought."""
    number = len(session.first)
    session.first.append(statement)
    kinds: list[Kind] = []
    for value in answered.values:
        if value.kind is None or value.kind is Kind.KEY:
            raise session.refuse("sql-unsupported", "an answer that is used with rows has a column without a type", node=node)
        kinds.append(value.kind)
    names: dict[str, int] = {}
    for i, output in enumerate(post.outputs):
        names.setdefault(output.name.lower(), i)
    rows = session.decided[number] if number < len(session.decided) else None
    return SubqueryResult(names, tuple(kinds), _apart(answered, privates), rows)


def _apart(answered: AnsweredSelect, privates: Sequence[PrivateQuery]) -> frozenset[int] | None:
    """The columns of an answer whose values together identify a row, by the statement alone; None if that is unknown."""
    post = answered.post
    if post.limit in (0, 1):
        return frozenset()
    if post.rows_of is not None:
        query = privates[post.rows_of]
        shown = {output.derivation.key: i for i, output in reversed([*enumerate(post.outputs)]) if isinstance(output.derivation, KeyOutput)}
        keys = range(len(query.keys))
        return frozenset(shown[key] for key in keys) if query.levels is None and all(key in shown for key in keys) else None
    if answered.aggregated or post.group_by:
        places = {output.sql: i for i, output in reversed([*enumerate(post.outputs)])}
        return frozenset(places[key] for key in post.group_by) if all(key in places for key in post.group_by) else None
    return frozenset(range(len(post.outputs))) if post.distinct else None
