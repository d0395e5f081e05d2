"""A key on the way to a unit leads to one owner, or nothing is prepared: on every engine, at every hop, with and without a copy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.audit.runs import RANKING_KEY
from lapwing.catalog import Declaration, Preparation, load, parse
from lapwing.engines.links import LinkKey, link_keys
from lapwing.engines.postgres.append import append_version
from lapwing.engines.postgres.session import ask
from lapwing.errors import Incident, PreparationError
from lapwing.kernel.certify import Certified, certify
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import KnownGroups, Plan, Query, Ranked, RowCount, Scan, Vector
from lapwing.kernel.laws import DiscreteGaussian
from tests.engines.suite.engines import NAMES, SuiteEngine, prepared
from tests.engines.suite.test_virtual import opened
from tests.support.postgres_worlds import PostgresWorlds
from tests.support.spark_worlds import prepare_in_spark

EngineNamed = Callable[[str], SuiteEngine]
CATALOGUE = """
format = 1
[dataset]
id = "links"
unit = "patient"
[budget]
epsilon = 1
[tables.patients]
source = "patients.parquet"
unit = "patient_id"
one_row_per_unit = true
rows_max = 10_000
[tables.patients.columns]
patient_id = { type = "key" }
[tables.visits]
source = "visits.parquet"
unit = "patient_id -> patients.patient_id"
rows_per_unit_max = 10
rows_max = 10_000
[tables.visits.columns]
visit_id = { type = "key" }
patient_id = { type = "key" }
[tables.prescriptions]
source = "prescriptions.parquet"
unit = "visit_id -> visits.visit_id"
rows_per_unit_max = 10
rows_max = 10_000
[tables.prescriptions.columns]
visit_id = { type = "key" }
code = { type = "key", of = "text" }
[tables.packets]
source = "packets.parquet"
unit = "code -> prescriptions.code"
rows_per_unit_max = 10
rows_max = 10_000
[tables.packets.columns]
code = { type = "key", of = "text" }
size = { type = "integer", min = 0, max = 9 }
"""
Pairs = list[tuple[object, object]]
VISITS: Pairs = [(visit, visit % 20) for visit in range(40)]
PRESCRIPTIONS: Pairs = [(visit, f"secret-{visit}") for visit in range(40)]


def write(directory: Path, *, visits: Pairs = VISITS, prescriptions: Pairs = PRESCRIPTIONS) -> Declaration:
    """Forty visits of twenty patients, with a prescription each; every patient is listed twice, which does no harm."""
    tables = {
        "patients": {"patient_id": pa.array([*range(20), *range(20)], pa.int64())},
        "visits": {"visit_id": pa.array([row[0] for row in visits]), "patient_id": pa.array([row[1] for row in visits])},
        "prescriptions": {"visit_id": pa.array([row[0] for row in prescriptions]), "code": pa.array([row[1] for row in prescriptions])},
        "packets": {"code": pa.array([f"secret-{visit}" for visit in range(40)]), "size": pa.array(range(40))},
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), directory / f"{name}.parquet")
    (directory / "lapwing.toml").write_text(CATALOGUE, encoding="utf-8")
    return load(directory / "lapwing.toml")


def claimed(number: int, patient: int | None = 1) -> Pairs:
    """The honest visits, and so many more that name the visit of patient 7."""
    return [*VISITS, *((7, patient if patient is None else patient + i) for i in range(number))]


def counted(facts: Facts) -> Certified:
    """How many packets there are."""
    vector = Vector("n", RowCount(), DiscreteGaussian(Fraction(4)))
    return certify(Plan((Query(Scan("packets", 10), (), KnownGroups(((),)), Ranked(), (vector,)),)), facts)


def test_the_keys_of_a_path() -> None:
    assert set(link_keys(parse(CATALOGUE))) == {
        LinkKey("visits", "visit_id", "patient_id"),
        LinkKey("prescriptions", "code", "visit_id"),
    }, "the key of patients is their unit: it needs no check"


@pytest.mark.parametrize("name", NAMES)
def test_a_key_that_several_owners_name_stops_preparation(tmp_path: Path, engine_named: EngineNamed, name: str) -> None:
    """Five made-up patients name the visit of patient 7; before, patient 7's prescription counted six times."""
    with pytest.raises(PreparationError) as caught:
        engine_named(name).prepare(write(tmp_path, visits=claimed(5)))
    assert caught.value.code == "link-key-shared"
    assert caught.value.message == "1 value of `visits.visit_id` (6 rows) leads to more than one owner", "and no value of the key"


