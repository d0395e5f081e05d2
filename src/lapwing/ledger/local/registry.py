"""Which source has which ledger, and the newest known state of that ledger, recorded outside it.

One small file in the user's state directory. It stops a second budget for the same source (a new ledger, a copied ledger, a new id for the
same files) and shows when a ledger was reset to an older state. It is a guard against mistakes and against a lost or restored file, not
against an owner who deletes both files: the owner is trusted.

The *anchor* of a source is the newest state of its ledger that this registry has recorded. A permit is issued only after its charge
is anchored.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from lapwing.errors import CatalogueError, LedgerError
from lapwing.kernel.accounting import Budget, Cost
from lapwing.ledger.amounts import amount_text, budget_text, budget_value, cost_value, pure_text
from lapwing.ledger.local.block_state import BlockState, block_state_text, block_state_value
from lapwing.ledger.local.rows import ON_SERVER, LedgerState, now_text
from lapwing.ledger.local.schema import REGISTRY_FORMAT
from lapwing.ledger.local.sqlite_file import Database, create_database, open_database
from lapwing.ledger.protocol import EntryKind

HOME_VARIABLE = "LAPWING_HOME"
REGISTRY_FILE = "registry.sqlite"


@dataclass(frozen=True, slots=True)
class Anchor:
    """The last recorded state of a ledger."""

    source_id: str
    ledger_id: str
    ledger_path: str
    entries: int
    head: str
    budget: Budget
    ceiling: Budget
    spent: Cost
    closed: bool
    blocks: BlockState | None = None
    """What blocks of time have; None of a data set without blocks."""


def anchor_of(state: LedgerState, ledger_path: Path) -> Anchor:
    """The anchor that records ``state``."""
    return Anchor(
        source_id=state.source_id,
        ledger_id=state.ledger_id,
        ledger_path=str(ledger_path),
        entries=state.entries,
        head=state.head,
        budget=state.budget,
        ceiling=state.ceiling,
        spent=state.spent,
        closed=state.closed,
        blocks=state.blocks,
    )


def registry_home(home: Path | None = None) -> Path:
    """The directory of the registry: ``home``, else ``$LAPWING_HOME``, else ``lapwing`` in the user's state directory (XDG)."""
    if home is not None:
        return home.resolve()
    chosen = os.environ.get(HOME_VARIABLE, "")
    if chosen:
        return Path(chosen).resolve()
    # XDG requires that a relative path here is ignored.
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (state if state.is_absolute() else Path.home() / ".local" / "state") / "lapwing"


