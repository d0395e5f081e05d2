"""Which ledger a data set has, and opening it: the local one, or one on PostgreSQL, behind the same protocol.

A source has one ledger for its life, whatever its catalogue says today. So a database is not used while a local ledger of the same source
still counts, a local ledger is not made or used where there is one in a database, and neither is ever made anew because the other is out
of sight: that would be a second budget for the same people.
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
"""Who asks on a local ledger, which knows no analysts, unless somebody says otherwise."""
OWNER_ANALYST = "owner"
"""As whom preparation buys its statistics."""
LEASE_SECONDS_MIN = 900


@dataclass(frozen=True, slots=True)
class Server:
    """A ledger on PostgreSQL: where it is, and where its anchors are."""

    database: str
    anchors: Path
    lease_seconds: int
    """How long a worker counts as alive after it was last heard of."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the ledger of a data set is."""

    local: Path
    """The file of the local ledger, whether that is the one or not."""
    home: Path | None
    """The directory of the registry, if not the user's own."""
    server: Server | None
    """None: the local ledger."""
    keys: Path | None
    """The directory of the key that signs receipts; None: there are no receipts."""


def place_of(
    declaration: Declaration,
    *,
    local: Path,
    home: Path | None,
    query_timeout_seconds: int,
    environment: Mapping[str, str] = os.environ,
) -> Place:
    """Where the catalogue and the environment say the ledger is. The environment says where, never whether there is a database.

    The lease is not renewed by a timer: that would go on for a worker that hangs, and keep what it reserved open for ever. It is renewed
    when something is reserved, at the latest after a third, so it is made long enough that two thirds outlast the longest statement.
    """
    declared, directory = declaration.ledger, declaration.directory or Path()
    keys = _named(environment.get(KEYS_VARIABLE), declared.keys, directory)
    server = None
    if declared.database is not None:
        anchors = _named(environment.get(ANCHORS_VARIABLE), declared.anchors, directory)
        if anchors is None:  # a declaration that was read from a catalogue has them
            raise CatalogueError("catalogue-missing-key", "a ledger in a database needs the key `anchors`")
        server = Server(
            database=environment.get(DATABASE_VARIABLE) or declared.database,
            anchors=anchors,
            lease_seconds=max(LEASE_SECONDS_MIN, 2 * query_timeout_seconds),
        )
    return Place(local=local, home=home, server=server, keys=keys)


def _named(chosen: str | None, declared: str | None, directory: Path) -> Path | None:
    """A folder: from the environment, relative to where the command runs as its options are; else from the catalogue, relative to that."""
    if chosen:
        return Path(chosen).resolve()
    return None if declared is None else (directory / declared).resolve()


def open_ledger(
    place: Place, declaration: Declaration, *, override: str = "", create: bool, signs: bool = True, shared: bool = False
) -> Ledger:
    """Open the ledger of a data set; with ``create``, make it if the source has none anywhere.

    Refuses ``ledger-elsewhere`` (the local ledger was moved into a database), ``ledger-not-moved`` (it was not, and a database is
    declared), ``signing-key`` (no key, where receipts are to be signed), and whatever the ledger itself refuses. ``override`` is the
    owner's reason. Without ``signs`` no key is needed: for acts that answer nothing, by a person who does not have it. With ``shared``,
    many threads ask at once: where the ledger is in a database, their reservations go together.
    """
    if place.keys is not None and signs:
        receipts.require_signing_key(place.keys)
    if place.server is None:
        return _open_local(place, declaration, override=override, create=create)
    if place.keys is None and signs:
        raise receipts.no_signing_key()
    return _open_on_server(place, place.server, declaration, override=override, create=create, shared=shared)


