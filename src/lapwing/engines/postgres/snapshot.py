"""Reading versions on PostgreSQL: one read-only transaction per plan, one snapshot for all of its statements, settings fixed."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lapwing.catalog import Declaration, Preparation, Settings, parse
from lapwing.catalog.blocks import PreparedBlocks
from lapwing.catalog.facts import PLANNING_RULES_UNNUMBERED
from lapwing.catalog.facts import facts as declared_facts
from lapwing.engines.arrow import exact_table
from lapwing.engines.block_rows import require_as_opened
from lapwing.engines.postgres.constraints import require_granted, require_unique_keys
from lapwing.engines.postgres.prepare import META, in_schema, public_values
from lapwing.engines.postgres.results import arrow_table
from lapwing.engines.postgres.session import Connection, ask, connect, transaction
from lapwing.engines.postgres.sources import source_table
from lapwing.engines.prepare import SNAPSHOT_FORMAT, SourceTable, number_types_value, private_table
from lapwing.engines.public_rows import public_rows
from lapwing.engines.salts import group_salt
from lapwing.errors import Incident, PreparationError
from lapwing.kernel.certify import Certified
from lapwing.kernel.exact import Exact, ExactTable
from lapwing.kernel.expressions import Value
from lapwing.kernel.facts import Facts
from lapwing.render.dialect import Dialect, quoted
from lapwing.render.queries import RenderedQuery, render_plan


class PostgresSnapshot:
    """One prepared version, read in transactions that can change nothing."""

    def __init__(self, conninfo: str, schema: str, *, ranking_key: bytes, settings: Settings) -> None:
        self._conninfo, self._schema, self._settings = conninfo, schema, settings
        self._key, self._salt = ranking_key.hex(), group_salt(ranking_key)
        self._lock = threading.Lock()
        self._connection: Connection | None = connect(conninfo)
        try:
            with transaction(self._connection, settings, read_only=True) as connection:
                meta = stored_meta(connection, schema)
                self.declaration = parse(meta["text"], settings=settings)
                values = {public.name: public_values(connection, public, schema, settings) for public in self.declaration.public_tables}
                numbers = number_types_value(meta.get("numbers"))
                self._blocks = PreparedBlocks.of(meta.get("blocks"))
                self._facts = declared_facts(
                    self.declaration,
                    values,
                    version=int(meta["version"]),
                    settings=settings,
                    numbers=numbers,
                    rules=meta.get("rules", PLANNING_RULES_UNNUMBERED),
                    prepared=self._blocks,
                )
                self._sources = self._read_sources(connection)
        except BaseException:
            self.close()
            raise
        self._dialect = self._with_tables(self._sources)

    @property
    def facts(self) -> Facts:
        """The public facts of this version, from the declaration stored in it."""
        return self._facts

    @property
    def dialect(self) -> Dialect:
        """The dialect in which a plan is rendered for this version."""
        return self._dialect

    def _read_sources(self, connection: Connection) -> Mapping[str, SourceTable] | None:
        """The sources, if every question reads them; None if it reads prepared rows."""
        if self.declaration.dataset.preparation is Preparation.STORED:
            return None
        sources = {table.name: source_table(connection, self.declaration, table) for table in self.declaration.tables}
        require_unique_keys(connection, self.declaration, sources)
        require_granted(connection, self.declaration)
        return sources

    def _with_tables(self, sources: Mapping[str, SourceTable] | None) -> Dialect:
        stored = in_schema(self._schema)
        if sources is None:
            return stored
        virtual = {
            table.name: f"({private_table(table, self.declaration, sources, self._facts, stored)})" for table in self.declaration.tables
        }
        return replace(stored, table=lambda name: virtual.get(name) or stored.table(name))

    def check(self, certified: Certified) -> None:
        """Refuse what cannot be run, before anything is charged: a plan of another version or of one that is gone, one that cannot be
        rendered, blocks of time that have other rows now, or sources that are not what they were or may not be read any more. Depends on no
        row.
        """
        self._rendered(certified)
        with self._lock:
            self._require_version(certified, again=True)

    def _require_version(self, certified: Certified, *, again: bool) -> None:
        import psycopg

        try:
            with transaction(self._connected(), self._settings, read_only=True) as connection:
                self._require_blocks(certified, stored_meta(connection, self._schema))
                if self._read_sources(connection) != self._sources:
                    raise PreparationError("snapshot-outdated", "the source has other columns than when the version was opened")
        except psycopg.Error as error:
            self._drop()
            if not again:
                raise PreparationError("engine-unreachable", "the server does not answer") from error
            # The connection may have been lost since it was last used.
            self._require_version(certified, again=False)

    def _require_blocks(self, certified: Certified, meta: Mapping[str, Any]) -> None:
        if self._blocks is not None:
            require_as_opened(certified, self._blocks, PreparedBlocks.of(meta.get("blocks")))

    def _rendered(self, certified: Certified) -> tuple[RenderedQuery, ...]:
        if certified.facts != self._facts:
            raise PreparationError("version-mismatch", "the plan was certified for another version")
        return render_plan(certified, self._dialect)

    def run(self, certified: Certified) -> Exact:
        """Run every query of the plan in one snapshot of the database; any fault of the engine becomes the one opaque Incident."""
        rendered = self._rendered(certified)
        tables: list[ExactTable] | None = None
        with self._lock:
            try:
                tables = self._tables(certified, rendered)
            except Exception:  # no detail may leave: the text of an engine error can carry a value
                self._drop()
        if tables is None:
            raise Incident()
        return Exact(tables, certified=certified)

    def _tables(self, certified: Certified, rendered: tuple[RenderedQuery, ...]) -> list[ExactTable]:
        with transaction(self._connected(), self._settings, read_only=True) as connection:
            # First, so that the lock is held until the end of the transaction: no other version can replace this one meanwhile.
            self._require_blocks(certified, stored_meta(connection, self._schema))
            if self._read_sources(connection) != self._sources:
                # The statements were written for other types; one could raise on a row.
                raise TypeError("the source is not what it was when the version was opened")

            def run(sql: str) -> pa.Table:
                return arrow_table(connection, sql, ranking_key=self._key, salt=self._salt)

            return [exact_table(run, query) for query in rendered]

    def public_rows(self, table: str) -> Mapping[str, Sequence[Value]] | None:
        """The rows of a frozen public table, by column; None where they are too many to be read."""

        def run(sql: str) -> pa.Table:
            with transaction(self._connected(), self._settings, read_only=True) as connection:
                return arrow_table(connection, sql, ranking_key=self._key, salt=self._salt)

        with self._lock:
            return public_rows(run, table, self._facts.public_table(table), self._dialect)

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = connect(self._conninfo)
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(Exception):
                self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Give up the connection."""
        self._drop()


def stored_meta(connection: Connection, schema: str) -> dict[str, Any]:
    """A version's metadata."""
    import psycopg

    try:
        rows = ask(connection, f"SELECT body FROM {quoted(schema)}.{META}")
    except psycopg.Error as error:
        hint = "prepare the data set again, or grant the reading role what preparation grants"
        raise PreparationError("snapshot-unreadable", "the version cannot be read", hint=hint) from error
    meta: dict[str, Any] = json.loads(rows[0][0]) if rows else {}
    if meta.get("format") != SNAPSHOT_FORMAT:
        raise PreparationError("snapshot-format", "the snapshot has another format version", hint="prepare the data set again")
    return meta


def prepared_declaration(connection: Connection, schema: str, settings: Settings) -> Declaration:
    """The declaration a version was prepared with."""
    return parse(stored_meta(connection, schema)["text"], settings=settings)
