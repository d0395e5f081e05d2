"""SUM(x + 1), SUM(x + 2) and so on: sums of one column, each shifted by a constant. They are SUM(x) + 1 * COUNT(x), and so on.

All of them follow from two measured values, so only these two share the price. A single such sum is measured directly.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from sqlglot import exp

from lapwing.kernel.domains import Kind
from lapwing.sql.over_answers import marks
from lapwing.sql.over_answers.values import Value
from lapwing.sql.rows import algebra
from lapwing.sql.rows.aggregates import Aggregates
from lapwing.sql.text import constants

SHARED_MIN = 3
"""Least number of sums of one column that are computed from two shared values."""
_WHOLE = re.compile("[0-9]{1,6}")


def shifted_columns(nodes: Iterable[exp.Expr]) -> Mapping[tuple[str, str], int]:
    """How many sums there are of each column, by its table and name as written, shifted or not."""
    columns = (_column(node) for item in nodes for node in item.find_all(exp.Sum))
    return Counter(_name(column) for column in columns if column is not None)


def shifted_sum(aggregates: Aggregates, node: exp.Expr, query: int, shared: Mapping[tuple[str, str], int]) -> Value | None:
    """The sum computed from two shared values, if enough sums share them; else None."""
    base = _column(node)
    if base is None or type(node.this) is exp.Column or shared.get(_name(base), 0) < SHARED_MIN or not aggregates.is_whole(base):
        return None
    session = aggregates.session
    with session.reading(node) as reader, session.reading(reader.node_of("this")) as addition:
        column, constant = addition.node_of("this"), addition.node_of("expression")
        total, count = aggregates.total_and_count(column, node)
        with session.reading(constant) as number:
            by = constants.number(number.word("this"), session, constant).value
            number.flag("is_string")
    sign = "-" if type(node.this) is exp.Sub else "+"
    names = [f"q{query}.a{number}" for number in (total, count)]
    sql = f"TRY_CAST((CAST({names[0]} AS HUGEINT) {sign} {by} * CAST({names[1]} AS HUGEINT)) AS BIGINT)"
    mark = marks.of_sum(f"q{query}.m{total}", f"q{query}.m{count}")
    return Value(sql, Kind.INTEGER, algebra.COMPUTED, node, mark=mark)


def _column(node: exp.Expr) -> exp.Expr | None:
    """The column in a sum, perhaps shifted by a small whole number."""
    inner = node.this if type(node) is exp.Sum else None
    if isinstance(inner, exp.Add | exp.Sub):
        constant = inner.expression
        is_whole = type(constant) is exp.Literal and constant.args.get("is_string") is False and _WHOLE.fullmatch(constant.name)
        inner = inner.this if is_whole else None
    return inner if type(inner) is exp.Column else None


def _name(column: exp.Expr) -> tuple[str, str]:
    table, name = (column.args.get(part) for part in ("table", "this"))
    return (table.name if type(table) is exp.Identifier else "", name.name if type(name) is exp.Identifier else "")
