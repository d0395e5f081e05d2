"""The owner's tables as Spark sees them: Parquet paths, and any table of the session's catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from lapwing.catalog import Declaration, PublicDecl, TableDecl
from lapwing.engines.prepare import SourceTable
from lapwing.engines.render.spark import quoted, source_kind
from lapwing.engines.sources import is_csv
from lapwing.errors import PreparationError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Listing: TypeAlias = frozenset[tuple[str, str, int, int]]
"""Files of the sources: table, path, bytes, time of change in microseconds."""


def source_frame(session: SparkSession, declaration: Declaration, table: TableDecl | PublicDecl) -> DataFrame:
    """The source as it is now. The files of a Parquet path are listed here, once: what is added later is not seen through this frame."""
    path = declaration.source_path(table)
    if is_csv(path):
        raise PreparationError(
            "source-format", "Spark reads Parquet files and tables of its catalogue", hint="convert the file, or use DuckDB"
        )
    if "/" in path or path.endswith(".parquet"):
        return session.read.parquet(path)
    # A view can mix rows of different units before they are ranked, and can give other rows each time.
    if session.catalog.getTable(path).tableType in ("VIEW", "TEMPORARY"):
        raise PreparationError("source-not-a-table", f"the source of table {table.name!r} is a view", hint="name a table that holds rows")
    return session.table(path)


def source_table(session: SparkSession, declaration: Declaration, table: TableDecl | PublicDecl) -> SourceTable:
    """The source under a name of our own in this session."""
    frame = source_frame(session, declaration, table)
    view = f"_lapwing_{table.name}"
    frame.createOrReplaceTempView(view)
    return SourceTable(quoted(view), {field.name: source_kind(field.dataType.simpleString()) for field in frame.schema.fields})


def listing(session: SparkSession, declaration: Declaration) -> Listing:
    """Every file of the protected sources as it is now; equal listings before and after a statement say that no file changed in between.

    Refuses a source whose files Spark does not show: nothing could be said about it.
    """
    found: set[tuple[str, str, int, int]] = set()
    for table in declaration.tables:
        frame = source_frame(session, declaration, table)
        try:
            parts = frame.selectExpr(*("_metadata.file_path", "_metadata.file_size", "unix_micros(_metadata.file_modification_time)"))
            rows = parts.distinct().collect()
        except Exception as error:
            raise PreparationError(
                "source-format",
                f"the files of table {table.name!r} cannot be watched, so it cannot be read without a copy",
                hint='use preparation = "stored"',
            ) from error
        found |= {(table.name, str(row[0]), int(row[1]), int(row[2])) for row in rows}
    return frozenset(found)
