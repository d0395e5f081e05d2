"""A real pseudo-terminal with a program in it, and what stands on its screen."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pexpect
import pyte

from tests.unit.cli.support import ROOT

COLUMNS, LINES = 100, 40
WAIT_SECONDS = 120.0
"""Generous, for a busy machine: what is waited for comes, or the test fails."""


class Screen:
    """``lapwing`` on a terminal: keys go in, and the screen is read."""

    def __init__(self, *arguments: str | Path, home: Path, variables: Mapping[str, str] | None = None) -> None:
        path = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH", "")])])
        inherited = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES")}
        self._screen = pyte.HistoryScreen(COLUMNS, LINES, history=2_000)
        self._stream = pyte.ByteStream(self._screen)
        self._process = pexpect.spawn(
            sys.executable,
            ["-m", "lapwing.interfaces.cli", *map(str, arguments)],
            env={**inherited, "PYTHONPATH": path, "LAPWING_HOME": str(home), "TERM": "xterm-256color", **(variables or {})},
            dimensions=(LINES, COLUMNS),
            timeout=WAIT_SECONDS,
        )
        self._process.delaybeforesend = None

    def type(self, keys: str) -> None:
        """Press keys."""
        self._process.send(keys)

    def shown(self) -> str:
        """What stands on the screen, and what has scrolled out of it at the top."""
        self._read(0.05)
        above = ["".join(line[column].data for column in range(COLUMNS)).rstrip() for line in self._screen.history.top]
        return "\n".join([*above, *(line.rstrip() for line in self._screen.display)])

    def wait_for(self, text: str, *, times: int = 1) -> str:
        """The screen once a text stands on it, so many times."""
        until = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < until:
            shown = self.shown()
            if shown.count(text) >= times:
                return shown
            if not self._process.isalive():
                self._read_the_rest()
                if (shown := self.shown()).count(text) >= times:
                    return shown
                break
        raise AssertionError(f"{text!r} is not on the screen:\n{self.shown()}")

    def interrupt(self) -> None:
        """Ctrl-C."""
        self._process.sendintr()

    def ended(self) -> int:
        """Wait for the end; the exit status."""
        until = time.monotonic() + WAIT_SECONDS
        while self._process.isalive() and time.monotonic() < until:
            self._read(0.05)
        self._read_the_rest()
        self._process.close()
        return int(self._process.exitstatus if self._process.exitstatus is not None else 128 + (self._process.signalstatus or 0))

    def close(self) -> None:
        """End the program, whatever it does."""
        self._process.close(force=True)

    def _read_the_rest(self) -> None:
        """What it said before it ended: the system hands it over a moment after the process is gone."""
        until = time.monotonic() + 1.0
        while time.monotonic() < until:
            if not self._read(0.05):
                time.sleep(0.05)

    def _read(self, seconds: float) -> bool:
        try:
            piece: bytes = self._process.read_nonblocking(65_536, timeout=seconds)
        except (pexpect.TIMEOUT, pexpect.EOF):
            return False
        self._stream.feed(piece)
        for question in self._screen_questions(piece):
            self._process.send(question)
        return True

    def _screen_questions(self, piece: bytes) -> list[str]:
        """A terminal that is asked where its cursor is tells it."""
        if b"\x1b[6n" not in piece:
            return []
        return [f"\x1b[{self._screen.cursor.y + 1};{self._screen.cursor.x + 1}R"]
