"""Variances, covariances, correlations and regressions: aggregates of one value or of pairs of values."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from lapwing.kernel.domains import Kind, is_numeric
from lapwing.kernel.expressions import Function
from lapwing.sql.rows.arguments import Arguments
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.text.reader import Reader
from lapwing.statements import Aggregate, AggregateKind

ONE: Mapping[type[exp.Expr], tuple[AggregateKind, frozenset[str]]] = {
    exp.Variance: (AggregateKind.VAR_SAMP, frozenset({"VAR_SAMP", "VARIANCE"})),
    exp.VariancePop: (AggregateKind.VAR_POP, frozenset({"VAR_POP"})),
    exp.Stddev: (AggregateKind.STDDEV_SAMP, frozenset({"STDDEV"})),
    exp.StddevSamp: (AggregateKind.STDDEV_SAMP, frozenset({"STDDEV_SAMP"})),
    exp.StddevPop: (AggregateKind.STDDEV_POP, frozenset({"STDDEV_POP"})),
}
"""Aggregates of one value, and their names."""

TWO: Mapping[type[exp.Expr], tuple[AggregateKind, frozenset[str]]] = {
    exp.CovarSamp: (AggregateKind.COVAR_SAMP, frozenset({"COVAR_SAMP"})),
    exp.CovarPop: (AggregateKind.COVAR_POP, frozenset({"COVAR_POP"})),
    exp.Corr: (AggregateKind.CORR, frozenset({"CORR"})),
    exp.RegrSlope: (AggregateKind.REGR_SLOPE, frozenset({"REGR_SLOPE"})),
    exp.RegrIntercept: (AggregateKind.REGR_INTERCEPT, frozenset({"REGR_INTERCEPT"})),
    exp.RegrR2: (AggregateKind.REGR_R2, frozenset({"REGR_R2"})),
    exp.RegrCount: (AggregateKind.COUNT, frozenset({"REGR_COUNT"})),
    exp.RegrAvgx: (AggregateKind.AVG, frozenset({"REGR_AVGX"})),
    exp.RegrAvgy: (AggregateKind.AVG, frozenset({"REGR_AVGY"})),
}
"""Aggregates of pairs (y, x): rows where neither is NULL."""

NAMES: Mapping[type[exp.Expr], frozenset[str]] = {node: names for node, (_, names) in (*ONE.items(), *TWO.items())}


def moment(arguments: Arguments, reader: Reader, where: Typed | None) -> tuple[Aggregate, Kind]:
    """The aggregate of a node. Pre: its class is in ``NAMES``."""
    node = reader.node
    if type(node) in ONE:
        kind, _ = ONE[type(node)]
        value, where = arguments.value(reader.node_of("this"), where)
        _require_number(arguments, value)
        return Aggregate(kind, value.expression, None if where is None else where.expression), Kind.REAL
    kind, _ = TWO[type(node)]
    y, x = (arguments.scalars.bind(reader.node_of(name)) for name in ("this", "expression"))
    for value in (y, x):
        _require_number(arguments, value)
    filtered = None if where is None else where.expression
    match kind:
        case AggregateKind.COUNT:
            both = _with(arguments, node, _with(arguments, node, where, y), x)
            return Aggregate(kind, None, None if both is None else both.expression), Kind.INTEGER
        case AggregateKind.AVG:
            value, other = (x, y) if isinstance(node, exp.RegrAvgx) else (y, x)
            kept = _with(arguments, node, where, other)
            return Aggregate(kind, value.expression, None if kept is None else kept.expression), Kind.REAL
        case _:
            return Aggregate(kind, y.expression, filtered, x.expression), Kind.REAL


def _with(arguments: Arguments, node: exp.Expr, where: Typed | None, value: Typed) -> Typed | None:
    """The condition, and that the value is not NULL if it can be."""
    if not value.domain.nullable:
        return where
    scalars = arguments.scalars
    return arguments.both(node, where, scalars.call(node, Function.NOT, scalars.call(node, Function.IS_NULL, value)))


def _require_number(arguments: Arguments, value: Typed) -> None:
    if not is_numeric(value.domain):
        raise arguments.session.refuse("type-mismatch", f"a number is needed here, not a {value.kind.value}", node=value.node)
