"""psql as people use it: each line of a script with what it must show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wire.world import WireUnderTest

SHOWN = {
    "\\dt": "prescriptions",
    "\\dt+": "permanent",
    "\\d patients": "birth_year",
    "\\d+ visits": "NULL when not yet billed",
    "\\dn": "public",
    "\\l": "UTF8",
    "\\du": "List of roles",
    "\\df": "List of functions",
    "\\dv": "Did not find any",
    "\\di": "patients_pkey",
    "\\dp visits": "Access privileges",
    "\\dT": "List of data types",
    "\\conninfo": "ada",
    "\\encoding": "UTF8",
    "SELECT version();": "PostgreSQL",
    "SELECT current_database();": "clinic",
    "SHOW TABLES;": "protected",
    "DESCRIBE visits;": "2024-01-01 to 2025-12-31",
    "SHOW PRIVACY BUDGET;": "remaining",
    "EXPLAIN SELECT COUNT(*) FROM patients;": "none needed: every patient has at most one row",
    "EXPLAIN PRIVACY SELECT AVG(cost) FROM visits;": "price",
    "SELECT COUNT(*) AS n FROM patients \\gdesc": "bigint",
    "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex \\gx": "RECORD 3",
    "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex \\crosstabview sex sex n": "f",
    "SELECT * FROM visits LIMIT 0;": "patient_id",
    "SELECT * FROM visits WHERE 1 = 0;": "(0 rows)",
    "PREPARE q AS SELECT COUNT(*) AS n FROM patients WHERE birth_year > $1;\nEXECUTE q(1980);": "(1 row)",
    "SET lapwing.epsilon = 0.25;\nSHOW lapwing.epsilon;": "0.25",
    "BEGIN;\nSET LOCAL lapwing.epsilon = 0.3;\nCOMMIT;\nSELECT 'after' AS at;": "after",
    "SELECT 1 AS one; SELECT COUNT(*) AS two FROM patients; SELECT 3 AS three;": "three",
    "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex; -- with a comment": "(3 rows)",
    "SET search_path = public, pg_catalog;\nSHOW search_path;": "public, pg_catalog",
    "SELECT attname FROM pg_attribute WHERE attrelid = 'visits'::regclass AND attname = 'cost';": "cost",
    "SELECT column_name FROM information_schema.columns WHERE table_name = 'visits' AND ordinal_position = 8;": "minutes",
    "\\bind 1980\nSELECT COUNT(*) AS n FROM patients;": "n",
}
LEFT_OUT = ("\\bind",)
"""Of a newer psql than Debian's."""


@pytest.mark.parametrize("script", [one for one in SHOWN if not one.startswith(LEFT_OUT)])
def test_psql_shows(wire: WireUnderTest, script: str) -> None:
    done = wire.psql(f"{script}\n")
    assert "ERROR" not in done.stderr, done.stderr
    assert SHOWN[script] in done.stdout + done.stderr


def test_psql_fetches_piecewise_as_it_does_at_once(wire: WireUnderTest) -> None:
    script = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region ORDER BY region;\n"
    whole = wire.psql(script, "-At")
    pieces = wire.psql(f"\\set FETCH_COUNT 3\n{script}", "-At")
    assert len(whole.stdout.splitlines()) == 20
    assert pieces.stdout == whole.stdout


def test_psql_copies_an_answer_to_a_file(wire: WireUnderTest, tmp_path: Path) -> None:
    target = tmp_path / "sex.csv"
    done = wire.psql(f"\\copy (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex ORDER BY sex) to '{target}' csv header\n")
    assert "COPY 3" in done.stdout
    lines = target.read_text().splitlines()
    assert lines[0] == "sex,n"
    exact = dict(wire.truth("SELECT sex, COUNT(*) FROM patients GROUP BY sex"))
    assert all(abs(int(number) - exact[sex]) < 60 for sex, number in (line.split(",") for line in lines[1:]))


def test_psql_points_at_what_it_does_not_get(wire: WireUnderTest) -> None:
    done = wire.psql("SELECT sex,\n  nonsense FROM patients GROUP BY sex;\nSELECT 1 AS goes_on;\n")
    assert "LINE 2:   nonsense FROM" in done.stderr
    assert "42703" in done.stderr
    assert "goes_on" in done.stdout
