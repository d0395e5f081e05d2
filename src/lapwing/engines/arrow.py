"""Engine results (Arrow tables) to exact integers and key values. Trusted: a wrong conversion would be a wrong release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import assert_never

import pyarrow as pa

from lapwing.engines.render.queries import RenderedQuery
from lapwing.kernel.domains import BooleanDomain, DateDomain, Domain, IntegerDomain, KeyDomain, RealDomain, TextDomain, TimestampDomain
from lapwing.kernel.exact import ExactTable
from lapwing.kernel.expressions import Value


def exact_table(result: pa.Table, query: RenderedQuery) -> ExactTable:
    """The exact integers of one query; column order is keys, vectors, units."""
    keys = len(query.key_domains)
    if result.num_columns != keys + query.vectors + int(query.discovered):
        raise TypeError("unexpected number of columns")
    decoded = [key_values(result.column(i), domain) for i, domain in enumerate(query.key_domains)]
    groups: Sequence[tuple[Value, ...]] = list(zip(*decoded, strict=True)) if decoded else [()] * result.num_rows
    vectors = [_integers(result.column(keys + i)) for i in range(query.vectors)]
    units = _integers(result.column(keys + query.vectors)) if query.discovered else None
    return ExactTable(groups=groups, vectors=vectors, units=units)


def _integers(column: pa.ChunkedArray) -> list[int]:
    values = column.to_pylist()
    integers = [int(value) for value in values]
    if any(integer != value for integer, value in zip(integers, values, strict=True)):
        raise TypeError("a sum is not a whole number")
    return integers


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
