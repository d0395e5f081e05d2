"""What a check of a whole ledger found, whichever kind of ledger it is."""

from __future__ import annotations

from dataclasses import dataclass

from lapwing.kernel.accounting import Cost


@dataclass(frozen=True, slots=True)
class ComparedAnchor:
    """A state outside the ledger that the ledger was compared with."""

    name: str
    entries: int
    at: str | None
    """When the ledger made that entry; None if it does not have it."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked, and what is wrong; a ledger is sound if ``problems`` is empty."""

    source_id: str
    ledger_id: str
    entries: int
    charges: int
    answers: int
    head: str
    spent: Cost
    anchors: tuple[ComparedAnchor, ...]
    """Empty: nothing outside the ledger was compared, so missing newest entries would not be noticed."""
    problems: tuple[str, ...]

    @property
    def anchored_entries(self) -> int | None:
        """How far the furthest anchor is; None if none was compared."""
        return max((anchor.entries for anchor in self.anchors), default=None)
