"""What few rows add to, asked as a user asks it: bars hold the truth, and answers are not all noise.

Before units that add nothing had a bin of their own, bars of such sums held 8 to 33 % of the truths, and the answers were next to 0; those
of counts of one row in a hundred held 21 to 58 % while the lowest bin was taken for units of one row each.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
from benchmarks.reliability.repeated import make_repeatable
from benchmarks.reliability.sparse import Cell, cells_of, write

from lapwing.curator.curator import Curator
from tests.support.promises import watched
from tests.support.ranking_keys import write_ranking_key
from tests.support.sizes import size

CASES = ("SUM, 90 % NULL", "SUM, 99 % zeros", "SUM, flag of 10 %", "AVG, 90 % NULL")
RARE = "COUNT, 1 % of rows"
Answer = Callable[[str, str], Cell]


@contextmanager
def answering(directory: Path, units: int, seed: int = 0) -> Iterator[Answer]:
    """Asks a case at a price as if for the first time; the truth comes with each answer."""
    directory.mkdir()
    write(directory, units=units, account="approximate", seed=seed)
    write_ranking_key(directory, f"{units} users, {seed}")
    bare = duckdb.connect()
    bare.execute(f"CREATE VIEW events AS SELECT * FROM '{directory}/events.parquet'")
    with Curator(directory, home=directory / "registry") as curator:
        curator.prepare(accept_losses=False)
        make_repeatable(curator)
        yield lambda case, epsilon: Cell("approximate", units, epsilon, case, *next(cells_of(curator, bare, case, epsilon, 1)))


def test_bars_of_what_is_mostly_null_or_0_hold_the_truth(tmp_path: Path) -> None:
    cells: list[Cell] = []

    def answered(*of_data_sets: Answer) -> list[bool]:
        found = [answer(case, "0.5") for answer in of_data_sets for case in CASES]
        cells.extend(found)
        return [cell.lo <= cell.truth <= cell.hi for cell in found]

    with answering(tmp_path / "one", 1_000) as one, answering(tmp_path / "other", 1_000, seed=1) as other:
        watched("bars of sparse sums").require(lambda: answered(one, other), rounds=size("sparse sums, answers"))
    near = [abs(cell.value - cell.truth) < 0.9 * cell.truth for cell in cells if cell.case == "SUM, 90 % NULL"]
    assert statistics.fmean(near) > 0.5, "an answer of about 0 says nothing"


def test_bars_of_counts_of_few_rows_hold_the_truth(tmp_path: Path) -> None:
    """About 20 of 10,000 units have two such rows, and no histogram shows them at the lower price."""
    cells: list[Cell] = []

    def answered(answer: Answer) -> list[bool]:
        found = [answer(RARE, epsilon) for epsilon in ("0.5", "2")]
        cells.extend(found)
        return [cell.lo <= cell.truth <= cell.hi for cell in found]

    with answering(tmp_path / "one", 10_000) as answer:
        watched("bars of rare counts").require(lambda: answered(answer), rounds=size("rare counts, answers"))
    assert statistics.median(abs(cell.value - cell.truth) / cell.truth for cell in cells) < 0.05
