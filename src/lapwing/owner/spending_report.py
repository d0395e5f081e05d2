"""The spending report, by analyst and question. It can be verified with the history and the receipts.

Every number is from the ledger, exact, and visible to everyone who may see every entry. Nothing here reads a row.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lapwing.answers.display.budget import decimal_text
from lapwing.curator.curator import Balance, Curator, Entry, EntryKind
from lapwing.errors import LedgerError
from lapwing.kernel.accounting import DELTA_UNITS, LOSS_UNITS, Cost
from lapwing.ledger.block_balances import BlockBalances, BlockCharge, BlockSpending
from lapwing.owner.ledger_entries import entry_fields

REPORT_ENTRIES_MAX = 10_000
"""Newest entries that a report adds up. With more, it says that it is not complete; the ledger's own check reads all of them."""
READINGS_MAX = 20
"""Number of attempts if a charge was made between two readings."""


@dataclass(slots=True)
class _Part:
    """The charges of one person."""

    spent: Cost = field(default_factory=Cost.zero)
    """Of each charge, what the block paid that paid most."""
    kinds: dict[str, int] = field(default_factory=dict)

    def add(self, entry: Entry) -> None:
        self.spent += entry.charged
        self.kinds[entry.kind.value] = self.kinds.get(entry.kind.value, 0) + 1


def spending_report(curator: Curator) -> dict[str, Any]:
    """The report, for JSON. ``adds_up`` is whether the entries add up exactly to the ledger's spending."""
    entries, balance, spending = _read_together(curator)
    complete = any(entry.kind is EntryKind.REGISTER for entry in entries)
    parts: dict[str, _Part] = {}
    for entry in reversed(entries):
        parts.setdefault(entry.analyst, _Part()).add(entry)
    total = sum((entry.cost for entry in entries), Cost.zero())
    unit = str(curator.view_of(balance).to_dict()["loss_unit"])
    return {
        "data_set": curator.declaration.dataset.id,
        "loss_unit": unit,
        "budget": curator.budget().to_dict(),
        "closed": balance.closed,
        "entries": len(entries),
        "newest_entry": entries[0].entry_id if entries else None,
        "oldest_entry": entries[-1].entry_id if entries else None,
        "complete": complete,
        "spent_by_the_ledger": _amounts(balance.spent, unit),
        "spent_by_the_entries": _amounts(total, unit),
        "adds_up": complete and total == balance.spent and _blocks_of(entries, spending) == spending,
        "by_analyst": [
            {"analyst": name or None, **_amounts(part.spent, unit), "entries": part.kinds} for name, part in sorted(parts.items())
        ],
        "entries_sha256": entries_digest(entry_fields(entry, unit) for entry in entries),
    }


def _blocks_of(entries: Sequence[Entry], kept: BlockSpending | None) -> BlockSpending | None:
    """What blocks and persons lost, from the entries since blocks were declared, newest first; the terms are those that are ``kept``."""
    if kept is None:
        return None
    first = max(place for place, entry in enumerate(entries) if entry.kind is EntryKind.BLOCKS)
    paid = (entry for entry in entries[: first + 1] if entry.ranges or entry.cost != Cost.zero())
    return BlockBalances(kept.terms, (BlockCharge.of(entry.ranges, entry.person, entry.cost) for entry in paid)).spending()


def _read_together(curator: Curator) -> tuple[tuple[Entry, ...], Balance, BlockSpending | None]:
    """The entries and their sums, read without a write in between; ``ledger-busy`` if every attempt is interrupted."""
    for _ in range(READINGS_MAX):
        before, entries, balance = curator.history(limit=1), curator.history(limit=REPORT_ENTRIES_MAX), curator.balance()
        spending = curator.ledger.blocks()
        if before[:1] == entries[:1] == curator.history(limit=1)[:1]:
            return entries, balance, spending
    raise LedgerError("ledger-busy", "the ledger was written to during every reading of it", hint="try again when fewer people ask")


def entries_digest(entries: Iterable[dict[str, Any]]) -> str:
    """SHA-256 of entries as the history shows them, newest first, each as one line of JSON with sorted names."""
    digest = hashlib.sha256()
    for entry in entries:
        digest.update(json.dumps(entry, sort_keys=True, ensure_ascii=True).encode("ascii") + b"\n")
    return digest.hexdigest()


def _amounts(cost: Cost, unit: str) -> dict[str, str]:
    return {unit: decimal_text(cost.loss, LOSS_UNITS), "delta": decimal_text(cost.delta, DELTA_UNITS)}
