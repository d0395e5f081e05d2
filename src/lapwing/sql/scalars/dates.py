"""Parts of dates and truncation to the start of a part; casts between dates and timestamps."""

from __future__ import annotations

from sqlglot import exp

from lapwing.kernel import calendar
from lapwing.kernel.domains import DateDomain, IntegerDomain, Kind, TimestampDomain
from lapwing.kernel.expressions import Function, Literal
from lapwing.sql.scalars.binding import Handler, Scalars, function
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.text import constants
from lapwing.sql.text.reader import Reader

PARTS: dict[str, Function] = {
    "year": Function.YEAR,
    "isoyear": Function.ISO_YEAR,
    "quarter": Function.QUARTER,
    "month": Function.MONTH,
    "week": Function.WEEK,
    "weekofyear": Function.WEEK,
    "day": Function.DAY,
    "doy": Function.DAY_OF_YEAR,
    "dayofyear": Function.DAY_OF_YEAR,
    "dow": Function.DAY_OF_WEEK,
    "dayofweek": Function.DAY_OF_WEEK,
    "hour": Function.HOUR,
    "minute": Function.MINUTE,
    "second": Function.SECOND,
}
COMPUTED_PARTS = ("decade", "epoch", "isodow")
"""Parts that are computed from others."""
TRUNCATIONS: dict[str, Function] = {
    "year": Function.TRUNCATE_YEAR,
    "quarter": Function.TRUNCATE_QUARTER,
    "month": Function.TRUNCATE_MONTH,
    "week": Function.TRUNCATE_WEEK,
    "day": Function.TRUNCATE_DAY,
    "hour": Function.TRUNCATE_HOUR,
    "minute": Function.TRUNCATE_MINUTE,
}


def unit(scalars: Scalars, node: exp.Expr) -> str:
    """The name of a part of a date."""
    if type(node) not in (exp.Var, exp.Literal):
        raise scalars.session.refuse("date-part-unsupported", "the part of a date must be a plain word", node=node)
    with scalars.session.reading(node) as reader:
        if type(node) is exp.Literal and not reader.flag("is_string"):
            raise scalars.session.refuse("date-part-unsupported", "the part of a date must be a plain word", node=node)
        return reader.word("this").lower()


def date_part(scalars: Scalars, node: exp.Expr, part: str, value: Typed) -> Typed:
    """A part of a date as an integer; the seconds since 1970 as a real number."""

    def number(constant: int) -> Typed:
        return scalars.constant(node, Literal(constant, Kind.INTEGER))

    match part:
        case "isodow":
            since_monday = scalars.call(node, Function.ADD, scalars.call(node, Function.DAY_OF_WEEK, value), number(6))
            return scalars.call(node, Function.ADD, scalars.call(node, Function.MODULO, since_monday, number(7)), number(1))
        case "decade":
            return scalars.call(node, Function.INTEGER_DIVIDE, scalars.call(node, Function.YEAR, value), number(10))
        case "epoch":
            moment = scalars.call(node, Function.MICROSECONDS, as_timestamp(scalars, node, value))
            return scalars.call(node, Function.DIVIDE, moment, number(1_000_000))
        case _ if part in PARTS:
            found = scalars.call(node, PARTS[part], value)
            if isinstance(value.expression, Literal) and isinstance(found.domain, IntegerDomain) and found.domain.lo == found.domain.hi:
                return number(found.domain.lo)
            return found
        case _:
            hint = f"known parts: {', '.join(sorted([*PARTS, *COMPUTED_PARTS]))}"
            raise scalars.session.refuse("date-part-unsupported", "this part of a date is not supported", node=node, hint=hint)


def as_timestamp(scalars: Scalars, node: exp.Expr, value: Typed) -> Typed:
    """A date as its midnight; anything else as it is."""
    if value.kind is not Kind.DATE:
        return value
    if isinstance(value.expression, Literal) and isinstance(value.expression.value, int):
        return scalars.constant(node, Literal(value.expression.value * calendar.DAY_MICROSECONDS, Kind.TIMESTAMP))
    day = scalars.constant(node, Literal(calendar.DAY_MICROSECONDS, Kind.INTEGER))
    moment = scalars.call(node, Function.MULTIPLY, scalars.call(node, Function.DAY_NUMBER, value), day)
    return scalars.call(node, Function.TIMESTAMP_OF, moment)


def as_date(scalars: Scalars, node: exp.Expr, value: Typed) -> Typed:
    """A timestamp as its day; anything else as it is."""
    if value.kind is not Kind.TIMESTAMP:
        return value
    if isinstance(value.expression, Literal) and isinstance(value.expression.value, int):
        return scalars.constant(node, Literal(value.expression.value // calendar.DAY_MICROSECONDS, Kind.DATE))
    return scalars.call(node, Function.DATE_OF, scalars.call(node, Function.DAY_NUMBER, value))


def _part_function(part: str, *names: str) -> Handler:
    return function(lambda scalars, reader: date_part(scalars, reader.node, part, scalars.bind(reader.node_of("this"))), *names)


def _truncate(scalars: Scalars, reader: Reader) -> Typed:
    part, value = unit(scalars, reader.node_of("unit")), scalars.bind(reader.node_of("this"))
    if part not in TRUNCATIONS:
        hint = f"known parts: {', '.join(sorted(TRUNCATIONS))}"
        raise scalars.session.refuse("date-part-unsupported", "dates cannot be truncated to this unit", node=reader.node, hint=hint)
    return truncated(scalars, reader.node, TRUNCATIONS[part], value)


def truncated(scalars: Scalars, node: exp.Expr, called: Function, value: Typed) -> Typed:
    """The start of a part. Of a constant it is a constant, so that a statement with a truncated NOW() is the same until the part ends."""
    cut = scalars.call(node, called, value)
    if isinstance(value.expression, Literal) and isinstance(cut.domain, DateDomain | TimestampDomain):
        return scalars.constant(node, Literal(cut.domain.lo, value.kind))
    return cut


def _date(scalars: Scalars, reader: Reader) -> Typed:
    """DATE(x), a cast in the syntax of Looker and others."""
    value = scalars.bind(reader.node_of("this"))
    if isinstance(value.expression, Literal) and isinstance(value.expression.value, str):
        return scalars.constant(reader.node, constants.date(value.expression.value, scalars.session, value.node))
    if value.kind not in (Kind.DATE, Kind.TIMESTAMP):
        raise scalars.session.refuse("type-mismatch", f"a date is needed here, not a {value.kind.value}", node=value.node)
    return as_date(scalars, reader.node, value)


HANDLERS: dict[type[exp.Expr], Handler] = {
    exp.Date: function(_date, "DATE"),
    exp.Year: _part_function("year", "YEAR"),
    exp.Quarter: _part_function("quarter", "QUARTER"),
    exp.Month: _part_function("month", "MONTH"),
    exp.Day: _part_function("day", "DAY"),
    exp.DayOfMonth: _part_function("day", "DAYOFMONTH"),
    exp.DayOfWeek: _part_function("dow", "DAYOFWEEK"),
    exp.Hour: _part_function("hour", "HOUR"),
    exp.Minute: _part_function("minute", "MINUTE"),
    exp.TimestampTrunc: function(_truncate, "DATE_TRUNC", "DATETRUNC"),
    exp.DateTrunc: function(_truncate, "DATE_TRUNC", "DATETRUNC"),
}
