"""Aggregates over the rows of answers. They never fail: values for which an engine would raise an error are left out."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from sqlglot import exp

from lapwing.kernel.domains import Kind
from lapwing.sql.over_answers import marks
from lapwing.sql.over_answers.expressions import Outputs
from lapwing.sql.over_answers.values import Value
from lapwing.sql.rows import algebra
from lapwing.sql.scalars import number_types
from lapwing.sql.text.reader import Reader

_PLAIN: Mapping[type[exp.Expr], str] = {exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max", exp.Mode: "mode"}
_SPREADS: Mapping[type[exp.Expr], str] = {
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
}
_QUANTILES: Mapping[type[exp.Expr], tuple[str, str]] = {
    exp.Median: ("quantile_cont", ""),
    exp.PercentileCont: ("quantile_cont", "expression"),
    exp.PercentileDisc: ("quantile_disc", "expression"),
    exp.Quantile: ("quantile_disc", "quantile"),
}
"""The engine's function, and the argument that holds the share."""
_TRUTHS: Mapping[type[exp.Expr], str] = {exp.LogicalAnd: "bool_and", exp.LogicalOr: "bool_or", exp.CountIf: "count_if"}
_CHOOSING: Mapping[type[exp.Expr], str] = {exp.ArgMax: "arg_max", exp.ArgMin: "arg_min"}
AGGREGATES = frozenset({*_PLAIN, *_SPREADS, *_QUANTILES, *_TRUTHS, *_CHOOSING, exp.Count, exp.GroupConcat, exp.WithinGroup})
SQUARES_MAX = "1e150"
"""Largest value whose square is summed: the engine fails if such a sum exceeds the range of doubles."""


def aggregate(outputs: Outputs, node: exp.Expr, where: str | None = None) -> Value:
    """An aggregate over noisy rows, or over those for which ``where`` is true."""
    with outputs.session.reading(node) as reader:
        kept = "" if where is None else f" FILTER (WHERE {where})"
        sql, kind, value = _called(outputs, reader)
        mark = None if value is None or value.mark is None else value.mark
        if mark is not None and where is not None:
            mark = f"(CASE WHEN {where} THEN {mark} END)"
        sql = f"{sql}{kept}"
        if type(node) is exp.CountIf:
            sql = f"coalesce({sql}, 0)"
        if type(node) is exp.Sum and kind is Kind.INTEGER:
            sql = f"TRY_CAST({sql} AS BIGINT)"
        number = None if value is None else value.number_type
        if type(node) is exp.Sum:
            number = number_types.sum_type(number, outputs.session.dialect)
        elif kind is Kind.REAL:
            number = number_types.average_type(number, outputs.session.dialect)
        return Value(sql, kind, algebra.COMPUTED, node, mark=marks.of_aggregate(mark), number=number)


def _called(outputs: Outputs, reader: Reader) -> tuple[str, Kind | None, Value | None]:
    """The call, its type, and the value whose marks it has, if any."""
    node = reader.node
    if type(node) is exp.Count:
        return f"count({_counted(outputs, reader)})", Kind.INTEGER, None
    if type(node) is exp.WithinGroup:
        return _within_group(outputs, reader)
    if type(node) is exp.GroupConcat:
        return _texts(outputs, reader), Kind.TEXT, None
    argument = reader.node_of("this")
    if type(node) in _PLAIN:
        name = _PLAIN[type(node)]
        value = outputs.number(argument) if name in ("sum", "avg") else outputs.bind(argument)
        return f"{name}({value.sql})", Kind.REAL if name == "avg" else value.kind, value
    if type(node) in _SPREADS:
        value = outputs.number(argument)
        squared = f"CAST({value.sql} AS DOUBLE)"
        return f"{_SPREADS[type(node)]}(CASE WHEN abs({squared}) <= {SQUARES_MAX} THEN {squared} END)", Kind.REAL, value
    if type(node) in _QUANTILES:
        name, place = _QUANTILES[type(node)]
        return _quantile(outputs, name, argument, Fraction(1, 2) if not place else _share(outputs, reader.node_of(place)))
    if type(node) in _TRUTHS:
        condition = outputs.condition(argument, "the argument of this aggregate")
        return f"{_TRUTHS[type(node)]}({condition.sql})", Kind.INTEGER if type(node) is exp.CountIf else Kind.BOOLEAN, None
    value, by = outputs.bind(argument), outputs.bind(reader.node_of("expression"))
    # A row is not chosen by a value that is only noise.
    return f"{_CHOOSING[type(node)]}({value.sql}, {marks.clear(by.sql, by.mark)})", value.kind, None