def accept_ledger(place: Place, declaration: Declaration, *, reason: str) -> Balance:
    """The owner's override for a ledger that is not as it was anchored; what it has lost is charged again.

    Where the file is lost, and the registry remembers what was spent, it is made anew with that; a ledger that nobody knows is not made.
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
    """The local ledger as it is, even if it was moved: for moving it, again if need be. ``ledger-missing`` if there is none."""
    fingerprint = declaration.fingerprint()
    return LocalLedger.open(place.local, source_id=declaration.dataset.id, source_fingerprint=fingerprint, home=place.home)


def default_analyst(place: Place) -> str:
    """The default analyst: the user of the operating system, if the ledger knows analysts."""
    return LOCAL_ANALYST if place.server is None else system_user()


def system_user() -> str:
    """The name that the operating system has for whoever runs this process; not variables such as ``USER``, which anybody can set."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}"


def apply_budget(ledger: Ledger, to: Budget, *, by: str) -> None:
    """Bring the budget in force to the one in the catalogue, as far as one person may.

    The entry says from what to what, and who. On PostgreSQL a higher budget needs a second person. It is then proposed in the name of
    ``by``, unless it was proposed before, and the one in force stays: preparing goes on.
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


def apply_limits(ledger: Ledger, declared: LimitsDecl, *, by: str) -> None:
    """Bring the limit of a statement on PostgreSQL to the one in the catalogue, where that says one; a local ledger reads it from there.

    The limit of a day is part of the terms that an analyst is admitted on (:meth:`lapwing.owner.policies.Policies.admit`).
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
    """The database's role whose members do what owners do, where the connection's is not one of them; None where it is, or is local."""
    if place.server is None:
        return None
    from lapwing.ledger.postgres import overview

    return overview.role_to_decide(place.server.database)


def require_owner(place: Place) -> None:
    """Refuse (``ledger-role``) what owners alone do before any of it is done: the ledger would refuse it only when it is told."""
    from lapwing.ledger.postgres.connection import right_missing

    role = role_to_decide(place)
    if role is not None:
        raise right_missing(role)


def admit_owner(ledger: Ledger) -> None:
    """Let preparation buy its statistics, on a ledger where only admitted analysts may ask. Whom the owner suspended stays suspended."""
    from lapwing.ledger.postgres import overview, policy
    from lapwing.ledger.postgres.ledger import PostgresLedger

    if isinstance(ledger, PostgresLedger) and OWNER_ANALYST not in {one.analyst for one in overview.analysts(ledger)}:
        policy.admit(ledger, OWNER_ANALYST, reason="buys statistics when a version is prepared")


def _propose(ledger: PostgresLedger, to: Budget, *, by: str, reason: str) -> None:
    from lapwing.ledger.postgres import policy

    # A denied one is not proposed again by every preparation; `lapwing ledger propose` can.
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
    """Whether the ledger of this source was seen in a database by this user."""
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
        raise LedgerError("ledger-not-moved", "the catalogue names a database, and the ledger is still the local one", hint=hint)
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
        if known:  # the database itself may know of no other ledger, and would write nothing down
            ledger.record(EntryKind.OVERRIDE, f"source-registered: a second budget in another database: {override}")
    remember_on_server(place, ledger.state(), fingerprint)
    return ledger


def _is_there(path: Path) -> bool:
    """Whether there is a local ledger. A person who may not look into the state directory, such as one who only approves, uses none."""
    try:
        return path.exists()
    except PermissionError:
        return False


def _moved_to(path: Path) -> str | None:
    """Where the ledger in this file goes on; None if it was not moved."""
    database = open_database(path, LEDGER_FORMAT)
    try:
        with database.read() as connection:
            return rows.moved_to(connection)
    finally:
        database.close()


def _known_here(place: Place, source_id: str, fingerprint: str, *, override: str) -> bool:
    """Whether the registry of this user knows a ledger of this source; refused (``source-registered``) unless the owner gives a reason."""
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
        raise CatalogueError("source-registered", f"this source already has a ledger, as {', '.join(sorted(known))}", hint=hint)
    return bool(known)


def remember_on_server(place: Place, state: AnchorPoint, fingerprint: str) -> None:
    """So that no local ledger is made or used for this source any more: not without the section in the catalogue, not from a backup."""
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
                # It was local. The state stays that of the file, so that an older copy of it is seen to be one.
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
