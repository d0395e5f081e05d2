"""Sections of a release: groups of parts whose tables are combined into one best estimate.

All marginals and synthetic tables are one section: the measurements of one improve the others. Every tree of ranges is a
section of its own. A stored table says which section it is of by the name of its one column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from lapwing.errors import Refused
from lapwing.kernel.facts import Facts
from lapwing.kernel.release import NoisyTable
from lapwing.releases.marginals.axes import Axis, axis_of
from lapwing.releases.marginals.measurements import count_name
from lapwing.releases.request import Bins, Marginals, QuantileRequest, RangeTree, ReleaseRequest, SyntheticTable
from lapwing.releases.tree.axes import tree_axes


@dataclass(frozen=True, slots=True)
class Section:
    """Some parts of a release, by their numbers, and the axes that their tables are over."""

    parts: tuple[tuple[int, QuantileRequest], ...]
    axes: tuple[Axis, ...]
    """Of a tree, first the further columns, then its levels, the leaves last."""

    @property
    def tree(self) -> RangeTree | None:
        """The tree of ranges that it is, if it is one."""
        wanted = self.parts[0][1]
        return wanted if isinstance(wanted, RangeTree) else None

    def numbers(self, wanted: Marginals | SyntheticTable) -> tuple[int, ...]:
        """The axes of a part, ascending."""
        return tuple(number for number, axis in enumerate(self.axes) if axis.column in wanted.columns)


def sections_of(request: ReleaseRequest, facts: Facts) -> tuple[Section, ...]:
    """The sections of a release, with columns in bins as they are declared: marginals and synthetic tables first, then each tree."""
    columns = facts.table(request.table).columns
    if facts.table(request.table).blocks is not None:
        message = f"{request.table!r} has blocks of time: releases and sessions are bought of tables without"
        raise Refused("blocks-missing", message, hint="ask for the numbers by SQL, with a condition on the time")
    for column in request.columns:
        if column not in columns:
            raise Refused("unknown-column", f"there is no column {column!r} in the table {request.table!r}")
    numbered = tuple(enumerate(request.wanted))
    together = tuple((number, part) for number, part in numbered if not isinstance(part, RangeTree))
    found = []
    if together:
        cuts = _cuts([part for _, part in together])
        found.append(Section(together, tuple(axis_of(column, columns[column], bins=cut) for column, cut in cuts.items())))
    for number, part in numbered:
        if isinstance(part, RangeTree):
            bins = dict(part.bins)
            further = tuple(axis_of(column, columns[column], bins=bins.get(column)) for column in part.by)
            levels = tree_axes(part.column, columns[part.column], branch=part.branch, bins=bins.get(part.column))
            found.append(Section(((number, part),), (*further, *levels)))
    return tuple(found)


def table_section(table: NoisyTable, sections: Sequence[Section]) -> int:
    """The number of the section that a stored table is of; ``ValueError`` if there is none."""
    names = [count_name(number) for number in range(len(sections))]
    return names.index(table.columns[0].name)


def table_axes(table: NoisyTable, section: Section) -> tuple[int, ...]:
    """The axes that a stored table is over: those of its keys, and of several of one column the one that has its cells."""
    found = []
    for key, cells in zip(table.keys, table.axes or (), strict=True):
        of_column = [number for number, axis in enumerate(section.axes) if axis.column == key]
        found.append(of_column[0] if len(of_column) == 1 else next(number for number in of_column if section.axes[number].cells() == cells))
    return tuple(found)


def _cuts(parts: Sequence[QuantileRequest]) -> dict[str, Bins | None]:
    """Each column once, with its bins, which have to be the same in all parts that have the column."""
    found: dict[str, int | tuple[Fraction, ...] | None] = {}
    for part in parts:
        bins = dict(part.bins)
        for column in part.columns:
            if found.setdefault(column, bins.get(column)) != bins.get(column):
                message = f"the column {column!r} has two different sets of bins"
                raise Refused("release-parts", message, hint="give it the same bins in all marginals and synthetic tables of one release")
    return found
