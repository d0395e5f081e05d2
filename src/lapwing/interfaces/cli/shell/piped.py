"""The shell without a terminal: statements from standard input, one after another, up to the first that fails."""

from __future__ import annotations

import re
from typing import TextIO

from lapwing.interfaces.cli import terminal
from lapwing.interfaces.cli.exits import ExitStatus
from lapwing.interfaces.cli.shell.session import ShellSession
from lapwing.interfaces.cli.shell.splitting import is_command, split

_SILENT = re.compile(r"\s*\\set\s+\S")
"""A command that prints nothing, and so needs no empty line before it."""


def run_piped(session: ShellSession, lines: TextIO) -> int:
    """Run the statements and commands; returns the status of the first that fails, else 0. The last may lack its semicolon."""
    waiting, written = "", False

    def run(text: str) -> bool:
        nonlocal written
        is_silent = _SILENT.match(text) is not None
        if written and not is_silent:
            terminal.write("")
        session.run(text)
        written = written or not is_silent
        return session.status == ExitStatus.OK and not session.is_over

    for line in lines:
        if is_command(line) and not waiting.strip():
            if not run(line):
                return session.status
            continue
        parts = split(waiting + line)
        for statement in parts.statements:
            if not run(f"{statement}\n;"):
                return session.status
        waiting = parts.rest
    if waiting.strip():
        run(f"{waiting}\n;")
    return session.status
