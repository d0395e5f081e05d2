"""Window functions over noisy results: ranks, shares of totals, differences from the previous row. Never over protected rows."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from lapwing.kernel.domains import Kind
from lapwing.sql.over_answers import marks
from lapwing.sql.over_answers.expressions import Outputs
from lapwing.sql.over_answers.frames import frame, measures_numbers
from lapwing.sql.over_answers.values import Value, as_real
from lapwing.sql.rows import algebra
from lapwing.sql.scalars.binding import identifier
from lapwing.sql.text.reader import Reader, Session

_NUMBERED: Mapping[type[exp.Expr], tuple[str, Kind]] = {
    exp.RowNumber: ("row_number", Kind.INTEGER),
    exp.Rank: ("rank", Kind.INTEGER),
    exp.DenseRank: ("dense_rank", Kind.INTEGER),
    exp.PercentRank: ("percent_rank", Kind.REAL),
    exp.CumeDist: ("cume_dist", Kind.REAL),
}
_MEASURED: Mapping[type[exp.Expr], str] = {exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max"}
_NEIGHBOURING: Mapping[type[exp.Expr], str] = {exp.Lag: "lag", exp.Lead: "lead"}
_PLACED: Mapping[type[exp.Expr], str] = {exp.FirstValue: "first_value", exp.LastValue: "last_value", exp.NthValue: "nth_value"}
_ORDERED = {*_NUMBERED, *_NEIGHBOURING, *_PLACED, exp.Ntile}
"""Functions that need an order."""
_ONE_EACH = "WINDOW w AS (ORDER BY day)"
_Called = tuple[str, Kind | None, str | None]


def window(outputs: Outputs, node: exp.Expr) -> Value:
    """A window function over the noisy rows."""
    with outputs.session.reading(node) as reader:
        called = reader.node_of("this")
        listed, order, spec = _definition(outputs, reader)
        partition = [outputs.bind(part).sql for part in listed]
        ordered = [] if order is None else _ordered(outputs, order, real=spec is not None and measures_numbers(spec))
        if reader.word("over").upper() not in ("", "OVER"):
            raise outputs.session.refuse("window-unsupported", "this kind of window is not supported", node=node)
        sql, kind, mark = _function(outputs, called)
        if type(called) in _ORDERED and not ordered:
            hint = "add ORDER BY inside OVER"
            raise outputs.session.refuse("window-unsupported", "this window function needs an order", node=node, hint=hint)
        framed = "" if spec is None else frame(outputs, spec, [value for value, _ in ordered])
    inside = [f"PARTITION BY {', '.join(partition)}"] if partition else []
    inside += [f"ORDER BY {', '.join(term for _, term in ordered)}"] if ordered else []
    over = f"OVER ({' '.join([*inside, *([framed] if framed else [])])})"
    return Value(f"({sql} {over})", kind, algebra.COMPUTED, node, mark=None if mark is None else f"coalesce({mark} {over}, 0)")


def named_windows(session: Session, reader: Reader) -> dict[str, exp.Expr]:
    """The windows of WINDOW by name, in lower case."""
    named: dict[str, exp.Expr] = {}
    for node in reader.many("windows"):
        name = node.text("this").lower()
        if type(node) is not exp.Window or not name or name in named:
            raise session.refuse("window-unsupported", "each window of WINDOW needs a distinct name", node=node, hint=_ONE_EACH)
        named[name] = node
    return named


def _definition(outputs: Outputs, reader: Reader) -> tuple[tuple[exp.Expr, ...], exp.Expr | None, exp.Expr | None]:
    """PARTITION BY, ORDER BY and the frame: as written, or those of the named window, to which OVER may add an order or a frame."""
    listed, order, spec, alias = reader.many("partition_by"), reader.optional("order"), reader.optional("spec"), reader.optional("alias")
    if alias is None:
        return listed, order, spec
    base = outputs.windows.get(identifier(outputs.session, alias).lower())
    if base is None:
        raise outputs.session.refuse("window-unsupported", "there is no window with this name", node=alias, hint=_ONE_EACH)
    with outputs.session.reading(base) as named:
        identifier(outputs.session, named.node_of("this"))
        base_listed, base_order, base_spec = named.many("partition_by"), named.optional("order"), named.optional("spec")
    if listed or (base_spec is not None and (order is not None or spec is not None)) or (order is not None and base_order is not None):
        message = "OVER can only add an order or a frame that the named window lacks"
        raise outputs.session.refuse("window-unsupported", message, node=reader.node, hint="write the window inside OVER (...)")
    return base_listed, order or base_order, spec or base_spec


def _function(outputs: Outputs, node: exp.Expr) -> _Called:
    """The function, its type, and the function for its mark (only where the result is the value of another row)."""
    with outputs.session.reading(node) as reader:
        if type(node) in _NUMBERED:
            name, kind = _NUMBERED[type(node)]
            return f"{name}()", kind, None
        if type(node) in _MEASURED:
            return *_measured(outputs, reader), None
        if type(node) in _NEIGHBOURING:
            return _neighbouring(outputs, reader)
        if type(node) in _PLACED:
            value, place = outputs.bind(reader.node_of("this")), ""
            if type(node) is exp.NthValue:
                place = f", {_count(outputs, reader.node_of('offset'), 1)}"
            name = _PLACED[type(node)]
            return f"{name}({value.sql}{place})", value.kind, None if value.mark is None else f"{name}({value.mark}{place})"
        if type(node) is exp.Ntile:
            return f"ntile({_count(outputs, reader.node_of('this'), 1)})", Kind.INTEGER, None
        if type(node) is exp.Count:
            reader.flag("big_int")
            counted = reader.node_of("this")
            if type(counted) is not exp.Star:
                return f"count({outputs.bind(counted).sql})", Kind.INTEGER, None
            with outputs.session.reading(counted):
                return "count(*)", Kind.INTEGER, None
        hint = "use RANK, DENSE_RANK, ROW_NUMBER, NTILE, SUM, AVG, MIN, MAX, COUNT, LAG, LEAD, FIRST_VALUE or LAST_VALUE"
        raise outputs.session.refuse("window-unsupported", "this window function is not supported", node=node, hint=hint)


def _neighbouring(outputs: Outputs, reader: Reader) -> _Called:
    """LAG and LEAD, with a constant for rows that have no such neighbour."""
    value, offset, default = outputs.bind(reader.node_of("this")), reader.optional("offset"), reader.optional("default")
    steps = 1 if offset is None else _count(outputs, offset, 0)
    name, otherwise = _NEIGHBOURING[type(reader.node)], ""
    if default is not None:
        (value, instead), kind = outputs.alike([value, outputs.bind(default)])
        if instead.constant is None or kind is not value.kind:
            message = "the default of LAG and LEAD must be a constant of the same type"
            raise outputs.session.refuse("wrong-arguments", message, node=default)
        otherwise = f", {instead.sql}"
    return f"{name}({value.sql}, {steps}{otherwise})", value.kind, None if value.mark is None else f"{name}({value.mark}, {steps})"


def _count(outputs: Outputs, node: exp.Expr, least: int) -> int:
    constant = outputs.bind(node).constant
    number = None if constant is None else constant.value
    if not isinstance(number, int) or not least <= number <= 10_000:
        raise outputs.session.refuse("wrong-arguments", "a whole number of rows is needed here", node=node)
    return number


def _measured(outputs: Outputs, reader: Reader) -> tuple[str, Kind | None]:
    name, argument = _MEASURED[type(reader.node)], reader.node_of("this")
    value = outputs.number(argument) if name in ("sum", "avg") else outputs.bind(argument)
    if name == "sum" and value.kind is Kind.INTEGER:
        return f"sum(CAST({value.sql} AS DOUBLE))", Kind.REAL
    return f"{name}({value.sql})", Kind.REAL if name == "avg" else value.kind


def _ordered(outputs: Outputs, order: exp.Expr, *, real: bool) -> list[tuple[Value, str]]:
    """The values that order a window, and the terms as SQL. ``real`` casts integers to doubles, so that no end of a frame overflows."""
    terms = []
    with outputs.session.reading(order) as reader:
        for node in reader.many("expressions"):
            with outputs.session.reading(node) as item:
                value, descending, first = outputs.bind(item.node_of("this")), item.flag("desc"), item.flag("nulls_first")
            value = as_real(value) if real and value.kind is Kind.INTEGER else value
            terms.append((value, marks.order(value.sql, value.mark, descending=descending, nulls_first=first)))
    return terms
