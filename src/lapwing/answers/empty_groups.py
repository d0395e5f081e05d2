"""Declared groups without rows, if the noise is small enough to detect them: SQL has no row for them, so computations skip them.

A group is found empty by its released count, and only if a group of one row would exceed the noise of all groups
together and public facts show that no bound cuts a row. Otherwise every group stays: leaving out what looks like noise would bias
averages upwards. Everything here is post-processing of released values and public facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from lapwing.kernel.certify import CertifiedQuery
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Ranked, RowCount, UnitCount, UnitNorms
from lapwing.kernel.release import NoisyTable
from lapwing.kernel.workload import scans_of
from lapwing.planning.planned import Part
from lapwing.spread import half_width

TOLD_WRONGLY = Fraction(1, 1000)
"""Probability that any group of an answer is misclassified as empty or not."""


def occupied_groups(part: Part, query: CertifiedQuery, table: NoisyTable, facts: Facts) -> list[int] | None:
    """The indices of the groups that have rows; None if this cannot be decided for all."""
    if not part.query.keys or part.query.levels is not None or part.scaled or part.groups is None or not table.groups:
        return None
    counted = next((item.vector.name for item in query.vectors if item.vector.measure in (RowCount(None), UnitCount(None))), None)
    if counted is None or not _keeps_every_row(query, facts):
        return None
    column = table.column(counted)
    noise = half_width(column.law, confidence=1 - TOLD_WRONGLY / len(table.groups))
    if noise * column.step >= Fraction(1, 2):
        return None
    return [place for place, value in enumerate(column.values) if value * column.step >= Fraction(1, 2)]


def _keeps_every_row(query: CertifiedQuery, facts: Facts) -> bool:
    """Whether the plan reads all rows that a unit has in a prepared table, and clips nothing."""
    source = query.query.source
    if isinstance(source, UnitNorms) or not isinstance(query.query.bounding, Ranked):
        return False
    return all(scan.rows_per_unit == facts.table(scan.table).rows_per_unit_max for scan in scans_of(source))


def only(table: NoisyTable, places: Sequence[int]) -> NoisyTable:
    """The release with only these groups."""
    columns = tuple(replace(column, values=tuple(column.values[place] for place in places)) for column in table.columns)
    quantiles = tuple(
        replace(item, values=tuple(tuple(target[place] for place in places) for target in item.values)) for item in table.quantiles
    )
    return replace(table, groups=tuple(table.groups[place] for place in places), columns=columns, quantiles=quantiles)
