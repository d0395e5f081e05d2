"""A file without an identifier, from ``init`` to answers: a made-up table in the shape of a census extract, with many equal rows."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.errors import CatalogueError, PreparationError, Refused
from tests.unit.cli.support import run

HEADER = "age,work class,education-num,sex,hours-per-week,income>50K"
BOUNDS = {"age": 84, "work_class": 8, "education_num": 15, "sex": 1, "hours_per_week": 98, "income_50k": 1}


def write_census(directory: Path, *, rows: int = 1_500) -> list[list[int]]:
    """Codes in few combinations, so that most rows have a twin."""
    rng = random.Random(1)
    made = [
        [rng.choice((20, 30, 40)), rng.randint(0, 2), rng.choice((8, 12)), rng.randint(0, 1), 39, rng.randint(0, 1)] for _ in range(rows)
    ]
    lines = [HEADER, *(",".join(map(str, row)) for row in made)]
    (directory / "census.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return made


def filled(text: str) -> str:
    """What an owner makes of the draft."""
    text = text.replace('# TODO unit = "row" ', 'unit = "row" #').replace("# TODO epsilon = 1 ", "epsilon = 1_000 #")
    text = text.replace("per_statement = 0.2 ", "per_statement = 1 #")
    for name, high in BOUNDS.items():
        pattern = rf'^({name} = {{ )type = "text"(.*?) }}  # TODO.*$'
        text = re.sub(pattern, rf'\1type = "integer", min = 0, max = {high}, null = false\2 }}', text, flags=re.MULTILINE)
    return text


def test_from_init_to_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = write_census(tmp_path)
    assert run("init", "census.csv", home=tmp_path).status == 0
    draft = (tmp_path / "lapwing.toml").read_text(encoding="utf-8")
    assert re.search(r"^\[limits\]\nper_statement = 0\.2 .*\nper_day = 0\.5 ", draft, re.MULTILINE), (
        "an owner sees how fast it may be spent"
    )
    assert draft.count('# TODO unit = "row"') == 2 and "NOT people" in draft and 'unit = "..."' in draft
    (tmp_path / "lapwing.toml").write_text(filled(draft), encoding="utf-8")
    check = run("check", home=tmp_path)
    assert check.status == 0 and "protects one row, not a person, unbounded neighbours" in check.out
    assert "census: 6 columns, every row is a unit" in check.out
    assert run("prepare", home=tmp_path).status == 0
    asked = run("ask", "SELECT sex, COUNT(*) AS n FROM census GROUP BY sex", "--epsilon", "300", "--format", "json", home=tmp_path)
    answer = json.loads(asked.out)
    assert answer["notes"] == [] and asked.err == ""
    truth = {sex: sum(row[3] == sex for row in made) for sex in (0, 1)}
    assert dict(answer["rows"]) == pytest.approx(truth, abs=5)
    assert len({tuple(row) for row in made}) < len(made) / 2, "most rows have a twin"


@pytest.fixture
def census(tmp_path: Path) -> lw.DataSet:
    write_census(tmp_path, rows=300)
    columns = {"age": {"type": "integer", "min": 0, "max": 84}, "sex": {"type": "integer", "min": 0, "max": 1}}
    return lw.open(tmp_path / "census.csv", unit="row", columns=columns, epsilon=1, delta=0, rows_max=10_000, home=tmp_path / "home")


def test_every_report_says_what_is_protected(census: lw.DataSet) -> None:
    explained = str(census.explain("SELECT COUNT(*) AS n FROM census", epsilon=1))
    assert "protects  one row, not a person; unbounded neighbours; version 1" in explained
    assert "bounding  none needed: every unit is one row" in explained
    assert "for each row, not for each person" in str(census.budget)
    assert census.budget.protects == census.curator.declaration.protects
    assert (census.budget.protects, census.budget.to_dict()["unit_is_row"]) == ("one row, not a person", True)
    assert census.ask("SHOW PRIVACY BUDGET").notes == ("the promise is epsilon 1, delta 0 for each row, not for each person",)
    assert census.history()[0].detail == "version 1 prepared", "no statistics of rows per unit are bought: there is nothing to learn"


def test_rows_can_be_joined_to_nothing_protected(census: lw.DataSet) -> None:
    for statement in (
        "SELECT COUNT(*) FROM census a JOIN census b ON a.age = b.age",
        "SELECT COUNT(*) FROM census WHERE age IN (SELECT age FROM census)",
        "SELECT COUNT(DISTINCT _unit) FROM census",
    ):
        with pytest.raises(Refused) as refused:
            census.explain(statement)
        assert refused.value.code != "join-private" or refused.value.hint.startswith("every row is a separate unit here")


def test_words_that_could_mean_a_column_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"Row": [1, 1], "age": [30, 31]}), tmp_path / "people.parquet")
    columns = {"age": {"type": "integer", "min": 0, "max": 120}}
    with pytest.raises(CatalogueError) as error:
        lw.open(tmp_path / "people.parquet", unit="row", columns=columns, home=tmp_path / "home")
    assert error.value.code == "catalogue-bad-unit" and not (tmp_path / "people.parquet.lapwing").exists()
    with pytest.raises(PreparationError) as missing:
        lw.open(tmp_path / "nobody.parquet", unit="row", columns=columns, home=tmp_path / "home")
    assert missing.value.code == "source-missing"
    catalogue = 'format = 1\n[dataset]\nid = "p"\nunit = "row"\n[budget]\nepsilon = 1\n[tables.people]\nsource = "people.parquet"\n'
    (tmp_path / "lapwing.toml").write_text(
        f'{catalogue}unit = "row"\n[tables.people.columns]\nage = {{ type = "integer", min = 0, max = 9 }}\n'
    )
    checked = run("-C", tmp_path / "lapwing.toml", "check", home=tmp_path)
    assert checked.status == 0 and "does not refer to that column, and protects single rows" in checked.err


@pytest.mark.parametrize("columns", [["id", "age"], ["age", "customer_key"], ["age", "row"], ["Reader", "age"], ["age", "user e-mail"]])
def test_rows_are_not_proposed_where_something_may_tell_units(columns: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(",".join(columns) + "\n")
    (tmp_path / "b.csv").write_text("x,y\n")
    printed = run("init", "a.csv", "b.csv", "--output", "-", home=tmp_path).out
    assert 'unit = "row"' not in printed and printed.count('# TODO unit = "..."') == 2
    assert run("init", "b.csv", "--output", "-", home=tmp_path).out.count('# TODO unit = "row"') == 2


def test_versions_of_a_table_that_grows(tmp_path: Path) -> None:
    """The same row arrives every day: as many units as rows, in a version made from nothing or from the one before, and one ledger."""
    catalogue = """
format = 1
[dataset]
id = "days"
unit = "row"
[budget]
epsilon = 1_000_000
delta = 0
[tables.days]
source = "days-*.parquet"
unit = "row"
appended_by = "day"
rows_max = 1_000
[tables.days.columns]
age = { type = "integer", min = 0, max = 120, null = false }
"""
    (tmp_path / "lapwing.toml").write_text(catalogue, encoding="utf-8")
    with lw.open(tmp_path, home=tmp_path / "home") as data:
        for day in range(1, 5):
            pq.write_table(pa.table({"age": [30, 30, 40], "day": [day] * 3}), tmp_path / f"days-{day}.parquet")
            data.curator.prepare(append=day in (2, 3))
            answer = data.ask("SELECT age, COUNT(*) AS n FROM days WHERE age IN (30, 40) GROUP BY age", epsilon=1_000)
            counts = {row["age"]: row["n"] for row in answer.table.to_pylist()}
            assert (counts[30], counts[40]) == (2 * day, day)
        versions = [entry.detail for entry in data.history() if entry.detail.startswith("version")]
        assert len(versions) == 4 and 0 < data.budget.share_spent < 0.1
