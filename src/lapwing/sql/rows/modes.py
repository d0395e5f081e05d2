"""MODE: a separate private query counts each value in each group, and the value with the largest noisy count is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Expression, columns_of
from lapwing.kernel.ir import Filter, Relation
from lapwing.sql.rows.arguments import Arguments
from lapwing.sql.scalars.binding import Scalars
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.text.reader import Session
from lapwing.statements import Aggregate, AggregateKind, PrivateQuery


@dataclass(frozen=True, slots=True)
class Mode:
    """The most frequent value among the rows for which ``where`` is true; private query number ``query`` counts the values."""

    query: int
    value: Typed
    where: Expression | None

    def counts(self, source: Relation, keys: Sequence[Expression]) -> PrivateQuery:
        """How often each value occurs, by these keys."""
        rows = source if self.where is None else Filter(source, self.where)
        listed = tuple((f"k{i}", key) for i, key in enumerate((*keys, self.value.expression)))
        return PrivateQuery(rows, listed, (Aggregate(AggregateKind.COUNT),))

    def chosen(self, group: str, keys: int, column: str) -> str:
        """SQL for a column of the row with the largest count above 0 in the group of ``group``. NULL is not counted as a value."""
        table = f"q{self.query}"
        linked = [f"{table}.k{i} IS NOT DISTINCT FROM {group}.k{i}" for i in range(keys)]
        kept = " AND ".join([*linked, f"{table}.k{keys} IS NOT NULL", f"{table}.a0 > 0"])
        return f"(SELECT arg_max({table}.{column}, {table}.a0) FROM {table} WHERE {kept})"


def require_shared(session: Session, key: Typed, node: exp.Expr) -> None:
    """Refuse expressions that cannot be counted by value: an identifier, and a constant."""
    if key.kind is Kind.KEY:
        hint = "group by something that many units share"
        raise session.refuse("groups-by-unit", "grouping by an identifier would publish it", node=node, hint=hint)
    if not columns_of(key.expression):
        raise session.refuse("key-constant", "a constant does not make groups", node=node, hint="group by a column")


def is_mode(node: exp.Expr) -> bool:
    """Whether a node is MODE(x), with FILTER or without."""
    return type(node.this if type(node) is exp.Filter else node) is exp.Mode


def mode(scalars: Scalars, node: exp.Expr, query: int) -> Mode:
    """The requested mode. Pre: ``is_mode``."""
    if type(node) is not exp.Filter:
        return _mode(scalars, node, None, query)
    with scalars.session.reading(node) as reader:
        inner, filtered = reader.node_of("this"), reader.node_of("expression")
        with scalars.session.reading(filtered) as clause:
            where = scalars.condition(clause.node_of("this"), "a FILTER")
        return _mode(scalars, inner, where, query)


def _mode(scalars: Scalars, node: exp.Expr, where: Typed | None, query: int) -> Mode:
    scalars.check_name(node, frozenset({"MODE"}))
    with scalars.session.reading(node) as reader:
        value, where = Arguments(scalars).value(reader.node_of("this"), where)
    require_shared(scalars.session, value, value.node)
    return Mode(query, value, None if where is None else where.expression)
