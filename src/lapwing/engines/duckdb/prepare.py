"""Writing versions with DuckDB: the owner's act, which may read source files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import duckdb

from lapwing.catalog import Declaration, PublicDecl, Settings, TableDecl
from lapwing.catalog.facts import facts as declared_facts
from lapwing.engines.base import Progress, silent
from lapwing.engines.prepare import SNAPSHOT_FORMAT, SourceTable, private_table, public_table
from lapwing.engines.render.dialect import RANKING_KEY, quoted
from lapwing.engines.render.duckdb import DUCKDB, source_kind
from lapwing.engines.render.relations import RANK, UNIT
from lapwing.engines.sources import source_reader
from lapwing.errors import PreparationError
from lapwing.kernel.domains import TextDomain
from lapwing.kernel.facts import Facts

META = "_lapwing"
"""Name of the table in a snapshot that says what it is."""


def prepare_snapshot(
    declaration: Declaration,
    text: str,
    target: Path,
    *,
    version: int,
    ranking_key: bytes,
    settings: Settings,
    progress: Progress = silent,
) -> Facts:
    """Write one version to ``target``. It appears whole or not at all: a temporary file is renamed at the end."""
    partial = target.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    connection = duckdb.connect(str(partial))
    try:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"SET memory_limit = '{settings.memory_limit_bytes}B'")
        facts = write_tables(connection, declaration, version=version, ranking_key=ranking_key, settings=settings, progress=progress)
        meta = {"format": SNAPSHOT_FORMAT, "version": version, "source_id": declaration.dataset.id, "text": text}
        connection.execute(f"CREATE TABLE {META} AS SELECT CAST($1 AS VARCHAR) AS body", [json.dumps(meta)])
        connection.execute("CHECKPOINT")
    except duckdb.Error as error:
        connection.close()
        partial.unlink(missing_ok=True)
        # The owner made this call and sees the engine's own words; nothing of it reaches an analyst.
        raise PreparationError("preparation-failed", f"the engine could not read the source: {error}") from error
    except BaseException:
        connection.close()
        partial.unlink(missing_ok=True)
        raise
    connection.close()
    os.chmod(partial, 0o600)
    with open(partial, "rb") as handle:
        os.fsync(handle.fileno())
    os.replace(partial, target)
    return facts


def write_tables(
    connection: duckdb.DuckDBPyConnection,
    declaration: Declaration,
    *,
    version: int,
    ranking_key: bytes,
    settings: Settings,
    progress: Progress = silent,
) -> Facts:
    """Create every prepared table in the connection's database; public tables first, because their values are facts."""
    total, done = len(declaration.public_tables) + len(declaration.tables), 0
    listed: dict[str, dict[str, list[str | None]]] = {}
    for public in declaration.public_tables:
        progress(public.name, done, total)
        source = _source(connection, declaration, public)
        domains = {column.name: column.domain for column in public.columns}
        connection.execute(f"CREATE TABLE {quoted(public.name)} AS {public_table(public, source, domains, DUCKDB)}")
        listed[public.name] = public_values(connection, public, settings)
        done += 1
    facts = declared_facts(declaration, listed, version=version, settings=settings)
    sources = {table.name: _source(connection, declaration, table) for table in declaration.tables}
    key = ranking_key.hex()
    for table in declaration.tables:
        progress(table.name, done, total)
        select = private_table(table, declaration, sources, facts, DUCKDB)
        # Ranks in order: a plan that keeps few rows of each unit reads few blocks.
        connection.execute(f"CREATE TABLE {quoted(table.name)} AS {select} ORDER BY {RANK}, {UNIT}", {RANKING_KEY: key})
        _check_rows_max(connection, table)
        done += 1
    progress("done", total, total)
    return facts


def _source(connection: duckdb.DuckDBPyConnection, declaration: Declaration, table: TableDecl | PublicDecl) -> SourceTable:
    reader = source_reader(declaration.source_path(table))
    described = connection.execute(f"DESCRIBE SELECT * FROM {reader}").fetchall()
    return SourceTable(reader, {str(row[0]): source_kind(str(row[1])) for row in described})


def public_values(connection: duckdb.DuckDBPyConnection, public: PublicDecl, settings: Settings) -> dict[str, list[str | None]]:
    values: dict[str, list[str | None]] = {}
    for column in public.columns:
        if isinstance(column.domain, TextDomain):
            limit = settings.values_per_column_max + 1
            rows = connection.execute(f"SELECT DISTINCT {quoted(column.name)} FROM {quoted(public.name)} LIMIT {limit}").fetchall()
            values[column.name] = [row[0] for row in rows]
    return values


def _check_rows_max(connection: duckdb.DuckDBPyConnection, table: TableDecl) -> None:
    if connection.execute(f"SELECT COUNT(*) FROM {quoted(table.name)}").fetchall()[0][0] > table.rows_max:
        raise PreparationError("rows-max", f"table {table.name!r} has more rows than its declared rows_max", hint="raise rows_max")
