"""The time between two timestamps: it is not a value, but its seconds are, and it can be compared with an INTERVAL."""

from __future__ import annotations

from sqlglot import exp

from lapwing.kernel.domains import Kind, NumberType
from lapwing.kernel.expressions import Function, Literal
from lapwing.sql.scalars import number_types
from lapwing.sql.scalars.binding import Handler, Scalars
from lapwing.sql.scalars.date_arithmetic import dated_sum, interval, is_interval, microseconds_of
from lapwing.sql.scalars.dates import as_timestamp, date_part, unit
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.text.reader import Reader

_MOMENTS = ({Kind.TIMESTAMP}, {Kind.DATE, Kind.TIMESTAMP})
"""Kinds of two values whose difference is a time; that of two dates is a number, as everywhere."""


def part_of(scalars: Scalars, node: exp.Expr, part: str, dated: exp.Expr) -> Typed:
    """The part of the date that a node denotes; for a difference of two timestamps, its seconds."""
    value, is_time = _difference(scalars, dated) if part == "epoch" else (scalars.bind(dated), False)
    if not is_time:
        found = date_part(scalars, node, part, value)
        # for PostgreSQL a part is a decimal, whatever its value
        is_decimal = scalars.session.dialect == "postgres" and found.kind is Kind.INTEGER
        return number_types.typed_as(found, NumberType.DECIMAL) if is_decimal else found
    return scalars.call(node, Function.DIVIDE, value, scalars.constant(node, Literal(1_000_000, Kind.INTEGER)))


def compare_with_interval(scalars: Scalars, node: exp.Expr, called: Function, sides: tuple[exp.Expr, exp.Expr]) -> Typed:
    """A comparison of a difference of two timestamps with an INTERVAL, in microseconds."""
    return scalars.call(node, called, *(_duration(scalars, side) for side in sides))


def _duration(scalars: Scalars, node: exp.Expr) -> Typed:
    if is_interval(node):
        return microseconds_of(scalars, node, *interval(scalars, node))
    value, is_time = _difference(scalars, node)
    if not is_time:
        hint = "compare it with later - earlier, or compare seconds: EXTRACT(EPOCH FROM later - earlier)"
        raise scalars.session.refuse(
            "interval-unsupported", "an interval can be compared only with a difference of two timestamps", node=node, hint=hint
        )
    return value


def _difference(scalars: Scalars, node: exp.Expr) -> tuple[Typed, bool]:
    """The microseconds between two timestamps, and True, if a node is their difference; else its value, and False."""
    if type(node) is exp.Paren:
        with scalars.session.reading(node) as reader:
            return _difference(scalars, reader.node_of("this"))
    if type(node) is not exp.Sub or is_interval(node.expression):
        return scalars.bind(node), False
    with scalars.session.reading(node) as reader:
        left, right = scalars.bind(reader.node_of("this")), scalars.bind(reader.node_of("expression"))
        if {left.kind, right.kind} in _MOMENTS:
            moments = [scalars.call(node, Function.MICROSECONDS, as_timestamp(scalars, node, side)) for side in (left, right)]
            return scalars.call(node, Function.SUBTRACT, *moments), True
        return dated_sum(scalars, node, Function.SUBTRACT, left, right) or scalars.call(node, Function.SUBTRACT, left, right), False


def _extract(scalars: Scalars, reader: Reader) -> Typed:
    return part_of(scalars, reader.node, unit(scalars, reader.node_of("this")), reader.node_of("expression"))


HANDLERS: dict[type[exp.Expr], Handler] = {exp.Extract: Handler(_extract)}
