"""A section of a bought release: its noisy tables and their joint estimate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lapwing.kernel.laws import DiscreteLaplace
from lapwing.kernel.release import NoisyTable
from lapwing.releases.marginals.axes import Axis
from lapwing.releases.marginals.synopsis import MeasuredMarginal, Synopsis
from lapwing.releases.sections import Section
from lapwing.releases.serving.answers import ServedMarginals
from lapwing.releases.serving.tree_counts import TreeCounts
from lapwing.spread import variance


@dataclass(frozen=True, slots=True)
class ReleasedSection:
    """Noisy tables over the axes of a section, ready to answer."""

    section: Section
    measured: tuple[MeasuredMarginal, ...]
    """The noisy tables, by the numbers of their axes."""
    served: ServedMarginals

    @property
    def synopsis(self) -> Synopsis | TreeCounts:
        """The best estimates, with exact variances of sums."""
        return self.served.synopsis

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The columns in bins, one axis for each; for a tree, the leaves."""
        return self.served.public.axes

    def marginals_over(self, axes: Sequence[int]) -> tuple[MeasuredMarginal, ...]:
        """The measurements over some of :attr:`axes`, renumbered: tables with other axes are summed over those."""
        measured: Sequence[MeasuredMarginal] = self.measured
        if isinstance(self.synopsis, TreeCounts):
            leaves = self.synopsis.counts
            measured = [MeasuredMarginal(held, leaves, noise) for held, noise in self.served.public.variances.items()]
        numbers = {axis: number for number, axis in enumerate(axes)}
        found = []
        for table in measured:
            rest = tuple(place for place, axis in enumerate(table.axes) if axis not in numbers)
            kept = tuple(numbers[axis] for axis in table.axes if axis in numbers)
            cells = math.prod(np.shape(table.counts)[place] for place in rest)
            found.append(MeasuredMarginal(kept, np.asarray(table.counts, dtype=np.float64).sum(axis=rest), table.variance * cells))
        return tuple(found)


def released_section(
    table: str, section: Section, tables: Sequence[tuple[tuple[int, ...], NoisyTable]], notes: tuple[str, ...]
) -> ReleasedSection:
    """The noisy tables of a section, each with the numbers of its axes."""
    measured = []
    for axes, each in tables:
        column = each.columns[0]
        step = float(column.step)
        counts = np.asarray(column.values, dtype=np.float64) * step
        shape = [section.axes[number].size for number in axes]
        measured.append(MeasuredMarginal(axes, counts.reshape(shape), variance(column.law) * step**2))
    laplace = any(isinstance(each.columns[0].law, DiscreteLaplace) for _, each in tables)
    if section.tree is None:
        served = ServedMarginals.of(table, section.axes, measured, laplace=laplace, notes=notes)
    else:
        served = ServedMarginals.of_tree(TreeCounts.of(table, section.axes, measured, laplace=laplace, notes=notes))
    return ReleasedSection(section, tuple(measured), served)
