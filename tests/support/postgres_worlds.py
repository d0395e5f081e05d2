"""Worlds on a PostgreSQL server: the same declarations, with the rows of their Parquet files in tables of a database.

For tests only. ``PostgresWorlds.load`` copies the sources of a declaration into a schema of their own, types kept, and gives the same
declaration on the other engine; ``prepare`` also writes a version and opens it. ``close`` removes all of it.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.catalog import Declaration, PublicDecl, Settings, TableDecl, parse
from lapwing.catalog.blocks import PreparedBlocks
from lapwing.curator.block_life import declared_blocks
from lapwing.engines.links import link_keys
from lapwing.engines.postgres.prepare import prepare_version
from lapwing.engines.postgres.session import Connection, ask, connect
from lapwing.engines.postgres.snapshot import PostgresSnapshot
from lapwing.render.dialect import quoted

_numbers = itertools.count(1)
_DAYS_MAX, _MOMENT_MAX = 2_147_483_490, 9_223_371_331_199_999_999
"""The last date (in days) and the last moment (in microseconds) of PostgreSQL, since 1970; later ones stand for infinity here."""
_DAYS_MIN, _MOMENT_MIN = -2_440_588, -210_866_803_200_000_000
_DAY_MICROSECONDS = 86_400_000_000


def postgres_type(kind: pa.DataType) -> str:
    """The type of a table's column for an Arrow type."""
    plain: Mapping[pa.DataType, str] = {
        pa.bool_(): "boolean",
        pa.int8(): "smallint",
        pa.uint8(): "smallint",
        pa.int16(): "smallint",
        pa.int32(): "integer",
        pa.int64(): "bigint",
        pa.uint64(): "numeric(20, 0)",
        pa.float32(): "real",
        pa.float64(): "double precision",
        pa.string(): "text",
        pa.large_string(): "text",
        pa.binary(): "bytea",
        pa.date32(): "date",
        pa.time64("us"): "time",
        pa.null(): "text",
    }
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamptz"
    if pa.types.is_dictionary(kind):
        return postgres_type(kind.value_type)
    if pa.types.is_list(kind):
        return "bigint[]"
    return "json" if pa.types.is_struct(kind) else plain[kind]


def catalogue_on_postgres(text: str, *, schema: str, connection: str) -> str:
    """A catalogue of Parquet files as one of tables of ``schema``, each named as its file."""
    on_server = re.sub(r'(?m)^source = "([^"]*?)\.parquet"', lambda found: f'source = "{schema}.{found[1]}"', text)
    return re.sub(r"(?m)^\[dataset\]$", f'[dataset]\nengine = "postgres"\nconnection = "{connection}"', on_server, count=1)


class PostgresWorlds:
    """Where worlds are put: a database, reached as one role that may create schemas in it."""

    def __init__(self, conninfo: str, *, settings: Settings | None = None) -> None:
        self.conninfo = conninfo
        self.settings = settings or Settings()
        self.connection: Connection = connect(conninfo)
        self._schemas: list[str] = []

    def load(self, declaration: Declaration) -> tuple[Declaration, str]:
        """The declaration on PostgreSQL and its text, with the rows of its Parquet sources in a schema of their own."""
        assert declaration.directory is not None
        schema = self._new_schema()
        ask(self.connection, f"CREATE SCHEMA {schema}")
        declared: list[TableDecl | PublicDecl] = [*declaration.tables, *declaration.public_tables]
        for table in declared:
            copy_parquet(self.connection, Path(declaration.source_path(table)), f"{schema}.{Path(table.source).stem}")
        text = (declaration.directory / "lapwing.toml").read_text(encoding="utf-8")
        moved = catalogue_on_postgres(text, schema=schema, connection=self.conninfo)
        return parse(moved, settings=self.settings), moved

    def prepare(self, declaration: Declaration, *, ranking_key: bytes, virtual: bool = False, version: int = 1) -> PostgresSnapshot:
        """Load, prepare and open. Virtually, only worlds in which every link key stands in one row (``worlds.distinct_keys``)."""
        on_server, text = self.load(declaration)
        if virtual:
            text = text.replace('engine = "postgres"', 'engine = "postgres"\npreparation = "virtual"', 1)
            on_server = parse(text, settings=self.settings)
            for key in link_keys(on_server):
                parent = on_server.table(key.table)
                ask(self.connection, f"ALTER TABLE {parent.source} ADD UNIQUE ({quoted(parent.column(key.column).source_name)})")
        return self.prepare_loaded(on_server, text, ranking_key=ranking_key, version=version)

    def prepare_loaded(self, on_server: Declaration, text: str, *, ranking_key: bytes, version: int = 1) -> PostgresSnapshot:
        """Prepare and open what ``load`` gave."""
        # A schema of its own, but always the same version: neighbours must not differ in a public fact.
        schema = self._new_schema()
        prepare_version(
            self.connection,
            on_server,
            text,
            schema=schema,
            version=version,
            ranking_key=ranking_key,
            reader=str(ask(self.connection, "SELECT current_user")[0][0]),
            settings=self.settings,
            settled=False,  # a few rows: not worth the time
            blocks=None if on_server.blocks is None else PreparedBlocks(*declared_blocks(on_server)),
        )
        return PostgresSnapshot(self.conninfo, schema, ranking_key=ranking_key, settings=self.settings)

    def _new_schema(self) -> str:
        self._schemas.append(f"world_{os.getpid()}_{next(_numbers)}")
        return self._schemas[-1]

    def clear(self) -> None:
        """Remove everything that was put into the database so far. Snapshots of it must be closed or unused."""
        for schema in self._schemas:
            ask(self.connection, f"DROP SCHEMA IF EXISTS {quoted(schema)} CASCADE")
        self._schemas.clear()

    def close(self) -> None:
        """The same, and give up the connection."""
        self.clear()
        self.connection.close()


