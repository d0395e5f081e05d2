"""Parts of dates and truncation to the start of a part."""

from __future__ import annotations

from sqlglot import exp

from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Function, Literal
from lapwing.sql.reader import Reader
from lapwing.sql.scalars import Handler, Scalars, Typed, function

PARTS: dict[str, Function] = {
    "year": Function.YEAR,
    "quarter": Function.QUARTER,
    "month": Function.MONTH,
    "day": Function.DAY,
    "dow": Function.DAY_OF_WEEK,
    "dayofweek": Function.DAY_OF_WEEK,
    "hour": Function.HOUR,
    "minute": Function.MINUTE,
}
TRUNCATIONS: dict[str, Function] = {
    "year": Function.TRUNCATE_YEAR,
    "quarter": Function.TRUNCATE_QUARTER,
    "month": Function.TRUNCATE_MONTH,
    "week": Function.TRUNCATE_WEEK,
    "day": Function.TRUNCATE_DAY,
}


def _extract(scalars: Scalars, reader: Reader) -> Typed:
    part = unit(scalars, reader.node_of("this"))
    return date_part(scalars, reader.node, part, scalars.bind(reader.node_of("expression")))


def unit(scalars: Scalars, node: exp.Expr) -> str:
    """The name of a part of a date."""
    if type(node) not in (exp.Var, exp.Literal):
        raise scalars.session.refuse("date-part-unsupported", "the part of a date is a plain word", node=node)
    with scalars.session.reading(node) as reader:
        if type(node) is exp.Literal and not reader.flag("is_string"):
            raise scalars.session.refuse("date-part-unsupported", "the part of a date is a plain word", node=node)
        return reader.word("this").lower()


def date_part(scalars: Scalars, node: exp.Expr, part: str, value: Typed) -> Typed:
    """A part of a date as an integer."""
    if part == "isodow":
        day = scalars.call(node, Function.DAY_OF_WEEK, value)
        six, seven, one = (scalars.constant(node, Literal(number, Kind.INTEGER)) for number in (6, 7, 1))
        since_monday = scalars.call(node, Function.MODULO, scalars.call(node, Function.ADD, day, six), seven)
        return scalars.call(node, Function.ADD, since_monday, one)
    if part not in PARTS:
        hint = f"known parts: {', '.join(sorted([*PARTS, 'isodow']))}"
        raise scalars.session.refuse("date-part-unsupported", "this part of a date is not supported", node=node, hint=hint)
    return scalars.call(node, PARTS[part], value)


def _part_function(part: str, *names: str) -> Handler:
    return function(lambda scalars, reader: date_part(scalars, reader.node, part, scalars.bind(reader.node_of("this"))), *names)


def _truncate(scalars: Scalars, reader: Reader) -> Typed:
    part, value = unit(scalars, reader.node_of("unit")), scalars.bind(reader.node_of("this"))
    if part not in TRUNCATIONS:
        hint = f"known parts: {', '.join(sorted(TRUNCATIONS))}"
        raise scalars.session.refuse("date-part-unsupported", "dates cannot be truncated to this", node=reader.node, hint=hint)
    return scalars.call(reader.node, TRUNCATIONS[part], value)


def date_part_of(scalars: Scalars, node: exp.Expr, part: exp.Expr, value: exp.Expr) -> Typed:
    """``date_part('month', day)``."""
    return date_part(scalars, node, unit(scalars, part), scalars.bind(value))


HANDLERS: dict[type[exp.Expr], Handler] = {
    exp.Extract: Handler(_extract),
    exp.Year: _part_function("year", "YEAR"),
    exp.Quarter: _part_function("quarter", "QUARTER"),
    exp.Month: _part_function("month", "MONTH"),
    exp.Day: _part_function("day", "DAY"),
    exp.DayOfMonth: _part_function("day", "DAYOFMONTH"),
    exp.DayOfWeek: _part_function("dow", "DAYOFWEEK"),
    exp.Hour: _part_function("hour", "HOUR"),
    exp.Minute: _part_function("minute", "MINUTE"),
    exp.TimestampTrunc: function(_truncate, "DATE_TRUNC", "DATETRUNC"),
}
