"""``lapwing init``: a catalogue from schemas. It depends on no row, and what it leaves open is exactly what ``check`` asks for."""

from __future__ import annotations

import gzip
import json
import os
import re
import tomllib
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from lapwing.catalog import UnitPath, parse
from lapwing.curator.source_schemas import ColumnContents, UnreadableSource, read_columns, source_files
from lapwing.demo import write_demo
from lapwing.errors import CatalogueError
from lapwing.interfaces.cli.initial import initial_catalogue
from lapwing.owner.catalogue_draft import count_todos, safe_name
from tests.unit.cli.support import run

ALL_TYPES = pa.schema(
    [
        ("id", pa.int64()),
        ("uuid", pa.string()),
        ("small", pa.int8()),
        ("unsigned", pa.uint64()),
        ("ratio", pa.float32()),
        ("price", pa.decimal128(10, 2)),
        ("flag", pa.bool_()),
        ("word", pa.dictionary(pa.int32(), pa.string())),
        ("long_word", pa.large_string()),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us", tz="UTC")),
        ("many", pa.list_(pa.int64())),
        ("raw", pa.binary()),
        ("Weird Name (mg)", pa.float64()),
        ('quote " and \\ backslash', pa.bool_()),
        ("DAY", pa.date32()),
        ("2nd", pa.int32()),
        ("été", pa.bool_()),
    ]
)


def _write(path: Path, table: pa.Table) -> Path:
    parquet.write_table(table, path)
    return path


def test_each_type_of_a_schema_becomes_a_declaration(tmp_path: Path) -> None:
    _write(tmp_path / "All Types.parquet", ALL_TYPES.empty_table())
    text, todos = initial_catalogue([str(tmp_path / "All Types.parquet")], directory=tmp_path)
    columns = tomllib.loads(text)["tables"]["all_types"]["columns"]
    assert {name: column["type"] for name, column in columns.items()} == {
        "id": "key",
        "uuid": "key",
        "small": "integer",
        "unsigned": "integer",
        "ratio": "real",
        "price": "real",
        "flag": "boolean",
        "word": "text",
        "long_word": "text",
        "day": "date",
        "moment": "timestamp",
        "weird_name_mg": "real",
        "quote_and_backslash": "boolean",
        "c_2nd": "integer",
        "t": "boolean",
    }
    assert columns["uuid"]["of"] == "text"
    assert columns["weird_name_mg"]["from"] == "Weird Name (mg)" and columns["quote_and_backslash"]["from"] == 'quote " and \\ backslash'
    assert columns["t"]["from"] == "été" and "from" not in columns["day"]
    for left_out in ('"many"', '"raw"', '"DAY"'):
        assert re.search(rf"^# {left_out}: left out", text, re.MULTILINE)
    assert todos == count_todos(text) > 10


def test_the_draft_does_not_depend_on_the_rows(tmp_path: Path) -> None:
    """Same schema, other rows (and other statistics in the footer): the same text, byte for byte."""
    texts = set()
    for rows in ([1, 2, 3], [10**15], []):
        _write(
            tmp_path / "t.parquet",
            pa.table({"person_id": pa.array(rows, pa.int64()), "x": pa.array([float(r) for r in rows], pa.float64())}),
        )
        texts.add(initial_catalogue([str(tmp_path / "t.parquet")], directory=tmp_path)[0])
    assert len(texts) == 1


def test_only_the_footer_of_a_parquet_file_is_needed(tmp_path: Path) -> None:
    path = _write(tmp_path / "t.parquet", pa.table({"a": list(range(1000)), "b": ["secret"] * 1000}))
    whole = initial_catalogue([str(path)], directory=tmp_path)
    size = path.stat().st_size
    footer = 8 + int.from_bytes(path.read_bytes()[-8:-4], "little")
    with path.open("r+b") as stream:
        stream.seek(4)
        stream.write(b"\xff" * (size - footer - 4))
    assert initial_catalogue([str(path)], directory=tmp_path) == whole
    with pytest.raises((OSError, pa.ArrowException)):
        parquet.read_table(path)


