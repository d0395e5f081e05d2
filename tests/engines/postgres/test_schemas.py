"""``lapwing check`` and ``lapwing init`` read schemas of the server, and a role that may not prepare is told which one may."""

from __future__ import annotations

from pathlib import Path

import pytest

from lapwing.catalog import Settings
from lapwing.engines.base import silent
from lapwing.engines.postgres import PostgresEngine
from lapwing.engines.postgres.session import ask
from lapwing.errors import PreparationError
from tests.engines.postgres.place import KEY, Place
from tests.unit.cli.support import run


def _catalogue(directory: Path, text: str) -> Path:
    (directory / "lapwing.toml").write_text(text, encoding="utf-8")
    return directory


def test_check_knows_tables_of_the_server(place: Place, tmp_path: Path) -> None:
    ran = run("-C", _catalogue(tmp_path, place.text()), "check", home=tmp_path / "home")
    assert (ran.status, ran.err) == (0, "") and "The catalogue can be prepared." in ran.out


def test_check_names_a_table_and_a_column_that_are_not_there(place: Place, tmp_path: Path) -> None:
    text = place.text().replace("clinic.visits", "clinic.visit")
    ran = run("-C", _catalogue(tmp_path, text), "check", home=tmp_path / "home")
    assert ran.status == 5 and "names no file" not in ran.err
    assert 'visits: there is no table "clinic"."visit"' in ran.err
    text = place.text().replace("ward = { type", 'ward = { from = "wardd", type')
    ran = run("-C", _catalogue(tmp_path, text), "check", home=tmp_path / "home")
    assert ran.status == 5 and "visits.ward: clinic.visits has no column 'wardd'" in ran.err


def test_check_says_once_that_the_server_is_not_there(place: Place, tmp_path: Path) -> None:
    text = place.text().replace("dbname=", "dbname=no_such_")
    assert text != place.text()
    ran = run("-C", _catalogue(tmp_path, text), "check", home=tmp_path / "home")
    assert ran.status == 5 and ran.err.count("cannot be reached") == 1


def test_init_reads_the_schema_of_the_server(place: Place, tmp_path: Path) -> None:
    connection = place.cluster.dsn(place.database, role=place.reader)
    options = ("--engine", "postgres", "--connection", connection, "--output", "-")
    ran = run("init", *options, "clinic.visits", home=tmp_path / "home")
    assert ran.status == 0, ran.err
    for line in (
        'engine = "postgres"',
        'source = "clinic.visits"',
        'person_id = { type = "key" }',
        'ward = { type = "integer" }',
        'day = { type = "date" }',
        'cost = { type = "real" }',
        'note = { type = "text" }',
    ):
        assert line in ran.out, line
    assert "note 1" not in ran.out
    with place.as_owner() as owner:
        ask(owner, 'CREATE TABLE clinic.wards (ward int PRIMARY KEY, name text NOT NULL, area float8 NOT NULL, "Open" boolean)')
    ran = run("init", *options, "clinic.wards", home=tmp_path / "home")
    for line in ('ward = { type = "integer", null = false }', 'name = { type = "text", null = false }', 'area = { type = "real" }'):
        assert line in ran.out, line
    assert 'open = { type = "boolean", from = "Open" }  # null = false if never missing' in ran.out
    ran = run("init", *options, "clinic.nothing", home=tmp_path / "home")
    assert ran.status == 5 and "there is no table" in ran.err
    ran = run("init", "--engine", "postgres", "clinic.visits", home=tmp_path / "home")
    assert ran.status == 2 and "--connection" in ran.err


def test_a_role_that_may_not_prepare_is_told_which_may(place: Place) -> None:
    declaration = place.declaration()
    engine = PostgresEngine(declaration, Settings(), owner="")
    place.engines.append(engine)
    with pytest.raises(PreparationError) as caught:
        engine.prepare(declaration, place.text(), version=1, ranking_key=KEY, progress=silent)
    assert caught.value.code == "preparation-failed" and "LAPWING_POSTGRES_OWNER" in caught.value.hint
