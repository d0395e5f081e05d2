"""SQL that tools write is answered as written, and means what the bare engine makes of it."""

from __future__ import annotations

import duckdb
import pytest

from lapwing.errors import Refused
from lapwing.sql import bind
from lapwing.statements import Statement
from tests.unit.sql.clinic import FACTS, MOMENT, REFERENCES, SETTINGS, UNIT_COLUMNS
from tests.unit.sql.from_tools import TOOLS
from tests.unit.sql.meaning import answer, engine, rows, same, stored

ROWS = rows()
STORED = stored(ROWS)


@pytest.fixture(scope="module")
def bare() -> duckdb.DuckDBPyConnection:
    return engine(ROWS)


def in_postgres(text: str) -> Statement:
    return bind(text, FACTS, settings=SETTINGS, unit_columns=UNIT_COLUMNS, references=REFERENCES, dialect="postgres", moment=MOMENT)


@pytest.mark.parametrize("name", TOOLS)
def test_a_statement_of_a_tool_gives_what_the_bare_engine_gives(name: str, bare: duckdb.DuckDBPyConnection) -> None:
    written = TOOLS[name]
    text, in_duckdb = written if isinstance(written, tuple) else (written, written)
    expected = bare.execute(in_duckdb).fetchall()
    found = answer(in_postgres(text), STORED)
    assert same(found, expected, ordered=False), (found, expected)
    assert any(value is not None for row in expected for value in row), "nothing was compared"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("rows-not-aggregates", "SELECT v.* FROM visits v"),
        ("rows-not-aggregates", "SELECT (cost) FROM visits"),
        ("groups-by-unit", "SELECT patient_id, code, COUNT(*) FROM visits GROUP BY ALL"),
        ("sql-unsupported", "SELECT sex, COUNT(*) FROM patients GROUP BY ALL sex"),
        ("unknown-table", "SELECT SUM(cost) FROM (SELECT x.* FROM visits AS v) AS t"),
        ("unknown-table", "SELECT x.* FROM (SELECT COUNT(*) AS n FROM visits) AS t"),
        ("ambiguous-column", "SELECT SUM(cost) FROM (SELECT v.*, p.* FROM visits v JOIN patients p ON v.patient_id = p.patient_id) AS t"),
        ("type-mismatch", "SELECT COUNT(*) FROM visits WHERE (minutes)"),
        ("table-public", "SELECT COUNT(*) FROM clinics c LEFT JOIN visits v ON c.clinic_id = v.clinic_id"),
        ("table-public", "SELECT COUNT(*) FROM clinics c JOIN diagnoses d ON c.city = d.code JOIN visits v ON v.code = d.code"),
        ("join-not-on-key", "SELECT COUNT(*) FROM clinics c JOIN visits v ON c.city = v.code"),
        ("join-unconditional", "SELECT COUNT(*) FROM clinics, visits"),
        ("unknown-column", "SELECT SUM(cost) FROM (SELECT * EXCLUDE (cost) FROM visits) AS t"),
        ("unknown-column", "SELECT COUNT(*) FROM (SELECT * EXCLUDE (nothing) FROM visits) AS t"),
        ("not-grouped", "SELECT UPPER(region), UPPER(sex), COUNT(*) FROM patients GROUP BY region"),
        ("not-grouped", "SELECT INITCAP(region), COUNT(*) FROM patients GROUP BY ROLLUP (region)"),
        ("rows-not-aggregates", "SELECT * EXCLUDE (cost) FROM visits"),
        ("join-unconditional", "SELECT COUNT(*) FROM clinics, visits WHERE clinics.clinic_id = 3"),
        ("join-unconditional", "SELECT COUNT(*) FROM clinics c, visits v WHERE c.clinic_id = v.clinic_id OR v.cost > 10"),
        ("join-unconditional", "SELECT COUNT(*) FROM patients p, visits v WHERE p.birth_year = v.minutes"),
        ("join-unconditional", "SELECT COUNT(*) FROM visits v, visits w WHERE v.day = w.day"),
        ("sql-syntax", "SELECT COUNT(*) FROM visits v JOIN clinics c WHERE v.clinic_id = c.clinic_id"),
    ],
)
def test_other_spellings_open_nothing(code: str, text: str) -> None:
    with pytest.raises(Refused) as caught:
        in_postgres(text)
    assert caught.value.code == code


def test_a_schema_does_not_change_what_is_asked() -> None:
    plain, named = (
        in_postgres(f"SELECT SUM({before}cost) FROM {before.removesuffix('visits.')}visits") for before in ("", "public.visits.")
    )
    assert plain.privates == named.privates


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("table-unsupported", "SELECT COUNT(*) FROM pg_catalog.pg_class"),
        ("table-unsupported", "SELECT COUNT(*) FROM warehouse.public.visits"),
        ("table-unsupported", "SELECT COUNT(*) FROM public.clinic.visits"),
        ("table-unsupported", "SELECT SUM(staging.visits.cost) FROM visits"),
        ("unknown-table", "SELECT SUM(public.visits.cost) FROM visits AS v"),
        ("unknown-table", "SELECT SUM(public.t.cost) FROM (SELECT cost FROM visits) AS t"),
        ("unknown-table", "WITH t AS (SELECT cost FROM visits) SELECT SUM(public.t.cost) FROM t"),
        ("unknown-table", "WITH t AS (SELECT cost FROM visits) SELECT SUM(cost) FROM public.t"),
        ("unknown-table", "SELECT SUM(cost) FROM (SELECT public.v.* FROM visits AS v) AS t"),
        ("unknown-column", "SELECT SUM(public.t.n) FROM (SELECT COUNT(*) AS n FROM visits) AS t"),
        ("ambiguous-table", "SELECT COUNT(*) FROM public.visits JOIN main.visits ON public.visits.patient_id = main.visits.patient_id"),
    ],
)
def test_a_schema_names_tables_of_the_catalogue_alone(code: str, text: str) -> None:
    with pytest.raises(Refused) as caught:
        in_postgres(text)
    assert caught.value.code == code
