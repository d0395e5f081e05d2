"""Rows in blocks of time: how many a source has in each block, which blocks a version is given, and what a plan may still read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lapwing.catalog import Declaration, TableDecl
from lapwing.catalog.blocks import PreparedBlocks, number_of_block
from lapwing.catalog.facts import blocks_of_table
from lapwing.engines.prepare import SourceTable, clean_column, rows_near
from lapwing.errors import PreparationError
from lapwing.kernel.blocks import reach_of
from lapwing.kernel.certify import Certified
from lapwing.kernel.domains import Domain
from lapwing.render.dialect import Dialect
from lapwing.render.expressions import VisibleColumns, render_expression

SOURCE_BLOCK = "_lapwing_block"
"""Column that :func:`rows_in_blocks` adds to a source: the block of each row."""
_TIME = "_lapwing_time"
_OTHER_ROWS = "a block of time that is read was corrected or deleted since the version was opened"


def tables_with_blocks(declaration: Declaration) -> tuple[TableDecl, ...]:
    """Tables that have blocks of time."""
    return tuple(table for table in declaration.tables if table.blocks is not None)


def common_blocks(some: tuple[int, int], others: tuple[int, int]) -> tuple[int, int]:
    """The blocks that two ranges share; the first is behind the last if they share none."""
    return max(some[0], others[0]), min(some[1], others[1])


def blocks_held(table: TableDecl, prepared: PreparedBlocks) -> tuple[int, int]:
    """The blocks of a table that a version holds."""
    return common_blocks(blocks_of_table(table), (prepared.first, prepared.last))


def rows_in_blocks(
    declared: TableDecl, source: SourceTable, columns: Mapping[str, Domain], blocks: tuple[int, int], dialect: Dialect
) -> SourceTable:
    """The rows of a source that are in these blocks, each with the number of its block."""
    near = _rows_with_blocks(declared, source, columns, blocks, dialect)
    return SourceTable(f"(SELECT * FROM {near} s WHERE s.{SOURCE_BLOCK} BETWEEN {blocks[0]} AND {blocks[1]})", source.kinds)


def rows_without_block_query(declared: TableDecl, source: SourceTable, columns: Mapping[str, Domain], dialect: Dialect) -> str:
    """SELECT of how many rows of a source are in no block of time, and how many there are."""
    assert declared.blocks is not None
    name = declared.blocks.column
    time = clean_column(declared.column(name), source, columns[name], dialect)
    return f"SELECT COUNT(*) - COUNT({time}), COUNT(*) FROM {source.sql} s"


def rows_by_block_query(
    declared: TableDecl, source: SourceTable, columns: Mapping[str, Domain], blocks: tuple[int, int], dialect: Dialect
) -> str:
    """SELECT of how many rows a source has in each of these blocks that has any."""
    rows = rows_in_blocks(declared, source, columns, blocks, dialect)
    return f"SELECT s.{SOURCE_BLOCK}, COUNT(*) FROM {rows.sql} s GROUP BY s.{SOURCE_BLOCK} ORDER BY 1"


def _rows_with_blocks(
    declared: TableDecl, source: SourceTable, columns: Mapping[str, Domain], blocks: tuple[int, int], dialect: Dialect
) -> str:
    assert declared.blocks is not None
    name = declared.blocks.column
    near = rows_near(declared, source, blocks, dialect)
    time = clean_column(declared.column(name), near, columns[name], dialect)
    # The source may have a column of the same name with another value: the raw one.
    scope = VisibleColumns(columns, "c", dialect, {name: ("c", _TIME)})
    number = render_expression(number_of_block(declared.blocks), scope)
    timed = f"SELECT s.*, {time} AS {dialect.quoted(_TIME)} FROM {near.sql} s"
    return f"(SELECT c.*, CAST({number} AS INTEGER) AS {SOURCE_BLOCK} FROM ({timed}) c)"


def stretches(rows: Mapping[int, int], rows_at_once: int) -> Iterator[tuple[int, int]]:
    """Blocks with rows as ranges that follow each other, each of one block or of at most so many rows."""
    first, last, held = 0, 0, 0
    for block in sorted(rows):
        if held and held + rows[block] > rows_at_once:
            yield first, last
            held = 0
        first, last, held = block if not held else first, block, held + rows[block]
    if held:
        yield first, last


def more_rows(read: Mapping[int, int], now: Mapping[int, int]) -> int:
    """How many more rows the blocks have now than were read. Rows that left the source do not make up for them."""
    return sum(max(count - read.get(block, 0), 0) for block, count in now.items())


def require_follows(before: PreparedBlocks, after: PreparedBlocks, write: tuple[int, int]) -> None:
    """Pre: of ``write_blocks``. Every block held afterwards was held before or is written; one that is written again is a correction."""
    held, numbers, newer = range(before.first, before.last + 1), dict(before.corrected), dict(after.corrected)
    for block in range(after.first, after.last + 1):
        is_written = write[0] <= block <= write[1]
        if block not in held:
            assert is_written, f"block {block} is neither held nor written"
        elif is_written:
            assert newer.get(block, 0) > numbers.get(block, 0), f"block {block} is written again and not numbered as a correction"
        else:
            assert newer.get(block, 0) == numbers.get(block, 0), f"block {block} is numbered as a correction and not written"


def require_same_tables(declaration: Declaration, prepared: Declaration) -> None:
    """Refuse to add rows to a version whose tables were declared in another way: they would mean something else."""
    for table in tables_with_blocks(prepared):
        now = next((one for one in declaration.tables if one.name == table.name), None)
        if now is None or _meaning(now) != _meaning(table):
            hint = "prepare a new version, or take the change back"
            raise PreparationError("version-mismatch", f"the catalogue declares {table.name!r} in another way than the version", hint=hint)


def _meaning(table: TableDecl) -> tuple[object, ...]:
    return table.columns, table.unit, table.rows_per_unit_max, table.rows_max, table.blocks


def require_as_opened(certified: Certified, opened: PreparedBlocks, now: PreparedBlocks | None) -> None:
    """Refuse a plan that reads a block which has other rows now than when its snapshot was opened, or none. Depends on no row."""
    if now == opened:
        return
    reads = {blocks for query in certified.plan.queries for blocks in reach_of(query.source).blocks}
    for blocks in reads:
        if now is None or not now.first <= blocks.first <= blocks.last <= now.last:
            raise PreparationError("snapshot-outdated", _OTHER_ROWS, hint="open the data set again")
        numbers = [[(block, number) for block, number in each.corrected if blocks.first <= block <= blocks.last] for each in (opened, now)]
        if numbers[0] != numbers[1]:
            raise PreparationError("snapshot-outdated", _OTHER_ROWS, hint="open the data set again")
