"""Dates built from numbers, and dates truncated to periods of any length; each is a composition of the kernel's closed list."""

from __future__ import annotations

import datetime
from calendar import monthrange

from sqlglot import exp

from lapwing.errors import Refused
from lapwing.kernel import calendar
from lapwing.kernel.domains import DateDomain, IntegerDomain, Kind, TimestampDomain
from lapwing.kernel.expressions import Function, Literal
from lapwing.sql.scalars import date_arithmetic, dates
from lapwing.sql.scalars.named_function import Composer, FunctionReference, NamedFunction
from lapwing.sql.scalars.typed import Typed

_SHIFT = 719_468
"""Days from 0000-03-01 to 1970-01-01."""
_MONDAY = calendar.to_days(datetime.date(2000, 1, 3))
"""The origin of periods of days and shorter units, as in DuckDB."""
_MONTHS = {1: "month", 3: "quarter", 12: "year"}


def _make_date(composer: Composer, nodes: tuple[exp.Expr, ...]) -> Typed:
    """The day number of a year, month and day: years are counted from March, so that the leap day is the last of a year.

    The result is clamped to the first and last possible day. That changes no value: the interval of the sum is a few days wider.
    """
    year, month, day = (composer.bind(node) for node in nodes)
    first, last = _ends(composer, year, month, day)
    if first == last:
        return composer.scalars.constant(composer.node, Literal(first, Kind.DATE))
    number, call = composer.integer, composer.call
    is_early = call(Function.LESS, month, number(3))
    since_march = call(Function.MODULO, call(Function.ADD, month, number(9)), number(12))
    since = composer.case([(is_early, call(Function.SUBTRACT, year, number(1)))], year)
    parts = [
        call(Function.MULTIPLY, since, number(365)),
        call(Function.INTEGER_DIVIDE, since, number(4)),
        call(Function.INTEGER_DIVIDE, since, number(400)),
        call(Function.INTEGER_DIVIDE, call(Function.ADD, call(Function.MULTIPLY, since_march, number(153)), number(2)), number(5)),
        call(Function.SUBTRACT, day, number(_SHIFT + 1)),
    ]
    days = parts[0]
    for part in parts[1:]:
        days = call(Function.ADD, days, part)
    days = call(Function.SUBTRACT, days, call(Function.INTEGER_DIVIDE, since, number(100)))
    clamped = call(Function.LEAST, call(Function.GREATEST, days, number(first)), number(last))
    return call(Function.DATE_OF, composer.null_with(days, clamped))


def _ends(composer: Composer, *parts: Typed) -> tuple[int, int]:
    """The first and the last day; refused unless every possible year, month and day is a date."""
    ranges = [part.domain for part in parts if isinstance(part.domain, IntegerDomain)]
    if len(ranges) < len(parts):
        raise composer.scalars.session.refuse("type-mismatch", "MAKE_DATE takes whole numbers", node=composer.node)
    years, months, days = ranges
    exists = 1 <= years.lo <= years.hi <= 9999 and 1 <= months.lo <= months.hi <= 12 and days.lo >= 1
    common_year = years.lo if years.lo == years.hi else 2023
    if not exists or days.hi > min(monthrange(common_year, month)[1] for month in range(months.lo, months.hi + 1)):
        message, hint = (
            "not every possible year, month and day here is a date",
            "narrow them with LEAST and GREATEST: days to 28, months to 12",
        )
        raise composer.scalars.session.refuse("range-too-wide", message, node=composer.node, hint=hint)
    first, last = datetime.date(years.lo, months.lo, days.lo), datetime.date(years.hi, months.hi, days.hi)
    return calendar.to_days(first), calendar.to_days(last)


