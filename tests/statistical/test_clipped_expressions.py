"""Error bars of expressions over clipped counts and sums hold the truth of all rows: each cell may miss more or less than another.

Before, all cells of a run missed the same share. A difference then missed next to nothing, whatever its two counts did.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lapwing.answers.simulated_intervals import MissingShares, corners_of
from lapwing.answers.simulation import Floats
from lapwing.planning.measures import Recipe
from tests.statistical.test_quantile_bars import asked, held
from tests.support.promises import watched

EXPRESSIONS = (
    "COUNT(*) FILTER (WHERE revenue > 20) - COUNT(*) FILTER (WHERE revenue <= 20)",
    "SUM(revenue) - 2 * COUNT(*)",
    "SUM(revenue) / COUNT(DISTINCT user_id) + 1",
    "100.0 * COUNT(*) FILTER (WHERE revenue > 20) / COUNT(*)",
)
BY_REGION = f"SELECT region, {', '.join(f'{text} AS v{number}' for number, text in enumerate(EXPRESSIONS))} FROM events GROUP BY region"


def test_bars_of_expressions_hold_the_truth_that_bounds_cut(tmp_path: Path) -> None:
    with asked(tmp_path / "one", 11) as one, asked(tmp_path / "other", 12) as other:

        def answered() -> list[bool]:
            pairs = ((tmp_path / "one", one), (tmp_path / "other", other))
            found = [each for where, data in pairs for each in held(where, data, BY_REGION, "4")]
            assert len(found) == 16, "all of them have bars"
            return found

        watched("bars of clipped expressions").require(answered)


class _Part:
    """A part of an answer with these clipped columns."""

    def __init__(self, *columns: str, rows: int) -> None:
        self.table = pa.table({"k": list(range(rows))})
        self.columns = columns
        self.recipes: tuple[Recipe, ...] = ()

    def size(self) -> int:
        return int(self.table.num_rows)

    def clipped(self, place: str) -> set[str]:
        return {f"{place} {name}" for name in self.columns}

    def values(self, place: str, runs: int, missing: MissingShares) -> list[Floats]:
        raise NotImplementedError


@pytest.mark.parametrize("by_group", [False, True])
def test_any_two_cells_miss_both_none_and_one_or_the_other(by_group: bool) -> None:
    parts = [_Part("a", "b", "c", rows=5), _Part("a", rows=3)]
    corners = corners_of(parts, by_group=by_group)
    cells: dict[tuple[str, int], tuple[float, ...]] = {}
    for place, rows in (("0 a", 5), ("0 b", 5), ("0 c", 5), ("1 a", 3)):
        shares = np.array([corner.of(place, 2, rows) for corner in corners])
        assert shares.shape == (len(corners), 2, rows) and np.array_equal(shares[:, 0], shares[:, 1])
        cells |= {(place, group if by_group else 0): tuple(shares[:, 0, group]) for group in range(rows)}
    assert len(cells) == (18 if by_group else 4)
    for one, other in itertools.combinations(cells.values(), 2):
        assert set(zip(one, other, strict=True)) == {(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)}


def test_where_nothing_is_clipped_there_is_one_run_for_all() -> None:
    (only,) = corners_of([_Part(rows=5)], by_group=True)
    assert type(only) is MissingShares
