"""PostgreSQL's spelling. No driver here: only text.

PostgreSQL raises where others give NULL, 0 or infinity: on a product or quotient of doubles that underflows, on a number that a type cannot
hold, on a text that is not a date. Each spelling below is total: what could raise stands behind a CASE whose condition is computed first.
Text sorts by the database's collation by default, so every text that is compared or sorted has ``COLLATE "C"``: by bytes.
"""

from __future__ import annotations

import datetime

from lapwing.errors import Refused
from lapwing.kernel import calendar
from lapwing.kernel.date_functions import TIME_TRUNCATIONS, TRUNCATIONS
from lapwing.kernel.expressions import Function
from lapwing.render.dialect import (
    GROUP_SALT,
    RANKING_KEY,
    Dialect,
    SourceKind,
    half_away_from_zero,
    quoted,
    standard_text_literal,
)
from lapwing.render.letters import by_list
from lapwing.render.shared_spellings import DATE_PARTS, LIBRARY, whole_as_wide

PARAMETERS = (RANKING_KEY, GROUP_SALT)
"""Names of the bound parameters, in the order of their numbers; every statement is given both, as text."""
INTEGER, WIDE, DOUBLE, BOOLEAN = "BIGINT", "NUMERIC", "DOUBLE PRECISION", "BOOLEAN"
TEXT, DATE, TIMESTAMP = "TEXT", "DATE", "TIMESTAMP"

_LEAP_YEAR = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
_EXISTING_DATE = (
    "([0-9]{4}-(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|[0-9]{4}-(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    f"|[0-9]{{4}}-02-(0[1-9]|1[0-9]|2[0-8])|{_LEAP_YEAR}-02-29)"
)
_EPOCH = datetime.datetime(1970, 1, 1)
_CALENDAR_START = -calendar.DAYS_MIN * calendar.DAY_MICROSECONDS
"""Microseconds from 0001-01-01 to 1970-01-01: with these added, every moment of the calendar is a number from 0 on."""
_LEAST_NUMERIC = "2.48e-324"
"""A number of smaller magnitude is 0 as a double; the cast would raise."""
_NUMERIC_LIMIT = "1.797693134862315807e308"
"""A number of at least this magnitude does not fit a double; the cast would raise."""


def _date_literal(days: int) -> str:
    return f"DATE '{calendar.to_date(days).isoformat()}'"


def _timestamp_literal(microseconds: int) -> str:
    return f"TIMESTAMP '{(_EPOCH + datetime.timedelta(microseconds=microseconds)).isoformat(sep=' ')}'"


def _text_literal(value: str) -> str:
    if "\x00" in value:
        raise Refused("text-invalid", "PostgreSQL has no text with the character of code 0")
    return f'(CAST({standard_text_literal(value)} AS {TEXT}) COLLATE "C")'


def _matches(text: str, pattern: str) -> str:
    """Whole text: in PostgreSQL ``^`` and ``$`` match at the ends of the text only, not at the ends of lines."""
    return f'(({text}) COLLATE "C" ~ {standard_text_literal(f"^({pattern})$")})'


def _try_cast(value: str, kind: SourceKind, target: str) -> str:
    if target == TEXT:
        return f'(CAST({value} AS {TEXT}) COLLATE "C")'
    match kind, target:
        case SourceKind.DECIMAL, "DOUBLE PRECISION":
            return numeric_as_double(value)
        case SourceKind.TEXT, "DOUBLE PRECISION":
            return numeric_as_double(f"CAST({value} AS {WIDE})")
        case SourceKind.TEXT, "BIGINT":
            number = f"CAST({value} AS {WIDE})"
            return f"(CASE WHEN {number} BETWEEN -9223372036854775808 AND 9223372036854775807 THEN CAST({number} AS {INTEGER}) END)"
        case SourceKind.TEXT, "DATE" | "TIMESTAMP":
            day = f"substr({value}, 1, 10)"
            exists = f"{_matches(day, _EXISTING_DATE)} AND {day} >= '0001-01-01'"
            return f"(CASE WHEN {exists} THEN CAST({value} AS {target}) END)"
        case SourceKind.DATE, "TIMESTAMP":
            # a date may lie beyond the last timestamp
            return f"(CASE WHEN {value} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN CAST({value} AS {TIMESTAMP}) END)"
        case SourceKind.INTEGER, "BIGINT":
            return f"(CASE WHEN {value} BETWEEN -9223372036854775808 AND 9223372036854775807 THEN CAST({value} AS {INTEGER}) END)"
        case _:
            return f"CAST({value} AS {target})"


