"""What the owner is told of losses is exact and the same on every engine, and counting changes no prepared row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.audit.runs import RANKING_KEY
from lapwing.catalog import Declaration, Settings, load
from lapwing.engines.base import Snapshot, silent
from lapwing.engines.duckdb import DuckDBSnapshot, prepare_snapshot
from lapwing.engines.losses import CLAMPED, NULL_IN_SOURCE, OUT_OF_BOUNDS, UNDECLARED, UNREADABLE, TableLosses
from lapwing.engines.postgres import PostgresSnapshot
from lapwing.engines.postgres.prepare import prepare_version
from lapwing.kernel.accounting import Account
from tests.engines.suite import statements
from tests.engines.suite.engines import NAMES, OTHERS, OnDuckDB, OnPostgres, SuiteEngine, prepared
from tests.support.spark_worlds import spark_engine

EngineNamed = Callable[[str], SuiteEngine]
CATALOGUE = """
format = 1
[dataset]
id = "shop"
unit = "customer"
[budget]
epsilon = 1
[tables.orders]
source = "orders.parquet"
unit = "customer_id"
rows_per_unit_max = 2
[tables.orders.columns]
order_id = { type = "key" }
customer_id = { type = "key" }
amount = { type = "integer", min = 0, max = 10 }
paid = { type = "boolean", null = false }
day = { type = "date", min = 2024-01-01, max = 2024-12-31 }
colour = { type = "text", values = ["red", "blue"] }
[tables.items]
source = "items.parquet"
unit = "order_id -> orders.order_id"
[tables.items.columns]
order_id = { type = "key" }
weight = { type = "real", min = 0, max = 5, steps = 10, null = false }
"""
# customer_id, amount, paid, day, colour
ORDERS = [
    (1, 1, "1", 5, "true", "2024-02-01", "red"),
    (2, 1, "99", -3, "false", "2023-02-01", "green"),
    (3, 1, "1", 5, "true", "2024-02-30", "red"),
    (4, 1, "1", 5, "true", None, None),
    (5, 1, "01", 5, "true", "2024-02-01", "red"),
    (6, 1, None, 5, "true", "2024-02-01", "red"),
    (7, 1, "2", 11, "perhaps", "2024-02-01", "red"),
    (8, 1, "2", 5, None, "2025-02-01", "red"),
    (9, 1, "2", None, "true", "2024-02-01", "red"),
]
ITEMS = [(1, 1.0), (2, 9.0), (2, None), (5, 1.0), (77, 1.0), (None, 1.0)]


def _shop(directory: Path) -> Declaration:
    orders = {
        "order_id": [row[0] for row in ORDERS],
        "customer_id": pa.array([row[2] for row in ORDERS], pa.string()),
        "amount": pa.array([row[3] for row in ORDERS], pa.int64()),
        "paid": pa.array([row[4] for row in ORDERS], pa.string()),
        "day": pa.array([row[5] for row in ORDERS], pa.string()),
        "colour": pa.array([row[6] for row in ORDERS], pa.string()),
    }
    pq.write_table(pa.table(orders), directory / "orders.parquet")
    items = {"order_id": pa.array([row[0] for row in ITEMS], pa.int64()), "weight": pa.array([row[1] for row in ITEMS], pa.float64())}
    pq.write_table(pa.table(items), directory / "items.parquet")
    (directory / "lapwing.toml").write_text(CATALOGUE, encoding="utf-8")
    return load(directory / "lapwing.toml")


def _counted(engine: SuiteEngine, declaration: Declaration) -> tuple[Snapshot, list[TableLosses]]:
    """A version that was prepared with a witness, and what the witness heard."""
    heard: list[TableLosses] = []

    def witness(losses: Sequence[TableLosses]) -> None:
        heard.extend(losses)

    assert declaration.directory is not None
    text = (declaration.directory / "lapwing.toml").read_text(encoding="utf-8")
    if isinstance(engine, OnPostgres):
        worlds = engine.worlds
        on_server, text = worlds.load(declaration)
        schema = worlds._new_schema()
        prepare_version(
            worlds.connection,
            on_server,
            text,
            schema=schema,
            version=1,
            ranking_key=RANKING_KEY,
            reader="postgres",
            settings=worlds.settings,
            settled=False,
            witness=witness,
        )
        return PostgresSnapshot(worlds.conninfo, schema, ranking_key=RANKING_KEY, settings=worlds.settings), heard
    if isinstance(engine, OnDuckDB):
        target = declaration.directory / "counted.duckdb"
        prepare_snapshot(declaration, text, target, version=1, ranking_key=RANKING_KEY, settings=Settings(), witness=witness)
        return DuckDBSnapshot(target, ranking_key=RANKING_KEY), heard
    spark = spark_engine(declaration.directory / "counted")
    spark.prepare(declaration, text, version=1, ranking_key=RANKING_KEY, progress=silent, witness=witness)
    return spark.open(1, ranking_key=RANKING_KEY), heard


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_and_column(tmp_path: Path, engine_named: EngineNamed, name: str) -> None:
    engine = engine_named(name)
    snapshot, (orders, items) = _counted(engine, _shop(tmp_path))
    assert (orders.rows, orders.no_unit, orders.no_parent, orders.null_not_allowed, orders.beyond_cap) == (9, 2, 0, 2, 1)
    assert (orders.kept, orders.lost, orders.is_heavy) == (4, 5, True)
    assert orders.null_columns == {"paid": 2}
    changes = {(change.column, change.rule): change.rows for change in orders.changed}
    assert changes == {
        ("customer_id", NULL_IN_SOURCE): 1,
        ("customer_id", UNREADABLE): 1,
        ("amount", NULL_IN_SOURCE): 1,
        ("amount", CLAMPED): 2,
        ("paid", NULL_IN_SOURCE): 1,
        ("paid", UNREADABLE): 1,
        ("day", NULL_IN_SOURCE): 1,
        ("day", UNREADABLE): 1,
        ("day", OUT_OF_BOUNDS): 2,
        ("colour", NULL_IN_SOURCE): 1,
        ("colour", UNDECLARED): 1,
    }
    assert (items.rows, items.no_unit, items.no_parent, items.null_not_allowed, items.beyond_cap) == (6, 1, 2, 1, 0)
    assert items.kept == 2 and items.null_columns == {"weight": 1}
    for losses in (orders, items):
        assert len(prepared(engine, snapshot, losses.table)) == losses.kept
    snapshot.close()


@pytest.mark.parametrize("name", NAMES)
def test_kept_rows_are_those_that_are_written_and_counting_changes_none(tmp_path: Path, engine_named: EngineNamed, name: str) -> None:
    engine = engine_named(name)
    worlds = [
        statements.people(tmp_path / "people", "unbounded", Account.PURE, seed=1),
        statements.clinic(tmp_path / "clinic", "unbounded", Account.PURE, seed=1),
    ]
    for declaration in worlds:
        counted, heard = _counted(engine, declaration)
        plain = engine.prepare(declaration)
        assert [losses.table for losses in heard] == [table.name for table in declaration.tables]
        for losses in heard:
            rows = prepared(engine, counted, losses.table)
            assert len(rows) == losses.kept and prepared(engine, plain, losses.table) == rows
        assert any(losses.lost for losses in heard)
        counted.close()
        plain.close()


@pytest.mark.parametrize("name", OTHERS)
def test_the_same_figures_on_every_engine(tmp_path: Path, engine_named: EngineNamed, name: str) -> None:
    declaration = statements.hostile(tmp_path, seed=1)
    first, figures = _counted(OnDuckDB(), declaration)
    other, theirs = _counted(engine_named(name), declaration)
    assert figures == theirs
    assert any(change.rule == CLAMPED for losses in figures for change in losses.changed)
    first.close()
    other.close()
