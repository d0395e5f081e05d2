"""``lapwing describe``: tables and columns, on a terminal, in a pipe and as JSON."""

from __future__ import annotations

import json

from tests.unit.cli.conftest import Clinic


def test_tables_and_columns_are_listed(clinic: Clinic) -> None:
    tables = clinic.run("describe")
    assert tables.status == 0 and tables.out.splitlines()[0].split() == ["table", "kind", "rows", "per", "patient", "columns"]
    assert "prescriptions  protected  at most 400" in tables.out and "made-up health service" in tables.out
    columns = clinic.run("describe", "visits")
    assert "2024-01-01 to 2025-12-31" in columns.out and "at most 200 rows" in columns.out


def test_a_terminal_gets_colours_and_another_name_a_hint(clinic: Clinic) -> None:
    shown = clinic.run("describe", "clinics", variables={"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "100"})
    assert "the key to join on" in shown.out and "\x1b[" in shown.out
    wrong = clinic.run("describe", "visit")
    assert wrong.status == 3 and "did you mean 'visits'?" in wrong.err


def test_json(clinic: Clinic) -> None:
    values = json.loads(clinic.run("describe", "patients", "--format", "json").out)
    assert values["rows"][2] == {"column": "sex", "type": "text", "NULL": "no", "values": "f, m, x"}
    assert values["notes"][0].startswith("protected: a row belongs to one patient")
