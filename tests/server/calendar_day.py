"""The day by the clock of Python in processes that a test starts, which the test sets while they run.

libfaketime would do it too (``tests/faults/clock.py``), but ``time.sleep`` fails under it, and a server sleeps before it tells how long a
plan took.
"""

from __future__ import annotations

import datetime
import os
import time
from pathlib import Path

import pytest

# Python runs a module of this name, found on its path, before anything else.
_CUSTOMIZE = """
import time
from pathlib import Path
_right, _wrong = time.time, Path(__file__).with_name("seconds")
time.time = lambda: _right() + int(_wrong.read_text())
"""


class CalendarDay:
    """The day, for all Python processes that are started from now on."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        directory.mkdir()
        self._wrong = directory / "seconds"
        (directory / "sitecustomize.py").write_text(_CUSTOMIZE, encoding="utf-8")
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(directory), *filter(None, [os.environ.get("PYTHONPATH")])]))

    def set(self, day: datetime.date) -> None:
        """From now on it is noon (UTC) of this day, or later: no day ends by itself during a test."""
        noon = datetime.datetime.combine(day, datetime.time(12), datetime.UTC)
        new = self._wrong.with_name("new")
        new.write_text(str(int(noon.timestamp() - time.time())), encoding="ascii")
        new.replace(self._wrong)  # nobody ever reads half of it
