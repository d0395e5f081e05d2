"""Writing blocks of time with Spark: with a version that is prepared, and to one that is there."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lapwing.catalog import Declaration, Settings, TableDecl
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
from lapwing.engines.prepare import SourceTable, private_table, require_rows_max
from lapwing.engines.spark.block_folders import IN_BLOCK, WrittenFolders, remove_others, rows_written, write_folder
from lapwing.engines.spark.sources import SourceFiles, are_unchanged, is_path, source_files, source_table
from lapwing.engines.spark.stored import Stored, read_marker, rows_path, write_marker
from lapwing.errors import LapwingError, PreparationError
from lapwing.kernel.facts import Facts
from lapwing.render.dialect import RANKING_KEY
from lapwing.render.relations import BLOCK, RANK, UNIT
from lapwing.render.spark import SPARK, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_PER_FILE = 1_000_000
"""A block has a file for so many rows of the source: one task ranks and writes them in about ten seconds."""


class BlockWriter:
    """One write of blocks on its way to disk: into folders that no version names yet."""

    def __init__(
        self, session: SparkSession, declaration: Declaration, facts: Facts, rows: Path, *, ranking_key: bytes, partitions: int, write: int
    ) -> None:
        self._session, self._declaration, self._facts, self._rows = session, declaration, facts, rows
        self._arguments = {RANKING_KEY: ranking_key.hex()}
        self._partitions, self._write = partitions, write
        self.columns: dict[str, list[tuple[str, str]]] = {}
        self.held: dict[str, dict[int, int]] = {}
        self.read: dict[str, dict[int, int]] = {}

    def write(self, table: TableDecl, sources: Mapping[str, SourceTable], blocks: tuple[int, int]) -> None:
        """Write the rows of these blocks of a table. A block whose rows are all left out has no folder."""
        select = private_table(table, self._declaration, sources, self._facts, SPARK, blocks=blocks)
        frame = self._session.sql(select, args=self._arguments)
        self.columns[table.name] = [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]
        read = self.read[table.name] = rows_read(self._session, table, sources[table.name], self._facts, blocks)
        folder = write_folder(self._rows, table.name, self._write)
        if read:
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            divided = self._divided(frame, read).selectExpr("*", f"{quoted(BLOCK)} AS {IN_BLOCK}")
            # Ranks in order: a plan that keeps few rows of each person reads few row groups.
            divided.sortWithinPartitions(IN_BLOCK, RANK, UNIT).write.partitionBy(IN_BLOCK).parquet(str(folder))
        written = rows_written(folder)
        require_rows_max(max(written.values(), default=0), table)
        self.held[table.name] = dict.fromkeys(written, self._write)

    def _divided(self, frame: DataFrame, read: Mapping[int, int]) -> DataFrame:
        """So that each block has few files. The rows of one block come divided by person; those of several are divided by block again."""
        files = -(-max(read.values()) // ROWS_PER_FILE)
        if len(read) == 1:
            return frame.coalesce(min(files, self._partitions))
        from pyspark.sql.functions import expr

        return frame.repartition(min(self._partitions, files * len(read)), expr(quoted(BLOCK)), expr(f"pmod(xxhash64({UNIT}), {files})"))

    def remove(self) -> None:
        """Leave nothing behind."""
        for table in tables_with_blocks(self._declaration):
            shutil.rmtree(write_folder(self._rows, table.name, self._write), ignore_errors=True)


def rows_read(session: SparkSession, table: TableDecl, source: SourceTable, facts: Facts, blocks: tuple[int, int]) -> dict[int, int]:
    """How many rows of a source are in each of these blocks that has any."""
    if blocks[0] > blocks[1]:
        return {}
    query = rows_by_block_query(table, source, facts.table(table.name).columns, blocks, SPARK)
    return {int(row[0]): int(row[1]) for row in session.sql(query).collect()}


def write_blocks(session: SparkSession, write: BlockWrite, directory: Path, *, version: int, settings: Settings) -> None:
    """Write blocks of a version. New folders first, then the file that names them, then old folders go."""
    stored, rows = read_marker(directory, version), rows_path(directory, version)
    before, facts = stored.index(), stored.facts(settings)
    require_same_tables(write.declaration, stored.declaration(settings))
    require_follows(before.prepared, write.after, write.blocks)
    remove_others(rows, before)
    writer = BlockWriter(
        session,
        write.declaration,
        facts,
        rows,
        ranking_key=write.ranking_key,
        partitions=stored.buckets,
        write=before.writes + 1,
    )
    try:
        files = _write(session, write, stored, facts, writer) if write.is_any else {}
        index = before.after(write.after, write.blocks, writer.held, writer.read, files)
        write_marker(directory, replace(stored, blocks=index.body()))
    except BaseException as error:
        writer.remove()
        if isinstance(error, LapwingError) or not isinstance(error, Exception):
            raise
        # The owner made this call and sees the engine's own words; nothing of it reaches an analyst.
        raise PreparationError("preparation-failed", f"the engine could not read the source: {error}") from error
    remove_others(rows, index)
    write.progress("done", 1, 1)


def _write(session: SparkSession, write: BlockWrite, stored: Stored, facts: Facts, writer: BlockWriter) -> dict[str, SourceFiles]:
    declaration, tables = write.declaration, tables_with_blocks(write.declaration)
    files, sources = sources_of_blocks(session, declaration, stored.index())
    witnessed(write.witness, declaration, sources, facts, SPARK, lambda sql: session.sql(sql).collect(), tables=tables, blocks=write.blocks)
    for done, table in enumerate(tables):
        write.progress(table.name, done, len(tables))
        writer.write(table, sources, common_blocks(blocks_held(table, write.after), write.blocks))
        if writer.columns[table.name] != stored.columns[table.name]:
            raise PreparationError("version-mismatch", f"the rows of {table.name!r} have other types than those of the version")
    if not are_unchanged(session, files):
        raise PreparationError("source-changing", "a file changed while it was read", hint="try again when it is at rest")
    return files


def sources_of_blocks(
    session: SparkSession, declaration: Declaration, index: WrittenFolders
) -> tuple[dict[str, SourceFiles], dict[str, SourceTable]]:
    """The sources of tables with blocks as they are now, and the files of those that are on files."""
    tables = tables_with_blocks(declaration)
    files = {
        table.name: source_files(session, declaration, table, known=index.files.get(table.name))
        for table in tables
        if is_path(declaration.source_path(table))
    }
    return files, {table.name: source_table(session, declaration, table, files.get(table.name)) for table in tables}


def late_rows(session: SparkSession, declaration: Declaration, directory: Path, *, version: int, settings: Settings) -> dict[str, int]:
    """How many more rows than were read the sources have now in the blocks that a version holds."""
    stored = read_marker(directory, version)
    index, facts = stored.index(), stored.facts(settings)
    require_same_tables(declaration, stored.declaration(settings))
    _, sources = sources_of_blocks(session, declaration, index)
    return {
        table.name: more_rows(
            index.read[table.name], rows_read(session, table, sources[table.name], facts, blocks_held(table, index.prepared))
        )
        for table in tables_with_blocks(declaration)
    }