@pytest.mark.parametrize("name", NAMES)
def test_the_second_hop_is_checked_too(tmp_path: Path, engine_named: EngineNamed, name: str) -> None:
    shared: Pairs = [*PRESCRIPTIONS, (8, "secret-7"), (9, "secret-7"), (9, "secret-3")]
    with pytest.raises(PreparationError) as caught:
        engine_named(name).prepare(write(tmp_path, prescriptions=shared))
    assert caught.value.code == "link-key-shared"
    assert "2 values of `prescriptions.code` (5 rows)" in caught.value.message
    assert "secret" not in str(caught.value) + caught.value.hint


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_owner_is_an_owner(tmp_path: Path, engine_named: EngineNamed, name: str) -> None:
    with pytest.raises(PreparationError) as caught:
        engine_named(name).prepare(write(tmp_path, visits=claimed(1, patient=None)))
    assert caught.value.code == "link-key-shared"


@pytest.mark.parametrize("name", NAMES)
def test_what_one_owner_repeats_and_what_links_nothing_is_prepared(tmp_path: Path, engine_named: EngineNamed, name: str) -> None:
    """The same pair twice; NULL keys of many owners; and, as text, spellings that are no whole number, which link nothing."""
    engine = engine_named(name)
    harmless: Pairs = [*((str(visit), patient) for visit, patient in VISITS), ("7", 7), ("07", 3), ("07", 4), (None, 5), (None, 6)]
    snapshot = engine.prepare(write(tmp_path, visits=harmless))
    rows = prepared(engine, snapshot, "packets")
    assert [row[0] for row in rows if row[3] == "secret-7"] == [7], "one owner, one copy"
    assert len(rows) == 40
    snapshot.close()


def test_virtual_versions_on_duckdb_are_checked_in_the_files_they_read(tmp_path: Path) -> None:
    with pytest.raises(PreparationError) as caught:
        opened(write(tmp_path, visits=claimed(5)))
    assert caught.value.code == "link-key-shared"
    snapshot = opened(write(tmp_path), version=2)
    certified = counted(snapshot.facts)
    snapshot.check(certified)
    write(tmp_path, visits=claimed(5))
    with pytest.raises(PreparationError):
        snapshot.check(certified)
    with pytest.raises(Incident):
        snapshot.run(certified)


def virtual_in(directory: Path) -> Declaration:
    path = directory / "lapwing.toml"
    path.write_text(CATALOGUE.replace("[dataset]\n", '[dataset]\npreparation = "virtual"\n', 1), encoding="utf-8")
    return load(path)


def test_virtual_versions_on_spark_are_checked_in_the_files_they_read(tmp_path: Path) -> None:
    write(tmp_path, visits=claimed(5))
    with pytest.raises(PreparationError) as caught:
        prepare_in_spark(virtual_in(tmp_path))
    assert caught.value.code == "link-key-shared"
    write(tmp_path)
    snapshot = prepare_in_spark(virtual_in(tmp_path))
    certified = counted(snapshot.facts)
    snapshot.check(certified)
    (table,) = snapshot.run(certified)._tables
    assert table._vectors == [[40]]
    write(tmp_path, visits=claimed(5))
    with pytest.raises(PreparationError) as caught:
        snapshot.check(certified)
    assert caught.value.code == "snapshot-outdated"
    with pytest.raises(Incident):
        snapshot.run(certified)


def test_appending_on_postgresql_counts_the_older_rows(tmp_path: Path, postgres_worlds: PostgresWorlds) -> None:
    growing = CATALOGUE.replace('unit = "patient_id -> patients.patient_id"', 'unit = "patient_id"\nappended_by = "visit_id"')
    write(tmp_path)
    (tmp_path / "lapwing.toml").write_text(growing, encoding="utf-8")
    declaration, text = postgres_worlds.load(load(tmp_path / "lapwing.toml"))
    older = postgres_worlds.prepare_loaded(declaration, text, ranking_key=RANKING_KEY)
    prescriptions = declaration.table("prescriptions").source

    def append() -> tuple[str, ...]:
        return append_version(
            postgres_worlds.connection,
            declaration,
            text,
            older=older.dialect.table("visits").split(".")[0].strip('"'),
            schema="links_appended",
            version=2,
            ranking_key=RANKING_KEY,
            reader="postgres",
            settings=postgres_worlds.settings,
        )

    ask(postgres_worlds.connection, f"INSERT INTO {declaration.table('visits').source} VALUES (40, 3), (41, 4)")
    ask(postgres_worlds.connection, f"INSERT INTO {prescriptions} VALUES (40, 'secret-7')")
    with pytest.raises(PreparationError) as caught:
        append()
    assert caught.value.code == "link-key-shared"
    ask(postgres_worlds.connection, f"DELETE FROM {prescriptions} WHERE visit_id = 40")
    assert append() == ("visits",)
    older.close()
    ask(postgres_worlds.connection, "DROP SCHEMA links_appended CASCADE")
    postgres_worlds.clear()


