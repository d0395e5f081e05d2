"""What a charge bought, as a record of the ledger: the kind, what it belongs to, the terms asked and the histograms used.

All of it is public: the terms somebody asked for, names of requests, and digests of plans. Older charges have no record.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Self

from lapwing.errors import LedgerError


class PurchaseKind(StrEnum):
    """What a charge bought."""

    STATEMENT = "statement"
    NORMS = "norms"
    """A histogram that a statement's bounds are chosen from."""
    PILOT = "pilot"
    """The same statement at a low price, asked so that the price of an accuracy can be solved for."""
    FIRST = "first"
    """An answer that decides which rows count in a statement."""
    RELEASE = "release"
    WEIGHTS = "weights"
    STATISTICS = "statistics"
    """A histogram of rows per unit, bought when a version is prepared."""


@dataclass(frozen=True, slots=True)
class AskedTerms:
    """The terms a statement was asked with, after words, arguments and defaults were merged. Numbers are exact texts."""

    epsilon: str = ""
    """Empty where the statement's words name a target or rho."""
    target: str = ""
    """An error, a share or rho, as the statement's words say it; else empty."""
    confidence: str = ""
    dialect: str = ""
    reuse: str = ""
    scaled_groups: bool = False


@dataclass(frozen=True, slots=True)
class PurchaseRecord:
    """What one charge bought. ``text`` is what the ledger stores and hashes."""

    kind: PurchaseKind
    parent: str = ""
    """The request of the same analyst that this charge belongs to; empty where it belongs to no other."""
    name: str = ""
    """Of a histogram, a release, or the table of statistics."""
    terms: AskedTerms | None = None
    histograms: tuple[str, ...] = ()
    """Digests of the plans of the histograms that bounds were chosen from, in the order of the statement's plan."""

    def text(self) -> str:
        """As JSON, the fields that are set in their order: the same record has the same text."""
        given = {name: value for name, value in asdict(self).items() if value}
        return json.dumps(given, ensure_ascii=True, separators=(",", ":"))

    @classmethod
    def of_text(cls, text: str) -> Self:
        """A stored record; refuses (``ledger-damaged``) a text that is none."""
        try:
            found: dict[str, Any] = json.loads(text)
            terms, histograms = found.pop("terms", None), tuple(found.pop("histograms", ()))
            record = cls(
                PurchaseKind(found.pop("kind")), terms=None if terms is None else AskedTerms(**terms), histograms=histograms, **found
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            record = None
        if record is None or record.text() != text:
            raise LedgerError("ledger-damaged", "what a charge bought is not a record")
        return record


def kind_text(kind: PurchaseKind | None) -> str:
    """How the text of every record of this kind begins; nothing where the kind does not matter."""
    return "" if kind is None else f'{{"kind":"{kind}"'


def stored_text(record: PurchaseRecord | None) -> str | None:
    """The column of a record; NULL where there is none."""
    return None if record is None else record.text()


def stored_record(text: str | None) -> PurchaseRecord | None:
    """The record of a column; None for a charge from before there were records."""
    return None if text is None else PurchaseRecord.of_text(text)
