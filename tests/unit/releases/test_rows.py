"""Bins back to values: of the columns' own types, inside their bins, NULL where the bin is NULL's."""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from lapwing.kernel.domains import BooleanDomain, DateDomain, Domain, IntegerDomain, RealDomain, TextDomain, TimestampDomain
from lapwing.releases.marginals.axes import Axis, axis_of
from lapwing.releases.synthetic.public_numbers import PublicNumbers
from lapwing.releases.synthetic.rows import table_of


def _table(axes: list[Axis], bins: npt.NDArray[np.int64]) -> pa.Table:
    return table_of(axes, bins, PublicNumbers(b"digest", "values"))


def test_a_bin_of_one_value_is_that_value() -> None:
    axes = [axis_of("yes", BooleanDomain()), axis_of("word", TextDomain(("a", "b"), False)), axis_of("n", IntegerDomain(-1, 1))]
    axes += [axis_of("day", DateDomain(0, 2, False))]
    table = _table(axes, np.array([[0, 1, 0, 2], [1, 0, 2, 0], [2, 0, 3, 1]]))
    assert table.schema.types == [pa.bool_(), pa.string(), pa.int64(), pa.date32()]
    assert table.to_pydict() == {
        "yes": [False, True, None],
        "word": ["b", "a", "a"],
        "n": [-1, 1, None],
        "day": [date(1970, 1, 3), date(1970, 1, 1), date(1970, 1, 2)],
    }


SPANS: dict[str, tuple[Domain, pa.DataType]] = {
    "integer": (IntegerDomain(-3, 90), pa.int64()),
    "large": (IntegerDomain(-(2**60), 2**60), pa.int64()),
    "real": (RealDomain(Fraction(0), Fraction(5, 2), True, 4), pa.float64()),
    "day": (DateDomain(0, 1_000), pa.date32()),
    "moment": (TimestampDomain(0, 10**12), pa.timestamp("us")),
}


@pytest.mark.parametrize("what", SPANS)
def test_a_span_is_filled_evenly_with_values_of_its_grid(what: str) -> None:
    domain, kind = SPANS[what]
    axis = axis_of("x", domain, bins=4)
    bins = np.repeat(np.arange(5), 500)
    column = _table([axis], bins[:, None]).column("x").combine_chunks()
    assert column.type == kind
    assert column.null_count == 500 and column.slice(2_000).null_count == 500
    whole = _exact(column.slice(0, 2_000))
    for number, (low, high) in enumerate(axis.spans()):
        drawn = whole[500 * number : 500 * (number + 1)]
        assert low <= min(drawn) and max(drawn) <= high
        assert float(sum(drawn)) / 500 == pytest.approx(float(low + high) / 2, abs=float(high - low) / 8)
        steps = domain.steps if isinstance(domain, RealDomain) and domain.steps else 1
        assert all((value * steps).denominator == 1 for value in drawn)
        if (high - low) * steps < 30:
            assert len(set(drawn)) == (high - low) * steps + 1


def _exact(column: pa.Array) -> list[Fraction]:
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return [Fraction(value) for value in column.to_pylist()]


def test_spans_of_moments_are_moments() -> None:
    axis = axis_of("at", TimestampDomain(0, 3_600_000_000 - 1, False), bins=1)
    value = _table([axis], np.zeros((1, 1), dtype=np.int64)).column("at")[0].as_py()
    assert datetime(1970, 1, 1) <= value < datetime(1970, 1, 1, 1)


def test_no_rows_are_an_empty_table_with_all_types() -> None:
    table = _table([axis_of("x", IntegerDomain(0, 9), bins=2), axis_of("y", TextDomain(("a",)))], np.zeros((0, 2), dtype=np.int64))
    assert table.num_rows == 0 and table.schema.types == [pa.int64(), pa.string()]
