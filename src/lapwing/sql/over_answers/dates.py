"""Dates of answers: shifted by constants, subtracted, truncated, split into parts. No shift is large enough to leave the calendar."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from lapwing.kernel.domains import Kind
from lapwing.sql.over_answers import marks
from lapwing.sql.over_answers.values import Binder, Value
from lapwing.sql.rows import algebra
from lapwing.sql.scalars.date_arithmetic import DAYS, MICROSECONDS, MONTHS, constant_interval
from lapwing.sql.scalars.dates import unit
from lapwing.sql.text.reader import Reader

_DATES = (Kind.DATE, Kind.TIMESTAMP)
DAYS_MAX = 1_000_000
"""Largest count of weeks or shorter units in a shift; of months and longer units it is a thousandth of that."""
_DAY_PARTS = ("year", "isoyear", "quarter", "month", "week", "day", "doy", "dow")
_TIME_PARTS = ("hour", "minute", "second")
_CUTS = ("year", "quarter", "month", "week", "day")


def interval_sql(count: int, unit: str) -> str:
    """A constant interval as the engine reads it."""
    if unit in MONTHS:
        return f"to_months({count * MONTHS[unit]})"
    if unit in DAYS:
        return f"to_days({count * DAYS[unit]})"
    return f"to_microseconds({count * MICROSECONDS[unit]})"


def is_small(count: int, unit: str) -> bool:
    """Whether a shift by this interval keeps every date within the engine's calendar."""
    return abs(count) <= DAYS_MAX // (1000 if unit in MONTHS else 1)


def moved(outputs: Binder, node: exp.Expr, sign: str, value: Value, by: exp.Expr) -> Value:
    """A date or timestamp plus or minus a constant interval or number of days, or the days between two dates."""
    if type(by) is exp.Interval:
        count, name = constant_interval(outputs.scalars, by)
        if is_small(count, name):
            kind = Kind.TIMESTAMP if name in MICROSECONDS else value.kind
            sql = f"({value.sql} {sign} {interval_sql(count, name)})"
            return Value(f"CAST({sql} AS DATE)" if kind is Kind.DATE else sql, kind, algebra.COMPUTED, node, mark=value.mark)
    elif value.kind is Kind.DATE:
        other = outputs.bind(by)
        mark = marks.worst(value.mark, other.mark)
        if other.kind is Kind.DATE and sign == "-":
            return Value(f"({value.sql} - {other.sql})", Kind.INTEGER, algebra.COMPUTED, node, mark=mark)
        days = None if other.constant is None or other.kind is not Kind.INTEGER else other.constant.value
        if isinstance(days, int) and is_small(days, "day"):
            return Value(f"CAST(({value.sql} {sign} to_days({days})) AS DATE)", Kind.DATE, algebra.COMPUTED, node, mark=mark)
    message, hint = "a date of an answer can be shifted only by a constant number of days or interval", "day - 7, or day - INTERVAL 7 DAYS"
    raise outputs.session.refuse("type-mismatch", message, node=node, hint=hint)


def cast(value: Value, kind: Kind, node: exp.Expr) -> Value:
    """A date as its midnight, or a timestamp as its day."""
    return (
        value if value.kind is kind else Value(f"CAST({value.sql} AS {kind.value.upper()})", kind, algebra.COMPUTED, node, mark=value.mark)
    )


def extract(outputs: Binder, reader: Reader) -> Value:
    """EXTRACT(part FROM x)."""
    name = unit(outputs.scalars, reader.node_of("this"))
    return _part(outputs, reader.node, name, outputs.bind(reader.node_of("expression")))


def part(name: str) -> Callable[[Binder, Reader], Value]:
    """YEAR(x) and similar functions."""
    return lambda outputs, reader: _part(outputs, reader.node, name, outputs.bind(reader.node_of("this")))


def _part(outputs: Binder, node: exp.Expr, name: str, value: Value) -> Value:
    known = {Kind.DATE: _DAY_PARTS, Kind.TIMESTAMP: (*_DAY_PARTS, *_TIME_PARTS)}.get(value.kind or Kind.TEXT, ())
    if name not in known:
        raise outputs.session.refuse("date-part-unsupported", "this part of this value is not supported over answers", node=node)
    return Value(f"CAST(extract({name} FROM {value.sql}) AS BIGINT)", Kind.INTEGER, algebra.COMPUTED, node, mark=value.mark)


def truncate(outputs: Binder, reader: Reader) -> Value:
    """DATE_TRUNC: a date stays a date."""
    name, value = unit(outputs.scalars, reader.node_of("unit")), outputs.bind(reader.node_of("this"))
    if value.kind not in _DATES or name not in (_CUTS if value.kind is Kind.DATE else (*_CUTS, *_TIME_PARTS)):
        raise outputs.session.refuse("date-part-unsupported", "values of answers cannot be truncated to this unit", node=reader.node)
    return Value(
        f"CAST(date_trunc('{name}', {value.sql}) AS {value.kind.value.upper()})", value.kind, algebra.COMPUTED, reader.node, mark=value.mark
    )
