"""Writing versions on PostgreSQL: the owner's act. A version is a schema of its own, written in one transaction."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace

from lapwing.catalog import Declaration, Preparation, PublicDecl, Settings, TableDecl
from lapwing.catalog.blocks import PreparedBlocks
from lapwing.catalog.facts import facts as declared_facts
from lapwing.engines.appending import Mark, at_or_before, growing, kinds_of
from lapwing.engines.base import Progress, silent
from lapwing.engines.block_rows import blocks_held, rows_by_block_query, tables_with_blocks
from lapwing.engines.links import require_one_owner_each
from lapwing.engines.losses import Witness, witnessed
from lapwing.engines.postgres.constraints import require_granted, require_unique_keys
from lapwing.engines.postgres.session import OWNER_VARIABLE, Connection, ask, transaction
from lapwing.engines.postgres.sources import number_types, source_table
from lapwing.engines.prepare import (
    SNAPSHOT_FORMAT,
    SourceTable,
    number_types_body,
    private_table,
    public_table,
    require_rows_max,
    rows_max_query,
)
from lapwing.engines.salts import key_check
from lapwing.errors import PreparationError
from lapwing.kernel.domains import Domain, KeyDomain, Kind, TextDomain, kind_of
from lapwing.kernel.facts import Facts
from lapwing.render.dialect import Dialect, quoted
from lapwing.render.postgres import POSTGRES
from lapwing.render.relations import BLOCK, RANK, ROWS, UNIT

META = "_lapwing"
"""Name of the table in a version that says what it is."""
MARKS = "_lapwing_marks"
"""Name of the table that says how far growing sources were read: data, which the role that answers cannot read."""
ROWS_READ = "_lapwing_rows"
"""Name of the table that says how many rows of a source were in each block of time: data too."""
_SLUG_CHARACTERS_MAX = 36
PAGES_PER_RANGE = 32


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
    settled: bool = True,
    blocks: PreparedBlocks | None = None,
    witness: Witness | None = None,
) -> Facts:
    """Write one version into a new schema, whole or not at all, and let the role ``reader`` read it."""
    with owners_words(), transaction(connection, settings, read_only=False):
        ask(connection, f"CREATE SCHEMA {quoted(schema)}")
        facts = write_public_tables(connection, declaration, schema, version=version, settings=settings, progress=progress)
        sources, stored = read_sources(connection, declaration, blocks), declaration.dataset.preparation is Preparation.STORED
        require_one_owner(connection, declaration, sources)
        if not stored:
            require_granted(connection, declaration, reader)
        written = None if blocks is None else (blocks.first, blocks.last)
        witnessed(witness, declaration, sources, facts, POSTGRES, lambda sql: ask(connection, sql), blocks=written)
        growing_tables = [table for table in declaration.tables if table.appended_by and stored]
        marks = {table.name: read_mark(connection, table, sources[table.name])[0] for table in growing_tables}
        for done, table in enumerate(declaration.tables, start=len(declaration.public_tables)):
            progress(table.name, done, len(declaration.public_tables) + len(declaration.tables))
            write_private_table(connection, table, declaration, sources, facts, schema, ranking_key=ranking_key, blocks=blocks)
        write_meta(connection, schema, declaration, text, version=version, ranking_key=ranking_key, marks=marks, facts=facts, blocks=blocks)
        write_rows_read(connection, declaration, sources, facts, schema, blocks)
        grant(connection, schema, reader)
    if settled:
        with owners_words():
            settle(connection, stored_names(declaration), schema)
    progress("done", 1, 1)
    return facts


@contextmanager
def owners_words() -> Iterator[None]:
    """Any fault of the engine is a PreparationError with its words: the owner made this call; nothing of it reaches an analyst."""
    import psycopg

    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        hint = f"prepare as the role that owns the tables: {OWNER_VARIABLE}='user=...' says how its connection differs"
        raise PreparationError("preparation-failed", f"this role may not prepare: {error}", hint=hint) from error
    except psycopg.Error as error:
        raise PreparationError("preparation-failed", f"the engine could not read the source: {error}") from error


def write_meta(
    connection: Connection,
    schema: str,
    declaration: Declaration,
    text: str,
    *,
    version: int,
    ranking_key: bytes,
    marks: Mapping[str, Mark],
    facts: Facts,
    blocks: PreparedBlocks | None = None,
) -> None:
    """Write a version's metadata into it. The metadata on rows (how far growing sources were read) is for the owner only."""
    meta = {
        "format": SNAPSHOT_FORMAT,
        "version": version,
        "source_id": declaration.dataset.id,
        "text": text,
        "numbers": number_types_body(facts),
        "rules": facts.planning_rules,
        "blocks": None if blocks is None else blocks.body(),
    }
    private = {"key_check": key_check(ranking_key), "marks": {name: asdict(mark) for name, mark in marks.items()}}
    for table, body in ((META, meta), (MARKS, private)):
        ask(connection, f"DROP TABLE IF EXISTS {quoted(schema)}.{table}")
        ask(connection, f"CREATE TABLE {quoted(schema)}.{table} AS SELECT CAST($1 AS TEXT) AS body", [json.dumps(body)])


