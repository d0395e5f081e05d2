"""``lapwing describe``: which tables there are, and what is declared of their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lapwing.cli import terminal
from lapwing.cli.exits import reported
from lapwing.cli.views import ReportFormat, as_json, write_table

if TYPE_CHECKING:
    from lapwing.answers.answer import Answer


def add_describe(app: typer.Typer) -> None:
    """Add ``lapwing describe`` to the commands."""
    app.command(name="describe", short_help="Show the tables, or the columns of one.")(_describe)


def _describe(
    context: typer.Context,
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="A table; when left out, all are listed.", show_default=False)
    ] = None,
    form: Annotated[ReportFormat, typer.Option("--format", help="How to print it.")] = ReportFormat.TABLE,
) -> None:
    """Show which tables there are, or what is declared of the columns of one: types, values and bounds, and what they mean. Free.

    \b
    Example:
        lapwing -C clinic describe
        lapwing -C clinic describe visits
    """
    with reported():
        from lapwing.curator.ask import describe
        from lapwing.curator.life import Curator

        with Curator(context.obj) as curator:
            write_description(describe(curator, table), form)


def write_description(described: Answer, form: ReportFormat) -> None:
    """Print a description: the table, and under it what is to be said of it."""
    if form is ReportFormat.JSON:
        rows = [{name: value for name, value in row.items() if value != ""} for row in described.table.to_pylist()]
        terminal.write(as_json({"rows": rows, "notes": list(described.notes)}))
        return
    headers, rows_of_cells = described.cells()
    first = [True] + [False] * (len(headers) - 1)
    write_table(headers, rows_of_cells, right=described.right_aligned(), accents=first)
    if terminal.is_terminal():
        terminal.console().print()
        for note in described.notes:
            terminal.console().print(terminal.printable(note))
    else:
        terminal.write("\n" + "\n".join(described.notes))