NO_CERTAINTY = {
    "nothing": "",
    "an index that is not unique": "CREATE INDEX ON {visits} (visit_id)",
    "two columns together": "ALTER TABLE {visits} ADD UNIQUE (visit_id, patient_id)",
    "another column": "ALTER TABLE {visits} ADD COLUMN extra bigint UNIQUE",
    "some of the rows": "CREATE UNIQUE INDEX ON {visits} (visit_id) WHERE patient_id > 3",
    "an expression": "CREATE UNIQUE INDEX ON {visits} ((visit_id + 0))",
    "at the end of a transaction": "ALTER TABLE {visits} ADD UNIQUE (visit_id) DEFERRABLE INITIALLY DEFERRED",
    "tables that inherit": "ALTER TABLE {visits} ADD UNIQUE (visit_id); CREATE TABLE {schema}.more () INHERITS ({visits})",
    "a type without exact values": "ALTER TABLE {visits} ALTER visit_id TYPE double precision; ALTER TABLE {visits} ADD UNIQUE (visit_id)",
}


@pytest.mark.parametrize("constraint", NO_CERTAINTY)
def test_virtual_versions_on_postgresql_need_a_constraint_that_always_holds(
    tmp_path: Path, postgres_worlds: PostgresWorlds, constraint: str
) -> None:
    declaration, schema = _on_server(postgres_worlds, write(tmp_path))
    for statement in NO_CERTAINTY[constraint].format(visits=f"{schema}.visits", schema=schema).split(";"):
        if statement:
            ask(postgres_worlds.connection, statement)
    ask(postgres_worlds.connection, f"ALTER TABLE {schema}.prescriptions ADD UNIQUE (code)")
    with pytest.raises(PreparationError) as caught:
        postgres_worlds.prepare_loaded(*declaration, ranking_key=RANKING_KEY)
    assert caught.value.code == "link-key-constraint"
    assert "`visits.visit_id`" in caught.value.message
    postgres_worlds.clear()


@pytest.mark.parametrize(
    "constraint",
    ["ALTER TABLE {visits} ADD PRIMARY KEY (visit_id)", "CREATE UNIQUE INDEX ON {visits} (visit_id) INCLUDE (patient_id)"],
)
def test_a_constraint_of_postgresql_must_still_be_there(tmp_path: Path, postgres_worlds: PostgresWorlds, constraint: str) -> None:
    declaration, schema = _on_server(postgres_worlds, write(tmp_path))
    ask(postgres_worlds.connection, constraint.format(visits=f"{schema}.visits"))
    ask(postgres_worlds.connection, f"ALTER TABLE {schema}.prescriptions ADD UNIQUE (code)")
    snapshot = postgres_worlds.prepare_loaded(*declaration, ranking_key=RANKING_KEY)
    certified = counted(snapshot.facts)
    snapshot.check(certified)
    (table,) = snapshot.run(certified)._tables
    assert table._vectors == [[40]]
    ask(postgres_worlds.connection, f"ALTER TABLE {schema}.prescriptions DROP CONSTRAINT prescriptions_code_key")
    with pytest.raises(PreparationError) as caught:
        snapshot.check(certified)
    assert caught.value.code == "link-key-constraint"
    with pytest.raises(Incident):
        snapshot.run(certified)
    snapshot.close()
    postgres_worlds.clear()


def _on_server(worlds: PostgresWorlds, declaration: Declaration) -> tuple[tuple[Declaration, str], str]:
    loaded, text = worlds.load(declaration)
    text = text.replace('engine = "postgres"', 'engine = "postgres"\npreparation = "virtual"', 1)
    virtual = replace(loaded, dataset=replace(loaded.dataset, preparation=Preparation.VIRTUAL))
    return (virtual, text), virtual.table("visits").source.partition(".")[0]
