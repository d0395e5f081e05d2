"""Identifiers that are texts: joined on, counted and tested for NULL as numbers are, with the bare engine's numbers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from tests.differential.world import EPSILON, silent

World: TypeAlias = tuple[lw.DataSet, duckdb.DuckDBPyConnection]
_CATALOGUE = """
format = 1
[dataset]
id = "texts"
unit = "user"
[budget]
epsilon = 1_000_000_000
delta = 0
ceiling = { epsilon = 1_000_000_000 }
statistics_share = 0
[tables.users]
source = "users.parquet"
unit = "user_id"
one_row_per_unit = true
rows_max = 1000
[tables.users.columns]
user_id = { @ID@, null = false }
plan = { type = "text", values = ["free", "paid"], null = false }
[tables.events]
source = "events.parquet"
unit = "user_id"
rows_per_unit_max = 30
rows_max = 1000
[tables.events.columns]
event_id = { type = "key", of = "text", null = false }
user_id = { @ID@, null = false }
name = { type = "text", values = ["view", "buy"], null = false }
[tables.flags]
source = "flags.parquet"
unit = "user_id"
rows_per_unit_max = 30
rows_max = 1000
[tables.flags.columns]
user_id = { @ID@, null = false }
flag = { type = "text", values = ["a", "b"], null = false }
"""
_BOUGHT = "(SELECT user_id, COUNT(*) AS n FROM events WHERE name = 'buy' GROUP BY user_id) AS b"
STATEMENTS = (
    "SELECT COUNT(*) FROM events e JOIN flags f ON e.user_id = f.user_id",
    "SELECT COUNT(*) FROM events e JOIN flags f USING (user_id)",
    "SELECT COUNT(*) FROM events e, flags f WHERE e.user_id = f.user_id",
    "SELECT plan, COUNT(*) FROM users u LEFT JOIN events e ON e.user_id = u.user_id AND e.name = 'buy' GROUP BY plan",
    "SELECT COUNT(*) FROM users u WHERE EXISTS (SELECT 1 FROM events e WHERE e.user_id = u.user_id AND e.name = 'buy')",
    f"SELECT COUNT(*) FROM flags f JOIN {_BOUGHT} ON b.user_id = f.user_id WHERE n > 1",
    f"SELECT COUNT(*) FROM flags f JOIN {_BOUGHT} USING (user_id) WHERE n > 1",
    f"SELECT COUNT(*) FROM {_BOUGHT} JOIN flags f ON f.user_id = b.user_id WHERE n > 1",
    f"SELECT flag, COUNT(*) FROM flags f LEFT JOIN {_BOUGHT} ON f.user_id = b.user_id WHERE n IS NULL GROUP BY flag",
    "SELECT COUNT(*) FROM users u JOIN (SELECT DISTINCT user_id FROM events WHERE name = 'buy') b ON b.user_id = u.user_id",
    "SELECT COUNT(*) FROM (SELECT user_id FROM events UNION ALL SELECT user_id FROM flags) x JOIN users u ON x.user_id = u.user_id",
    "SELECT COUNT(DISTINCT event_id) FILTER (WHERE name = 'buy') FROM events",
    "SELECT COUNT(DISTINCT CASE WHEN name = 'buy' THEN event_id END) FROM events",
    "SELECT COUNT(DISTINCT CASE WHEN name = 'buy' THEN NULL ELSE event_id END) FROM events",
    "SELECT COUNT(DISTINCT CASE WHEN name = 'buy' THEN CASE WHEN user_id IS NULL THEN NULL ELSE event_id END END) FROM events",
    """SELECT e.event_id IS NOT NULL AS bought, COUNT(*) FROM users u
       LEFT JOIN events e ON u.user_id = e.user_id AND e.name = 'buy' GROUP BY 1""",
)


@pytest.fixture(scope="module", params=['type = "key", of = "text"', 'type = "text"'], ids=["key", "text"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory, choose = tmp_path_factory.mktemp("texts"), random.Random(3)
    users = [f"u-{number}" for number in range(60)]
    _write(directory, "users", ("user_id", "plan"), [(user, choose.choice(["free", "paid"])) for user in users])
    events = [(f"e{number}", choose.choice(users), choose.choice(["view", "view", "buy"])) for number in range(200)]
    _write(directory, "events", ("event_id", "user_id", "name"), [*events, *events[:20]])
    _write(directory, "flags", ("user_id", "flag"), [(choose.choice(users), choose.choice("ab")) for _ in range(80)])
    (directory / "lapwing.toml").write_text(_CATALOGUE.replace("@ID@", request.param), encoding="utf-8")
    bare = duckdb.connect(config={"threads": "1"})
    for table in ("users", "events", "flags"):
        bare.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{directory / table}.parquet')")
    with lw.open(directory, home=directory / "home") as data_set:
        data_set.prepare()
        yield data_set, bare
    bare.close()


def _write(directory: Path, name: str, columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    pq.write_table(pa.table(dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))), directory / f"{name}.parquet")


@pytest.mark.parametrize("sql", STATEMENTS)
def test_texts_as_identifiers(sql: str, world: World) -> None:
    data_set, bare = world
    with silent():
        found = data_set.ask(sql, epsilon=EPSILON).table
    assert sorted(zip(*(column.to_pylist() for column in found.columns), strict=True)) == sorted(bare.execute(sql).fetchall())
