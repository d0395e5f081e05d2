"""Sub-totals and totals: rows of ROLLUP and the like, added up from released groups, or from a release of their own.

Added-up totals are free and consistent with their groups; separately measured ones are more accurate and need not equal the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lapwing.kernel.expressions import Value
from lapwing.kernel.release import NoisyColumn, NoisyTable
from lapwing.planning.planned import Part


@dataclass(frozen=True, slots=True)
class Level:
    """Groups of one level that add up equally many released groups, each as the numbers of those it adds up."""

    kept: tuple[int, ...]
    """Numbers of the keys that distinguish the groups; the other keys are NULL."""
    groups: tuple[tuple[Value, ...], ...]
    members: tuple[tuple[int, ...], ...]

    @property
    def terms(self) -> int:
        """The number of released groups that each adds up."""
        return len(self.members[0])


def levels_of(groups: Sequence[tuple[Value, ...]], levels: Sequence[tuple[int, ...]] | None, *, keys: int) -> list[Level]:
    """The rows of an answer, level by level. Without levels they are the groups themselves, no two of which are the same."""
    finest = tuple(range(keys))
    rows_by_level: list[Level] = []
    for kept in (finest,) if levels is None else levels:
        if kept == finest and groups:
            rows_by_level.append(Level(kept, tuple(groups), tuple((number,) for number in range(len(groups)))))
            continue
        added: dict[tuple[Value, ...], list[int]] = {}
        for number, group in enumerate(groups):
            added.setdefault(tuple(value if i in kept else None for i, value in enumerate(group)), []).append(number)
        by_terms: dict[int, list[tuple[tuple[Value, ...], list[int]]]] = {}
        for group, members in added.items():
            by_terms.setdefault(len(members), []).append((group, members))
        for listed in by_terms.values():
            rows_by_level.append(Level(kept, tuple(group for group, _ in listed), tuple(tuple(members) for _, members in listed)))
    return rows_by_level


@dataclass(frozen=True, slots=True)
class ShownLevel:
    """Rows of an answer on one level, and the part of the plan with their release."""

    level: Level
    part: Part
    noisy: NoisyTable
    """The release of that part."""

    @property
    def table(self) -> NoisyTable:
        """The rows as a noisy table."""
        return table_of(self.level, self.noisy)


def shown_levels(part: Part, tables: Sequence[NoisyTable]) -> list[ShownLevel]:
    """The rows of a part of an answer, level by level; ``tables`` are all released tables, by number of the query."""
    keys, shown = len(part.query.keys), list[ShownLevel]()
    if part.pieces:
        return [level for piece in part.pieces for level in shown_levels(piece, tables)]
    for kept in part.query.levels or (tuple(range(keys)),):
        measured = part.apart.get(kept, part)
        noisy = tables[measured.number or 0]
        if measured is part:
            shown += [ShownLevel(level, part, noisy) for level in levels_of(noisy.groups, (kept,), keys=keys)]
        else:
            groups = tuple(tuple(group[kept.index(key)] if key in kept else None for key in range(keys)) for group in noisy.groups)
            shown.append(ShownLevel(Level(kept, groups, tuple((number,) for number in range(len(groups)))), measured, noisy))
    return shown


def table_of(level: Level, released: NoisyTable) -> NoisyTable:
    """The level's groups as a noisy table. A cell's noise is the sum of ``level.terms`` independent draws of its column's law."""
    if level.terms == 1 and len(level.members) == len(released.groups):
        return released
    return replace(released, groups=level.groups, columns=tuple(_added(column, level.members) for column in released.columns))


def _added(column: NoisyColumn, members: tuple[tuple[int, ...], ...]) -> NoisyColumn:
    return replace(column, values=tuple(sum(column.values[number] for number in added) for added in members))
