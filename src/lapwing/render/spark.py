"""Spark's spelling. No driver here: only text.

ANSI mode is off (see ``lapwing.engines.spark.sessions``): with it on, an overflow, a floor or a cast that does not fit stops the whole
statement, and whether one occurs depends on a row. With it off arithmetic never raises; that nothing overflows is what a certificate says,
not what the engine checks. What raises all the same (a far date as a timestamp) stands behind a CASE here.
"""

from __future__ import annotations

import re
from typing import assert_never

from lapwing.errors import PreparationError, Refused
from lapwing.kernel import calendar
from lapwing.kernel.date_functions import TIME_TRUNCATIONS, TRUNCATIONS
from lapwing.kernel.domains import NumberType
from lapwing.kernel.expressions import Function
from lapwing.render.dialect import Dialect, SourceKind
from lapwing.render.letters import by_list
from lapwing.render.shared_spellings import LIBRARY

INTEGER, WIDE, DOUBLE, BOOLEAN = "BIGINT", "DECIMAL(38,0)", "DOUBLE", "BOOLEAN"
TEXT, DATE, TIMESTAMP = "STRING", "DATE", "TIMESTAMP_NTZ"

_PARTS = {
    Function.YEAR: "year({})",
    Function.QUARTER: "quarter({})",
    Function.MONTH: "month({})",
    Function.DAY: "day({})",
    Function.DAY_OF_WEEK: "(dayofweek({}) - 1)",
    Function.DAY_OF_YEAR: "dayofyear({})",
    Function.WEEK: "weekofyear({})",
    Function.ISO_YEAR: "extract(YEAROFWEEK FROM {})",
    Function.HOUR: "hour({})",
    Function.MINUTE: "minute({})",
    Function.SECOND: "second({})",
}
_PLAIN = re.compile(r"[A-Za-z0-9 _.,:-]*", re.ASCII)
_KINDS = {
    **dict.fromkeys(["tinyint", "smallint", "int", "bigint"], SourceKind.INTEGER),
    **dict.fromkeys(["float", "double"], SourceKind.FRACTIONAL),
    "decimal": SourceKind.DECIMAL,
    **dict.fromkeys(["string", "char", "varchar"], SourceKind.TEXT),
    "void": SourceKind.TEXT,  # a column without a type: all of it is NULL, whatever it is read as
    "boolean": SourceKind.BOOLEAN,
    "date": SourceKind.DATE,
    "timestamp": SourceKind.TIMESTAMP,
    "timestamp_ntz": SourceKind.TIMESTAMP,
}
_NUMBERS = {
    **dict.fromkeys(["tinyint", "smallint", "int"], NumberType.INTEGER),
    "bigint": NumberType.BIGINT,
    "decimal": NumberType.DECIMAL,
    **dict.fromkeys(["float", "double"], NumberType.DOUBLE),
}
_WHOLE_DECIMAL = re.compile(r"decimal\([0-9]+,0\)")


def source_kind(type_name: str) -> SourceKind:
    """What a column of this type (as ``DataType.simpleString`` writes it) holds."""
    if _WHOLE_DECIMAL.fullmatch(type_name):
        return SourceKind.INTEGER
    return _KINDS.get(re.split(r"[(\s]", type_name, maxsplit=1)[0], SourceKind.OTHER)


def number_type(type_name: str) -> NumberType | None:
    """The type of the numbers in a column of this type; None where it holds none."""
    return _NUMBERS.get(re.split(r"[(\s]", type_name, maxsplit=1)[0])


def quoted(identifier: str) -> str:
    """An identifier in backquotes: double quotes mean text in some sessions and names in others."""
    if "\x00" in identifier:
        raise Refused("column-name", "a name may not contain the character with code 0")
    return "`" + identifier.replace("`", "``") + "`"


def text_literal(value: str) -> str:
    """A text constant. Backslashes, quotes, ``${`` and whatever else Spark's reader knows never reach it: such text is written as bytes."""
    if _PLAIN.fullmatch(value):
        return f"'{value}'"
    return f"CAST(X'{value.encode().hex()}' AS {TEXT})"


def _date(days: int) -> str:
    return f"date_from_unix_date({days})"


def _timestamp(microseconds: int | str) -> str:
    return f"CAST(timestamp_micros(CAST({microseconds} AS {INTEGER})) AS {TIMESTAMP})"


def _microseconds(value: str) -> str:
    # sessions are in UTC, so that reading a wall clock as an instant changes no digit
    return f"unix_micros(CAST({value} AS TIMESTAMP))"


def _binary(value: str) -> str:
    """Text that compares by its bytes, whatever collation the source column has."""
    return f"collate({value}, 'UTF8_BINARY')"


