"""The files of a version's blocks of time: one Parquet file for each table and block, written once, and an index that says which belong.

    v000001.duckdb               standing tables, public tables, and an empty table for each table with blocks
    v000001.blocks/index.json    which blocks the version holds, and their files; replaced whole
    v000001.blocks/0/19723-1.parquet   of the first declared table, block 19723, written by the first write

A file is never changed: a correction has a new name. A reader with an older index reads older files, or is refused once
they are gone. Files that no index names are left over from a write that was interrupted; the next write removes them.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lapwing.catalog.blocks import PreparedBlocks
from lapwing.errors import PreparationError
from lapwing.kernel.ir import Blocks
from lapwing.render.dialect import quoted, standard_text_literal

_INDEX = "index.json"


@dataclass(frozen=True, slots=True)
class BlockIndex:
    """Which blocks a version holds, and where."""

    prepared: PreparedBlocks
    writes: int
    """How often blocks were written: the number of the newest write, which is part of the names of its files."""
    files: Mapping[str, Mapping[int, str]]
    """By table and block, its file within the folder; a block without rows has none."""
    read: Mapping[str, Mapping[int, int]]
    """By table and block, how many rows of the source were in it when it was written: data, for the owner alone."""

    def after(
        self,
        prepared: PreparedBlocks,
        write: tuple[int, int],
        files: Mapping[str, Mapping[int, str]],
        read: Mapping[str, Mapping[int, int]],
    ) -> BlockIndex:
        """After one more write."""

        def stays(block: int) -> bool:
            return block >= prepared.first and not write[0] <= block <= write[1]

        return BlockIndex(
            prepared,
            self.writes + 1,
            {table: {block: old[block] for block in old if stays(block)} | {**files.get(table, {})} for table, old in self.files.items()},
            {table: {block: old[block] for block in old if stays(block)} | {**read.get(table, {})} for table, old in self.read.items()},
        )


def blocks_folder(version: Path) -> Path:
    """Where the blocks of a version's file are."""
    return version.with_suffix(".blocks")


def read_index(folder: Path) -> BlockIndex:
    """The index as it is now."""
    try:
        body = json.loads((folder / _INDEX).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PreparationError("snapshot-unreadable", "the blocks of this version cannot be read", hint="prepare a new version") from error
    prepared = PreparedBlocks.of(body["prepared"])
    assert prepared is not None
    files, read = (
        {table: {int(block): value for block, value in blocks.items()} for table, blocks in body[name].items()}
        for name in ("files", "read")
    )
    return BlockIndex(prepared, int(body["writes"]), files, read)


def write_index(folder: Path, index: BlockIndex) -> None:
    """Replace the index: from here on it is what everybody opens."""
    body = {"prepared": index.prepared.body(), "writes": index.writes, "files": index.files, "read": index.read}
    partial = folder / f"{_INDEX}.partial"
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
        json.dump(body, handle, separators=(",", ":"))
        handle.flush()
        os.fsync(handle.fileno())
    os.replace(partial, folder / _INDEX)
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_others(folder: Path, index: BlockIndex) -> None:
    """Remove the files of blocks that the index does not name."""
    named = {name for files in index.files.values() for name in files.values()}
    for path in _block_files(folder):
        if path.relative_to(folder).as_posix() not in named:
            path.unlink()


def _block_files(folder: Path) -> Iterator[Path]:
    for part in folder.iterdir():
        if part.is_dir():
            yield from part.iterdir()


def rows_of_blocks(folder: Path, index: BlockIndex) -> Callable[[str, Blocks], str]:
    """SQL of the rows of a table in some blocks: of their files, and of no other."""
    start = os.path.abspath(folder)

    def rows(table: str, blocks: Blocks) -> str:
        held = index.files[table]
        names = [held[block] for block in range(blocks.first, blocks.last + 1) if block in held]
        return files_of([os.path.join(start, name) for name in names]) if names else quoted(table)

    return rows


def files_of(paths: list[str]) -> str:
    """SQL of the rows of files of blocks, all with the same columns."""
    listed = ", ".join(standard_text_literal(glob.escape(path)) for path in paths)
    return f"read_parquet([{listed}], hive_partitioning = false, union_by_name = false)"


def folders_allowed(folder: Path) -> list[str]:
    """The names under which an engine that may open no other file asks for those of a folder."""
    start = os.path.abspath(folder)
    return list(dict.fromkeys([start, glob.escape(start)]))
