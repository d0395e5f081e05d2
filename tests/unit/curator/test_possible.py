"""Groups as a user sees them: those that the statement's own conditions allow; and conditions that no row can meet, which are free."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import pytest

import lapwing
from lapwing.demo import write_demo

FIRST_MONTHS = "SELECT patient_id, MIN(DATE_TRUNC('month', day)) AS f FROM visits GROUP BY patient_id"
MARCH = "day BETWEEN DATE '2025-03-01' AND DATE '2025-03-31'"


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lapwing.DataSet]:
    directory = tmp_path_factory.mktemp("clinic")
    write_demo(directory, patients=300)
    with lapwing.open(directory) as data:
        data.prepare()
        yield data


def _first(answer: lapwing.Answer) -> list[object]:
    return list(answer.table.column(0).to_pylist())


def test_days_are_those_of_the_filter(clinic: lapwing.DataSet) -> None:
    days = _first(clinic.ask(f"SELECT day, COUNT(*) FROM visits WHERE {MARCH} GROUP BY day", epsilon=0.01))
    assert days == [datetime.date(2025, 3, number) for number in range(1, 32)]
    over = clinic.ask(f"SELECT COUNT(*) FROM (SELECT day, COUNT(*) AS n FROM visits WHERE {MARCH} GROUP BY day) AS t", epsilon=0.01)
    assert _first(over) == [31]


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT m, COUNT(*) FROM (SELECT DATE_TRUNC('month', day) AS m, cost FROM visits) AS t GROUP BY m", 24),
        ("SELECT c.clinic_id, c.city, c.kind, COUNT(*) FROM visits AS v JOIN clinics AS c USING (clinic_id) GROUP BY 1, 2, 3", 24),
        ("SELECT DATE_TRUNC('hour', started), COUNT(*) FROM visits WHERE started < TIMESTAMP '2024-01-02' GROUP BY 1", 24),
        ("SELECT DATE_TRUNC('month', started)::date, COUNT(*) FROM visits GROUP BY 1", 24),
        ("SELECT FLOOR(cost / 250.0) * 250.0, COUNT(*) FROM visits WHERE cost < 1000 GROUP BY 1", 4),
        (f"SELECT f, COUNT(*) FROM ({FIRST_MONTHS}) AS t GROUP BY f", 24),
        ("SELECT region, smoker, COUNT(*) FROM patients WHERE region = 'northam' AND smoker GROUP BY 1, 2", 1),
    ],
)
def test_there_are_as_many_groups_as_can_be(clinic: lapwing.DataSet, sql: str, rows: int) -> None:
    assert clinic.ask(sql, epsilon=0.01).table.num_rows == rows


@pytest.mark.parametrize(
    ("sql", "answer"),
    [
        ("SELECT COUNT(*) AS n, SUM(cost) AS s, AVG(cost) AS a FROM visits WHERE cost < 0", [{"n": 0, "s": None, "a": None}]),
        ("SELECT COUNT(*) + 1 AS n FROM patients WHERE region = 'Northam'", [{"n": 1}]),
        ("SELECT region, COUNT(*) AS n FROM patients WHERE region = 'nowhere' GROUP BY region", []),
        ("SELECT COUNT(*) AS n FROM visits WHERE day < DATE '2024-02-01' AND day > DATE '2024-03-01'", [{"n": 0}]),
        ("SELECT COUNT(DISTINCT patient_id) AS n, MEDIAN(cost) AS m FROM visits WHERE 1 = 0", [{"n": 0, "m": None}]),
    ],
)
def test_what_no_row_can_meet_is_known_and_free(clinic: lapwing.DataSet, sql: str, answer: list[dict[str, object]]) -> None:
    spent = clinic.curator.balance().spent
    found = clinic.ask(sql, epsilon=0.01)
    assert found.table.to_pylist() == answer and found.cost.free
    assert clinic.curator.balance().spent == spent
    assert any("no row can meet these conditions" in note for note in found.notes)
    assert clinic.explain(sql, epsilon=0.01).to_dict()["cost"]["loss"] == 0


def test_a_value_that_is_nearly_declared_is_named(clinic: lapwing.DataSet) -> None:
    notes = clinic.ask("SELECT COUNT(*) FROM patients WHERE region = 'Northam'").notes
    assert "'Northam' is not among the declared values of region; did you mean 'northam'?" in notes


def test_one_part_may_be_impossible_while_another_is_measured(clinic: lapwing.DataSet) -> None:
    sql = "SELECT (SELECT COUNT(*) FROM visits WHERE cost < 0) AS none, (SELECT COUNT(*) FROM patients) AS all_of_them"
    answer = clinic.ask(sql, epsilon=0.1)
    (row,) = answer.table.to_pylist()
    assert row["none"] == 0 and row["all_of_them"] > 0 and not answer.cost.free
