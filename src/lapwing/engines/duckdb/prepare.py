"""Writing versions with DuckDB: the owner's act, which may read source files."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import duckdb

from lapwing.catalog import Declaration, Preparation, PublicDecl, Settings, TableDecl
from lapwing.catalog.blocks import PreparedBlocks
from lapwing.catalog.facts import facts as declared_facts
from lapwing.engines.appending import Mark, growing, kinds_of, mark_query, read_up_to
from lapwing.engines.base import Progress, silent
from lapwing.engines.duckdb.block_files import blocks_folder, sync_folder
from lapwing.engines.duckdb.block_writing import prepare_blocks
from lapwing.engines.duckdb.files import FileState, Listing, TableFiles, are_unchanged, listing_body, listing_of, states_now
from lapwing.engines.duckdb.session import begin_session
from lapwing.engines.duckdb.sources import number_types, source
from lapwing.engines.links import link_parents, require_one_owner_each
from lapwing.engines.losses import Witness, witnessed
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
from lapwing.engines.sources import is_csv
from lapwing.errors import PreparationError
from lapwing.kernel.domains import TextDomain
from lapwing.kernel.facts import Facts
from lapwing.render.dialect import RANKING_KEY, quoted
from lapwing.render.duckdb import DUCKDB
from lapwing.render.relations import RANK, UNIT

META = "_lapwing"
"""Name of the table in a snapshot that says what it is."""
BLOCKS = "blocks"
"""Name of the folder of blocks of a version that is being written."""


def prepare_snapshot(
    declaration: Declaration,
    text: str,
    target: Path,
    *,
    version: int,
    ranking_key: bytes,
    settings: Settings,
    progress: Progress = silent,
    blocks: PreparedBlocks | None = None,
    witness: Witness | None = None,
) -> Facts:
    """Write one version to ``target``. It appears whole or not at all: a temporary file is renamed at the end.

    With ``blocks``, the rows of tables with blocks of time are in files beside it, which appear first.
    """
    with written_whole(target, settings) as connection:
        marks: dict[str, Mark] = {}
        is_virtual = declaration.dataset.preparation is Preparation.VIRTUAL
        states = states_now(declaration)
        facts = write_tables(
            connection,
            declaration,
            version=version,
            ranking_key=ranking_key,
            settings=settings,
            progress=progress,
            marks=marks,
            blocks=blocks,
            folder=partial_folder(target) / BLOCKS,
            witness=witness,
        )
        files: Listing = {}
        if is_virtual:
            files = listing_of(states, {table.name: source(connection, declaration, table) for table in declaration.tables})
        require_at_rest(declaration, states)
        write_meta(
            connection,
            declaration,
            text,
            version=version,
            ranking_key=ranking_key,
            marks=marks,
            files=files,
            facts=facts,
            has_block_files=blocks is not None,
        )
    return facts


def require_at_rest(declaration: Declaration, states: Mapping[str, tuple[FileState, ...]]) -> None:
    """Refuse a file that changed during reading: earlier checks may not hold for the rows read.

    A source that only grows may be written again where rows are copied: it is read up to its mark.
    """
    is_stored = declaration.dataset.preparation is Preparation.STORED
    watched = [name for name in states if not (is_stored and declaration.table(name).appended_by)]
    if not are_unchanged({name: TableFiles(states[name], {}) for name in watched}):
        raise PreparationError("source-changing", "a file changed while it was read", hint="prepare again when it is at rest")


@contextmanager
def written_whole(target: Path, settings: Settings, *, start: Path | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a file that becomes ``target`` at the end and is removed on failure; it starts as a copy of ``start``."""
    # In a folder of its own: what the engine writes beside the file is for the owner only too, even while it is being written.
    folder = partial_folder(target)
    shutil.rmtree(folder, ignore_errors=True)
    folder.unlink(missing_ok=True)
    folder.mkdir(mode=0o700)
    partial = folder / target.name
    if start is not None:
        shutil.copyfile(start, partial)
    connection = duckdb.connect(str(partial))
    try:
        begin_session(connection)
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(f"SET memory_limit = '{settings.memory_limit_bytes}B'")
        yield connection
        connection.execute("CHECKPOINT")
    except duckdb.Error as error:
        connection.close()
        shutil.rmtree(folder)
        # The owner made this call and sees the engine's own words; nothing of it reaches an analyst.
        raise PreparationError("preparation-failed", f"the engine could not read the source: {error}") from error
    except BaseException:
        connection.close()
        shutil.rmtree(folder)
        raise
    connection.close()
    os.chmod(partial, 0o600)
    with open(partial, "rb") as handle:
        os.fsync(handle.fileno())
    if (folder / BLOCKS).exists():
        # Without its file they are no version: what an interrupted preparation of this number left goes first.
        shutil.rmtree(blocks_folder(target), ignore_errors=True)
        os.replace(folder / BLOCKS, blocks_folder(target))
        sync_folder(target.parent)
    os.replace(partial, target)
    shutil.rmtree(folder)


