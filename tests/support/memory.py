"""Temporary files of the tests, in memory where there is room: a sync costs no time there.

A killed process loses nothing in memory that it would keep on a disk, and power cuts cannot be tested either way.
``LAPWING_TEST_DISK`` asks for the disk all the same.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

IN_MEMORY = Path("/dev/shm")
ROOM_BYTES = 4 * 2**30
"""What a test that passed wrote is removed at its end, so that a run needs far less than this."""


def roomy_memory() -> Path | None:
    """Where files in memory go; None where there is little room or programs in them could not be started."""
    if os.environ.get("LAPWING_TEST_DISK") or not IN_MEMORY.is_dir() or os.statvfs(IN_MEMORY).f_flag & os.ST_NOEXEC:
        return None
    return IN_MEMORY if shutil.disk_usage(IN_MEMORY).free > ROOM_BYTES else None


def keep_temporary_files_in_memory() -> None:
    """Of this process and of all that it starts; not where somebody has chosen a place."""
    memory = roomy_memory()
    if memory is not None and "TMPDIR" not in os.environ:
        os.environ["TMPDIR"] = str(memory)
        tempfile.tempdir = None  # it may have been looked up already
