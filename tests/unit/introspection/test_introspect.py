"""What a data set says about itself: free, from public facts only, and nothing that is not on the list."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lapwing
from lapwing.answers import post_processing
from lapwing.demo import write_demo
from lapwing.errors import Refused


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lapwing.DataSet]:
    base: Path = tmp_path_factory.mktemp("introspection")
    write_demo(base / "clinic", patients=50)
    with lapwing.open(base / "clinic", home=base / "home", analyst="ana") as data_set:
        data_set.prepare()
        yield data_set


@pytest.fixture
def free(clinic: lapwing.DataSet, monkeypatch: pytest.MonkeyPatch) -> Iterator[lapwing.DataSet]:
    """The data set, where nothing may be charged, written down or run on its engine."""

    def never(*_: object, **__: object) -> None:
        raise AssertionError("the engine was asked")

    before = clinic.history()
    monkeypatch.setattr(type(clinic.curator.snapshot), "run", never)
    yield clinic
    assert clinic.history() == before


ONE_VALUE = {
    "SELECT 1": 1,
    "SELECT current_schema()": "public",
    "SELECT current_user": "ana",
    "show standard_conforming_strings": "on",
    "SHOW TRANSACTION ISOLATION LEVEL;": "read committed",
    "SHOW server_version": "15.0",
    'SELECT "COL" FROM (SELECT 1 AS "COL") AS "SUBQUERY"': 1,
    "SELECT COUNT(*) FROM pg_catalog.pg_class WHERE relkind = 'r'": 5,
    "SELECT COUNT(*) FROM information_schema.views": 0,
    "WITH t AS (SELECT table_name FROM information_schema.tables) SELECT MAX(table_name) FROM t": "visits",
    "SELECT t.oid FROM pg_type t JOIN pg_namespace n ON t.typnamespace = n.oid WHERE typname = 'int8'": 20,
    "SELECT setting FROM pg_settings WHERE name = 'server_encoding'": "UTF8",
}


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize("sql", ONE_VALUE)
def test_one_value(free: lapwing.DataSet, sql: str, dialect: str) -> None:
    answer = free.ask(sql, dialect=dialect)
    assert [list(row.values()) for row in answer.table.to_pylist()] == [[ONE_VALUE[sql]]] and answer.cost.free
    assert "price  " in str(free.explain(sql, dialect=dialect)) and "free" in str(free.explain(sql, dialect=dialect))


@pytest.mark.parametrize("sql", ["SELECT version()", "select pg_catalog.version()"])
def test_the_version_is_one_that_clients_can_read(free: lapwing.DataSet, sql: str) -> None:
    (row,) = free.ask(sql).table.to_pylist()
    assert row["version"].startswith("PostgreSQL 15.0 (") and "Lapwing" in row["version"]


def test_moments_and_names(free: lapwing.DataSet) -> None:
    row = free.ask("SELECT CURRENT_TIMESTAMP, current_database() AS d").table.to_pylist()[0]
    assert row["d"] == free.curator.declaration.dataset.id and row["current_timestamp"].year >= 2024


@pytest.mark.parametrize("sql", ["SET extra_float_digits = 3", "BEGIN", "COMMIT;", "rollback", "DISCARD ALL", "SET x TO 'a;b' -- c"])
def test_what_would_change_a_session_changes_nothing(free: lapwing.DataSet, sql: str) -> None:
    answer = free.ask(sql)
    assert answer.table.num_columns == answer.table.num_rows == 0
    assert "changes nothing" in str(answer) and answer._repr_html_()


def test_tables_and_columns_as_clients_list_them(free: lapwing.DataSet) -> None:
    tables = free.ask("SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public'").table
    assert sorted(tables.column(0).to_pylist()) == sorted(free.tables) == ["clinics", "diagnoses", "patients", "prescriptions", "visits"]
    columns = free.ask(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema='public' AND table_name='visits' "
        "ORDER BY ordinal_position"
    ).table.to_pylist()
    assert [row["column_name"] for row in columns] == list(free.curator.facts.table("visits").columns)
    assert {row["data_type"] for row in columns} == {"bigint", "text", "date", "timestamp without time zone", "double precision"}


@pytest.mark.parametrize("sql", ["* FROM public.visits LIMIT 0", "* FROM visits WHERE 1 = 0", "v.* FROM visits v WHERE FALSE"])
def test_no_row_is_the_columns(free: lapwing.DataSet, sql: str) -> None:
    table = free.ask(f"SELECT {sql}").table
    assert table.num_rows == 0 and table.schema.names == list(free.curator.facts.table("visits").columns)
    assert table.schema.field("day").type == pa.date32() and table.schema.field("cost").type == pa.float64()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT region, COUNT(*) AS n FROM patients GROUP BY region LIMIT 0",
        "SELECT * FROM (SELECT region, COUNT(*) AS n FROM patients GROUP BY region) AS t WHERE 1 = 0",
        "SELECT * FROM (SELECT region, COUNT(*) AS n FROM patients GROUP BY region) AS t WHERE n > 0 AND FALSE",
    ],
)
def test_no_row_of_an_answer_is_free(free: lapwing.DataSet, sql: str) -> None:
    table = free.ask(sql).table
    assert table.num_rows == 0 and table.schema.names == ["region", "n"] and table.schema.field("n").type == pa.int64()


def test_a_condition_that_is_not_false_for_all_is_not_of_no_row(clinic: lapwing.DataSet) -> None:
    for condition in ("1 = 1", "cost = 0 OR 1 = 0", "NOT (1 = 0)", "1 <> 2"):
        with pytest.raises(Refused) as caught:
            clinic.ask(f"SELECT * FROM visits WHERE {condition}")
        assert caught.value.code == "rows-not-aggregates"


def test_explain_is_our_explanation(free: lapwing.DataSet) -> None:
    plain, ours = (free.ask(f"EXPLAIN {words}SELECT COUNT(*) FROM visits").table for words in ("", "PRIVACY "))
    assert plain == ours and plain.num_rows > 3


HOSTILE = {
    "SELECT * FROM read_csv('/etc/passwd')": "table-unsupported",
    "SELECT * FROM '/etc/passwd'": "sql-syntax",
    "SELECT * FROM duckdb_settings()": "table-unsupported",
    "SELECT current_setting('memory_limit')": "function-unsupported",
    "SELECT getenv('HOME')": "function-unsupported",
    "SELECT relname, current_setting('memory_limit') FROM pg_class": "sql-unsupported",
    "SELECT relname FROM pg_class, range(1000000000)": "unknown-table",
    "WITH RECURSIVE t AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM t) SELECT relname FROM pg_class, t": "sql-unsupported",
    "SELECT c.relname, v.cost FROM pg_class c, visits v": "unknown-table",
    "SELECT * FROM duckdb_tables": "unknown-table",
    "SELECT nothing FROM pg_class": "post-processing",
    "BEGIN; SELECT COUNT(*) FROM visits": "statement-several",
    "SHOW memory_limit": "statement-unsupported",
    "DESCRIBE SELECT 1": "statement-unsupported",
    "DESCRIBE nope": "unknown-table",
    "SELECT 1 INTO x": "sql-unsupported",
    "SELECT COUNT(*)": "from-missing",
}


@pytest.mark.parametrize("sql", HOSTILE)
def test_what_is_not_on_the_list_is_refused(free: lapwing.DataSet, sql: str) -> None:
    with pytest.raises(Refused) as caught:
        free.ask(sql)
    assert caught.value.code == HOSTILE[sql]


def test_own_tables_come_before_those_that_describe(free: lapwing.DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    from lapwing.sql.introspection import public_statement

    settings = free.curator.settings
    for own, is_public in (((), True), (("pg_class",), False)):
        read = public_statement("SELECT * FROM pg_class", {"pg_catalog.pg_class"}, own, settings=settings, dialect="duckdb", constants={})
        assert (read is not None) is is_public


def test_a_statement_that_takes_too_long_is_stopped(free: lapwing.DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(post_processing, "PUBLIC_SECONDS_MAX", 0.05)
    many = ", ".join(f"information_schema.columns c{i}" for i in range(9))
    with pytest.raises(Refused) as caught:
        free.ask(f"SELECT SUM(c0.ordinal_position) FROM {many}")
    assert caught.value.code == "post-processing"
    assert free.ask("SELECT 1").table.num_rows == 1


def test_show_tables(free: lapwing.DataSet) -> None:
    rows = free.ask("show tables").table.to_pylist()
    assert rows == free.describe().table.to_pylist()
    assert rows[1] == {"table": "visits", "kind": "protected", "rows per patient": "at most 200", "columns": 8}
    assert tuple(row["table"] for row in rows) == free.tables


@pytest.mark.parametrize("sql", ["DESCRIBE visits", "DESC public.Visits;", 'SHOW COLUMNS FROM "visits"', "describe /* all */ table visits"])
def test_describe(free: lapwing.DataSet, sql: str) -> None:
    answer = free.ask(sql)
    assert answer.table == free.describe("visits").table
    said = {row["column"]: row for row in answer.table.to_pylist()}
    assert said["patient_id"]["values"] == "the patient: patients.patient_id"
    assert said["day"]["values"] == "2024-01-01 to 2025-12-31" and said["day"]["NULL"] == "no"
    assert said["cost"]["values"] == "0 to 5000, in steps of 0.01" and said["cost"]["description"] == "NULL when not yet billed"
    assert said["code"]["values"].startswith("40 values: A09, B34, ") and said["code"]["values"].endswith(", from diagnoses.code")
    assert "at most 200 rows" in answer.notes[0]


def test_describe_other_tables(free: lapwing.DataSet) -> None:
    assert "f, m, x" in str(free.describe("patients")) and "the patient" in str(free.describe("patients"))
    assert "any text" in str(free.describe("prescriptions")) and "refers to visits.visit_id" in str(free.describe("prescriptions"))
    assert "free to join on clinic_id" in str(free.describe("clinics"))
    with pytest.raises(Refused, match="did you mean 'visits'"):
        free.describe("visit")
