"""The demonstration data: the same every time, inside everything its catalogue declares, and worth asking about."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as parquet
import pytest

from lapwing.catalog import PublicDecl, TableDecl, load
from lapwing.curator.curator import Curator
from lapwing.demo import PATIENTS_MAX, write_demo
from lapwing.demo.rows import FIRST_DAY, all_tables
from lapwing.demo.words import CLINICS, DIAGNOSES, DRUGS, REGIONS
from lapwing.kernel.domains import TextDomain

PATIENTS = 3_000
TABLES = ("patients", "visits", "prescriptions", "clinics", "diagnoses")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("demo") / "clinic"
    write_demo(target, patients=PATIENTS)
    return target


@pytest.fixture(scope="module")
def rows(directory: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The Parquet files as views of their names."""
    with duckdb.connect() as connection:
        for name in TABLES:
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{directory / name}.parquet')")
        yield connection


def _one(rows: duckdb.DuckDBPyConnection, sql: str) -> Any:
    found = rows.execute(sql).fetchone()
    assert found is not None
    return found[0] if len(found) == 1 else found


def test_the_catalogue_is_accepted_without_a_warning(directory: Path) -> None:
    declaration = load(directory / "lapwing.toml")
    assert declaration.warnings == ()
    assert declaration.dataset.units == PATIENTS
    assert (*(table.name for table in declaration.tables), *(table.name for table in declaration.public_tables)) == TABLES
    region = declaration.table("patients").column("region").domain
    assert isinstance(region, TextDomain) and set(region.values or ()) == {name for name, _ in REGIONS}
    assert [len(table.unit.hops) for table in declaration.tables] == [0, 1, 2]


def test_every_declared_column_is_in_the_files_and_no_other(directory: Path) -> None:
    declaration = load(directory / "lapwing.toml")
    tables: list[TableDecl | PublicDecl] = [*declaration.tables, *declaration.public_tables]
    for table in tables:
        assert [column.source_name for column in table.columns] == parquet.read_schema(directory / table.source).names


