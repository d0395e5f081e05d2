"""What a charge bought, as a record in the ledger: the kind, the request it belongs to, the requested terms and the histograms used.

All of it is public: the terms that an analyst requested, ids of requests, and digests of plans. Older charges have no record.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Self

from lapwing.errors import LapwingError, LedgerError, Refused

BLOCK_NAME_CHARACTERS_MAX = 120
"""Longest name of what is bought for blocks, so that an index holds it whole."""
_NAME_CHARACTERS = "[A-Za-z0-9/.:-]"
_BLOCK_NAME = re.compile(f"{_NAME_CHARACTERS}{{1,{BLOCK_NAME_CHARACTERS_MAX}}}")
_RANGE_END = re.compile(f"[#-~]{{0,{BLOCK_NAME_CHARACTERS_MAX}}}")
"""Ends of ranges are no names, but have only characters that are compared like those of names: all above the quote that ends a name."""


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
    BLOCK = "block"
    """One block's part of an answer over several blocks of time, or a histogram for it; its name tells which."""


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
    """The name of a histogram or a release, of the table of statistics, or of what was bought for a block."""
    terms: AskedTerms | None = None
    histograms: tuple[str, ...] = ()
    """Digests of the plans of the histograms from which bounds were chosen, in the order of the statement's plan."""

    def __post_init__(self) -> None:
        if self.kind is PurchaseKind.BLOCK and (self.parent or not _BLOCK_NAME.fullmatch(self.name)):
            allowed = f"1 to {BLOCK_NAME_CHARACTERS_MAX} letters, digits and / . - : of ASCII"
            raise Refused("request-invalid", f"what is bought for a block belongs to no other request, and has a name of {allowed}")

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
        except (ValueError, TypeError, KeyError, AttributeError, LapwingError):
            record = None
        if record is None or record.text() != text:
            raise LedgerError("ledger-damaged", "the record of what a charge bought is invalid")
        return record


def kind_text(kind: PurchaseKind | None) -> str:
    """How the text of every record of this kind begins; empty for any kind."""
    return "" if kind is None else f'{{"kind":"{kind}"'


_BLOCK_BEGINS = f'{kind_text(PurchaseKind.BLOCK)},"name":"'
_NAMED = re.compile(f'{re.escape(_BLOCK_BEGINS)}({_BLOCK_NAME.pattern})"')


FIRST_BLOCK = 10_000_000
"""Added to the numbers of blocks in names, so that these are not negative and sort as the blocks do."""


@dataclass(frozen=True, slots=True)
class BlockName:
    """The name of what was bought for a block of time: of which query, what it is, the block and its correction, and anything else."""

    key: str
    what: str
    block: int
    correction: int
    rest: str = "0"

    def __str__(self) -> str:
        return f"{self.key}/{self.what}/{FIRST_BLOCK + self.block:08d}/{self.correction:04d}/{self.rest}"

    @classmethod
    def of_text(cls, text: str) -> Self:
        """The name that was written."""
        key, what, block, correction, rest = text.split("/")
        return cls(key, what, int(block) - FIRST_BLOCK, int(correction), rest)

    @staticmethod
    def ends(key: str, what: str, first: int, last: int) -> tuple[str, str]:
        """The first name of these blocks, and what comes after the last."""
        return f"{key}/{what}/{FIRST_BLOCK + first:08d}", f"{key}/{what}/{FIRST_BLOCK + last + 1:08d}"


def named_range(first: str, after: str) -> tuple[str, str]:
    """The range of stored texts, compared as bytes, of what was bought for blocks under names from ``first`` to before ``after``."""
    if not (_RANGE_END.fullmatch(first) and _RANGE_END.fullmatch(after)):
        raise Refused("request-invalid", f"a range of names ends in at most {BLOCK_NAME_CHARACTERS_MAX} characters of ASCII from # to ~")
    return _BLOCK_BEGINS + first, _BLOCK_BEGINS + after


def name_in(text: str) -> str:
    """The name in the stored text of what was bought for a block, or in its first 200 characters; refuses (``ledger-damaged``) another."""
    found = _NAMED.match(text)
    if found is None:
        raise LedgerError("ledger-damaged", "the record of what a charge bought is invalid")
    return found[1]


def stored_text(record: PurchaseRecord | None) -> str | None:
    """The column value of a record; NULL if there is none."""
    return None if record is None else record.text()


def stored_record(text: str | None) -> PurchaseRecord | None:
    """The record of a column value; None for a charge from before purchase records existed."""
    return None if text is None else PurchaseRecord.of_text(text)
