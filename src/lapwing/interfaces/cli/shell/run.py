"""Starts a session: at a prompt on a terminal, otherwise from piped input."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

from lapwing.interfaces.cli import terminal
from lapwing.interfaces.cli.exits import ExitStatus, usage_error
from lapwing.interfaces.cli.place import require_prepared
from lapwing.interfaces.cli.shell.session import ShellSession

if TYPE_CHECKING:
    from lapwing.data_set import DataSet
    from lapwing.interfaces.python.remote import RemoteDataSet


def run_shell(data_set: DataSet | RemoteDataSet) -> int:
    """Run a session to its end; returns the exit status."""
    require_prepared(data_set)
    session = ShellSession(data_set)
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        from lapwing.interfaces.cli.shell.piped import run_piped

        try:
            return run_piped(session, sys.stdin)
        except UnicodeDecodeError:
            raise usage_error("standard input is not UTF-8 text") from None
        finally:
            session.settle()
    from lapwing.interfaces.cli.shell.prompting import ShellPrompt

    budget = data_set.budget
    session.share_left = 1 - budget.share_spent
    terminal.write(
        f"lapwing {version('lapwing')}: {data_set.name}, protects {budget.protects}; {session.share_left:.1%} of the budget is left"
    )
    terminal.write("A statement ends with a semicolon. \\? lists commands, \\q leaves.\n")
    try:
        ShellPrompt(session).run()
    finally:
        session.settle()
    return ExitStatus.OK
