"""``lapwing check`` and ``lapwing init`` read schemas of tables that Spark knows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.engines.spark import use_session
from tests.support.spark_worlds import spark_session
from tests.unit.cli.support import run

CATALOGUE = """
format = 1
[dataset]
id = "trips"
unit = "rider"
engine = "spark"
[budget]
epsilon = 4
[tables.trips]
source = "{source}"
unit = "rider_id"
[tables.trips.columns]
rider_id = {{ type = "key" }}
minutes = {{ type = "integer", min = 0, max = 60 }}
"""


@pytest.fixture(name="table")
def _table(tmp_path: Path) -> Iterator[str]:
    rows = pa.table({"rider_id": [1, 2], "minutes": [5, 6], "day": pa.array([0, 1], pa.date32()), "parts": [[1], [2]]})
    pq.write_table(rows, tmp_path / "trips.parquet")
    session = spark_session()
    use_session(session)
    session.sql(f"CREATE TABLE schema_trips USING parquet LOCATION '{tmp_path}/trips.parquet'")
    yield "schema_trips"
    session.sql("DROP TABLE schema_trips")
    use_session(None)


def test_check_and_init_of_a_table(table: str, tmp_path: Path) -> None:
    catalogue = tmp_path / "lapwing.toml"
    for source, status, said in ((table, 0, ""), ("trips.parquet", 0, ""), ("no_such_table", 5, "there is no table or Parquet file")):
        catalogue.write_text(CATALOGUE.format(source=source), encoding="utf-8")
        ran = run("-C", tmp_path, "check", home=tmp_path / "home")
        assert ran.status == status and said in ran.err and "names no file" not in ran.err
    ran = run("init", "--engine", "spark", "--output", "-", table, home=tmp_path / "home")
    assert ran.status == 0, ran.err
    for line in (
        'engine = "spark"',
        f'source = "{table}"',
        'rider_id = { type = "key" }',
        'minutes = { type = "integer" }',
        'day = { type = "date" }',
    ):
        assert line in ran.out, line
    assert '# "parts": left out' in ran.out
