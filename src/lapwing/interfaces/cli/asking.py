"""Helpers of ``lapwing ask``: the files that it writes on request, and the message when it is interrupted."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from lapwing.interfaces.cli import terminal
from lapwing.interfaces.cli.exits import INTERRUPTED, ExitStatus, usage_error

if TYPE_CHECKING:
    from lapwing.answers.answer import Answer
    from lapwing.asking.options import AskArguments
    from lapwing.data_set import DataSet
    from lapwing.interfaces.python.remote import RemoteDataSet


def require_meant(data_set: DataSet | RemoteDataSet, statement: str, options: AskArguments) -> None:
    """At a terminal, ask for confirmation before a large part of the budget is spent. Elsewhere the catalogue's limits protect it."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    from lapwing.answers.display.budget import LARGE_SHARE
    from lapwing.answers.display.number_format import share_text
    from lapwing.errors import LapwingError

    try:
        values = data_set.explain(statement, **options).to_dict()
    except LapwingError:
        return  # asking reports why, and nothing is charged
    share = values["share_of_budget"]
    if share <= LARGE_SHARE or values.get("stored") or not values["affordable"]:
        return
    if not is_confirmed(f"This costs {share_text(share)} of the whole budget. Ask? [y/N] "):
        terminal.write_note("Nothing was asked, and nothing was charged.")
        raise typer.Exit(ExitStatus.REFUSED)


def is_confirmed(question: str) -> bool:
    """Whether the user at the terminal answers yes; any other answer is a no."""
    sys.stderr.write(question)
    sys.stderr.flush()
    try:
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        terminal.write_note("")
        return False
    return answer.strip().lower() in ("y", "yes")


@contextmanager
def interruptible(data_set: DataSet | RemoteDataSet, request_id: str) -> Iterator[None]:
    """After Ctrl-C, say what may have happened, and how to get the answer without paying twice."""
    from lapwing.data_set import DataSet

    try:
        yield
    except KeyboardInterrupt:
        if isinstance(data_set, DataSet):
            terminal.write_note(
                "Interrupted. The statement may have been charged: see `lapwing history`. If it was answered, asking again is free."
            )
        else:
            terminal.write_note("Interrupted. The server continues with the statement and may charge it. The same statement with")
            terminal.write_note(f"  --request-id {request_id}")
            terminal.write_note("returns its answer and is charged once.")
        raise typer.Exit(INTERRUPTED) from None


def require_writable(data_set: DataSet | RemoteDataSet, *, receipt: Path | None, stored: Path | None) -> None:
    """Before anything is charged, refuse a file that exists or that could not be written afterwards."""
    from lapwing.data_set import DataSet
    from lapwing.receipts import no_signing_key

    if receipt is not None and isinstance(data_set, DataSet) and data_set.curator.place.keys is None:
        raise no_signing_key()
    for file in (receipt, stored):
        if file is not None and file.exists():
            raise usage_error(f"{file} already exists")
        if file is not None and not file.parent.is_dir():
            raise usage_error(f"{file} cannot be written: there is no such directory")


def write_stored(answer: Answer, *, receipt: Path | None, stored: Path | None) -> None:
    """Write the files. The stored answer is written byte for byte: its digest is in the receipt."""
    from lapwing.receipts import receipt_text

    if receipt is not None:
        _write(receipt, b"" if answer.receipt is None else receipt_text(answer.receipt).encode() + b"\n")
    if stored is not None:
        _write(stored, answer.stored or b"")


def _write(file: Path, content: bytes) -> None:
    if not content:
        raise usage_error(
            "there is nothing to write: the statement measured nothing, or several blocks of time, or its charge is not signed"
        )
    try:
        with file.open("xb") as stream:
            stream.write(content)
    except OSError as error:
        raise usage_error(f"{file} cannot be written: {error.strerror}; ask again, which is free") from None
