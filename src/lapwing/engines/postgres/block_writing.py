"""Blocks of time on PostgreSQL: rows that are appended to a version's tables, in the order of their blocks.

A write is one transaction: rows of corrected and of old blocks are deleted, new ones inserted, and the metadata says which blocks there
are. Readers see all of it or nothing, because every plan runs in one snapshot of the database. Other rows stay where they are. An index
that summarises stretches of pages finds the rows of a range of blocks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lapwing.catalog import Declaration, Settings, TableDecl, parse
from lapwing.catalog.blocks import PreparedBlocks
from lapwing.catalog.facts import facts as declared_facts
from lapwing.engines.base import BlockWrite
from lapwing.engines.block_rows import (
    blocks_held,
    common_blocks,
    more_rows,
    require_follows,
    require_same_tables,
    rows_by_block_query,
    tables_with_blocks,
)
from lapwing.engines.losses import witnessed
from lapwing.engines.postgres.prepare import (
    META,
    PAGES_PER_RANGE,
    ROWS_READ,
    check_rows_max,
    in_schema,
    note_rows_read,
    owners_words,
    public_values,
    stored_columns,
)
from lapwing.engines.postgres.session import Connection, ask, transaction
from lapwing.engines.postgres.sources import source_table
from lapwing.engines.prepare import SourceTable, number_types_value, private_table
from lapwing.errors import PreparationError
from lapwing.kernel.facts import Facts
from lapwing.render.dialect import quoted
from lapwing.render.postgres import POSTGRES
from lapwing.render.relations import BLOCK, RANK, UNIT


def write_version_blocks(connection: Connection, write: BlockWrite, *, schema: str, settings: Settings) -> None:
    """Write the rows of blocks of the version in ``schema``, which then holds the blocks ``write.after``."""
    declaration = write.declaration
    emptied: dict[str, list[int]] = {}
    with owners_words(), transaction(connection, settings, read_only=False):
        meta, prepared, facts = _version(connection, schema, settings)
        before = PreparedBlocks.of(meta.get("blocks"))
        if before is None:
            raise PreparationError("version-mismatch", "this version was not prepared by blocks", hint="prepare a new version")
        require_same_tables(declaration, prepared)
        require_follows(before, write.after, write.blocks)
        tables = tables_with_blocks(declaration)
        written = {table.name: common_blocks(blocks_held(table, write.after), write.blocks) for table in tables}
        sources = {
            table.name: source_table(connection, declaration, table, near=written[table.name])
            for table in tables
            if _is_any(written[table.name])
        }
        reading = [table for table in tables if table.name in sources]
        witnessed(
            write.witness, declaration, sources, facts, POSTGRES, lambda sql: ask(connection, sql), tables=reading, blocks=write.blocks
        )
        for done, table in enumerate(tables):
            write.progress(table.name, done, len(tables))
            emptied[table.name] = _delete(connection, table, schema, before, write.after, written[table.name])
            if table.name in sources:
                _insert(connection, table, declaration, sources, facts, schema, written[table.name], ranking_key=write.ranking_key)
        meta["blocks"] = write.after.body()
        ask(connection, f"UPDATE {quoted(schema)}.{META} SET body = $1", [json.dumps(meta)])
    with owners_words():
        _tidy(connection, emptied, schema)
    write.progress("done", 1, 1)


def rows_more(connection: Connection, declaration: Declaration, *, schema: str, settings: Settings) -> dict[str, int]:
    """How many more rows than were read the sources have now in the blocks that a version holds."""
    found: dict[str, int] = {}
    with owners_words(), transaction(connection, settings, read_only=False):
        meta, _, facts = _version(connection, schema, settings)
        held = PreparedBlocks.of(meta.get("blocks"))
        for table in () if held is None else tables_with_blocks(declaration):
            assert held is not None
            blocks = blocks_held(table, held)
            if not _is_any(blocks):
                found[table.name] = 0
                continue
            read = dict(ask(connection, f"SELECT block, rows FROM {quoted(schema)}.{ROWS_READ} WHERE name = $1", [table.name]))
            source = source_table(connection, declaration, table, near=blocks)
            columns = facts.table(table.name).columns
            now = dict(ask(connection, rows_by_block_query(table, source, columns, blocks, POSTGRES)))
            found[table.name] = more_rows(read, now)
    return found


def _version(connection: Connection, schema: str, settings: Settings) -> tuple[dict[str, Any], Declaration, Facts]:
    """What a version says of itself, what it was prepared with, and its facts without the blocks that it holds."""
    rows = ask(connection, f"SELECT body FROM {quoted(schema)}.{META}")
    meta = json.loads(rows[0][0])
    prepared = parse(meta["text"], settings=settings)
    values = {public.name: public_values(connection, public, schema, settings) for public in prepared.public_tables}
    numbers = number_types_value(meta.get("numbers"))
    return meta, prepared, declared_facts(prepared, values, version=int(meta["version"]), settings=settings, numbers=numbers)


def _is_any(blocks: tuple[int, int]) -> bool:
    return blocks[0] <= blocks[1]


def _delete(
    connection: Connection, table: TableDecl, schema: str, before: PreparedBlocks, after: PreparedBlocks, written: tuple[int, int]
) -> list[int]:
    """Delete the rows of blocks that are written again or not kept; gives the stretches of pages that they were on."""
    held = blocks_held(table, before)
    gone = [common_blocks(held, (held[0], after.first - 1)), common_blocks(held, (after.last + 1, held[1])), common_blocks(held, written)]
    pages: set[int] = set()
    for first, last in filter(_is_any, gone):
        block = f"CAST((CAST(CAST(ctid AS TEXT) AS POINT))[0] AS BIGINT) / {PAGES_PER_RANGE}"
        deleted = f"DELETE FROM {in_schema(schema).table(table.name)} WHERE {BLOCK} BETWEEN {first} AND {last} RETURNING {block} AS page"
        pages |= {int(row[0]) for row in ask(connection, f"WITH gone AS ({deleted}) SELECT DISTINCT page FROM gone")}
        ask(
            connection,
            f"DELETE FROM {quoted(schema)}.{ROWS_READ} WHERE name = $1 AND block BETWEEN {first} AND {last}",
            [table.name],
        )
    return sorted(pages)


def _insert(
    connection: Connection,
    table: TableDecl,
    declaration: Declaration,
    sources: Mapping[str, SourceTable],
    facts: Facts,
    schema: str,
    blocks: tuple[int, int],
    *,
    ranking_key: bytes,
) -> None:
    columns = facts.table(table.name).columns
    note_rows_read(connection, table, sources[table.name], columns, schema, blocks)
    listed = ", ".join(stored_columns(columns, blocks=True))
    select = private_table(table, declaration, sources, facts, POSTGRES, blocks=blocks)
    name = in_schema(schema).table(table.name)
    ordered = f"SELECT {listed} FROM ({select}) p ORDER BY {BLOCK}, {RANK}, {UNIT}"
    ask(connection, f"INSERT INTO {name} ({listed}) {ordered}", [ranking_key.hex(), ""])
    check_rows_max(connection, table, schema, blocks=blocks)


def _tidy(connection: Connection, emptied: Mapping[str, Sequence[int]], schema: str) -> None:
    """Make the new rows visible to all, and summarise their pages and those that rows were deleted from."""
    for table, pages in emptied.items():
        name = f"{quoted(schema)}.{quoted(table)}"
        ask(connection, f"VACUUM {name}")
        if pages:
            _summarise_again(connection, name, pages)
    for table in (META, ROWS_READ):
        ask(connection, f"VACUUM {quoted(schema)}.{table}")


def _summarise_again(connection: Connection, name: str, pages: Iterable[int]) -> None:
    """Of pages that rows were deleted from: rows of later blocks may lie there, and would be looked for together with the old ones."""
    found = (
        "SELECT CAST(i.indexrelid AS BIGINT) FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid"
        " JOIN pg_catalog.pg_am a ON a.oid = c.relam WHERE a.amname = 'brin' AND i.indrelid = CAST($1 AS regclass)"
    )
    for (index,) in ask(connection, found, [name]):
        for page in pages:
            ask(connection, f"SELECT pg_catalog.brin_desummarize_range(CAST({index} AS regclass), {page * PAGES_PER_RANGE})")
        ask(connection, f"SELECT pg_catalog.brin_summarize_new_values(CAST({index} AS regclass))")
