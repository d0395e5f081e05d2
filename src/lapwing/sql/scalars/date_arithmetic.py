"""Dates plus and minus days, numbers and INTERVALs, and the difference of two dates."""

from __future__ import annotations

import math
import re

from sqlglot import exp

from lapwing.errors import Refused
from lapwing.kernel import calendar
from lapwing.kernel.domains import IntegerDomain, Kind
from lapwing.kernel.expressions import Function, Literal
from lapwing.sql.scalars.binding import Scalars
from lapwing.sql.scalars.dates import as_timestamp
from lapwing.sql.scalars.typed import Typed

MONTHS: dict[str, int] = {"month": 1, "quarter": 3, "year": 12}
DAYS: dict[str, int] = {"day": 1, "week": 7}
MICROSECONDS: dict[str, int] = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}
_COUNT = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)


def is_interval(node: exp.Expr) -> bool:
    """Whether a node is an INTERVAL, perhaps times a number, perhaps in brackets."""
    match node:
        case exp.Interval():
            return True
        case exp.Paren():
            return is_interval(node.this)
        case exp.Mul():
            return is_interval(node.this) or is_interval(node.expression)
        case _:
            return False


def interval(scalars: Scalars, node: exp.Expr) -> tuple[Typed, str]:
    """A whole number of one unit: a constant, perhaps times an expression. Pre: ``is_interval``."""
    if type(node) is exp.Interval:
        written_count, unit = constant_interval(scalars, node)
        return _number(scalars, node, written_count), unit
    with scalars.session.reading(node) as reader:
        if type(node) is exp.Paren:
            return interval(scalars, reader.node_of("this"))
        sides = reader.node_of("this"), reader.node_of("expression")
        written, factor = sides if is_interval(sides[0]) else sides[::-1]
        if is_interval(factor):
            raise _refuse(scalars, node)
        (count, unit), times = interval(scalars, written), scalars.bind(factor)
        if not isinstance(times.domain, IntegerDomain):
            raise _refuse(scalars, node)
        return _product(scalars, node, times, count), unit


def _product(scalars: Scalars, node: exp.Expr, count: Typed, factor: Typed) -> Typed:
    """The product of whole numbers; of constants it is a constant."""
    values = count.expression, factor.expression
    if all(isinstance(value, Literal) and isinstance(value.value, int) for value in values):
        return _number(
            scalars, node, math.prod(value.value for value in values if isinstance(value, Literal) and isinstance(value.value, int))
        )
    return count if factor.expression == Literal(1, Kind.INTEGER) else scalars.call(node, Function.MULTIPLY, count, factor)


def constant_interval(scalars: Scalars, node: exp.Expr) -> tuple[int, str]:
    """A constant number of one unit, such as ``INTERVAL '3 months'``."""
    with scalars.session.reading(node) as reader:
        amount, unit = reader.node_of("this"), reader.optional("unit")
        if type(amount) is not exp.Literal or type(unit) is not exp.Var:
            raise _refuse(scalars, node)
        with scalars.session.reading(amount) as inner:
            inner.flag("is_string")
            written = inner.word("this").strip()
        with scalars.session.reading(unit) as inner:
            name = inner.word("this").lower().removesuffix("s")
    if not _COUNT.fullmatch(written) or name not in MONTHS.keys() | DAYS.keys() | MICROSECONDS.keys():
        raise _refuse(scalars, node)
    return int(written), name


def _refuse(scalars: Scalars, node: exp.Expr) -> Refused:
    units = ", ".join(sorted(MONTHS.keys() | DAYS.keys() | MICROSECONDS.keys()))
    hint = f"a whole number of one unit, such as INTERVAL '30 days' or INTERVAL '1 day' * n; units: {units}"
    return scalars.session.refuse("interval-unsupported", "this interval is not supported", node=node, hint=hint)


def moved(scalars: Scalars, node: exp.Expr, value: Typed, count: Typed, unit: str) -> Typed:
    """A date or timestamp this many units later. A date stays a date, unless the unit is an hour or shorter."""
    if value.kind not in (Kind.DATE, Kind.TIMESTAMP):
        raise scalars.session.refuse("type-mismatch", "an interval can be added only to a date or timestamp", node=node)
    if unit in MONTHS:
        if not isinstance(count.expression, Literal) or not isinstance(count.expression.value, int):
            message, hint = "the number of months must be a constant", "a number of days may be computed: INTERVAL '1 day' * n"
            raise scalars.session.refuse("interval-unsupported", message, node=node, hint=hint)
        return _months_later(scalars, node, value, count.expression.value * MONTHS[unit])
    if unit in DAYS and value.kind is Kind.DATE:
        return days_later(scalars, node, value, Function.ADD, _product(scalars, node, count, _number(scalars, node, DAYS[unit])))
    value, microseconds = as_timestamp(scalars, node, value), microseconds_of(scalars, node, count, unit)
    start, shift = value.expression, microseconds.expression
    if isinstance(start, Literal) and isinstance(shift, Literal) and isinstance(start.value, int) and isinstance(shift.value, int):
        return scalars.constant(node, Literal(start.value + shift.value, Kind.TIMESTAMP))
    moment = scalars.call(node, Function.MICROSECONDS, value)
    return scalars.call(node, Function.TIMESTAMP_OF, scalars.call(node, Function.ADD, moment, microseconds))


