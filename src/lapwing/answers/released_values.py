"""The rows of an answer as constants of another statement. They are released, so they are public."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa

from lapwing.kernel.expressions import Value
from lapwing.statements import DecidedRows


def released_rows(table: pa.Table) -> DecidedRows:
    """Row by row: dates as days, timestamps as microseconds, reals as their printed decimals."""
    columns = [[_value(value) for value in _plain(column).to_pylist()] for column in table.columns]
    return tuple(zip(*columns, strict=True))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_date(column.type):
        return column.cast(pa.date32()).cast(pa.int32())
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us")).cast(pa.int64())
    return column


def _value(value: object) -> Value:
    match value:
        case None | bool() | int() | str():
            return value
        case float() if math.isfinite(value):
            return Fraction(repr(value))
        case Decimal() if value.is_finite():
            return Fraction(value)
        case _:
            return None
