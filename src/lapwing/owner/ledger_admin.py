"""Administration of ledgers for every interface: install, move, verify, accept, and remove a lost anchor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lapwing.answers.display.budget import BudgetView
from lapwing.curator.curator import Balance, Curator
from lapwing.errors import LedgerError
from lapwing.ledger.connect import accept_ledger, apply_limits, open_local, remember_on_server
from lapwing.ledger.limits import declared_limit
from lapwing.ledger.local.verify import verify as verify_local
from lapwing.ledger.postgres import policy
from lapwing.ledger.postgres.anchoring import report_lost
from lapwing.ledger.postgres.anchors import FileAnchors, SeveralAnchors
from lapwing.ledger.postgres.connection import Connection, require_extra, without_password
from lapwing.ledger.postgres.install import SCHEMA_VERSION, Roles, install
from lapwing.ledger.postgres.overview import analysts
from lapwing.ledger.postgres.transfer import move
from lapwing.ledger.postgres.verify import sources, verify
from lapwing.ledger.verification import Verification
from lapwing.receipts import require_signing_key

__all__ = [
    "MovedLedger",
    "Roles",
    "Verification",
    "accept",
    "install",
    "move_ledger",
    "report_lost_anchor",
    "verified",
    "verified_of",
    "without_password",
]


@dataclass(frozen=True, slots=True)
class MovedLedger:
    """A ledger that was moved into a database, and its analysts."""

    budget: BudgetView
    admitted: tuple[str, ...]


def move_ledger(curator: Curator, database: str, *, anchors: Path, keys: Path, by: str) -> MovedLedger:
    """Move the local ledger of a data set into a database with every charge and answer. The local one is closed for good."""
    require_signing_key(keys)  # before anything is closed: without a key no question could be asked afterwards
    declaration = curator.declaration
    with open_local(curator.place, declaration) as local:
        moved = move(
            local,
            database,
            source_id=declaration.dataset.id,
            source_fingerprint=declaration.fingerprint(),
            anchors=FileAnchors(anchors),
            by=by,
            was_closed=local.balance().closed,
        )
    with moved:
        remember_on_server(curator.place, moved.state(), declaration.fingerprint())
        apply_limits(moved, declaration.limits, by=by)
        in_a_day = declared_limit(moved.balance().budget, declaration.limits.per_day)
        for one in analysts(moved) if in_a_day.loss is not None else ():  # as for a newly admitted analyst
            reason = "declared in the catalogue"
            policy.admit(moved, one.analyst, day_loss_max=in_a_day.loss, day_pure_max=in_a_day.pure, by=by, reason=reason)
        return MovedLedger(curator.view_of(moved.balance()), tuple(one.analyst for one in analysts(moved)))


def verified(database: str, *, anchors: Sequence[Path], names: Sequence[str]) -> Iterator[Verification]:
    """Recompute everything from the entries of these sources or of all, and compare it with the anchors in these directories.

    Of all: ``ledger-missing`` at the end where an anchor is of a source that the database does not have.
    """
    kept = [FileAnchors(directory, reads_only=True) for directory in anchors]
    with _connected(database, standby=True) as connection:
        checked = names or sources(connection)
        for name in checked:
            yield verify(connection, name, anchors=SeveralAnchors(kept) if kept else None)
    strangers = 0 if names else sum(one.strangers(checked) for one in kept)
    if strangers:
        hint = "restore them; if they are in another database, name the sources to verify"
        raise LedgerError("ledger-missing", f"the anchors are also of {strangers} ledgers that this database does not have", hint=hint)


def verified_of(curator: Curator, *, database: str | None = None, anchors: Sequence[Path] = ()) -> Verification:
    """The same for the ledger of a data set: in a database, by default that of the catalogue, or local."""
    place, declaration = curator.place, curator.declaration
    if place.server is None:
        return verify_local(place.local, source_id=declaration.dataset.id, fingerprint=declaration.fingerprint(), home=place.home)
    [report] = verified(database or place.server.database, anchors=anchors or [place.server.anchors], names=[declaration.dataset.id])
    return report


def accept(curator: Curator, *, reason: str) -> Balance:
    """Accept a ledger that does not match its anchor: the owner's override."""
    return accept_ledger(curator.place, curator.declaration, reason=reason)


def report_lost_anchor(curator: Curator, anchor: str, *, by: str, reason: str) -> int | None:
    """Declare an anchor lost; returns the number of the proposal that another owner has to confirm, or None once that is done."""
    server = curator.place.server
    if server is None:
        raise LedgerError("ledger-local", "a local ledger has its anchor in the registry of its user")
    with _connected(server.database) as connection:
        return report_lost(connection, curator.declaration.dataset.id, anchor, by=by, reason=reason)


@contextmanager
def _connected(database: str, *, standby: bool = False) -> Iterator[Connection]:
    require_extra()
    connection = Connection(database, schema_version=SCHEMA_VERSION, standby=standby)
    try:
        yield connection
    finally:
        connection.close()
