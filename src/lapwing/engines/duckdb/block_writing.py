"""Writing blocks of time with DuckDB: with a version that is prepared, and to one that is there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import duckdb

from lapwing.catalog import Declaration, Settings, TableDecl
from lapwing.catalog.blocks import PreparedBlocks
from lapwing.engines.base import BlockWrite, Progress
from lapwing.engines.block_rows import (
    blocks_held,
    common_blocks,
    more_rows,
    require_follows,
    require_same_tables,
    rows_by_block_query,
    stretches,
    tables_with_blocks,
)
from lapwing.engines.duckdb.block_files import (
    BlockIndex,
    blocks_folder,
    read_index,
    remove_others,
    sync_folder,
    write_index,
)
from lapwing.engines.duckdb.files import TableFiles, are_unchanged, file_states
from lapwing.engines.duckdb.session import begin_session
from lapwing.engines.duckdb.sources import source
from lapwing.engines.losses import witnessed
from lapwing.engines.prepare import SourceTable, private_table, require_rows_max
from lapwing.errors import PreparationError
from lapwing.kernel.facts import Facts
from lapwing.render.dialect import RANKING_KEY, quoted, standard_text_literal
from lapwing.render.duckdb import DUCKDB
from lapwing.render.relations import BLOCK, RANK, UNIT

BYTES_PER_ROW = 400
"""Memory that ranking takes for a row, about: how many rows of a source are ranked at once follows from the engine's memory."""
_STAGE = "_lapwing_stage"
_SPILLED = "spilled"


