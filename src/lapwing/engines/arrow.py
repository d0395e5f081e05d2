"""Engine results (Arrow tables) to exact integers and key values. Trusted: a wrong conversion would be a wrong release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat

import pyarrow as pa

from lapwing.kernel.domains import Domain
from lapwing.kernel.exact import Counts, ExactTable
from lapwing.kernel.expressions import Value
from lapwing.render.arrow_values import key_values
from lapwing.render.queries import RenderedQuery


def exact_table(run: Callable[[str], pa.Table], query: RenderedQuery) -> ExactTable:
    """The exact integers of one query, each of whose statements ``run`` runs; column order is keys, vectors, units."""
    quantiles = [_counts(run(item.sql), query.key_domains, item.domain) for item in query.quantiles]
    if not query.sql:
        return ExactTable(groups=[], vectors=[[] for _ in range(query.vectors)], units=None, quantiles=quantiles)
    result, keys = run(query.sql), len(query.key_domains)
    if result.num_columns != keys + query.vectors + int(query.discovered):
        raise TypeError("unexpected number of columns")
    decoded = [key_values(result.column(i), domain) for i, domain in enumerate(query.key_domains)]
    groups: Sequence[tuple[Value, ...]] = list(zip(*decoded, strict=True)) if decoded else [()] * result.num_rows
    vectors = [_integers(result.column(keys + i)) for i in range(query.vectors)]
    units = _integers(result.column(keys + query.vectors)) if query.discovered else None
    return ExactTable(groups=groups, vectors=vectors, units=units, quantiles=quantiles)


def _counts(result: pa.Table, key_domains: Sequence[Domain], domain: Domain) -> Counts:
    """Rows by group and grid integer; column order is keys, integer, number of rows."""
    keys = len(key_domains)
    if result.num_columns != keys + 2:
        raise TypeError("unexpected number of columns")
    decoded = [key_values(result.column(i), key) for i, key in enumerate(key_domains)]
    groups = zip(*decoded, strict=True) if decoded else repeat((), result.num_rows)
    values, counts = key_values(result.column(keys), domain), _integers(result.column(keys + 1))
    by_group: dict[tuple[Value, ...], list[tuple[int, int]]] = {}
    for group, value, count in zip(groups, values, counts, strict=True):
        if type(value) is not int:
            raise TypeError("a value of a quantile is not a whole number")
        by_group.setdefault(group, []).append((value, count))
    return by_group


def _integers(column: pa.ChunkedArray) -> list[int]:
    """The whole numbers of a column, all at once where they fit 64 bits: the cast is checked, and refuses what is larger or not whole."""
    if not column.null_count and (pa.types.is_integer(column.type) or pa.types.is_decimal(column.type)):
        try:
            listed: list[int] = column.cast(pa.int64()).to_numpy().tolist()
        except pa.ArrowInvalid:
            pass
        else:
            return listed
    values = column.to_pylist()
    integers = [int(value) for value in values]
    if any(integer != value for integer, value in zip(integers, values, strict=True)):
        raise TypeError("a sum is not a whole number")
    return integers
