"""Identities of files, independent of their names: to recognise that two data sets, or two tables of one, contain the same rows."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from lapwing.catalog import Declaration
from lapwing.errors import CatalogueError


def file_marks(paths: Iterable[str]) -> frozenset[str]:
    """Two marks for every file that matches a path, a folder or a pattern: its location, and its identity on the disk.

    The second recognises hard links; the first stays when a file is written anew. A path without files has no marks: reading it
    fails by itself.
    """
    return frozenset(mark for path in paths for file in _files(path) for mark in _marks(file))


def text_mark(text: str) -> str:
    """The mark of something that has a name of its own, however long."""
    return f"name {hashlib.sha256(text.encode()).hexdigest()}"


def _files(path: str) -> Iterator[str]:
    for match in [path] if os.path.exists(path) else glob.iglob(path, recursive=True):
        if os.path.isdir(match):
            yield from (os.path.join(folder, name) for folder, _, names in os.walk(match, followlinks=True) for name in names)
        else:
            yield match


def _marks(file: str) -> tuple[str, str]:
    status = os.stat(file)
    path = hashlib.sha256(os.path.realpath(file).encode()).hexdigest()
    return f"path {path}", f"file {status.st_dev}:{status.st_ino}"


def shared_sources(declaration: Declaration, marks: Mapping[str, AbstractSet[str]]) -> Iterator[CatalogueError]:
    """Tables that read the same rows under two names: a protected one and a public one, or two protected ones. ``marks`` are by table.

    The catalogue compares names as written; a link, a path through a link or two patterns that meet in one file show only here. Of two
    protected tables files are compared, and no tables of a server: two materialised views may be made from the same table.
    """
    protected = [table.name for table in declaration.tables]
    for place, name in enumerate(protected):
        for first in protected[:place]:
            if any(mark.startswith(("path ", "file ")) for mark in marks[first] & marks[name]):
                hint = "one source, one table: rows declared twice would count twice"
                yield CatalogueError("catalogue-duplicate", f"`{name}` reads a file that `{first}` reads already", hint=hint)
    for public in declaration.public_tables:
        for first in protected:
            if marks[first] & marks[public.name]:
                message = f"the public table `{public.name}` has rows of the source of the protected table `{first}`"
                hint = "a protected source cannot be public as well, under whatever name; copy what is public into a source of its own"
                yield CatalogueError("catalogue-contradiction", message, hint=hint)