class BlockFiles:
    """The files of one write of blocks, while they are written into a folder."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        declaration: Declaration,
        facts: Facts,
        folder: Path,
        *,
        ranking_key: bytes,
        settings: Settings,
        write: int,
    ) -> None:
        self._connection, self._declaration, self._facts, self._folder = connection, declaration, facts, folder
        self._key, self._write = {RANKING_KEY: ranking_key.hex()}, write
        self._rows_at_once = max(settings.memory_limit_bytes // BYTES_PER_ROW, 1)
        self.files: dict[str, dict[int, str]] = {}
        self.read: dict[str, dict[int, int]] = {}

    def write(self, table: TableDecl, sources: Mapping[str, SourceTable], blocks: tuple[int, int], progress: Progress) -> None:
        """Write the files of these blocks of a table. A block whose rows are all left out has none."""
        connection, files = self._connection, self.files.setdefault(table.name, {})
        read = rows_read(connection, table, sources[table.name], self._facts, blocks)
        self.read[table.name] = read
        place = [one.name for one in self._declaration.tables].index(table.name)
        part = self._folder / str(place)
        part.mkdir(mode=0o700, exist_ok=True)
        parts = list(stretches(read, self._rows_at_once))
        for done, stretch in enumerate(parts):
            progress(table.name, done, len(parts))
            select = private_table(table, self._declaration, sources, self._facts, DUCKDB, blocks=stretch)
            # Blocks in order: each is then read from its own stretch of the rows.
            connection.execute(f"CREATE OR REPLACE TEMP TABLE {_STAGE} AS {select} ORDER BY {BLOCK}", self._key)
            for block, rows in connection.execute(f"SELECT {BLOCK}, COUNT(*) FROM {_STAGE} GROUP BY 1 ORDER BY 1").fetchall():
                require_rows_max(rows, table)
                name = f"{place}/{block}-{self._write}.parquet"
                self._copy(block, self._folder / name)
                files[block] = name
            connection.execute(f"DROP TABLE {_STAGE}")
        sync_folder(part)
        sync_folder(self._folder)

    def _copy(self, block: int, path: Path) -> None:
        # Ranks in order: a plan that keeps few rows of each person reads few row groups.
        rows = f"SELECT * FROM {_STAGE} WHERE {BLOCK} = {block} ORDER BY {RANK}, {UNIT}"
        self._connection.execute(f"COPY ({rows}) TO {standard_text_literal(str(path))} (FORMAT parquet, COMPRESSION zstd)")
        os.chmod(path, 0o600)
        with open(path, "rb") as handle:
            os.fsync(handle.fileno())

    def index(self, prepared: PreparedBlocks) -> BlockIndex:
        """The index of a version that has these files alone."""
        return BlockIndex(prepared, self._write, self.files, self.read)


def rows_read(
    connection: duckdb.DuckDBPyConnection, table: TableDecl, rows: SourceTable, facts: Facts, blocks: tuple[int, int]
) -> dict[int, int]:
    """How many rows of a source are in each of these blocks that has any."""
    query = rows_by_block_query(table, rows, facts.table(table.name).columns, blocks, DUCKDB)
    return {int(block): int(count) for block, count in connection.execute(query).fetchall()}


def prepare_blocks(
    connection: duckdb.DuckDBPyConnection,
    declaration: Declaration,
    sources: Mapping[str, SourceTable],
    facts: Facts,
    folder: Path,
    *,
    blocks: PreparedBlocks,
    ranking_key: bytes,
    settings: Settings,
    progress: Progress,
) -> None:
    """Write the blocks of a version that is being prepared into ``folder``, and empty tables for them into its database."""
    folder.mkdir(mode=0o700)
    writer = BlockFiles(connection, declaration, facts, folder, ranking_key=ranking_key, settings=settings, write=1)
    for table in tables_with_blocks(declaration):
        select = private_table(table, declaration, sources, facts, DUCKDB)
        empty = f"CREATE OR REPLACE TABLE {quoted(table.name)} AS SELECT * FROM ({select}) LIMIT 0"
        connection.execute(empty, {RANKING_KEY: ranking_key.hex()})
        writer.write(table, sources, blocks_held(table, blocks), progress)
    write_index(folder, writer.index(blocks))


def write_blocks(write: BlockWrite, prepared: Declaration, facts: Facts, version: Path, settings: Settings) -> None:
    """Write blocks to the version at a path, ``prepared`` with these facts. New files first, then the index, then old files go."""
    declaration, folder = write.declaration, blocks_folder(version)
    before = read_index(folder)
    require_same_tables(declaration, prepared)
    require_follows(before.prepared, write.after, write.blocks)
    remove_others(folder, before)
    tables = tables_with_blocks(declaration) if write.is_any else ()
    states = {table.name: TableFiles(file_states(declaration, table), {}) for table in tables}
    try:
        with _working(settings, folder) as connection:
            sources = {table.name: source(connection, declaration, table) for table in tables}
            witnessed(
                write.witness,
                declaration,
                sources,
                facts,
                DUCKDB,
                lambda sql: connection.execute(sql).fetchall(),
                tables=tables,
                blocks=write.blocks,
            )
            number, key = before.writes + 1, write.ranking_key
            writer = BlockFiles(connection, declaration, facts, folder, ranking_key=key, settings=settings, write=number)
            for table in tables:
                writer.write(table, sources, common_blocks(blocks_held(table, write.after), write.blocks), write.progress)
        if not are_unchanged(states):
            raise PreparationError("source-changing", "a file changed while it was read", hint="try again when it is at rest")
        index = before.after(write.after, write.blocks, writer.files, writer.read)
        write_index(folder, index)
    except BaseException:
        remove_others(folder, read_index(folder))
        raise
    remove_others(folder, index)
    write.progress("done", 1, 1)


def late_rows(declaration: Declaration, facts: Facts, version: Path, settings: Settings) -> dict[str, int]:
    """How many more rows than were read the sources have now in the blocks that the version at a path holds."""
    folder = blocks_folder(version)
    index, found = read_index(folder), {}
    with _working(settings, folder) as connection:
        for table in tables_with_blocks(declaration):
            rows = source(connection, declaration, table)
            now = rows_read(connection, table, rows, facts, blocks_held(table, index.prepared))
            found[table.name] = more_rows(index.read[table.name], now)
    return found


@contextmanager
def _working(settings: Settings, folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory that may read the owner's files; what does not fit into memory goes into ``folder``, for the owner only."""
    spilled = folder / _SPILLED
    shutil.rmtree(spilled, ignore_errors=True)
    connection = duckdb.connect(config={"temp_directory": str(spilled), "memory_limit": f"{settings.memory_limit_bytes}B"})
    try:
        begin_session(connection)
        connection.execute("SET preserve_insertion_order = false")
        yield connection
    except duckdb.Error as error:
        # The owner made this call and sees the engine's own words; nothing of it reaches an analyst.
        raise PreparationError("preparation-failed", f"the engine could not read the source: {error}") from error
    finally:
        connection.close()
        shutil.rmtree(spilled, ignore_errors=True)
