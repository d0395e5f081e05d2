"""A ledger in one SQLite file, for one machine.

Its guarantees, whatever happens to the processes that use it (proof: ``docs/proofs/ledger.md``):

- *not overspent*: the charges ever made never exceed the budget in force, in loss or in delta;
- *no uncharged answer*: a permit is issued only after its charge is durable, and an answer is durable before :meth:`LocalLedger.commit`
  returns;
- *one key, one charge, one answer*: a key is charged at most once, and every answer to it has the same bytes.

``docs/explanation/local-ledger.md`` says what the registry of ledgers prevents, and what it does not.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias

from lapwing.catalog import LimitsDecl
from lapwing.errors import CatalogueError, LapwingError, LedgerError
from lapwing.kernel.accounting import Budget, Cost, admits
from lapwing.kernel.blocks import BlockCost
from lapwing.kernel.permit import Permit, issue
from lapwing.ledger import limits
from lapwing.ledger.block_balances import BlockSpending, BlockTerms, standing_cost
from lapwing.ledger.local import block_acts, deaths, decisions, registry, rows
from lapwing.ledger.local.agreement import disagreements
from lapwing.ledger.local.block_book import BlockBook
from lapwing.ledger.local.replaying import verified_state
from lapwing.ledger.local.restoring import restored
from lapwing.ledger.local.rows import LedgerState
from lapwing.ledger.local.schema import LEDGER_FORMAT
from lapwing.ledger.local.sqlite_file import Database, create_database, exclusive, open_database
from lapwing.ledger.protocol import RECORDABLE, Balance, Bought, Entry, EntryKind, NamedAnswer, Request, StoredAnswer
from lapwing.ledger.purchases import PurchaseKind, PurchaseRecord
from lapwing.ledger.workers import Worker, current_worker, is_dead
from lapwing.receipts import ReceiptStatement

NO_LIMITS = LimitsDecl()
_Forfeit: TypeAlias = Callable[[sqlite3.Connection, LedgerState, int, Worker], LedgerState]


class LocalLedger:
    """The ledger of one source, as used by one process. Made by :meth:`create` or :meth:`open`; safe to share between threads.

    After a fork the child gets its own connection and its own identity at its first use; it cannot settle what its parent reserved.
    """

    __slots__ = ("_allowed", "_book", "_database", "_fingerprint", "_home", "_path", "_registry", "_source_id", "_worker")

    def __init__(self, path: Path, *, home: Path, source_id: str, fingerprint: str | None, allowed: LimitsDecl) -> None:
        self._allowed = allowed
        self._book = BlockBook()
        self._path = path
        self._home = home
        self._source_id = source_id
        self._fingerprint = fingerprint
        self._database: Database
        self._registry: Database
        self._worker: Worker

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        source_id: str,
        source_fingerprint: str,
        budget: Budget,
        ceiling: Budget,
        home: Path | None = None,
        override: bool = False,
        reason: str = "",
        allowed: LimitsDecl = NO_LIMITS,
    ) -> Self:
        """Register a source and create its ledger, with nothing spent.

        ``source_fingerprint`` identifies the data, whatever its name. A source id or a fingerprint that already has a ledger is refused
        (``source-registered``): a second ledger would be a second budget for the same people. ``override`` with a ``reason`` is the owner's
        explicit decision to grant it nevertheless; the new ledger and the registry record it.
        """
        limits.require_name(source_id)
        limits.require_name(source_fingerprint)
        limits.require_reason(override, reason)
        limits.require_within(budget, ceiling)
        path, home = path.resolve(), registry.registry_home(home)
        ledger_id = secrets.token_hex(16)
        state = LedgerState(
            ledger_id=ledger_id,
            source_id=source_id,
            budget=budget,
            ceiling=ceiling,
            spent=Cost.zero(),
            closed=False,
            entries=0,
            head=rows.first_head(ledger_id, source_id),
        )
        books = registry.open_registry(home)
        try:
            # The file first, its registration second: a crash between the two leaves a ledger that nothing can be charged to, because it is
            # not registered, instead of a registration whose ledger could be made again with a fresh budget.
            with books.write() as registered:
                known = registry.already_registered(registered, source_id, source_fingerprint, path)
                if known is not None and not override:
                    raise known

                def fill(connection: sqlite3.Connection) -> None:
                    nonlocal state
                    state = rows.start(connection, state)
                    if known is not None:
                        state = rows.append(connection, state, kind=EntryKind.OVERRIDE, detail=f"source-registered: {reason}")

                create_database(path, LEDGER_FORMAT, fill).close()
                anchor = registry.anchor_of(state, path)
                registry.put_anchor(registered, anchor)
                registry.add_fingerprint(registered, source_id, source_fingerprint)
                registry.add_act(registered, anchor, EntryKind.REGISTER, "")
                if known is not None:
                    registry.add_act(registered, anchor, EntryKind.OVERRIDE, f"source-registered: {reason}")
        finally:
            books.close()
        return cls.open(path, source_id=source_id, source_fingerprint=source_fingerprint, home=home, allowed=allowed)

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        source_id: str,
        source_fingerprint: str | None = None,
        home: Path | None = None,
        override: bool = False,
        reason: str = "",
        allowed: LimitsDecl = NO_LIMITS,
    ) -> Self:
        """Open a ledger, check all of it, and forfeit what dead processes left reserved, before anything is served.

        Refuses a file that is damaged, of another format or another source, and one that the registry does not know as *the* ledger of this
        source in its newest state: ``ledger-unregistered``, ``ledger-superseded``, ``ledger-moved``, ``ledger-rolled-back``,
        ``source-changed`` and ``source-registered``. ``override`` with a ``reason`` accepts those six as the owner's act, written into
        both; charges that a restored file has lost are charged again from the registry. ``allowed`` holds the spending limits of today's
        catalogue, which the file does not store.
        """
        limits.require_reason(override, reason)
        home = registry.registry_home(home)
        ledger = cls(path.resolve(), home=home, source_id=source_id, fingerprint=source_fingerprint, allowed=allowed)
        ledger._connect(override_reason=reason if override else None)
        return ledger

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.disconnect()

    def disconnect(self) -> None:
        """Close this connection and forfeit its open reservations; in a forked child, the parent's reservations stay."""
        try:
            if self._database.is_usable:
                self._sweep(lambda worker: worker.epoch == self._worker.epoch, decisions.forfeit_at_the_end)
        finally:
            self._database.close()
            self._registry.close()

    def balance(self) -> Balance:
        """The budget in force and everything spent or reserved against it."""
        self._require_own_process()
        with self._database.read() as connection:
            state = rows.read_state(connection)
        return state.balance

    def reserve(self, request: Request) -> Permit | StoredAnswer:
        """Charge durably, or replay, or refuse, as :meth:`lapwing.ledger.protocol.Ledger.reserve` says.

        In addition, refuses what exceeds a limit of the catalogue (``statement-limit``, ``day-limit``); a replay never does.
        The decision and the charge are one transaction that holds the write lock from before the first read. The permit exists only after
        that transaction is on disk and in the registry; if the registry cannot be written, nothing is charged.
        """
        limits.require_request(request)
        self._require_own_process()
        outcome: Permit | StoredAnswer | LapwingError | None = None
        try:
            # The registry is locked first: a charge that could not be anchored would buy nothing.
            with self._registry.write() as registered:
                self._advance(registered)
                outcome = self._decided(request)
                self._advance(registered)
        except LedgerError:
            if isinstance(outcome, Permit):  # the registry failed just now; nothing was or will be read under this charge
                with contextlib.suppress(LedgerError):
                    self.forfeit(outcome, incident=False)
            raise
        if isinstance(outcome, LapwingError):
            raise outcome
        return outcome

    def _decided(self, request: Request) -> Permit | StoredAnswer | LapwingError:
        """The decision and the charge, as one transaction; durable when this returns."""
        with self._database.write() as connection:
            state = rows.read_state(connection)
            decisions.require_open(state)
            charge = rows.charge_by_key(connection, request.analyst, request.request_id)
            if charge is not None:
                return decisions.seen_before(connection, state, charge, request.digest)
            self._require_allowed(connection, state, request.analyst, request.cost)
            decisions.require_within(state, standing_cost(request.ranges, request.cost))
            balances = self._book.balances(connection, state)
            decisions.require_blocks_pay(state, balances, request.cost, request.ranges, request.person)
            worker_id = rows.add_worker(connection, self._worker)
            charge_id, _ = rows.add_charge(connection, state, request, worker_id)
            return issue(charge_id, request.digest, request.cost, ranges=request.ranges)

    def require_payable(self, analyst: str, cost: Cost, ranges: Sequence[BlockCost] = (), person: Cost | None = None) -> None:
        """Refuse for the same reasons as :meth:`reserve` would refuse a new request; charges nothing."""
        limits.require_ranges(ranges, person)
        self._require_own_process()
        with self._database.read() as connection:
            state = rows.read_state(connection)
            decisions.require_open(state)
            self._require_allowed(connection, state, analyst, cost)
            decisions.require_within(state, standing_cost(ranges, cost))
            decisions.require_blocks_pay(state, self._book.balances(connection, state), cost, ranges, person)

    def _require_allowed(self, connection: sqlite3.Connection, state: LedgerState, analyst: str, cost: Cost) -> None:
        """Apply the limits of a statement and of the analyst's day. They refuse more than the budget does, never less."""
        limit = limits.declared_limit(state.budget, self._allowed.per_statement)
        if limit.is_passed_by(cost):
            raise limits.past_statement_limit(state.budget, limit, cost)
        if self._allowed.per_day is not None:
            limit, spent = limits.declared_limit(state.budget, self._allowed.per_day), rows.spent_today(connection, analyst)
            if limit.is_passed_by(spent + cost):
                raise limits.past_day_limit(state.budget, limit, spent)

    def commit(self, permit: Permit, payload: bytes) -> None:
        """Store the answer and close the charge, durably, in one step; else ``charge-not-open``, and the answer must not be sent.

        A repeated call with the same bytes changes nothing, so a caller can retry to find out whether the first attempt succeeded.
        """
        limits.require_payload(payload)
        self._require_own_process()
        with self._database.write() as connection:
            if self._is_open(connection, permit):
                rows.settle(connection, rows.read_state(connection), permit.charge_id, payload=payload, detail="")
            elif not rows.is_committed(connection, charge_id=permit.charge_id, payload=payload, epoch=self._worker.epoch):
                raise decisions.not_open()

    def forfeit(self, permit: Permit, *, incident: bool) -> None:
        """Close a charge without an answer; it stays spent. ``incident`` closes the data set too, even if the charge was closed already."""
        self._require_own_process()
        with self._database.write() as connection:
            state = rows.read_state(connection)
            was_open = self._is_open(connection, permit)
            if was_open:
                state = rows.settle(connection, state, permit.charge_id, payload=None, detail="incident" if incident else "no answer")
            if incident and not state.closed:
                rows.append(connection, replace(state, closed=True), kind=EntryKind.CLOSE, detail="incident")
        if incident:
            self._anchor()
        if not was_open:
            raise decisions.not_open()

    def statement(self, charge_id: int) -> ReceiptStatement:
        """The statement of the receipt for a committed answer."""
        self._require_own_process()
        with self._database.read() as connection:
            return rows.receipt_statement(connection, charge_id)

    def find(self, digest: str, *, analyst: str | None = None, request_id: str | None = None) -> StoredAnswer | None:
        """As :meth:`lapwing.ledger.protocol.Ledger.find`. Anyone with access to the file may see all of it."""
        self._require_own_process()
        with self._database.read() as connection:
            return rows.first_answer(connection, digest, analyst=analyst, request_id=request_id)

    def bought(
        self, *, version: int, limit: int, analyst: str | None = None, kind: PurchaseKind | None = None, begins: str = ""
    ) -> tuple[Bought, ...]:
        """As :meth:`lapwing.ledger.protocol.Ledger.bought`, of all payers."""
        self._require_own_process()
        with self._database.read() as connection:
            return rows.newest_bought(connection, version=version, limit=limit, kind=kind, begins=begins)

    def named(self, first: str, after: str, *, version: int, analyst: str | None = None) -> tuple[NamedAnswer, ...]:
        """As :meth:`lapwing.ledger.protocol.Ledger.named`, of all payers."""
        self._require_own_process()
        with self._database.read() as connection:
            return rows.named_answers(connection, first, after, version=version)

    def purchase(self, charge_id: int) -> PurchaseRecord | None:
        """What a charge bought, if the ledger recorded it."""
        self._require_own_process()
        with self._database.read() as connection:
            return rows.purchase_of(connection, charge_id)

    def moved_to(self) -> str | None:
        """Where the ledger was moved to; None if it was not moved."""
        self._require_own_process()
        with self._database.read() as connection:
            return rows.moved_to(connection)

    def moved_out(self, to: str) -> tuple[LedgerState, tuple[rows.PaidRequest, ...]]:
        """Close the ledger for good, because it continues as ``to``, and return every charge it ever made.

        It is closed first and read second, so that no charge comes between. Refuses (``ledger-in-use``) while a process has an open
        reservation, which it could still commit here. After a failure, a repeated call returns the same.
        """
        self._require_own_process()
        with self._database.write() as connection:
            state = rows.read_state(connection)
            detail = rows.MOVED + to
            if not state.closed or rows.newest_entries(connection, 1)[0].detail != detail:
                state = rows.append(connection, replace(state, closed=True), kind=EntryKind.CLOSE, detail=detail)
            if rows.open_charges(connection):
                raise LedgerError("ledger-in-use", "requests are still being answered from this ledger", hint="wait until they have ended")
            paid = rows.paid_requests(connection)
        self._anchor()
        return state, paid

    def history(self, *, limit: int = 100) -> tuple[Entry, ...]:
        """Newest entries first."""
        if not 1 <= limit <= limits.HISTORY_ENTRIES_MAX:
            raise LedgerError("history-limit", f"the limit of a history must be between 1 and {limits.HISTORY_ENTRIES_MAX}")
        self._require_own_process()
        with self._database.read() as connection:
            return rows.newest_entries(connection, limit)

    def set_budget(self, to: Budget, *, reason: str) -> None:
        """Change the budget: never above the ceiling, never below what is spent, and with the same account and deltas."""
        limits.require_detail(reason)
        self._require_own_process()
        with self._database.write() as connection:
            state = rows.read_state(connection)
            limits.require_within(to, state.ceiling)
            # A budget that is lower nowhere leaves every block as it is: within its budget, or charged again beyond it.
            balances = self._book.balances(connection, state) if limits.lowers(state.budget, to) else None
            if not admits(to, spent=state.spent, cost=Cost.zero()) or not (balances is None or balances.fit(to)):
                raise CatalogueError("budget-below-spent", "the budget cannot be lowered below what is already spent")
            state = replace(state, budget=to)
            rows.append(connection, state, kind=EntryKind.BUDGET, detail=reason, evidence=rows.budgets_digest(state))
        self._anchor()

    def blocks(self) -> BlockSpending | None:
        """What blocks of time have spent, and what one person has lost; None of a data set without blocks."""
        self._require_own_process()
        with self._database.read() as connection:
            balances = self._book.balances(connection, rows.read_state(connection))
            return None if balances is None else balances.spending()

    def declare_blocks(self, terms: BlockTerms, *, read: tuple[int, int] | None, units: int, reason: str) -> None:
        """As :meth:`lapwing.ledger.protocol.Ledger.declare_blocks`. The terms that are in force already change nothing."""
        limits.require_reason(True, reason)
        self._require_own_process()
        with self._database.write() as connection:
            state = rows.read_state(connection)
            balances = self._book.balances(connection, state)
            if state.blocks is None or balances is None:
                block_acts.declare(connection, state, terms, read=read, units=units, reason=reason)
            else:
                block_acts.change_cap(connection, state, state.blocks, balances, terms, reason=reason)
        self._anchor()

    def raise_ceiling(self, to: Budget, *, reason: str) -> None:
        """Change the promise itself: from now on it is the new ceiling. The budget stays as it is until it is set."""
        limits.require_reason(True, reason)
        self._require_own_process()
        with self._database.write() as connection:
            state = rows.read_state(connection)
            limits.require_within(state.ceiling, to)
            state = replace(state, ceiling=to)
            rows.append(connection, state, kind=EntryKind.CEILING, detail=reason, evidence=rows.budgets_digest(state))
        self._anchor()

    def close(self, reason: str) -> None:
        """Refuse every analyst from now on. What is reserved already may still be committed."""
        self._set_closed(True, reason)

    def reopen(self, reason: str) -> None:
        """Let analysts in again."""
        self._set_closed(False, reason)

    def record(self, kind: EntryKind, detail: str) -> None:
        """Record an owner's act in the history."""
        limits.require_detail(detail)
        if kind not in RECORDABLE:
            raise LedgerError("entry-kind", "only the ledger itself writes entries of this kind")
        self._require_own_process()
        with self._database.write() as connection:
            rows.append(connection, rows.read_state(connection), kind=kind, detail=detail)
        self._anchor()

    def _set_closed(self, closed: bool, reason: str) -> None:
        limits.require_detail(reason)
        self._require_own_process()
        with self._database.write() as connection:
            if not closed and rows.moved_to(connection) is not None:
                raise LedgerError("ledger-superseded", "the ledger was moved and continues elsewhere", hint="open it there")
            state = replace(rows.read_state(connection), closed=closed)
            rows.append(connection, state, kind=EntryKind.CLOSE if closed else EntryKind.REOPEN, detail=reason)
        self._anchor()

    def _is_open(self, connection: sqlite3.Connection, permit: Permit) -> bool:
        return rows.is_open(connection, charge_id=permit.charge_id, digest=permit.digest, cost=permit.cost, epoch=self._worker.epoch)

    def _require_own_process(self) -> None:
        """In a forked child: leave the parent's connections alone, open new ones and register as a new worker."""
        if os.getpid() == self._worker.pid:
            return
        with exclusive(self._home / registry.REGISTRY_FILE):  # two threads of the child must not both do it
            if os.getpid() != self._worker.pid:
                self._database.close()
                self._registry.close()
                self._connect(override_reason=None)

    def _connect(self, *, override_reason: str | None) -> None:
        self._database = open_database(self._path, LEDGER_FORMAT)
        self._book = BlockBook()
        try:
            self._registry = registry.open_registry(self._home)
            try:
                self._check(override_reason)
                self._sweep(is_dead, deaths.forfeit_of)
            except BaseException:
                self._registry.close()
                raise
        except BaseException:
            self._database.close()
            raise
        self._worker = current_worker()  # last: until then, each use of this object in a new process connects again

    def _check(self, override_reason: str | None) -> None:
        """Require that the ledger is consistent and agrees with the registry, or that the owner overrides the disagreements."""
        with self._database.read() as connection:
            state = verified_state(connection, self._book)
        if state.source_id != self._source_id:
            raise LedgerError("ledger-source-mismatch", "the ledger belongs to another source", hint="open the ledger of this source")
        # The registry is read first: the ledger may grow meanwhile, and being ahead of its anchor is not a disagreement.
        with self._registry.read() as registered, self._database.read() as connection:
            problems = disagreements(registered, connection, path=self._path, source_id=self._source_id, fingerprint=self._fingerprint)
        if problems and override_reason is None:
            raise problems[0]
        if problems:
            self._override(f"{', '.join(problem.code for problem in problems)}: {override_reason}")

    def _override(self, detail: str) -> None:
        """Record the owner's act in the ledger and then in the registry; after a crash between the two, the owner must repeat it."""
        with self._registry.write() as registered:
            anchor = registry.find_anchor(registered, self._source_id)
            with self._database.write() as connection:
                state = rows.append(connection, rows.read_state(connection), kind=EntryKind.OVERRIDE, detail=detail)
                if anchor is not None and (anchor.ledger_id != state.ledger_id or rows.head_at(connection, anchor.entries) != anchor.head):
                    state = restored(connection, state, anchor, acts=registry.acts_of(registered, self._source_id))
            anchor = registry.anchor_of(state, self._path)
            registry.put_anchor(registered, anchor)
            if self._fingerprint is not None:
                registry.add_fingerprint(registered, self._source_id, self._fingerprint)
            registry.add_act(registered, anchor, EntryKind.OVERRIDE, detail)

    def _anchor(self) -> None:
        """Record the newest state in the registry; refuse to continue if this is no longer the ledger in the registry."""
        with self._registry.write() as registered:
            self._advance(registered)

    def _advance(self, registered: sqlite3.Connection) -> None:
        with self._database.read() as connection:
            state = rows.read_state(connection)
            anchor = registry.find_anchor(registered, self._source_id)
            here = {str(self._path), rows.ON_SERVER if rows.moved_to(connection) is not None else ""}
            if anchor is None or anchor.ledger_id != state.ledger_id or anchor.ledger_path not in here:
                raise LedgerError("ledger-superseded", "the source now has another ledger", hint="open that ledger")
            if rows.head_at(connection, anchor.entries) != anchor.head:
                raise LedgerError(
                    "ledger-rolled-back", "the ledger is missing entries that were written to it", hint="find out why, then open it again"
                )
            if state.entries > anchor.entries:
                registry.put_anchor(registered, replace(registry.anchor_of(state, self._path), ledger_path=anchor.ledger_path))

    def _sweep(self, is_over: Callable[[Worker], bool], forfeit: _Forfeit) -> None:
        """Forfeit the open reservations of workers that have ended."""
        with self._database.read() as connection:
            if not any(is_over(charge.worker) for charge in rows.open_charges(connection)):
                return
        with self._database.write() as connection:
            state = rows.read_state(connection)
            for charge in rows.open_charges(connection):
                if is_over(charge.worker):
                    state = forfeit(connection, state, charge.charge_id, charge.worker)
