"""Finds and opens the ledger of a data set: the local ledger or one on PostgreSQL, behind the same protocol.

A source keeps one ledger for its whole life, even if its catalogue changes. So Lapwing does not use a database while a local ledger of the
same source is in force, does not create or use a local ledger if there is one in a database, and never recreates one because it cannot see
the other: that would be a second budget for the same people.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lapwing import receipts
from lapwing.catalog import Declaration, LimitsDecl
from lapwing.errors import CatalogueError, LedgerError
from lapwing.kernel.accounting import Budget
from lapwing.ledger import limits
from lapwing.ledger.block_balances import BlockTerms
from lapwing.ledger.local import registry, rows
from lapwing.ledger.local.agreement import elsewhere
from lapwing.ledger.local.ledger import LocalLedger
from lapwing.ledger.local.restoring import make_anew, missing, require_none_lost
from lapwing.ledger.local.schema import LEDGER_FORMAT
from lapwing.ledger.local.sqlite_file import open_database
from lapwing.ledger.postgres.anchors import AnchorPoint, FileAnchors
from lapwing.ledger.protocol import Balance, EntryKind, Ledger

if TYPE_CHECKING:
    from lapwing.ledger.postgres.ledger import PostgresLedger

DATABASE_VARIABLE, ANCHORS_VARIABLE, KEYS_VARIABLE = "LAPWING_DATABASE", "LAPWING_ANCHORS", "LAPWING_KEYS"
LOCAL_ANALYST = "local"
"""The default analyst on a local ledger, which has no list of analysts."""
OWNER_ANALYST = "owner"
"""The analyst in whose name preparation buys its statistics."""
LEASE_SECONDS_MIN = 900


@dataclass(frozen=True, slots=True)
class Server:
    """A ledger on PostgreSQL: where it is, and where its anchors are."""

    database: str
    anchors: Path
    lease_seconds: int
    """How long a worker counts as alive after its last sign of life."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the ledger of a data set is."""

    local: Path
    """The path of the local ledger, even if the ledger in force is in a database."""
    home: Path | None
    """The directory of the registry, if it is not the user's own."""
    server: Server | None
    """None if the ledger is local."""
    keys: Path | None
    """The directory of the key that signs receipts; None if there are no receipts."""


def place_of(
    declaration: Declaration,
    *,
    local: Path,
    home: Path | None,
    query_timeout_seconds: int,
    environment: Mapping[str, str] = os.environ,
) -> Place:
    """The place of the ledger, from the catalogue and the environment. The environment can move a database, but not introduce one.

    No timer renews the lease: it would also renew the lease of a worker that hangs, whose reservations would then stay open forever.
    Reservations renew the lease once a third of it has passed, so it is long enough that two thirds outlast the longest statement.
    """
    declared, directory = declaration.ledger, declaration.directory or Path()
    keys = _named(environment.get(KEYS_VARIABLE), declared.keys, directory)
    server = None
    if declared.database is not None:
        anchors = _named(environment.get(ANCHORS_VARIABLE), declared.anchors, directory)
        if anchors is None:  # a declaration that was read from a catalogue has anchors
            raise CatalogueError("catalogue-missing-key", "a ledger in a database needs the key `anchors`")
        server = Server(
            database=environment.get(DATABASE_VARIABLE) or declared.database,
            anchors=anchors,
            lease_seconds=max(LEASE_SECONDS_MIN, 2 * query_timeout_seconds),
        )
    return Place(local=local, home=home, server=server, keys=keys)


def _named(chosen: str | None, declared: str | None, directory: Path) -> Path | None:
    """A folder from the environment (relative to the working directory) or else from the catalogue (relative to the catalogue)."""
    if chosen:
        return Path(chosen).resolve()
    return None if declared is None else (directory / declared).resolve()


