"""Folders of files on DuckDB: no name, type or format of a source is taken from rows, from folders or from other files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb
import pytest

import lapwing as lw
from lapwing.asking.ask import plan_of
from lapwing.audit.runs import RANKING_KEY, prepare_in_duckdb
from lapwing.catalog import Declaration, Settings, load
from lapwing.data_set import DataSet
from lapwing.engines.duckdb import DuckDBSnapshot
from lapwing.engines.duckdb.prepare import prepare_snapshot
from lapwing.errors import PreparationError

CATALOGUE = """
format = 1
[dataset]
id = "people"
unit = "person"
{dataset}
[budget]
epsilon = 10
statistics_share = 0
[tables.people]
source = "people/{source}"
unit = "id"
rows_per_unit_max = 3
{table}
[tables.people.columns]
id = {{ type = "key" }}
{columns}
"""


def declared(directory: Path, source: str, columns: str, *, table: str = "", dataset: str = "") -> Declaration:
    """A catalogue about the files of one folder."""
    text = CATALOGUE.format(source=source, columns=columns, table=table, dataset=dataset)
    (directory / "lapwing.toml").write_text(text, encoding="utf-8")
    return load(directory / "lapwing.toml")


def write(directory: Path, files: Mapping[str, str | bytes]) -> None:
    """Files by their path under ``people``: a SELECT for Parquet, bytes for anything else."""
    for name, content in files.items():
        path = directory / "people" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            duckdb.connect().execute(f"COPY ({content}) TO '{directory / 'new'}' (FORMAT PARQUET)")
            (directory / "new").rename(path)


def rows(declaration: Declaration) -> list[tuple[object, ...]]:
    """The prepared rows: unit and declared columns after it."""
    snapshot = prepare_in_duckdb(declaration)
    assert isinstance(snapshot, DuckDBSnapshot)
    found = snapshot._connection.execute('SELECT * EXCLUDE (_rank, _rows, id) FROM "people" ORDER BY ALL').fetchall()
    snapshot.close()
    return found


def refused(declaration: Declaration) -> PreparationError:
    """How preparation is refused."""
    assert declaration.directory is not None
    target = declaration.directory / "version.duckdb"
    with pytest.raises(PreparationError) as caught:
        prepare_snapshot(declaration, "", target, version=1, ranking_key=RANKING_KEY, settings=Settings())
    assert not target.exists()
    return caught.value


def _partitioned(folder: str) -> dict[str, str | bytes]:
    return {f"x={folder}/part.parquet": "SELECT 777::BIGINT AS id"}


@pytest.mark.parametrize(
    "folder", ["unknown", "1e3", "2024-01-01", "__HIVE_DEFAULT_PARTITION__", "*", "[01]", "?", "a%2Fb", "{0,1}", "", "'"]
)
def test_the_name_of_one_folder_changes_nobody_elses_values(tmp_path: Path, folder: str) -> None:
    write(tmp_path, {"x=0/part.parquet": "SELECT 1::BIGINT AS id", "x=1/part.parquet": "SELECT 2::BIGINT AS id"})
    columns = 'x = { type = "integer", min = 0, max = 100 }'
    declaration = declared(tmp_path, "*/*.parquet", columns, table='partitions = ["x"]')
    before = rows(declaration)
    assert before == [(1, 0), (2, 1)]
    write(tmp_path, _partitioned(folder))
    assert [row for row in rows(declaration) if row[0] != 777] == before
    assert [row for row in rows(declaration) if row[0] == 777] == [(777, 100 if folder == "1e3" else None)]


def test_a_column_that_only_folders_name_is_refused_unless_it_is_declared_so(tmp_path: Path) -> None:
    write(tmp_path, {"x=0/part.parquet": "SELECT 1::BIGINT AS id"})
    error = refused(declared(tmp_path, "*/*.parquet", 'x = { type = "integer", min = 0, max = 100 }'))
    assert error.code == "source-column-missing" and "partitions" in str(error)


def test_folders_that_are_not_declared_are_only_folders(tmp_path: Path) -> None:
    """An engine would put the folder's value in the place of the file's."""
    write(tmp_path, {"x=9/a.parquet": "SELECT 1::BIGINT AS id, 5 AS x", "b.parquet": "SELECT 2::BIGINT AS id, 6 AS x"})
    declaration = declared(tmp_path, "**/*.parquet", 'x = { type = "integer", min = 0, max = 100 }')
    assert rows(declaration) == [(1, 5), (2, 6)]


def test_values_of_folders_are_text_as_they_were_written(tmp_path: Path) -> None:
    write(tmp_path, {"x=a%20b%C3%A9/y=01/part.parquet": "SELECT 1::BIGINT AS id"})
    declaration = declared(tmp_path, "**/*.parquet", 'x = { type = "text" }\ny = { type = "text" }', table='partitions = ["y", "x"]')
    assert rows(declaration) == [(1, "a bé", "01")]


@pytest.mark.parametrize(
    "files",
    [
        {"part.parquet": "SELECT 1::BIGINT AS id"},
        {"x=1/x=2/part.parquet": "SELECT 1::BIGINT AS id"},
        {"x=1/part.parquet": "SELECT 1::BIGINT AS id, 1 AS x"},
        {"x=%FF/part.parquet": "SELECT 1::BIGINT AS id"},
        {"x=%2/part.parquet": "SELECT 1::BIGINT AS id"},
        {"x=%00/part.parquet": "SELECT 1::BIGINT AS id"},
    ],
)
def test_a_file_without_its_one_folder_stops_the_owner(tmp_path: Path, files: dict[str, str | bytes]) -> None:
    write(tmp_path, files)
    declaration = declared(tmp_path, "**/*.parquet", 'x = { type = "text" }', table='partitions = ["x"]')
    assert refused(declaration).code == "source-partition"


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("SELECT 777::BIGINT AS id, 1::INTEGER AS x", "DOUBLE in b.parquet, INTEGER in a.parquet"),
        ("SELECT 777::BIGINT AS id, 1.5::FLOAT AS x", "DOUBLE in b.parquet, FLOAT in a.parquet"),
        ("SELECT 777::BIGINT AS id", "DOUBLE in b.parquet, missing in a.parquet"),
        ("SELECT 777::BIGINT AS id, 1::DOUBLE AS X", "DOUBLE in b.parquet, missing in a.parquet"),
        ("SELECT '777' AS id, 1::DOUBLE AS x", "BIGINT in b.parquet, VARCHAR in a.parquet"),
    ],
)
def test_parquet_files_that_differ_stop_the_owner(tmp_path: Path, other: str, said: str) -> None:
    write(tmp_path, {"b.parquet": "SELECT 1::BIGINT AS id, 0.4::DOUBLE AS x"})
    declaration = declared(tmp_path, "*.parquet", 'x = { type = "real", min = 0, max = 1, steps = 100 }')
    assert rows(declaration) == [(1, 40)]
    write(tmp_path, {"a.parquet": other})
    error = refused(declaration)
    assert error.code == "source-files-differ" and said in str(error)


def test_order_and_further_columns_of_parquet_files_do_not_matter(tmp_path: Path) -> None:
    write(tmp_path, {"b.parquet": "SELECT 1::BIGINT AS id, 0.4::DOUBLE AS x, 'q' AS z"})
    write(
        tmp_path,
        {
            "a.parquet": "SELECT 0.5::DOUBLE AS x, 2 AS z, 3 AS y, 2::BIGINT AS id",
            "c[ab].parquet": "SELECT 3::BIGINT AS id, 1::DOUBLE AS x",
        },
    )
    declaration = declared(tmp_path, "*.parquet", 'x = { type = "real", min = 0, max = 1, steps = 100 }')
    assert rows(declaration) == [(1, 40), (2, 50), (3, 100)]


CSV = 'x = { type = "integer", min = 0, max = 100 }\ny = { type = "text" }'


@pytest.mark.parametrize("header", [b"id,y,x", b"id,x", b"id,x,y,z", b"id,X,y", b"id,x,x", b"id;x;y", b"", b'id,"x\n'])
def test_csv_files_with_different_first_lines_stop_the_owner(tmp_path: Path, header: bytes) -> None:
    write(tmp_path, {"b.csv": b"id,x,y\n1,0,a\n"})
    declaration = declared(tmp_path, "*.csv", CSV)
    assert rows(declaration) == [(1, 0, "a")]
    write(tmp_path, {"a.csv": header + b"\n777,5,6\n"})
    assert refused(declaration).code in ("source-files-differ", "source-header")


def test_csv_files_that_mean_the_same_are_read_alike(tmp_path: Path) -> None:
    """A byte order mark, three kinds of line ends, a file without rows, one without a last line end: each as in a folder of its own."""
    files: dict[str, str | bytes] = {
        "a.csv": b"\xef\xbb\xbfid,x,y\r\n1,1,a\r\n",
        "b.csv": b'id,x,y\n2,2,\n3,3,""\n',
        "c.csv": b'id,x,y\r4,4," ""d"""\r5,5,N/A',
        "d.csv": b"id,x,y",
        "e.csv": b'"id","x","y"\n6,1e3,#\n\n7,,null\n',
    }
    write(tmp_path, files)
    expected = [(1, 1, "a"), (2, 2, None), (3, 3, None), (4, 4, ' "d"'), (5, 5, "N/A"), (6, 100, "#"), (7, None, "null")]
    assert rows(declared(tmp_path, "*.csv", CSV)) == expected
    alone: list[tuple[object, ...]] = []
    for name in files:
        alone += rows(declared(tmp_path, name, CSV))
    assert sorted(alone, key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b'1,5,"x\n2,6,"\n', "source-line"),
        (b'1,5,"x\r2,6,"\n', "preparation-failed"),
        (b'1,5,"x\n', "source-line"),
        (b'1,x"y,"a\n', "source-line"),
        (b'1,5, "a"\n', "source-line"),
        (b"1,5\n", "preparation-failed"),
        (b"1,5,a,b\n", "preparation-failed"),
        (b"1,5,\xff\n", "preparation-failed"),
        (b'1,5,"a"b\n', "source-line"),
    ],
)
def test_a_line_that_is_not_one_record_stops_the_owner(tmp_path: Path, line: bytes, code: str) -> None:
    write(tmp_path, {"a.csv": b"id,x,y\n" + line + b"3,7,c\n"})
    assert refused(declared(tmp_path, "*.csv", CSV)).code == code


