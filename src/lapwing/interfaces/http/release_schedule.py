"""When answers are sent: at moments that public facts determine, so that the time to read rows reveals nothing.

An answer that read rows is sent a fixed time after the request: the least of base, 2 base, 4 base, ... that its public work fits in. A
run that takes longer waits for the next of these, and is counted: each such miss can reveal something about rows, so an owner who sees many
sets a longer time. What read no row (refusals before the charge, answers from the ledger, explanations) is sent at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lapwing.curator.cost_estimate import CostEstimate

ROWS_PER_SECOND = 4_000_000
"""Rows of one measured value that an engine reads per second, estimated low."""
CELLS_PER_SECOND = 40_000
"""Cells that get noise, error bars and a text per second, estimated low."""
UNIT_BYTES_PER_SECOND = 100_000_000
"""Bytes of one unit's rows that an engine processes per second, grouped by keys and distinct values. Measured on the worst accepted
statements (benchmarks/worst_statement.py): 5 ns each, on one core; twice that is allowed for."""
UNIT_PARTS_PER_SECOND = 250_000_000
"""Parts of expressions that are computed per second for one unit's rows: 1.9 ns each, measured likewise."""
OVERHEAD_SECONDS = 0.1
"""The time for planning, the ledger's two disk syncs and the reply."""


def expected_seconds(work: CostEstimate) -> float:
    """How long this work takes at most on a slow machine that is not overloaded."""
    of_one_unit = work.unit_bytes / UNIT_BYTES_PER_SECOND + work.unit_parts / UNIT_PARTS_PER_SECOND
    return OVERHEAD_SECONDS + work.rows / ROWS_PER_SECOND + work.cells / CELLS_PER_SECOND + of_one_unit


@dataclass(frozen=True, slots=True)
class PublicMoments:
    """The moments of one data set."""

    base_seconds: float
    public: bool = True
    fixed: bool = False
    """Every answer has the base time, whatever its work."""

    def due_after(self, work: CostEstimate) -> float:
        """Seconds from the request to the moment that public facts determine."""
        first = 0 if self.fixed else max(0, math.ceil(math.log2(expected_seconds(work) / self.base_seconds)))
        return self.base_seconds * float(2**first)

    def leaves_after(self, work: CostEstimate, *, took: float) -> float:
        """Seconds from the request to the moment at which an answer that took this long may be sent."""
        if not self.public:
            return took
        due = self.due_after(work)
        while took > due:
            due *= 2
        return due