def partial_folder(target: Path) -> Path:
    """Where a version is while it is being written."""
    return target.with_suffix(".partial")


def write_meta(
    connection: duckdb.DuckDBPyConnection,
    declaration: Declaration,
    text: str,
    *,
    version: int,
    ranking_key: bytes,
    marks: Mapping[str, Mark],
    files: Listing,
    facts: Facts,
    has_block_files: bool = False,
) -> None:
    """Write a version's metadata into it; ``files`` are those that a virtual version reads."""
    meta = {
        "format": SNAPSHOT_FORMAT,
        "version": version,
        "source_id": declaration.dataset.id,
        "text": text,
        "key_check": key_check(ranking_key),
        "marks": {name: asdict(mark) for name, mark in marks.items()},
        "files": listing_body(files),
        "numbers": number_types_body(facts),
        "rules": facts.planning_rules,
        "block_files": has_block_files,
    }
    connection.execute(f"CREATE OR REPLACE TABLE {META} AS SELECT CAST($1 AS VARCHAR) AS body", [json.dumps(meta)])


def write_tables(
    connection: duckdb.DuckDBPyConnection,
    declaration: Declaration,
    *,
    version: int,
    ranking_key: bytes,
    settings: Settings,
    progress: Progress = silent,
    marks: dict[str, Mark] | None = None,
    blocks: PreparedBlocks | None = None,
    folder: Path | None = None,
    witness: Witness | None = None,
) -> Facts:
    """Create every prepared table in the connection's database; public tables first, because their values are facts.

    Where preparation is virtual no private row is copied. ``marks`` is filled with how far growing sources were read. The rows of
    ``blocks`` go into files in ``folder``; without ``blocks``, all rows that are in any go into the database.
    """
    total, done = len(declaration.public_tables) + len(declaration.tables), 0
    facts = write_public_tables(connection, declaration, version=version, settings=settings, progress=progress)
    done = len(declaration.public_tables)
    marks = {} if marks is None else marks
    sources = marked_sources(connection, declaration, marks)
    with one_owner_each(connection, declaration, sources):
        written = None if blocks is None else (blocks.first, blocks.last)
        witnessed(witness, declaration, sources, facts, DUCKDB, lambda sql: connection.execute(sql).fetchall(), blocks=written)
        for table in declaration.tables:
            if blocks is not None and table.blocks is not None:
                continue
            progress(table.name, done, total)
            if declaration.dataset.preparation is Preparation.VIRTUAL:
                require_parquet(declaration, table)
                _try_private_table(connection, table, declaration, sources, facts, ranking_key=ranking_key)
            else:
                write_private_table(connection, table, declaration, sources, facts, ranking_key=ranking_key)
            done += 1
        if blocks is not None and folder is not None:
            prepare_blocks(
                connection,
                declaration,
                sources,
                facts,
                folder,
                blocks=blocks,
                ranking_key=ranking_key,
                settings=settings,
                progress=progress,
            )
    progress("done", total, total)
    return facts


@contextmanager
def one_owner_each(connection: duckdb.DuckDBPyConnection, declaration: Declaration, sources: Mapping[str, SourceTable]) -> Iterator[None]:
    """Tables are written inside, from sources whose link keys lead to one owner each: checked first, in files that stay as they are.

    A source that only grows may grow meanwhile: it was checked up to its mark, and is read up to there.
    """
    at_rest = [name for name in link_parents(declaration) if not declaration.table(name).appended_by]
    states = states_now(declaration) if at_rest else {}
    checked = listing_of({name: states[name] for name in at_rest}, sources)
    require_one_owner_each(declaration, sources, DUCKDB, lambda sql: connection.execute(sql).fetchall())
    yield
    if not are_unchanged(checked):
        raise PreparationError("source-changing", "a file changed while it was read", hint="prepare again when it is at rest")


