"""The files that a virtual version reads, and checks that they are unchanged.

A virtual version is about the files that were there when it was prepared, and about no other. A file that arrives later is in no answer and
changes none; it waits for the next version, as a new row waits where rows are copied.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any, TypeAlias

from lapwing.catalog import Declaration, TableDecl
from lapwing.engines.prepare import SourceTable
from lapwing.engines.sources import source_files
from lapwing.render.dialect import SourceKind


@dataclass(frozen=True, slots=True)
class FileState:
    """A file as it was at one moment."""

    path: str
    bytes: int
    changed_nanoseconds: int
    inode: int


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The files of one table, and what its columns hold in all of them."""

    files: tuple[FileState, ...]
    kinds: Mapping[str, SourceKind]

    @property
    def paths(self) -> tuple[str, ...]:
        """Where the files are."""
        return tuple(file.path for file in self.files)


Listing: TypeAlias = dict[str, TableFiles]
"""The files of every private table, by its name."""


def states_now(declaration: Declaration) -> dict[str, tuple[FileState, ...]]:
    """All files that match the sources now."""
    return {table.name: file_states(declaration, table) for table in declaration.tables}


def file_states(declaration: Declaration, table: TableDecl) -> tuple[FileState, ...]:
    """The files that match the source of a table now."""
    return tuple(_state(path) for path in source_files(declaration.source_path(table)))


def listing_of(states: Mapping[str, tuple[FileState, ...]], sources: Mapping[str, SourceTable]) -> Listing:
    """A version's record of its files."""
    return {name: TableFiles(files, dict(sources[name].kinds)) for name, files in states.items()}


def are_unchanged(listing: Listing) -> bool:
    """Whether every file of a version exists unchanged; other files do not matter."""
    try:
        return all(_state(file.path) == file for table in listing.values() for file in table.files)
    except OSError:
        return False


def listing_body(listing: Listing) -> dict[str, object]:
    """A listing in the form stored in a version."""
    return {
        name: {"files": [list(astuple(file)) for file in table.files], "kinds": {column: kind.name for column, kind in table.kinds.items()}}
        for name, table in listing.items()
    }


def listing_value(body: Mapping[str, Any]) -> Listing:
    """Inverse of :func:`listing_body`."""
    return {
        name: TableFiles(
            tuple(FileState(*file) for file in table["files"]), {column: SourceKind[kind] for column, kind in table["kinds"].items()}
        )
        for name, table in body.items()
    }


def _state(path: str) -> FileState:
    status = os.stat(path)
    return FileState(path, status.st_size, status.st_mtime_ns, status.st_ino)
