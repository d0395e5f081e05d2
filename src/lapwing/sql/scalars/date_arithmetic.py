"""Dates plus and minus days, numbers and INTERVALs, and the difference of two dates."""

from __future__ import annotations

import re

from sqlglot import exp

from lapwing.errors import Refused
from lapwing.kernel import calendar
from lapwing.kernel.domains import IntegerDomain, Kind
from lapwing.kernel.expressions import Function, Literal
from lapwing.sql.scalars.binding import Scalars, Typed
from lapwing.sql.scalars.dates import as_timestamp

MONTHS: dict[str, int] = {"month": 1, "quarter": 3, "year": 12}
DAYS: dict[str, int] = {"day": 1, "week": 7}
MICROSECONDS: dict[str, int] = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}
_COUNT = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)


def interval(scalars: Scalars, node: exp.Expr) -> tuple[int, str]:
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
    hint = f"one constant whole number of one unit, such as INTERVAL '30 days'; units: {units}"
    return scalars.session.refuse("interval-unsupported", "this interval is not supported", node=node, hint=hint)


def moved(scalars: Scalars, node: exp.Expr, value: Typed, count: int, unit: str) -> Typed:
    """A date or timestamp this many units later. A date stays a date, unless it is moved by hours or less."""
    if value.kind not in (Kind.DATE, Kind.TIMESTAMP):
        raise scalars.session.refuse("type-mismatch", "an interval is added to a date or timestamp", node=node)
    if unit in MONTHS:
        return _months_later(scalars, node, value, count * MONTHS[unit])
    if unit in DAYS and value.kind is Kind.DATE:
        return days_later(scalars, node, value, Function.ADD, _number(scalars, node, count * DAYS[unit]))
    microseconds = count * (DAYS[unit] * calendar.DAY_MICROSECONDS if unit in DAYS else MICROSECONDS[unit])
    value = as_timestamp(scalars, node, value)
    if isinstance(value.expression, Literal) and isinstance(value.expression.value, int):
        return scalars.constant(node, Literal(value.expression.value + microseconds, Kind.TIMESTAMP))
    moment = scalars.call(node, Function.MICROSECONDS, value)
    return scalars.call(node, Function.TIMESTAMP_OF, scalars.call(node, Function.ADD, moment, _number(scalars, node, microseconds)))


def _months_later(scalars: Scalars, node: exp.Expr, value: Typed, months: int) -> Typed:
    if isinstance(value.expression, Literal) and isinstance(value.expression.value, int):
        scale = 1 if value.kind is Kind.DATE else calendar.DAY_MICROSECONDS
        day, rest = divmod(value.expression.value, scale)
        later = calendar.add_months(day, months)
        if later is not None:
            return scalars.constant(node, Literal(later * scale + rest, value.kind))
    return scalars.call(node, Function.ADD_MONTHS, value, _number(scalars, node, months))


def days_later(scalars: Scalars, node: exp.Expr, value: Typed, called: Function, days: Typed) -> Typed:
    """A date and a whole number of days more (ADD) or fewer (SUBTRACT)."""
    constants = value.expression, days.expression
    if all(isinstance(constant, Literal) and isinstance(constant.value, int) for constant in constants):
        day, count = (constant.value for constant in constants if isinstance(constant, Literal) and isinstance(constant.value, int))
        return scalars.constant(node, Literal(day + (count if called is Function.ADD else -count), Kind.DATE))
    number = scalars.call(node, called, scalars.call(node, Function.DAY_NUMBER, value), days)
    return scalars.call(node, Function.DATE_OF, number)


def _number(scalars: Scalars, node: exp.Expr, value: int) -> Typed:
    return scalars.constant(node, Literal(value, Kind.INTEGER))


def dated_sum(scalars: Scalars, node: exp.Expr, called: Function, left: Typed, right: Typed) -> Typed | None:
    """A sum or difference in which a date takes part; None where none does."""
    kinds = left.kind, right.kind
    if called is Function.SUBTRACT and kinds == (Kind.DATE, Kind.DATE):
        return scalars.call(node, called, *(scalars.call(node, Function.DAY_NUMBER, side) for side in (left, right)))
    if kinds[0] is Kind.DATE and isinstance(right.domain, IntegerDomain):
        return days_later(scalars, node, left, called, right)
    if called is Function.ADD and kinds[1] is Kind.DATE and isinstance(left.domain, IntegerDomain):
        return days_later(scalars, node, right, called, left)
    if called is Function.SUBTRACT and set(kinds) <= {Kind.DATE, Kind.TIMESTAMP}:
        hint = "use DATE_DIFF('day', earlier, later), or cast both to DATE"
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
                # cut to the hour or minute first: what is divided is then a whole number of units, before 1970 too
                cut = call(Function.TRUNCATE_HOUR if unit == "hour" else Function.TRUNCATE_MINUTE, moment)
                whole = call(Function.INTEGER_DIVIDE, call(Function.MICROSECONDS, cut), constant(MICROSECONDS[unit]))
                return call(Function.ADD, whole, call(Function.SECOND, moment)) if unit == "second" else whole

    steps = call(Function.SUBTRACT, number(end), number(start))
    return call(Function.INTEGER_DIVIDE, steps, _number(scalars, node, 7)) if unit == "week" else steps
