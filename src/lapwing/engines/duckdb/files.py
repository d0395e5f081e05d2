"""The files that a virtual version reads: which they are, and whether they are still what they were."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any, TypeAlias

from lapwing.catalog import Declaration
from lapwing.errors import PreparationError


@dataclass(frozen=True, slots=True)
class FileState:
    """A file as it was at one moment."""

    path: str
    bytes: int
    changed_nanoseconds: int
    inode: int


Listing: TypeAlias = dict[str, tuple[FileState, ...]]
"""The files of every private table, by its name."""


def files_now(declaration: Declaration) -> Listing:
    """The files of every private table, as they are now."""
    listing: Listing = {}
    for table in declaration.tables:
        paths = sorted(glob.glob(declaration.source_path(table)))
        if not paths:
            raise PreparationError("source-missing", "the source file does not exist")
        states = [(os.path.realpath(path), os.stat(path)) for path in paths]
        listing[table.name] = tuple(FileState(path, found.st_size, found.st_mtime_ns, found.st_ino) for path, found in states)
    return listing


def listing_body(listing: Listing) -> dict[str, list[list[object]]]:
    """A listing as it is kept in a version."""
    return {name: [list(astuple(file)) for file in files] for name, files in listing.items()}


def listing_value(body: Mapping[str, Any]) -> Listing:
    """Inverse of :func:`listing_body`."""
    return {name: tuple(FileState(*file) for file in files) for name, files in body.items()}
