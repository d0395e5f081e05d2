"""Writing versions on PostgreSQL: the owner's act. A version is a schema of its own, written in one transaction."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from typing import Any

from lapwing.catalog import Declaration, Preparation, PublicDecl, Settings, TableDecl
from lapwing.catalog.facts import facts as declared_facts
from lapwing.engines.base import Progress, silent
from lapwing.engines.postgres.session import Connection, ask, transaction
from lapwing.engines.postgres.sources import source_table
from lapwing.engines.prepare import SNAPSHOT_FORMAT, private_table, public_table
from lapwing.engines.render.dialect import Dialect, quoted
from lapwing.engines.render.postgres import POSTGRES
from lapwing.engines.render.relations import RANK, UNIT
from lapwing.errors import PreparationError
from lapwing.kernel.domains import TextDomain
from lapwing.kernel.facts import Facts

META = "_lapwing"
"""Name of the table in a version that says what it is."""
_SLUG_CHARACTERS_MAX = 36


def schema_prefix(source_id: str) -> str:
    """What the names of all versions of a data set start with. The digest keeps apart ids that differ in signs no name can have."""
    slug = re.sub(r"[^a-z0-9]+", "_", source_id)[:_SLUG_CHARACTERS_MAX]
    return f"lapwing_{slug}_{hashlib.sha256(source_id.encode()).hexdigest()[:6]}_v"


def schema_name(source_id: str, version: int) -> str:
    """The schema of one version."""
    return f"{schema_prefix(source_id)}{version:06d}"


def in_schema(schema: str) -> Dialect:
    """The dialect whose tables are those of one version."""
    return replace(POSTGRES, table=lambda name: f"{quoted(schema)}.{quoted(name)}")


def prepare_version(
    connection: Connection,
    declaration: Declaration,
    text: str,
    *,
    schema: str,
    version: int,
    ranking_key: bytes,
    reader: str,
    settings: Settings,
    progress: Progress = silent,
) -> Facts:
    """Write one version into a new schema, whole or not at all, and let the role ``reader`` read it."""
    import psycopg

    try:
        with transaction(connection, settings, read_only=False):
            ask(connection, f"CREATE SCHEMA {quoted(schema)}")
            facts = write_tables(
                connection, declaration, schema, version=version, ranking_key=ranking_key, settings=settings, progress=progress
            )
            write_meta(connection, schema, {"version": version, "source_id": declaration.dataset.id, "text": text})
            grant(connection, schema, reader)
        settle(connection, declaration, schema)
    except psycopg.Error as error:
        # The owner made this call and sees the engine's own words; nothing of it reaches an analyst.
        raise PreparationError("preparation-failed", f"the engine could not read the source: {error}") from error
    return facts


def write_meta(connection: Connection, schema: str, meta: dict[str, Any]) -> None:
    """Say what a version is, in the version."""
    body = json.dumps({"format": SNAPSHOT_FORMAT, **meta})
    ask(connection, f"CREATE TABLE {quoted(schema)}.{META} AS SELECT CAST($1 AS TEXT) AS body", [body])


def grant(connection: Connection, schema: str, reader: str) -> None:
    """Let a role read a version, and nothing else of it."""
    ask(connection, f"GRANT USAGE ON SCHEMA {quoted(schema)} TO {quoted(reader)}")
    ask(connection, f"GRANT SELECT ON ALL TABLES IN SCHEMA {quoted(schema)} TO {quoted(reader)}")


def settle(connection: Connection, declaration: Declaration, schema: str) -> None:
    """Mark the rows as visible to all, once, so that no reader has to: a scan of fresh rows would look each of them up."""
    for table in stored_names(declaration):
        ask(connection, f"VACUUM (FREEZE, ANALYZE) {quoted(schema)}.{quoted(table)}")


def stored_names(declaration: Declaration) -> list[str]:
    """Tables whose rows a version holds."""
    private = [table.name for table in declaration.tables] if declaration.dataset.preparation is Preparation.STORED else []
    return [*(public.name for public in declaration.public_tables), *private]


def write_tables(
    connection: Connection,
    declaration: Declaration,
    schema: str,
    *,
    version: int,
    ranking_key: bytes,
    settings: Settings,
    progress: Progress = silent,
) -> Facts:
    """Create every prepared table in the schema; public tables first, because their values are facts."""
    total, done = len(declaration.public_tables) + len(declaration.tables), 0
    dialect = in_schema(schema)
    listed: dict[str, dict[str, list[str | None]]] = {}
    for public in declaration.public_tables:
        progress(public.name, done, total)
        source = source_table(connection, declaration, public)
        domains = {column.name: column.domain for column in public.columns}
        ask(connection, f"CREATE TABLE {dialect.table(public.name)} AS {public_table(public, source, domains, dialect)}")
        listed[public.name] = public_values(connection, public, schema, settings)
        done += 1
    facts = declared_facts(declaration, listed, version=version, settings=settings)
    sources = {table.name: source_table(connection, declaration, table) for table in declaration.tables}
    for table in declaration.tables:
        progress(table.name, done, total)
        select = private_table(table, declaration, sources, facts, dialect)
        if declaration.dataset.preparation is Preparation.STORED:
            create = f"CREATE TABLE {dialect.table(table.name)} AS {select} ORDER BY {RANK}, {UNIT}"
            ask(connection, create, [ranking_key.hex(), ""])
            _check_rows_max(connection, table, schema)
        done += 1
    progress("done", total, total)
    return facts


def public_values(connection: Connection, public: PublicDecl, schema: str, settings: Settings) -> dict[str, list[str | None]]:
    """Values of the text columns of a frozen public table."""
    values: dict[str, list[str | None]] = {}
    for column in public.columns:
        if isinstance(column.domain, TextDomain):
            limit = settings.values_per_column_max + 1
            table = f"{quoted(schema)}.{quoted(public.name)}"
            values[column.name] = [row[0] for row in ask(connection, f"SELECT DISTINCT {quoted(column.name)} FROM {table} LIMIT {limit}")]
    return values


def _check_rows_max(connection: Connection, table: TableDecl, schema: str) -> None:
    if ask(connection, f"SELECT COUNT(*) FROM {quoted(schema)}.{quoted(table.name)}")[0][0] > table.rows_max:
        raise PreparationError("rows-max", f"table {table.name!r} has more rows than its declared rows_max", hint="raise rows_max")
