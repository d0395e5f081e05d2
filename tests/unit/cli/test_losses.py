"""``lapwing prepare`` tells the owner what it left out, and stops where that is much; nobody else hears of it."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing
from lapwing.errors import PreparationError
from tests.unit.cli.support import run

ROWS = 4_884
CATALOGUE = """
format = 1
[dataset]
id = "adults"
unit = "person"
[budget]
epsilon = 1
[tables.adults]
source = "adults.parquet"
unit = "person_id"
one_row_per_unit = true
[tables.adults.columns]
person_id = { type = "key" }
rich = { type = "boolean", null = false }
age = { type = "integer", min = 0, max = 99 }
"""


def _adults(directory: Path, *, wrong: int, virtual: bool = False) -> Path:
    """People of whom ``wrong`` have words of another language where true or false is declared."""
    directory.mkdir()
    rich = [("oui", "non")[number % 2] if number < wrong else "true" for number in range(ROWS)]
    table = pa.table({"person_id": range(ROWS), "rich": rich, "age": [120 if number == ROWS - 1 else 40 for number in range(ROWS)]})
    pq.write_table(table, directory / "adults.parquet")
    text = CATALOGUE.replace('unit = "person"', 'unit = "person"\npreparation = "virtual"') if virtual else CATALOGUE
    (directory / "lapwing.toml").write_text(text, encoding="utf-8")
    return directory


@pytest.mark.parametrize("virtual", [False, True])
def test_a_column_that_removes_every_row_stops_the_owner(tmp_path: Path, virtual: bool) -> None:
    directory = _adults(tmp_path / "d", wrong=ROWS, virtual=virtual)
    ran = run("-C", directory, "prepare", home=tmp_path / "home")
    assert ran.status == 5 and "[rows-lost]" in ran.err and "--accept-losses" in ran.err
    assert "adults: 4,884 rows read, 0 kept; left out: 4,884 with NULL where none is allowed (NULL in rich 4,884)" in ran.err
    assert "rich: 4,884 could not be read, NULL now" in ran.err and "not for release" in ran.err
    assert run("-C", directory, "ask", "SELECT COUNT(*) FROM adults", home=tmp_path / "home").status != 0
    ran = run("-C", directory, "prepare", "--accept-losses", home=tmp_path / "home")
    assert ran.status == 0 and "Version 1" in ran.out and "4,884" not in ran.out


def test_a_few_lost_rows_are_told_and_nothing_more(tmp_path: Path) -> None:
    directory = _adults(tmp_path / "d", wrong=37)
    ran = run("-C", directory, "prepare", home=tmp_path / "home")
    assert ran.status == 0 and "Version 1" in ran.out
    assert "37 with NULL where none is allowed" in ran.err and "age: 1 out of bounds, clamped" in ran.err
    assert "37" not in ran.out.replace(".37", "")


def test_the_report_is_for_the_owner_alone(tmp_path: Path) -> None:
    directory = _adults(tmp_path / "d", wrong=37)
    run("-C", directory, "prepare", home=tmp_path / "home")
    report = directory / ".lapwing" / "v000001.report.json"
    assert stat.S_IMODE(report.stat().st_mode) == 0o600 and stat.S_IMODE(report.parent.stat().st_mode) == 0o700
    told = json.loads(report.read_text(encoding="utf-8"))
    assert "not for release" in told["warning"]
    (adults,) = told["tables"]
    assert (adults["rows"], adults["kept"], adults["null_not_allowed"]) == (ROWS, ROWS - 37, 37)
    others = [path for path in (directory / ".lapwing").rglob("*") if path.is_file() and path != report]
    assert others and all(b"null_not_allowed" not in path.read_bytes() for path in others)
    for command in (("explain", "SELECT COUNT(*) FROM adults"), ("log",), ("budget",)):
        shown = run("-C", directory, *command, home=tmp_path / "home")
        assert "left out" not in shown.out + shown.err and "report" not in shown.out + shown.err


def test_python_stops_too_and_goes_on_when_told(tmp_path: Path) -> None:
    directory = _adults(tmp_path / "d", wrong=ROWS // 2)
    with lapwing.open(directory, home=tmp_path / "home") as data_set:
        with pytest.raises(PreparationError, match="more than a tenth") as caught:
            data_set.prepare()
        assert caught.value.code == "rows-lost"
        assert data_set.prepare(accept_losses=True) == 1


def test_a_column_that_becomes_null_stops_the_owner_before_anything_is_charged(tmp_path: Path) -> None:
    directory = _adults(tmp_path / "d", wrong=ROWS)
    catalogue = directory / "lapwing.toml"
    catalogue.write_text(catalogue.read_text().replace(", null = false", ""), encoding="utf-8")
    ran = run("-C", directory, "prepare", home=tmp_path / "home")
    assert ran.status == 5 and "more than half of the values of adults.rich would become NULL" in ran.err
    assert "adults: 4,884 rows read, 4,884 kept" in ran.err and "rich: 4,884 could not be read, NULL now" in ran.err
    assert "Version 1" not in ran.out
    with lapwing.open(directory, home=tmp_path / "home") as data_set:
        assert data_set.prepare(accept_losses=True) == 1
    half = _adults(tmp_path / "half", wrong=ROWS // 2)
    (half / "lapwing.toml").write_text(catalogue.read_text().replace('"adults"', '"half"', 1), encoding="utf-8")
    assert run("-C", half, "prepare", home=tmp_path / "home").status == 0


@pytest.mark.parametrize("other", [False, True], ids=["NULL", "another word"])
def test_values_that_are_not_listed_are_lost_unless_the_catalogue_says_what_becomes_of_them(tmp_path: Path, other: bool) -> None:
    directory = _adults(tmp_path / "d", wrong=ROWS)
    declared = 'rich = { type = "text", values = ["true", "else"]' + (', other = "else"' if other else "") + " }"
    text = CATALOGUE.replace('rich = { type = "boolean", null = false }', declared)
    (directory / "lapwing.toml").write_text(text, encoding="utf-8")
    assert run("-C", directory, "prepare", home=tmp_path / "home").status == (0 if other else 5)
