"""What a file is, whatever it is called: to recognise that two data sets are about the same rows."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterable, Iterator


def file_marks(paths: Iterable[str]) -> frozenset[str]:
    """Two marks for every file that a path, a folder or a pattern stands for: where it is, and which file of the disk it is.

    The second recognises hard links; the first stays when a file is written anew. A path that stands for nothing has no marks: reading it
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