def test_a_file_that_changes_after_it_was_checked_stops_the_owner(tmp_path: Path) -> None:
    """Its lines were looked at; then others take their place, one of which has an open quote."""
    write(tmp_path, {"a.csv": b"id,x,y\n1,5,a\n2,6,b\n"})
    declaration, target = declared(tmp_path, "*.csv", CSV), tmp_path / "version.duckdb"

    def rewrite(_what: str, _done: int, _total: int) -> None:
        write(tmp_path, {"a.csv": b'id,x,y\n1,5,"a\n2,6,"\n'})

    with pytest.raises(PreparationError) as caught:
        prepare_snapshot(declaration, "", target, version=1, ranking_key=RANKING_KEY, settings=Settings(), progress=rewrite)
    assert caught.value.code == "source-changing" and not target.exists()


@pytest.mark.parametrize("delimiter", [";", "\\t", "|"])
def test_the_delimiter_is_the_declared_one(tmp_path: Path, delimiter: str) -> None:
    sign = delimiter.replace("\\t", "\t").encode()
    write(tmp_path, {"a.csv": sign.join([b"id", b"x", b"y"]) + b"\n" + sign.join([b"1", b"2", b"a,b"]) + b"\n"})
    assert rows(declared(tmp_path, "*.csv", CSV, table=f'delimiter = "{delimiter}"')) == [(1, 2, "a,b")]
    assert refused(declared(tmp_path, "*.csv", CSV)).code == "source-column-missing"


