"""Reading versions with DuckDB: read-only, no file or network access, no extensions, no Python objects, configuration locked."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from lapwing.catalog import Declaration, Settings, parse
from lapwing.catalog.blocks import PreparedBlocks
from lapwing.catalog.facts import PLANNING_RULES_UNNUMBERED
from lapwing.catalog.facts import facts as declared_facts
from lapwing.engines.arrow import exact_table
from lapwing.engines.block_rows import require_as_opened
from lapwing.engines.duckdb.block_files import BlockIndex, blocks_folder, folders_allowed, read_index, rows_of_blocks
from lapwing.engines.duckdb.files import Listing, listing_value
from lapwing.engines.duckdb.prepare import META, public_values, write_tables
from lapwing.engines.duckdb.session import begin_session
from lapwing.engines.prepare import SNAPSHOT_FORMAT, number_types_value
from lapwing.engines.public_rows import public_rows
from lapwing.engines.salts import group_salt
from lapwing.errors import Incident, PreparationError
from lapwing.kernel.certify import Certified
from lapwing.kernel.exact import Exact, ExactTable
from lapwing.kernel.expressions import Value
from lapwing.kernel.facts import Facts
from lapwing.render.dialect import GROUP_SALT, standard_text_literal
from lapwing.render.duckdb import DUCKDB
from lapwing.render.queries import RenderedQuery, render_plan

DISABLED_OPTIMIZERS = "statistics_propagation,top_n_window_elimination"
"""What DuckDB 2.0.0 must not do to a statement over protected rows: whether it runs would depend on them.

