"""Averaging and change (D1, R2): a question is answered once, paraphrases are the same question, and new rows bring no new budget."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lapwing as lw
from lapwing.data_set import DataSet
from lapwing.errors import BudgetRefused
from lapwing.ledger.protocol import EntryKind
from tests.attacks.pair import HOSTILE, open_world, write_world

FAMILIES: dict[str, tuple[str, ...]] = {
    "count": (
        "SELECT COUNT(*) AS n FROM people",
        "select count(*) as n from PEOPLE",
        'SELECT COUNT(1) AS n FROM "people" AS p',
        "SELECT COUNT(*) AS n /* again */ FROM people -- please",
        "FROM people SELECT COUNT(*) AS n",
        "SELECT COUNT(*) AS n FROM people HAVING COUNT(*) > -1000000 ORDER BY n LIMIT 5",
    ),
    "grouped": (
        "SELECT word, COUNT(*) AS n FROM people GROUP BY word",
        "SELECT p.word AS w, COUNT(*) AS n FROM people p GROUP BY 1 ORDER BY n DESC",
        "SELECT word, COUNT(*) * 2 AS twice, 100.0 * COUNT(*) AS n FROM people GROUP BY people.word, word",
        "SELECT word, COUNT(*) AS n FROM people GROUP BY word HAVING n > 0 OR word IS NULL LIMIT 2",
    ),
    "filtered": (
        "SELECT SUM(num) AS s FROM people WHERE flag AND x > 1.5",
        "SELECT SUM(num) AS s FROM people WHERE (flag) AND (x > 1.50)",
        "SELECT 3 * SUM(num) + 1 AS s FROM people t WHERE t.flag AND t.x > 15e-1",
    ),
    "conditions": (
        "SELECT COUNT(*) FILTER (WHERE flag) AS n FROM people",
        "SELECT COUNT_IF(flag) AS n FROM people",
        "SELECT COUNT(CASE WHEN flag THEN 1 END) AS n FROM people",
    ),
}
"""Ways to ask the same: one release serves all of a family."""


@pytest.fixture
def data(tmp_path: Path) -> Iterator[DataSet]:
    write_world(tmp_path / "w1", hostile=HOSTILE[0], epsilon="20")
    with open_world(tmp_path / "w1") as opened:
        yield opened


def charges(data: DataSet) -> int:
    """How many times something was charged."""
    return sum(entry.kind is EntryKind.RESERVE for entry in data.history(limit=10_000))


@pytest.mark.parametrize("family", FAMILIES)
def test_paraphrases_are_one_question(data: DataSet, family: str) -> None:
    first, *others = FAMILIES[family]
    answer = data.ask(first, epsilon=1, analyst="one")
    spent = data.curator.balance().spent
    assert not answer.cost.free and spent.loss > 0
    for number, text in enumerate((first, *others, first)):
        again = data.ask(text, epsilon=1, analyst=f"another {number}")
        assert again.cost.free and float(again.cost.delta) == 0 and again.cost.epsilon == 0, text
        assert data.curator.balance().spent == spent
        if text == first:
            assert again.table.equals(answer.table) and again.intervals == answer.intervals
    assert charges(data) == 1


def test_paraphrases_show_the_same_noise(data: DataSet) -> None:
    """Linear forms of one aggregate are linear forms of one noisy value."""
    once = data.ask("SELECT SUM(num) AS s FROM people", epsilon=1).table.to_pylist()[0]["s"]
    assert data.ask("SELECT 3 * SUM(num) + 1 AS s FROM people", epsilon=1).table.to_pylist() == [{"s": 3 * once + 1}]
    assert data.ask("SELECT -SUM(num) AS a, SUM(num) - SUM(num) AS b FROM people", epsilon=1).table.to_pylist() == [{"a": -once, "b": 0}]
    assert charges(data) == 1


def test_a_hundred_analysts_get_one_answer(data: DataSet) -> None:
    """Averaging what a hundred colluding analysts were told: there is one value to average."""
    answers = [data.ask("SELECT SUM(x) AS s FROM people", epsilon="0.1", analyst=f"analyst {i}") for i in range(100)]
    assert len({answer.table.column("s").to_pylist()[0] for answer in answers}) == 1
    assert sum(not answer.cost.free for answer in answers) == 1 and charges(data) == 1


def test_other_questions_are_charged_each_and_the_budget_ends_the_averaging(data: DataSet) -> None:
    """Statements that mean the same on the data but not by their text: each is paid, until nothing is left."""
    paid = 0
    with pytest.raises(BudgetRefused, match="budget-exceeded"):
        for number in range(10_000):
            answer = data.ask(f"SELECT COUNT(*) AS n FROM people WHERE num > {-1_000 - number}", epsilon=2)
            assert not answer.cost.free
            paid += 1
    balance = data.curator.balance()
    assert 2 <= paid < 200 and balance.spent.loss <= balance.budget.loss_total
    assert charges(data) == paid
    again = data.ask("SELECT COUNT(*) AS n FROM people WHERE num > -1000", epsilon=2)
    assert again.cost.free, "what was paid for stays free after the budget is gone"


def test_the_same_request_id_pays_once_and_only_for_its_own_plan(data: DataSet) -> None:
    first = data.ask("SELECT COUNT(*) AS n FROM people", epsilon=1, request_id="r1")
    spent = data.curator.balance().spent
    again = data.ask("SELECT COUNT(*) AS n FROM people", epsilon=1, request_id="r1")
    assert again.table.equals(first.table) and data.curator.balance().spent == spent
    with pytest.raises(lw.Refused, match="request-mismatch"):
        data.ask("SELECT SUM(num) AS n FROM people", epsilon=1, request_id="r1")
    assert data.curator.balance().spent == spent


def test_rows_that_arrive_bring_no_budget_and_no_free_answer(tmp_path: Path) -> None:
    """R2: the target arrives between two questions. Each version is charged in full, from one budget, and the prices are equal."""
    directory = tmp_path / "changing"
    write_world(directory, hostile=None, epsilon="4")
    sql = "SELECT word, COUNT(*) AS n FROM people GROUP BY word"
    with open_world(directory) as data:
        before = data.ask(sql, epsilon=1)
        first = data.curator.balance().spent
        write_world(directory, hostile=HOSTILE[0], epsilon="4")
        assert data.ask(sql, epsilon=1).table.equals(before.table), "rows that arrived are not seen before the owner prepares"
        assert data.curator.balance().spent == first
        assert data.prepare(accept_losses=True) == 2
        assert data.curator.balance().spent == first
        assert not data.ask(sql, epsilon=1).cost.free
        assert data.curator.balance().spent.loss == 2 * first.loss
        versions = 2
        with pytest.raises(BudgetRefused):
            while versions < 50:
                write_world(directory, hostile=None if versions % 2 else HOSTILE[1], epsilon="4")
                versions = data.prepare(accept_losses=True)
                data.ask(sql, epsilon=1)
        assert versions < 50
        data.curator.retire(1)
        with pytest.raises(BudgetRefused):
            data.ask(sql, epsilon=1)
        balance = data.curator.balance()
        assert balance.spent.loss <= balance.budget.loss_total
