"""The plan of a release: one count of rows for each table, all over the same rows, each table with its own law.

One plan, one certificate, one charge: the kernel computes its cost as the sum over its tables. Every table is bounded in
the same way, so that a row has the same weight in all of them, and tables agree up to their noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lapwing.kernel.ir import Bounding, Plan, ProductGroups, Query, Relation, RowCount, Vector
from lapwing.kernel.laws import Law
from lapwing.releases.marginals.axes import Axis

COUNT = "_rows"
"""Name of the one column of each table; keys have the names of their columns, so that a stored table names its contents."""


def count_name(section: int) -> str:
    """Name of the one column of the tables of a section: the first has no number."""
    return COUNT if section == 0 else f"{COUNT}_{section}"


@dataclass(frozen=True, slots=True)
class CountTable:
    """A table of counts by some axes, by their numbers in rising order, with the noise that it gets."""

    axes: tuple[int, ...]
    law: Law


def release_plan(rows: Relation, axes: Sequence[Axis], tables: Sequence[CountTable], bounding: Bounding, *, section: int = 0) -> Plan:
    """Counts of ``rows`` in every table, over all combinations of bins."""
    return Plan(tuple(_query(rows, [axes[number] for number in each.axes], each.law, bounding, section) for each in tables))


def whole_plan(sections: Sequence[Plan]) -> Plan:
    """All sections of a release under one certificate and one charge."""
    return Plan(tuple(query for plan in sections for query in plan.queries))


def _query(rows: Relation, axes: Sequence[Axis], law: Law, bounding: Bounding, section: int) -> Query:
    keys = tuple((axis.column, axis.key()) for axis in axes)
    groups = ProductGroups(tuple(axis.cells() for axis in axes))
    return Query(rows, keys, groups, bounding, (Vector(count_name(section), RowCount(), law),))
