"""Norms of large tables come from a sample of units: who decides it, what is said about it, and bars that still reach to the truth."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.contribution import sampling as norm_sample
from lapwing.curator.curator import Curator
from lapwing.data_set import DataSet

SHOPS, USERS_OF_A_SHOP, ROWS_MOST = 16, 2_500, 400
CATALOGUE = """
format = 1
[dataset]
id = "shops"
engine = "duckdb"
unit = "user"
{units}
[budget]
epsilon = 1_000
delta = "2^-30"
statistics_share = 0
[tables.orders]
source = "orders.parquet"
unit = "user_id"
rows_per_unit_max = 400
rows_max = 1_000_000
[tables.orders.columns]
user_id = {{ type = "key", null = false }}
shop = {{ type = "integer", min = 0, max = 15, null = false }}
"""
COUNT = "SELECT COUNT(*) AS n FROM orders WHERE shop = 3"


def _declare(directory: Path, *, units: str) -> DataSet:
    (directory / "lapwing.toml").write_text(CATALOGUE.format(units=units))
    data = DataSet(Curator(directory, home=directory / "registry"))
    data.prepare()
    return data


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sixteen shops with users of their own: few rows each, but for one who has as many as are allowed, and may be outside the sample."""
    drawn, users, shops = random.Random(11), list[int](), list[int]()
    for user in range(SHOPS * USERS_OF_A_SHOP):
        rows = ROWS_MOST if user < SHOPS else min(int(drawn.paretovariate(1.5)), 20)
        users += [user] * rows
        shops += [user % SHOPS] * rows
    pq.write_table(pa.table({"user_id": users, "shop": shops}), tmp_path / "orders.parquet")
    monkeypatch.setattr(norm_sample, "ROWS_TO_SAMPLE", 10_000)
    monkeypatch.setattr(norm_sample, "UNITS_IN_SAMPLE", 100)
    return tmp_path


@pytest.fixture
def shops(directory: Path) -> Iterator[DataSet]:
    with _declare(directory, units="units = 40_000") as data:
        yield data


def test_bars_reach_to_the_truth_also_where_the_largest_unit_is_outside_the_sample(shops: DataSet, directory: Path) -> None:
    counted = duckdb.connect().sql(f"SELECT shop, COUNT(*) FROM '{directory / 'orders.parquet'}' GROUP BY shop").fetchall()
    missed = 0
    for shop, true in counted:
        answer = shops.ask(f"SELECT COUNT(*) AS n FROM orders WHERE shop = {shop}", epsilon=10, confidence="0.99")
        assert any("by a sample of one user in 8" in note and "the error bars reach to it" in note for note in answer.notes)
        (bar,) = answer.intervals["n"]
        assert bar is not None
        missed += not bar.lo <= true <= bar.hi
    # With chance 0.99 each, five of sixteen miss with chance 4e-7.
    assert len(counted) == SHOPS and missed <= 4


def test_the_explanation_says_that_a_sample_is_bought_and_was_used(shops: DataSet) -> None:
    before = shops.explain(COUNT, epsilon=1)
    assert before.to_dict()["norms"]["one_in"] == 8 and "by a sample of one user in 8; bounds will fit" in str(before)
    shops.ask(COUNT, epsilon=1)
    after = shops.explain(COUNT, epsilon="0.9")
    assert after.to_dict()["norms"] == {"bought": True, "loss": 0.0, "one_in": 8}
    assert "are above the bound, by a sample of one user in 8, which cuts off" in str(after)


def test_norms_of_all_units_are_not_taken_for_those_of_a_sample(shops: DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    shops.ask(COUNT, epsilon=1)
    monkeypatch.setattr(norm_sample, "ONE_IN_MOST", 1)
    assert shops.explain(COUNT, epsilon=1).to_dict()["norms"]["bought"] is False
    shops.ask(COUNT, epsilon=1)
    bought = [item.summary for item in shops.curator.ledger.bought(version=1, limit=100) if item.summary.startswith("norms ")]
    assert len(set(bought)) == 2


def test_nothing_public_about_the_size_means_no_sample(directory: Path) -> None:
    """The rows are not looked at for it."""
    with _declare(directory, units="") as data:
        assert data.explain(COUNT, epsilon=1).to_dict()["norms"]["one_in"] == 1
