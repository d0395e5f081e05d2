"""Asking a statement in which answers decide: one price, quoted before; bought part by part; the same again is free."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lapwing as lw
from lapwing.demo import write_demo
from lapwing.errors import BudgetRefused, Refused

ABOVE = "SELECT COUNT(*) AS n FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)"
TOP = "SELECT code FROM visits GROUP BY code ORDER BY COUNT(*) DESC LIMIT 3"
SERIES = f"SELECT code, DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM visits WHERE code IN ({TOP}) GROUP BY code, month"


def _opened(directory: Path, budget: str = "") -> lw.DataSet:
    write_demo(directory / "clinic", patients=400)
    catalogue = directory / "clinic" / "lapwing.toml"
    text = catalogue.read_text(encoding="utf-8")
    if budget:
        text = text.replace("\nepsilon = 3 ", f"\nepsilon = {budget} ").replace(
            "ceiling = { epsilon = 6 }", f"ceiling = {{ epsilon = {budget} }}"
        )
    catalogue.write_text(text, encoding="utf-8")
    data_set = lw.open(directory / "clinic", home=directory / "home")
    data_set.prepare()
    return data_set


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[lw.DataSet]:
    with _opened(tmp_path, "1000") as data_set:
        yield data_set


@pytest.mark.parametrize("sql", [ABOVE, SERIES])
def test_the_price_is_quoted_for_all_and_is_what_is_paid(clinic: lw.DataSet, sql: str) -> None:
    before = clinic.budget.to_dict()["loss"]["spent"]
    quoted = clinic.explain(sql, epsilon=20)
    assert clinic.budget.to_dict()["loss"]["spent"] == before
    answer = clinic.ask(sql, epsilon=20)
    assert answer.cost.epsilon <= quoted.cost.epsilon * (1 + 1e-12) <= 20.0000001
    assert answer.cost.epsilon == pytest.approx(20, rel=0.01)
    spent = float(clinic.budget.to_dict()["loss"]["spent"]) - float(before)
    assert spent == pytest.approx(float(answer.cost.rho or 0), rel=1e-9)


def test_the_same_again_is_free_and_the_same(clinic: lw.DataSet) -> None:
    first, second = (clinic.ask(SERIES, epsilon=20) for _ in range(2))
    assert second.cost.free and second.table == first.table
    assert clinic.explain(SERIES, epsilon=20).values["stored"]
    assert any("decided first, by an answer of 3 rows" in note for note in first.notes)


def test_the_history_does_not_take_a_part_for_a_statement_of_its_own(clinic: lw.DataSet) -> None:
    """Inside, a name may mean other rows than it does outside."""
    inside = (
        "WITH visits AS (SELECT * FROM visits WHERE cost > 100) SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)"
    )
    clinic.ask(inside, epsilon=50)
    assert any("first: SELECT AVG(cost) FROM visits" in entry.detail for entry in clinic.history())
    assert clinic.ask("SELECT AVG(cost) FROM visits WITH PRIVACY (error = 100)").cost.epsilon > 0


def test_what_decides_is_found_where_it_was_bought_before(clinic: lw.DataSet) -> None:
    clinic.ask(TOP, epsilon=10)  # alone it has another share of another price, so it is bought anew
    clinic.ask(SERIES, epsilon=20)
    other = clinic.ask(SERIES.replace("COUNT(*) AS n FROM", "AVG(cost) AS n FROM"), epsilon=20)
    assert other.cost.epsilon < 19
    assert {row["code"] for row in other.table.to_pylist()} == {row["code"] for row in clinic.ask(SERIES, epsilon=20).table.to_pylist()}


def test_explanation_shows_both_parts(clinic: lw.DataSet) -> None:
    lines = clinic.explain(ABOVE, epsilon=20).lines
    names = [name for name, _ in lines]
    assert names[:4] == ["protects", "price", "decides", "first"] and "then" in names
    assert dict(lines)["first"] == "SELECT AVG(cost) FROM visits"
    assert clinic.explain(ABOVE, epsilon=20).values["first"][0]["cost"]["epsilon"] < 20
    clinic.ask(ABOVE, epsilon=20)
    assert "bought before" in dict(clinic.explain(ABOVE, epsilon=20).lines)["then"]


def test_what_cannot_be_paid_as_a_whole_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    with _opened(tmp_path, "2") as data_set:
        before = data_set.budget.share_spent
        assert not data_set.explain(ABOVE, epsilon="2").values["affordable"]
        with pytest.raises(BudgetRefused):
            data_set.ask(ABOVE, epsilon="2")
        assert data_set.budget.share_spent == before


def test_an_answer_without_rows_leaves_nothing_to_measure(clinic: lw.DataSet) -> None:
    answer = clinic.ask(
        f"SELECT COUNT(*) AS n FROM visits WHERE code IN ({TOP.replace('ORDER', 'HAVING COUNT(*) > 1000000 ORDER')})", epsilon=20
    )
    assert answer.table.to_pylist() == [{"n": 0}]
    assert 0 < answer.cost.epsilon < 20


@pytest.mark.parametrize(
    ("code", "sql"),
    [
        ("privacy-contradiction", f"{ABOVE} WITH PRIVACY (error = 50)"),
        (
            "list-too-long",
            "SELECT COUNT(*) FROM visits WHERE day IN (SELECT day FROM prescriptions p JOIN visits v USING (visit_id) GROUP BY day, drug)",
        ),
        ("list-too-long", "SELECT COUNT(*) FROM prescriptions WHERE drug IN (SELECT drug FROM prescriptions GROUP BY drug)"),
    ],
)
def test_refused_before_anything_is_charged(clinic: lw.DataSet, code: str, sql: str) -> None:
    before = clinic.budget.share_spent
    with pytest.raises(Refused) as caught:
        clinic.ask(sql)
    assert caught.value.code == code
    assert clinic.budget.share_spent == before
