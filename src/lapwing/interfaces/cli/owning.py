"""Commands of owners of a data set: check, prepare, retire, close and reopen it, back it up, audit it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lapwing.interfaces.cli.backups import add_backups
from lapwing.interfaces.cli.exits import reported
from lapwing.interfaces.cli.place import catalogue_path, curator_of, statement_text
from lapwing.interfaces.cli.views import ReportFormat

if TYPE_CHECKING:
    from lapwing.curator.curator import Curator


def add_owning(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("check", short_help="Check the catalogue and the schemas of its sources.")(check)
    app.command("prepare", short_help="Read the sources and write a new version.")(prepare)
    app.command("retire", short_help="Delete the rows of a prepared version.")(retire)
    app.command("reopen", short_help="Let analysts ask again after an incident.")(reopen)
    app.command("close", short_help="Stop all analysts from asking until it is reopened.")(close)
    add_backups(app)
    app.command("audit", short_help="Try to refute the privacy claims, on made-up data.")(audit)


def check(context: typer.Context) -> None:
    """Check the catalogue and the schemas of its sources. Reads no row, charges nothing.

    \b
    Example:
        lapwing -C clinic check
    """
    from lapwing.interfaces.cli.checking import checked

    with reported():
        raise typer.Exit(checked(catalogue_path(context)))


def prepare(
    context: typer.Context,
    override: Annotated[
        str, typer.Option(metavar="REASON", help="Why to continue although the identity or unit changed; kept in the ledger.")
    ] = "",
    append: Annotated[bool, typer.Option("--append", help="Read only new rows of tables that declare `appended_by`.")] = False,
    accept_losses: Annotated[bool, typer.Option("--accept-losses", help="Continue although much is left out or becomes NULL.")] = False,
    new_version: Annotated[
        bool, typer.Option("--new-version", help="Make one even if only the budget, defaults or descriptions changed.")
    ] = False,
    profiles: Annotated[
        bool, typer.Option("--profiles", help="Make one, and buy the profiles of its tables anew for `statistics_share` of the budget.")
    ] = False,
    correct: Annotated[
        str, typer.Option(metavar="FIRST/LAST", help="Read the rows of the blocks of these days again, as in 2026-11-01/2026-11-03.")
    ] = "",
) -> None:
    """Read the sources and write a new version for analysts to ask. The first time, this also makes the ledger.

    A data set with blocks of time grows by the blocks that have closed since, and its version stays.

    If only the budget, ceiling, defaults, descriptions or comments of the catalogue changed, they are applied and the version stays.

    \b
    Example:
        lapwing -C clinic prepare
        lapwing -C clinic prepare --override "the sources were moved to another disk"
        lapwing -C clinic prepare --correct 2026-11-01/2026-11-03
    """
    from lapwing.interfaces.cli.preparing import prepared

    with reported(), curator_of(context) as curator:
        prepared(
            curator,
            override=override,
            append=append,
            accept_losses=accept_losses,
            new_version=new_version,
            profiles=profiles,
            correct=correct,
        )


def retire(context: typer.Context, version: Annotated[int, typer.Argument(min=1, help="The number of the version.")]) -> None:
    """Delete the rows of a prepared version. What was charged for it stays charged.

    \b
    Example:
        lapwing -C clinic retire 1
    """
    with reported(), curator_of(context) as curator:
        curator.retire(version)
        typer.echo(f"Version {version} is deleted; its charges stay.")


def reopen(
    context: typer.Context, reason: Annotated[str, typer.Argument(metavar="REASON", help="What was found and done; kept in the ledger.")]
) -> None:
    """Let analysts ask again after an incident closed the data set.

    \b
    Example:
        lapwing -C clinic reopen "the disk was full; it has been cleared"
    """
    with reported(), curator_of(context) as curator:
        curator.latest()
        curator.reopen(_signed(curator, reason))
        typer.echo("The data set is open.")


def close(context: typer.Context, reason: Annotated[str, typer.Argument(metavar="REASON", help="Why; kept in the ledger.")]) -> None:
    """Stop all analysts from asking until `lapwing reopen`. Requests in progress are still answered.

    \b
    Example:
        lapwing -C clinic close "the lists are being corrected"
    """
    with reported(), curator_of(context) as curator:
        curator.latest()
        curator.ledger.close(_signed(curator, reason))
        typer.echo("The data set is closed to analysts.")


def audit(
    context: typer.Context,
    sql: Annotated[
        list[str] | None, typer.Argument(metavar="SQL", help="Statements to audit. Default: the count of each protected table.")
    ] = None,
    epsilon: Annotated[
        str, typer.Option(metavar="NUMBER", help="Epsilon of each statement. A large one reveals more and runs the same code.")
    ] = "8",
    samples: Annotated[int, typer.Option(min=100, max=10_000_000, help="Runs on each of two neighbouring data sets.")] = 20_000,
    asks: Annotated[int, typer.Option(min=0, max=1_000, help="Answers asked one at a time, through the ledger, on each data set.")] = 50,
    mechanisms: Annotated[bool, typer.Option("--mechanisms", help="Audit every mechanism of the kernel; needs no catalogue.")] = False,
    plans: Annotated[bool, typer.Option("--plans", help="Audit every shape of plan; needs no catalogue.")] = False,
    form: Annotated[ReportFormat, typer.Option("--format", help="How to print it.")] = ReportFormat.TABLE,
) -> None:
    """Try to refute the privacy claims: run on neighbouring made-up data sets and compare. Reads none of your rows, charges nothing.

    Each line gives the claim and the largest value that the runs refute. Exits with 6 if that value is above a claim.

    \b
    Example:
        lapwing -C clinic audit "SELECT region, AVG(income) FROM patients GROUP BY region"
        lapwing audit --mechanisms --samples 100000
    """
    from lapwing.interfaces.cli.auditing import audited

    statements = [statement_text(text) for text in sql or []]
    with reported(statements[0] if len(statements) == 1 else "", form):
        status = audited(
            catalogue_path(context),
            statements,
            epsilon=epsilon,
            samples=samples,
            asks=asks,
            mechanisms=mechanisms,
            plans=plans,
            form=form,
        )
        raise typer.Exit(status)


def _signed(curator: Curator, reason: str) -> str:
    """An owner's reason, with the owner's name if there may be several owners."""
    from lapwing.curator.curator import system_user

    return reason if curator.place.server is None else f"by {system_user()}: {reason}"