def _time_bucket(composer: Composer, nodes: tuple[exp.Expr, ...]) -> Typed:
    """The start of the period of this length that contains a date."""
    if type(nodes[0]) is not exp.Interval:
        raise _length(composer, nodes[0])
    count, unit = date_arithmetic.constant_interval(composer.scalars, nodes[0])
    value = composer.bind(nodes[1])
    if not isinstance(value.domain, DateDomain | TimestampDomain):
        raise composer.scalars.session.refuse("type-mismatch", f"a date is needed here, not a {value.kind.value}", node=nodes[1])
    if unit in date_arithmetic.MONTHS:
        months = count * date_arithmetic.MONTHS[unit]
        if months not in _MONTHS:
            raise _length(composer, nodes[0])
        return dates.truncated(composer.scalars, composer.node, dates.TRUNCATIONS[_MONTHS[months]], value)
    in_days = date_arithmetic.DAYS.get(unit, 0) * count
    length = in_days * calendar.DAY_MICROSECONDS if in_days else date_arithmetic.MICROSECONDS.get(unit, 0) * count
    if length <= 0 or (isinstance(value.domain, DateDomain) and not in_days):
        raise _length(composer, nodes[0])
    if isinstance(value.domain, DateDomain):
        start = _start(composer, composer.call(Function.DAY_NUMBER, value), origin=_MONDAY, length=in_days)
        return composer.call(Function.DATE_OF, start)
    cut = next((truncate for size, truncate in _CUTS if length % size == 0), None)
    moment = composer.call(Function.MICROSECONDS, value if cut is None else composer.call(cut, value))
    start = _start(composer, moment, origin=_MONDAY * calendar.DAY_MICROSECONDS, length=length)
    return composer.call(Function.TIMESTAMP_OF, start)


_CUTS = (
    (calendar.DAY_MICROSECONDS, Function.TRUNCATE_DAY),
    (3_600_000_000, Function.TRUNCATE_HOUR),
    (60_000_000, Function.TRUNCATE_MINUTE),
)
"""Units that a timestamp is truncated to first, if the period is a multiple of the unit: truncated values are few enough to list."""


def _start(composer: Composer, number: Typed, *, origin: int, length: int) -> Typed:
    """The number minus its remainder after whole periods, counted from an origin before all values, so that nothing is negative."""
    first = number.domain.lo if isinstance(number.domain, IntegerDomain) else origin
    before = origin + min(first - origin, 0) // length * length
    left = composer.call(Function.MODULO, composer.call(Function.SUBTRACT, number, composer.integer(before)), composer.integer(length))
    return composer.call(Function.SUBTRACT, number, left)


def _length(composer: Composer, node: exp.Expr) -> Refused:
    message = "this length of a period is not supported"
    hint = "use a constant such as INTERVAL '15 minutes' or INTERVAL '7 days'; whole days for dates; 1, 3 or 12 months"
    return composer.scalars.session.refuse("interval-unsupported", message, node=node, hint=hint)


NAMED: tuple[NamedFunction, ...] = (
    NamedFunction(
        FunctionReference(
            ("MAKE_DATE",),
            "year, month, day",
            "dates",
            "date",
            "the date of three whole numbers",
            total="refused unless every year, month and day in their ranges is a date",
            checked=(
                "MAKE_DATE(birth_year, 1, 1)",
                "MAKE_DATE(birth_year, 12, 31)",
                "MAKE_DATE(birth_year, 2, 28)",
                ("MAKE_DATE(YEAR(day), MONTH(day), 1)", "CAST(date_trunc('month', day) AS DATE)"),
                "MAKE_DATE(1600 + minutes, clinic_id, 1 + minutes % 28)",
                "DATE_DIFF('year', MAKE_DATE(birth_year, 7, 1), DATE '2025-01-01')",
            ),
            samples=(),
        ),
        3,
        3,
        _make_date,
    ),
    NamedFunction(
        FunctionReference(
            ("TIME_BUCKET",),
            "INTERVAL '15 minutes', d",
            "dates",
            "as d",
            "the start of the period of this length that the date lies in, counted from Monday, 3 January 2000",
            total="refused where it could leave the calendar",
            checked=(
                "TIME_BUCKET(INTERVAL '15 minutes', started)",
                "TIME_BUCKET(INTERVAL '7 minutes', started)",
                "TIME_BUCKET(INTERVAL '90 seconds', started)",
                "TIME_BUCKET(INTERVAL '6 hours', started)",
                "TIME_BUCKET(INTERVAL '5 days', started)",
                "TIME_BUCKET(INTERVAL '2 weeks', day)",
                "TIME_BUCKET(INTERVAL '1 week', MAKE_DATE(1600 + minutes, 5, 17))",
                "TIME_BUCKET(INTERVAL '11 hours', CAST(MAKE_DATE(1600 + minutes, 5, 17) AS TIMESTAMP))",
                "TIME_BUCKET(INTERVAL '1 month', day)",
                "TIME_BUCKET(INTERVAL '3 months', started)",
                "TIME_BUCKET(INTERVAL '1 year', day)",
            ),
            samples=(),
        ),
        2,
        2,
        _time_bucket,
    ),
)