def test_only_the_first_line_of_a_csv_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfperson_id;Name of Town;x\r\n\xff\xfe not text at all")
    text, _ = initial_catalogue([str(path)], directory=tmp_path)
    columns = tomllib.loads(text)["tables"]["t"]["columns"]
    assert list(columns) == ["person_id", "name_of_town", "x"] and columns["person_id"] == {"type": "key", "of": "text"}
    assert columns["name_of_town"] == {"type": "text", "from": "Name of Town"}
    # A pipe that holds the header and nothing more would block whoever wants to read on.
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    descriptor = os.open(pipe, os.O_RDWR)
    try:
        os.write(descriptor, b"a,b\n")
        assert [column.name for column in read_columns(pipe)] == ["a", "b"]
    finally:
        os.close(descriptor)


def test_packed_csv_and_unreadable_files(tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b'"a, b",c\n1,2\n'))
    assert [(column.name, column.held) for column in read_columns(tmp_path / "t.csv.gz")] == [
        ("a, b", ColumnContents.UNKNOWN),
        ("c", ColumnContents.UNKNOWN),
    ]
    wrong = {"cut.csv.gz": b"\x1f\x8b\x08\x00", "bytes.csv": b"\xff\xff\n", "empty.csv": b"", "not.parquet": b"PAR1 no", "t.xlsx": b"PK"}
    for name, content in wrong.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UnreadableSource, match=re.escape(name)):
            read_columns(tmp_path / name)
    with pytest.raises(UnreadableSource):
        read_columns(tmp_path / "missing.parquet")


def test_a_pattern_is_one_table(tmp_path: Path) -> None:
    (tmp_path / "visits").mkdir()
    for name in ("b", "a"):
        _write(tmp_path / "visits" / f"{name}.parquet", pa.table({name: [1]}))
    assert [path.name for path in source_files(tmp_path, "visits/*.parquet")] == ["a.parquet", "b.parquet"]
    assert source_files(tmp_path, str(tmp_path / "visits" / "?.parquet")) == source_files(tmp_path, "visits/*.parquet")
    text, _ = initial_catalogue([str(tmp_path / "visits" / "*.parquet")], directory=tmp_path)
    tables = tomllib.loads(text)["tables"]
    assert list(tables) == ["visits"] and tables["visits"]["source"] == "visits/*.parquet" and list(tables["visits"]["columns"]) == ["a"]


