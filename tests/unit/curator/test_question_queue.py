"""The same question by many threads at once is charged once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb

from lapwing.answers.answer import Answer
from lapwing.client.dataset import DataSet
from lapwing.curator.life import Curator
from lapwing.curator.public_work import Hold, PublicWork, told_before_charges

CATALOGUE = """
format = 1
[dataset]
id = "people"
unit = "person"
[budget]
epsilon = 100
statistics_share = 0
[tables.people]
source = "people.parquet"
unit = "id"
one_row_per_unit = true
columns.id = { type = "key" }
columns.age = { type = "integer", min = 0, max = 120 }
"""


def test_equal_questions_at_once_are_charged_once(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT range AS id, range % 90 + 1 AS age FROM range(500)) TO '{tmp_path / 'people.parquet'}'")
    (tmp_path / "lapwing.toml").write_text(CATALOGUE)
    questions = ["SELECT COUNT(*) AS n FROM people", "SELECT COUNT(*) AS n FROM people WHERE age > 40"]
    with DataSet(Curator(tmp_path, home=tmp_path / "home", shared=True)) as data_set:
        data_set.prepare()
        with ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(lambda sql: _slowly(data_set, sql), questions * 6))
    for first, question in enumerate(questions):
        told = {str(answer.to_dict()["rows"]) for answer in answers[first :: len(questions)]}
        assert len(told) == 1, question
        assert sum(not answer.cost.free for answer in answers[first :: len(questions)]) == 1


def _slowly(data_set: DataSet, sql: str) -> Answer:
    """Ask, with so much time before the charge that others ask as well."""
    with told_before_charges(_wait):
        return data_set.ask(sql, epsilon=1)


def _wait(_: PublicWork) -> Hold:
    time.sleep(0.3)
    return lambda: None
