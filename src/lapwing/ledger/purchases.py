"""What a charge bought, as a record in the ledger: the kind, the request it belongs to, the requested terms and the histograms used.

All of it is public: the terms that an analyst requested, ids of requests, and digests of plans. Older charges have no record.
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
    """A histogram from which Lapwing chooses a statement's bounds."""
    PILOT = "pilot"
    """The same statement at a low price, asked to compute the price of an accuracy."""
    FIRST = "first"
    """An answer that decides which rows count in a statement."""
    RELEASE = "release"
    WEIGHTS = "weights"
    STATISTICS = "statistics"
    """A histogram of rows per unit, bought when a version is prepared."""


@dataclass(frozen=True, slots=True)
class AskedTerms:
    """The terms of a statement, merged from its words, arguments and defaults. Numbers are exact texts."""

    epsilon: str = ""
    """Empty if the statement's words name a target or rho."""
    target: str = ""
    """An error, a share or rho, as the statement's words name it; else empty."""
    confidence: str = ""
    dialect: str = ""
    reuse: str = ""
    scaled_groups: bool = False


@dataclass(frozen=True, slots=True)
class PurchaseRecord:
    """What one charge bought. ``text`` is what the ledger stores and hashes."""

    kind: PurchaseKind
    parent: str = ""
    """The request of the same analyst to which this charge belongs; empty if it belongs to no other request."""
    name: str = ""
    """The name of a histogram or a release, or of the table of statistics."""
    terms: AskedTerms | None = None
    histograms: tuple[str, ...] = ()
    """Digests of the plans of the histograms from which bounds were chosen, in the order of the statement's plan."""

    def text(self) -> str:
        """The record as JSON, with the non-empty fields in a fixed order: equal records have equal texts."""
        given = {name: value for name, value in asdict(self).items() if value}
        return json.dumps(given, ensure_ascii=True, separators=(",", ":"))

    @classmethod
    def of_text(cls, text: str) -> Self:
        """The record of a stored text; refuses (``ledger-damaged``) an invalid text."""
        try:
            found: dict[str, Any] = json.loads(text)
            terms, histograms = found.pop("terms", None), tuple(found.pop("histograms", ()))
            record = cls(
                PurchaseKind(found.pop("kind")), terms=None if terms is None else AskedTerms(**terms), histograms=histograms, **found
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            record = None
        if record is None or record.text() != text:
            raise LedgerError("ledger-damaged", "the record of what a charge bought is invalid")
        return record


def kind_text(kind: PurchaseKind | None) -> str:
    """How the text of every record of this kind begins; empty for any kind."""
    return "" if kind is None else f'{{"kind":"{kind}"'


def stored_text(record: PurchaseRecord | None) -> str | None:
    """The column value of a record; NULL if there is none."""
    return None if record is None else record.text()


def stored_record(text: str | None) -> PurchaseRecord | None:
    """The record of a column value; None for a charge from before purchase records existed."""
    return None if text is None else PurchaseRecord.of_text(text)
