"""Which of several expressions over rows a node stands for: it means the same, however it is written."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from lapwing.errors import Refused
from lapwing.kernel.expressions import Expression
from lapwing.sql.scalars.binding import Scalars


def same_as(scalars: Scalars, node: exp.Expr, expressions: Sequence[Expression]) -> int | None:
    """The number of the expression that a node over rows means, if it means one of them; then, and only then, the node was read."""
    if not expressions or any(isinstance(part, exp.AggFunc | exp.Query) for part in node.walk()):
        return None
    if not any(isinstance(part, exp.Column) for part in node.walk()):
        return None
    session, scope = scalars.session, scalars.scope
    read, used, listed = session.read, set(scope.used), session.lookup_listed
    session.read = set()
    try:
        expression = scalars.bind(node).expression
    except Refused:
        expression = None
    tried, session.read = session.read, read
    for number, known in enumerate(expressions):
        if known == expression:
            read |= tried
            return number
    scope.used, session.lookup_listed = used, listed  # a trial that failed has read nothing
    return None
