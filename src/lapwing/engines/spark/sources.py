"""The owner's tables as Spark sees them: Parquet files, and any table of the session's catalogue.

Files are listed by name and read with one schema, which all of them have; folders mean nothing unless they are declared. So neither a file
nor a folder changes how another file is read.
"""

from __future__ import annotations

import glob
import json
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lapwing.catalog import Declaration, PublicDecl, TableDecl
from lapwing.engines.marks import file_marks, text_mark
from lapwing.engines.prepare import SourceTable, numbers_declared
from lapwing.engines.sources import NULL_FOLDER, agreed_columns, is_csv, require_partitions
from lapwing.engines.spark.sessions import listed_by_driver
from lapwing.errors import PreparationError
from lapwing.kernel.domains import NumberType
from lapwing.render.dialect import SourceKind
from lapwing.render.spark import number_type, quoted, source_kind, text_literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

_SCHEMA_READERS = 8
"""Files whose schemas are asked for at the same time."""
_PATTERN_SIGNS = re.compile(r"[*?\[\]{}\\]")
_PATH = "url_decode(replace(_metadata.file_path, '+', '%2B'))"


@dataclass(frozen=True, slots=True)
class SparkFileState:
    """A file as it was at one moment."""

    path: str
    bytes: int
    changed_microseconds: int


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """The files of one table, and the schema of the wanted columns that all of them have, as Spark writes it in JSON."""

    files: tuple[SparkFileState, ...]
    schema: str

    def body(self) -> dict[str, Any]:
        """As a version keeps it."""
        return {"files": [[file.path, file.bytes, file.changed_microseconds] for file in self.files], "schema": self.schema}

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> SourceFiles:
        """Inverse of :meth:`body`."""
        return cls(tuple(SparkFileState(*file) for file in body["files"]), body["schema"])


def is_path(source: str) -> bool:
    """Whether a source is files; else it is a table of the session's catalogue."""
    return "/" in source or source.endswith(".parquet")


def source_files(
    session: SparkSession, declaration: Declaration, table: TableDecl | PublicDecl, *, known: SourceFiles | None = None
) -> SourceFiles:
    """The files of a source as they are now. Refuses files that differ in a wanted column, or lie in other folders than declared.

    Spark is asked for the schemas of those files that are not ``known`` as they are now: it takes a job for each.
    """
    path = declaration.source_path(table)
    _require_no_csv(path)
    files = _listed(session, [path])
    if files is None:
        raise PreparationError("source-missing", f"the source of table {table.name!r} does not exist")
    for file in files:
        if _PATTERN_SIGNS.search(file.path):
            message = f"{file.path} of table {table.name!r}: Spark takes some signs in this name for a pattern"
            raise PreparationError("source-format", message, hint="rename it: without * ? [ ] { } and backslashes")
    paths = [file.path for file in files]
    require_partitions(table, paths)
    schemas = _schemas(session, files, known)
    held = {path: {field.name: field.dataType.simpleString() for field in schema.fields} for path, schema in schemas.items()}
    agreed = agreed_columns(table, held)
    fields = [field for field in schemas[paths[0]].jsonValue()["fields"] if field["name"] in agreed]
    return SourceFiles(files, json.dumps({"type": "struct", "fields": fields}))


def _schemas(session: SparkSession, files: Sequence[SparkFileState], known: SourceFiles | None) -> dict[str, StructType]:
    """The schema of each file; of a known one, that of the wanted columns."""
    from pyspark.sql.types import StructType

    seen = frozenset(known.files if known is not None else ())
    paths = [file.path for file in files if file not in seen]
    with ThreadPoolExecutor(_SCHEMA_READERS) as readers:
        found = dict(zip(paths, readers.map(lambda path: _plain_reader(session).parquet(path).schema, paths), strict=True))
    if known is None:
        return found
    agreed: StructType = StructType.fromJson(json.loads(known.schema))
    return {file.path: found.get(file.path, agreed) for file in files}


def are_unchanged(session: SparkSession, sources: Mapping[str, SourceFiles]) -> bool:
    """Whether every file of a version is there and is what it was; other files do not matter."""
    return all(_listed(session, [file.path for file in source.files]) == source.files for source in sources.values())


