"""The result of a check of a whole ledger, of any kind."""

from __future__ import annotations

from dataclasses import dataclass

from lapwing.kernel.accounting import Cost


@dataclass(frozen=True, slots=True)
class ComparedAnchor:
    """A state outside the ledger with which the ledger was compared."""

    name: str
    entries: int
    at: str | None
    """When the ledger made that entry; None if it does not have it."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked, and the problems found; a ledger is sound if ``problems`` is empty."""

    source_id: str
    ledger_id: str
    entries: int
    charges: int
    answers: int
    head: str
    spent: Cost
    anchors: tuple[ComparedAnchor, ...]
    """If empty, nothing outside the ledger was compared, so missing newest entries would not be noticed."""
    problems: tuple[str, ...]

    @property
    def anchored_entries(self) -> int | None:
        """The number of entries at the furthest anchor; None if none was compared."""
        return max((anchor.entries for anchor in self.anchors), default=None)
