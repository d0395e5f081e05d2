"""The refusal of a statement that asks for rows, or for one row per unit."""

from __future__ import annotations

from sqlglot import exp

from lapwing.errors import Refused
from lapwing.sql.text.reader import Session


def rows_asked(session: Session, tree: exp.Expr) -> Refused:
    """Refuse a statement that asks for rows, and say which part of it does."""
    select = tree
    while not isinstance(select, exp.Select):
        select = select.this
    group = select.args.get("group")
    if group is not None:
        hint = "group by something that many units share, or put this in FROM of another aggregate: SELECT AVG(n) FROM (...) AS per_unit"
        return session.refuse(
            "groups-by-unit", "one row per unit would publish each unit", node=next(iter(group.expressions), group), hint=hint
        )
    hint = "ask for an aggregate such as COUNT(*)"
    return session.refuse("rows-not-aggregates", "rows are never shown", node=select.expressions[0], hint=hint)