def open_ledger(
    place: Place, declaration: Declaration, *, override: str = "", create: bool, signs: bool = True, shared: bool = False
) -> Ledger:
    """Open the ledger of a data set; with ``create``, make it if the source has none anywhere.

    Refuses ``ledger-elsewhere`` (the local ledger was moved into a database), ``ledger-not-moved`` (it was not moved, but the catalogue
    names a database), ``signing-key`` (the key that signs receipts is missing), and whatever the ledger itself refuses. ``override`` is
    the owner's reason. Without ``signs`` no key is needed: for operations that answer no question, by people who do not have the key.
    ``shared`` is for many threads that ask at the same time: a ledger in a database then batches their reservations.
    """
    if place.keys is not None and signs:
        receipts.require_signing_key(place.keys)
    if place.server is None:
        return _open_local(place, declaration, override=override, create=create)
    if place.keys is None and signs:
        raise receipts.no_signing_key()
    return _open_on_server(place, place.server, declaration, override=override, create=create, shared=shared)


def accept_ledger(place: Place, declaration: Declaration, *, reason: str) -> Balance:
    """Open a ledger that disagrees with its anchor, on the owner's override; charges that it has lost are charged again.

    If the file is lost and the registry has a record of the spending, the file is recreated with it; an unknown ledger is not created.
    """
    limits.require_reason(True, reason)
    if place.server is None and not place.local.exists():
        make_anew(place.local, declaration.dataset.id, declaration.fingerprint(), home=place.home, reason=reason)
    ledger = open_ledger(place, declaration, override=reason, create=False)
    try:
        return ledger.balance()
    finally:
        ledger.disconnect()


def open_local(place: Place, declaration: Declaration) -> LocalLedger:
    """Open the local ledger even if it was moved, so that a move can be repeated. Refuses ``ledger-missing`` if there is none."""
    fingerprint = declaration.fingerprint()
    return LocalLedger.open(place.local, source_id=declaration.dataset.id, source_fingerprint=fingerprint, home=place.home)


def default_analyst(place: Place) -> str:
    """The default analyst: the user of the operating system, if the ledger has a list of analysts."""
    return LOCAL_ANALYST if place.server is None else system_user()


