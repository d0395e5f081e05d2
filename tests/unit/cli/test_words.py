"""Lapwing's own words through the command line, for real."""

from __future__ import annotations

import json

from lapwing.interfaces.cli.exits import ExitStatus
from tests.unit.cli.conftest import Clinic

COUNT = "SELECT COUNT(*) AS n FROM patients WHERE birth_year > 1980"


def _spent(clinic: Clinic) -> str:
    spent: str = json.loads(clinic.run("budget", "--format", "json").out)["loss"]["spent"]
    return spent


def test_show_privacy_budget_says_what_budget_says(clinic: Clinic) -> None:
    ran = clinic.run("ask", "SHOW PRIVACY BUDGET;", "--format", "json")
    values = json.loads(ran.out)
    told = json.loads(clinic.run("budget", "--format", "json").out)
    assert [column["name"] for column in values["columns"]] == ["amount", "total", "spent", "remaining"]
    rows = {row[0]: row[1:] for row in values["rows"]}
    assert rows["rho"] == [float(told["loss"][part]) for part in ("total", "spent", "remaining")]
    assert rows["share"][1] == told["share_spent"] and values["cost"]["epsilon"] == 0


def test_explain_privacy_says_what_explain_says_and_is_free(clinic: Clinic) -> None:
    before = _spent(clinic)
    asked = clinic.run("ask", f"EXPLAIN PRIVACY {COUNT} WITH PRIVACY (epsilon = 0.25)", "--format", "json")
    told = clinic.run("explain", COUNT, "--epsilon", "0.25")
    assert asked.status == told.status == 0
    assert [f"{what:<{8}}  {text}" for what, text in json.loads(asked.out)["rows"]] == told.out.splitlines()
    assert _spent(clinic) == before


def test_an_epsilon_in_words_is_the_epsilon_of_the_option(clinic: Clinic) -> None:
    first = clinic.run("ask", f"{COUNT} WITH PRIVACY (epsilon = 0.15)")
    assert first.status == 0 and "cost epsilon 0.15" in first.out
    assert "free" in clinic.run("ask", COUNT, "--epsilon", "0.15").out


def test_an_error_in_words(clinic: Clinic) -> None:
    ran = clinic.run(
        "ask", "SELECT COUNT(*) AS n FROM visits WHERE minutes > 10 WITH PRIVACY (error = 2500, confidence = 0.9)", "--format", "json"
    )
    assert ran.status == 0, ran.err
    values = json.loads(ran.out)
    low, high = values["intervals"]["n"][0]
    notes = values["notes"]
    assert values["confidence"] == 0.9 and notes[0].startswith("asked for ±2500 at 90%")
    # How long a bar is depends on what is released; where it came out longer, or its price could not be paid, a note says so.
    assert 0 < (high - low) / 2 <= 2500 or "NOT REACHED" in notes[0] or "longer than asked for" in notes[1]


def test_a_refusal_points_into_the_line_as_it_was_typed(clinic: Clinic) -> None:
    statement = "EXPLAIN PRIVACY SELECT COUNT(*) FROM nowhere WITH PRIVACY (epsilon = 1)"
    ran = clinic.run("ask", statement)
    line, carets = ran.err.splitlines()[1:3]
    assert ran.status == ExitStatus.REFUSED and line.endswith(statement)
    assert line[carets.index("^") : carets.rindex("^") + 1] == "nowhere"


def test_words_against_an_option_are_refused(clinic: Clinic) -> None:
    ran = clinic.run("ask", f"{COUNT} WITH PRIVACY (epsilon = 1)", "--epsilon", "2")
    assert ran.status == ExitStatus.REFUSED and "[privacy-contradiction]" in ran.err


def test_too_dear_is_a_matter_of_the_budget(clinic: Clinic) -> None:
    before = _spent(clinic)
    ran = clinic.run("ask", f"{COUNT} WITH PRIVACY (error = 0.01)")
    assert ran.status == ExitStatus.BUDGET and "[error-too-dear]" in ran.err and "is left" in ran.err
    assert _spent(clinic) == before
