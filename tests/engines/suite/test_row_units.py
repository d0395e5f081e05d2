"""Rows as units on every engine: units as the reference says, rows and integers as on DuckDB, stored, virtual and appended."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.audit.runs import RANKING_KEY
from lapwing.catalog import Declaration, Preparation, Settings, load
from lapwing.engines.base import Snapshot, silent
from lapwing.engines.duckdb import DuckDBEngine
from lapwing.engines.postgres import PostgresSnapshot
from lapwing.engines.postgres.append import append_version
from lapwing.engines.postgres.session import ask
from lapwing.kernel.certify import certify
from tests.engines.comparison import comparable
from tests.engines.suite.engines import NAMES, OTHERS, OnDuckDB, OnPostgres, SuiteEngine, prepared
from tests.support.postgres_worlds import copy_parquet
from tests.support.row_worlds import SCHEMA, World, declare, expected_units, random_row, random_world
from tests.support.spark_worlds import spark_engine
from tests.support.sql_shapes import sql_shapes

EngineNamed = Callable[[str], SuiteEngine]
STATEMENTS = (
    "SELECT COUNT(*) AS n, SUM(score) AS s FROM answers",
    "SELECT town, COUNT(*) AS n, AVG(age) AS a FROM answers WHERE flag GROUP BY town",
    "SELECT country, COUNT(*) AS n FROM answers JOIN towns USING (town) GROUP BY country",
    "SELECT word, COUNT(*) AS n, SUM(age) AS s FROM answers GROUP BY word",
    "SELECT COUNT(DISTINCT word) AS n FROM answers WHERE note = ''",
)
WIDE = 150
"""Columns of a wide table: more than one chain of texts."""


def hostile_world(seed: int) -> World:
    rng = random.Random(seed)
    return (*random_world(rng, rows=30), *(random_row(rng, rich=False) for _ in range(20)))


def opened_virtually(engine: SuiteEngine, declaration: Declaration) -> Snapshot:
    """The declaration without a copy of its rows, on an engine."""
    if isinstance(engine, OnPostgres):
        return engine.worlds.prepare(declaration, ranking_key=RANKING_KEY, virtual=True)
    assert declaration.directory is not None
    text = (declaration.directory / "lapwing.toml").read_text(encoding="utf-8")
    virtual = replace(declaration, dataset=replace(declaration.dataset, preparation=Preparation.VIRTUAL))
    state = declaration.directory / ".lapwing-virtual"
    state.mkdir()
    made = spark_engine(state) if engine.name == "spark" else DuckDBEngine(state, Settings())
    text = text.replace("[dataset]\n", '[dataset]\npreparation = "virtual"\n', 1)
    made.prepare(virtual, text, version=1, ranking_key=RANKING_KEY, progress=silent)
    return made.open(1, ranking_key=RANKING_KEY)


@pytest.mark.parametrize("name", NAMES)
def test_units_rows_and_integers(tmp_path: Path, engine_named: EngineNamed, name: str) -> None:
    world, engine = hostile_world(1), engine_named(name)
    declaration = declare(world, tmp_path / "world", delta='"2^-30"', single=True)
    reference, snapshot = OnDuckDB().prepare(declaration), engine.prepare(declaration)
    rows = prepared(engine, snapshot, "answers")
    assert Counter(row[0] for row in rows) == expected_units(world, declaration, RANKING_KEY)
    assert {row[1:3] for row in rows} == {(1, 1)} and len(rows) == sum(row["town"] is not None for row in world)
    assert rows == prepared(OnDuckDB(), reference, "answers")
    virtual = opened_virtually(engine, declaration)
    few = name == "spark"  # where a statement takes seconds
    shapes = sql_shapes(reference.facts, {}, count=len(STATEMENTS) + 5, seed=3, first=STATEMENTS)
    for text, shape in list(shapes.items())[2:4] if few else shapes.items():
        certified = certify(shape(reference.facts), reference.facts)
        expected = comparable(reference.run(certified))
        for other in (snapshot, virtual):
            assert comparable(other.run(certify(shape(other.facts), other.facts))) == expected, text
    for one in (reference, snapshot, virtual):
        one.close()
    again = engine.prepare(declaration)
    assert prepared(engine, again, "answers") == rows, "prepared twice, the same units"
    again.close()


@pytest.mark.parametrize("name", OTHERS)
def test_very_wide_rows(tmp_path: Path, engine_named: EngineNamed, name: str) -> None:
    """Rows that differ in the last of many columns are different; equal ones are numbered."""
    names = [f"c{number}" for number in range(WIDE)]
    rows = [dict.fromkeys(names, "é,1:n") for _ in range(4)] + [{**dict.fromkeys(names, "é,1:n"), names[-1]: None}]
    pq.write_table(pa.Table.from_pylist(rows, pa.schema([(column, pa.string()) for column in names])), tmp_path / "wide.parquet")
    columns = "\n".join(f'{column} = {{ type = "text" }}' for column in names)
    catalogue = (
        'format = 1\n[dataset]\nid = "w"\nunit = "row"\n[budget]\nepsilon = 1\n[tables.wide]\nsource = "wide.parquet"\nunit = "row"\n'
    )
    (tmp_path / "lapwing.toml").write_text(f"{catalogue}[tables.wide.columns]\n{columns}\n", encoding="utf-8")
    declaration, engine = load(tmp_path / "lapwing.toml"), engine_named(name)
    first, second = OnDuckDB().prepare(declaration), engine.prepare(declaration)
    found = prepared(engine, second, "wide")
    assert found == prepared(OnDuckDB(), first, "wide")
    digests = Counter(row[0].split(":")[0] for row in found)
    assert sorted(digests.values()) == [1, 4] and len({row[0] for row in found}) == 5
    first.close()
    second.close()


def test_appended_rows_on_postgresql(tmp_path: Path, engine_named: EngineNamed) -> None:
    """Equal rows in every batch: units are numbered on, and the version is the one made from nothing."""
    engine = engine_named("postgres")
    assert isinstance(engine, OnPostgres)
    worlds, rng = engine.worlds, random.Random(5)
    world = tuple(random_row(rng, rich=number % 3 == 0) for number in range(40))
    declaration = declare(world[:15], tmp_path / "world", single=True, appended=True)
    on_server, text = worlds.load(declaration)
    first = worlds.prepare_loaded(on_server, text, ranking_key=RANKING_KEY)
    first.close()
    older = first._schema
    reader = str(ask(worlds.connection, "SELECT current_user")[0][0])
    for version, (start, end) in enumerate([(15, 30), (30, 30), (30, 40)], start=2):
        batch = [{**row, "seq": number} for number, row in enumerate(world[start:end], start=start)]
        pq.write_table(pa.Table.from_pylist(batch, SCHEMA), tmp_path / "batch.parquet")
        source = on_server.table("answers").source
        copy_parquet(worlds.connection, tmp_path / "batch.parquet", f"{source}_{version}")
        ask(worlds.connection, f"INSERT INTO {source} SELECT * FROM {source}_{version}")
        schema = worlds._new_schema()
        appended = append_version(
            worlds.connection,
            on_server,
            text,
            older=older,
            schema=schema,
            version=version,
            ranking_key=RANKING_KEY,
            reader=reader,
            settings=worlds.settings,
        )
        assert appended == ("answers",)
        older = schema
        snapshot = PostgresSnapshot(worlds.conninfo, schema, ranking_key=RANKING_KEY, settings=worlds.settings)
        whole = worlds.prepare_loaded(on_server, text, ranking_key=RANKING_KEY)
        rows = prepared(engine, snapshot, "answers")
        assert rows == prepared(engine, whole, "answers") != []
        assert Counter(row[0] for row in rows) == expected_units(world[:end], on_server, RANKING_KEY)
        assert version < 4 or max(int(row[0].split(":")[1]) for row in rows) > 4
        snapshot.close()
        whole.close()