def system_user() -> str:
    """The operating system's name for the user of this process; not from variables such as ``USER``, which anyone can set."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}"


def apply_budget(ledger: Ledger, to: Budget, *, by: str) -> None:
    """Set the budget in force to the one in the catalogue, as far as one person may.

    The entry records the old budget, the new one and the person. On PostgreSQL a higher budget needs a second person. It is then proposed
    in the name of ``by``, unless it was proposed before; the budget in force stays, and preparation continues.
    """
    from lapwing.ledger.postgres.ledger import PostgresLedger

    before = ledger.balance().budget
    if before == to:
        return
    reason = f"{limits.step_text(before, to)}: declared in the catalogue"
    try:
        ledger.set_budget(to, reason=f"by {by}: {reason}")
    except CatalogueError as error:
        if error.code != "second-person" or not isinstance(ledger, PostgresLedger):
            raise
        _propose(ledger, to, by=by, reason=reason)


def apply_cap(ledger: Ledger, to: BlockTerms, *, by: str, reason: str) -> None:
    """Set the cap on what one person may lose to the one in the catalogue, as far as one person may.

    On PostgreSQL a higher cap, or none, needs a second person. It is then proposed, unless it was proposed before.
    """
    from lapwing.ledger.postgres import policy
    from lapwing.ledger.postgres.ledger import PostgresLedger

    try:
        ledger.declare_blocks(to, read=None, units=1, reason=f"by {by}: {reason}")
    except CatalogueError as error:
        if error.code != "second-person" or not isinstance(ledger, PostgresLedger):
            raise
        budget = to.person_budget(ledger.balance().budget)
        if not any(one.kind == "cap" and one.budget == budget and one.state != "approved" for one in policy.proposals(ledger)):
            policy.propose_cap(ledger, to.person_cap, by=by, reason=reason)


def apply_limits(ledger: Ledger, declared: LimitsDecl, *, by: str) -> None:
    """Set the statement limit on PostgreSQL to the one in the catalogue, if there is one; a local ledger reads the catalogue itself.

    The daily limit is part of the terms on which an analyst is admitted (:meth:`lapwing.owner.policies.Policies.admit`).
    """
    from lapwing.ledger.postgres import overview, policy
    from lapwing.ledger.postgres.ledger import PostgresLedger

    if not isinstance(ledger, PostgresLedger) or declared.per_statement is None:
        return
    old, limit = overview.limits_in_force(ledger), limits.declared_limit(ledger.balance().budget, declared.per_statement)
    new = replace(old, statement_loss_max=limit.loss, statement_pure_max=limit.pure)
    if new != old:
        policy.set_limits(ledger, new, by=by, reason="declared in the catalogue")


def role_to_decide(place: Place) -> str | None:
    """The database role of owners, if the role of the connection is not a member of it; None if it is, or if the ledger is local."""
    if place.server is None:
        return None
    from lapwing.ledger.postgres import overview

    return overview.role_to_decide(place.server.database)


def require_owner(place: Place) -> None:
    """Refuse (``ledger-role``) an owner operation before it starts: the ledger itself would refuse only when it records the operation."""
    from lapwing.ledger.postgres.connection import right_missing

    role = role_to_decide(place)
    if role is not None:
        raise right_missing(role)


def admit_owner(ledger: Ledger) -> None:
    """Admit the analyst of preparation on a ledger where only admitted analysts may ask. If the owner suspended it, it stays suspended."""
    from lapwing.ledger.postgres import overview, policy
    from lapwing.ledger.postgres.ledger import PostgresLedger

    if isinstance(ledger, PostgresLedger) and OWNER_ANALYST not in {one.analyst for one in overview.analysts(ledger)}:
        policy.admit(ledger, OWNER_ANALYST, reason="buys statistics when a version is prepared")


def _propose(ledger: PostgresLedger, to: Budget, *, by: str, reason: str) -> None:
    from lapwing.ledger.postgres import policy

    # Preparation does not repeat a denied proposal; `lapwing ledger propose` can.
    if not any(one.kind == "budget" and one.budget == to and one.state != "approved" for one in policy.proposals(ledger)):
        policy.propose_budget(ledger, to, by=by, reason=reason)


def _open_local(place: Place, declaration: Declaration, *, override: str, create: bool) -> LocalLedger:
    source_id, fingerprint = declaration.dataset.id, declaration.fingerprint()
    if not place.local.exists():
        if _is_on_server(place, source_id):
            raise elsewhere(rows.ON_SERVER)
        require_none_lost(source_id, home=place.home)
        if not create:
            raise missing()
        place.local.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return LocalLedger.create(
            place.local,
            source_id=source_id,
            source_fingerprint=fingerprint,
            budget=declaration.budget(),
            ceiling=declaration.ceiling(),
            home=place.home,
            allowed=declaration.limits,
        )
    ledger = LocalLedger.open(
        place.local,
        source_id=source_id,
        source_fingerprint=fingerprint,
        home=place.home,
        override=bool(override),
        reason=override,
        allowed=declaration.limits,
    )
    moved_to = ledger.moved_to()
    if moved_to is None:
        return ledger
    ledger.disconnect()
    raise elsewhere(moved_to)


def _is_on_server(place: Place, source_id: str) -> bool:
    """Whether this user has seen the ledger of this source in a database."""
    books = registry.open_registry(registry.registry_home(place.home))
    try:
        with books.read() as registered:
            known = registry.find_anchor(registered, source_id)
    finally:
        books.close()
    return known is not None and known.ledger_path == rows.ON_SERVER


def _open_on_server(place: Place, server: Server, declaration: Declaration, *, override: str, create: bool, shared: bool) -> Ledger:
    from lapwing.ledger.postgres.ledger import PostgresLedger
    from lapwing.ledger.postgres.shared import SharedPostgresLedger

    kind = SharedPostgresLedger if shared else PostgresLedger

    if _is_there(place.local) and _moved_to(place.local) is None and not _is_on_server(place, declaration.dataset.id):
        hint = "run `lapwing ledger move`"
        raise LedgerError("ledger-not-moved", "the catalogue names a database, but the ledger is still local", hint=hint)
    source_id, fingerprint, anchors = declaration.dataset.id, declaration.fingerprint(), FileAnchors(server.anchors)
    try:
        ledger = kind.open(
            server.database,
            source_id=source_id,
            source_fingerprint=fingerprint,
            anchors=anchors,
            override=bool(override),
            reason=override,
            lease_seconds=server.lease_seconds,
        )
    except LedgerError as error:
        if error.code != "ledger-missing" or not create:
            raise
        known = _known_here(place, source_id, fingerprint, override=override) or anchors.newest(source_id) is not None
        ledger = kind.create(
            server.database,
            source_id=source_id,
            source_fingerprint=fingerprint,
            budget=declaration.budget(),
            ceiling=declaration.ceiling(),
            anchors=anchors,
            by=system_user(),
            override=bool(override),
            reason=override,
            lease_seconds=server.lease_seconds,
        )
        if known:  # the database itself may not know the other ledger, and would not record the override
            ledger.record(EntryKind.OVERRIDE, f"source-registered: a second budget in another database: {override}")
    remember_on_server(place, ledger.state(), fingerprint)
    return ledger


def _is_there(path: Path) -> bool:
    """Whether there is a local ledger. Someone who cannot read the state directory, such as an approver, does not use one."""
    try:
        return path.exists()
    except PermissionError:
        return False


def _moved_to(path: Path) -> str | None:
    """Where the ledger in this file was moved to; None if it was not moved."""
    database = open_database(path, LEDGER_FORMAT)
    try:
        with database.read() as connection:
            return rows.moved_to(connection)
    finally:
        database.close()


def _known_here(place: Place, source_id: str, fingerprint: str, *, override: str) -> bool:
    """Whether this user's registry has a ledger of this source; if so, refuses (``source-registered``) unless the owner gives a reason."""
    limits.require_reason(bool(override), override)
    books = registry.open_registry(registry.registry_home(place.home))
    try:
        with books.read() as registered:
            known = set(registry.sources_with(registered, fingerprint))
            if registry.find_anchor(registered, source_id) is not None:
                known.add(source_id)
    finally:
        books.close()
    if known and not override:
        hint = "move that ledger into the database, or open it where it is; a second budget needs the owner's override"
        raise CatalogueError("source-registered", f"this source already has a ledger, under the id {', '.join(sorted(known))}", hint=hint)
    return bool(known)


def remember_on_server(place: Place, state: AnchorPoint, fingerprint: str) -> None:
    """Record that the ledger is in a database, so that no local ledger is created, used or restored from a backup for this source."""
    books = registry.open_registry(registry.registry_home(place.home))
    try:
        with books.read() as registered:
            known = registry.find_anchor(registered, state.source_id)
            is_said = known is not None and known.ledger_path == rows.ON_SERVER
            if is_said and state.source_id in registry.sources_with(registered, fingerprint):
                return
        with books.write() as registered:
            known = registry.find_anchor(registered, state.source_id)
            if known is not None:
                # The ledger was local. The anchor keeps the state of the file, so that an older copy of the file is recognised.
                registry.put_anchor(registered, replace(known, ledger_path=rows.ON_SERVER))
            else:
                anchor = registry.Anchor(
                    source_id=state.source_id,
                    ledger_id=state.ledger_id,
                    ledger_path=rows.ON_SERVER,
                    entries=state.entries,
                    head=state.head,
                    budget=state.budget,
                    ceiling=state.ceiling,
                    spent=state.spent,
                    closed=state.closed,
                )
                registry.put_anchor(registered, anchor)
            registry.add_fingerprint(registered, state.source_id, fingerprint)
    finally:
        books.close()