It cannot bind some expressions where its statistics show that a column is all NULL. And it turns "the first k rows of each unit" into an
aggregate that takes much more memory and does not go to disk: on 10^6 rows with k = 5,000 it failed with 400 MB, where the window needs
less than 250.
"""


class DuckDBSnapshot:
    """One prepared version, opened read-only and locked down."""

    def __init__(self, path: Path, *, ranking_key: bytes, settings: Settings | None = None) -> None:
        settings = settings or Settings()
        connection = _locked_connection(path, settings)
        folder, index = blocks_folder(path), None
        try:
            meta = _stored_meta(connection)
            if meta.get("block_files"):
                index = read_index(folder)
            facts = _stored_facts(connection, meta, settings, None if index is None else index.prepared)
        except BaseException:
            connection.close()
            raise
        self._start(connection, facts, ranking_key, settings, folder, index)

    def _start(
        self,
        connection: duckdb.DuckDBPyConnection,
        facts: Facts,
        ranking_key: bytes,
        settings: Settings,
        folder: Path | None = None,
        index: BlockIndex | None = None,
    ) -> None:
        self._connection = connection
        self._facts = facts
        self._folder, self._index = folder, index
        self._dialect = DUCKDB if folder is None or index is None else replace(DUCKDB, blocks=rows_of_blocks(folder, index))
        self._salt = group_salt(ranking_key)
        self._settings = settings
        self._lock = threading.Lock()

    @classmethod
    def in_memory(cls, declaration: Declaration, *, version: int, ranking_key: bytes, settings: Settings | None = None) -> DuckDBSnapshot:
        """Prepare into memory and open at once: for tests and small data; nothing is written to disk."""
        settings = settings or Settings()
        connection = duckdb.connect(config={"threads": "1"})
        begin_session(connection)
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
        """Refuse a plan that cannot be run, before anything is charged: a plan of another version, one that cannot be rendered, or one that
        reads blocks of time which have other rows now.
        """
        self._rendered(certified)
        if self._folder is not None and self._index is not None:
            require_as_opened(certified, self._index.prepared, read_index(self._folder).prepared)

    def _rendered(self, certified: Certified) -> tuple[RenderedQuery, ...]:
        if certified.facts != self._facts:
            raise PreparationError("version-mismatch", "the plan was certified for another version")
        return render_plan(certified, self._dialect)

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
        return Exact(tables, certified=certified)

    def _table(self, query: RenderedQuery) -> ExactTable:
        salted = {GROUP_SALT: self._salt} if query.salted else {}

        def run(sql: str) -> pa.Table:
            return self._connection.sql(sql, params=salted if sql == query.sql else {}).to_arrow_table()

        return exact_table(run, query)

    def public_rows(self, table: str) -> Mapping[str, Sequence[Value]] | None:
        """The rows of a frozen public table, by column; None where they are too many to be read."""
        with self._lock:
            return public_rows(lambda sql: self._connection.sql(sql).to_arrow_table(), table, self._facts.public_table(table), DUCKDB)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


_locking_down = threading.Lock()


def _locked_connection(path: Path, settings: Settings) -> duckdb.DuckDBPyConnection:
    config: Mapping[str, str] = {
        "custom_user_agent": _identity(path),
        "memory_limit": f"{settings.memory_limit_bytes}B",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "python_enable_replacements": "false",
    }
    # Two connections of one process to one file share a database, and so a configuration that is already locked: one thread at a time.
    with _locking_down:
        try:
            connection = duckdb.connect(str(path), read_only=True, config=dict(config))
        except duckdb.ConnectionException as error:
            message = "this process still holds another file of this name open, or this one with other settings"
            raise PreparationError(
                "snapshot-unreadable", message, hint="close what was opened before, or start the process anew"
            ) from error
        except duckdb.Error as error:
            raise PreparationError("snapshot-unreadable", "the snapshot cannot be opened", hint="prepare the data set again") from error
        if not connection.execute("SELECT current_setting('lock_configuration')").fetchall()[0][0]:
            begin_session(connection)
            _lock_down(connection, folders_allowed(blocks_folder(path)))
    return connection


def _identity(path: Path) -> str:
    """A setting that identifies the file: DuckDB joins a connection to an open database of the same path and settings.

    It compares no more than that, so a file that was replaced would be read as it was before, at the cost of the new one's ledger.
    """
    try:
        found = path.stat()
    except OSError:
        return "none"
    return f"{found.st_dev}-{found.st_ino}-{found.st_mtime_ns}"


def _lock_down(connection: duckdb.DuckDBPyConnection, folders: Sequence[str] = ()) -> None:
    """No file but those of ``folders`` can be opened from here on, and no setting changed."""
    connection.execute(f"SET disabled_optimizers = '{DISABLED_OPTIMIZERS}'")
    connection.execute(f"SET allowed_directories = [{', '.join(map(standard_text_literal, folders))}]")
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


def stored_files(path: Path, settings: Settings) -> Listing:
    """The files that a virtual version was prepared from."""
    connection = _locked_connection(path, settings)
    try:
        return listing_value(_stored_meta(connection)["files"])
    finally:
        connection.close()


def stored_declaration(path: Path, settings: Settings) -> tuple[Declaration, Facts]:
    """What a version was prepared with, and its facts without the blocks that it holds."""
    connection = _locked_connection(path, settings)
    try:
        meta = _stored_meta(connection)
        return parse(meta["text"], settings=settings), _stored_facts(connection, meta, settings, None)
    finally:
        connection.close()


def stored_blocks(path: Path, settings: Settings) -> PreparedBlocks | None:
    """The blocks of time that a version holds, if it can be given more."""
    connection = _locked_connection(path, settings)
    try:
        return read_index(blocks_folder(path)).prepared if _stored_meta(connection).get("block_files") else None
    finally:
        connection.close()


def _stored_facts(
    connection: duckdb.DuckDBPyConnection, meta: Mapping[str, Any], settings: Settings, blocks: PreparedBlocks | None
) -> Facts:
    declaration = parse(meta["text"], settings=settings)
    values = {public.name: public_values(connection, public, settings) for public in declaration.public_tables}
    numbers = number_types_value(meta.get("numbers"))
    rules = meta.get("rules", PLANNING_RULES_UNNUMBERED)
    return declared_facts(
        declaration, values, version=int(meta["version"]), settings=settings, numbers=numbers, rules=rules, prepared=blocks
    )
