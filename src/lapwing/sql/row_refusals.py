"""The refusal of a statement that asks for rows, or for one row per unit."""

from __future__ import annotations

import math

from sqlglot import exp

from lapwing.errors import Refused
from lapwing.kernel.domains import BooleanDomain, DateDomain, IntegerDomain, RealDomain, TextDomain, TimestampDomain
from lapwing.kernel.facts import Facts
from lapwing.sql.text.reader import Session

_BUCKETS = 20


def row_refusal(session: Session, tree: exp.Expr, facts: Facts) -> Refused:
    """Refuse a statement that asks for rows, and say which part of it does."""
    select = tree
    while not isinstance(select, exp.Select):
        select = select.this
    group = select.args.get("group")
    if group is not None:
        hint = "group by something that many units share, or aggregate this again: SELECT AVG(n) FROM (...) AS per_unit"
        return session.refuse(
            "groups-by-unit", "one row per unit would publish each unit", node=next(iter(group.expressions), group), hint=hint
        )
    counted = _counted(select, facts)
    hint = f"count the rows of each kind: {counted}" if counted else "ask for an aggregate such as COUNT(*)"
    return session.refuse("rows-not-aggregates", "rows are never shown", node=select.expressions[0], hint=hint)


def _counted(select: exp.Select, facts: Facts) -> str:
    """A histogram of the first column that is selected from one table, as a chart would compute it from the rows."""
    tables, column = list(select.find_all(exp.Table)), select.expressions[0].find(exp.Column)
    known = next((name for name in facts.tables if len(tables) == 1 and name.lower() == tables[0].name.lower()), None)
    if known is None or column is None:
        return ""
    domains = {name.lower(): (name, domain) for name, domain in facts.table(known).columns.items()}
    match domains.get(column.name.lower()):
        case name, IntegerDomain(lo, hi) | RealDomain(lo, hi) if hi - lo >= _BUCKETS:
            key = f"WIDTH_BUCKET({name}, {math.floor(lo)}, {math.ceil(hi)}, {_BUCKETS})"
        case name, DateDomain() | TimestampDomain():
            key = f"DATE_TRUNC('month', {name})"
        case name, BooleanDomain() | TextDomain() | IntegerDomain():
            key = name
        case _:  # identifiers, and reals in a narrow range
            return ""
    return f"SELECT {key}, COUNT(*) FROM {known} GROUP BY 1"