def grant(connection: Connection, schema: str, reader: str) -> None:
    """Let a role read a version, and nothing else of it."""
    ask(connection, f"GRANT USAGE ON SCHEMA {quoted(schema)} TO {quoted(reader)}")
    ask(connection, f"GRANT SELECT ON ALL TABLES IN SCHEMA {quoted(schema)} TO {quoted(reader)}")
    for table in (MARKS, ROWS_READ):
        if ask(connection, "SELECT 1 FROM pg_tables WHERE schemaname = $1 AND tablename = $2", [schema, table]):
            ask(connection, f"REVOKE ALL ON {quoted(schema)}.{table} FROM {quoted(reader)}")


def write_rows_read(
    connection: Connection,
    declaration: Declaration,
    sources: Mapping[str, SourceTable],
    facts: Facts,
    schema: str,
    blocks: PreparedBlocks | None,
) -> None:
    """Note how many rows of the sources were in each block that a version is prepared with."""
    if blocks is None:
        return
    ask(connection, f"CREATE TABLE {quoted(schema)}.{ROWS_READ} (name TEXT, block INTEGER, rows BIGINT)")
    for table in tables_with_blocks(declaration):
        note_rows_read(connection, table, sources[table.name], facts.table(table.name).columns, schema, blocks_held(table, blocks))


def note_rows_read(
    connection: Connection, table: TableDecl, source: SourceTable, columns: Mapping[str, Domain], schema: str, blocks: tuple[int, int]
) -> None:
    """Note how many rows of a source are in each of these blocks."""
    counted = rows_by_block_query(table, source, columns, blocks, POSTGRES)
    ask(connection, f"INSERT INTO {quoted(schema)}.{ROWS_READ} SELECT $1, c.* FROM ({counted}) c", [table.name])


def settle(connection: Connection, tables: Iterable[str], schema: str) -> None:
    """Mark the rows as visible to all, once, so that no reader has to: a scan of fresh rows would check each of them."""
    for table in tables:
        ask(connection, f"VACUUM (FREEZE, ANALYZE) {quoted(schema)}.{quoted(table)}")


def stored_names(declaration: Declaration) -> list[str]:
    """Tables whose rows a version holds."""
    private = [table.name for table in declaration.tables] if declaration.dataset.preparation is Preparation.STORED else []
    return [*(public.name for public in declaration.public_tables), *private]


def write_public_tables(
    connection: Connection, declaration: Declaration, schema: str, *, version: int, settings: Settings, progress: Progress
) -> Facts:
    """Freeze the public tables; gives the facts that follow from them."""
    dialect, listed = in_schema(schema), dict[str, dict[str, list[str | None]]]()
    total = len(declaration.public_tables) + len(declaration.tables)
    for done, public in enumerate(declaration.public_tables):
        progress(public.name, done, total)
        source = source_table(connection, declaration, public)
        domains = {column.name: column.domain for column in public.columns}
        ask(connection, f"DROP TABLE IF EXISTS {dialect.table(public.name)}")
        ask(connection, f"CREATE TABLE {dialect.table(public.name)} AS {public_table(public, source, domains, dialect)}")
        listed[public.name] = public_values(connection, public, schema, settings)
    return declared_facts(declaration, listed, version=version, settings=settings, numbers=number_types(connection, declaration))


