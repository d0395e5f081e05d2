"""Exact aggregates between the engine and the noise. Their text form shows no values, and they cannot be pickled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Never, TypeAlias

from lapwing.kernel.certify import Certified
from lapwing.kernel.expressions import Value


class Exact:
    """Exact integers of all queries of a plan: secret until noise is added.

    ``tables`` holds, per query, the groups the engine found, one list of integers per vector, and the number of units of each group (only
    for discovered groups); ``certified`` is the plan that was run, with the facts it was certified for. The text form is constant and
    pickling is refused, so a log line or a crash report cannot carry a value.
    """

    __slots__ = ("_certified", "_tables")

    def __init__(self, tables: Sequence[ExactTable], *, certified: Certified) -> None:
        self._tables = tuple(tables)
        self._certified = certified

    def __repr__(self) -> str:
        return "<Exact: redacted>"

    def __reduce_ex__(self, protocol: object) -> Never:
        raise TypeError("exact aggregates cannot be stored")


Counts: TypeAlias = Mapping[tuple[Value, ...], Sequence[tuple[int, int]]]
"""For each group: grid integers, in any order, and how many rows have each."""


class ExactTable:
    """Exact integers of one query; see ``Exact``. ``quantiles`` holds, for each set of quantiles, the rows by group and grid integer."""

    __slots__ = ("_groups", "_quantiles", "_units", "_vectors")

    def __init__(
        self,
        *,
        groups: Sequence[tuple[Value, ...]],
        vectors: Sequence[Sequence[int]],
        units: Sequence[int] | None,
        quantiles: Sequence[Counts] = (),
    ) -> None:
        self._groups = groups
        self._vectors = vectors
        self._units = units
        self._quantiles = quantiles

    def __repr__(self) -> str:
        return "<ExactTable: redacted>"

    def __reduce_ex__(self, protocol: object) -> Never:
        raise TypeError("exact aggregates cannot be stored")
