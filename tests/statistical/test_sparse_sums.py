"""What few rows add to, asked as a user asks it: bars hold the truth, and answers are not all noise.

False alarms: answers are independent, each covered with a chance of at least ``COVERED`` (95 % is what bars say; measured is more than
this), so by Chernoff's bound the mean is below ``least_mean`` with a chance of at most 1e-6. Before units that add nothing had a bin of
their own, bars of such sums held 8 to 33 % of the truths, and the answers were next to 0; those of counts of one row in a hundred held 21
to 58 % while the lowest bin was taken for units of one row each.
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


def test_bars_of_counts_of_few_rows_hold_the_truth() -> None:
    """About 20 of 10,000 units have two such rows, and no histogram shows them at the lower price."""
    cells = measured(10_000, "approximate", ("COUNT, 1 % of rows",), ("0.5", "2"), size("rare counts, answers"), data_sets=1)
    covered = [cell.lo <= cell.truth <= cell.hi for cell in cells]
    assert statistics.fmean(covered) >= least_mean(len(cells), COVERED)
    assert statistics.median(abs(cell.value - cell.truth) / cell.truth for cell in cells) < 0.05
