"""Finds the expression over rows that a node is equivalent to, independent of its notation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from lapwing.errors import Refused
from lapwing.kernel.expressions import Expression
from lapwing.sql.scalars.binding import Scalars


def same_as(scalars: Scalars, node: exp.Expr, expressions: Sequence[Expression]) -> int | None:
    """The index of the expression that a node over rows is equivalent to, or None. The node is marked as read only if there is one."""
    if not expressions:
        return None
    expression, keep = tried(scalars, node)
    for number, known in enumerate(expressions):
        if known == expression:
            keep()
            return number
    return None


def tried(scalars: Scalars, node: exp.Expr) -> tuple[Expression | None, Callable[[], None]]:
    """The expression of a node over rows, if any. The attempt leaves no trace until the returned function is called."""
    if any(isinstance(part, exp.AggFunc | exp.Query) for part in node.walk()) or not any(
        isinstance(part, exp.Column) for part in node.walk()
    ):
        return None, lambda: None
    session, scope = scalars.session, scalars.scope
    before = session.read, set(scope.used), session.lookup_listed
    session.read = set()
    try:
        expression = scalars.bind(node).expression
    except Refused:
        expression = None
    read, used, listed = session.read, scope.used, session.lookup_listed
    session.read, scope.used, session.lookup_listed = before

    def keep() -> None:
        session.read |= read
        scope.used, session.lookup_listed = used, listed

    return expression, keep
