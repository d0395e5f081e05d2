"""COUNT(DISTINCT (a, b)): several values, each of a known range, encoded as one whole number that differs for every combination."""

from __future__ import annotations

from sqlglot import exp

from lapwing.errors import Refused
from lapwing.kernel.domains import INTEGER_LIMIT, BooleanDomain, DateDomain, IntegerDomain, Kind, TextDomain, TimestampDomain, bounds
from lapwing.kernel.expressions import Function, Literal
from lapwing.sql.scalars.binding import Scalars
from lapwing.sql.scalars.text_tables import Lookup, emit, lookup_of
from lapwing.sql.scalars.typed import Typed


def combined(scalars: Scalars, node: exp.Expr, values: list[Typed]) -> Typed:
    """A number for each combination. A combination with NULL counts like any other, as in a row value of SQL."""
    whole, size = _numbered(scalars, values[0])
    for value in values[1:]:
        number, count = _numbered(scalars, value)
        size *= count
        if size >= INTEGER_LIMIT:
            raise scalars.session.refuse("range-too-wide", "these values have too many combinations to count", node=node)
        whole = scalars.call(node, Function.ADD, scalars.call(node, Function.MULTIPLY, whole, _constant(scalars, node, count)), number)
    return whole


def several_distinct(scalars: Scalars, node: exp.Expr) -> Refused:
    """The refusal of several values without brackets: engines do not agree on what NULLs among them mean."""
    message, hint = "COUNT(DISTINCT ...) takes one value", "write combinations in brackets: COUNT(DISTINCT (a, b))"
    return scalars.session.refuse("distinct-unsupported", message, node=node, hint=hint)


def _numbered(scalars: Scalars, value: Typed) -> tuple[Typed, int]:
    """A value as a number from 0 on, and how many numbers there are; NULL has the last one."""
    number, size = _number(scalars, value)
    if not value.domain.nullable:
        return number, size
    missing = scalars.call(value.node, Function.IS_NULL, value)
    return scalars.case(value.node, [(missing, _constant(scalars, value.node, size))], number), size + 1


def _number(scalars: Scalars, value: Typed) -> tuple[Typed, int]:
    node = value.node
    match value.domain:
        case BooleanDomain():
            return scalars.case(node, [(value, _constant(scalars, node, 1))], _constant(scalars, node, 0)), 2
        case TextDomain(values=tuple() as listed) if listed:
            lookup = lookup_of(scalars, value)
            places = {values: None if None in values else listed.index(str(values[0])) for values in lookup.table}
            return emit(scalars, node, Lookup(lookup.bases, places), Kind.INTEGER), len(listed)
        case IntegerDomain():
            counted = value
        case DateDomain():
            counted = scalars.call(node, Function.DAY_NUMBER, value)
        case TimestampDomain():
            counted = scalars.call(node, Function.MICROSECONDS, value)
        case _:
            raise _unlisted(scalars, value)
    lower, upper = (int(end) for end in bounds(counted.domain))
    if lower:
        counted = scalars.call(node, Function.SUBTRACT, counted, _constant(scalars, node, lower))
    return counted, upper - lower + 1


def _unlisted(scalars: Scalars, value: Typed) -> Refused:
    message = "distinct combinations can be counted only of declared text, whole numbers, dates, timestamps and booleans"
    hint = "leave this value out, or count its distinct values separately"
    return scalars.session.refuse("distinct-unsupported", message, node=value.node, hint=hint)


def _constant(scalars: Scalars, node: exp.Expr, number: int) -> Typed:
    return scalars.constant(node, Literal(number, Kind.INTEGER))