def _whole_decimal(value: str) -> str:
    ends = "-9223372036854775808 AND 9223372036854775807"
    return f"(CASE WHEN {value} BETWEEN {ends} AND trunc({value}) = {value} THEN CAST({value} AS {INTEGER}) END)"


def numeric_as_double(number: str) -> str:
    """SQL of a NUMERIC as a double: 0 where it is too small, NULL where it is too large."""
    return (
        f"(CASE WHEN abs({number}) < {_LEAST_NUMERIC} THEN CAST(0 AS {DOUBLE})"
        f" WHEN abs({number}) <= {_NUMERIC_LIMIT} THEN CAST({number} AS {DOUBLE}) END)"
    )


def _once(a: str, b: str, sql: str) -> str:
    """SQL in which ``p.a`` and ``p.b`` stand for two values, each computed once; OFFSET 0 keeps the planner from pasting them in again."""
    return f"(SELECT {sql} FROM (SELECT {a} AS a, {b} AS b OFFSET 0) p)"


def _product(a: str, b: str) -> str:
    """The product, or 0 where its magnitude is at most 2^-1075, half the least double.

    That needs one factor of at most 2^-537 and both below 1; then both are scaled by 2^537, exactly, and multiplied without underflow.
    """
    scale = f"CAST({2.0**537!r} AS {DOUBLE})"
    tiny = f"CASE WHEN abs((p.a * {scale}) * (p.b * {scale})) <= 0.5 THEN 0 ELSE p.a * p.b END"
    small = f"least(abs(p.a), abs(p.b)) <= {2.0**-537!r} AND greatest(abs(p.a), abs(p.b)) < 1"
    return _once(a, b, f"CASE WHEN {small} THEN {tiny} ELSE p.a * p.b END")


def _ratio(a: str, b: str) -> str:
    """The quotient, or 0 where its magnitude is at most 2^-1075. No divisor exceeds 2^300 (``REAL_LIMIT``), so that needs |a| <= 2^-775."""
    up, down = f"CAST({2.0**590!r} AS {DOUBLE})", f"CAST({2.0**-485!r} AS {DOUBLE})"
    tiny = f"CASE WHEN abs((p.a * {up}) / (p.b * {down})) <= 1 THEN 0 ELSE p.a / p.b END"
    small = f"abs(p.a) <= {2.0**-775!r} AND abs(p.b) > 1"
    return _once(a, b, f"CASE WHEN {small} THEN {tiny} ELSE p.a / p.b END")


def _log_2(value: str) -> str:
    """ln(x) / ln(2), and the exact power where x is a power of two: other engines are exact there."""
    quotient = f"(ln({value}) / CAST(0.6931471805599453 AS {DOUBLE}))"
    nearest = f"greatest(round({quotient}), -1074)"
    return f"(CASE WHEN power(CAST(2 AS {DOUBLE}), {nearest}) = {value} THEN {nearest} ELSE {quotient} END)"


def _timestamp_of(microseconds: str) -> str:
    """Microseconds times an interval are computed in doubles: exact for the time of a day only, so days are added separately."""
    since = f"({microseconds} + {_CALENDAR_START})"
    day = f"(DATE '0001-01-01' + CAST({since} / {calendar.DAY_MICROSECONDS} AS INTEGER))"
    return f"({day} + ({since} % {calendar.DAY_MICROSECONDS}) * INTERVAL '1 microsecond')"


def _part(part: str) -> str:
    return f"CAST(floor(date_part('{part}', CAST({{value}} AS {TIMESTAMP}))) AS {INTEGER})"


def _microseconds(value: str) -> str:
    return f"CAST(extract(epoch FROM {value}) * 1000000 AS {INTEGER})"


def _parameter(name: str) -> str:
    return f"CAST(${PARAMETERS.index(name) + 1} AS {TEXT})"


