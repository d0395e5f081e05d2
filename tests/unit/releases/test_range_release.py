"""A tree of ranges as a user has it: planned, bought, asked for ranges and spans of any length."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import lapwing
from lapwing import RangeTree
from lapwing.demo import write_demo
from lapwing.errors import Refused
from lapwing.releases.report import release_html
from lapwing.releases.request import ReleaseRequest

EXACT = "100000000"
YEARS = RangeTree("birth_year", by="sex")
INCOMES = RangeTree("income", bins=100)
QUESTIONS = [
    "SELECT COUNT(*) AS n FROM patients",
    "SELECT COUNT(*) AS n FROM patients WHERE birth_year BETWEEN 1961 AND 1987",
    "SELECT sex, COUNT(*) AS n FROM patients WHERE birth_year > 1981 GROUP BY sex",
    "SELECT birth_year // 10 AS decade, COUNT(*) AS n FROM patients GROUP BY decade",
    "SELECT sex, birth_year // 25 AS span, COUNT(*) AS n FROM patients WHERE birth_year % 2 = 0 GROUP BY sex, span",
    "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex",
    "SELECT SUM(birth_year) AS n FROM patients WHERE sex = 'f'",
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("ranges")
    catalogue = write_demo(base / "clinic", patients=2_000)[0]
    text = catalogue.read_text(encoding="utf-8")
    text = re.sub(r"(?m)^epsilon = 3 .*$", "epsilon = 1000000000", text, count=1)
    catalogue.write_text(re.sub(r"(?m)^ceiling = .*$", "ceiling = { epsilon = 1000000000 }", text, count=1), encoding="utf-8")
    with lapwing.open(base / "clinic", home=base / "home") as data_set:
        data_set.prepare(accept_losses=True)
    return base


@pytest.fixture(scope="module")
def clinic(place: Path) -> Iterator[lapwing.DataSet]:
    with lapwing.open(place / "clinic", home=place / "home") as data_set:
        yield data_set


def truth(place: Path, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as exact:
        exact.execute(f"CREATE VIEW patients AS FROM '{place / 'clinic' / 'patients'}.parquet'")
        return sorted(exact.execute(sql).fetchall(), key=str)


def test_without_noise_that_counts_free_answers_are_the_bare_engines(clinic: lapwing.DataSet, place: Path) -> None:
    bought = clinic.release(YEARS, name="exact", epsilon=EXACT).run()
    for sql in QUESTIONS:
        found = sorted([tuple(row.values()) for row in bought.query(sql).table.to_pylist() if row["n"]], key=str)
        assert found == [row for row in truth(place, sql) if row[-1]], sql


def test_null_is_counted_beside_the_tree(clinic: lapwing.DataSet, place: Path) -> None:
    bought = clinic.release(INCOMES, name="money", epsilon=EXACT).run()
    edge = float(bought.axes[-1].spans()[40][0])
    for sql in ("SELECT COUNT(*) AS n FROM patients WHERE income IS NULL", f"SELECT COUNT(*) AS n FROM patients WHERE income < {edge}"):
        assert bought.query(sql).table.to_pylist() == [{"n": truth(place, sql)[0][0]}]
    assert truth(place, QUESTIONS[0])[0][0] == bought.query(QUESTIONS[0]).table["n"][0].as_py()
