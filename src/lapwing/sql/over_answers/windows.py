"""Window functions over noisy results: ranks, shares of totals, differences to the row before. Never over rows."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from lapwing.kernel.domains import Kind
from lapwing.sql.over_answers import marks
from lapwing.sql.over_answers.expressions import Outputs, Value
from lapwing.sql.rows import algebra
from lapwing.sql.text.reader import Reader

_NUMBERED: Mapping[type[exp.Expr], str] = {
    exp.RowNumber: "row_number",
    exp.Rank: "rank",
    exp.DenseRank: "dense_rank",
}
_MEASURED: Mapping[type[exp.Expr], str] = {exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max"}
_NEIGHBOURING: Mapping[type[exp.Expr], str] = {exp.Lag: "lag", exp.Lead: "lead"}


def window(outputs: Outputs, node: exp.Expr) -> Value:
    """A window function over the noisy rows."""
    with outputs.session.reading(node) as reader:
        called = reader.node_of("this")
        partition = [outputs.bind(part).sql for part in reader.many("partition_by")]
        order = reader.optional("order")
        ordered = [] if order is None else _ordered(outputs, order)
        reader.require_absent("spec")
        if reader.word("over").upper() not in ("", "OVER"):
            raise outputs.session.refuse("window-unsupported", "this kind of window is not supported", node=node)
        sql, kind, mark = _function(outputs, called)
        if type(called) in {**_NUMBERED, **_NEIGHBOURING} and not ordered:
            hint = "add ORDER BY inside OVER"
            raise outputs.session.refuse("window-unsupported", "this window function needs an order", node=node, hint=hint)
    inside = [f"PARTITION BY {', '.join(partition)}"] if partition else []
    inside += [f"ORDER BY {', '.join(ordered)}"] if ordered else []
    over = f"OVER ({' '.join(inside)})"
    return Value(f"({sql} {over})", kind, algebra.COMPUTED, node, mark=None if mark is None else f"coalesce({mark} {over}, 0)")


def _function(outputs: Outputs, node: exp.Expr) -> tuple[str, Kind | None, str | None]:
    """The function, its type, and the function that gives its mark, which only another row's value has."""
    with outputs.session.reading(node) as reader:
        if type(node) in _NUMBERED:
            return f"{_NUMBERED[type(node)]}()", Kind.INTEGER, None
        if type(node) in _MEASURED:
            return *_measured(outputs, reader), None
        if type(node) in _NEIGHBOURING:
            value, offset = outputs.bind(reader.node_of("this")), reader.optional("offset")
            steps = 1 if offset is None else outputs.bind(offset).constant
            number = steps if isinstance(steps, int) else None if steps is None else steps.value
            if not isinstance(number, int) or not 0 <= number <= 10_000:
                raise outputs.session.refuse("wrong-arguments", "a whole number of rows is needed here", node=offset or node)
            name = _NEIGHBOURING[type(node)]
            return f"{name}({value.sql}, {number})", value.kind, None if value.mark is None else f"{name}({value.mark}, {number})"
        if type(node) is exp.Count:
            reader.flag("big_int")
            star = reader.node_of("this")
            if type(star) is not exp.Star:
                raise outputs.session.refuse("window-unsupported", "COUNT(*) is the only count over a window", node=node)
            with outputs.session.reading(star):
                return "count(*)", Kind.INTEGER, None
        hint = "RANK, DENSE_RANK, ROW_NUMBER, SUM, AVG, MIN, MAX, COUNT(*), LAG and LEAD are"
        raise outputs.session.refuse("window-unsupported", "this window function is not supported", node=node, hint=hint)


def _measured(outputs: Outputs, reader: Reader) -> tuple[str, Kind | None]:
    value = outputs.number(reader.node_of("this"))
    name = _MEASURED[type(reader.node)]
    if name == "sum" and value.kind is Kind.INTEGER:
        return f"sum(CAST({value.sql} AS DOUBLE))", Kind.REAL
    return f"{name}({value.sql})", Kind.REAL if name == "avg" else value.kind


def _ordered(outputs: Outputs, order: exp.Expr) -> list[str]:
    terms = []
    with outputs.session.reading(order) as reader:
        for node in reader.many("expressions"):
            with outputs.session.reading(node) as item:
                value, descending, first = outputs.bind(item.node_of("this")), item.flag("desc"), item.flag("nulls_first")
            terms.append(marks.order(value.sql, value.mark, descending=descending, nulls_first=first))
    return terms
