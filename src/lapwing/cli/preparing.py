"""``lapwing prepare``: a new version, with a bar that shows how far it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from lapwing.cli import terminal
from lapwing.cli.checking import source_warnings

if TYPE_CHECKING:
    from lapwing.curator import Curator
    from lapwing.engines.base import Progress


def prepared(curator: Curator, *, override: str, append: bool = False) -> None:
    """Prepare, and say what was made. Never a number of rows: that would be a released value."""
    for note in source_warnings(curator.declaration):
        terminal.write_note(f"warning: {note}")
    started = time.monotonic()
    tables = len(curator.declaration.tables) + len(curator.declaration.public_tables)
    with _progress(tables) as progress:
        version = curator.prepare(progress=progress, override=override, append=append)
    typer.echo(f"Version {version} of {curator.declaration.dataset.id} is prepared: {tables} tables in {time.monotonic() - started:.1f} s.")
    balance = curator.balance()
    spent = balance.spent.loss / balance.budget.loss_total
    typer.echo(f"{spent:.1%} of the budget is spent, {1 - spent:.1%} is left.")
    if balance.budget.epsilon != curator.declaration.declared_budget.epsilon:
        # Lowering is done at once; what is left is a higher one, on a ledger where one person cannot raise it.
        terminal.write_note(
            f"The budget stays at epsilon {float(balance.budget.epsilon):g}: a higher one needs a second person. It is proposed;"
            " see `lapwing ledger status`, and let somebody else run `lapwing ledger approve NUMBER`."
        )


@contextmanager
def _progress(tables: int) -> Iterator[Progress]:
    """A bar on a terminal's standard error; silence elsewhere."""
    console = terminal.console(stderr=True)
    if not console.is_terminal:
        yield lambda _what, _done, _total: None
        return
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(complete_style=terminal.ACCENT, finished_style=terminal.ACCENT, style="default"),
        TextColumn("{task.completed}/{task.total}, {task.elapsed:.0f} s"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("preparing", total=tables)

        def show(what: str, done: int, total: int) -> None:
            # After the last table, statistics are bought.
            doing = f"preparing {what}" if done < total else "finishing"
            bar.update(task, description=doing, completed=done, total=total, refresh=True)

        yield show