def _try_private_table(
    connection: duckdb.DuckDBPyConnection,
    table: TableDecl,
    declaration: Declaration,
    sources: Mapping[str, SourceTable],
    facts: Facts,
    *,
    ranking_key: bytes,
) -> None:
    """Read every value of a virtual table, and every row by its definition, and keep nothing: the owner has to fix what cannot be read.

    Hashes are computed because the engine skips values on which no result depends.
    """
    read = ", ".join(f"s.{quoted(column.source_name)}" for column in table.columns)
    connection.execute(f"SELECT bit_xor(hash({read})) FROM {sources[table.name].sql} s").fetchall()
    select = private_table(table, declaration, sources, facts, DUCKDB)
    counted = connection.execute(f"SELECT COUNT(*), bit_xor(hash(t)) FROM ({select}) t", {RANKING_KEY: ranking_key.hex()}).fetchall()
    require_rows_max(counted[0][0], table)


def write_public_tables(
    connection: duckdb.DuckDBPyConnection, declaration: Declaration, *, version: int, settings: Settings, progress: Progress
) -> Facts:
    """Freeze the public tables; gives the facts that follow from them."""
    listed: dict[str, dict[str, list[str | None]]] = {}
    total = len(declaration.public_tables) + len(declaration.tables)
    for done, public in enumerate(declaration.public_tables):
        progress(public.name, done, total)
        rows = source(connection, declaration, public)
        domains = {column.name: column.domain for column in public.columns}
        connection.execute(f"CREATE OR REPLACE TABLE {quoted(public.name)} AS {public_table(public, rows, domains, DUCKDB)}")
        listed[public.name] = public_values(connection, public, settings)
    return declared_facts(declaration, listed, version=version, settings=settings, numbers=number_types(connection, declaration))


def marked_sources(connection: duckdb.DuckDBPyConnection, declaration: Declaration, marks: dict[str, Mark]) -> dict[str, SourceTable]:
    """The sources; those that only grow, up to a mark that is taken now."""
    sources = {}
    for table in declaration.tables:
        unmarked = source(connection, declaration, table)
        is_stored = declaration.dataset.preparation is Preparation.STORED
        sources[table.name] = marked_source(connection, table, unmarked, marks) if is_stored else unmarked
    return sources


def marked_source(connection: duckdb.DuckDBPyConnection, table: TableDecl, unmarked: SourceTable, marks: dict[str, Mark]) -> SourceTable:
    """A source that only grows, up to a mark that is taken now and put among ``marks``; any other source as it is."""
    if not table.appended_by:
        return unmarked
    grows = growing(table, unmarked, DUCKDB)
    position, rows = connection.execute(mark_query(grows, unmarked)).fetchall()[0]
    marks[table.name] = Mark(position, rows, kinds_of(table, unmarked))
    return read_up_to(grows, unmarked, marks[table.name])


def write_private_table(
    connection: duckdb.DuckDBPyConnection,
    table: TableDecl,
    declaration: Declaration,
    sources: Mapping[str, SourceTable],
    facts: Facts,
    *,
    ranking_key: bytes,
) -> None:
    """Prepare one private table from nothing."""
    select = private_table(table, declaration, sources, facts, DUCKDB)
    # Ranks in order: a plan that keeps few rows of each unit reads few blocks.
    connection.execute(
        f"CREATE OR REPLACE TABLE {quoted(table.name)} AS {select} ORDER BY {RANK}, {UNIT}", {RANKING_KEY: ranking_key.hex()}
    )
    check_rows_max(connection, table)


def require_parquet(declaration: Declaration, table: TableDecl) -> None:
    """Refuse a virtual table over CSV: a line that is not a row of the table would stop a question, and lines are data."""
    if is_csv(declaration.source_path(table)):
        hint = 'convert the file to Parquet, or leave `preparation = "virtual"` out'
        raise PreparationError("virtual-csv", f"table {table.name!r} is read from CSV, which can only be prepared as a copy", hint=hint)


def public_values(connection: duckdb.DuckDBPyConnection, public: PublicDecl, settings: Settings) -> dict[str, list[str | None]]:
    """Values of the text columns of a frozen public table."""
    values: dict[str, list[str | None]] = {}
    for column in public.columns:
        if isinstance(column.domain, TextDomain):
            limit = settings.values_per_column_max + 1
            rows = connection.execute(f"SELECT DISTINCT {quoted(column.name)} FROM {quoted(public.name)} LIMIT {limit}").fetchall()
            values[column.name] = [row[0] for row in rows]
    return values


def check_rows_max(connection: duckdb.DuckDBPyConnection, table: TableDecl) -> None:
    """Refuse a table with more rows than declared."""
    require_rows_max(connection.execute(rows_max_query(table, quoted(table.name))).fetchall()[0][0], table)
