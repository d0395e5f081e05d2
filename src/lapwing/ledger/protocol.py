"""The protocol of every ledger, whatever its storage.

The order is always: ``reserve`` (durable before any engine call), run, ``commit`` with the answer (durable before the answer is sent).
A fault between the two ends in ``forfeit``: the charge stays spent. Nothing is ever refunded after a reservation, and no operation lowers
what was spent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Protocol

from lapwing.kernel.accounting import Budget, Cost, left_of
from lapwing.kernel.blocks import BlockCost
from lapwing.kernel.permit import Permit
from lapwing.ledger.block_balances import BlockSpending, BlockTerms, most_of
from lapwing.ledger.purchases import PurchaseKind, PurchaseRecord
from lapwing.receipts import ReceiptStatement


class State(Enum):
    """State of one charge. It starts RESERVED and ends COMMITTED or FORFEITED; it never goes back."""

    RESERVED = "reserved"
    COMMITTED = "committed"
    FORFEITED = "forfeited"


class EntryKind(StrEnum):
    """What an entry of the history records."""

    REGISTER = "register"
    """The ledger was made, with its budget and ceiling."""
    RESERVE = "reserve"
    COMMIT = "commit"
    FORFEIT = "forfeit"
    BUDGET = "budget"
    """The owner changed the budget, within the ceiling."""
    CEILING = "ceiling"
    """The owner raised the ceiling, and with it the promise."""
    CLOSE = "close"
    REOPEN = "reopen"
    OVERRIDE = "override"
    """The owner overrode a refusal that guards the identity of the source or of the ledger."""
    RESTORE = "restore"
    """Charges that a restored file had lost were charged again, as one amount."""
    BLOCKS = "blocks"
    """The owner declared blocks of time, or another cap on what one person may lose."""
    VERSION = "version"
    """A snapshot was prepared."""
    RETIRE = "retire"
    """A snapshot was withdrawn."""
    POLICY = "policy"
    """An analyst, a group or a limit was set. Only a ledger with a list of analysts writes this and the two kinds below."""
    PROPOSE = "propose"
    """Someone proposed another budget or ceiling, or requested a larger one."""
    DENY = "deny"


RECORDABLE = frozenset({EntryKind.OVERRIDE, EntryKind.VERSION, EntryKind.RETIRE})
"""The kinds of entries that ``record`` may write for an owner; the ledger itself writes the others, with the change they describe."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request to be charged. Its key is (analyst, request_id): a repeated request with the same key is charged once."""

    analyst: str
    request_id: str
    digest: str
    """Digest of the certified plan: canonical query, data-set version and parameters."""
    cost: Cost
    version: int
    """Version of the prepared snapshot for which the plan was certified."""
    summary: str
    """Short public text for the history (the statement); never a value from the data."""
    purchase: PurchaseRecord | None = None
    """What it buys; None only for charges from before purchase records existed."""
    ranges: tuple[BlockCost, ...] = ()
    """What each block of time pays, and the standing block. Empty for a data set without blocks; refused for one with blocks."""
    person: Cost | None = None
    """What one person loses by it over all blocks; None without ``ranges``, where it is the cost."""


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A committed answer, returned bit for bit on replay."""

    charge_id: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class NamedAnswer:
    """A committed answer and the name under which it was bought."""

    name: str
    stored: StoredAnswer


@dataclass(frozen=True, slots=True)
class Bought:
    """A committed answer: the summary of its request, its cost, and the digest that finds it."""

    summary: str
    cost: Cost
    digest: str
    purchase: PurchaseRecord | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the history. Entries are appended, never changed; a charge's state changes are entries too."""

    entry_id: int
    at: str
    """UTC, ISO 8601. For people to read, and for daily limits; nothing else depends on it."""
    kind: EntryKind
    analyst: str
    """Empty for the owner's acts."""
    charge_id: int | None
    cost: Cost
    """What this entry added to the amount spent; with blocks of time, by the standing block."""
    detail: str
    ranges: tuple[BlockCost, ...] = ()
    """What it charged to each block of time, and to the standing block; empty if the standing block paid all."""
    person: Cost | None = None
    """What it added to what one person loses, where it has ranges; otherwise that is the cost."""

    @property
    def charged(self) -> Cost:
        """The most that any block paid."""
        return most_of([self.cost, *(each.cost for each in self.ranges)])


@dataclass(frozen=True, slots=True)
class Balance:
    """The budget of a data set, and what is spent of it (reservations count as spent)."""

    budget: Budget
    ceiling: Budget
    spent: Cost
    closed: bool
    """Closed to analysts until the owner re-opens it."""

    @property
    def remaining(self) -> Cost:
        """What is left, in ledger units."""
        return left_of(self.budget, self.spent)


