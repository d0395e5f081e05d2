"""Upper ends of the units and the rows of a table, from the histogram of rows per unit that preparation bought of this version.

They narrow what is displayed, and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lapwing.answers.noise_sums import laplace_chernoff_width
from lapwing.kernel.facts import Facts

BEYOND = Fraction(1, 100_000)
"""The chance that any upper end of a data set is too low. Bars of 95 % get longer by 0.004 % when their own chance makes room for it."""
RULES = 2
"""The first planning rules under which versions show what statistics allow."""


@dataclass(frozen=True, slots=True)
class TableTotals:
    """Upper ends for one table."""

    units: int
    rows: int


def totals_of(statistics: Mapping[str, Mapping[str, Any]], facts: Facts) -> dict[str, TableTotals]:
    """Upper ends by table, all valid together except with chance ``BEYOND``; only for tables that were measured in this very version."""
    if facts.planning_rules < RULES:
        return {}
    measured = {table: kept for table, kept in statistics.items() if kept.get("version") == facts.version}
    return {table: _totals(kept, float(BEYOND) / (2 * len(measured))) for table, kept in measured.items()}


def bar_confidence(confidence: Fraction) -> Fraction | None:
    """The confidence at which bars are computed that are cut at these ends; None if it leaves no room for their chance."""
    return confidence + BEYOND if 1 - confidence > 2 * BEYOND else None


def _totals(kept: Mapping[str, Any], beyond: float) -> TableTotals:
    noisy, edges, deviation = kept["noisy"], kept["edges"], float(kept["deviation"])
    is_laplace = any(profile["laplace"] for profile in kept["profiles"].values())

    def upper(weights: Sequence[int]) -> int:
        width = _upper_width(weights, deviation, beyond, is_laplace=is_laplace)
        measured = float(sum(weight * units for weight, units in zip(weights, noisy, strict=True)))
        return max(math.ceil(measured + width), 0)

    return TableTotals(upper([1] * len(edges)), upper(edges))


def _upper_width(weights: Sequence[int], deviation: float, beyond: float, *, is_laplace: bool) -> float:
    """A sum of independent noises with these weights is larger with chance ``beyond`` at most, by Chernoff's bound."""
    if deviation == 0.0:
        return 0.0
    if is_laplace:
        scale = 0.5 / math.asinh(math.sqrt(0.5) / deviation)
        return laplace_chernoff_width(tuple(weight * scale for weight in weights), terms=1, beyond=2 * beyond)
    # A discrete Gaussian is sub-Gaussian with its scale, which is its deviation or less than 1.
    return max(deviation, 1.0) * math.sqrt(-2.0 * math.log(beyond) * sum(weight**2 for weight in weights)) * (1 + 1e-9)
