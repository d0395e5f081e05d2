"""``lapwing ledger`` and ``lapwing receipt``: for operators of a ledger, and for those who check its signatures."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lapwing.interfaces.cli.exits import ExitStatus, reported, usage_error, without_password_typed
from lapwing.interfaces.cli.place import curator_of, whereabouts

if TYPE_CHECKING:
    from lapwing.owner.ledger_admin import Verification

ledger_app = typer.Typer(name="ledger", no_args_is_help=True, rich_markup_mode=None, help="Maintain a ledger.")
receipt_app = typer.Typer(
    name="receipt", no_args_is_help=True, rich_markup_mode=None, help="Check signed receipts; make or replace the key."
)

Database = Annotated[
    str,
    typer.Option(
        envvar="LAPWING_DATABASE",
        metavar="DSN",
        help="Connection string of the database, such as 'service=lapwing'. Keep passwords in a password file.",
        callback=without_password_typed,
    ),
]
AnchorDirectory = Annotated[
    Path, typer.Option(envvar="LAPWING_ANCHORS", metavar="DIR", help="Directory of the anchors, on another disk than the database.")
]
Keys = Annotated[Path, typer.Option(envvar="LAPWING_KEYS", metavar="DIR", help="Directory of the keys.")]


@ledger_app.command("install", short_help="Create or upgrade the schema.")
def ledger_install(
    database: Database,
    curators: Annotated[str, typer.Option(metavar="ROLE", help="Its members answer analysts.")] = "lapwing_curators",
    owners: Annotated[str, typer.Option(metavar="ROLE", help="Its members act as owners and prepare.")] = "lapwing_owners",
    monitors: Annotated[str, typer.Option(metavar="ROLE", help="Its members read everything and change nothing.")] = "lapwing_monitors",
) -> None:
    """Create the ledger's schema in a database, or upgrade it. Run this as a role that may create schemas and is used for nothing else.

    Roles that do not exist are created without a login. Grant each of them to the users who need its rights.

    \b
    Example:
        lapwing ledger install --database service=privacy-schema
    """
    from lapwing.owner.ledger_admin import Roles, install

    with reported():
        version = install(database, roles=Roles(curators=curators, owners=owners, monitors=monitors))
        typer.echo(f"The schema is in version {version}. Roles: {curators} ask, {owners} decide, {monitors} read.")


@ledger_app.command("verify", short_help="Check chain, sums, answers and anchors.")
def ledger_verify(
    context: typer.Context,
    database: Annotated[
        str | None,
        typer.Option(
            envvar="LAPWING_DATABASE",
            metavar="DSN",
            help="Check all ledgers of this database. Default: the ledger of the data set (-C), wherever it is.",
            callback=without_password_typed,
        ),
    ] = None,
    anchors: Annotated[
        list[Path] | None,
        typer.Option(
            envvar="LAPWING_ANCHORS",
            metavar="DIR",
            help="Directory of the anchors; may be given several times. Default: the one that the catalogue (-C) names.",
        ),
    ] = None,
    source: Annotated[list[str] | None, typer.Argument(metavar="SOURCE", help="Source ids in the database. Default: all.")] = None,
) -> None:
    """Recompute everything from the entries, compare, and report what was checked and with which anchor. Exits with 1 if anything is wrong,
    or if an anchor is missing that the ledger was used with, the catalogue names, or --anchors promises.

    \b
    Examples:
        lapwing -C clinic ledger verify
        lapwing ledger verify --database service=privacy-monitor --anchors anchors
    """
    from lapwing.owner.ledger_admin import verified, verified_of

    with reported():
        is_sound, is_any = True, False
        if database is not None and whereabouts(context).directory == Path():
            for report in verified(database, anchors=anchors or (), names=source or ()):
                is_sound, is_any = _told(report, outside="database") and is_sound, True
            if not is_any:
                typer.echo("There is no ledger in this database.")
        elif source:
            raise usage_error("the data set (-C) has one ledger: leave SOURCE out, or give --database without -C")
        else:
            with curator_of(context) as curator:
                report = verified_of(curator, database=database, anchors=anchors or ())
                is_sound = _told(report, outside="database" if curator.place.server is not None else "file")
        if not is_sound:
            raise typer.Exit(ExitStatus.INTERNAL)


def _told(report: Verification, *, outside: str) -> bool:
    """Print what was checked; says whether all of it agrees."""
    typer.echo(f"{report.source_id}: {report.entries:,} entries, {report.charges:,} charges, {report.answers:,} answers")
    typer.echo(f"  spent {report.spent.loss} units of loss and {report.spent.delta} of delta; head {report.head}")
    for anchor in report.anchors:
        made = "which the ledger does not have" if anchor.at is None else f"made {anchor.at}"
        typer.echo(f"  compared with anchor {anchor.name}: entry {anchor.entries:,}, {made}")
    if not report.anchors:
        typer.echo(f"  nothing outside the {outside} was compared: missing newest entries would not be noticed")
    for problem in report.problems:
        typer.echo(f"  WRONG: {problem}")
    if not report.problems:
        checked = ["chain", "sums", "charges", "answers", *(["sub-budgets"] if outside == "database" else [])]
        checked += ["anchor"] if report.anchors else []
        typer.echo(f"  {', '.join(checked[:-1])} and {checked[-1]} agree")
    return not report.problems


@ledger_app.command("move", short_help="Move a local ledger into the database.")
def ledger_move(context: typer.Context, database: Database, anchors: AnchorDirectory, keys: Keys) -> None:
    """Move the local ledger of the data set (-C) into the database with every charge and answer. The local one is closed for good.

    Prints what to write into the catalogue.
    """
    from lapwing.curator.curator import system_user
    from lapwing.owner.ledger_admin import move_ledger, without_password

    with reported(), curator_of(context) as curator:
        moved = move_ledger(curator, database, anchors=anchors, keys=keys, by=system_user())
        typer.echo(f"Moved: {moved.budget}.")
        typer.echo(f"Admitted, because they paid before: {', '.join(moved.admitted) or 'nobody'}. Others: lapwing ledger admit NAME.")
        typer.echo("The local ledger is closed for good. Write this into the catalogue:")
        typer.echo("")
        typer.echo("[ledger]")
        for key, value in (("database", without_password(database)), ("anchors", anchors.resolve()), ("keys", keys.resolve())):
            typer.echo(f"{key} = {json.dumps(str(value), ensure_ascii=False)}")


@ledger_app.command("accept", short_help="Accept a ledger that is not as it was anchored.")
def ledger_accept(
    context: typer.Context, reason: Annotated[str, typer.Argument(metavar="REASON", help="What happened; kept in the ledger.")]
) -> None:
    """Continue with a ledger that was restored to an older state or lost its anchor: the owner's override. Run `verify` first.

    Charges that the anchor records and the ledger lacks are charged again.

    \b
    Example:
        lapwing -C clinic ledger accept "restored the backup of Monday; the disk had failed"
    """
    from lapwing.owner.ledger_admin import accept

    with reported(), curator_of(context) as curator:
        balance = accept(curator, reason=reason)
        typer.echo(f"Accepted: {curator.view_of(balance)}.")
        if balance.closed:
            typer.echo("The data set is closed to analysts until `lapwing reopen`.")


@ledger_app.command("anchor-lost", short_help="Declare an anchor lost for good; takes two owners.")
def ledger_anchor_lost(
    context: typer.Context,
    anchor: Annotated[
        str, typer.Argument(metavar="ANCHOR", help="The name of the anchor, as the refusal or `lapwing ledger status` gives it.")
    ],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="What happened; kept in the ledger.")],
    by: Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who does this. Default: your user name.")] = None,
) -> None:
    """Remove an anchor that the ledger of the data set (-C) can no longer be compared with.

    Two owners run this, each with their own database role. What only that anchor records is then lost. Afterwards `lapwing ledger
    accept` registers the remaining anchors.

    \b
    Example:
        lapwing -C clinic ledger anchor-lost 0f3a5c7d9e1b2a4c --reason "the disk of the anchors burnt"
    """
    from lapwing.curator.curator import system_user
    from lapwing.owner.ledger_admin import report_lost_anchor

    with reported(), curator_of(context) as curator:
        number = report_lost_anchor(curator, anchor, by=by or system_user(), reason=reason)
        if number is None:
            typer.echo(f"The anchor {anchor} is removed. Now run lapwing ledger accept REASON, with the remaining anchors or new ones.")
        else:
            typer.echo(f"Proposal {number}. Another owner must now run the same command, with their own database role.")


@receipt_app.command("verify", short_help="Check a receipt, without the database.")
def receipt_verify(
    receipt: Annotated[Path, typer.Argument(metavar="RECEIPT", help="The receipt, as JSON; - is standard input.")],
    keys: Keys,
    answer: Annotated[Path | None, typer.Option(metavar="FILE", help="The stored answer the receipt is for.")] = None,
) -> None:
    """Check that one of our keys signed the receipt, and, with --answer, that it is for these bytes. Exits with 1 if not."""
    from lapwing.receipts import check, receipt_value

    with reported():
        try:
            text = sys.stdin.read() if str(receipt) == "-" else receipt.read_text(encoding="utf-8")
            content = None if answer is None else answer.read_bytes()
        except (OSError, UnicodeDecodeError):
            raise usage_error("the receipt or the answer cannot be read") from None
        value = receipt_value(text)
        check(value, keys, answer=content)
        paid = value.statement
        charge = f"charge {paid.charge_id} of {paid.source_id}, entry {paid.entry_id}, {paid.at}"
        typer.echo(f"valid: {charge if paid.names_payer else f'a charge of {paid.source_id}'}, signed with {value.key_id}")


@receipt_app.command("key", short_help="Make or replace the signing key.")
def receipt_key(keys: Keys) -> None:
    """Make a new signing key. An earlier private key is removed; its public one stays, so that old receipts verify."""
    from lapwing.receipts import new_key

    with reported():
        typer.echo(f"New receipts are signed with {new_key(keys)}.")