def microseconds_of(scalars: Scalars, node: exp.Expr, count: Typed, unit: str) -> Typed:
    """The length of a number of units, or refuse: months have no fixed length."""
    if unit in MONTHS:
        hint = "write days: INTERVAL '30 days'"
        raise scalars.session.refuse("interval-unsupported", "months have no fixed length", node=node, hint=hint)
    length = DAYS[unit] * calendar.DAY_MICROSECONDS if unit in DAYS else MICROSECONDS[unit]
    return _product(scalars, node, count, _number(scalars, node, length))


def negative(scalars: Scalars, node: exp.Expr, count: Typed) -> Typed:
    """The negative of a number of units."""
    return _product(scalars, node, count, _number(scalars, node, -1))


def _months_later(scalars: Scalars, node: exp.Expr, value: Typed, months: int) -> Typed:
    if isinstance(value.expression, Literal) and isinstance(value.expression.value, int):
        scale = 1 if value.kind is Kind.DATE else calendar.DAY_MICROSECONDS
        day, rest = divmod(value.expression.value, scale)
        later = calendar.add_months(day, months)
        if later is not None:
            return scalars.constant(node, Literal(later * scale + rest, value.kind))
    return scalars.call(node, Function.ADD_MONTHS, value, _number(scalars, node, months))


def days_later(scalars: Scalars, node: exp.Expr, value: Typed, called: Function, days: Typed) -> Typed:
    """A date this many days later (ADD) or earlier (SUBTRACT)."""
    constants = value.expression, days.expression
    if all(isinstance(constant, Literal) and isinstance(constant.value, int) for constant in constants):
        day, count = (constant.value for constant in constants if isinstance(constant, Literal) and isinstance(constant.value, int))
        return scalars.constant(node, Literal(day + (count if called is Function.ADD else -count), Kind.DATE))
    number = scalars.call(node, called, scalars.call(node, Function.DAY_NUMBER, value), days)
    return scalars.call(node, Function.DATE_OF, number)


def _number(scalars: Scalars, node: exp.Expr, value: int) -> Typed:
    return scalars.constant(node, Literal(value, Kind.INTEGER))


def dated_sum(scalars: Scalars, node: exp.Expr, called: Function, left: Typed, right: Typed) -> Typed | None:
    """A sum or difference with a date in it; None for any other."""
    kinds = left.kind, right.kind
    if called is Function.SUBTRACT and kinds == (Kind.DATE, Kind.DATE):
        return scalars.call(node, called, *(scalars.call(node, Function.DAY_NUMBER, side) for side in (left, right)))
    if kinds[0] is Kind.DATE and isinstance(right.domain, IntegerDomain):
        return days_later(scalars, node, left, called, right)
    if called is Function.ADD and kinds[1] is Kind.DATE and isinstance(left.domain, IntegerDomain):
        return days_later(scalars, node, right, called, left)
    if called is Function.SUBTRACT and set(kinds) <= {Kind.DATE, Kind.TIMESTAMP}:
        hint = "use EXTRACT(EPOCH FROM later - earlier), which is in seconds, or DATE_DIFF('day', earlier, later)"
        raise scalars.session.refuse("type-mismatch", "the difference of two timestamps is not a number", node=node, hint=hint)
    return None


def difference(scalars: Scalars, node: exp.Expr, unit: str, start: Typed, end: Typed) -> Typed:
    """How many boundaries of a unit lie between two dates (for weeks: how many whole weeks), negative if the end comes first."""

    def call(called: Function, *arguments: Typed) -> Typed:
        return scalars.call(node, called, *arguments)

    def constant(value: int) -> Typed:
        return _number(scalars, node, value)

    def number(value: Typed) -> Typed:
        match unit:
            case "year":
                return call(Function.YEAR, value)
            case "quarter" | "month":
                per_year, part = (4, Function.QUARTER) if unit == "quarter" else (12, Function.MONTH)
                return call(Function.ADD, call(Function.MULTIPLY, call(Function.YEAR, value), constant(per_year)), call(part, value))
            case "day" | "week":
                return call(Function.DAY_NUMBER, value)
            case _:
                moment = as_timestamp(scalars, node, value)
                # truncated to the hour or minute first: the dividend is then a whole number of units, before 1970 too
                cut = call(Function.TRUNCATE_HOUR if unit == "hour" else Function.TRUNCATE_MINUTE, moment)
                whole = call(Function.INTEGER_DIVIDE, call(Function.MICROSECONDS, cut), constant(MICROSECONDS[unit]))
                return call(Function.ADD, whole, call(Function.SECOND, moment)) if unit == "second" else whole

    steps = call(Function.SUBTRACT, number(end), number(start))
    return call(Function.INTEGER_DIVIDE, steps, _number(scalars, node, 7)) if unit == "week" else steps