def _counted(outputs: Outputs, reader: Reader) -> str:
    reader.flag("big_int")
    argument = reader.node_of("this")
    if type(argument) is exp.Star:
        with outputs.session.reading(argument):
            return "*"
    if type(argument) is exp.Distinct:
        with outputs.session.reading(argument) as inner:
            listed = inner.many("expressions")
        if len(listed) != 1:
            raise outputs.session.refuse(
                "distinct-unsupported", "COUNT(DISTINCT ...) takes one value here", node=argument, hint="COUNT(DISTINCT x)"
            )
        return f"DISTINCT {outputs.bind(listed[0]).sql}"
    return outputs.bind(argument).sql


def _share(outputs: Outputs, node: exp.Expr) -> Fraction:
    constant = outputs.bind(node).constant
    share = None if constant is None else constant.value
    if isinstance(share, bool) or not isinstance(share, int | Fraction) or not 0 <= share <= 1:
        raise outputs.session.refuse("quantile-invalid", "a quantile must be a constant from 0 to 1", node=node, hint="0.9")
    return Fraction(share)


def _quantile(outputs: Outputs, name: str, argument: exp.Expr, share: Fraction) -> tuple[str, Kind | None, Value]:
    value = outputs.number(argument)
    if name == "quantile_cont":
        return f"quantile_cont(CAST({value.sql} AS DOUBLE), {float(share)!r})", Kind.REAL, value
    return f"quantile_disc({value.sql}, {float(share)!r})", value.kind, value


def _within_group(outputs: Outputs, reader: Reader) -> tuple[str, Kind | None, Value]:
    called, order = reader.node_of("this"), reader.node_of("expression")
    if type(called) not in (exp.PercentileCont, exp.PercentileDisc) or type(order) is not exp.Order:
        hint = "use PERCENTILE_CONT or PERCENTILE_DISC"
        raise outputs.session.refuse("aggregate-unsupported", "this ordered aggregate is not supported here", node=called, hint=hint)
    with outputs.session.reading(called) as inner:
        share = _share(outputs, inner.node_of("this"))
    ((argument, descending, _),) = terms(outputs, order) if len(order.expressions) == 1 else ((order, False, False),)
    return _quantile(outputs, _QUANTILES[type(called)][0], argument, 1 - share if descending else share)


def terms(outputs: Outputs, order: exp.Expr) -> list[tuple[exp.Expr, bool, bool]]:
    """The terms of an ORDER BY inside an aggregate: expression, whether descending, whether NULLs come first."""
    listed = []
    with outputs.session.reading(order) as reader:
        reader.optional("this")
        for node in reader.many("expressions"):
            with outputs.session.reading(node) as item:
                listed.append((item.node_of("this"), item.flag("desc"), item.flag("nulls_first")))
    return listed


def _texts(outputs: Outputs, reader: Reader) -> str:
    """STRING_AGG of a text key, in the requested order, or else in the order of the key."""
    argument, separator = reader.node_of("this"), reader.optional("separator")
    ordered: list[tuple[exp.Expr, bool, bool]] = []
    if type(argument) is exp.Order:
        ordered, argument = terms(outputs, argument), argument.this
    value = outputs.bind(argument)
    between = None if separator is None else outputs.bind(separator).constant
    if value.kind is not Kind.TEXT or (separator is not None and (between is None or not isinstance(between.value, str))):
        message = "STRING_AGG over answers takes a text key and a constant separator"
        raise outputs.session.refuse("type-mismatch", message, node=reader.node, hint="STRING_AGG(region, ', ')")
    order = [f"{value.sql} ASC NULLS LAST"]
    if ordered:
        bound = [(outputs.bind(node), descending, first) for node, descending, first in ordered]
        order = [marks.order(by.sql, by.mark, descending=descending, nulls_first=first) for by, descending, first in bound]
    written = "','" if separator is None else outputs.bind(separator).sql
    return f"string_agg({value.sql}, {written} ORDER BY {', '.join(order)})"
