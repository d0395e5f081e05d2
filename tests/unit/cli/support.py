"""Running the command line in tests: in this process, or in one of its own."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyte
import pytest
from click.testing import CliRunner
from rich.style import Style
from typer.main import get_command

from lapwing.interfaces.cli.app import app, main

_COMMANDS = get_command(app)
"""Read from their functions once, not for each run."""
ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended and what it wrote."""

    status: int
    out: str
    err: str


_OF_TERMINALS = ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS", "TERM")


def _forget_styles() -> None:
    """A style keeps the codes of the first terminal that it was shown on, whatever the next one can show."""
    Style.parse.cache_clear()
    Style._add.cache_clear()


def run(*arguments: str | Path, home: Path, stdin: str | None = None, variables: Mapping[str, str] | None = None) -> Ran:
    """A command in this process, with a registry of its own. An exception that the command line did not turn into a status is raised."""
    environment = {**dict.fromkeys(_OF_TERMINALS, None), "LAPWING_HOME": str(home), **(variables or {})}
    given = [str(argument) for argument in arguments]
    _forget_styles()
    result = CliRunner().invoke(_COMMANDS, given, input=stdin, env=environment)  # type: ignore[arg-type]  # typer has a copy of click
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


def run_on_terminal(*arguments: str | Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Ran:
    """A command as ``main`` runs it, in this process, with a real pseudo-terminal as its output: ``out`` is every byte that reached it."""
    above, below = pty.openpty()
    _forget_styles()
    written: list[bytes] = []

    def read() -> None:
        with suppress(OSError):  # as Linux says that the other end is closed
            while piece := os.read(above, 65_536):
                written.append(piece)

    reader = threading.Thread(target=read)
    reader.start()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    with monkeypatch.context() as patch, open(below, "w", encoding="utf-8") as stream:
        for name in _OF_TERMINALS:
            patch.delenv(name, raising=False)
        for name, value in {"LAPWING_HOME": str(home), "TERM": "xterm-256color", "COLUMNS": "150", "LINES": "40"}.items():
            patch.setenv(name, value)
        for name in ("stdout", "stderr"):
            patch.setattr(sys, name, stream)
        patch.setattr(sys, "argv", ["lapwing", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
    for number, handler in before.items():
        signal.signal(number, handler)
    reader.join()
    os.close(above)
    return Ran(int(ended.value.code or 0), b"".join(written).decode(), "")


def screen_after(text: str) -> str:
    """What stands on a terminal after these bytes reached it."""
    screen = pyte.Screen(150, 200)
    pyte.Stream(screen).feed(text)
    return "\n".join(line.rstrip() for line in screen.display)


def run_process(*arguments: str | Path, home: Path, variables: Mapping[str, str] | None = None, code: str = "") -> Ran:
    """A command in a process of its own; ``code`` runs instead of the module when given."""
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH", "")])])
    inherited = {name: value for name, value in os.environ.items() if name not in _OF_TERMINALS}
    start = ["-c", code] if code else ["-m", "lapwing.interfaces.cli"]
    ended = subprocess.run(
        [sys.executable, *start, *map(str, arguments)],
        env={**inherited, "PYTHONPATH": path, "LAPWING_HOME": str(home), "PYTHONIOENCODING": "utf-8", **(variables or {})},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return Ran(ended.returncode, ended.stdout, ended.stderr)