def _in_case(function: Function, text: str) -> str:
    """By the list, or faster where every character is one byte: the collation "C" knows the letters of ASCII only."""
    own = f'{function.value}(p.a COLLATE "C")'
    listed = by_list(function, "p.a", _text_literal)
    return f"(SELECT CASE WHEN octet_length(p.a) = length(p.a) THEN {own} ELSE {listed} END FROM (SELECT {text} AS a OFFSET 0) p)"


POSTGRES = Dialect(
    name="postgres",
    integer=INTEGER,
    wide_integer=WIDE,
    double=DOUBLE,
    boolean=BOOLEAN,
    text=TEXT,
    date=DATE,
    timestamp=TIMESTAMP,
    date_literal=_date_literal,
    timestamp_literal=_timestamp_literal,
    text_literal=_text_literal,
    keyed_hash=lambda key, text: f"(encode(sha256(convert_to({key} || '|' || {text}, 'UTF8')), 'hex') COLLATE \"C\")",
    quotient=lambda a, b: f"div({a}, {b})",
    byte_length=lambda text: f"octet_length({text})",
    try_cast=_try_cast,
    matches=_matches,
    whole_decimal=_whole_decimal,
    unit_hash=lambda unit: f"hashtextextended(CAST({unit} AS {TEXT}), 1)",
    is_finite=lambda value: f"({value} > '-Infinity' AND {value} < 'Infinity')",
    days=lambda value: f"CAST({value} - DATE '1970-01-01' AS {INTEGER})",
    microseconds=_microseconds,
    parameter=_parameter,
    materialised="MATERIALIZED ",
    fence=" OFFSET 0",
    table=quoted,
    bytewise=lambda text: f'(({text}) COLLATE "C")',
    whole_as_wide=whole_as_wide,
    product=_product,
    ratio=_ratio,
    wide_as_double=lambda wide: f"CAST({wide} AS {DOUBLE})",
    functions={
        Function.STARTS_WITH: lambda value, prefix: f"starts_with({value}, {prefix})",
        Function.LENGTH: lambda value: f"CAST(length({value}) AS {INTEGER})",
        Function.POSITION: lambda value, part: f"CAST(strpos({value}, {part}) AS {INTEGER})",
        Function.SUBSTRING: lambda value, start, length: f"substr({value}, CAST({start} AS INTEGER), CAST({length} AS INTEGER))",
        Function.LOWER: lambda value: _in_case(Function.LOWER, value),
        Function.UPPER: lambda value: _in_case(Function.UPPER, value),
        Function.INTEGER_DIVIDE: lambda a, b: f"({a} / nullif({b}, 0))",
        Function.MODULO: lambda a, b: f"({a} % nullif({b}, 0))",
        Function.FLOOR: lambda value: f"CAST(floor({value}) AS {INTEGER})",
        Function.CEILING: lambda value: f"CAST(ceil({value}) AS {INTEGER})",
        # round of a double gives halves to even
        Function.TO_INTEGER: lambda value: f"CAST(round({value}) AS {INTEGER})",
        Function.ROUND: lambda value, digits: half_away_from_zero(value, digits, DOUBLE),
        **LIBRARY,
        Function.LOG_2: _log_2,
        Function.LOG_10: lambda value: f"log({value})",
        **{function: (lambda value, part=part: _part(part).format(value=value)) for function, part in DATE_PARTS.items()},
        **{
            function: (lambda value, unit=unit: f"date_trunc('{unit}', CAST({value} AS {TIMESTAMP}))")
            for function, unit in TRUNCATIONS.items()
        },
        **{function: (lambda value, unit=unit: f"date_trunc('{unit}', {value})") for function, (unit, _) in TIME_TRUNCATIONS.items()},
        Function.DAY_NUMBER: lambda value: f"CAST(CAST({value} AS {DATE}) - DATE '1970-01-01' AS {INTEGER})",
        Function.MICROSECONDS: _microseconds,
        Function.DATE_OF: lambda value: f"(DATE '1970-01-01' + CAST({value} AS INTEGER))",
        Function.TIMESTAMP_OF: _timestamp_of,
        Function.ADD_MONTHS: lambda value, months: f"({value} + INTERVAL '{months} months')",
    },
)
