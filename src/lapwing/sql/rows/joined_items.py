"""All items of a FROM over rows as one scope, whether JOIN, a comma or WHERE joins them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from lapwing.kernel.ir import JoinKind
from lapwing.sql.rows.comma_joins import Placed, in_order, is_comma
from lapwing.sql.rows.joins import Joins
from lapwing.sql.rows.names import PublicItem
from lapwing.sql.rows.tables import Called
from lapwing.sql.scalars.binding import Scalars, Typed
from lapwing.sql.scalars.scope import Rows, Scope


def joined_items(
    joins: Joins, called: Sequence[Called], clauses: Sequence[exp.Expr], where: Sequence[exp.Expr]
) -> tuple[Scalars, list[Typed], list[exp.Expr]]:
    """The scope of the items, the conditions of ON that are not about keys, and those of ``where`` that join nothing."""
    if clauses and isinstance(called[0].item, PublicItem) and isinstance(called[1].item, Rows) and not is_comma(clauses[0]):
        if not clauses[0].args.get("side"):
            called = [called[1], called[0], *called[2:]]  # an inner join is the same either way round
    listed = in_order(joins.known, called, clauses, where)
    first = listed[0].called
    if isinstance(first.item, PublicItem):
        hint = "name a protected table first and join the public one to it"
        raise joins.session.refuse("table-public", f"the table {first.item.table!r} is public", node=first.node, hint=hint)
    assert isinstance(first.item, Rows)
    scalars = Scalars(joins.session, Scope.over(first.item, first.name, in_schema=first.in_schema), joins.handlers)
    conditions = [condition for item in listed[1:] for condition in _joined(joins, scalars, item)]
    if listed[0].join is not None:
        _read_comma(joins, listed[0].join)
    links = {id(node) for item in listed for node in item.links}
    return scalars, conditions, [node for node in where if id(node) not in links]


def _joined(joins: Joins, scalars: Scalars, item: Placed) -> list[Typed]:
    """Join one more item of FROM; the conditions that are left are returned."""
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