def open_registry(home: Path) -> Database:
    """Open the registry in this directory; create an empty one if there is none."""
    path = home / REGISTRY_FILE
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The lock is held while the file is created, so that no process sees an incomplete file.
        lock = os.open(home / "registry.lock", os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        hint = f"make it writable, or set {HOME_VARIABLE}"
        raise LedgerError("registry-unreachable", "the directory of the registry cannot be used", hint=hint) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            create_database(path, REGISTRY_FORMAT, lambda connection: None).close()
    finally:
        fcntl.flock(lock, fcntl.LOCK_UN)  # a child forked meanwhile shares the lock: closing the descriptor would not release it
        os.close(lock)
    return open_database(path, REGISTRY_FORMAT)


def find_anchor(connection: sqlite3.Connection, source_id: str) -> Anchor | None:
    """The anchor of a registered source."""
    row = connection.execute("SELECT ledger_id, ledger_path, entries, head, state FROM source WHERE source_id = ?", [source_id]).fetchone()
    if row is None:
        return None
    ledger_id, ledger_path, entries, head, text = row
    try:
        fields = json.loads(text)
        budget, ceiling = budget_value(fields["budget"]), budget_value(fields["ceiling"])
        spent = cost_value(amount_text(int(fields["loss_spent"])), amount_text(int(fields["delta_spent"])), fields.get("pure_spent"))
        closed = bool(fields["closed"])
        blocks = block_state_value(fields["blocks"]) if "blocks" in fields else None
    except (ValueError, KeyError, TypeError) as error:
        raise LedgerError("ledger-damaged", "the registry holds a state that cannot be read") from error
    return Anchor(
        source_id=source_id,
        ledger_id=ledger_id,
        ledger_path=ledger_path,
        entries=entries,
        head=head,
        budget=budget,
        ceiling=ceiling,
        spent=spent,
        closed=closed,
        blocks=blocks,
    )


def put_anchor(connection: sqlite3.Connection, anchor: Anchor) -> None:
    """Register a source, or move its anchor."""
    state = {
        "budget": budget_text(anchor.budget),
        "ceiling": budget_text(anchor.ceiling),
        "closed": anchor.closed,
        "delta_spent": str(anchor.spent.delta),
        "loss_spent": str(anchor.spent.loss),
        "pure_spent": pure_text(anchor.spent),
    }
    if anchor.blocks is not None:  # the state of a data set without blocks keeps its original format
        state["blocks"] = block_state_text(anchor.blocks)
    connection.execute(
        "INSERT INTO source VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (source_id) DO UPDATE SET"
        " ledger_id = excluded.ledger_id, ledger_path = excluded.ledger_path, entries = excluded.entries,"
        " head = excluded.head, state = excluded.state",
        [anchor.source_id, anchor.ledger_id, anchor.ledger_path, anchor.entries, anchor.head, json.dumps(state, sort_keys=True)],
    )


def sources_with(connection: sqlite3.Connection, fingerprint: str) -> frozenset[str]:
    """Every source id under which data with this fingerprint was ever registered."""
    rows = connection.execute("SELECT source_id FROM fingerprint WHERE fingerprint = ?", [fingerprint])
    return frozenset(source_id for (source_id,) in rows)


def already_registered(connection: sqlite3.Connection, source_id: str, fingerprint: str, path: Path) -> CatalogueError | None:
    """Why a new ledger at ``path`` would be a second budget, and what to do instead; None if it would not."""
    if find_anchor(connection, source_id) is not None:
        message = f"the id `{source_id}` belongs to {whereabouts(connection, source_id)}, but this ledger would be at {path}"
        hint = (
            "if this is other data, give it its own id in the catalogue; if it is the same data set, query it there,"
            " or move its state directory here and run `lapwing ledger accept REASON`"
        )
        return CatalogueError("source-registered", message, hint=hint)
    for other in sorted(sources_with(connection, fingerprint)):
        message = f"the sources of `{source_id}`, whose ledger would be at {path}, belong to {whereabouts(connection, other)}"
        hint = f"a source has one budget: query that data set; if its directory is lost, give this one the id `{other}` and prepare it"
        return CatalogueError("source-registered", message, hint=hint)
    return None


def whereabouts(connection: sqlite3.Connection, source_id: str) -> str:
    """A text for the owner: a registered data set and the place of its ledger."""
    anchor = find_anchor(connection, source_id)
    if anchor is None:
        return f"the data set `{source_id}`"
    where = "in a database" if anchor.ledger_path == ON_SERVER else anchor.ledger_path
    return f"the data set `{source_id}`, whose ledger is {where}"


def marks_of(connection: sqlite3.Connection, source_id: str) -> frozenset[str]:
    """Every fingerprint that a source ever had."""
    return frozenset(mark for (mark,) in connection.execute("SELECT fingerprint FROM fingerprint WHERE source_id = ?", [source_id]))


def others_with(connection: sqlite3.Connection, source_id: str, marks: AbstractSet[str]) -> frozenset[str]:
    """The other sources that have any of these marks, except marks that this source has too."""
    new = marks - marks_of(connection, source_id)
    return frozenset(other for mark in new for other in sources_with(connection, mark) if other != source_id)


def add_fingerprint(connection: sqlite3.Connection, source_id: str, fingerprint: str) -> None:
    """Remember that this source has, or had, this fingerprint. Fingerprints are never forgotten."""
    connection.execute("INSERT INTO fingerprint VALUES (?, ?) ON CONFLICT DO NOTHING", [fingerprint, source_id])


def acts_of(connection: sqlite3.Connection, source_id: str) -> frozenset[str]:
    """The recorded acts about this source."""
    return frozenset(detail for (detail,) in connection.execute("SELECT detail FROM act WHERE source_id = ?", [source_id]))


def add_act(connection: sqlite3.Connection, anchor: Anchor, kind: EntryKind, detail: str) -> None:
    """Record a registration or an override."""
    connection.execute(
        "INSERT INTO act (at, kind, source_id, ledger_id, ledger_path, detail) VALUES (?, ?, ?, ?, ?, ?)",
        [now_text(), kind.value, anchor.source_id, anchor.ledger_id, anchor.ledger_path, detail],
    )