def _try_cast(value: str, kind: SourceKind, target: str) -> str:
    """``try_cast`` is NULL where a cast does not fit, in either mode of Spark; it is used where that can occur."""
    match kind:
        case SourceKind.TEXT if target == TEXT:
            # a Parquet file can hold bytes that are not UTF-8; they would stop the result on its way out
            return f"try_validate_utf8({_binary(f'CAST({value} AS {TEXT})')})"
        case SourceKind.DATE if target == TIMESTAMP:
            ends = f"{_date(calendar.DAYS_MIN)} AND {_date(calendar.DAYS_MAX)}"
            return f"(CASE WHEN {value} BETWEEN {ends} THEN CAST({value} AS {TIMESTAMP}) END)"
        case SourceKind.TIMESTAMP if target == DATE:
            return f"CAST(CAST({value} AS {TIMESTAMP}) AS {DATE})"
        case SourceKind.INTEGER | SourceKind.TEXT:
            return f"try_cast({value} AS {target})"
        case SourceKind.FRACTIONAL | SourceKind.DECIMAL | SourceKind.BOOLEAN | SourceKind.DATE | SourceKind.TIMESTAMP:
            return f"CAST({value} AS {target})"
        case SourceKind.UUID | SourceKind.OTHER:
            raise PreparationError("source-type", "a column of a type of the engine's own cannot be read")
        case _:
            assert_never(kind)


def _whole_text(pattern: str) -> str:
    r"""The pattern between the very ends of a text: ``$`` would let a line break follow."""
    return text_literal(rf"\A(?:{pattern})\z")


def _whole_decimal(value: str) -> str:
    """Through the digits: Spark's arithmetic rounds decimals of many digits, and says that 1e-38 % 1 is 0.

    A whole number other than 0 is written in plain digits; 0 may be 0E-20. No decimal but 0 is 0 as a double.
    """
    text = f"CAST({value} AS {TEXT})"
    whole = f"try_cast(split_part({text}, '.', 1) AS {INTEGER})"
    is_whole = f"rlike({text}, {_whole_text('-?[0-9]+[.]0+')})"
    return f"(CASE WHEN CAST({value} AS {DOUBLE}) = 0 THEN CAST(0 AS {INTEGER}) WHEN {is_whole} THEN {whole} END)"


SPARK = Dialect(
    name="spark",
    integer=INTEGER,
    wide_integer=WIDE,
    double=DOUBLE,
    boolean=BOOLEAN,
    text=TEXT,
    date=DATE,
    timestamp=TIMESTAMP,
    date_literal=_date,
    timestamp_literal=_timestamp,
    text_literal=text_literal,
    keyed_hash=lambda key, text: f"sha2({key} || '|' || {text}, 256)",
    quotient=lambda a, b: f"({a} div {b})",
    byte_length=lambda text: f"octet_length({text})",
    try_cast=_try_cast,
    matches=lambda text, pattern: f"rlike({text}, {_whole_text(pattern)})",
    whole_decimal=_whole_decimal,
    unit_hash=lambda unit: f"xxhash64({unit})",
    # NaN is larger than any number here
    is_finite=lambda value: f"(abs({value}) <= CAST(1.7976931348623157e308 AS {DOUBLE}))",
    days=lambda value: f"CAST(unix_date({value}) AS {INTEGER})",
    microseconds=_microseconds,
    parameter=lambda name: f":{name}",
    materialised="",
    fence="",
    wide_as_double=lambda value: f"CAST({value} AS {DOUBLE})",
    table=quoted,
    quoted=quoted,
    functions={
        Function.STARTS_WITH: lambda value, prefix: f"startswith({value}, {prefix})",
        Function.LENGTH: lambda value: f"CAST(length({value}) AS {INTEGER})",
        Function.POSITION: lambda value, part: f"CAST(instr({value}, {part}) AS {INTEGER})",
        Function.SUBSTRING: lambda value, start, length: f"substring({value}, CAST({start} AS INT), CAST({length} AS INT))",
        Function.LOWER: lambda value: by_list(Function.LOWER, value, text_literal),
        Function.UPPER: lambda value: by_list(Function.UPPER, value, text_literal),
        Function.INTEGER_DIVIDE: lambda a, b: f"({a} div nullif({b}, 0))",
        Function.MODULO: lambda a, b: f"({a} % nullif({b}, 0))",
        Function.FLOOR: lambda value: f"floor({value})",
        Function.CEILING: lambda value: f"ceil({value})",
        Function.TO_INTEGER: lambda value: f"CAST(rint({value}) AS {INTEGER})",
        # round to a whole number is half away from zero and exact; to digits it would round the decimal digits that Java prints
        Function.ROUND: lambda value, digits: f"(round({value} * {10**digits}e0, 0) / {10**digits}e0)",
        **LIBRARY,
        Function.LOG_2: lambda value: f"log2({value})",
        Function.LOG_10: lambda value: f"log10({value})",
        **{function: (lambda value, part=part: f"CAST({part.format(value)} AS {INTEGER})") for function, part in _PARTS.items()},
        **{function: (lambda value, unit=unit: _truncated(value, unit)) for function, unit in TRUNCATIONS.items()},
        **{function: (lambda value, unit=unit: _truncated(value, unit)) for function, (unit, _) in TIME_TRUNCATIONS.items()},
        Function.DAY_NUMBER: lambda value: f"CAST(unix_date(CAST({value} AS {DATE})) AS {INTEGER})",
        Function.MICROSECONDS: _microseconds,
        Function.DATE_OF: lambda value: f"date_from_unix_date(CAST({value} AS INT))",
        Function.TIMESTAMP_OF: _timestamp,
        Function.ADD_MONTHS: lambda value, months: f"({value} + make_ym_interval(0, {months}))",
    },
)


def _truncated(value: str, unit: str) -> str:
    """date_trunc gives an instant of whatever it is given; the wall clock of it in UTC is the result."""
    return f"CAST(date_trunc('{unit}', CAST({value} AS TIMESTAMP)) AS {TIMESTAMP})"
