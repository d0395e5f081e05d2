"""Which columns a file has, read from its schema alone: the footer of a Parquet file, the first line of a CSV file.

No row is read, and of the footer only names and types are used: its statistics hold smallest and largest values, which are data.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from lapwing.render.dialect import SourceKind

HEADER_BYTES_MAX = 1 << 20
"""Longest header of a CSV file."""

SUFFIXES = (".parquet", ".csv", ".csv.gz")


class ColumnContents(Enum):
    """What a column of a source holds, as far as its schema says."""

    INTEGER = "integer"
    REAL = "real"
    BOOLEAN = "boolean"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"
    UNKNOWN = "unknown"
    """Unknown, as in a CSV file."""
    OTHER = "other"
    """A type that no column of a catalogue can have: a list, a struct, bytes."""


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column under its name in the source."""

    name: str
    held: ColumnContents
    described: str
    """The source's own name of the type."""
    required: bool = field(default=False, compare=False)
    """Whether the schema itself forbids NULL. Equality ignores this field: rows are read the same way."""


def table_columns(name: str, engine: str, connection: str) -> list[SourceColumn]:
    """The columns of a table on a server or in a session."""
    (columns,) = columns_of_tables([name], engine, connection)
    return columns


def columns_of_tables(names: Sequence[str], engine: str, connection: str) -> list[list[SourceColumn]]:
    """The columns of several tables, in the order of the tables."""
    from lapwing.catalog import EngineKind, Settings
    from lapwing.engines.registry import source_fields

    found = source_fields(EngineKind(engine), connection, names, Settings())
    return [
        [SourceColumn(name, _held_by(one.kind), one.kind.name.lower(), one.required) for name, one in fields.items()] for fields in found
    ]


@dataclass(frozen=True, slots=True)
class DatabaseTables:
    """What a database says about itself: names of tables, and pairs of columns that it keeps equal (foreign keys)."""

    names: list[str]
    references: list[tuple[tuple[str, str], tuple[str, str]]]
    """From a column of a table to a column of a table."""


def database_tables(connection: str) -> DatabaseTables:
    """The tables of a PostgreSQL database that can be declared."""
    from lapwing.catalog import Settings
    from lapwing.engines.registry import source_tables

    names, keys = source_tables(connection, Settings())
    return DatabaseTables(names, [((key.table, key.column), (key.target, key.target_column)) for key in keys])


def _held_by(kind: SourceKind) -> ColumnContents:
    match kind.name:
        case "FRACTIONAL" | "DECIMAL":
            return ColumnContents.REAL
        case "UUID":
            return ColumnContents.TEXT
        case name:
            return ColumnContents[name]


class UnreadableSource(Exception):
    """A file whose schema cannot be read; the text says why, without quoting the file."""


def source_files(directory: Path, source: str) -> list[Path]:
    """The files that a ``source`` line stands for, in order."""
    path = directory / source
    if path.is_file():
        return [path]
    # An absolute pattern replaces the directory, as in the catalogue itself.
    root = Path(path.anchor) if path.is_absolute() else Path()
    return sorted(file for file in root.glob(str(path.relative_to(root))) if file.is_file())


def columns_of_files(files: Sequence[Path]) -> list[SourceColumn]:
    """The columns of the first file; a column has no NULL only if every file says so."""
    columns = read_columns(files[0])
    for file in files[1:]:
        if not any(column.required for column in columns):
            break
        required = {column.name for column in read_columns(file) if column.required}
        columns = [replace(column, required=column.name in required) if column.required else column for column in columns]
    return columns


def read_columns(path: Path) -> list[SourceColumn]:
    """The columns of one file, from its schema."""
    try:
        if path.name.endswith(".parquet"):
            return _parquet_columns(path)
        if path.name.endswith((".csv", ".csv.gz")):
            return _csv_columns(path)
    except OSError as error:
        raise UnreadableSource(f"{path.name}: the file cannot be read ({type(error).__name__})") from None
    raise UnreadableSource(f"{path.name}: only {', '.join(SUFFIXES)} can be read")


def _parquet_columns(path: Path) -> list[SourceColumn]:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    try:
        schema = parquet.read_schema(path)
    except pa.ArrowException:
        raise UnreadableSource(f"{path.name}: this is not a Parquet file, or its end is missing") from None
    return [SourceColumn(column.name, _held(column.type), str(column.type), not column.nullable) for column in schema]


def _held(kind: pa.DataType) -> ColumnContents:
    from pyarrow import types

    if types.is_dictionary(kind):
        return _held(kind.value_type)
    if types.is_integer(kind):
        return ColumnContents.INTEGER
    if types.is_floating(kind) or types.is_decimal(kind):
        return ColumnContents.REAL
    if types.is_boolean(kind):
        return ColumnContents.BOOLEAN
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return ColumnContents.TEXT
    if types.is_date(kind):
        return ColumnContents.DATE
    if types.is_timestamp(kind):
        return ColumnContents.TIMESTAMP
    return ColumnContents.OTHER


def csv_delimiter(path: Path) -> str:
    """The delimiter of a CSV file, from its first line."""
    return _delimiter(_header(path))


def _csv_columns(path: Path) -> list[SourceColumn]:
    header = _header(path)
    (names,) = csv.reader([header], delimiter=_delimiter(header))
    return [SourceColumn(name, ColumnContents.UNKNOWN, "CSV") for name in names]


def _delimiter(header: str) -> str:
    return max(",;\t|", key=header.count)


def _header(path: Path) -> str:
    try:
        line = _first_line(path)
        header = line.decode("utf-8-sig").rstrip("\r\n")
    except (UnicodeDecodeError, EOFError, zlib.error):
        raise UnreadableSource(f"{path.name}: its first line is not UTF-8 text") from None
    if not header or (len(line) == HEADER_BYTES_MAX and not line.endswith(b"\n")):
        raise UnreadableSource(f"{path.name}: it has no first line with names of columns")
    return header


def _first_line(path: Path) -> bytes:
    """Unbuffered, so that no byte after the first line of a plain file is read."""
    if path.name.endswith(".gz"):
        with gzip.open(path, "rb") as packed:
            return packed.readline(HEADER_BYTES_MAX)
    with path.open("rb", buffering=0) as plain:
        return plain.readline(HEADER_BYTES_MAX)
