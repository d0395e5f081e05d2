"""A planned tree of ranges as text: its levels, and the errors of counts of ranges, compared with counts from leaves alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lapwing.answers.display.number_format import figure
from lapwing.releases.marginals.variances import Floats, GroupedSums
from lapwing.releases.plan import PlannedSection
from lapwing.releases.tree.axes import leaf_width
from lapwing.releases.tree.variances import TreeLevel, TreeSpreads

SURE = 1.959964
"""Half-widths of 95 % in standard deviations."""
SHARES = (0.01, 0.1, 0.25, 0.5)
"""Lengths of ranges that are shown, of all leaves; and a single leaf."""
PLACES_MAX = 64
"""Places of a range over which its variance is averaged."""


def tree_lines(planned: PlannedSection, *, pure: bool) -> list[str]:
    """The columns, then the errors."""
    leaf, further = planned.axes[-1], [planned.axes[number] for number in planned.tables[0][:-1]]
    leaves = leaf.size - leaf.domain.nullable
    widths = [leaf_width(planned.axes[table[-1]], leaf) for table in planned.tables]
    levels = [TreeLevel(*each) for each in zip(widths, planned.variances, strict=True)]
    beside = "".join(f", for each {axis.column} ({axis.size} bins)" for axis in further)
    null = ", and NULL" if leaf.domain.nullable else ""
    counted = ", ".join(f"{-(-leaves // width):,}" for width in sorted(widths, reverse=True))
    flat = _flat_variance(planned.variances, pure=pure)
    lines = [
        f"column: {leaf.column} ({leaves:,} leaves{null}){beside}",
        f"levels: {counted} nodes",
        "a count of a range will be off by, in 95 of 100 cases, at most (in brackets, if leaves alone were counted for this price):",
    ]
    for length in sorted({1, *(max(1, round(share * leaves)) for share in SHARES)}):
        deviation = math.sqrt(float(range_variances(leaves, levels, length).mean()))
        alone = math.sqrt(length * flat)
        name = "1 leaf" if length == 1 else f"{length:,} leaves"
        lines.append(f"  {name}: {figure(SURE * deviation, digits=3)} ({figure(SURE * alone, digits=3)})")
    return lines


def range_variances(leaves: int, levels: list[TreeLevel], length: int) -> Floats:
    """Of counts of ranges of one length, at places all over the leaves."""
    spreads = TreeSpreads((leaves,), leaves, levels)
    places = np.unique(np.linspace(0, leaves - length, PLACES_MAX).round().astype(np.int64))
    found = []
    for place in places.tolist():
        group = np.full(leaves, -1, dtype=np.int64)
        group[place : place + length] = 0
        found.append(float(spreads.variances_of(GroupedSums((0,), group, 1, np.ones(leaves)))[0][0]))
    return np.array(found)


def _flat_variance(levels: Sequence[float], *, pure: bool) -> float:
    """Of the count of a leaf, if the leaves were the one table: noise of the whole price."""
    variances = [max(each, 1e-12) for each in levels]
    if pure:
        return 1.0 / math.fsum(1.0 / math.sqrt(each) for each in variances) ** 2
    return 1.0 / math.fsum(1.0 / each for each in variances)
