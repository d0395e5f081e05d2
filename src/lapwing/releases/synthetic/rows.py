"""Synthetic rows as a table: bins back to values of the columns' own types.

A bin that is one value becomes that value; a span becomes values of the column's grid inside it, evenly spread; the bin of NULL becomes
NULL. Which value of a span a row gets is decided by public numbers, since a release has no information finer than its bins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lapwing.answers.post_processing import typed_array
from lapwing.kernel.domains import Kind, RealDomain, kind_of
from lapwing.releases.marginals.axes import Axis
from lapwing.releases.synthetic.public_numbers import PublicNumbers

Integers: TypeAlias = npt.NDArray[np.int64]


def table_of(axes: Sequence[Axis], bins: Integers, numbers: PublicNumbers) -> pa.Table:
    """Rows of bins (rows x axes) as a table with a column for each axis."""
    columns = [_column(axis, np.ascontiguousarray(bins[:, place]), numbers) for place, axis in enumerate(axes)]
    return pa.table(columns, names=[axis.column for axis in axes])


def _column(axis: Axis, bins: Integers, numbers: PublicNumbers) -> pa.Array:
    if axis.edges is None:
        return typed_array(axis.cells(), kind_of(axis.domain)).take(pa.array(bins))
    spans = axis.spans()
    steps = (axis.domain.steps if isinstance(axis.domain, RealDomain) else None) or 1
    least = np.array([int(low * steps) for low, _ in spans], dtype=np.int64)
    values = np.array([int((high - low) * steps) + 1 for low, high in spans], dtype=np.int64)
    null = bins == len(spans)
    span = np.where(null, 0, bins)
    offset = np.floor(numbers.uniform(len(bins)) * values[span]).astype(np.int64)
    grid = least[span] + np.minimum(offset, values[span] - 1)
    match kind_of(axis.domain):
        case Kind.DATE:
            return pa.array(grid.astype(np.int32), mask=null).cast(pa.date32())
        case Kind.TIMESTAMP:
            return pa.array(grid, mask=null).cast(pa.timestamp("us"))
        case Kind.REAL:
            return pa.array(grid / steps, mask=null)
        case _:
            return pa.array(grid, mask=null)
