"""Trino's spelling: generation only, **not executed**. No engine uses it, and nothing here has been run on a Trino server.

The statements parse in Trino's grammar (tests/golden/trino), and every function named here is in Trino's manual. That they mean what the
other dialects mean is a claim that only the engine suite can check; until it has, ``executed`` is False and no catalogue can ask for it.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from lapwing.kernel import calendar
from lapwing.kernel.date_functions import TIME_TRUNCATIONS, TRUNCATIONS
from lapwing.kernel.expressions import Function
from lapwing.render.dialect import Dialect, SourceKind, half_away_from_zero, quoted, standard_text_literal
from lapwing.render.letters import by_list
from lapwing.render.shared_spellings import LIBRARY, whole_as_wide

INTEGER, WIDE, DOUBLE, BOOLEAN = "BIGINT", "DECIMAL(38,0)", "DOUBLE", "BOOLEAN"
TEXT, DATE, TIMESTAMP = "VARCHAR", "DATE", "TIMESTAMP(6)"

_PARTS = {
    Function.YEAR: "year({})",
    Function.QUARTER: "quarter({})",
    Function.MONTH: "month({})",
    Function.DAY: "day({})",
    # in Trino Monday is 1 and Sunday 7
    Function.DAY_OF_WEEK: "(day_of_week({}) % 7)",
    Function.DAY_OF_YEAR: "day_of_year({})",
    Function.WEEK: "week({})",
    Function.ISO_YEAR: "year_of_week({})",
    Function.HOUR: "hour({})",
    Function.MINUTE: "minute({})",
    Function.SECOND: "second({})",
}
_EPOCH = datetime.datetime(1970, 1, 1)
_KINDS = {
    **dict.fromkeys(["tinyint", "smallint", "integer", "bigint"], SourceKind.INTEGER),
    **dict.fromkeys(["real", "double"], SourceKind.FRACTIONAL),
    "decimal": SourceKind.DECIMAL,
    "varchar": SourceKind.TEXT,
    "boolean": SourceKind.BOOLEAN,
    "date": SourceKind.DATE,
    "timestamp": SourceKind.TIMESTAMP,
    "uuid": SourceKind.UUID,
}


def source_kind(type_name: str) -> SourceKind:
    """What a column of this type, as ``information_schema`` writes it, holds.

    Types with a time zone and CHAR, which is padded with blanks, are not read as they are: a reader must convert them first.
    """
    name, _, rest = type_name.partition("(")
    if name == "decimal" and rest.endswith(",0)"):
        return SourceKind.INTEGER
    return SourceKind.OTHER if "time zone" in type_name else _KINDS.get(name, SourceKind.OTHER)


def _date_literal(days: int) -> str:
    return f"DATE '{calendar.to_date(days).isoformat()}'"


def _timestamp_literal(microseconds: int) -> str:
    return f"TIMESTAMP '{(_EPOCH + datetime.timedelta(microseconds=microseconds)).isoformat(sep=' ', timespec='microseconds')}'"


def _quotient(a: str, b: str) -> str:
    """Towards zero: / does so for BIGINT, but rounds DECIMAL to the nearest. What is left after the remainder divides without one."""
    return f"(({a} - mod({a}, {b})) / {b})"


def _microseconds(value: str) -> str:
    """Whole seconds, and the six digits that a TIMESTAMP(6) is written with: to_unixtime is a double and would lose some."""
    seconds = f"date_diff('second', TIMESTAMP '1970-01-01 00:00:00', date_trunc('second', {value}))"
    return f"({seconds} * 1000000 + CAST(substr(CAST({value} AS {TEXT}), 21, 6) AS {INTEGER}))"


def _timestamp_of(microseconds: str) -> str:
    nanoseconds = f"CAST({microseconds} AS {WIDE}) * 1000"
    return f"CAST(from_unixtime_nanos({nanoseconds}) AT TIME ZONE 'UTC' AS {TIMESTAMP})"


def _matches(text: str, pattern: str) -> str:
    r"""``\z`` and not ``$``, which would let a line break follow."""
    whole = standard_text_literal(rf"\A(?:{pattern})\z")
    return f"regexp_like({text}, {whole})"


def _half_to_even(value: str) -> str:
    """round gives halves away from zero. A value less its floor is exact, or so near to 1 that it is not one half."""
    part = f"({value} - floor({value}))"
    nearest = f"WHEN {part} < 0.5 THEN floor({value}) WHEN {part} > 0.5 THEN floor({value}) + 1"
    return f"CAST((CASE {nearest} ELSE 2 * floor((floor({value}) + 1) / 2) END) AS {INTEGER})"


def _extreme(name: str, values: Sequence[str]) -> str:
    """In Trino least and greatest are NULL as soon as one value is."""
    chosen = {"least": "array_min", "greatest": "array_max"}[name]
    return f"{chosen}(filter(ARRAY[{', '.join(values)}], e -> e IS NOT NULL))"


TRINO = Dialect(
    name="trino",
    executed=False,
    integer=INTEGER,
    wide_integer=WIDE,
    double=DOUBLE,
    boolean=BOOLEAN,
    text=TEXT,
    date=DATE,
    timestamp=TIMESTAMP,
    date_literal=_date_literal,
    timestamp_literal=_timestamp_literal,
    text_literal=standard_text_literal,
    keyed_hash=lambda key, text: f"lower(to_hex(sha256(to_utf8({key} || '|' || {text}))))",
    quotient=_quotient,
    byte_length=lambda text: f"length(to_utf8({text}))",
    try_cast=lambda value, _kind, wanted: f"TRY_CAST({value} AS {wanted})",
    unit_hash=lambda unit: f"from_big_endian_64(xxhash64(to_utf8(CAST({unit} AS {TEXT}))))",
    whole_decimal=lambda value: f"(CASE WHEN {value} % 1 = 0 THEN TRY_CAST({value} AS BIGINT) END)",
    matches=_matches,
    is_finite=lambda value: f"is_finite({value})",
    days=lambda value: f"date_diff('day', DATE '1970-01-01', {value})",
    microseconds=_microseconds,
    # Trino's parameters have no names: a statement may use one of the two only, so virtual preparation would need another way.
    parameter=lambda _name: "?",
    materialised="",
    fence="",
    wide_as_double=lambda value: f"CAST({value} AS {DOUBLE})",
    whole_as_wide=whole_as_wide,
    # the sum of BIGINT is a BIGINT, and raises where it does not fit
    total=lambda value: f"SUM(CAST({value} AS {WIDE}))",
    extreme=_extreme,
    table=quoted,
    functions={
        Function.STARTS_WITH: lambda value, prefix: f"starts_with({value}, {prefix})",
        Function.LENGTH: lambda value: f"length({value})",
        Function.POSITION: lambda value, part: f"strpos({value}, {part})",
        Function.SUBSTRING: lambda value, start, length: f"substr({value}, {start}, {length})",
        Function.LOWER: lambda value: by_list(Function.LOWER, value, standard_text_literal),
        Function.UPPER: lambda value: by_list(Function.UPPER, value, standard_text_literal),
        Function.INTEGER_DIVIDE: lambda a, b: f"({a} / nullif({b}, 0))",
        Function.MODULO: lambda a, b: f"mod({a}, nullif({b}, 0))",
        Function.FLOOR: lambda value: f"CAST(floor({value}) AS {INTEGER})",
        Function.CEILING: lambda value: f"CAST(ceiling({value}) AS {INTEGER})",
        Function.TO_INTEGER: _half_to_even,
        Function.ROUND: lambda value, digits: half_away_from_zero(value, digits, DOUBLE),
        **LIBRARY,
        Function.LOG_2: lambda value: f"log2({value})",
        Function.LOG_10: lambda value: f"log10({value})",
        **{function: (lambda value, part=part: part.format(f"CAST({value} AS {TIMESTAMP})")) for function, part in _PARTS.items()},
        **{function: (lambda value, unit=unit: f"date_trunc('{unit}', {value})") for function, unit in TRUNCATIONS.items()},
        **{function: (lambda value, unit=unit: f"date_trunc('{unit}', {value})") for function, (unit, _) in TIME_TRUNCATIONS.items()},
        Function.DAY_NUMBER: lambda value: f"date_diff('day', DATE '1970-01-01', CAST({value} AS {DATE}))",
        Function.MICROSECONDS: _microseconds,
        Function.DATE_OF: lambda value: f"date_add('day', {value}, DATE '1970-01-01')",
        Function.TIMESTAMP_OF: _timestamp_of,
        Function.ADD_MONTHS: lambda value, months: f"date_add('month', {months}, {value})",
    },
)
