"""The rows of a demonstration, unprotected, in a scratch schema of a PostgreSQL server, for the comparison of answers."""

from __future__ import annotations

import re
import secrets
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as parquet
from psycopg import sql

from lapwing.engines.postgres.session import connect

_TYPES: dict[pa.DataType, str] = {
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float64(): "double precision",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.string(): "text",
}
_PUBLIC = re.compile(r'(?<![\w."])(?:"public"|public)\.', re.IGNORECASE)
"""The schema in which tools expect a data set's tables."""


class BarePostgres:
    """A connection to a server, with a schema created on it; ``close`` drops the schema and its contents."""

    def __init__(self, dsn: str, directory: Path) -> None:
        self.schema = f"lapwing_conformance_{secrets.token_hex(8)}"
        self.connection = connect(dsn)
        try:
            self.connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self.schema)))
            self.connection.execute(sql.SQL("SET search_path = {}").format(sql.Identifier(self.schema)))
            self.connection.execute("SET TIME ZONE 'UTC'")
            for path in sorted(directory.glob("*.parquet")):
                self._fill(path.stem, parquet.read_table(path))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Drop the schema and close the connection."""
        try:
            self.connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(self.schema)))
        finally:
            self.connection.close()

    def rows(self, statement: str) -> list[tuple[Any, ...]] | None:
        """The server's answer; None if it does not accept the statement."""
        try:
            return self.connection.execute(_PUBLIC.sub(f"{self.schema}.", statement).encode()).fetchall()
        except psycopg.Error:
            return None

    def _fill(self, name: str, table: pa.Table) -> None:
        """Create a table and copy rows into it."""
        columns = [sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(_type(field.type))) for field in table.schema]
        self.connection.execute(sql.SQL("CREATE TABLE {} ({})").format(sql.Identifier(name), sql.SQL(", ").join(columns)))
        with self.connection.cursor() as cursor, cursor.copy(sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(name))) as copy:
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                copy.write_row(row)
        self.connection.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(name)))


def _type(column: pa.DataType) -> Any:
    """PostgreSQL's name of a type of the made-up files."""
    if pa.types.is_decimal(column):
        return f"numeric({column.precision}, {column.scale})"
    return "timestamp" if pa.types.is_timestamp(column) else _TYPES[column]
