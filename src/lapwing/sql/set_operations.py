"""UNION, EXCEPT and INTERSECT of rows: each combination once per unit. They need the unit in both parts, in the same position."""

from __future__ import annotations

from sqlglot import exp

from lapwing.errors import Refused
from lapwing.kernel.expressions import Column
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import PerUnit, Relation, SemiJoin
from lapwing.kernel.stability import shape_of
from lapwing.sql.rows.tables import UNIT_DOMAIN
from lapwing.sql.scalars.scope import Rows
from lapwing.sql.text.reader import Session

_WHOSE = "equal rows of different units would become one: select the unit in both parts, in the same position"


def united_once(session: Session, facts: Facts, rows: Rows, node: exp.Expr) -> Rows:
    """Rows of a UNION ALL, each combination once per unit."""
    if not rows.units:
        raise session.refuse("union-unsupported", _WHOSE, node=node, hint="use UNION ALL, or select the unit in both parts")
    keys = tuple((column, Column(column)) for column in rows.names.values() if column not in rows.units)
    return _rows(session, facts, PerUnit(rows.relation, (), keys), rows, rows.units, node)


def compared(session: Session, facts: Facts, parts: list[Rows], node: exp.Expr, *, negated: bool) -> Rows:
    """Rows of the first part that the second also has or, with ``negated``, does not have; each combination once per unit."""
    first, second = parts
    if len(first.names) != len(second.names):
        raise session.refuse("union-columns", "both parts need the same number of columns", node=node)
    pairs = list(zip(first.names.values(), second.names.values(), strict=True))
    units = frozenset(a for a, b in pairs if a in first.units and b in second.units)
    if not units:
        raise session.refuse("union-unsupported", _WHOSE, node=node, hint="select the unit's column first in both parts")
    others = [(a, b) for a, b in pairs if a not in units]
    if any(a in first.virtual or b in second.virtual for a, b in others):
        raise session.refuse("union-unsupported", _WHOSE, node=node, hint="select the unit's column first in both parts")
    if any(first.columns[a].nullable or second.columns[b].nullable for a, b in others):
        message = "EXCEPT and INTERSECT would treat NULLs as equal, which is not supported"
        hint = "use EXISTS or NOT EXISTS, or COALESCE in both parts"
        raise session.refuse("union-unsupported", message, node=node, hint=hint)
    distinct = PerUnit(first.relation, (), tuple((a, Column(a)) for a in dict.fromkeys(a for a, _ in others)))
    return _rows(session, facts, SemiJoin(distinct, second.relation, tuple(others), negated), first, units, node)


def _rows(session: Session, facts: Facts, relation: Relation, like: Rows, units: frozenset[str], node: exp.Expr) -> Rows:
    """The columns of ``like``; the unit is now a virtual column."""
    try:
        columns = dict(shape_of(relation, facts).columns)
    except Refused as error:
        error.span = error.span or session.source.span(node)
        raise
    domains = {column: columns.get(column, UNIT_DOMAIN) for column in like.names.values()}
    origins = {column: origin for column, origin in like.origins.items() if column in columns}
    return Rows(relation, "set", domains, like.names, origins, units, units)
