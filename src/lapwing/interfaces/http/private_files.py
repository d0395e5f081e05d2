"""Files of the server that hold secrets: only its own user, and optionally a group of that user, can read them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from lapwing.errors import LapwingError


def require_private(files: Iterable[Path]) -> None:
    """Refuse to start if other users can read or write one of these; missing files are skipped."""
    for file in files:
        if file.exists() and _is_open_to_others(file):
            message = f"{file} can be read or written by users other than this server's"
            raise LapwingError("server-configuration", message, hint=f"chmod {'640' if _has_own_group(file) else '600'} {file}")


def make_private(file: Path) -> None:
    """Create an empty private file if there is none."""
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))


def _is_open_to_others(file: Path) -> bool:
    """Checks the modes of the file and its directory. A group of ours may read: containers mount secrets this way."""
    mode = file.stat().st_mode
    if mode & stat.S_IRWXG & ~stat.S_IXGRP and not _has_own_group(file):
        return bool(file.parent.stat().st_mode & (stat.S_IXGRP | stat.S_IXOTH))
    return bool(mode & (stat.S_IROTH | stat.S_IWOTH) and file.parent.stat().st_mode & stat.S_IXOTH)


def _has_own_group(file: Path) -> bool:
    return file.stat().st_gid in {os.getegid(), *os.getgroups()}
