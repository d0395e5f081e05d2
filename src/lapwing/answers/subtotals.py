"""Sub-totals and totals: rows of ROLLUP and the like, added up from released groups. Free, and consistent with the groups they add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lapwing.kernel.expressions import Value
from lapwing.kernel.release import NoisyColumn, NoisyTable


@dataclass(frozen=True, slots=True)
class Level:
    """Groups of one level that add up equally many released groups, each as the numbers of those it adds up."""

    kept: tuple[int, ...]
    """Numbers of the keys that tell the groups apart; the other keys are NULL."""
    groups: tuple[tuple[Value, ...], ...]
    members: tuple[tuple[int, ...], ...]

    @property
    def terms(self) -> int:
        """How many released groups each adds up."""
        return len(self.members[0])


def levels_of(groups: Sequence[tuple[Value, ...]], levels: Sequence[tuple[int, ...]] | None, *, keys: int) -> list[Level]:
    """The rows of an answer, level by level. Without levels they are the groups themselves."""
    if levels is None:
        levels = (tuple(range(keys)),)
    rows_by_level: list[Level] = []
    for kept in levels:
        added: dict[tuple[Value, ...], list[int]] = {}
        for number, group in enumerate(groups):
            added.setdefault(tuple(value if i in kept else None for i, value in enumerate(group)), []).append(number)
        by_terms: dict[int, list[tuple[tuple[Value, ...], list[int]]]] = {}
        for group, members in added.items():
            by_terms.setdefault(len(members), []).append((group, members))
        for listed in by_terms.values():
            rows_by_level.append(Level(kept, tuple(group for group, _ in listed), tuple(tuple(members) for _, members in listed)))
    return rows_by_level


def table_of(level: Level, released: NoisyTable) -> NoisyTable:
    """The level's groups as a noisy table. A cell's noise is the sum of ``level.terms`` independent draws of its column's law."""
    if level.terms == 1 and len(level.members) == len(released.groups):
        return released
    return replace(released, groups=level.groups, columns=tuple(_added(column, level.members) for column in released.columns))


def _added(column: NoisyColumn, members: tuple[tuple[int, ...], ...]) -> NoisyColumn:
    return replace(column, values=tuple(sum(column.values[number] for number in added) for added in members))