class Ledger(Protocol):
    """The store of charges of one registered source."""

    def balance(self) -> Balance:
        """The budget in force and everything spent or reserved against it."""
        ...

    def reserve(self, request: Request) -> Permit | StoredAnswer:
        """Charge durably, or replay, or refuse.

        In this order: refuses a request whose loss is zero (``zero-cost``), because nothing may read the data for free. Refuses if the
        data set is closed (``data-set-closed``). Refuses a known key with another digest (``request-mismatch``); with the same digest, a
        committed charge returns its StoredAnswer, a reserved charge is refused as in progress (``request-in-progress``), and so is a
        forfeited one (``request-forfeited``). If ``spent + cost`` would exceed the budget in either amount: BudgetRefused
        ``budget-exceeded``. With ``ranges`` every block pays its own part: ``budget-exceeded`` if the standing block cannot pay,
        ``block-budget`` if a block of time cannot, ``person-cap`` if one person would lose more over a year than the owner's cap. A
        data set with blocks refuses a request without ranges (``blocks-missing``): its plan is for a version from before there were any.
        """
        ...

    def require_payable(self, analyst: str, cost: Cost, ranges: Sequence[BlockCost] = (), person: Cost | None = None) -> None:
        """Refuse if :meth:`reserve` would refuse a new request of this analyst at this cost; charges nothing.

        For a purchase of several charges that is useful only as a whole. It guarantees nothing: others may be charged meanwhile.
        """
        ...

    def commit(self, permit: Permit, payload: bytes) -> None:
        """Store the answer and close the charge, durably, in one step.

        Only a RESERVED charge of this process can be committed, and only once; otherwise LedgerError ``charge-not-open``, and the answer
        must not be sent.
        """
        ...

    def forfeit(self, permit: Permit, *, incident: bool) -> None:
        """Close a charge without an answer; it stays spent. ``incident`` also closes the data set to analysts."""
        ...

    def find(self, digest: str, *, analyst: str | None = None, request_id: str | None = None) -> StoredAnswer | None:
        """The answer with this digest that was committed first, by any payer: replay is free.

        Several analysts may have paid for the same answer at the same time. The charge of this request itself, or of a part of it (whose id
        starts with the id of the request and a slash), comes before all others; while it is open, nothing is found.

        With ``analyst``, only an answer that this analyst may see; a ledger without analysts has one user, who may see everything.
        """
        ...

    def bought(
        self, *, version: int, limit: int, analyst: str | None = None, kind: PurchaseKind | None = None, begins: str = ""
    ) -> tuple[Bought, ...]:
        """The newest committed answers about one version, newest first; with ``analyst``, those that ``find`` would show this analyst.

        Of the newest ``limit``, those of this kind or, without a purchase record, those whose summary starts with ``begins``. What was
        bought for blocks does not count and is not listed: :meth:`named` finds it, and there may be thousands of it for one question.
        """
        ...

    def named(self, first: str, after: str, *, version: int, analyst: str | None = None) -> tuple[NamedAnswer, ...]:
        """The committed answers about one version that were bought for blocks (``PurchaseKind.BLOCK``) under names from ``first`` to before
        ``after``, compared as ASCII bytes, in the order of names.

        Of several with one name, that which was committed first, as for ``find``; with ``analyst``, only what that analyst may see.
        """
        ...

    def purchase(self, charge_id: int) -> PurchaseRecord | None:
        """What a charge bought; None for a charge from before purchase records existed, or if there is no such charge."""
        ...

    def statement(self, charge_id: int) -> ReceiptStatement:
        """The statement of the receipt for a committed answer, with payer and request, for any caller; else ``receipt-missing``."""
        ...

    def history(self, *, limit: int = 100) -> tuple[Entry, ...]:
        """Newest entries first."""
        ...

    def blocks(self) -> BlockSpending | None:
        """What blocks of time have spent; None of a data set without blocks. ``balance`` is then that of the standing block."""
        ...

    def declare_blocks(self, terms: BlockTerms, *, read: tuple[int, int] | None, units: int, reason: str) -> None:
        """Give every block of time a budget of its own, or change the cap on what one person may lose.

        The first time, everything that was spent was spent by statements that may have read any row of the blocks ``read``, for whole
        persons: the standing block and each block ``read`` inherit the cost of ``units`` steps of it (one person's rows of one block
        are exchanged, not added). Refuses (``blocks-overspent``) what the budget of a block does not hold, and changes nothing then.
        Later, another period is refused (``blocks-period``), and ``read`` and ``units`` mean nothing. Balances are kept in any case.
        """
        ...

    def set_budget(self, to: Budget, *, reason: str) -> None:
        """Change the budget: up to the ceiling, and down to what is spent. The account and the deltas stay the same."""
        ...

    def raise_ceiling(self, to: Budget, *, reason: str) -> None:
        """Change the promise itself: the owner's explicit act."""
        ...

    def close(self, reason: str) -> None:
        """Refuse every analyst from now on. What is reserved already may still be committed."""
        ...

    def reopen(self, reason: str) -> None:
        """Let analysts in again."""
        ...

    def record(self, kind: EntryKind, detail: str) -> None:
        """Record an owner's act (one of ``RECORDABLE``) in the history."""
        ...

    def disconnect(self) -> None:
        """Close this connection and forfeit its open reservations; in a forked child, the parent's reservations stay."""
        ...