def test_preparation_changes_no_value_and_drops_no_row(directory: Path, rows: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """So an answer differs from the bare engine's by noise alone."""
    with Curator(directory, home=tmp_path) as curator:
        version = curator.prepare()
        prepared = curator.state.directory / f"v{version:06d}.duckdb"
    rows.execute(f"ATTACH '{prepared}' AS prepared (READ_ONLY)")
    grids = {"income": 1, "cost": 100, "dose_mg": 10}
    try:
        for name in TABLES:
            columns = [column for (column, *_) in rows.execute(f"DESCRIBE {name}").fetchall()]
            on_grid = ", ".join(f"CAST(round({c} * {grids[c]}) AS BIGINT) AS {c}" if c in grids else c for c in columns)
            source, kept = f"SELECT {on_grid} FROM {name}", f"SELECT {', '.join(columns)} FROM prepared.{name}"
            assert _one(rows, f"SELECT COUNT(*) FROM {name}") == _one(rows, f"SELECT COUNT(*) FROM prepared.{name}") > 0
            assert _one(rows, f"SELECT COUNT(*) FROM ({source} EXCEPT ALL {kept})") == 0, name
    finally:
        rows.execute("DETACH prepared")


def test_numbers_lie_on_the_grid_of_the_catalogue(rows: duckdb.DuckDBPyConnection) -> None:
    for table, column, steps in (("patients", "income", 1), ("visits", "cost", 100), ("prescriptions", "dose_mg", 10)):
        assert _one(rows, f"SELECT max(abs({column} * {steps} - round({column} * {steps}))) FROM {table}") < 1e-6


def test_values_are_missing_where_the_catalogue_says_so(rows: duckdb.DuckDBPyConnection) -> None:
    for table, column in (("patients", "smoker"), ("patients", "income"), ("visits", "code"), ("visits", "cost")):
        assert 0.01 < _one(rows, f"SELECT AVG(CASE WHEN {column} IS NULL THEN 1 ELSE 0 END) FROM {table}") < 0.2, column


def test_visits_are_heavy_tailed_and_some_patients_have_none(rows: duckdb.DuckDBPyConnection) -> None:
    per_patient = "(SELECT p.patient_id, COUNT(visit_id) AS n FROM patients p LEFT JOIN visits v USING (patient_id) GROUP BY ALL)"
    median, mean, most, never = _one(rows, f"SELECT median(n), avg(n), max(n), count(*) FILTER (WHERE n = 0) FROM {per_patient}")
    assert 2 <= median <= 4 and mean > 1.5 * median
    assert 100 <= most <= 200
    assert never > PATIENTS / 20


def test_there_is_something_to_find(rows: duckdb.DuckDBPyConnection) -> None:
    assert len(REGIONS) == 20 and len([name for name, _ in REGIONS if name.startswith("north")]) == 4
    assert _one(rows, "SELECT COUNT(DISTINCT region) FROM patients") == 20
    assert {"J10", "J11", "C50"} <= {diagnosis.code for diagnosis in DIAGNOSES}
    assert "hospital" in {clinic.kind for clinic in CLINICS}
    winter, summer = _one(
        rows,
        "SELECT count(*) FILTER (WHERE month(day) IN (12, 1, 2)), count(*) FILTER (WHERE month(day) IN (6, 7, 8))"
        " FROM visits WHERE code IN ('J10', 'J11')",
    )
    assert winter > 3 * summer
    hospital, elsewhere = _one(
        rows,
        "SELECT avg(cost) FILTER (WHERE kind = 'hospital'), avg(cost) FILTER (WHERE kind <> 'hospital')"
        " FROM visits JOIN clinics USING (clinic_id)",
    )
    assert hospital > 1.5 * elsewhere
    assert _one(rows, "SELECT MIN(day) FROM visits") >= FIRST_DAY and _one(rows, "SELECT bool_and(started::DATE = day) FROM visits")
    weekday, weekend = _one(
        rows, "SELECT count(*) FILTER (WHERE isodow(day) <= 5) / 5, count(*) FILTER (WHERE isodow(day) > 5) / 2 FROM visits"
    )
    assert weekday > 2 * weekend


def test_drugs_have_a_long_tail(rows: duckdb.DuckDBPyConnection) -> None:
    assert len(set(DRUGS)) == len(DRUGS) == 1_064
    counts = [n for (n,) in rows.execute("SELECT COUNT(*) AS n FROM prescriptions GROUP BY drug ORDER BY n DESC").fetchall()]
    assert counts[0] > 0.1 * sum(counts)
    assert len([n for n in counts if n <= 3]) > 100


def test_the_same_number_of_patients_gives_the_same_rows() -> None:
    one, again, fewer = all_tables(200), all_tables(200), all_tables(199)
    assert all(one[name].equals(again[name]) for name in TABLES)
    assert not one["visits"].equals(fewer["visits"])


def test_one_patient_is_enough_and_the_limit_is_kept(tmp_path: Path) -> None:
    write_demo(tmp_path / "one", patients=1)
    assert parquet.read_metadata(tmp_path / "one" / "patients.parquet").num_rows == 1
    for wrong in (0, PATIENTS_MAX + 1):
        with pytest.raises(ValueError, match="patients"):
            write_demo(tmp_path / "wrong", patients=wrong)
    assert not (tmp_path / "wrong").exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "visits.parquet").write_text("mine")
    with pytest.raises(FileExistsError, match=r"visits\.parquet"):
        write_demo(tmp_path, patients=5)
    assert [path.name for path in tmp_path.iterdir()] == ["visits.parquet"]
    assert (tmp_path / "visits.parquet").read_text() == "mine"


def test_two_demonstrations_have_two_ids(tmp_path: Path) -> None:
    ids = set()
    for name in ("one", "two"):
        write_demo(tmp_path / name, patients=2)
        ids.add(load(tmp_path / name / "lapwing.toml").dataset.id)
    assert len(ids) == 2
