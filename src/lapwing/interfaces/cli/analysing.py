"""Commands of analysts: ask, explain, refresh a dashboard, list tables, show budget and history; local or on a server."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lapwing.interfaces.cli import terminal
from lapwing.interfaces.cli.exits import reported
from lapwing.interfaces.cli.place import require_prepared, statement_text, whereabouts
from lapwing.interfaces.cli.views import AnswerFormat, ReleasesServe, ReportFormat, SqlSpelling

if TYPE_CHECKING:
    from lapwing.asking.options import AskArguments

EpsilonOption = Annotated[
    str | None, typer.Option("--epsilon", metavar="NUMBER", help="Epsilon of the whole statement. Default: the catalogue's.")
]
ConfidenceOption = Annotated[str | None, typer.Option("--confidence", metavar="NUMBER", help="Level of the error bars, such as 0.95.")]
DialectOption = Annotated[SqlSpelling, typer.Option("--dialect", help="SQL dialect; it also decides what / of integers means.")]
ReuseOption = Annotated[
    ReleasesServe | None,
    typer.Option("--reuse", help="Whether a release may answer for free: auto (if it is as accurate), never, or only."),
]
ScaledGroups = Annotated[bool, typer.Option("--scaled-groups", help="Measure groups at a low bound and scale them to a total, by a model.")]


def add_analysing(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("ask", short_help="Ask a statement and pay for it.")(ask)
    app.command("explain", short_help="Say what a statement would cost; free.")(explain)
    app.command("refresh", short_help="Ask every statement of a dashboard, so that it is free from then on.")(refresh)
    app.command("describe", short_help="Show the tables, or the columns of one.")(describe)
    app.command("shell", short_help="Ask statements interactively, with their price shown.")(shell)
    app.command("budget", short_help="Show what may be spent, what is spent and what is left.")(budget)
    app.command("history", short_help="Show the ledger, newest entries first.")(history)


def ask(
    context: typer.Context,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="The statement; - reads it from standard input.")],
    epsilon: EpsilonOption = None,
    confidence: ConfidenceOption = None,
    form: Annotated[AnswerFormat, typer.Option("--format", help="How to print the answer.")] = AnswerFormat.TABLE,
    analyst: Annotated[
        str | None, typer.Option(metavar="NAME", help="The analyst who asks. Default on a ledger with analysts: your user name.")
    ] = None,
    request_id: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A name for this request: repeating it never charges twice.")
    ] = None,
    dialect: DialectOption = SqlSpelling.DUCKDB,
    scaled_groups: ScaledGroups = False,
    reuse: ReuseOption = None,
    receipt: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the signed receipt here.")] = None,
    stored: Annotated[
        Path | None, typer.Option("--answer", metavar="FILE", help="Write the stored answer, which the receipt covers, here.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Spend a large part of the budget without asking for confirmation.")] = False,
) -> None:
    """Ask a statement and pay for it. Asking the same again on the same version is free.

    \b
    Example:
        lapwing -C clinic ask "SELECT sex, AVG(income) FROM patients GROUP BY sex" --epsilon 0.5
        lapwing -C clinic ask "SELECT COUNT(*) FROM visits" --epsilon 0.1 --format json
        lapwing -C clinic ask "SELECT COUNT(*) FROM visits WITH PRIVACY (error = 2000)"
        lapwing -C clinic ask "SHOW PRIVACY BUDGET"
        lapwing -C clinic ask "SELECT COUNT(*) FROM visits" --receipt receipt.json --answer answer.json
    """
    from lapwing.interfaces.cli.asking import interruptible, require_meant, require_writable, write_stored
    from lapwing.interfaces.cli.views import write_answer

    statement, name = statement_text(sql), secrets.token_hex(16) if request_id is None else request_id
    with reported(statement, form), whereabouts(context).opened(analyst=analyst) as data, interruptible(data, name):
        require_writable(data, receipt=receipt, stored=stored)
        options = _options(epsilon, confidence, dialect, scaled_groups, reuse)
        if not yes:
            require_meant(data, statement, options)
        answer = data.ask(statement, request_id=name, **options)
        write_answer(answer, form)
        write_stored(answer, receipt=receipt, stored=stored)


def explain(
    context: typer.Context,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="The statement; - reads it from standard input.")],
    epsilon: EpsilonOption = None,
    confidence: ConfidenceOption = None,
    form: Annotated[ReportFormat, typer.Option("--format", help="How to print it.")] = ReportFormat.TABLE,
    analyst: Annotated[str | None, typer.Option(metavar="NAME", help="The analyst who would ask, and whose stored answers count.")] = None,
    dialect: DialectOption = SqlSpelling.DUCKDB,
    scaled_groups: ScaledGroups = False,
    reuse: ReuseOption = None,
) -> None:
    """Say what a statement would cost, how people's influence is bounded and how large the noise is. Free; reads no row.

    \b
    Example:
        lapwing -C clinic explain "SELECT region, COUNT(*) FROM patients GROUP BY region" --epsilon 0.5
    """
    from lapwing.interfaces.cli.views import write_explanation

    statement = statement_text(sql)
    with reported(statement, form), whereabouts(context).opened(analyst=analyst) as data:
        write_explanation(data.explain(statement, **_options(epsilon, confidence, dialect, scaled_groups, reuse)), form)


def refresh(
    context: typer.Context,
    dashboard: Annotated[str, typer.Argument(metavar="FILE", help="Statements, each ended by a semicolon; - reads standard input.")],
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", metavar="NUMBER", help="Epsilon of each statement that names none. Default: the catalogue's.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the price of each statement, and pay nothing.")] = False,
    prepare: Annotated[bool, typer.Option("--prepare", help="Run `lapwing prepare` first; if it fails, nothing is asked.")] = False,
    analyst: Annotated[str | None, typer.Option(metavar="NAME", help="The analyst who asks, as for ask.")] = None,
    dialect: DialectOption = SqlSpelling.DUCKDB,
) -> None:
    """Ask every statement of a dashboard, so that people and BI tools get it for free. Run it each time a block of time has closed.

    A statement that is refused does not stop the others. Exits with 0 if all were answered, and with 1 if some were refused.

    \b
    Example:
        lapwing -C clinic refresh dashboard.sql --epsilon 0.1 --dry-run
        lapwing -C clinic refresh dashboard.sql --epsilon 0.1 --prepare
        lapwing --server https://curator.example:8765 refresh dashboard.sql
    """
    from lapwing.interfaces.cli.refreshing import prepared_before, read_dashboard, refreshed

    with reported():
        statements = read_dashboard(dashboard)
        if prepare:
            prepared_before(context, dry_run=dry_run)
        with whereabouts(context).opened(analyst=analyst) as data:
            require_prepared(data)
            raise typer.Exit(refreshed(data, statements, epsilon=epsilon, dialect=dialect.value, dry_run=dry_run))


def _options(
    epsilon: str | None, confidence: str | None, dialect: SqlSpelling, scaled_groups: bool, reuse: ReleasesServe | None
) -> AskArguments:
    return {
        "epsilon": epsilon,
        "confidence": confidence,
        "dialect": dialect.value,
        "scaled_groups": scaled_groups or None,
        "reuse": None if reuse is None else reuse.value,
    }


def shell(
    context: typer.Context,
    place: Annotated[
        Path | None, typer.Argument(metavar="PLACE", help="The data set: a directory or a catalogue, instead of -C.", show_default=False)
    ] = None,
    server: Annotated[str | None, typer.Option(metavar="URL", help="A data set on a server.")] = None,
    data_set: Annotated[str | None, typer.Option(metavar="ID", help="With --server: which data set.")] = None,
    token_file: Annotated[Path | None, typer.Option(metavar="FILE", help="With --server: a file with the token.")] = None,
    analyst: Annotated[str | None, typer.Option(metavar="NAME", help="The analyst who asks, as for ask.")] = None,
) -> None:
    """Ask one statement after another: with history, completion, and the price shown before it is paid.

    Statements end with a semicolon; \\? lists the commands. From a pipe it runs statements up to the first failure.

    \b
    Example:
        lapwing shell clinic
        lapwing shell --server https://curator.example:8765
        echo "SELECT COUNT(*) FROM visits;" | lapwing shell clinic
    """
    from lapwing.interfaces.cli.shell.run import run_shell

    with reported():
        said = whereabouts(context).but(directory=place, server=server, data_set=data_set, token_file=token_file)
        with said.opened(analyst=analyst, shared=True) as data:
            raise typer.Exit(run_shell(data))


def describe(
    context: typer.Context,
    table: Annotated[str | None, typer.Argument(metavar="TABLE", help="A table; without one, all are listed.", show_default=False)] = None,
    form: Annotated[ReportFormat, typer.Option("--format", help="How to print it.")] = ReportFormat.TABLE,
) -> None:
    """List the tables, or show what is declared for the columns of one: types, values, bounds and meaning. Free.

    \b
    Example:
        lapwing -C clinic describe
        lapwing -C clinic describe visits
    """
    from lapwing.interfaces.cli.views import write_description

    with reported(form=form), whereabouts(context).opened() as data:
        write_description(data.describe(table), form)


def budget(
    context: typer.Context, form: Annotated[ReportFormat, typer.Option("--format", help="How to print it.")] = ReportFormat.TABLE
) -> None:
    """Show what the data set may spend, what is spent and what is left.

    \b
    Example:
        lapwing -C clinic budget
        lapwing -C clinic budget --format json
    """
    from lapwing.data_set import DataSet
    from lapwing.interfaces.cli.views import write_budget

    with reported(form=form), whereabouts(context).opened() as data:
        require_prepared(data)
        write_budget(data.budget, name=data.name, form=form)
        if isinstance(data, DataSet) and (waiting := data.curator.budget_waiting()):
            terminal.write_note(f"note: {waiting}")


def history(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many entries, newest first.")] = 20,
    form: Annotated[ReportFormat, typer.Option("--format", help="How to print it.")] = ReportFormat.TABLE,
) -> None:
    """Show the entries of the ledger, newest first: charges, answers, the owner's acts.

    \b
    Example:
        lapwing -C clinic history --limit 5
        lapwing --server https://curator.example:8765 history
    """
    from lapwing.interfaces.cli.views import write_history

    with reported(form=form), whereabouts(context).opened() as data:
        require_prepared(data)
        write_history(data.history(limit=limit), form=form, loss_unit=data.budget.loss_unit)
