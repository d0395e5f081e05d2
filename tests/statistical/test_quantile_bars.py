"""Quantiles over many rows per unit, asked as a user asks them: bars hold the truth of all rows, or the value is withheld.

Users have unlike values, and active ones have smaller ones. Before, such quantiles had no bars, and those near the end were up to hundreds
of times the truth.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.reliability.repeated import make_repeatable

from lapwing.curator.curator import Curator
from lapwing.data_set import DataSet
from tests.support.promises import watched
from tests.support.ranking_keys import write_ranking_key

USERS, ROWS_MOST = 4_000, 300
CATALOGUE = f"""\
format = 1

[dataset]
id = "events"
unit = "user"

[budget]
epsilon = 8
delta = "2^-40"

[tables.events]
source = "events.parquet"
unit = "user_id"
rows_per_unit_max = {ROWS_MOST}
rows_max = 1_000_000

[tables.events.columns]
user_id = {{ type = "key", null = false }}
region = {{ type = "text", values = ["north", "south"], null = false }}
revenue = {{ type = "real", min = 0, max = 10_000, steps = 100, null = false }}
"""
MEDIAN = "SELECT MEDIAN(revenue) AS v FROM events"
HIGH = "SELECT QUANTILE_CONT(revenue, 0.9) AS v FROM events"
BESIDE = "SELECT region, COUNT(*) AS n, SUM(revenue) AS s, AVG(revenue) AS a, MEDIAN(revenue) AS v FROM events GROUP BY region"
BY_REGION = "SELECT region, MEDIAN(revenue) AS v FROM events GROUP BY region"


def write(directory: Path, seed: int) -> None:
    """Few rows of most users, hundreds of some."""
    generator = np.random.default_rng(seed)
    rows = np.minimum((generator.pareto(1.3, USERS) + 1) * 2, ROWS_MOST).astype(int)
    of = np.repeat(np.arange(USERS), rows)
    middle = 3.2 - 0.1 * np.log(rows) + generator.normal(0, 0.4, USERS)
    revenue = np.minimum(generator.lognormal(middle[of], 0.9), 9_999).round(2)
    regions = np.array(["north", "south"])[generator.integers(0, 2, USERS)][of]
    pq.write_table(pa.table({"user_id": of, "region": regions, "revenue": revenue}), directory / "events.parquet")
    (directory / "lapwing.toml").write_text(CATALOGUE, encoding="utf-8")


@contextmanager
def asked(directory: Path, seed: int) -> Iterator[DataSet]:
    directory.mkdir()
    write(directory, seed)
    write_ranking_key(directory, f"quantiles {seed}")
    with Curator(directory, home=directory / "registry") as curator:
        curator.prepare(accept_losses=False)
        make_repeatable(curator)
        yield DataSet(curator)


def held(directory: Path, data: DataSet, text: str, epsilon: str) -> list[bool]:
    """Of each number that is shown: whether its bar holds the truth."""
    bare = duckdb.connect()
    bare.execute(f"CREATE VIEW events AS SELECT * FROM '{directory}/events.parquet'")
    truths = {row.get("region"): row for row in bare.sql(text).to_arrow_table().to_pylist()}
    answer = data.ask(text, epsilon=epsilon)
    found = []
    for place, row in enumerate(answer.table.to_pylist()):
        for name in row.keys() - {"region"}:
            bar = answer.intervals[name][place] if name in answer.intervals else None
            assert (row[name] is None) == (bar is None)
            if bar is not None:
                found.append(bar.lo <= truths[row.get("region")][name] <= bar.hi)
    return found


def test_bars_of_quantiles_of_many_rows_hold_the_truth(tmp_path: Path) -> None:
    with asked(tmp_path / "one", 1) as one, asked(tmp_path / "other", 2) as other:

        def answered() -> list[bool]:
            pairs = ((tmp_path / "one", one), (tmp_path / "other", other))
            found = [each for where, data in pairs for text in (MEDIAN, HIGH, BY_REGION) for each in held(where, data, text, "2")]
            assert len(found) == 8, "at this price all of them are shown"
            return found

        watched("bars of quantiles").require(answered)


def test_bars_of_counts_and_sums_beside_quantiles_hold_the_truth(tmp_path: Path) -> None:
    """When all shared the bound that suits a quantile, counts lacked rows and their bars did not reach to them."""
    with asked(tmp_path / "one", 1) as one, asked(tmp_path / "other", 2) as other:

        def answered() -> list[bool]:
            found = [
                each for where, data in ((tmp_path / "one", one), (tmp_path / "other", other)) for each in held(where, data, BESIDE, "4")
            ]
            assert len(found) == 16, "at this price all of them are shown"
            return found

        watched("bars beside quantiles").require(answered)


def test_what_may_lie_beyond_all_rows_is_withheld_and_foretold(tmp_path: Path) -> None:
    text = "SELECT QUANTILE_CONT(revenue, 0.99) AS v FROM events"
    with asked(tmp_path / "one", 3) as data:
        explained = data.explain(text, epsilon="0.1")
        assert "LIKELY NULL" in str(explained) and explained.to_dict()["withheld"] == ["QUANTILE_CONT(revenue, 0.99)"]
        answer = data.ask(text, epsilon="0.1")
        assert answer.table.column("v").to_pylist() == [None]
        assert any("is withheld (NULL)" in note for note in answer.notes)
        assert "withheld" in str(data.explain(MEDIAN, epsilon="2")) and data.explain(MEDIAN, epsilon="2").to_dict()["withheld"] == []
