"""DuckDB's spelling. No DuckDB type or import here: only text."""

from __future__ import annotations

import re

from lapwing.kernel.date_functions import TIME_TRUNCATIONS, TRUNCATIONS
from lapwing.kernel.domains import NumberType
from lapwing.kernel.expressions import Function
from lapwing.render.dialect import Dialect, SourceKind, quoted, standard_text_literal
from lapwing.render.shared_spellings import DATE_PARTS, LIBRARY


def _date(days: int) -> str:
    return f"(DATE '1970-01-01' + CAST({days} AS INTEGER))"


def _timestamp(microseconds: int) -> str:
    return f"make_timestamp(CAST({microseconds} AS BIGINT))"


_KINDS = {
    **dict.fromkeys(
        ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"],
        SourceKind.INTEGER,
    ),
    **dict.fromkeys(["FLOAT", "DOUBLE"], SourceKind.FRACTIONAL),
    "DECIMAL": SourceKind.DECIMAL,
    "VARCHAR": SourceKind.TEXT,
    "ENUM": SourceKind.TEXT,
    '"NULL"': SourceKind.TEXT,  # a column without a type: all of it is NULL, whatever it is read as
    "UUID": SourceKind.UUID,
    "BOOLEAN": SourceKind.BOOLEAN,
    "DATE": SourceKind.DATE,
    **dict.fromkeys(["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"], SourceKind.TIMESTAMP),
}


_NUMBERS = {
    **dict.fromkeys(["TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT"], NumberType.INTEGER),
    **dict.fromkeys(["BIGINT", "HUGEINT", "UINTEGER", "UBIGINT", "UHUGEINT"], NumberType.BIGINT),
    "DECIMAL": NumberType.DECIMAL,
    **dict.fromkeys(["FLOAT", "DOUBLE"], NumberType.DOUBLE),
}
_WHOLE_DECIMAL = re.compile(r"DECIMAL\([0-9]+,0\)")


def source_kind(type_name: str) -> SourceKind:
    """What a column of this type holds."""
    if _WHOLE_DECIMAL.fullmatch(type_name):
        return SourceKind.INTEGER
    is_nested = type_name.endswith("]")
    return SourceKind.OTHER if is_nested else _KINDS.get(type_name.split("(")[0], SourceKind.OTHER)


def number_type(type_name: str) -> NumberType | None:
    """The type of the numbers in a column of this type; None where it holds none."""
    return None if type_name.endswith("]") else _NUMBERS.get(type_name.split("(")[0])


def _whole_decimal(value: str) -> str:
    """Through the digits: a remainder by 1 would need a 1 of the value's own type, which may have no digit before the point."""
    text = f"CAST({value} AS VARCHAR)"
    whole = f"TRY_CAST(split_part({text}, '.', 1) AS BIGINT)"
    # where the type has no digit before the point, none is written
    return rf"(CASE WHEN regexp_full_match({text}, '\.0+') THEN 0 WHEN regexp_full_match({text}, '-?[0-9]+\.0+') THEN {whole} END)"


def _wide_as_double(value: str) -> str:
    """DuckDB rounds integers beyond 2^53 twice on the way to a double; it reads their digits correctly."""
    return f"(CASE WHEN {value} <= {2**53} THEN CAST({value} AS DOUBLE) ELSE CAST(CAST({value} AS VARCHAR) AS DOUBLE) END)"


DUCKDB = Dialect(
    name="duckdb",
    integer="BIGINT",
    wide_integer="HUGEINT",
    double="DOUBLE",
    boolean="BOOLEAN",
    text="VARCHAR",
    date="DATE",
    timestamp="TIMESTAMP",
    date_literal=_date,
    timestamp_literal=_timestamp,
    text_literal=standard_text_literal,
    keyed_hash=lambda key, text: f"sha256({key} || '|' || {text})",
    quotient=lambda a, b: f"({a} // {b})",
    byte_length=lambda text: f"strlen({text})",
    try_cast=lambda value, _kind, wanted: f"TRY_CAST({value} AS {wanted})",
    matches=lambda text, pattern: f"regexp_full_match({text}, {standard_text_literal(pattern)})",
    wide_as_double=_wide_as_double,
    whole_decimal=_whole_decimal,
    # with a constant beside it: by the hash of the unit alone the engine places its groups, and a sample would crowd them
    unit_hash=lambda unit: f"hash({unit}, 1)",
    is_finite=lambda value: f"isfinite({value})",
    days=lambda value: f"CAST({value} - DATE '1970-01-01' AS BIGINT)",
    microseconds=lambda value: f"epoch_us({value})",
    parameter=lambda name: f"${name}",
    materialised="MATERIALIZED ",
    fence="",
    table=quoted,
    functions={
        Function.STARTS_WITH: lambda value, prefix: f"starts_with({value}, {prefix})",
        Function.LENGTH: lambda value: f"length({value})",
        Function.POSITION: lambda value, part: f"strpos({value}, {part})",
        Function.SUBSTRING: lambda value, start, length: f"substring({value}, {start}, {length})",
        Function.LOWER: lambda value: f"lower({value})",
        Function.UPPER: lambda value: f"upper({value})",
        Function.INTEGER_DIVIDE: lambda a, b: f"({a} // nullif({b}, 0))",
        Function.MODULO: lambda a, b: f"({a} % nullif({b}, 0))",
        Function.FLOOR: lambda value: f"CAST(floor({value}) AS BIGINT)",
        Function.CEILING: lambda value: f"CAST(ceil({value}) AS BIGINT)",
        Function.TO_INTEGER: lambda value: f"CAST(round_even({value}, 0) AS BIGINT)",
        Function.ROUND: lambda value, digits: f"round({value}, {digits})",
        **LIBRARY,
        Function.LOG_2: lambda value: f"log2({value})",
        Function.LOG_10: lambda value: f"log10({value})",
        **{function: (lambda value, part=part: f"CAST(date_part('{part}', {value}) AS BIGINT)") for function, part in DATE_PARTS.items()},
        **{function: (lambda value, unit=unit: f"date_trunc('{unit}', {value})") for function, unit in TRUNCATIONS.items()},
        **{function: (lambda value, unit=unit: f"date_trunc('{unit}', {value})") for function, (unit, _) in TIME_TRUNCATIONS.items()},
        Function.DAY_NUMBER: lambda value: f"CAST(CAST({value} AS DATE) - DATE '1970-01-01' AS BIGINT)",
        Function.MICROSECONDS: lambda value: f"epoch_us({value})",
        Function.DATE_OF: lambda value: f"(DATE '1970-01-01' + CAST({value} AS INTEGER))",
        Function.TIMESTAMP_OF: lambda value: f"make_timestamp({value})",
        Function.ADD_MONTHS: lambda value, months: f"({value} + to_months({months}))",
    },
)
