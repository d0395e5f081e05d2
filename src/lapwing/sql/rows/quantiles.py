"""Medians, quantiles and extremes of rows, in the spellings of DuckDB and PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from sqlglot import exp

from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Literal
from lapwing.sql.rows.arguments import AggregateArgument, Arguments
from lapwing.sql.rows.text_order import in_order, place_of
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.text.reader import Reader
from lapwing.statements import Aggregate, AggregateKind, quantile_kind

_HALF = Fraction(1, 2)
_KINDS: Mapping[type[exp.Expr], tuple[AggregateKind, frozenset[str]]] = {
    exp.Median: (AggregateKind.QUANTILE_CONT, frozenset({"MEDIAN"})),
    exp.Min: (AggregateKind.MIN, frozenset({"MIN"})),
    exp.Max: (AggregateKind.MAX, frozenset({"MAX"})),
    exp.PercentileCont: (AggregateKind.QUANTILE_CONT, frozenset({"QUANTILE_CONT", "PERCENTILE_CONT"})),
    exp.PercentileDisc: (AggregateKind.QUANTILE_DISC, frozenset({"QUANTILE_DISC", "PERCENTILE_DISC"})),
    exp.Quantile: (AggregateKind.QUANTILE_DISC, frozenset({"QUANTILE"})),
    exp.ApproxQuantile: (AggregateKind.QUANTILE_DISC, frozenset({"APPROX_QUANTILE"})),
}
NAMES: Mapping[type[exp.Expr], frozenset[str]] = {node: names for node, (_, names) in _KINDS.items()}
"""The aggregates read here, and their names."""

_ORDERED = (exp.PercentileCont, exp.PercentileDisc)


def quantile(arguments: Arguments, reader: Reader, where: Typed | None) -> AggregateArgument:
    """The aggregate of a call. Pre: its class is in ``NAMES``."""
    node = reader.node
    kind, _ = _KINDS[type(node)]
    argument, share = reader.node_of("this"), None
    if type(node) is exp.Median:
        share = _HALF
    elif type(node) in (exp.Quantile, exp.ApproxQuantile):
        share = _share(arguments, reader.node_of("quantile"))
    elif type(node) in _ORDERED:
        name = arguments.session.source.called_name(node).upper()
        if name.startswith("PERCENTILE") or reader.optional("expression") is None:
            hint = f"{name}(0.5) WITHIN GROUP (ORDER BY x)" if name.startswith("PERCENTILE") else f"{name}(x, 0.5)"
            raise arguments.session.refuse("wrong-arguments", f"this is not the syntax of {name}", node=node, hint=hint)
        share = _share(arguments, reader.node_of("expression"))
    return _aggregate(arguments, kind, argument, share, where)


def within_group(arguments: Arguments, reader: Reader, where: Typed | None) -> AggregateArgument:
    """PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY x): from the other end where the order is descending."""
    session = arguments.session
    called, order = reader.node_of("this"), reader.node_of("expression")
    name = session.source.called_name(called).upper()
    if type(called) not in _ORDERED or not name.startswith("PERCENTILE"):
        raise session.refuse("aggregate-unsupported", "this aggregate does not take WITHIN GROUP", node=called)
    with session.reading(called) as inner:
        share = _share(arguments, inner.node_of("this"))
    if type(order) is not exp.Order:
        raise session.refuse("sql-unsupported", "WITHIN GROUP needs ORDER BY", node=order)
    with session.reading(order) as ordering:
        listed = ordering.many("expressions")
    if len(listed) != 1 or type(listed[0]) is not exp.Ordered:
        raise session.refuse("wrong-arguments", "a quantile takes one value in ORDER BY", node=order, hint="ORDER BY x")
    with session.reading(listed[0]) as ordered:
        argument, descending = ordered.node_of("this"), ordered.flag("desc")
        ordered.flag("nulls_first")  # NULLs are ignored wherever they would sort
    kind, _ = _KINDS[type(called)]
    return _aggregate(arguments, kind, argument, 1 - share if descending else share, where)


def _aggregate(
    arguments: Arguments, kind: AggregateKind, argument: exp.Expr, share: Fraction | None, where: Typed | None
) -> AggregateArgument:
    session = arguments.session
    value, where = arguments.value(argument, where)
    if isinstance(value.expression, Literal):
        raise session.refuse("wrong-arguments", "a constant has no quantiles", node=value.node)
    words: tuple[str, ...] | None = None
    if value.kind is Kind.TEXT and kind in (AggregateKind.MIN, AggregateKind.MAX):
        words = in_order(session, value)
        value = place_of(arguments.scalars, value, words)
    if value.kind not in (Kind.INTEGER, Kind.REAL, Kind.DATE, Kind.TIMESTAMP):
        message = f"quantiles, MIN and MAX need a number or a date, not a {value.kind.value}"
        raise session.refuse("type-mismatch", message, node=value.node)
    aggregate = Aggregate(kind, value.expression, None if where is None else where.expression, share=share)
    return AggregateArgument(aggregate, quantile_kind(kind, value.kind), words)


def _share(arguments: Arguments, node: exp.Expr) -> Fraction:
    """The constant from 0 to 1 that names the quantile."""
    if type(node) is exp.Array:
        hint = "write one call per quantile: several of one column cost hardly more than one"
        raise arguments.session.refuse("quantile-invalid", "a list of quantiles is not supported", node=node, hint=hint)
    typed = arguments.scalars.bind(node)
    constant = typed.expression.value if isinstance(typed.expression, Literal) else None
    if isinstance(constant, bool) or not isinstance(constant, int | Fraction) or not 0 <= constant <= 1:
        raise arguments.session.refuse("quantile-invalid", "a quantile must be a constant from 0 to 1", node=node, hint="0.9")
    share = Fraction(constant)
    if share.denominator > 10**6:
        raise arguments.session.refuse("quantile-invalid", "a quantile may have at most 6 decimal places", node=node)
    return share
