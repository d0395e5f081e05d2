"""DuckDB: the only module that imports it for protected data.

A version is one DuckDB file. It is written by ``prepare_snapshot`` (owner's act, may read source files) and read by ``DuckDBSnapshot``:
read-only, no file or network access, no extensions, no Python objects, configuration locked, one statement at a time.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from lapwing.catalog import Declaration, PublicDecl, Settings, TableDecl, parse
from lapwing.catalog.facts import facts as declared_facts
from lapwing.engines.arrow import exact_table
from lapwing.engines.base import Progress, silent
from lapwing.engines.prepare import SNAPSHOT_FORMAT, SourceTable, private_table, public_table
from lapwing.engines.render.dialect import quoted
from lapwing.engines.render.duckdb import DUCKDB
from lapwing.engines.render.queries import RenderedQuery, render_plan
from lapwing.engines.sources import source_reader
from lapwing.errors import Incident, PreparationError
from lapwing.kernel.certify import Certified
from lapwing.kernel.domains import TextDomain
from lapwing.kernel.exact import Exact, ExactTable
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
    public_values: dict[str, dict[str, list[str | None]]] = {}
    for public in declaration.public_tables:
        progress(public.name, done, total)
        source = _source(connection, declaration, public)
        domains = {column.name: column.domain for column in public.columns}
        connection.execute(f"CREATE TABLE {quoted(public.name)} AS {public_table(public, source, domains, DUCKDB)}")
        public_values[public.name] = _public_values(connection, public, settings)
        done += 1
    facts = declared_facts(declaration, public_values, version=version, settings=settings)
    sources = {table.name: _source(connection, declaration, table) for table in declaration.tables}
    key = ranking_key.hex()
    for table in declaration.tables:
        progress(table.name, done, total)
        select = private_table(table, declaration, sources, facts, DUCKDB)
        connection.execute(f"CREATE TABLE {quoted(table.name)} AS {select}", [key])
        _check_rows_max(connection, table)
        done += 1
    progress("done", total, total)
    return facts


def _source(connection: duckdb.DuckDBPyConnection, declaration: Declaration, table: TableDecl | PublicDecl) -> SourceTable:
    reader = source_reader(declaration.source_path(table))
    described = connection.execute(f"DESCRIBE SELECT * FROM {reader}").fetchall()
    return SourceTable(reader, {str(row[0]): str(row[1]).split("(")[0] for row in described})


def _public_values(connection: duckdb.DuckDBPyConnection, public: PublicDecl, settings: Settings) -> dict[str, list[str | None]]:
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


class DuckDBSnapshot:
    """One prepared version, opened read-only and locked down."""

    def __init__(self, path: Path, *, ranking_key: bytes, settings: Settings | None = None) -> None:
        settings = settings or Settings()
        connection = _locked_connection(path, settings)
        try:
            facts = _stored_facts(connection, settings)
        except BaseException:
            connection.close()
            raise
        self._start(connection, facts, ranking_key, settings)

    def _start(self, connection: duckdb.DuckDBPyConnection, facts: Facts, ranking_key: bytes, settings: Settings) -> None:
        self._connection = connection
        self._facts = facts
        self._salt = group_salt(ranking_key)
        self._settings = settings
        self._lock = threading.Lock()

    @classmethod
    def in_memory(cls, declaration: Declaration, *, version: int, ranking_key: bytes, settings: Settings | None = None) -> DuckDBSnapshot:
        """Prepare into memory and open at once: for tests and small data; nothing is written to disk."""
        settings = settings or Settings()
        connection = duckdb.connect(config={"threads": "1"})
        connection.execute("SET TimeZone = 'UTC'")
        facts = write_tables(connection, declaration, version=version, ranking_key=ranking_key, settings=settings)
        _lock_down(connection)
        snapshot = cls.__new__(cls)
        snapshot._start(connection, facts, ranking_key, settings)
        return snapshot

    @property
    def facts(self) -> Facts:
        """The public facts of this version, from the declaration stored in it."""
        return self._facts

    def check(self, certified: Certified) -> None:
        """Refuse what cannot be run, before anything is charged: a plan of another version, or one that cannot be rendered."""
        self._rendered(certified)

    def _rendered(self, certified: Certified) -> tuple[RenderedQuery, ...]:
        if certified.facts != self._facts:
            raise PreparationError("version-mismatch", "the plan was certified for another version")
        return render_plan(certified, DUCKDB)

    def run(self, certified: Certified) -> Exact:
        """Run every query of the plan; any fault of the engine becomes the one opaque Incident."""
        rendered = self._rendered(certified)
        timer = threading.Timer(self._settings.query_timeout_seconds, self._connection.interrupt)
        failed = False
        tables: list[ExactTable] = []
        with self._lock:
            timer.start()
            try:
                tables = [self._table(query) for query in rendered]
            except Exception:  # no detail may leave: the text of an engine error can carry a value
                failed = True
            finally:
                timer.cancel()
        if failed:
            raise Incident()
        return Exact(tables, digest=certified.digest)

    def _table(self, query: RenderedQuery) -> ExactTable:
        parameters = [self._salt] if query.salted else []

        def run(sql: str) -> pa.Table:
            return self._connection.sql(sql, params=parameters if sql == query.sql else []).to_arrow_table()

        return exact_table(run, query)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def group_salt(ranking_key: bytes) -> str:
    """The secret by which Grouped chooses groups; derived, so that the ranking key itself never reaches a query."""
    return hmac.new(ranking_key, b"lapwing group choice", hashlib.sha256).hexdigest()


def _locked_connection(path: Path, settings: Settings) -> duckdb.DuckDBPyConnection:
    config: Mapping[str, str] = {
        "memory_limit": f"{settings.memory_limit_bytes}B",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "python_enable_replacements": "false",
    }
    try:
        connection = duckdb.connect(str(path), read_only=True, config=dict(config))
    except duckdb.Error as error:
        raise PreparationError("snapshot-unreadable", "the snapshot cannot be opened", hint="prepare the data set again") from error
    # Two connections of one process to one file share a database, and so a configuration that is already locked.
    if not connection.execute("SELECT current_setting('lock_configuration')").fetchall()[0][0]:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET enable_progress_bar = false")
        _lock_down(connection)
    return connection


def _lock_down(connection: duckdb.DuckDBPyConnection) -> None:
    # DuckDB 2.0.0 cannot bind some expressions where its statistics show that a column is all NULL: whether a statement runs would then
    # depend on the rows. Without statistics propagation no plan depends on them.
    connection.execute("SET disabled_optimizers = 'statistics_propagation'")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _stored_meta(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    try:
        rows = connection.execute(f"SELECT body FROM {META}").fetchall()
    except duckdb.Error as error:
        raise PreparationError("snapshot-unreadable", "the file is not a snapshot", hint="prepare the data set again") from error
    meta: dict[str, Any] = json.loads(rows[0][0]) if rows else {}
    if meta.get("format") != SNAPSHOT_FORMAT:
        raise PreparationError("snapshot-format", "the snapshot has another format version", hint="prepare the data set again")
    return meta


def stored_text(path: Path, settings: Settings) -> str:
    """The catalogue text a version was prepared with."""
    connection = _locked_connection(path, settings)
    try:
        return str(_stored_meta(connection)["text"])
    finally:
        connection.close()


def _stored_facts(connection: duckdb.DuckDBPyConnection, settings: Settings) -> Facts:
    meta = _stored_meta(connection)
    declaration = parse(meta["text"], settings=settings)
    values = {public.name: _public_values(connection, public, settings) for public in declaration.public_tables}
    return declared_facts(declaration, values, version=int(meta["version"]), settings=settings)
