"""The commands. Each imports what it needs when it runs, so that help and usage errors appear at once."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Annotated, TextIO, cast

import typer

from lapwing.interfaces.cli import terminal
from lapwing.interfaces.cli.analysing import add_analysing
from lapwing.interfaces.cli.completion import add_completion
from lapwing.interfaces.cli.conformance import add_conformance
from lapwing.interfaces.cli.ledger.commands import ledger_app, receipt_app
from lapwing.interfaces.cli.ledger.policies import add_policies
from lapwing.interfaces.cli.owning import add_owning
from lapwing.interfaces.cli.place import GlobalOptions
from lapwing.interfaces.cli.releases import release_app
from lapwing.interfaces.cli.serving import add_serving
from lapwing.interfaces.cli.starting import add_starting

# Plain help: the library's coloured help is unreadable on light backgrounds. Its tracebacks show local variables, which can hold data.
app = typer.Typer(
    name="lapwing",
    add_completion=False,  # its scripts start this program at every key press; see cli.completion
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


add_starting(app)
add_analysing(app)
add_owning(app)
add_serving(app)
add_conformance(app)
add_completion(app)
add_policies(ledger_app)
app.add_typer(release_app)
app.add_typer(ledger_app)
app.add_typer(receipt_app)


def main() -> None:
    """Run ``lapwing`` with the arguments of the process."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character (±, █) shows a question mark; the command does not fail.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
    sys.stdout, sys.stderr = cast(TextIO, terminal.EscapingStream(sys.stdout)), cast(TextIO, terminal.EscapingStream(sys.stderr))
    for number in (signal.SIGTERM, signal.SIGHUP):
        # On a stop signal a command exits cleanly: its reservation is forfeited, which does not count as a crashed process.
        signal.signal(number, _stopped)
    app(prog_name="lapwing")


def _stopped(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"lapwing {version('lapwing')}")
        raise typer.Exit


@app.callback()
def _lapwing(
    context: typer.Context,
    directory: Annotated[
        Path, typer.Option("-C", metavar="DIR", help="The data set: the directory of its lapwing.toml, or that file.")
    ] = Path(),
    server: Annotated[
        str | None, typer.Option(metavar="URL", help="Ask a data set on a server instead; the token is in LAPWING_TOKEN or a file.")
    ] = None,
    data_set: Annotated[str | None, typer.Option(metavar="ID", help="With --server: which data set, if there are several.")] = None,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --server: a file with the token, which only you may read.")
    ] = None,
    _show_version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")] = False,
) -> None:
    """Answer SQL about people privately: noisy answers with error bars, paid from an enforced budget.

    \b
    A first tour, with made-up data:
        lapwing demo clinic
        lapwing -C clinic prepare
        lapwing -C clinic ask "SELECT region, COUNT(*) FROM patients GROUP BY region" --epsilon 0.5
        lapwing -C clinic budget

    \b
    With your own files:
        lapwing init patients.parquet visits.parquet
        (edit lapwing.toml: say whose rows they are, bounds, budget)
        lapwing check
        lapwing prepare

    \b
    On a server, with the token in LAPWING_TOKEN:
        lapwing --server https://host:8765 shell

    \b
    Exit status: 0 done; 1 internal or ledger fault, or refresh was refused some
    statements; 2 wrong usage; 3 refused; 4 the budget cannot pay; 5 the owner
    must act (catalogue, preparation); 6 an audit refuted a claim.
    """
    context.obj = GlobalOptions(directory, server, data_set, token_file)