def copy_parquet(connection: Connection, path: Path, target: str) -> None:
    """Make a table of a Parquet file: the same column names, types as near as they come.

    A character of code 0, which no text of PostgreSQL holds, becomes the sign for it; a date beyond PostgreSQL's calendar becomes infinite.
    """
    table = pq.read_table(path)
    raw = [_raw(table.column(i)) for i in range(table.num_columns)]
    names = [quoted(name) for name in table.column_names]
    staged = ", ".join(f"{name} {kind}" for name, (kind, _, _) in zip(names, raw, strict=True))
    final = ", ".join(f"{reading.format(name)} AS {name}" for name, (_, reading, _) in zip(names, raw, strict=True))
    with connection.transaction():
        connection.execute(f"CREATE TEMPORARY TABLE staged ({staged}) ON COMMIT DROP".encode())
        with connection.cursor().copy(b"COPY staged FROM STDIN") as copy:
            for row in zip(*(values for _, _, values in raw), strict=True):
                copy.write_row(row)
        connection.execute(f"CREATE TABLE {target} AS SELECT {final} FROM staged".encode())


def _raw(column: pa.ChunkedArray) -> tuple[str, str, list[Any]]:
    """Type of the staged column, SQL of the final value from its name, and the values that are staged."""
    kind = column.type
    wanted = postgres_type(kind)
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    if pa.types.is_date32(kind):
        infinite = f"WHEN {{0}} > {_DAYS_MAX} THEN 'infinity' WHEN {{0}} < {_DAYS_MIN} THEN '-infinity'"
        return "bigint", f"(CASE {infinite} ELSE DATE '1970-01-01' + CAST({{0}} AS integer) END)", column.cast(pa.int32()).to_pylist()
    if pa.types.is_timestamp(kind):
        return "bigint", _MOMENT.format(zone="" if kind.tz is None else " AT TIME ZONE 'UTC'"), _microseconds(column)
    values = column.to_pylist()
    if wanted == "text":
        values = [value.replace("\0", "\u2400") if isinstance(value, str) else value for value in values]
    if wanted == "json":
        values = [value if value is None else json.dumps(value) for value in values]
    return wanted, "{0}", values


_MOMENT = (
    f"((CASE WHEN {{{{0}}}} > {_MOMENT_MAX} THEN 'infinity' WHEN {{{{0}}}} < {_MOMENT_MIN} THEN '-infinity'"
    f" ELSE TIMESTAMP '1970-01-01' + div({{{{0}}}}, {_DAY_MICROSECONDS}) * INTERVAL '1 day'"
    f" + ({{{{0}}}} % {_DAY_MICROSECONDS}) * INTERVAL '1 microsecond' END){{zone}})"
)


def _microseconds(column: pa.ChunkedArray) -> list[int | None]:
    numbers = column.cast(pa.int64()).to_pylist()
    times, over = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}[column.type.unit]
    return [None if number is None else number * times // over for number in numbers]