def _virtual(directory: Path) -> DataSet:
    declared(directory, "*/*.parquet", 'x = { type = "text" }', table='partitions = ["x"]', dataset='preparation = "virtual"')
    dataset = lw.open(directory, home=directory / "home")
    dataset.prepare()
    return dataset


def _count(dataset: DataSet) -> dict[object, int]:
    _, planned = plan_of(dataset.curator, "SELECT x, COUNT(*) AS n FROM people GROUP BY x", 1)
    found = dataset.curator.snapshot.run(planned.certified)
    dataset.curator.snapshot.check(planned.certified)
    (table,) = found._tables
    step = planned.certified.queries[0].vectors[0].step  # a clipped count is on a finer grid
    return {group[0]: int(value * step) for group, value in zip(table._groups, table._vectors[0], strict=True)}


def test_a_file_that_arrives_later_is_not_part_of_a_virtual_version(tmp_path: Path) -> None:
    """Nor does it stop one: whether a file arrived depends on rows, and a refusal would say so for nothing."""
    write(tmp_path, {"x=a/1.parquet": "SELECT range AS id FROM range(7)", "x=*/1.parquet": "SELECT 8::BIGINT AS id"})
    with _virtual(tmp_path) as dataset:
        before = _count(dataset)
        assert before == {"a": 7, "*": 1}
        write(tmp_path, {"x=a/2.parquet": "SELECT 9::BIGINT AS id", "x=b/1.parquet": "SELECT '10' AS id"})
        assert _count(dataset) == before
        dataset.ask("SELECT COUNT(*) AS n FROM people", epsilon=1)
    with lw.open(tmp_path, home=tmp_path / "home") as again:
        assert _count(again) == before


