"""The spending report, by analyst and question. It can be verified with the history and the receipts.

Every number is from the ledger, exact, and visible to everyone who may see every entry. Nothing here reads a row.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from lapwing.answers.display.budget import decimal_text
from lapwing.curator.curator import Balance, Curator, Entry, EntryKind
from lapwing.errors import LedgerError
from lapwing.kernel.accounting import DELTA_UNITS, LOSS_UNITS, Cost
from lapwing.kernel.blocks import BlockCost
from lapwing.ledger.block_balances import BlockSpending, Steps
from lapwing.owner.ledger_entries import entry_fields

REPORT_ENTRIES_MAX = 10_000
"""Newest entries that a report adds up. With more, it says that it is not complete; the ledger's own check reads all of them."""
READINGS_MAX = 20
"""Number of attempts if a charge was made between two readings."""


@dataclass(slots=True)
class _Part:
    """The charges of one person."""

    spent: Cost = field(default_factory=Cost.zero)
    kinds: dict[str, int] = field(default_factory=dict)

    def add(self, entry: Entry) -> None:
        self.spent += entry.cost
        self.kinds[entry.kind.value] = self.kinds.get(entry.kind.value, 0) + 1


def spending_report(curator: Curator) -> dict[str, Any]:
    """The report, for JSON. ``adds_up`` is whether the entries add up exactly to the ledger's spending, also of each block of time.

    The amounts are those of the standing block where the data set has blocks.
    """
    entries, balance, blocks = _read_together(curator)
    complete = any(entry.kind is EntryKind.REGISTER for entry in entries)
    parts: dict[str, _Part] = {}
    for entry in reversed(entries):
        parts.setdefault(entry.analyst, _Part()).add(entry)
    total = sum((part.spent for part in parts.values()), Cost.zero())
    unit = str(curator.view_of(balance).to_dict()["loss_unit"])
    return {
        "data_set": curator.declaration.dataset.id,
        "loss_unit": unit,
        "budget": curator.view_of(balance).to_dict(),
        "closed": balance.closed,
        "entries": len(entries),
        "newest_entry": entries[0].entry_id if entries else None,
        "oldest_entry": entries[-1].entry_id if entries else None,
        "complete": complete,
        "spent_by_the_ledger": _amounts(balance.spent, unit),
        "spent_by_the_entries": _amounts(total, unit),
        "adds_up": complete and total == balance.spent and (blocks is None or _of_blocks(entries) == blocks.ranges),
        "by_analyst": [
            {"analyst": name or None, **_amounts(part.spent, unit), "entries": part.kinds} for name, part in sorted(parts.items())
        ],
        "entries_sha256": entries_digest(entry_fields(entry, unit) for entry in entries),
    }


def _read_together(curator: Curator) -> tuple[tuple[Entry, ...], Balance, BlockSpending | None]:
    """The entries and their sums, also of blocks of time if the entries name any, read without a write in between.

    ``ledger-busy`` if every attempt is interrupted.
    """
    for _ in range(READINGS_MAX):
        before, entries, balance = curator.history(limit=1), curator.history(limit=REPORT_ENTRIES_MAX), curator.balance()
        blocks = curator.ledger.blocks() if any(entry.ranges for entry in entries) else None
        if before[:1] == entries[:1] == curator.history(limit=1)[:1]:
            return entries, balance, blocks
    raise LedgerError("ledger-busy", "the ledger was written to during every reading of it", hint="try again when fewer people ask")


def _of_blocks(entries: Iterable[Entry]) -> tuple[BlockCost, ...]:
    """What the entries charged to each block of time."""
    ranges = (each for entry in entries for each in entry.ranges)
    return Steps((each.first, each.last, each.cost) for each in ranges if each.first is not None and each.last is not None).ranges()


def entries_digest(entries: Iterable[dict[str, Any]]) -> str:
    """SHA-256 of entries as the history shows them, newest first, each as one line of JSON with sorted names."""
    digest = hashlib.sha256()
    for entry in entries:
        digest.update(json.dumps(entry, sort_keys=True, ensure_ascii=True).encode("ascii") + b"\n")
    return digest.hexdigest()


def _amounts(cost: Cost, unit: str) -> dict[str, str]:
    return {unit: decimal_text(cost.loss, LOSS_UNITS), "delta": decimal_text(cost.delta, DELTA_UNITS)}
