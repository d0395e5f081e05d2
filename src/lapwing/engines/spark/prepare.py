"""Writing versions with Spark: Parquet files bucketed by unit, and beside them one file that says the version is whole.

    .lapwing/v000001.spark.json   the catalogue text, columns and public values of the version; written last
    .lapwing/v000001.spark/       one directory of Parquet files for each table; of one with blocks of time, see ``block_folders``

A bucket holds all rows of its units, and all tables of a version have the same number of buckets: counting units, clipping, choosing groups
and joining on the unit then happen inside a bucket, and no row is moved for them.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from lapwing.catalog import Declaration, Preparation, PublicDecl, RowUnit, Settings, TableDecl
from lapwing.catalog.blocks import PreparedBlocks
from lapwing.catalog.facts import blocks_of_table
from lapwing.catalog.facts import facts as declared_facts
from lapwing.engines.base import Progress
from lapwing.engines.block_rows import blocks_held, tables_with_blocks
from lapwing.engines.links import require_one_owner_each
from lapwing.engines.losses import Witness, witnessed
from lapwing.engines.prepare import (
    SNAPSHOT_FORMAT,
    SourceTable,
    number_types_body,
    private_table,
    public_table,
    require_rows_max,
)
from lapwing.engines.spark.block_folders import FIRST_WRITE, WrittenFolders
from lapwing.engines.spark.block_writing import BlockWriter
from lapwing.engines.spark.sources import SourceFiles, are_unchanged, is_path, number_types, require_files, source_files, source_table
from lapwing.engines.spark.stored import Stored, rows_path, write_marker
from lapwing.errors import LapwingError, PreparationError
from lapwing.kernel.domains import NumberType, TextDomain
from lapwing.kernel.facts import Facts
from lapwing.render.dialect import RANKING_KEY
from lapwing.render.relations import RANK, UNIT
from lapwing.render.spark import SPARK, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BUCKETS_MAX = 10_000
"""Most buckets of a table."""


def prepare_version(
    session: SparkSession,
    declaration: Declaration,
    text: str,
    directory: Path,
    *,
    version: int,
    ranking_key: bytes,
    settings: Settings,
    progress: Progress,
    blocks: PreparedBlocks | None = None,
    witness: Witness | None = None,
) -> Facts:
    """Write one version, whole or not at all: the version exists once its marker does, and a failed one leaves nothing behind.

    Of tables with blocks of time, the rows of ``blocks``, or of all declared ones.
    """
    tables = tables_with_blocks(declaration)
    if declaration.dataset.preparation is Preparation.VIRTUAL:
        blocks = None
    elif tables and blocks is None:
        declared = [blocks_of_table(table) for table in tables]
        blocks = PreparedBlocks(min(first for first, _ in declared), max(last for _, last in declared))
    rows = rows_path(directory, version)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.rmtree(rows, ignore_errors=True)
    try:
        writer = _Writer(session, declaration, rows, settings)
        facts = writer.write(version=version, ranking_key=ranking_key, progress=progress, blocks=blocks, witness=witness)
        stored = Stored(
            format=SNAPSHOT_FORMAT,
            version=version,
            source_id=declaration.dataset.id,
            text=text,
            buckets=writer.buckets,
            columns=writer.columns,
            values=writer.values,
            files={name: source.body() for name, source in writer.files.items()},
            numbers=number_types_body(facts),
            rules=facts.planning_rules,
            blocks=None if writer.index is None else writer.index.body(),
        )
        write_marker(directory, stored)
    except BaseException as error:
        shutil.rmtree(rows, ignore_errors=True)
        if isinstance(error, LapwingError) or not isinstance(error, Exception):
            raise
        # The owner made this call and sees the engine's own words; nothing of it reaches an analyst.
        raise PreparationError("preparation-failed", f"the engine could not read the source: {error}") from error
    return facts


class _Writer:
    """The tables of one version on their way to disk."""

    def __init__(self, session: SparkSession, declaration: Declaration, rows: Path, settings: Settings) -> None:
        self._session, self._declaration, self._rows, self._settings = session, declaration, rows, settings
        # Rows come out of the ranking already divided so: as many buckets as the session has shuffle partitions, and no further shuffle.
        self.buckets = min(int(session.conf.get("spark.sql.shuffle.partitions") or 1), BUCKETS_MAX)
        self.columns: dict[str, list[tuple[str, str]]] = {}
        self.values: dict[str, dict[str, list[str | None]]] = {}
        self.files: dict[str, SourceFiles] = {}
        self.numbers: dict[str, dict[str, NumberType]] = {}
        self.index: WrittenFolders | None = None

    def write(
        self, *, version: int, ranking_key: bytes, progress: Progress, blocks: PreparedBlocks | None, witness: Witness | None
    ) -> Facts:
        """Write every table; public tables first, because their values are facts."""
        declaration = self._declaration
        total, done = len(declaration.public_tables) + len(declaration.tables), 0
        for public in declaration.public_tables:
            progress(public.name, done, total)
            self._write_public(public)
            done += 1
        is_virtual = declaration.dataset.preparation is Preparation.VIRTUAL
        if is_virtual:
            for table in declaration.tables:
                require_files(declaration, table)
        on_files = [table for table in declaration.tables if is_path(declaration.source_path(table))]
        files = {table.name: source_files(self._session, declaration, table) for table in on_files}
        sources = {table.name: source_table(self._session, declaration, table, files.get(table.name)) for table in declaration.tables}
        self.numbers |= {table.name: number_types(self._session, table) for table in declaration.tables}
        facts = declared_facts(declaration, self.values, version=version, settings=self._settings, numbers=self.numbers, prepared=blocks)
        require_one_owner_each(declaration, sources, SPARK, lambda sql: self._session.sql(sql).collect())
        written = None if blocks is None else (blocks.first, blocks.last)
        witnessed(witness, declaration, sources, facts, SPARK, lambda sql: self._session.sql(sql).collect(), blocks=written)
        in_blocks = BlockWriter(
            self._session, declaration, facts, self._rows, ranking_key=ranking_key, partitions=self.buckets, write=FIRST_WRITE
        )
        for table in declaration.tables:
            progress(table.name, done, total)
            if blocks is not None and table.blocks is not None:
                in_blocks.write(table, sources, blocks_held(table, blocks))
                done += 1
                continue
            select = private_table(table, declaration, sources, facts, SPARK)
            frame = self._session.sql(select, args={RANKING_KEY: ranking_key.hex()})
            if is_virtual:
                self._try_private(table, sources[table.name], frame)
            else:
                self._write_private(table, frame)
            done += 1
        self.files = files if is_virtual else {}
        if blocks is not None:
            self.columns |= in_blocks.columns
            found = {table: files[table] for table in in_blocks.held if table in files}
            self.index = WrittenFolders(blocks, FIRST_WRITE, in_blocks.held, in_blocks.read, found)
        if not are_unchanged(self._session, files):
            raise PreparationError("source-changing", "a file changed while it was read", hint="prepare again when it is at rest")
        progress("done", total, total)
        return facts

    def _write_public(self, public: PublicDecl) -> None:
        domains = {column.name: column.domain for column in public.columns}
        select = public_table(public, source_table(self._session, self._declaration, public), domains, SPARK)
        frame = self._session.sql(select)
        frame.coalesce(1).write.parquet(str(self._rows / public.name))
        self.numbers[public.name] = number_types(self._session, public)
        written = self._written(public.name, frame)
        self.values[public.name] = {
            column.name: [
                row[0] for row in written.select(column.name).distinct().limit(self._settings.values_per_column_max + 1).collect()
            ]
            for column in public.columns
            if isinstance(column.domain, TextDomain)
        }

    def _try_private(self, table: TableDecl, source: SourceTable, frame: DataFrame) -> None:
        """Read every value of a virtual table, and every row by its definition, and keep nothing: what cannot be read stops the owner."""
        self._session.sql(f"SELECT bit_xor(xxhash64(*)) FROM {source.sql}").collect()
        require_rows_max(int(frame.selectExpr("count(1)", "bit_xor(xxhash64(*))").collect()[0][0]), table)

    def _write_private(self, table: TableDecl, frame: DataFrame) -> None:
        # Bucketed files can only be written through the catalogue of tables; the name is dropped at once, the files stay.
        name = f"_lapwing_writing_{hashlib.sha256(str(self._rows / table.name).encode()).hexdigest()[:24]}"
        self._session.sql(f"DROP TABLE IF EXISTS {quoted(name)}")
        if isinstance(table.unit, RowUnit):
            frame = frame.repartition(self.buckets, UNIT)  # they come divided by digest
        # Ranks in order: a plan that keeps few rows of each unit reads few blocks.
        writer = frame.write.format("parquet").bucketBy(self.buckets, UNIT).sortBy(RANK, UNIT)
        writer.option("path", str(self._rows / table.name)).saveAsTable(name)
        self._session.sql(f"DROP TABLE {quoted(name)}")
        require_rows_max(self._written(table.name, frame).count(), table)

    def _written(self, table: str, written: DataFrame) -> DataFrame:
        """What was written, by the columns it was written with: a table without rows may have no file."""
        frame = self._session.read.schema(written.schema).parquet(str(self._rows / table))
        self.columns[table] = [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]
        return frame