@pytest.mark.parametrize("act", ["changed", "gone"])
def test_a_file_of_a_virtual_version_that_is_not_what_it_was_stops_every_question(tmp_path: Path, act: str) -> None:
    write(tmp_path, {"x=a/1.parquet": "SELECT range AS id FROM range(7)"})
    with _virtual(tmp_path) as dataset:
        file = tmp_path / "people" / "x=a" / "1.parquet"
        file.unlink()
        if act == "changed":
            write(tmp_path, {"x=a/1.parquet": "SELECT range AS id FROM range(7)"})
        for question in ("SELECT COUNT(*) AS n FROM people", "SELECT x, COUNT(*) AS n FROM people GROUP BY x"):
            with pytest.raises(PreparationError) as caught:
                dataset.ask(question, epsilon=1)
            assert caught.value.code == "snapshot-outdated"
        assert dataset.curator.balance().spent.loss == 0 and not dataset.curator.balance().closed
    # it can still be opened and explained, as before: both rest on public facts
    with lw.open(tmp_path, home=tmp_path / "home") as again:
        again.explain("SELECT COUNT(*) AS n FROM people", epsilon=1)


def test_a_preparation_that_failed_takes_no_number(tmp_path: Path) -> None:
    write(tmp_path, {"a.csv": b"id,x,y\n1,5\n"})
    declared(tmp_path, "*.csv", CSV)
    with lw.open(tmp_path, home=tmp_path / "home") as dataset:
        with pytest.raises(PreparationError):
            dataset.prepare()
        write(tmp_path, {"a.csv": b"id,x,y\n1,5,a\n"})
        assert dataset.prepare() == 1
        assert dataset.prepare() == 2
        dataset.curator.retire(2)
        assert dataset.prepare() == 3, "a number is never used twice"
        said = [entry.detail for entry in dataset.history() if "version" in entry.detail]
        assert said == ["version 3 prepared", "version 2 retired", "version 2 prepared", "version 1 prepared"]
