"""The real path of a question, made repeatable: every time it is asked it pays, and draws, again.

A ledger answers the same plan from what it stored. Here nothing is found again: each reservation is granted from the same full budget, so
an answer is one of an analyst who asks this first. Only inside ``recalled`` is what was just bought found, so that EXPLAIN can say what it
says to whoever bought it. The engine's exact result of a plan, which does not change, is kept instead of computed
again. Everything between is the product's own: binding, planning, certification, noise, intervals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count

from lapwing.curator.curator import Curator
from lapwing.engines.base import Snapshot
from lapwing.kernel.accounting import Budget, Cost
from lapwing.kernel.blocks import BlockCost
from lapwing.kernel.certify import Certified
from lapwing.kernel.exact import Exact
from lapwing.kernel.expressions import Value
from lapwing.kernel.facts import Facts
from lapwing.kernel.permit import Permit, issue
from lapwing.ledger.block_balances import BlockSpending, BlockTerms
from lapwing.ledger.protocol import Balance, Bought, Entry, EntryKind, Ledger, NamedAnswer, Request, StoredAnswer
from lapwing.ledger.purchases import PurchaseKind, PurchaseRecord
from lapwing.receipts import ReceiptStatement

RESULTS_MAX = 300
"""Exact results that are kept at a time."""


class ForgettingLedger:
    """A ledger that grants everything, and forgets it with the next question."""

    def __init__(self, real: Ledger) -> None:
        self._real = real
        self._newest: dict[str, StoredAnswer] = {}
        self._recalls = False
        self._balance = replace(real.balance(), spent=Cost.zero())
        self._charges = count(1_000_000)
        self._requests: dict[int, Request] = {}

    def balance(self) -> Balance:
        return self._balance

    def reserve(self, request: Request) -> Permit | StoredAnswer:
        charge = next(self._charges)
        self._requests[charge] = request
        return issue(charge, request.digest, request.cost)

    def require_payable(self, analyst: str, cost: Cost, ranges: Sequence[BlockCost] = (), person: Cost | None = None) -> None:
        """Everything is."""

    def commit(self, permit: Permit, payload: bytes) -> None:
        self._newest[permit.digest] = StoredAnswer(permit.charge_id, payload)

    def find(self, digest: str, *, analyst: str | None = None, request_id: str | None = None) -> StoredAnswer | None:
        return self._newest.get(digest) if self._recalls else None

    def forget(self) -> None:
        """Before a new question."""
        self._newest.clear()
        self._requests.clear()

    @contextmanager
    def recalled(self) -> Iterator[None]:
        """Inside, what was bought since ``forget`` is found."""
        self._recalls = True
        try:
            yield
        finally:
            self._recalls = False

    def bought(
        self, *, version: int, limit: int, analyst: str | None = None, kind: PurchaseKind | None = None, begins: str = ""
    ) -> tuple[Bought, ...]:
        return ()

    def named(self, first: str, after: str, *, version: int, analyst: str | None = None) -> tuple[NamedAnswer, ...]:
        return ()

    def purchase(self, charge_id: int) -> PurchaseRecord | None:
        return self._real.purchase(charge_id)

    # What an owner does is left to the real ledger.

    def forfeit(self, permit: Permit, *, incident: bool) -> None:
        raise RuntimeError("an answer of the benchmark failed")

    def statement(self, charge_id: int) -> ReceiptStatement:
        """Of what the statement bought: the names of its request, which tell norms from the answer; the rest was never charged."""
        request = self._requests[charge_id]
        who, name = request.analyst, request.request_id or ""
        return ReceiptStatement("", "", charge_id, who, name, request.digest, "", request.cost.loss, request.cost.delta, 0, "", "")

    def history(self, *, limit: int = 100) -> tuple[Entry, ...]:
        return self._real.history(limit=limit)

    def blocks(self) -> BlockSpending | None:
        return self._real.blocks()

    def declare_blocks(self, terms: BlockTerms, *, read: tuple[int, int] | None, units: int, reason: str) -> None:
        self._real.declare_blocks(terms, read=read, units=units, reason=reason)

    def set_budget(self, to: Budget, *, reason: str) -> None:
        self._real.set_budget(to, reason=reason)

    def raise_ceiling(self, to: Budget, *, reason: str) -> None:
        self._real.raise_ceiling(to, reason=reason)

    def close(self, reason: str) -> None:
        self._real.close(reason)

    def reopen(self, reason: str) -> None:
        self._real.reopen(reason)

    def record(self, kind: EntryKind, detail: str) -> None:
        self._real.record(kind, detail)

    def disconnect(self) -> None:
        self._real.disconnect()


class RememberingSnapshot:
    """A snapshot that runs each plan once."""

    def __init__(self, real: Snapshot) -> None:
        self._real = real
        self._results: dict[str, Exact] = {}

    @property
    def facts(self) -> Facts:
        return self._real.facts

    def check(self, certified: Certified) -> None:
        self._real.check(certified)

    def run(self, certified: Certified) -> Exact:
        if certified.digest not in self._results:
            if len(self._results) >= RESULTS_MAX:
                self._results.clear()
            self._results[certified.digest] = self._real.run(certified)
        return self._results[certified.digest]

    def public_rows(self, table: str) -> Mapping[str, Sequence[Value]] | None:
        return self._real.public_rows(table)

    def close(self) -> None:
        self._real.close()


def make_repeatable(curator: Curator) -> ForgettingLedger:
    """From now on every question to this data set is asked as if for the first time. Returns its ledger."""
    curator._versions._newest = curator.facts.version, RememberingSnapshot(curator.snapshot)
    ledger = ForgettingLedger(curator.ledger)
    curator._ledger = ledger
    return ledger
