"""Versions that grow, for the oracle: some blocks of time are prepared, others are written later, and one is corrected twice.

The sources change in between. Of each row it follows from the row alone when it is there, so neighbours stay neighbours at each moment, and
in the version: each of its blocks is what its sources held when the block was written.
"""

from __future__ import annotations

import zlib

import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.audit.block_worlds import DECEMBER, FEBRUARY, JANUARY, JULY
from lapwing.audit.runs import RANKING_KEY
from lapwing.catalog import Declaration, Settings
from lapwing.catalog.blocks import PreparedBlocks
from lapwing.engines.base import BlockWrite, Snapshot, silent
from lapwing.engines.duckdb import DuckDBEngine

KINDS_OF_ROWS = 3
"""Rows are there early, or late, or until a correction."""
LATE, WITHDRAWN = 0, 1


def grown_in_duckdb(declaration: Declaration) -> Snapshot:
    """Prepare the first half of the year, write the second, correct February twice, and open the version."""
    assert declaration.directory is not None
    engine = DuckDBEngine(declaration.directory / ".lapwing", Settings())
    text = (declaration.directory / "lapwing.toml").read_text(encoding="utf-8")
    whole = {table.name: pq.read_table(declaration.source_path(table)) for table in declaration.tables if table.blocks is not None}

    def sources_without(kind: int | None) -> None:
        for name, rows in whole.items():
            listed = [row for row in rows.to_pylist() if _kind(row) != kind]
            pq.write_table(pa.Table.from_pylist(listed, schema=rows.schema), declaration.source_path(declaration.table(name)))

    def write(first: int, last: int, after: PreparedBlocks) -> PreparedBlocks:
        engine.write_blocks(1, BlockWrite(declaration, (first, last), after, RANKING_KEY))
        return after

    (declaration.directory / ".lapwing").mkdir(mode=0o700)
    sources_without(LATE)
    half = PreparedBlocks(JANUARY, JULY - 1)
    engine.prepare(declaration, text, version=1, ranking_key=RANKING_KEY, progress=silent, blocks=half)
    sources_without(None)
    held = write(JULY, DECEMBER, PreparedBlocks(JANUARY, DECEMBER))
    for withdrawn in (None, WITHDRAWN):
        sources_without(withdrawn)
        held = write(FEBRUARY, FEBRUARY, held.with_corrections(FEBRUARY, FEBRUARY))
    return engine.open(1, ranking_key=RANKING_KEY)


def _kind(row: dict[str, object]) -> int:
    return zlib.crc32(repr(sorted(row.items())).encode()) % KINDS_OF_ROWS
