"""Values of a result column in our own terms: what an engine's Arrow types stand for, by domain."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import assert_never

import pyarrow as pa

from lapwing.kernel.domains import BooleanDomain, DateDomain, Domain, IntegerDomain, KeyDomain, RealDomain, TextDomain, TimestampDomain
from lapwing.kernel.expressions import Value


def key_values(column: pa.ChunkedArray, domain: Domain) -> list[Value]:
    """Key values of a result column."""
    convert = _converter(domain)
    match domain:
        case DateDomain():
            column = column.cast(pa.date32()).cast(pa.int32())
        case TimestampDomain():
            column = column.cast(pa.timestamp("us")).cast(pa.int64())
        case _:
            pass
    return [None if value is None else convert(value) for value in column.to_pylist()]


def _converter(domain: Domain) -> Callable[..., Value]:
    match domain:
        case BooleanDomain():
            return bool
        case IntegerDomain() | DateDomain() | TimestampDomain():
            return int
        case RealDomain(steps=int(steps)):
            return lambda value: Fraction(int(value), steps)
        case RealDomain():
            return Fraction
        case TextDomain() | KeyDomain():
            return str
        case _:
            assert_never(domain)
