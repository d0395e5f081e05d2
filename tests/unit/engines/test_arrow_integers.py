"""Whole numbers that engines return, of whatever type: exact, or refused."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from lapwing.engines.arrow import _integers


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, -(2**62), 2**62], pa.int64()),
        pa.array([1, 0, 2**62], pa.uint64()),
        pa.array([Decimal(1), Decimal(-(2**62)), Decimal(2**62)], pa.decimal128(38, 0)),
        pa.array([Decimal(2**70), Decimal(-(2**70)), Decimal(0)], pa.decimal128(38, 0)),
        pa.array([Decimal("3.00"), Decimal("-4.00"), Decimal("0.00")], pa.decimal128(20, 2)),
        pa.array([1.0, -3.0, 2.0**60], pa.float64()),
    ],
)
def test_whole_numbers_are_exact(column: pa.Array) -> None:
    integers = _integers(pa.chunked_array([column, column.slice(1)]))
    expected = [int(value) for value in (*column.to_pylist(), *column.slice(1).to_pylist())]
    assert integers == expected and all(type(value) is int for value in integers)


@pytest.mark.parametrize("column", [pa.array([Decimal("0.50")], pa.decimal128(20, 2)), pa.array([0.5]), pa.array([1, None], pa.int64())])
def test_what_is_no_whole_number_is_refused(column: pa.Array) -> None:
    with pytest.raises(TypeError):
        _integers(pa.chunked_array([column]))
