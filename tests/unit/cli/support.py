"""Running the command line in tests: in this process, or in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner
from typer.main import get_command

from lapwing.cli.app import app

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


def run(*arguments: str | Path, home: Path, stdin: str | None = None, variables: Mapping[str, str] | None = None) -> Ran:
    """A command in this process, with a registry of its own. An exception that the command line did not turn into a status is raised."""
    environment = {**dict.fromkeys(_OF_TERMINALS, None), "LAPWING_HOME": str(home), **(variables or {})}
    given = [str(argument) for argument in arguments]
    result = CliRunner().invoke(_COMMANDS, given, input=stdin, env=environment)  # type: ignore[arg-type]  # typer has a copy of click
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


def run_process(*arguments: str | Path, home: Path, variables: Mapping[str, str] | None = None, code: str = "") -> Ran:
    """A command in a process of its own; ``code`` runs instead of the module when given."""
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH", "")])])
    inherited = {name: value for name, value in os.environ.items() if name not in _OF_TERMINALS}
    start = ["-c", code] if code else ["-m", "lapwing.cli"]
    ended = subprocess.run(
        [sys.executable, *start, *map(str, arguments)],
        env={**inherited, "PYTHONPATH": path, "LAPWING_HOME": str(home), "PYTHONIOENCODING": "utf-8", **(variables or {})},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return Ran(ended.returncode, ended.stdout, ended.stderr)
