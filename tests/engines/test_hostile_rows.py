"""Preparation is total: every hostile value of every source type is stored as the reference says, under every kind of declaration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.catalog import Declaration, Settings, load
from lapwing.engines.duckdb import DuckDBSnapshot, prepare_snapshot
from lapwing.errors import PreparationError
from lapwing.kernel.domains import DateDomain, Domain, TimestampDomain
from lapwing.kernel.facts import Facts
from tests.support.hostile import SOURCES, write_equal_rows, write_rows
from tests.support.reference import Raw, Stored, in_domain, sanitise

KEY = b"r" * 32
LISTED = ["f", "m", "it's", "\\", '"', "🦩", "a\u0301", "", "12", "true", "'; DROP TABLE t; --", "\u00a0"]
COLUMNS = {
    "truth": 'type = "boolean"',
    "small": 'type = "integer", min = -5, max = 5',
    "wide": f'type = "integer", min = {1 - 2**52}, max = {2**52 - 1}',
    "far_from_zero": 'type = "integer", min = 100, max = 100',
    "cents": 'type = "real", min = 0, max = 5000, steps = 100',
    "coarse": 'type = "real", min = 0, max = 0.9, steps = 1',
    "off_grid": 'type = "real", min = 0.3333333333333333333333, max = 0.9999999999999999999999, steps = 7',
    "fine": 'type = "real", min = -1000, max = 1000, steps = 1000000000000',
    "open": 'type = "text"',
    "listed": f'type = "text", values = {LISTED!r}',
    "with_other": 'type = "text", values = ["f", "m"], other = "other"',
    "recent": 'type = "date", min = 2024-01-01, max = 2024-12-31',
    "any_day": 'type = "date", min = 0001-01-01, max = 9999-12-31',
    "started": 'type = "timestamp", min = 1969-01-01T00:00:00, max = 2024-12-31T23:59:59',
    "any_time": 'type = "timestamp", min = 0001-01-01T00:00:00, max = 9999-12-31T23:59:59.999999',
    "key": 'type = "key"',
    "text_key": 'type = "key", of = "text"',
}


NUMBERS = frozenset({"small", "wide", "far_from_zero", "cents", "coarse", "off_grid", "fine"})
TEXTS = frozenset({"open", "listed", "with_other", "text_key"})
TIMES = frozenset({"recent", "any_day", "started", "any_time"})
HOLDS: dict[str, frozenset[str]] = {
    **dict.fromkeys(["int8", "int32", "int64", "uint8", "uint64", "decimal"], NUMBERS | TEXTS | {"truth", "key"}),
    **dict.fromkeys(["float", "double", "decimal_cents"], NUMBERS | {"key"}),
    **dict.fromkeys(["text", "large_text", "dictionary", "nothing"], frozenset(COLUMNS)),
    **dict.fromkeys(["date", "seconds", "timestamp", "nanoseconds", "zoned"], TIMES),
    "boolean": NUMBERS | TEXTS | {"truth"},
    **dict.fromkeys(["bytes", "time", "list", "record"], frozenset[str]()),
}
"""The columns that each type of source can be declared as."""
READABLE = [(source, column) for source, columns in HOLDS.items() for column in COLUMNS if column in columns]


def _toml_list(values: list[str]) -> str:
    escaped = ('"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' for value in values)
    return "[" + ", ".join(escaped) + "]"


def catalogue(sources: Iterable[str] = SOURCES) -> str:
    """One table for each type of source, with a column of every declaration that it can hold."""
    columns = {**COLUMNS, "listed": f'type = "text", values = {_toml_list(LISTED)}'}
    parts = ['format = 1\n[dataset]\nid = "hostile"\nunit = "row"\n[budget]\nepsilon = 1\n']
    for source in sources:
        parts.append(f'[tables.from_{source}]\nsource = "{source}.parquet"\nunit = "id"\nrows_max = 1000\n[tables.from_{source}.columns]')
        parts.append('id = { type = "key", null = false }')
        parts += [f"{name} = {{ {body} }}" for name, body in columns.items() if (source, name) in READABLE]
    return "\n".join(parts)


class Prepared:
    """One snapshot with one table per source type, and a plain connection to look into it."""

    def __init__(self, directory: Path) -> None:
        for name, source in SOURCES.items():
            rows: list[dict[str, Raw]] = [
                {"id": number, **dict.fromkeys(COLUMNS, value)} for number, value in enumerate([None, *source.values])
            ]
            write_rows(directory / f"{name}.parquet", rows, {"id": "int64", **dict.fromkeys(COLUMNS, name)})
        text = catalogue()
        (directory / "lapwing.toml").write_text(text, encoding="utf-8")
        self.declaration: Declaration = load(directory / "lapwing.toml")
        target = directory / "v1.duckdb"
        self.facts: Facts = prepare_snapshot(self.declaration, text, target, version=1, ranking_key=KEY, settings=Settings())
        self.connection = duckdb.connect(str(target), read_only=True)

    def stored(self, source: str, column: str) -> list[Stored]:
        """Stored values in the order of the source's values, dates as numbers."""
        domain = self.domain(source, column)
        sql = f'"{column}"'
        if isinstance(domain, DateDomain):
            sql = f"CAST({sql} - DATE '1970-01-01' AS BIGINT)"
        if isinstance(domain, TimestampDomain):
            sql = f"epoch_us({sql})"
        return [row[0] for row in self.connection.execute(f"SELECT {sql} FROM from_{source} ORDER BY id").fetchall()]

    def domain(self, source: str, column: str) -> Domain:
        """The public domain of a column."""
        return self.facts.table(f"from_{source}").columns[column]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    made = Prepared(tmp_path_factory.mktemp("hostile"))
    yield made
    made.connection.close()