def read_sources(connection: Connection, declaration: Declaration, blocks: PreparedBlocks | None = None) -> dict[str, SourceTable]:
    """Where the rows of the private tables come from; of those with blocks of time, the rows near ``blocks``."""
    near = {} if blocks is None else {table.name: blocks_held(table, blocks) for table in tables_with_blocks(declaration)}
    return {table.name: source_table(connection, declaration, table, near=near.get(table.name)) for table in declaration.tables}


def require_one_owner(connection: Connection, declaration: Declaration, sources: Mapping[str, SourceTable]) -> None:
    """Refuse link keys that lead to several owners: in the rows of this snapshot, or by a constraint where rows are read later."""
    if declaration.dataset.preparation is Preparation.VIRTUAL:
        require_unique_keys(connection, declaration, sources)
    else:
        require_one_owner_each(declaration, sources, POSTGRES, lambda sql: ask(connection, sql))


def read_mark(connection: Connection, table: TableDecl, source: SourceTable, before: Mark | None = None) -> tuple[Mark, int]:
    """How far a growing source is read, and how many of its rows lie at or before an older mark.

    All is read in one snapshot of the database, so no row comes later than the mark.
    """
    grows = growing(table, source, POSTGRES)
    older = "FALSE" if before is None else at_or_before(grows, before)
    position, rows, rows_before = ask(connection, f"SELECT MAX({grows}), COUNT(*), COUNT(*) FILTER (WHERE {older}) FROM {source.sql} s")[0]
    return Mark(position, rows, kinds_of(table, source)), rows_before


def write_private_table(
    connection: Connection,
    table: TableDecl,
    declaration: Declaration,
    sources: Mapping[str, SourceTable],
    facts: Facts,
    schema: str,
    *,
    ranking_key: bytes,
    blocks: PreparedBlocks | None = None,
) -> None:
    """Prepare one private table from nothing; where nothing is copied, make sure only that it can be read."""
    held = None if blocks is None or table.blocks is None else blocks_held(table, blocks)
    select = private_table(table, declaration, sources, facts, POSTGRES, blocks=held)
    if declaration.dataset.preparation is Preparation.VIRTUAL:
        return
    name = f"{quoted(schema)}.{quoted(table.name)}"
    ask(connection, f"DROP TABLE IF EXISTS {name}")
    columns = ", ".join(stored_columns(facts.table(table.name).columns, blocks=table.blocks is not None))
    order = RANK if table.blocks is None else f"{BLOCK}, {RANK}"
    ask(connection, f"CREATE TABLE {name} AS SELECT {columns} FROM ({select}) p ORDER BY {order}, {UNIT}", [ranking_key.hex(), ""])
    # Ranks in order and a summary of each stretch of pages: a plan that keeps few rows of each unit, or few blocks, reads few pages.
    ask(connection, f"CREATE INDEX ON {name} USING brin ({order}) WITH (pages_per_range = {PAGES_PER_RANGE})")
    check_rows_max(connection, table, schema)


def stored_columns(columns: Mapping[str, Domain], *, blocks: bool = False) -> list[str]:
    """The columns of a prepared table in the order in which they are stored: wide ones first, so that none needs padding."""
    widths = {Kind.DATE: 4, Kind.BOOLEAN: 1, Kind.TEXT: 0}
    is_text = {name: isinstance(domain, KeyDomain) and domain.text for name, domain in columns.items()}
    names = sorted(columns, key=lambda name: 0 if is_text[name] else -widths.get(kind_of(columns[name]), 8))
    return [RANK, ROWS, *([BLOCK] if blocks else []), UNIT, *(quoted(name) for name in names)]


def public_values(connection: Connection, public: PublicDecl, schema: str, settings: Settings) -> dict[str, list[str | None]]:
    """Values of the text columns of a frozen public table."""
    values: dict[str, list[str | None]] = {}
    for column in public.columns:
        if isinstance(column.domain, TextDomain):
            limit = settings.values_per_column_max + 1
            table = f"{quoted(schema)}.{quoted(public.name)}"
            values[column.name] = [row[0] for row in ask(connection, f"SELECT DISTINCT {quoted(column.name)} FROM {table} LIMIT {limit}")]
    return values


def check_rows_max(connection: Connection, table: TableDecl, schema: str, *, blocks: tuple[int, int] | None = None) -> None:
    """Refuse a table, or one of these blocks of time of it, with more rows than declared."""
    require_rows_max(ask(connection, rows_max_query(table, f"{quoted(schema)}.{quoted(table.name)}", blocks=blocks))[0][0], table)
