"""Virtual versions with DuckDB: Parquet files are read where they are, by every question, and nothing is copied.

A version is about the files as they were when it was prepared, which ran its definition over every row once: a row that the engine cannot
read stops the owner then, and no question later. Files that arrive later are not part of it. Where a file of the version is gone or was
written again, every question is refused, whatever it asks and before it is charged. Each plan runs in a database of its own, in memory,
that can open those files, the version (public tables) and nothing else; files that change while a plan reads them end it as the one opaque
Incident.
"""

from __future__ import annotations

import glob
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa

from lapwing.catalog import Declaration, Settings
from lapwing.engines.arrow import exact_table
from lapwing.engines.duckdb.files import Listing, are_unchanged
from lapwing.engines.duckdb.prepare import require_parquet
from lapwing.engines.duckdb.session import begin_session
from lapwing.engines.duckdb.snapshot import DISABLED_OPTIMIZERS
from lapwing.engines.duckdb.sources import reader
from lapwing.engines.prepare import SourceTable, private_table
from lapwing.engines.public_rows import public_rows
from lapwing.engines.salts import group_salt
from lapwing.errors import Incident, PreparationError
from lapwing.kernel.certify import Certified
from lapwing.kernel.exact import Exact, ExactTable
from lapwing.kernel.expressions import Value
from lapwing.kernel.facts import Facts
from lapwing.render.dialect import GROUP_SALT, RANKING_KEY, Dialect, quoted, standard_text_literal
from lapwing.render.duckdb import DUCKDB
from lapwing.render.queries import RenderedQuery, render_plan

_VERSION = "_lapwing_version"


class VirtualDuckDBSnapshot:
    """One virtual version, opened for reading. Rows are cleaned, ranked and capped by every statement, by the same definition."""

    def __init__(
        self, path: Path, declaration: Declaration, facts: Facts, listing: Listing, *, ranking_key: bytes, settings: Settings
    ) -> None:
        """``declaration`` and ``listing`` are what the version was prepared with; the former knows the directory of the catalogue."""
        self._path, self._declaration, self._facts, self._settings = path, declaration, facts, settings
        self._parameters = {RANKING_KEY: ranking_key.hex(), GROUP_SALT: group_salt(ranking_key)}
        self._lock = threading.Lock()
        for table in declaration.tables:
            require_parquet(declaration, table)
        self._listing = listing
        self._sources = {
            table.name: SourceTable(reader(table, listing[table.name].paths, listing[table.name].kinds), listing[table.name].kinds)
            for table in declaration.tables
        }

    @property
    def facts(self) -> Facts:
        """The public facts of this version, from the declaration stored in it."""
        return self._facts

    def check(self, certified: Certified) -> None:
        """Refuse what cannot be run, before anything is charged: other files, a plan of another version, or one that cannot be rendered."""
        self._require_files()
        self._rendered(certified)

    def _require_files(self) -> None:
        if not self._path.exists() or not are_unchanged(self._listing):
            raise PreparationError("snapshot-outdated", "a file of this version was changed or taken away", hint="run prepare")

    def _rendered(self, certified: Certified) -> tuple[RenderedQuery, ...]:
        if certified.facts != self._facts:
            raise PreparationError("version-mismatch", "the plan was certified for another version")
        return render_plan(certified, self._dialect(self._sources))

    def _dialect(self, sources: Mapping[str, SourceTable]) -> Dialect:
        tables = {
            table.name: f"({private_table(table, self._declaration, sources, self._facts, DUCKDB)})" for table in self._declaration.tables
        }
        return replace(DUCKDB, table=lambda name: tables.get(name) or f"{_VERSION}.{quoted(name)}")

    def run(self, certified: Certified) -> Exact:
        """Run every query of the plan over files that do not change meanwhile; any fault becomes the one opaque Incident."""
        rendered = self._rendered(certified)
        tables: list[ExactTable] | None = None
        with self._lock:
            try:
                tables = self._tables(rendered)
            except Exception:  # no detail may leave: the text of an engine error can carry a value
                tables = None
        if tables is None:
            raise Incident()
        return Exact(tables, certified=certified)

    def _tables(self, rendered: tuple[RenderedQuery, ...]) -> list[ExactTable]:
        connection = self._connect()
        timer = threading.Timer(self._settings.query_timeout_seconds, connection.interrupt)
        timer.start()
        try:
            tables = [exact_table(lambda sql: self._run(connection, sql), query) for query in rendered]
        finally:
            timer.cancel()
            connection.close()
        if not are_unchanged(self._listing):
            raise OSError("a file changed since the version was prepared")
        return tables

    def _run(self, connection: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
        (statement,) = connection.extract_statements(sql)
        used = {name: value for name, value in self._parameters.items() if name in statement.named_parameters}
        return connection.sql(sql, params=used).to_arrow_table()

    def _connect(self) -> duckdb.DuckDBPyConnection:
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": f"{self._settings.memory_limit_bytes}B",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "python_enable_replacements": "false",
        }
        connection = duckdb.connect(":memory:", config=config)
        try:
            begin_session(connection)
            # The order of a result means nothing, and keeping it costs memory that a ranking of all rows needs.
            connection.execute("SET preserve_insertion_order = false")
            connection.execute(f"ATTACH {standard_text_literal(str(self._path))} AS {_VERSION} (READ_ONLY)")
            # Whether a statement runs must not depend on the rows: see ``snapshot``.
            connection.execute(f"SET disabled_optimizers = '{DISABLED_OPTIMIZERS}'")
            paths = [path for table in self._listing.values() for path in table.paths]
            # a file is asked for by its name with the signs of patterns escaped, and opened by its name
            allowed = ", ".join(standard_text_literal(path) for path in dict.fromkeys([*paths, *map(glob.escape, paths)]))
            connection.execute(f"SET allowed_paths = [{allowed}]")
            # what does not fit into memory goes where a stored version's would
            connection.execute(f"SET temp_directory = {standard_text_literal(f'{self._path}.tmp')}")
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
        except BaseException:
            connection.close()
            raise
        return connection

    def public_rows(self, table: str) -> Mapping[str, Sequence[Value]] | None:
        """The rows of a frozen public table, by column; None where they are too many to be read."""

        def run(sql: str) -> pa.Table:
            connection = self._connect()
            try:
                return connection.sql(sql).to_arrow_table()
            finally:
                connection.close()

        return public_rows(run, table, self._facts.public_table(table), self._dialect(self._sources))

    def close(self) -> None:
        """Nothing is held open between plans."""
