"""Sums and averages of columns that are mostly NULL or 0, asked as a user asks them: bars hold the truth, and answers are not all noise.

False alarms: answers are independent, each covered with a chance of at least ``COVERED`` (95 % is what bars say; measured is more than
this), so by Chernoff's bound the mean is below ``least_mean`` with a chance of at most 1e-6. Before units that add nothing had a bin of
their own, bars of these statements held 8 to 33 % of the truths, and the answers were next to 0.
"""

from __future__ import annotations

import statistics
from pathlib import Path

from benchmarks.reliability.sparse import measured

from tests.support.raw_truth import least_mean
from tests.support.sizes import size

COVERED = 0.9
CASES = ("SUM, 90 % NULL", "SUM, 99 % zeros", "SUM, flag of 10 %", "AVG, 90 % NULL")


def test_bars_of_what_is_mostly_null_or_0_hold_the_truth(tmp_path: Path) -> None:
    cells = measured(1_000, "approximate", CASES, ("0.5",), size("sparse sums, answers"), data_sets=2)
    covered = [cell.lo <= cell.truth <= cell.hi for cell in cells]
    assert statistics.fmean(covered) >= least_mean(len(cells), COVERED)
    near = [abs(cell.value - cell.truth) < 0.9 * cell.truth for cell in cells if cell.case == "SUM, 90 % NULL"]
    assert statistics.fmean(near) > 0.5, "an answer of about 0 says nothing"
