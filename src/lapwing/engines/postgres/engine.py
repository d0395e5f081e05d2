"""PostgreSQL as an engine: one schema for each version, beside the owner's tables; one role that prepares, another that reads."""

from __future__ import annotations

import os
import re

from lapwing.catalog import Declaration, Preparation, Settings
from lapwing.catalog.blocks import PreparedBlocks
from lapwing.engines.base import BlockWrite, Progress, Snapshot
from lapwing.engines.losses import Witness
from lapwing.engines.postgres.append import append_version
from lapwing.engines.postgres.block_writing import rows_more, write_version_blocks
from lapwing.engines.postgres.prepare import prepare_version, schema_name, schema_prefix
from lapwing.engines.postgres.session import OWNER_VARIABLE, Connection, ask, connect, merged, transaction
from lapwing.engines.postgres.snapshot import PostgresSnapshot, prepared_declaration, stored_meta
from lapwing.engines.postgres.sources import relation_marks, source_name
from lapwing.errors import PreparationError
from lapwing.render.dialect import quoted

READER_VARIABLE = "LAPWING_POSTGRES_READER"
"""Environment variable: ``any`` lets a role answer that could read or change more than a version."""


class PostgresEngine:
    """The versions of one data set as schemas ``lapwing_<id>_v000001``; each is written whole or not at all.

    Pre: ``connection`` of the catalogue leads to the database as the role that answers. Preparing and retiring are done as that role too,
    unless ``owner`` (or the environment) says how the connection of the owner differs.
    """

    def __init__(self, declaration: Declaration, settings: Settings, *, owner: str | None = None, any_reader: bool | None = None) -> None:
        self._source_id = declaration.dataset.id
        self._conninfo = declaration.dataset.connection
        self._settings = settings
        self._owner = os.environ.get(OWNER_VARIABLE, "") if owner is None else owner
        self._any_reader = os.environ.get(READER_VARIABLE) == "any" if any_reader is None else any_reader
        self._reading: Connection | None = None

    def _reader(self) -> Connection:
        if self._reading is None or self._reading.closed:
            self._reading = connect(self._conninfo)
        return self._reading

    def versions(self) -> tuple[int, ...]:
        """Numbers of the versions that exist, oldest first."""
        with transaction(self._reader(), self._settings, read_only=True) as connection:
            names = [str(row[0]) for row in ask(connection, "SELECT nspname FROM pg_namespace ORDER BY nspname")]
        matches = (re.fullmatch(re.escape(schema_prefix(self._source_id)) + r"(\d{6,})", name) for name in names)
        return tuple(sorted(int(match.group(1)) for match in matches if match))

    def prepare(
        self,
        declaration: Declaration,
        text: str,
        *,
        version: int,
        ranking_key: bytes,
        progress: Progress,
        append_to: int | None = None,
        blocks: PreparedBlocks | None = None,
        witness: Witness | None = None,
    ) -> None:
        """Write one version as the owner, and let the role that answers read it; with ``append_to``, instead of that version. One with
        blocks of time is written from nothing.
        """
        reader = str(ask(self._reader(), "SELECT current_user")[0][0])
        schema, settings = schema_name(self._source_id, version), self._settings
        appends = append_to is not None and blocks is None and declaration.dataset.preparation is Preparation.STORED
        with self._as_owner() as connection:
            if not appends or append_to is None:
                prepare_version(
                    connection,
                    declaration,
                    text,
                    schema=schema,
                    version=version,
                    ranking_key=ranking_key,
                    reader=reader,
                    settings=settings,
                    progress=progress,
                    blocks=blocks,
                    witness=witness,
                )
                return
            self._require(append_to)
            append_version(
                connection,
                declaration,
                text,
                older=schema_name(self._source_id, append_to),
                schema=schema,
                version=version,
                ranking_key=ranking_key,
                reader=reader,
                settings=settings,
                progress=progress,
            )

    def prepared_blocks(self, version: int) -> PreparedBlocks | None:
        """The blocks of time whose rows a version holds; None of a version without blocks."""
        with transaction(self._reader(), self._settings, read_only=True) as connection:
            return PreparedBlocks.of(stored_meta(connection, schema_name(self._source_id, version)).get("blocks"))

    def write_blocks(self, version: int, write: BlockWrite) -> None:
        """Write blocks of time of a version as the owner; the version then holds the blocks ``write.after``."""
        self._require(version)
        with self._as_owner() as connection:
            write_version_blocks(connection, write, schema=schema_name(self._source_id, version), settings=self._settings)

    def late_rows(self, declaration: Declaration, version: int) -> dict[str, int]:
        """How many more rows than were read the sources have now in the blocks that the version holds, by table: exact, for the owner."""
        self._require(version)
        with self._as_owner() as connection:
            return rows_more(connection, declaration, schema=schema_name(self._source_id, version), settings=self._settings)

    def open(self, version: int, *, ranking_key: bytes) -> Snapshot:
        """Open a version for reading, as a role that can read nothing else of the data set."""
        schema = schema_name(self._source_id, version)
        if not self._any_reader:
            with transaction(self._reader(), self._settings, read_only=True) as connection:
                require_restricted(connection, prepared_declaration(connection, schema, self._settings))
        return PostgresSnapshot(self._conninfo, schema, ranking_key=ranking_key, settings=self._settings)

    def source_marks(self, declaration: Declaration) -> dict[str, frozenset[str]]:
        """Server, database and table, by the numbers the server itself has for them; with the parts and the sources of a table."""
        names = {table.name: source_name(declaration.source_path(table)) for table in declaration.all_tables}
        with self._as_owner() as connection:
            return {table: relation_marks(connection, name) for table, name in names.items()}

    def stored_text(self, version: int) -> str:
        """The catalogue text a version was prepared with."""
        with transaction(self._reader(), self._settings, read_only=True) as connection:
            return str(stored_meta(connection, schema_name(self._source_id, version))["text"])

    def retire(self, version: int) -> None:
        """Delete the rows of a version. Waits for plans that read it."""
        self._require(version)
        with self._as_owner() as connection:
            ask(connection, f"DROP SCHEMA {quoted(schema_name(self._source_id, version))} CASCADE")

    def _require(self, version: int) -> None:
        if version not in self.versions():
            raise PreparationError("no-such-version", f"there is no version {version}")

    def _as_owner(self) -> Connection:
        return connect(merged(self._conninfo, self._owner))

    def close(self) -> None:
        """Give up the connection."""
        if self._reading is not None:
            self._reading.close()
            self._reading = None


def require_restricted(connection: Connection, declaration: Declaration) -> None:
    """Refuse a role with more rights than needed: a superuser, or a role that can read (or, if nothing is copied, owns) a source.

    No statement of an analyst reaches the server, so this is a second line of defence: a mistake in a statement of ours then finds nothing
    to read.
    """
    hint = f"connect as a role that may read the version only, or set {READER_VARIABLE}=any to answer as this one"
    if ask(connection, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") == [(True,)]:
        raise PreparationError("engine-role", "questions are not answered as a superuser", hint=hint)
    for table in declaration.tables:
        name = source_name(declaration.source_path(table))
        if declaration.dataset.preparation is Preparation.STORED:
            able = "has_any_column_privilege(c.oid, 'SELECT')"
        else:
            able = "pg_has_role(c.relowner, 'MEMBER')"
        answer = ask(
            connection,
            f"SELECT {able} FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2",
            [name.schema, name.table],
        )
        if answer == [(True,)]:
            message = f"questions are not answered as a role that can read or owns the source of {table.name!r}"
            raise PreparationError("engine-role", message, hint=hint)
