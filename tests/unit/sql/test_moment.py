"""CURRENT_DATE and NOW() are constants of a statement: one moment for all of it, and free again while it means the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import lapwing
from lapwing.asking import bound_statement
from lapwing.demo import write_demo
from lapwing.errors import Refused
from lapwing.kernel.calendar import DAY_MICROSECONDS
from lapwing.sql import bind
from tests.unit.sql.clinic import FACTS, MOMENT, SETTINGS, UNIT_COLUMNS

DAY = MOMENT // DAY_MICROSECONDS * DAY_MICROSECONDS


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lapwing.DataSet]:
    directory = tmp_path_factory.mktemp("moment")
    write_demo(directory / "clinic", patients=50)
    with lapwing.open(directory / "clinic", home=directory / "home") as data_set:
        data_set.prepare()
        yield data_set


def asked_at(clinic: lapwing.DataSet, sql: str, moment: int, monkeypatch: pytest.MonkeyPatch) -> lapwing.Answer:
    monkeypatch.setattr(bound_statement, "moment_of_asking", lambda: moment)
    return clinic.ask(sql, epsilon="0.01")


@pytest.mark.parametrize(
    ("sql", "same_for"),
    [
        ("SELECT COUNT(*) FROM visits WHERE day < CURRENT_DATE - INTERVAL '1 day' * 3", DAY_MICROSECONDS),
        ("SELECT COUNT(*) FROM visits WHERE started < DATE_TRUNC('day', NOW() + INTERVAL '-30 day')", DAY_MICROSECONDS),
        ("SELECT COUNT(*) FROM visits WHERE started < DATE_TRUNC('hour', LOCALTIMESTAMP)", 3_600_000_000),
        ("SELECT COUNT(*) FROM patients WHERE EXTRACT(YEAR FROM CURRENT_DATE) - birth_year > 18", 100 * DAY_MICROSECONDS),
        ("SELECT COUNT(*) FROM visits WHERE STRFTIME(day, '%Y-%m') < STRFTIME(CURRENT_DATE, '%Y-%m')", 10 * DAY_MICROSECONDS),
        ("SELECT COUNT(*) FROM visits WHERE day < CAST(NOW() AS DATE)", DAY_MICROSECONDS),
        ("SELECT COUNT(*) FROM visits WHERE started < NOW() - INTERVAL '2 hours'", 1),
    ],
)
def test_a_statement_is_free_again_while_its_moment_means_the_same(
    clinic: lapwing.DataSet, sql: str, same_for: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = asked_at(clinic, sql, DAY, monkeypatch)
    again = asked_at(clinic, sql, DAY + same_for - 1, monkeypatch)
    assert not first.cost.free and again.cost.free
    assert first.table == again.table


def test_another_day_is_another_question(clinic: lapwing.DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT COUNT(*) FROM visits WHERE day < CURRENT_DATE - 100"
    assert not asked_at(clinic, sql, DAY, monkeypatch).cost.free
    assert not asked_at(clinic, sql, DAY + DAY_MICROSECONDS, monkeypatch).cost.free


def test_the_moment_is_told(clinic: lapwing.DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT CURRENT_DATE AS asked, COUNT(*) AS n FROM visits WHERE day < CURRENT_DATE AND started < NOW()"
    answer = asked_at(clinic, sql, MOMENT, monkeypatch)
    assert any("CURRENT_DATE is 2024-07-15, in UTC" in note for note in answer.notes)
    assert any("NOW() is 2024-07-15 10:30:15, in UTC" in note for note in answer.notes)
    explained = clinic.explain(sql, epsilon="0.01")
    assert "CURRENT_DATE is 2024-07-15" in str(explained)


def test_where_nobody_asks_there_is_no_moment() -> None:
    with pytest.raises(Refused) as caught:
        bind("SELECT COUNT(*) FROM visits WHERE day < CURRENT_DATE", FACTS, settings=SETTINGS, unit_columns=UNIT_COLUMNS)
    assert caught.value.code == "function-unsupported"
