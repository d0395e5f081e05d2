"""All items of a FROM over rows as one scope, whether JOIN, a comma or WHERE joins them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from sqlglot import exp

from lapwing.kernel.ir import JoinKind
from lapwing.sql.rows.comma_joins import JoinItem, in_order, is_comma
from lapwing.sql.rows.joins import Joins, conjuncts, join_kind
from lapwing.sql.rows.names import PublicItem, SubqueryResult
from lapwing.sql.rows.subquery_results import decided_condition, join_answer
from lapwing.sql.rows.tables import Called
from lapwing.sql.scalars.binding import Scalars
from lapwing.sql.scalars.scope import Rows, Scope
from lapwing.sql.scalars.typed import Typed


def joined_items(
    joins: Joins,
    called: Sequence[Called],
    clauses: Sequence[exp.Expr],
    where: Sequence[exp.Expr],
    value: Callable[[Scalars, exp.Expr], Typed] | None = None,
) -> tuple[Scalars, list[Typed], list[exp.Expr]]:
    """The scope of the items, the conditions of ON that are not about keys, and those of ``where`` that join nothing.

    ``value`` binds scalar subqueries.
    """
    is_other_first = isinstance(called[0].item, SubqueryResult) or (
        isinstance(called[0].item, PublicItem) and not all(map(is_comma, clauses[:1]))
    )
    if clauses and is_other_first and isinstance(called[1].item, Rows):
        if not clauses[0].args.get("side"):
            called = [called[1], called[0], *called[2:]]  # an inner join is the same either way round
    answers = [(item, join) for item, join in zip(called[1:], clauses, strict=True) if isinstance(item.item, SubqueryResult)]
    others = [(item, join) for item, join in zip(called[1:], clauses, strict=True) if not isinstance(item.item, SubqueryResult)]
    listed = in_order(joins.known, [called[0], *(item for item, _ in others)], [join for _, join in others], where)
    first = listed[0].called
    if isinstance(first.item, SubqueryResult):
        message, hint = (
            "answers are joined to rows, not rows to answers",
            "name the protected table first, then JOIN or LEFT JOIN the answer",
        )
        raise joins.session.refuse("join-unsupported", message, node=first.node, hint=hint)
    if isinstance(first.item, PublicItem):
        hint = "name a protected table first and join the public one to it"
        raise joins.session.refuse(
            "table-public", f"FROM cannot start with {first.item.table!r}, which is a public table", node=first.node, hint=hint
        )
    assert isinstance(first.item, Rows)
    scalars = Scalars(joins.session, Scope.over(first.item, first.name, in_schema=first.in_schema), joins.handlers)
    scalars.answers = None if value is None else partial(value, scalars)
    conditions = [condition for item in listed[1:] for condition in _joined(joins, scalars, item)]
    if listed[0].join is not None:
        _read_comma(joins, listed[0].join)
    links = {id(node) for item in listed for node in item.links}
    kept = [node for node in where if id(node) not in links]
    for item, join in answers:
        held, kept = _joined_answer(joins, scalars, item, join, kept)
        conditions += held
    return scalars, conditions, kept


def _joined_answer(
    joins: Joins, scalars: Scalars, answer: Called, join: exp.Expr, kept: list[exp.Expr]
) -> tuple[list[Typed], list[exp.Expr]]:
    """Join an answer; returns conditions on the rows, and the remaining conditions of WHERE."""
    session = joins.session
    assert isinstance(answer.item, SubqueryResult)
    with session.reading(join) as clause:
        clause.node_of("this")
        clause.require_absent("method")
        kind = join_kind(session, clause, crossing=True)
        on, using = clause.optional("on"), clause.many("using")
    if is_comma(join):
        return join_answer(scalars, answer, answer.item, kind, kept, using)
    held, rest = join_answer(scalars, answer, answer.item, kind, [] if on is None else conjuncts(session, on), using)
    if rest and kind is JoinKind.LEFT:
        hint = "move the condition to WHERE, or into FILTER and CASE"
        raise session.refuse("join-unsupported", "the condition of a LEFT JOIN can only compare the key", node=rest[0], hint=hint)
    return [*held, *(one for node in rest for one in decided_condition(scalars, node, "a condition of ON"))], kept


def _joined(joins: Joins, scalars: Scalars, item: JoinItem) -> list[Typed]:
    """Join one more item of FROM; returns the remaining conditions."""
    if item.join is None:
        return joins.joined(scalars, item.called, JoinKind.INNER, item.called.node, item.links)
    with joins.session.reading(item.join) as clause:
        clause.node_of("this")
        return joins.add(scalars, item.called, clause, item.links)


def _read_comma(joins: Joins, join: exp.Expr) -> None:
    """Read the comma before the item that all others are joined to."""
    with joins.session.reading(join) as clause:
        clause.node_of("this")
        clause.word("side")
        clause.word("kind")
