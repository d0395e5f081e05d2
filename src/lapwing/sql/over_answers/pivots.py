"""PIVOT over an answer: the values of one column become columns, each an aggregate of the rows that have it."""

from __future__ import annotations

from sqlglot import exp

from lapwing.sql.over_answers.aggregates import AGGREGATES, aggregate
from lapwing.sql.over_answers.answers import AnsweredSelect
from lapwing.sql.over_answers.expressions import Outputs
from lapwing.sql.over_answers.select import NoisyScope
from lapwing.sql.over_answers.values import Value
from lapwing.sql.rows.names import NoisyItem
from lapwing.sql.scalars.binding import identifier
from lapwing.statements import ComputedOutput, Output, PostProcess, RowsAtMost

_EXAMPLE = "PIVOT (SUM(n) FOR sex IN ('f', 'm'))"


def pivoted(outputs: Outputs, scope: NoisyScope, node: exp.Expr, item: NoisyItem) -> tuple[NoisyItem, exp.Expr | None]:
    """The pivoted table of an answer, and its alias. Columns that are neither spread out nor aggregated group its rows.

    Pre: ``scope`` is empty, and the leaves of ``outputs`` are over it.
    """
    session = outputs.session
    with session.reading(node) as reader:
        aggregates, fields = reader.many("expressions"), reader.many("fields")
        reader.word("pivot_column_naming")
        alias = reader.optional("alias")
        for name in reader.many("columns"):
            identifier(session, name)
        if len(aggregates) != 1 or type(aggregates[0]) not in AGGREGATES or len(fields) != 1 or type(fields[0]) is not exp.In:
            message = "PIVOT takes one aggregate, and one column with a list of its values"
            raise session.refuse("sql-unsupported", message, node=node, hint=_EXAMPLE)
    scope.items.append(("", "s0", item))
    spread, options = _spread(outputs, fields[0])
    used = {spread[0], *(column.name.lower() for column in aggregates[0].find_all(exp.Column))}
    scope.grouped = True
    groups = [(name, value) for name, value in scope.all_columns(node, None) if name not in used]
    scope.grouped = False  # arguments of the aggregate keep their marks
    values = [value for _, value in groups]
    for option in options:
        (key, constant), _ = outputs.alike([spread[1], option])
        values.append(aggregate(outputs, aggregates[0], f"({key.sql} = {constant.sql})"))
    session.aggregates_answers = True
    names = [name for name, _ in groups] + [str(option.constant.value) for option in options if option.constant]
    listed = tuple(Output(name, value.sql, ComputedOutput(), value.mark) for name, value in zip(names, values, strict=True))
    post = PostProcess(listed, source=f"({item.sql}) AS s0", rows_of=None, group_by=tuple(value.sql for _, value in groups))
    return AnsweredSelect(post, tuple(values), item.rows if groups else RowsAtMost(), aggregated=True).item, alias


def _spread(outputs: Outputs, node: exp.Expr) -> tuple[tuple[str, Value], list[Value]]:
    """The column whose values become columns, with its name, and these values."""
    session = outputs.session
    with session.reading(node) as reader:
        column, listed = reader.node_of("this"), reader.many("expressions")
        if type(column) is not exp.Column or not listed:
            raise session.refuse("sql-unsupported", "PIVOT takes one column and a list of its values", node=node, hint=_EXAMPLE)
        name = column.name.lower()
        value, options = outputs.bind(column), [outputs.bind(option) for option in listed]
    for option in options:
        if option.constant is None or option.kind is None:
            message = "an IN list takes only constants other than NULL"
            raise session.refuse("list-not-constant", message, node=option.node, hint="use = and OR, or IS NULL")
    return (name, value), options