@pytest.mark.parametrize(("source", "column"), READABLE)
def test_stored_values_are_what_the_reference_says(prepared: Prepared, source: str, column: str) -> None:
    stored, raw = prepared.stored(source, column), [None, *SOURCES[source].values]
    domain = prepared.domain(source, column)
    other = prepared.declaration.table(f"from_{source}").column(column).other
    assert len(stored) == len(raw)
    wrong = []
    for found, value in zip(stored, raw, strict=True):
        assert in_domain(found, domain), (source, column, value, found)
        expected = sanitise(value, domain, other)
        if found != expected or type(found) is not type(expected):
            wrong.append((value, found, expected))
    assert wrong == []


@pytest.mark.parametrize("source", SOURCES)
def test_what_a_type_cannot_hold_is_refused_before_a_row_is_read(tmp_path: Path, source: str) -> None:
    write_rows(tmp_path / "empty.parquet", [], {"id": "int64", "x": source})
    refused = set()
    for column, body in COLUMNS.items():
        body = f'type = "text", values = {_toml_list(LISTED)}' if column == "listed" else body
        text = f'format = 1\n[dataset]\nid = "hostile"\nunit = "row"\n[budget]\nepsilon = 1\n{ONE_COLUMN}x = {{ {body} }}'
        (tmp_path / "lapwing.toml").write_text(text, encoding="utf-8")
        try:
            DuckDBSnapshot.in_memory(load(tmp_path / "lapwing.toml"), version=1, ranking_key=KEY).close()
        except PreparationError as error:
            assert error.code == "source-type"
            refused.add(column)
    assert refused == set(COLUMNS) - HOLDS[source]


ONE_COLUMN = '[tables.t]\nsource = "empty.parquet"\nunit = "id"\nrows_max = 10\n[tables.t.columns]\nid = { type = "key" }\n'
SMALL_CATALOGUE = """
format = 1
[dataset]
id = "equal"
unit = "person"
[budget]
epsilon = 1
[tables.visits]
source = "visits.parquet"
unit = "person"
rows_max = 1000
rows_per_unit_max = 50
[tables.visits.columns]
person = { type = "key" }
cost = { type = "real", min = 0, max = 100, steps = 10 }
note = { type = "text", null = false }
"""
SMALL_SOURCES = {"person": "int64", "cost": "double", "note": "text"}


def _prepare(directory: Path) -> list[tuple[object, ...]]:
    """Prepare the small catalogue and give back the stored rows, without regard to their order."""
    (directory / "lapwing.toml").write_text(SMALL_CATALOGUE, encoding="utf-8")
    declaration, target = load(directory / "lapwing.toml"), directory / "v1.duckdb"
    prepare_snapshot(declaration, SMALL_CATALOGUE, target, version=1, ranking_key=KEY, settings=Settings())
    with duckdb.connect(str(target), read_only=True) as connection:
        return connection.execute("SELECT _unit, _rank, _rows, person, cost, note FROM visits ORDER BY _unit, _rank").fetchall()


def test_a_hundred_thousand_equal_rows_of_one_unit_leave_as_many_as_declared(tmp_path: Path) -> None:
    row: dict[str, Raw] = {"person": 7, "cost": float("inf"), "note": "a\x00b"}
    write_equal_rows(tmp_path / "visits.parquet", row, SMALL_SOURCES, count=100_000)
    assert _prepare(tmp_path) == [(7, rank, 50, 7, None, "a\x00b") for rank in range(1, 51)]


def test_rows_without_a_unit_or_with_a_forbidden_null_are_left_out(tmp_path: Path) -> None:
    rows: list[dict[str, Raw]] = [
        {"person": None, "cost": 1.0, "note": "x"},
        {"person": 1, "cost": 1.0, "note": None},
        {"person": 1, "cost": float("nan"), "note": ""},
        {"person": -(2**63), "cost": -0.0, "note": "x"},
    ]
    write_rows(tmp_path / "visits.parquet", rows, SMALL_SOURCES)
    assert _prepare(tmp_path) == [(-(2**63), 1, 1, -(2**63), 0, "x"), (1, 1, 1, 1, None, "")]


def test_text_that_is_no_text_stops_preparation_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """A known limit: the engine refuses a Parquet file with broken UTF-8. The owner hears of it; there is no snapshot to ask."""
    offsets = pa.py_buffer((0).to_bytes(4, "little") + (2).to_bytes(4, "little"))
    broken = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff\xfe")])
    pq.write_table(pa.table({"person": pa.array([1]), "cost": pa.array([1.0]), "note": broken}), tmp_path / "visits.parquet")
    with pytest.raises(PreparationError) as caught:
        _prepare(tmp_path)
    assert caught.value.code == "preparation-failed"
    assert [path.name for path in tmp_path.glob("v1*")] == []