def source_table(
    session: SparkSession, declaration: Declaration, table: TableDecl | PublicDecl, files: SourceFiles | None = None
) -> SourceTable:
    """The source under a name of our own in this session: the files given, or those that are there now."""
    path = declaration.source_path(table)
    if is_path(path) or is_csv(path):
        frame = _file_frame(session, table, files or source_files(session, declaration, table))
    else:
        frame = _table_frame(session, path, table)
    view = f"_lapwing_{table.name}"
    frame.createOrReplaceTempView(view)
    kinds = {field.name: source_kind(field.dataType.simpleString()) for field in frame.schema.fields}
    return SourceTable(quoted(view), {**kinds, **dict.fromkeys(table.partitions, SourceKind.TEXT)})


def number_types(session: SparkSession, table: TableDecl | PublicDecl) -> dict[str, NumberType]:
    """The number types of the declared columns of a table. Pre: ``source_table`` was called for it in this session."""
    fields = session.table(f"_lapwing_{table.name}").schema.fields
    return numbers_declared(table, {field.name: number_type(field.dataType.simpleString()) for field in fields})


def marks_of(session: SparkSession, declaration: Declaration, table: TableDecl | PublicDecl) -> frozenset[str]:
    """The identity of the source, independent of its name: its files, and the full name of a table."""
    path = declaration.source_path(table)
    if is_csv(path) or is_path(path):
        return frozenset(mark for file in _listed(session, [path]) or () for mark in _address_marks(file.path))
    known, files = session.catalog.getTable(path), _table_frame(session, path, table).inputFiles()
    name = ".".join([known.catalog or "", *(known.namespace or []), known.name]).lower()
    return frozenset([text_mark(f"spark table {name}"), *(mark for file in files for mark in _address_marks(urllib.parse.unquote(file)))])


def _address_marks(address: str) -> frozenset[str]:
    """The mark of a local file as for every engine; for a remote file its address."""
    if address.startswith("file:"):
        return file_marks([glob.escape("/" + address.removeprefix("file:").lstrip("/"))])
    return frozenset([text_mark(address)])


def _require_no_csv(path: str) -> None:
    if is_csv(path):
        hint = "convert the file, or use DuckDB"
        raise PreparationError("source-format", "Spark reads Parquet files and tables of its catalogue", hint=hint)


def require_files(declaration: Declaration, table: TableDecl) -> None:
    """Refuse to read a table of the catalogue without a copy: which files it has changes with its rows."""
    if not is_path(declaration.source_path(table)):
        message = f"table {table.name!r} is read from a table of Spark's catalogue, which can only be prepared as a copy"
        raise PreparationError("source-format", message, hint='use preparation = "stored", or name Parquet files')


def _file_frame(session: SparkSession, table: TableDecl | PublicDecl, source: SourceFiles) -> DataFrame:
    from pyspark.sql.types import StructType

    schema: StructType = StructType.fromJson(json.loads(source.schema))
    paths = [file.path for file in source.files]
    with listed_by_driver(session, paths):
        frame = _plain_reader(session).schema(schema).parquet(*paths)
    columns = [quoted(field.name) for field in schema.fields]
    return frame.selectExpr(*columns, *(f"{_folder(name)} AS {quoted(name)}" for name in table.partitions))


def _table_frame(session: SparkSession, path: str, table: TableDecl | PublicDecl) -> DataFrame:
    # A view can mix rows of different units before they are ranked, and can give other rows each time.
    if session.catalog.getTable(path).tableType in ("VIEW", "TEMPORARY"):
        raise PreparationError("source-not-a-table", f"the source of table {table.name!r} is a view", hint="name a table that holds rows")
    return session.table(path)


def _plain_reader(session: SparkSession) -> DataFrameReader:
    """A reader that takes no column from the names of folders."""
    return session.read.option("recursiveFileLookup", "true").option("mergeSchema", "false")


def _folder(name: str) -> str:
    """The value in the one folder ``name=value`` of the path of a row's file. The path is an address, so it is decoded first."""
    value = f"split_part(split_part({_PATH}, {text_literal(f'/{name}=')}, 2), '/', 1)"
    return f"(CASE WHEN {value} <> '{NULL_FOLDER}' THEN url_decode(replace({value}, '+', '%2B')) END)"


def _listed(session: SparkSession, paths: Sequence[str]) -> tuple[SparkFileState, ...] | None:
    """Files by their names, without a look into them; None if a path stands for none."""
    from pyspark.errors import AnalysisException

    try:
        with listed_by_driver(session, paths):
            listing = session.read.format("binaryFile").option("recursiveFileLookup", "true").load(list(paths))
        rows = listing.selectExpr("path", "length", "unix_micros(modificationTime)").collect()
    except AnalysisException:
        return None
    return tuple(sorted((SparkFileState(str(row[0]), int(row[1]), int(row[2])) for row in rows), key=lambda file: file.path)) or None
