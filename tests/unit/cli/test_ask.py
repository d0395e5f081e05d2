"""Asking through the command line, for real: the answer's formats, the price, and refusals with their caret."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from lapwing.interfaces.cli.views import SqlSpelling
from lapwing.sql import DIALECTS
from tests.unit.cli.conftest import Clinic
from tests.unit.cli.support import run

BY_SEX = "SELECT sex, COUNT(*) AS n, AVG(birth_year) AS born FROM patients GROUP BY sex ORDER BY sex"


def _spent(clinic: Clinic) -> str:
    spent: str = json.loads(clinic.run("budget", "--format", "json").out)["loss"]["spent"]
    return spent


def test_an_answer_is_charged_and_free_the_second_time(clinic: Clinic) -> None:
    before = _spent(clinic)
    first = clinic.run("ask", "SELECT COUNT(*) AS n FROM patients WHERE smoker", "--epsilon", "0.2")
    assert first.status == 0 and first.err == ""
    assert first.out.splitlines()[0].split() == ["n", "±", "95%"] and "cost epsilon 0.2" in first.out
    after = _spent(clinic)
    assert after != before
    second = clinic.run("ask", "SELECT COUNT(*) AS n FROM patients WHERE smoker", "--epsilon", "0.2")
    assert second.out.splitlines()[:3] == first.out.splitlines()[:3]
    assert "free" in second.out and _spent(clinic) == after


def test_json_has_the_documented_form(clinic: Clinic) -> None:
    ran = clinic.run("ask", BY_SEX, "--epsilon", "0.5", "--format", "json", "--confidence", "0.9")
    values = json.loads(ran.out)
    assert list(values) == ["columns", "rows", "intervals", "marks", "confidence", "cost", "remaining", "notes", "receipt"]
    assert values["receipt"] is None, "no key is declared"
    assert [column["name"] for column in values["columns"]] == ["sex", "n", "born"]
    assert [row[0] for row in values["rows"]] == ["f", "m", "x"]
    assert set(values["intervals"]) == {"n", "born"} and values["confidence"] == 0.9
    for row, pair in zip(values["rows"], values["intervals"]["n"], strict=True):
        assert pair[0] <= row[1] <= pair[1]
    assert list(values["cost"]) == ["epsilon", "rho", "delta"] and 0.49 < values["cost"]["epsilon"] <= 0.5
    assert 0 < values["remaining"]["share_spent"] < 1


def test_csv_is_the_table_alone_on_standard_output(clinic: Clinic) -> None:
    ran = clinic.run("ask", BY_SEX, "--epsilon", "0.5", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert list(rows[0]) == ["sex", "n", "n_lo", "n_hi", "n_mark", "born", "born_lo", "born_hi", "born_mark"] and len(rows) == 3
    assert all(float(row["n_lo"]) <= float(row["n"]) <= float(row["n_hi"]) for row in rows)
    assert "of the budget is left" in ran.err


def test_the_statement_can_come_from_standard_input(clinic: Clinic) -> None:
    ran = clinic.run("explain", "-", stdin="SELECT COUNT(*)\nFROM visits\n")
    assert ran.status == 0 and "rho" in ran.out


def test_explaining_is_free_and_names_the_price(clinic: Clinic) -> None:
    before = _spent(clinic)
    text = clinic.run("explain", BY_SEX, "--epsilon", "0.25")
    assert text.status == 0 and "protects" in text.out and "0.25" in text.out
    assert "at 90%" in clinic.run("explain", BY_SEX, "--epsilon", "0.25", "--confidence", "0.9").out
    values = json.loads(clinic.run("explain", BY_SEX, "--epsilon", "0.25", "--format", "json").out)
    assert 0.24 < values["cost"]["epsilon"] <= 0.25 and values["affordable"] is True
    assert _spent(clinic) == before


def test_a_refusal_points_at_the_place_and_charges_nothing(clinic: Clinic) -> None:
    before = _spent(clinic)
    for statement, place in (("SELECT * FROM patients", "*"), ("SELECT COUNT(*)\nFROM vists", "vists"), ("DELETE FROM visits", "DELETE")):
        for command in ("ask", "explain"):
            ran = clinic.run(command, statement)
            assert ran.status == 3 and ran.out == ""
            lines = ran.err.splitlines()
            assert lines[0].startswith("[") and lines[0].index("]") > 5
            quoted, carets = lines[1], lines[2]
            start = carets.index("^")
            assert quoted[start : start + carets.count("^")].startswith(place), ran.err
    assert _spent(clinic) == before


def test_what_the_budget_cannot_pay_has_its_own_status(clinic: Clinic) -> None:
    before = _spent(clinic)
    ran = clinic.run("ask", "SELECT COUNT(*) FROM patients", "--epsilon", "50")
    assert ran.status == 4 and ran.out == "" and _spent(clinic) == before
    assert ran.err.startswith("[statement-limit] one statement may cost 20% of the budget at most, but this one costs ")
    assert "hint: ask at epsilon 1.29 or less" in ran.err


def test_numbers_that_are_none_are_refused(clinic: Clinic) -> None:
    expected = {
        ("--epsilon", "much"): "[number-unreadable]",
        ("--epsilon", "nan"): "[number-unreadable]",
        ("--epsilon", "0"): "[epsilon-invalid]",
        ("--epsilon", "-1"): "[epsilon-invalid]",
        ("--confidence", "1.5"): "[confidence-invalid]",
    }
    for arguments, code in expected.items():
        ran = clinic.run("ask", "SELECT COUNT(*) FROM patients", *arguments)
        assert ran.status == 3 and code in ran.err, arguments


def test_repeating_a_request_id_never_charges_twice(clinic: Clinic) -> None:
    statement = "SELECT COUNT(*) AS n FROM visits WHERE minutes > 30"
    one = clinic.run("ask", statement, "--request-id", "r1", "--analyst", "ann", "--format", "json")
    spent = _spent(clinic)
    two = clinic.run("ask", statement, "--request-id", "r1", "--analyst", "ann", "--format", "json")
    assert one.status == two.status == 0 and json.loads(one.out)["rows"] == json.loads(two.out)["rows"] and _spent(clinic) == spent
    other = clinic.run("ask", "SELECT COUNT(*) FROM visits", "--request-id", "r1", "--analyst", "ann")
    assert other.status == 3 and "request-mismatch" in other.err
    history = json.loads(clinic.run("history", "--format", "json").out)
    assert [entry for entry in history if entry["analyst"] == "ann" and entry["detail"] == statement]


def test_both_spellings_are_one_question(clinic: Clinic) -> None:
    """What is bought in one spelling is free in the other; in the wrong one it is not understood, and costs nothing."""
    first = clinic.run("ask", "SELECT SUM(birth_year // 10) AS n FROM patients", "--epsilon", "0.1")
    after = _spent(clinic)
    second = clinic.run("ask", "SELECT sum(div(birth_year, 10)) AS n FROM patients", "--epsilon", "0.1", "--dialect", "postgres")
    assert first.status == second.status == 0
    assert second.out.splitlines()[:3] == first.out.splitlines()[:3]
    assert "free" in second.out and _spent(clinic) == after
    wrong = clinic.run("ask", "SELECT sum(div(birth_year, 10)) AS n FROM patients", "--epsilon", "0.1")
    assert wrong.status != 0 and "sql-syntax" in wrong.err and _spent(clinic) == after
    explained = clinic.run("explain", "SELECT sum(div(birth_year, 10)) AS n FROM patients", "--dialect", "postgres")
    assert explained.status == 0


def test_the_spellings_are_those_of_the_reader() -> None:
    assert tuple(spelling.value for spelling in SqlSpelling) == DIALECTS


def test_where_there_is_no_data_set_it_says_how_to_have_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run("ask", "SELECT COUNT(*) FROM visits", home=tmp_path)
    assert ran.status == 5 and all(word in ran.err for word in ("lapwing -C FOLDER", "lapwing init", "lapwing demo"))


def test_a_program_is_not_asked_back(clinic: Clinic) -> None:
    ran = clinic.run("ask", "SELECT COUNT(*) AS n FROM patients WHERE birth_year > 1995", "--epsilon", "0.7", stdin="")
    assert ran.status == 0 and "[y/N]" not in ran.out + ran.err
