"""``lapwing backup`` and ``lapwing restore``."""

from __future__ import annotations

from pathlib import Path

from lapwing.cli import terminal

_IN_DATABASE = (
    "The ledger is in a database and is not part of this: back that up as PostgreSQL does (pg_dump, or a base backup), and keep its anchors"
    " apart from it. After restoring it: `lapwing ledger verify`, then `lapwing ledger accept REASON`."
)


def backed_up(catalogue: Path, to: Path) -> None:
    """Write the backup, and say what it holds and what not."""
    from lapwing.curator.backup import back_up
    from lapwing.curator.life import CATALOGUE_FILE

    backup = back_up(catalogue / CATALOGUE_FILE if catalogue.is_dir() else catalogue, to)
    terminal.write(
        f"Wrote {to}: {', '.join(backup.files)}. It holds secrets (the ranking key, signing keys): keep it as you keep the data."
    )
    terminal.write(
        "Prepared versions are not in it, nor the registry and the anchors: those must never be restored together with a ledger."
    )
    if backup.ledger_is_elsewhere:
        terminal.write(_IN_DATABASE)


def restored(backup: Path, directory: Path) -> None:
    """Put the files back, then look whether the ledger is the one that was anchored, in its newest state."""
    from lapwing.curator.backup import put_back
    from lapwing.curator.life import Curator
    from lapwing.errors import LapwingError

    written = put_back(backup, directory)
    terminal.write(f"Put back into {directory}: {', '.join(written.files)}.")
    if written.ledger_is_elsewhere:
        terminal.write(_IN_DATABASE)
        return
    if "ledger.sqlite" in written.files:
        try:
            with Curator(directory) as curator:
                curator.ledger.balance()
        except LapwingError as error:
            terminal.write("The ledger is not as it was last seen here:")
            terminal.write(f"  [{error.code}] {error.message}")
            terminal.write(
                "Nothing is answered until the owner accepts it. What the registry remembers to have been charged since is charged again:"
            )
            terminal.write('  lapwing ledger accept "what happened"')
            return
    terminal.write("The ledger is as it was last seen here. Prepare a version: lapwing prepare")
