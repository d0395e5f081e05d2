"""What engines refuse before anything is read or charged."""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

from lapwing.audit.plan_shapes import shapes
from lapwing.audit.runs import RANKING_KEY, prepare_in_duckdb
from lapwing.audit.worlds import declare, random_world
from lapwing.catalog import Settings
from lapwing.engines.duckdb import DuckDBSnapshot
from lapwing.engines.duckdb.snapshot import _locked_connection, stored_text
from lapwing.engines.postgres.session import connect
from lapwing.engines.postgres.sources import SourceName, source_name
from lapwing.engines.prepare import SNAPSHOT_FORMAT
from lapwing.engines.reading import sanitised
from lapwing.engines.spark import sessions
from lapwing.errors import PreparationError
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import certify
from lapwing.kernel.domains import RealDomain
from lapwing.kernel.neighbours import Neighbours
from lapwing.render.dialect import SourceKind
from lapwing.render.duckdb import DUCKDB

REAL_SPEC = importlib.util.find_spec


def test_a_source_on_postgresql_is_a_table_with_its_schema() -> None:
    assert source_name('clinic."Visits"') == SourceName("clinic", "Visits")
    for wrong in ("visits", "a.b.c", "clinic.visits; DROP TABLE x", "clinic.", ".visits", "clinic. visits"):
        with pytest.raises(PreparationError) as error:
            source_name(wrong)
        assert error.value.code == "source-name"


def test_an_engine_whose_libraries_are_missing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "psycopg" else REAL_SPEC(name))
    with pytest.raises(PreparationError) as error:
        connect("host=nowhere")
    assert error.value.code == "engine-missing"
    monkeypatch.setattr(sessions, "_given", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(PreparationError) as error:
        sessions.base_session()
    assert error.value.code == "engine-missing"


def test_a_real_column_without_a_grid_is_not_prepared() -> None:
    on_grid = RealDomain(Fraction(0), Fraction(1), steps=10)
    assert "x" in sanitised("x", SourceKind.FRACTIONAL, on_grid, other=None, dialect=DUCKDB)
    with pytest.raises(PreparationError) as error:
        sanitised("x", SourceKind.FRACTIONAL, replace(on_grid, steps=None), other=None, dialect=DUCKDB)
    assert error.value.code == "grid-missing"


@pytest.fixture
def snapshot(tmp_path: Path) -> DuckDBSnapshot:
    made = prepare_in_duckdb(declare(random_world(random.Random(1)), tmp_path / "world", neighbours="unbounded", delta="0"))
    assert isinstance(made, DuckDBSnapshot)
    return made


@pytest.mark.parametrize("changed", [{"version": 2}, {"source_id": "another"}, {"neighbours": Neighbours.BOUNDED}], ids=str)
def test_a_plan_that_was_certified_for_other_facts_is_not_run(snapshot: DuckDBSnapshot, changed: dict[str, Any]) -> None:
    plan = shapes(Account.PURE)["filter"](snapshot.facts)
    snapshot.check(certify(plan, snapshot.facts))
    other = certify(plan, replace(snapshot.facts, **changed))
    for act in (snapshot.check, snapshot.run):
        with pytest.raises(PreparationError) as error:
            act(other)
        assert error.value.code == "version-mismatch"


@pytest.mark.parametrize(
    ("statements", "code"),
    [
        (["CREATE TABLE _lapwing (body VARCHAR)", "INSERT INTO _lapwing VALUES ('{\"format\": 0}')"], "snapshot-format"),
        (["CREATE TABLE _lapwing (body VARCHAR)"], "snapshot-format"),
        (["CREATE TABLE visits (n INTEGER)"], "snapshot-unreadable"),
    ],
    ids=["older", "empty", "something else"],
)
def test_a_file_of_another_format_is_not_opened(tmp_path: Path, statements: list[str], code: str) -> None:
    path = tmp_path / "version.duckdb"
    with duckdb.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    with pytest.raises(PreparationError) as error:
        DuckDBSnapshot(path, ranking_key=RANKING_KEY)
    assert error.value.code == code


def test_a_file_that_was_replaced_while_it_was_open_is_not_read_as_it_was_before(tmp_path: Path) -> None:
    path = tmp_path / "version.duckdb"
    texts = ("the first text", "the second text")
    for text in texts:
        with duckdb.connect(tmp_path / text) as connection:
            connection.execute("CREATE TABLE _lapwing (body VARCHAR)")
            connection.execute("INSERT INTO _lapwing VALUES (?)", [json.dumps({"format": SNAPSHOT_FORMAT, "text": text})])
    (tmp_path / texts[0]).rename(path)
    assert stored_text(path, Settings()) == texts[0]
    held = _locked_connection(path, Settings())
    assert stored_text(path, Settings()) == texts[0]
    path.unlink()
    (tmp_path / texts[1]).rename(path)
    with pytest.raises(PreparationError, match="still holds another file") as error:
        stored_text(path, Settings())
    assert error.value.code == "snapshot-unreadable"
    held.close()
    assert stored_text(path, Settings()) == texts[1]
