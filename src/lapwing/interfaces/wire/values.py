"""Values on the wire: cells of answers, and parameters of statements, as text and in PostgreSQL's binary form."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lapwing.errors import CallRefused

BOOL, INT8, INT2, INT4, TEXT, FLOAT4, FLOAT8, VARCHAR, DATE, TIMESTAMP, TIMESTAMPTZ, NUMERIC, UNKNOWN, BPCHAR, NAME = (
    *(16, 20, 21, 23, 25, 700, 701, 1043, 1082, 1114, 1184, 1700, 705, 1042, 19),
)
SIZES = {BOOL: 1, INT8: 8, INT2: 2, INT4: 4, FLOAT4: 4, FLOAT8: 8, DATE: 4, TIMESTAMP: 8, TIMESTAMPTZ: 8}
_EPOCH = datetime(2000, 1, 1)
_TEXTS = (TEXT, VARCHAR, BPCHAR, NAME, UNKNOWN, 0)


def type_of(arrow: pa.DataType) -> int:
    """The PostgreSQL type of an answer's column."""
    if pa.types.is_boolean(arrow):
        return BOOL
    if pa.types.is_integer(arrow):
        return INT8
    if pa.types.is_floating(arrow):
        return FLOAT8
    if pa.types.is_decimal(arrow):
        return NUMERIC
    if pa.types.is_date(arrow):
        return DATE
    return TIMESTAMP if pa.types.is_timestamp(arrow) else TEXT


def encoded(value: Any, of: int, form: int) -> bytes | None:
    """A cell of an answer in one of the two formats."""
    if value is None:
        return None
    return _BINARY[of](value) if form == 1 else _text(value).encode("utf-8", "replace")


def _text(value: Any) -> str:
    match value:
        case bool():
            return "t" if value else "f"
        case float():
            if math.isnan(value):
                return "NaN"
            if math.isinf(value):
                return "Infinity" if value > 0 else "-Infinity"
            written = repr(value)
            return written.removesuffix(".0")
        case datetime():
            return value.isoformat(sep=" ")
        case Decimal():
            return f"{value:f}"
        case _:
            return str(value)


def _numeric(value: Decimal) -> bytes:
    """Groups of four digits, PostgreSQL's binary form of numeric."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return struct.pack("!hhHh", 0, 0, 0xC000, 0)
    scale = max(-exponent, 0)
    whole = int("".join(map(str, digits)) or "0") * 10 ** max(exponent, 0)
    padded = whole * 10 ** (-scale % 4)
    groups: list[int] = []
    while padded:
        padded, last = divmod(padded, 10_000)
        groups.append(last)
    weight = len(groups) - 1 - (scale + 3) // 4
    groups.reverse()
    while groups and groups[-1] == 0:
        groups.pop()
    return struct.pack(f"!hhHh{len(groups)}h", len(groups), weight if groups else 0, 0x4000 if sign else 0, scale, *groups)


_BINARY: dict[int, Callable[[Any], bytes]] = {
    BOOL: lambda value: b"\1" if value else b"\0",
    INT8: lambda value: struct.pack("!q", value),
    FLOAT8: lambda value: struct.pack("!d", value),
    TEXT: lambda value: str(value).encode("utf-8", "replace"),
    DATE: lambda value: struct.pack("!i", (value - _EPOCH.date()).days),
    TIMESTAMP: lambda value: struct.pack("!q", round((value - _EPOCH) / timedelta(microseconds=1))),
    NUMERIC: _numeric,
}


def literal(value: bytes | None, of: int, form: int) -> str:
    """A parameter's value as SQL; ``wire-parameter`` if it cannot be read."""
    if value is None:
        return "NULL"
    try:
        return _literal_of_binary(value, of) if form == 1 else literal_of_text(value.decode("utf-8"), of)
    except (ValueError, KeyError, struct.error, OverflowError) as error:
        raise CallRefused("wire-parameter", "a parameter's value does not have its type") from error


def literal_of_text(text: str, of: int) -> str:
    """A value in text format as SQL."""
    if "\0" in text:
        raise ValueError("a zero byte")
    if of in (INT2, INT4, INT8):
        return _signed(str(int(text)))
    if of in (FLOAT4, FLOAT8, NUMERIC):
        number = Decimal(text.strip())
        if not number.is_finite():
            raise ValueError("not a number")
        return _signed(f"{number:f}" if abs(number.adjusted()) < 100 else str(number))
    if of == BOOL:
        return {"t": "TRUE", "true": "TRUE", "1": "TRUE", "on": "TRUE", "f": "FALSE", "false": "FALSE", "0": "FALSE", "off": "FALSE"}[
            text.strip().lower()
        ]
    if of == DATE:  # JDBC adds its time zone, which PostgreSQL also ignores
        return f"DATE '{date.fromisoformat(text.strip().split(' ')[0])}'"
    if of in (TIMESTAMP, TIMESTAMPTZ):
        moment = datetime.fromisoformat(text.strip())
        if of == TIMESTAMPTZ and moment.utcoffset() not in (None, timedelta(0)):
            raise ValueError("a moment in another time zone")
        moment = moment.replace(tzinfo=None)
        return f"TIMESTAMP '{moment.isoformat(sep=' ')}'"
    if of not in _TEXTS:
        raise ValueError("a type that is not read")
    return "'" + text.replace("'", "''") + "'"


def _signed(number: str) -> str:
    return f"({number})" if number.startswith("-") else number


def _literal_of_binary(value: bytes, of: int) -> str:
    if of in _TEXTS:
        return literal_of_text(value.decode("utf-8"), TEXT)
    if of == BOOL:
        return "TRUE" if struct.unpack("!?", value)[0] else "FALSE"
    if of in (INT2, INT4, INT8):
        return _signed(str(struct.unpack({INT2: "!h", INT4: "!i", INT8: "!q"}[of], value)[0]))
    if of in (FLOAT4, FLOAT8):
        return literal_of_text(repr(struct.unpack("!f" if of == FLOAT4 else "!d", value)[0]), of)
    if of == DATE:
        return f"DATE '{_EPOCH.date() + timedelta(days=struct.unpack('!i', value)[0])}'"
    if of in (TIMESTAMP, TIMESTAMPTZ):
        return f"TIMESTAMP '{(_EPOCH + timedelta(microseconds=struct.unpack('!q', value)[0])).isoformat(sep=' ')}'"
    if of == NUMERIC:
        return literal_of_text(_decimal(value), NUMERIC)
    raise ValueError("a type that is not read")


def _decimal(value: bytes) -> str:
    count, weight, sign, _ = struct.unpack("!hhHH", value[:8])
    if sign not in (0, 0x4000) or not 0 <= count <= 100 or abs(weight) > 100:
        raise ValueError("not a number")
    groups = struct.unpack(f"!{count}h", value[8:])
    number = sum((Decimal(group).scaleb(4 * (weight - i)) for i, group in enumerate(groups)), Decimal(0))
    return f"{'-' if sign else ''}{number:f}"
