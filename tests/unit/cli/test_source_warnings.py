"""The owner is told, from schemas alone, about keys of text that are declared as numbers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from lapwing.catalog import load
from lapwing.curator.source_checks import source_warnings
from tests.unit.cli.support import run

CATALOGUE = """
format = 1
[dataset]
id = "library"
unit = "reader"
[budget]
epsilon = 1
[tables.readers]
source = "readers.parquet"
unit = "reader"
[tables.readers.columns]
reader = {{ type = "key"{of} }}
[tables.loans]
source = "loans.{suffix}"
unit = "reader -> readers.reader"
[tables.loans.columns]
reader = {{ type = "key"{of} }}
days = {{ type = "integer", min = 0, max = 60 }}
"""


def made(directory: Path, *, of: str = "", readers: pa.DataType, loans: pa.DataType, suffix: str = "parquet") -> Path:
    (directory / "lapwing.toml").write_text(CATALOGUE.format(of=of, suffix=suffix))
    parquet.write_table(
        pa.table({"reader": pa.array(["1", "x"]).cast(readers, safe=False) if readers == pa.string() else pa.array([1, 2])}),
        directory / "readers.parquet",
    )
    if suffix == "csv":
        (directory / "loans.csv").write_text("reader,days\n1,5\n")
    else:
        values = pa.array(["1"]) if loans == pa.string() else pa.array([1])
        parquet.write_table(pa.table({"reader": values, "days": [5]}), directory / "loans.parquet")
    return directory / "lapwing.toml"


@pytest.mark.parametrize(
    ("of", "readers", "loans", "told"),
    [
        ("", pa.int64(), pa.int64(), []),
        ("", pa.string(), pa.int64(), ["readers.reader"]),
        ("", pa.string(), pa.string(), ["readers.reader", "loans.reader"]),
        (', of = "text"', pa.string(), pa.string(), []),
    ],
)
def test_keys_stored_as_text_are_told(tmp_path: Path, of: str, readers: pa.DataType, loans: pa.DataType, told: list[str]) -> None:
    found = list(source_warnings(load(made(tmp_path, of=of, readers=readers, loans=loans))))
    assert [note.split(":")[0] for note in found] == told


def test_a_csv_file_says_nothing_about_types(tmp_path: Path) -> None:
    assert list(source_warnings(load(made(tmp_path, readers=pa.int64(), loans=pa.int64(), suffix="csv")))) == []


def test_check_and_prepare_print_it(tmp_path: Path) -> None:
    path = made(tmp_path, readers=pa.string(), loans=pa.int64())
    for command in (("check",), ("prepare", "--accept-losses")):
        ran = run("-C", path, *command, home=tmp_path / "home")
        assert ran.status == 0 and "warning: readers.reader: the source stores text" in ran.err, (command, ran.err)


def test_check_says_which_types_cannot_be_read_as_declared(tmp_path: Path) -> None:
    path = made(tmp_path, readers=pa.int64(), loans=pa.int64())
    parquet.write_table(pa.table({"reader": [1], "days": pa.array([0], pa.timestamp("us"))}), tmp_path / "loans.parquet")
    ran = run("-C", path, "check", home=tmp_path / "home")
    assert ran.status != 0 and "loans.days: a column that holds timestamps cannot be read as integer" in ran.out + ran.err
