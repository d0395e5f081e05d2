"""How a command ends: its exit status says who must act, and what it prints never holds a value from the data.

The texts of Lapwing's own errors are made from public facts. Any other exception may carry a value in its message, so only its type and
the place in our source are shown.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path

import typer

from lapwing.errors import Actor, BudgetRefused, CallRefused, LapwingError


class ExitStatus(IntEnum):
    """Exit statuses of ``lapwing``. The argument parser uses 2."""

    OK = 0
    INTERNAL = 1
    """An internal fault, or a problem for the operator, such as a damaged ledger."""
    USAGE = 2
    """The command was called incorrectly."""
    REFUSED = 3
    """The analyst can ask differently; nothing was charged."""
    BUDGET = 4
    """The budget cannot pay; nothing was charged."""
    OWNER = 5
    """The owner must act: the catalogue, a preparation or an incident."""
    REFUTED = 6
    """An audit refuted a claim of differential privacy."""


JSON = "json"
"""The value of ``--format`` for programs."""
_WITHHELD = "This is a fault in Lapwing. Its message is withheld, because it could hold a value from the data."
INTERRUPTED = 130
"""The exit status after Ctrl-C, as in shells."""


def status_of(error: LapwingError) -> ExitStatus:
    """The exit status for an error."""
    if isinstance(error, BudgetRefused):
        return ExitStatus.BUDGET
    match error.actor:
        case Actor.ANALYST:
            return ExitStatus.REFUSED
        case Actor.OWNER:
            return ExitStatus.OWNER
        case Actor.OPERATOR:
            return ExitStatus.INTERNAL


def usage_error(message: str) -> typer.BadParameter:
    """The exception for wrong usage; it exits with 2."""
    return typer.BadParameter(message)


def without_password_typed(context: typer.Context, option: typer.CallbackParam, value: str | None) -> str | None:
    """The connection string in an option. A typed one must hold no password: other users of the machine could see it."""
    from lapwing.catalog.build import has_password

    source = context.get_parameter_source(option.name or "")
    if value is not None and has_password(value) and source is not None and source.name == "COMMANDLINE":
        raise usage_error("other users of this machine can see a typed password: keep it in a file (passfile, ~/.pgpass) or a variable")
    return value


@contextmanager
def reported(statement: str = "", form: str = "") -> Iterator[None]:
    """Turn errors into text on standard error and an exit status. ``statement`` is the SQL that a refusal's caret points into. If
    ``form``, the value of ``--format``, is JSON, an error is one JSON object instead.
    """
    try:
        yield
    except (typer.Exit, typer.Abort, BrokenPipeError, KeyboardInterrupt):
        raise
    except typer.BadParameter as error:
        if form != JSON:
            raise
        _write_problem(CallRefused("usage", error.message, hint="see --help"), ExitStatus.USAGE)
        raise typer.Exit(ExitStatus.USAGE) from None
    except Exception as error:
        raise typer.Exit(report_error(error, statement, form)) from None


def report_error(error: Exception, statement: str = "", form: str = "") -> ExitStatus:
    """Write an error to standard error; returns its exit status."""
    from lapwing.interfaces.cli.terminal import write_error

    fault = LapwingError("internal", f"{type(error).__name__} at {_place(error)}", hint=_WITHHELD)
    own = error if isinstance(error, LapwingError) else fault
    if form == JSON:
        _write_problem(own, status_of(own))
    elif own is fault:
        sys.stderr.write(f"internal error: {fault.message}\n{fault.hint}\n")
    else:
        write_error(error_text(own, statement))
    return status_of(own)


def _write_problem(error: LapwingError, status: ExitStatus) -> None:
    """An error for a program that reads standard error."""
    body = {**error.problem(), "exit_status": int(status)}
    if notes := getattr(error, "__notes__", []):
        body["notes"] = notes
    sys.stderr.write(json.dumps(body, ensure_ascii=False, indent=2) + "\n")


def error_text(error: LapwingError, statement: str = "") -> str:
    """An error as text, with the line and a caret if it points into a statement; notes (further problems) below."""
    if statement and error.actor is Actor.ANALYST:
        from lapwing.answers.display.refusal_text import render_refusal

        text = render_refusal(statement, error)
    else:
        text = f"[{error.code}] {error.message}" + (f"\nhint: {error.hint}" if error.hint else "")
    return "\n\n".join([text.rstrip("\n"), *getattr(error, "__notes__", [])])


def _place(error: Exception) -> str:
    """The last place in our own source that an exception passed through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "lapwing" in Path(frame.filename).parts]
    if not frames:
        return "an unknown place"
    path = Path(frames[-1].filename)
    inside = path.parts[len(path.parts) - 1 - path.parts[::-1].index("lapwing") :]
    return f"{'/'.join(inside)}:{frames[-1].lineno}"
