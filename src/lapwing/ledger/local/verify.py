"""Checks a whole local ledger: what opening it checks, the bytes of every stored answer, and that the registry has no newer state.

Nothing is charged, forfeited or accepted. Linear in the entries and answers; processes that want to write wait meanwhile.
"""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

from lapwing.errors import LedgerError
from lapwing.kernel.accounting import Cost, admits
from lapwing.ledger.local import registry, rows
from lapwing.ledger.local.agreement import disagreements, elsewhere
from lapwing.ledger.local.replaying import verified_state
from lapwing.ledger.local.rows import LedgerState
from lapwing.ledger.local.schema import LEDGER_FORMAT
from lapwing.ledger.local.sqlite_file import open_database
from lapwing.ledger.verification import ComparedAnchor, Verification


def verify(path: Path, *, source_id: str, fingerprint: str, home: Path | None) -> Verification:
    """Check the chain, the sums, the budget, every charge and stored answer, and the registry's anchor of this source.

    Refuses ``ledger-missing``, ``ledger-damaged`` for a file that cannot be read as a ledger at all, and ``ledger-elsewhere`` for one that
    was moved into a database.
    """
    path = path.resolve()
    with (
        closing(open_database(path, LEDGER_FORMAT)) as database,
        closing(registry.open_registry(registry.registry_home(home))) as books,
        # The registry first: the ledger may grow meanwhile, and being ahead of its anchor is not a disagreement.
        books.read() as registered,
        database.read() as connection,
    ):
        known = registry.find_anchor(registered, source_id)
        state, moved_to = rows.read_state(connection), rows.moved_to(connection)
        if moved_to is not None:
            raise elsewhere(moved_to)
        answers, wrong = _checked(connection, state)
        found = disagreements(registered, connection, path=path, source_id=source_id, fingerprint=fingerprint)
        same = [known] if known is not None and known.ledger_id == state.ledger_id else []
        return Verification(
            source_id=state.source_id,
            ledger_id=state.ledger_id,
            entries=state.entries,
            charges=connection.execute("SELECT count(*) FROM charge").fetchone()[0],
            answers=answers,
            head=state.head,
            spent=state.spent,
            anchors=tuple(_compared(connection, books.path, anchor) for anchor in same),
            problems=(*wrong, *(f"[{problem.code}] {problem.message}" for problem in found)),
        )


def _checked(connection: sqlite3.Connection, state: LedgerState) -> tuple[int, list[str]]:
    """The number of answers, and the contradictions in the file."""
    wrong: list[str] = []
    try:
        verified_state(connection)
    except LedgerError as error:
        wrong.append(f"[{error.code}] the chain, sums, charges, budget and state are inconsistent")
    if not admits(state.budget, spent=state.spent, cost=Cost.zero()):
        wrong.append("[ledger-damaged] more was spent than the budget allows")
    answers = changed = 0
    for payload, digest in connection.execute("SELECT payload, payload_digest FROM charge WHERE state = 'committed'"):
        answers += 1
        changed += hashlib.sha256(payload).hexdigest() != digest
    if changed:
        wrong.append(f"[ledger-damaged] an answer is not the one that was committed ({changed} of {answers})")
    return answers, wrong


def _compared(connection: sqlite3.Connection, path: Path, known: registry.Anchor) -> ComparedAnchor:
    row = connection.execute("SELECT at FROM entry WHERE entry_id = ? AND chained = ?", [known.entries, known.head]).fetchone()
    return ComparedAnchor(f"the registry {path}", known.entries, None if row is None else row[0])
