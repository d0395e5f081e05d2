"""Where the rows of blocks of time are: a folder of Parquet files for each table and block, written once.

    .lapwing/v000001.spark/visits/w000001/_in_block=19723/   block 19723 of visits, written by the first write

No folder changes once the version names it: a correction is of another write. The version's file says which write holds each block, and is
replaced whole after the files are there; folders that it no longer names are removed after that. So a reader that lists folders, and then
finds its blocks named as before, has listed them whole. Folders that no version names are left over from a write that was interrupted; the
next write removes them.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from lapwing.catalog.blocks import PreparedBlocks
from lapwing.engines.spark.sources import SourceFiles

IN_BLOCK = "_in_block"
"""Name before the number of the block in the name of a folder. The files inside hold the number too."""
FIRST_WRITE = 1
"""Number of the write that prepares a version."""


@dataclass(frozen=True, slots=True)
class WrittenFolders:
    """Which blocks a version holds, and where."""

    prepared: PreparedBlocks
    writes: int
    """How often blocks were written: the number of the newest write."""
    held: Mapping[str, Mapping[int, int]]
    """By table and block, the number of the write that holds its rows; a block without rows is in none."""
    read: Mapping[str, Mapping[int, int]]
    """By table and block, how many rows of the source were in it when it was written: data, for the owner alone."""
    files: Mapping[str, SourceFiles]
    """Of each table on files, those that the newest write found, and their schema: those that are there unchanged need no second look."""

    def after(
        self,
        prepared: PreparedBlocks,
        write: tuple[int, int],
        held: Mapping[str, Mapping[int, int]],
        read: Mapping[str, Mapping[int, int]],
        files: Mapping[str, SourceFiles],
    ) -> WrittenFolders:
        """After one more write."""

        def changed(old: Mapping[str, Mapping[int, int]], new: Mapping[str, Mapping[int, int]]) -> dict[str, dict[int, int]]:
            return {
                table: {block: blocks[block] for block in blocks if block >= prepared.first and not write[0] <= block <= write[1]}
                | {**new.get(table, {})}
                for table, blocks in old.items()
            }

        return WrittenFolders(prepared, self.writes + 1, changed(self.held, held), changed(self.read, read), {**self.files, **files})

    def body(self) -> dict[str, Any]:
        """For a file: blocks in a row that one write holds are one entry."""
        return {
            "prepared": self.prepared.body(),
            "writes": self.writes,
            "held": {table: _joined(held) for table, held in self.held.items()},
            "read": {table: sorted(read.items()) for table, read in self.read.items()},
            "files": {table: files.body() for table, files in self.files.items()},
        }

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> WrittenFolders:
        """Inverse of :meth:`body`."""
        prepared = PreparedBlocks.of(body["prepared"])
        assert prepared is not None
        held = {
            table: {block: write for first, last, write in listed for block in range(first, last + 1)}
            for table, listed in body["held"].items()
        }
        read = {table: dict(listed) for table, listed in body["read"].items()}
        return cls(prepared, int(body["writes"]), held, read, {table: SourceFiles.of(files) for table, files in body["files"].items()})

    def folders(self, rows: Path, table: str, blocks: tuple[int, int]) -> list[Path]:
        """The folders with the rows of these blocks of a table, of a version whose rows are in ``rows``."""
        held = self.held[table]
        return [
            write_folder(rows, table, held[block]) / f"{IN_BLOCK}={block}" for block in range(blocks[0], blocks[1] + 1) if block in held
        ]


def _joined(held: Mapping[int, int]) -> list[tuple[int, int, int]]:
    joined: list[tuple[int, int, int]] = []
    for block, write in sorted(held.items()):
        if joined and joined[-1][1:] == (block - 1, write):
            joined[-1] = joined[-1][0], block, write
        else:
            joined.append((block, block, write))
    return joined


def write_folder(rows: Path, table: str, write: int) -> Path:
    """Where one write puts the blocks of a table."""
    return rows / table / f"w{write:06d}"


def rows_written(folder: Path) -> dict[int, int]:
    """How many rows a write wrote to each block that has any, as its files say."""
    found: dict[int, int] = {}
    for part in folder.glob(f"{IN_BLOCK}=*"):
        found[int(part.name.partition("=")[2])] = sum(pq.read_metadata(path).num_rows for path in part.glob("*.parquet"))
    return found


def remove_others(rows: Path, index: WrittenFolders) -> None:
    """Remove the folders of blocks that the index does not name."""
    for table, held in index.held.items():
        named = {write_folder(rows, table, write).name for write in held.values()}
        for folder in _folders(rows / table):
            if folder.name not in named:
                shutil.rmtree(folder, ignore_errors=True)
                continue
            for part in _folders(folder):
                name, _, block = part.name.partition("=")
                if name == IN_BLOCK and write_folder(rows, table, held.get(int(block), 0)) != folder:
                    shutil.rmtree(part, ignore_errors=True)


def _folders(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir()] if folder.exists() else []
