"""Charges again, from the registry, what a restored ledger file has lost, or everything if the file is lost."""

from __future__ import annotations

import sqlite3
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path

from lapwing.errors import LedgerError
from lapwing.kernel.accounting import Cost, admits
from lapwing.ledger.amounts import lost_between
from lapwing.ledger.local import block_losses, registry, rows
from lapwing.ledger.local.block_state import Tally
from lapwing.ledger.local.registry import Anchor
from lapwing.ledger.local.rows import LedgerState
from lapwing.ledger.local.schema import LEDGER_FORMAT
from lapwing.ledger.local.sqlite_file import create_database
from lapwing.ledger.protocol import EntryKind

_ADOPTED = "ledger-unregistered: "
"""How the text of an override begins by which a registry adopted a ledger that it did not know."""


def restored(connection: sqlite3.Connection, state: LedgerState, anchor: Anchor, *, acts: AbstractSet[str]) -> LedgerState:
    """Charge again what the file has lost, as one amount: the anchor records the spending, the budget, and whether the data set was closed.

    The anchor's amount includes all that a state before the anchor had spent. It does not include what a file spent after another registry
    had adopted it, nor what another ledger spent; these amounts are added to it. The same holds of what blocks of time have spent.
    """
    is_same = anchor.ledger_id == state.ledger_id
    held, whole = _held_here(connection, state, acts)
    if is_same:
        state = replace(state, budget=anchor.budget, ceiling=anchor.ceiling)
    else:
        held = Tally()
    lost = lost_between(held.spent, anchor.spent)
    if not admits(state.budget, spent=state.spent, cost=lost):
        message = "together, this ledger and the one in the registry have spent more than the budget"
        raise LedgerError("ledger-superseded", message, hint="use the other ledger, if it has budget left")
    detail = "charges made after the restored state" if is_same else "charges made in another ledger"
    if anchor.blocks is not None:
        state = block_losses.joined(connection, state, anchor.blocks, held=held, whole=whole, is_same=is_same)
        state = block_losses.charge_again(connection, state, anchor.blocks, held, anchor.budget, standing=lost, detail=detail)
    elif state.blocks is not None and lost != Cost.zero():
        raise block_losses.apart("the ledger in the registry has spent budget without blocks of time, which this one has")
    else:
        state = rows.append(connection, state, kind=EntryKind.RESTORE, detail=detail, cost=lost, evidence=rows.budgets_digest(state))
    if anchor.closed and not state.closed:
        state = rows.append(connection, replace(state, closed=True), kind=EntryKind.CLOSE, detail="closed before the ledger was restored")
    return state


def _held_here(connection: sqlite3.Connection, state: LedgerState, acts: AbstractSet[str]) -> tuple[Tally, Tally]:
    """What the file had before a registry other than this one (``acts``) adopted it, or in total if none did; and what it has in total.

    After an override by this registry, everything before it belongs to the anchor's history. The newest entry is the one being written.
    """
    whole, before = Tally(), None
    entries = connection.execute(
        "SELECT kind, detail, evidence, blocks, loss, delta, pure FROM entry WHERE entry_id < ? ORDER BY entry_id", [state.entries]
    )
    for kind, detail, evidence, blocks, *amounts in entries:
        if kind == EntryKind.OVERRIDE and detail in acts:
            before = None
        elif kind == EntryKind.OVERRIDE and detail.startswith(_ADOPTED) and before is None:
            before = whole.copy()
        whole.add(rows.kind_of(kind), amounts, evidence, blocks)
    return (whole if before is None else before), whole


def require_none_lost(source_id: str, *, home: Path | None) -> None:
    """Refuse (``ledger-missing``) if the ledger of this source is not where it was last seen: no new ledger may take its place."""
    books = registry.open_registry(registry.registry_home(home))
    try:
        with books.read() as registered:
            anchor = registry.find_anchor(registered, source_id)
    finally:
        books.close()
    if anchor is not None and _is_gone(anchor.ledger_path):
        hint = (
            "restore a backup with `lapwing restore FILE`; if there is none, `lapwing ledger accept REASON` recreates the ledger"
            " with everything that was spent"
        )
        raise LedgerError("ledger-missing", f"the ledger of `{source_id}` is missing: it was at {anchor.ledger_path}", hint=hint)


def make_anew(path: Path, source_id: str, fingerprint: str, *, home: Path | None, reason: str) -> None:
    """Recreate the file of a lost ledger with all the spending that the registry has recorded, by the owner's act.

    It stays the same ledger: an older copy of the file that turns up later is refused as rolled back (``ledger-rolled-back``). As in
    ``LocalLedger.create`` the file is written before the registry: after a crash between the two it counts as such a copy itself.
    """
    path = path.resolve()
    books = registry.open_registry(registry.registry_home(home))
    try:
        with books.write() as registered:
            anchor = registry.find_anchor(registered, source_id)
            if anchor is None or anchor.ledger_path == rows.ON_SERVER:
                raise missing()
            if not _is_gone(anchor.ledger_path):
                where = registry.whereabouts(registered, source_id)
                hint = "if this is other data, give it its own id; if you want to move the ledger, bring its file here"
                raise LedgerError("ledger-moved", f"the id `{source_id}` belongs to {where}, but {path.parent} has no ledger", hint=hint)
            detail = f"ledger-missing: {reason}"
            state = LedgerState(
                ledger_id=anchor.ledger_id,
                source_id=source_id,
                budget=anchor.budget,
                ceiling=anchor.ceiling,
                spent=Cost.zero(),
                closed=False,
                entries=0,
                head=rows.first_head(anchor.ledger_id, source_id),
            )

            def fill(connection: sqlite3.Connection) -> None:
                nonlocal state
                state = rows.append(connection, rows.start(connection, state), kind=EntryKind.OVERRIDE, detail=detail)
                state = restored(connection, state, anchor, acts=frozenset())

            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            create_database(path, LEDGER_FORMAT, fill).close()
            made = registry.anchor_of(state, path)
            registry.put_anchor(registered, made)
            registry.add_fingerprint(registered, source_id, fingerprint)
            registry.add_act(registered, made, EntryKind.OVERRIDE, detail)
    finally:
        books.close()


def missing() -> LedgerError:
    """The error for a data set that has no ledger here and is not in the registry."""
    hint = "run `lapwing prepare`; if the data set was prepared before, restore a backup first with `lapwing restore FILE`"
    return LedgerError("ledger-missing", "this data set has no ledger", hint=hint)


def _is_gone(path: str) -> bool:
    """Whether the file certainly does not exist."""
    try:
        Path(path).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False
