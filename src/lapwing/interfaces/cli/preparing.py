"""``lapwing prepare``: a new version, with a bar that shows how far it is."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

import typer

from lapwing.curator.source_checks import source_warnings
from lapwing.curator.statistics import tables_without_profiles
from lapwing.errors import PreparationError
from lapwing.interfaces.cli import terminal

if TYPE_CHECKING:
    from lapwing.curator.block_life import HeldBlocks
    from lapwing.curator.curator import Curator, Progress


def prepared(
    curator: Curator,
    *,
    override: str,
    append: bool = False,
    accept_losses: bool = False,
    new_version: bool = False,
    profiles: bool = False,
    correct: str = "",
) -> None:
    """Prepare, and report the result. Figures on lost or changed rows go to the owner's standard error alone."""
    days = _days(correct)
    changes = None if append or new_version or profiles or days else curator.policy_changes()
    if changes is not None:
        _applied(curator, changes, override=override)
        return
    for note in source_warnings(curator.declaration):
        terminal.write_note(f"warning: {note}")
    started = time.monotonic()
    prepare = partial(curator.prepare, override=override, append=append, new_version=new_version, profiles=profiles, correct=days)
    before = curator.newest_blocks()
    tables = len(curator.declaration.tables) + len(curator.declaration.public_tables)
    try:
        with _progress(tables) as progress:
            version = prepare(progress=progress, accept_losses=accept_losses)
    except PreparationError as error:
        if error.code != "rows-lost":
            raise
        _write_losses(curator, curator.state.next_version(curator.engine.versions()))
        if not sys.stdin.isatty() or not typer.confirm("Go on with what is left?", err=True):
            error.hint = "fix the catalogue or the source, or prepare with --accept-losses"
            raise
        with _progress(tables) as progress:
            version = prepare(progress=progress, accept_losses=True)
    else:
        _write_losses(curator, version)
    of = "1 table" if tables == 1 else f"{tables} tables"
    seconds = time.monotonic() - started
    if before is None or before.version != version:
        typer.echo(f"Version {version} of {curator.declaration.dataset.id} is prepared: {of} in {seconds:.1f} s.")
    _write_blocks(curator, before, seconds, corrected=correct)
    _write_balance(curator)
    if tables_without := tables_without_profiles(curator):
        share = float(curator.declaration.declared_budget.statistics_share)
        terminal.write_note(
            f"No profiles of version {version}: {', '.join(tables_without)}."
            f" `lapwing prepare --profiles` buys them anew for {share:.0%} of the budget."
        )


def _days(written: str) -> tuple[date, date] | None:
    """The first and the last day of ``--correct``."""
    if not written:
        return None
    try:
        first, last = (date.fromisoformat(part) for part in written.split("/"))
    except ValueError:
        hint = "write both days: --correct 2026-11-01/2026-11-03"
        raise PreparationError("days-unreadable", "the days to correct cannot be read", hint=hint) from None
    return first, last


def _write_blocks(curator: Curator, before: HeldBlocks | None, seconds: float, *, corrected: str) -> None:
    """Which blocks of time are new, and how many rows came too late for theirs."""
    held = curator.newest_blocks()
    if held is None:
        return
    if not held.number:
        typer.echo(f"No {held.every} has closed yet.")
        return
    if corrected:
        typer.echo(f"The blocks of {corrected} are corrected in {seconds:.1f} s; answers that read them cost again.")
    elif before is not None and before.version == held.version:
        new = f"new blocks up to {held.last} in {seconds:.1f} s" if held.last > before.last else f"no {held.every} has closed since"
        typer.echo(f"Version {held.version} of {curator.declaration.dataset.id} stays: {new}.")
    typer.echo(f"Closed: {held.first} to {held.last}.")
    for table, rows in curator.late_rows().items():
        if rows:
            terminal.write_note(f"{table}: {rows:,} rows came after their block was prepared and are left out: exact, for the owner alone")


def _applied(curator: Curator, changes: Sequence[str], *, override: str) -> None:
    """Apply the changes that need no new version, and list them."""
    before = curator.balance(override=override)
    version = curator.prepare(override=override)
    after = curator.balance()
    if after.budget != before.budget:
        how = "raised" if after.budget.epsilon > before.budget.epsilon else "lowered"
        typer.echo(f"The budget is {how} from epsilon {float(before.budget.epsilon):g} to {float(after.budget.epsilon):g}.")
    others = ", ".join(key for key in changes if key != "budget.epsilon")
    if others:
        typer.echo(f"Changed: {others}.")
    stored = curator.stored_answers()
    free = f" {stored:,} stored {'answers stay' if stored > 1 else 'answer stays'} free." if stored else ""
    typer.echo(f"Version {version} stays: nothing that it is made of changed.{free}")
    _write_balance(curator)
    if after.ceiling.epsilon != curator.declaration.declared_budget.ceiling_epsilon:
        terminal.write_note(f"The ceiling stays at epsilon {float(after.ceiling.epsilon):g}, as in the ledger: it is what was promised.")


def _write_balance(curator: Curator) -> None:
    """What is spent and left, and whether a higher budget awaits approval."""
    balance = curator.balance()
    view = curator.budget()
    spent = view.share_spent
    typer.echo(f"{spent:.1%} of the budget is spent{view.place}, {1 - spent:.1%} is left.")
    if balance.budget.epsilon != curator.declaration.declared_budget.epsilon:
        # A lower budget applies at once, so this is a higher one, on a ledger where one person cannot raise it.
        terminal.write_note(
            f"The budget stays at epsilon {float(balance.budget.epsilon):g}: a higher one needs a second person. It is proposed;"
            " see `lapwing ledger status`, and let somebody else run `lapwing ledger approve NUMBER`."
        )


def _write_losses(curator: Curator, version: int) -> None:
    """A line for each table that loses or changes rows: exact figures, for the owner's terminal."""
    touched = curator.losses(version)
    for table in touched:
        why = {
            "without a unit": table["no_unit"],
            "whose parent is missing": table["no_parent"],
            "with NULL where none is allowed": table["null_not_allowed"],
            "beyond the cap": table["beyond_cap"],
            "in no block of time": table.get("no_block", 0),
        }
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in why.items() if count)
        columns = ", ".join(f"{name} {count:,}" for name, count in table["null_columns"].items())
        line = f"{table['table']}: {table['rows']:,} rows read, {table['kept']:,} kept" + (f"; left out: {reasons}" if reasons else "")
        terminal.write_note(line + (f" (NULL in {columns})" if columns else ""))
        for change in table["changed"]:
            terminal.write_note(f"  {change['column']}: {change['rows']:,} {change['rule']}")
    if touched:
        where = f".lapwing/{curator.state.report_path(version).name}"
        terminal.write_note(f"These figures are exact, for the owner alone, not for release: {where}")


@contextmanager
def _progress(tables: int) -> Iterator[Progress]:
    """A progress bar if standard error is a terminal, otherwise nothing."""
    console = terminal.console(stderr=True)
    if not console.is_terminal:
        yield lambda _what, _done, _total: None
        return
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(complete_style=terminal.ACCENT, finished_style=terminal.ACCENT, style="default"),
        TextColumn("{task.completed}/{task.total}, {task.elapsed:.0f} s"),
    )
    with Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as bar:
        task = bar.add_task("preparing", total=tables)

        def show(what: str, done: int, total: int) -> None:
            # After the last table, statistics are bought.
            doing = terminal.printable(f"preparing {what}") if done < total else "finishing"
            bar.update(task, description=doing, completed=done, total=total, refresh=True)

        yield show
