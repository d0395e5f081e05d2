"""Text in the spelling that the catalogue declares, on every engine; what is not spelt so is NULL, and nothing is guessed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.catalog import load, parse
from lapwing.errors import CatalogueError
from tests.engines.suite.engines import NAMES, SuiteEngine, prepared

EngineNamed = Callable[[str], SuiteEngine]
CATALOGUE = """
format = 1
[dataset]
id = "spellings"
unit = "person"
[budget]
epsilon = 1
statistics_share = 0
[tables.t]
source = "t.parquet"
unit = "id"
one_row_per_unit = true
[tables.t.columns]
id = {{ type = "key" }}
x = {{ {column} }}
"""


def _days(*when: int) -> int:
    return (date(*when) - date(1970, 1, 1)).days


def _micros(*when: int) -> int:
    return int(datetime(*when, tzinfo=UTC).timestamp()) * 1_000_000  # type: ignore[misc,arg-type]


DATE, TIME = "min = 1900-01-01, max = 2099-12-31", "min = 1900-01-01T00:00:00, max = 2099-12-31T23:59:59"
CASES: dict[str, dict[str, object]] = {
    'type = "boolean"': {"1": True, "0": False, "TRUE": True, "false": False, "yes": None, "01": None, "1 ": None, "2": None, "": None},
    'type = "boolean", true = ["yes", "Ja"], false = ["no", "0"]': {
        "yes": True,
        "Ja": True,
        "no": False,
        "0": False,
        "YES": None,
        "1": None,
        "true": None,
    },
    f'type = "date", {DATE}, format = "DD.MM.YYYY"': {
        "05.11.2024": _days(2024, 11, 5),
        "29.02.2023": None,
        "29.02.2024": _days(2024, 2, 29),
        "5.11.2024": None,
        "2024-11-05": None,
        "05.11.2024 ": None,
        "05-11-2024": None,
        "31.12.1899": None,
        "05.13.2024": None,
        "٠٥.11.2024": None,
    },
    f'type = "date", {DATE}, format = "YYYYMMDD"': {"20241105": _days(2024, 11, 5), "2024-11-05": None, "20241131": None},
    f'type = "timestamp", {TIME}, format = "MM/DD/YYYY hh:mm"': {
        "11/05/2024 23:59": _micros(2024, 11, 5, 23, 59),
        "11/05/2024 24:00": None,
        "11/05/2024 23:59:00": None,
        "11/05/2024": None,
        "13/05/2024 00:00": None,
    },
    f'type = "timestamp", {TIME}, format = "DD-MM-YYYY"': {"05-11-2024": _micros(2024, 11, 5), "05-11-2024 00:00:00": None},
}


@pytest.mark.parametrize("name", NAMES)
def test_text_is_read_as_it_is_declared_to_be_written(tmp_path: Path, engine_named: EngineNamed, name: str) -> None:
    engine = engine_named(name)
    for number, (column, values) in enumerate(CASES.items()):
        directory = tmp_path / str(number)
        directory.mkdir()
        pq.write_table(pa.table({"id": list(range(len(values))), "x": pa.array(list(values), pa.string())}), directory / "t.parquet")
        (directory / "lapwing.toml").write_text(CATALOGUE.format(column=column), encoding="utf-8")
        snapshot = engine.prepare(load(directory / "lapwing.toml"))
        found = {row[3]: row[4] for row in prepared(engine, snapshot, "t")}
        snapshot.close()
        assert {text: found[position] for position, text in enumerate(values)} == values, column


def test_whole_numbers_can_be_spelt_too(tmp_path: Path, engine_named: EngineNamed) -> None:
    pq.write_table(pa.table({"id": [1, 2, 3], "x": [1, 2, 0]}), tmp_path / "t.parquet")
    (tmp_path / "lapwing.toml").write_text(CATALOGUE.format(column='type = "boolean", true = ["1"], false = ["2"]'), encoding="utf-8")
    engine = engine_named("duckdb")
    rows = prepared(engine, engine.prepare(load(tmp_path / "lapwing.toml")), "t")
    assert [(row[3], row[4]) for row in rows] == [(1, True), (2, False), (3, None)]


@pytest.mark.parametrize(
    "column",
    [
        'type = "boolean", true = ["1"]',
        'type = "boolean", true = ["1"], false = ["1"]',
        'type = "boolean", true = [""], false = ["1"]',
        f'type = "date", {DATE}, format = "DD.MM"',
        f'type = "date", {DATE}, format = "DD.MM.YYYY.DD"',
        f'type = "date", {DATE}, format = "DD.MM.YYYY hh"',
        f'type = "date", {DATE}, format = "%d.%m.%Y"',
        f'type = "date", {DATE}, format = "D/M/YYYY"',
        f'type = "timestamp", {TIME}, format = "YYYY-MM-DD mm"',
    ],
)
def test_a_spelling_that_is_none_is_refused(column: str) -> None:
    with pytest.raises(CatalogueError):
        parse(CATALOGUE.format(column=column))
