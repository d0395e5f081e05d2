"""``lapwing backup`` and ``lapwing restore``: of a data set, or of a server with every data set it serves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lapwing.interfaces.cli import terminal
from lapwing.interfaces.cli.exits import reported
from lapwing.interfaces.cli.place import catalogue_path, shell_quoted

if TYPE_CHECKING:
    from lapwing.owner.backup import Backup

_IN_DATABASE = (
    "The ledger is in a database and is not part of this: back it up with PostgreSQL's tools (pg_dump, a base backup), and keep its anchors"
    " apart from it. After restoring it: `lapwing ledger verify`, then `lapwing ledger accept REASON`."
)
_IDENTITIES_IN_DATABASE = (
    "API keys and grants are in a database and are not part of this. After restoring that database to an older state, review"
    " `lapwing access list`: roles withdrawn and keys revoked since then are valid again."
)
ServerHome = Annotated[
    Path | None, typer.Option("--home", metavar="DIRECTORY", help="A server's own directory: the server and all its data sets.")
]


def add_backups(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("backup", short_help="Write a backup of the data set's state, ledger and keys.")(backup)
    app.command("restore", short_help="Restore a backup into an empty place.")(restore)


def backup(
    context: typer.Context, to: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it.")], home: ServerHome = None
) -> None:
    """Write a backup: the catalogue, the state directory, the local ledger and the keys, as of one moment. No rows.

    With --home, back up a server: its configuration, API keys, grants and audit log, and every data set it serves.
    The registry and the anchors are left out: they detect that an older state was restored.

    \b
    Example:
        lapwing -C clinic backup clinic-2026-11-15.backup
    """
    with reported():
        if home is not None:
            _server_backed_up(home, to)
            return
        _backed_up(catalogue_path(context), to)


def restore(
    context: typer.Context, file: Annotated[Path, typer.Argument(metavar="FILE", help="The backup.")], home: ServerHome = None
) -> None:
    """Restore a backup into the directory (-C), which must have no state directory. An existing catalogue of the same data set stays.

    A ledger older than the registry's record is restored but not served until `lapwing ledger accept` charges again what it lacks.
    With --home, restore a server: its API keys are revoked, and its roles admit nobody until `lapwing access accept`.

    \b
    Example:
        lapwing -C clinic restore clinic-2026-11-15.backup
    """
    with reported():
        if home is not None:
            _server_restored(file, home)
            return
        from lapwing.curator.catalogue_name import catalogue_directory

        _restored(file, catalogue_directory(catalogue_path(context)))


def _backed_up(catalogue: Path, to: Path) -> None:
    """Write the backup, and say what it holds and what it does not."""
    from lapwing.curator.curator import CATALOGUE_FILE
    from lapwing.owner.backup import back_up

    written = back_up(catalogue / CATALOGUE_FILE if catalogue.is_dir() else catalogue, to)
    terminal.write(
        f"Wrote {to}: {', '.join(written.files)}. It holds secrets (the ranking key, signing keys): keep it as you keep the data."
    )
    terminal.write(
        "It has no prepared versions, no registry and no anchors: registry and anchors must never be restored together with a ledger."
    )
    if written.ledger_is_elsewhere:
        terminal.write(_IN_DATABASE)


def _server_backed_up(home: Path, to: Path) -> None:
    from lapwing.interfaces.http.operation.home_backup import back_up_server

    written = back_up_server(home, to)
    terminal.write(f"Wrote {to}: the server's configuration, its API keys (as hashes) and grants, its audit log, and:")
    for directory, one in written.data_sets.items():
        terminal.write(f"  {directory}: {', '.join(one.files)}")
    terminal.write("It holds secrets (ranking keys, signing keys): keep it as you keep the data. The server's certificate is not in it.")
    terminal.write(
        "It has no prepared versions, no registry and no anchors: registry and anchors must never be restored together with a ledger."
    )
    _say_what_is_elsewhere(written.identities_are_elsewhere, written.data_sets)


def _server_restored(file: Path, home: Path) -> None:
    from lapwing.interfaces.http.operation.home_backup import put_back_server

    written = put_back_server(file, home)
    terminal.write(f"Restored into {home}: the server's configuration, API keys, grants and audit log.")
    terminal.write(f"{written.keys_ended} API keys that were valid at the time of the backup are revoked: make new ones.")
    for directory in written.there_already:
        terminal.write(f"{directory} already exists, with its ledger, and was left unchanged.")
    for directory, one in written.data_sets.items():
        terminal.write(f"Restored into {directory}: {', '.join(one.files)}.")
        _compare_ledger(directory, one)
    if not written.identities_are_elsewhere:
        terminal.write("The server does not start until the owner has reviewed the roles: some may have been withdrawn since.")
        terminal.write(f"  lapwing access list --home {home}")
        terminal.write(f'  lapwing access accept "reviewed" --home {home}')
    _say_what_is_elsewhere(written.identities_are_elsewhere, {})


def _say_what_is_elsewhere(identities: bool, data_sets: dict[Path, Backup]) -> None:
    if identities:
        terminal.write(_IDENTITIES_IN_DATABASE)
    if any(one.ledger_is_elsewhere for one in data_sets.values()):
        terminal.write(_IN_DATABASE)


def _restored(file: Path, directory: Path) -> None:
    """Restore the files, then check whether the ledger is the one that was anchored, in its newest state."""
    from lapwing.owner.backup import put_back

    written = put_back(file, directory)
    terminal.write(f"Restored into {directory}: {', '.join(written.files)}.")
    _compare_ledger(directory, written)


def _compare_ledger(directory: Path, written: Backup) -> None:
    from lapwing.curator.curator import Curator
    from lapwing.errors import LapwingError

    if written.ledger_is_elsewhere:
        terminal.write(_IN_DATABASE)
        return
    where = shell_quoted(directory)
    if "ledger.sqlite" not in written.files:
        terminal.write(f"The backup has no ledger: the data set had not been prepared. Prepare it: lapwing -C {where} prepare")
        return
    try:
        with Curator(directory) as curator:
            curator.ledger.balance()
    except LapwingError as error:
        terminal.write("The ledger differs from the one last seen here:")
        terminal.write(f"  [{error.code}] {error.message}")
        known = "Accepting charges again what the registry has recorded since the backup:"
        if error.code == "ledger-unregistered":
            known = "Charges made after the backup are not known here: lower the budget by what may be missing."
        terminal.write(f"Nothing is answered until the owner accepts it. {known}")
        terminal.write(f'  lapwing -C {where} ledger accept "what happened"')
        return
    terminal.write(f"The ledger matches the one last seen here. Prepare a version: lapwing -C {where} prepare")