def test_names_stay_apart(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        _write(tmp_path / folder / "t.parquet", pa.table({"a b": [1], "a_b": [1], "a-b": [1]}))
    files = [str(tmp_path / folder / "t.parquet") for folder in ("one", "two", "one")]
    tables = tomllib.loads(initial_catalogue(files, directory=tmp_path)[0])["tables"]
    assert {name: table["source"] for name, table in tables.items()} == {"t": "one/t.parquet", "t_2": "two/t.parquet"}
    assert {name: column.get("from", name) for name, column in tables["t"]["columns"].items()} == {
        "a_b": "a b",
        "a_b_2": "a_b",
        "a_b_3": "a-b",
    }


@pytest.mark.parametrize(
    ("wished", "name"),
    [("Patients", "patients"), ("2024", "c_2024"), ("", "column"), ("___", "column"), ("_x", "x"), ("é", "column"), ("x" * 99, "x" * 63)],
)
def test_safe_names(wished: str, name: str) -> None:
    assert safe_name(wished) == name


def test_what_is_left_open_is_what_check_asks_for(tmp_path: Path) -> None:
    """Fill in every TODO of a real draft and it is accepted; before that, each missing fact is reported at its line."""
    write_demo(tmp_path, patients=3)
    text, todos = initial_catalogue([str(tmp_path / "patients.parquet"), str(tmp_path / "visits.parquet")], directory=tmp_path)
    with pytest.raises(CatalogueError) as caught:
        parse(text)
    missing = [caught.value.code, *(note.split("]")[0].lstrip("[") for note in caught.value.__notes__)]
    assert set(missing) == {"catalogue-missing-key"}
    # Two words of the data set, two units, and two bounds for each of six columns.
    assert len(missing) == 4 + 2 * 6

    bounds = {
        "birth_year": "1900, 2030",
        "income": "0, 1_000_000",
        "cost": "0, 10_000",
        "minutes": "0, 600",
        "day": "2024-01-01, 2025-12-31",
    }
    bounds["started"] = "2024-01-01T00:00:00, 2025-12-31T23:59:59"
    filled = text.replace('# TODO unit = "patient" ', 'unit = "patient" #').replace("# TODO epsilon = 1 ", "epsilon = 1 #")
    filled = re.sub(r'# TODO unit = "\.\.\." +(.*)', r'unit = "patient_id" # \1', filled)
    for column, pair in bounds.items():
        low, high = pair.split(", ")
        filled = re.sub(rf"^({column} = {{ type = \"\w+\") }}  # TODO.*", rf"\1, min = {low}, max = {high} }}", filled, flags=re.MULTILINE)
    declaration = parse(filled)
    unit = declaration.table("visits").unit
    assert declaration.dataset.unit == "patient" and isinstance(unit, UnitPath) and unit.end.column == "patient_id"
    assert count_todos(filled) == todos - 4 - len(bounds) == 3, "what is left are lists of values, which may stay undeclared"


def test_the_command_writes_once_and_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _write(tmp_path / "people.parquet", pa.table({"person_id": [1]}))
    first = run("init", "people.parquet", home=tmp_path)
    assert first.status == 0 and "no row was read" in first.out and "3 lines are marked TODO" in first.out
    written = (tmp_path / "lapwing.toml").read_text()
    assert written.startswith("# A draft") and 'source = "people.parquet"' in written
    again = run("init", "people.parquet", home=tmp_path)
    assert again.status == 2 and "already exists" in again.err and (tmp_path / "lapwing.toml").read_text() == written
    printed = run("init", "people.parquet", "--output", "-", home=tmp_path)
    assert printed.status == 0 and printed.out == written
    elsewhere = run("init", "people.parquet", "--output", "sub/lapwing.toml", home=tmp_path)
    assert elsewhere.status == 2 and "cannot be written" in elsewhere.err
    check = run("check", home=tmp_path)
    assert check.status == 5 and check.err.count("catalogue-missing-key") == 3


def test_wrong_files_are_a_mistake_of_usage(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_text("no")
    for file, words in ((tmp_path / "missing.parquet", "there is no file"), (tmp_path / "x.parquet", "not a Parquet file")):
        ran = run("init", file, "--output", tmp_path / "c.toml", home=tmp_path)
        assert ran.status == 2 and words in ran.err and not (tmp_path / "c.toml").exists()
    assert run("init", home=tmp_path).status == 2


def test_a_pattern_of_folders_is_named_after_the_folder_that_is_none_and_proposes_partitions(tmp_path: Path) -> None:
    folder = tmp_path / "visits" / "year=2024" / "month=01"
    folder.mkdir(parents=True)
    _write(folder / "part-0.parquet", pa.table({"a": [1]}))
    text, _ = initial_catalogue([str(tmp_path / "visits" / "*" / "*" / "*.parquet")], directory=tmp_path)
    assert '\n[tables.visits]\nsource = "visits/*/*/*.parquet"\n# partitions = ["year", "month"] ' in text
    assert "2024" not in text


def test_the_catalogue_is_written_where_the_data_set_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    _write(tmp_path / "there" / "t.parquet", pa.table({"a": [1]}))
    monkeypatch.chdir(tmp_path / "here")
    made = run("-C", "../there", "init", "../there/t.parquet", home=tmp_path / "home")
    assert made.status == 0 and "../there/lapwing.toml" in made.out
    assert 'source = "t.parquet"' in (tmp_path / "there" / "lapwing.toml").read_text(encoding="utf-8")
    assert not list((tmp_path / "here").iterdir())


def test_folders_of_one_name_in_two_places_are_two_data_sets(tmp_path: Path) -> None:
    ids = []
    for place in ("first", "second"):
        folder = tmp_path / place / ("data" * 20)
        folder.mkdir(parents=True)
        _write(folder / "visits.parquet", pa.table({"person_id": [1]}))
        text, _ = initial_catalogue([str(folder / "visits.parquet")], directory=folder)
        ids.append(tomllib.loads(text)["dataset"]["id"])
        assert ids[-1].startswith("data") and len(ids[-1]) <= 63
        assert initial_catalogue([str(folder / "visits.parquet")], directory=folder)[0] == text
    assert ids[0] != ids[1]


def _events(folder: Path, *names: str, columns: tuple[str, ...] = ("person_id", "page")) -> None:
    folder.mkdir(exist_ok=True, parents=True)
    for name in names:
        if name.endswith(".csv"):
            (folder / name).write_text(",".join(columns) + "\n", encoding="utf-8")
        else:
            _write(folder / name, pa.table({column: [1] for column in columns}))


def _drafted(*arguments: str, home: Path) -> tuple[dict[str, str], str]:
    """The tables of a draft and their sources, and what is said beside it."""
    ran = run("init", *arguments, "--output", "-", home=home)
    assert ran.status == 0, ran.err
    return {name: table["source"] for name, table in tomllib.loads(ran.out)["tables"].items()}, ran.err


def test_files_of_one_folder_that_differ_by_number_are_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = [f"part-{number}.parquet" for number in range(8)]
    _events(tmp_path / "events", *names)
    _events(tmp_path / "days", "visits_2024-01-31.csv", "visits_2024-02-29.csv")
    _events(tmp_path / "export", *(f"part-{n:05}-{n:08x}-0c0b-4f0e-9a1b-1234567890ab-c000.snappy.parquet" for n in (0, 1)))
    _write(tmp_path / "people.parquet", pa.table({"person_id": [1]}))
    expanded = [f"events/{name}" for name in names]
    tables, said = _drafted(*expanded, "people.parquet", home=tmp_path)
    assert tables == {"events": "events/part-*.parquet", "people": "people.parquet"}
    assert "events/part-*.parquet: 8 files with the same columns are one table" in said and "--apart" in said
    assert _drafted("events", "people.parquet", home=tmp_path) == (tables, said), "a folder stands for its files"
    assert _drafted("days/", home=tmp_path)[0] == {"visits_2024": "days/visits_2024-*-*.csv"}
    assert _drafted("export", home=tmp_path)[0] == {"export": "export/part-*-*-c000.snappy.parquet"}
    apart, silent = _drafted("events", "--apart", home=tmp_path)
    assert sorted(apart.values()) == expanded and silent == ""


def test_files_stay_apart_where_it_is_not_plain_that_they_are_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other columns, another file that the pattern would take in, names that differ by words, folders apart."""
    monkeypatch.chdir(tmp_path)
    _events(tmp_path / "columns", "t1.parquet")
    _events(tmp_path / "columns", "t2.parquet", columns=("person_id", "other"))
    _write(tmp_path / "columns" / "t3.parquet", pa.table({"person_id": [1], "page": ["a"]}))
    assert len(_drafted("columns", home=tmp_path)[0]) == 3
    _events(tmp_path / "some", "t1.parquet", "t2.parquet", "t3.parquet")
    assert list(_drafted("some/t1.parquet", "some/t2.parquet", home=tmp_path)[0].values()) == ["some/t1.parquet", "some/t2.parquet"]
    _events(tmp_path / "words", "north.csv", "south.csv")
    assert len(_drafted("words", home=tmp_path)[0]) == 2
    _events(tmp_path / "one", "t1.csv")
    _events(tmp_path / "two", "t2.csv")
    tables, said = _drafted("one", "two", home=tmp_path)
    assert list(tables.values()) == ["one/t1.csv", "two/t2.csv"] and said == ""


def test_a_folder_of_folders_is_a_pattern_and_an_empty_one_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _events(tmp_path / "visits" / "year=2023" / "month=12", "a.parquet")
    _events(tmp_path / "visits" / "year=2024" / "month=01", "b.parquet")
    assert _drafted("visits", home=tmp_path)[0] == {"visits": "visits/*/*/*.parquet"}
    (tmp_path / "empty").mkdir()
    ran = run("init", "empty", home=tmp_path)
    assert ran.status == 2 and "there is no file in empty" in ran.err


REQUIRED = pa.schema(
    [
        pa.field("person_id", pa.int64(), nullable=False),
        pa.field("sex", pa.string(), nullable=False),
        pa.field("ward", pa.int64(), nullable=False),
        pa.field("weight", pa.float64(), nullable=False),
        pa.field("smoker", pa.bool_()),
    ]
)


def test_null_is_false_where_every_schema_says_so(tmp_path: Path) -> None:
    """Of real numbers a schema does not say that each is one."""
    (tmp_path / "t").mkdir()
    _write(tmp_path / "t" / "1.parquet", REQUIRED.empty_table())
    text, _ = initial_catalogue([str(tmp_path / "t" / "1.parquet")], directory=tmp_path)
    (columns,) = (table["columns"] for table in tomllib.loads(text)["tables"].values())
    assert {name for name, column in columns.items() if column.get("null", True) is False} == {"person_id", "sex", "ward"}
    assert re.search(r"^smoker = .*# null = false if never missing$", text, re.MULTILINE)
    _write(tmp_path / "t" / "2.parquet", pa.schema([field.with_nullable(field.name != "sex") for field in REQUIRED]).empty_table())
    text, _ = initial_catalogue([str(tmp_path / "t" / "*.parquet")], directory=tmp_path)
    columns = tomllib.loads(text)["tables"]["t"]["columns"]
    assert {name for name, column in columns.items() if column.get("null", True) is False} == {"sex"}


def test_a_draft_with_null_false_is_prepared_and_answers_have_no_group_null(tmp_path: Path) -> None:
    """By a column of which the schema says nothing, NULL stays a group, whether there is one or not."""
    people = [{"person_id": n, "sex": "fm"[n % 2], "ward": n % 3, "weight": 1.0, "smoker": True} for n in range(60)]
    _write(tmp_path / "people.parquet", pa.Table.from_pylist(people, schema=REQUIRED))
    text, _ = initial_catalogue([str(tmp_path / "people.parquet")], directory=tmp_path)
    filled = text.replace('# TODO unit = "patient" ', 'unit = "person" #').replace("# TODO epsilon = 1 ", "epsilon = 1 #")
    filled = filled.replace('# TODO unit = "..." ', 'unit = "person_id" #')
    for kind, more in (("integer", "min = 0, max = 2"), ("text", 'values = ["f", "m"]'), ("real", "min = 0, max = 9")):
        filled = filled.replace(f'type = "{kind}"', f'type = "{kind}", {more}')
    (tmp_path / "lapwing.toml").write_text(filled, encoding="utf-8")
    prepared = run("-C", tmp_path, "prepare", home=tmp_path / "home")
    assert (prepared.status, prepared.err) == (0, ""), "no row is left out"
    statement = "SELECT sex, ward, smoker, COUNT(*) AS n FROM people GROUP BY sex, ward, smoker"
    asked = run("-C", tmp_path, "ask", statement, "--epsilon", "0.1", "--format", "json", home=tmp_path / "home")
    groups = {tuple(row[:3]) for row in json.loads(asked.out)["rows"]}
    assert groups == set(product("fm", range(3), (False, True, None)))
