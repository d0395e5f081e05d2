"""The ledger of one source in a PostgreSQL database, as used by one process of one of several machines.

It has the guarantees of the local ledger, whatever happens to processes, connections and the server (proof: ``docs/proofs/ledger.md``):
not overspent, no uncharged answer, one key with one charge and one answer. After a restore of an older state of the database, nothing is
served until the owner allows it.

Each operation is one statement that calls one function of ``sql/protocol.sql``: the decision is made there, under a lock that ends
with the statement. This module sends it, sends it again if the reply is lost, anchors the new state, and returns the outcome.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Sequence
from dataclasses import astuple
from threading import RLock
from types import TracebackType
from typing import Any, Self
from weakref import WeakSet

from lapwing.errors import LapwingError, LedgerError
from lapwing.kernel.accounting import Budget, Cost
from lapwing.kernel.blocks import BlockCost
from lapwing.kernel.permit import Permit, issue, new_nonce
from lapwing.ledger import limits
from lapwing.ledger.amounts import budget_text
from lapwing.ledger.block_balances import BlockSpending, BlockTerms
from lapwing.ledger.postgres import blocks, opening, rows
from lapwing.ledger.postgres.anchors import AnchorPoint, Anchors
from lapwing.ledger.postgres.batch import COMMIT_STATEMENT, Batch, Result, commit_columns
from lapwing.ledger.postgres.connection import RETRY_SECONDS, Connection, require_extra
from lapwing.ledger.postgres.install import SCHEMA_VERSION
from lapwing.ledger.postgres.outcomes import missing, not_open, refusal, registered, second_person
from lapwing.ledger.protocol import RECORDABLE, Balance, Bought, Entry, EntryKind, NamedAnswer, Request, StoredAnswer
from lapwing.ledger.purchases import PurchaseKind, PurchaseRecord, stored_text
from lapwing.ledger.workers import Worker, current_worker, host_name
from lapwing.receipts import ReceiptStatement

LEASE_SECONDS = 900
"""How long a worker of another machine counts as alive after its last sign of life."""
OWNER = "owner"
"""The actor recorded for protocol methods that name no actor."""
_ATTEMPTS_MAX = 3


class PostgresLedger:
    """A use of a ledger. Made by :meth:`create` or :meth:`open`; safe to share between threads.

    After a fork the child gets its own connection and its own epoch at its first use; it cannot settle what its parent reserved.
    """

    __slots__ = (
        *("__weakref__", "_anchor_names", "_anchors", "_connection", "_dsn", "_fingerprint", "_gate", "_known"),
        *("_lease_seconds", "_renewed", "_retry_seconds", "_source_id", "_worker"),
    )

    def __init__(
        self, dsn: str, *, source_id: str, fingerprint: str | None, anchors: Anchors, lease_seconds: int, retry_seconds: float
    ) -> None:
        require_extra()
        self._dsn, self._source_id, self._fingerprint, self._anchors = dsn, source_id, fingerprint, anchors
        self._lease_seconds, self._retry_seconds = lease_seconds, retry_seconds
        self._gate = RLock()
        self._connection = Connection(dsn, schema_version=SCHEMA_VERSION, retry_seconds=retry_seconds)
        self._anchor_names: list[str] = []
        self._known: AnchorPoint
        self._worker: Worker
        self._renewed = 0.0
        _in_use.add(self)

    @classmethod
    def create(
        cls,
        dsn: str,
        *,
        source_id: str,
        source_fingerprint: str,
        budget: Budget,
        ceiling: Budget,
        anchors: Anchors,
        by: str = OWNER,
        override: bool = False,
        reason: str = "",
        lease_seconds: int = LEASE_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
    ) -> Self:
        """Register a source and create its ledger, with nothing spent and no analyst admitted.

        A source id or a fingerprint that already has a ledger is refused (``source-registered``): a second ledger would be a second budget
        for the same people. ``override`` with a ``reason`` is the owner's explicit decision to grant it; a ledger of the same id is
        then closed for good.
        """
        for name in (source_id, source_fingerprint, by):
            limits.require_name(name)
        limits.require_reason(override, reason)
        limits.require_within(budget, ceiling)
        require_extra()
        # The anchor may know a ledger that this database does not have, or no longer has.
        if anchors.newest(source_id) is not None and not override:
            raise registered([source_id])
        connection = Connection(dsn, schema_version=SCHEMA_VERSION, retry_seconds=retry_seconds)
        budgets, names = (budget_text(budget), budget_text(ceiling)), sorted(anchors.known(source_id))
        try:
            [(outcome, known, *columns)] = connection.ask(
                f"SELECT outcome, known, {rows.STATE_OF_OUTCOME}"
                " FROM lapwing.create_data_set(%s, %s, %s, %s, %s, %s, %s, %s::pg_catalog.text[])",
                [secrets.token_hex(16), source_id, source_fingerprint, *budgets, by, reason if override else "", names],
                again=True,
            )
        finally:
            connection.close()
        if outcome == "registered":
            raise registered(known)
        # The database first, its anchor second: a crash between the two leaves a ledger that is refused as unregistered.
        anchors.advance(rows.state_of(columns), holds=lambda point: True, override=True)
        return cls.open(
            dsn,
            source_id=source_id,
            source_fingerprint=source_fingerprint,
            anchors=anchors,
            lease_seconds=lease_seconds,
            retry_seconds=retry_seconds,
        )

    @classmethod
    def open(
        cls,
        dsn: str,
        *,
        source_id: str,
        anchors: Anchors,
        source_fingerprint: str | None = None,
        override: bool = False,
        reason: str = "",
        lease_seconds: int = LEASE_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
    ) -> Self:
        """Open a ledger: check it against its anchor, and forfeit what dead workers left reserved, before anything is served.

        The time does not depend on the length of the history: this looks up the anchored entry and the head; ``lapwing ledger verify``
        checks the chain between them. Refuses ``ledger-missing``, ``anchor-missing``, ``anchor-behind``, ``ledger-unregistered`` (an anchor
        that the ledger does not know), ``ledger-superseded``, ``ledger-rolled-back``, ``ledger-damaged``, ``source-changed`` and
        ``source-registered``. ``override`` with a ``reason`` accepts the last six except ``ledger-damaged`` as the owner's act, and
        charges again what the anchors have recorded and the database lacks.
        """
        limits.require_reason(override, reason)
        ledger = cls(
            dsn,
            source_id=source_id,
            fingerprint=source_fingerprint,
            anchors=anchors,
            lease_seconds=lease_seconds,
            retry_seconds=retry_seconds,
        )
        try:
            ledger._start(override_reason=reason if override else None)
        except BaseException:
            ledger._connection.close()
            raise
        return ledger

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.disconnect()

    @property
    def ledger_id(self) -> str:
        """The name of the ledger in the database."""
        return self._known.ledger_id

    @property
    def epoch(self) -> str:
        """The name of this worker."""
        return self._worker.epoch

    @property
    def connection(self) -> Connection:
        """The connection of this process, for the owner's acts and for verification."""
        self._require_own_process()
        return self._connection

    def disconnect(self) -> None:
        """Close this connection and forfeit its open reservations; in a forked child, the parent's reservations stay."""
        if os.getpid() != self._worker.pid:
            self._connection.abandon()
            return
        try:
            self._ask("SELECT lapwing.disconnect_worker(%s, %s)", [self._worker.epoch])
        finally:
            self._connection.close()

    def renew(self) -> None:
        """Renew the lease of this worker; :meth:`reserve` also does so once a third of the lease has passed."""
        self._require_own_process()
        if self.connection.ask("SELECT lapwing.renew_worker(%s, %s)", [self._worker.epoch, self._lease_seconds], again=True) != [(True,)]:
            self._register()
        self._renewed = time.monotonic()

    def _make_ready(self) -> None:
        self._require_own_process()
        self._anchors.require_ready(self._source_id)
        if time.monotonic() > self._renewed + self._lease_seconds / 3:
            self.renew()

    def balance(self) -> Balance:
        """The budget in force and everything spent or reserved against it."""
        return self.state().balance

    def state(self) -> AnchorPoint:
        """The newest state of the ledger."""
        self._require_own_process()
        return rows.state_of(self._ask(f"SELECT {rows.STATE} FROM lapwing.current_state(%s)", [])[0])

    def reserve(self, request: Request) -> Permit | StoredAnswer:
        """Charge durably, or replay, or refuse, as :meth:`lapwing.ledger.protocol.Ledger.reserve` says.

        In addition, refuses an analyst who is not admitted (``analyst-unknown``), and a request whose whole cost exceeds a limit or a
        sub-budget (``statement-limit``, ``day-limit``, ``analyst-budget``, ``group-budget``). The permit exists only after the charge is
        committed and anchored; while the anchor cannot be written, nothing is charged. If a reply is lost, the next call finds its charge.
        """
        blocks.require_request(request)
        self._make_ready()
        return self._reserve(request, new_nonce())

    def _reserve(self, request: Request, nonce: str) -> Permit | StoredAnswer:
        for _ in range(_ATTEMPTS_MAX):
            epoch, known = self._worker.epoch, self._known
            [(outcome, charge_id, payload, payload_digest, texts)] = self._ask(
                "CALL lapwing.reserve_durably(%s, %s, %s, %s, %s, %s, %s::pg_catalog.int8, %s, %s::pg_catalog.numeric,"
                " %s::pg_catalog.numeric, %s::pg_catalog.numeric, %s::pg_catalog.int8, %s, %s, NULL, NULL, NULL, NULL, NULL, %s)",
                [
                    *(epoch, nonce, request.analyst, request.request_id, request.digest, request.version, request.summary),
                    *(*astuple(request.cost), known.entries, known.head, stored_text(request.purchase), blocks.charged_text(request)),
                ],
            )
            match outcome:
                case "permit":
                    permit = issue(charge_id, request.digest, request.cost, nonce=nonce, ranges=request.ranges)
                    self._advance(rows.state_of_texts(texts), permit, known=known)
                    return permit
                case "stored":
                    return rows.answer_of(charge_id, payload, payload_digest)
                case "worker-ended":
                    self._register()  # taken for dead, but alive: continue as a new worker; earlier reservations are forfeited
                case _:
                    raise refusal(outcome, analyst=request.analyst)
        raise LedgerError("ledger-busy", "other workers repeatedly took this worker for dead", hint="increase lease_seconds")

    def require_payable(self, analyst: str, cost: Cost, ranges: Sequence[BlockCost] = (), person: Cost | None = None) -> None:
        """Refuse for the same reasons as :meth:`reserve` would refuse a new request, limits included; charges nothing."""
        self._make_ready()
        call = "lapwing.would_reserve(%s, %s, %s, %s::pg_catalog.numeric, %s::pg_catalog.numeric, %s::pg_catalog.numeric, %s)"
        of_blocks = blocks.parts_text(ranges, person, cost)
        [(outcome,)] = self._ask(f"SELECT {call}", [self._worker.epoch, analyst, *astuple(cost), of_blocks])
        if outcome not in {"permit", "worker-ended"}:  # an ended worker continues as a new one when it reserves
            raise refusal(outcome, analyst=analyst)

    def reserve_many(self, requests: Sequence[Request]) -> tuple[Result, ...]:
        """As :meth:`reserve` for each request, in one statement; returns the errors that :meth:`reserve` would raise."""
        self._make_ready()
        return self._reserve_batch(Batch.of(requests))

    def _reserve_batch(self, batch: Batch) -> tuple[Result, ...]:
        known = self._known
        parameters = [self._worker.epoch, *batch.columns, known.entries, known.head, batch.purchases, batch.blocks]
        [(outcomes, charge_ids, payloads, payload_digests, texts)] = self._ask(Batch.STATEMENT, parameters)
        if texts is not None:
            self._advance(rows.state_of_texts(texts), known=known)  # one state with all the charges
        return batch.results(outcomes, charge_ids, payloads, payload_digests, alone=self._reserve)

    def commit(self, permit: Permit, payload: bytes) -> None:
        """Store the answer and close the charge, durably, in one statement; else ``charge-not-open``, and the answer must not be sent.

        If the reply is lost, the statement is sent again and finds the answer. If no reply arrives in time, this raises
        ``ledger-unreachable``, and the answer must not be sent either. If it was stored, the same key returns it later.
        """
        limits.require_payload(payload)
        self._require_own_process()
        [(outcome, texts)] = self._ask(
            "CALL lapwing.commit_durably(%s, %s, %s, %s::pg_catalog.int8, %s, %s::pg_catalog.numeric, %s::pg_catalog.numeric,"
            " %s::pg_catalog.numeric, %b, NULL, NULL)",
            [self._worker.epoch, permit.nonce, permit.charge_id, permit.digest, *astuple(permit.cost), payload],
        )
        if outcome != "done":
            raise not_open()
        # Anchored before the answer is sent: a database restored to a state before the commit would deny an answer that was delivered.
        self._advance(rows.state_of_texts(texts))

    def commit_many(self, answers: Sequence[tuple[Permit, bytes]]) -> tuple[LapwingError | None, ...]:
        """As :meth:`commit` for each answer, in one statement; returns the errors that :meth:`commit` would raise."""
        self._require_own_process()
        [(outcomes, texts)] = self._ask(COMMIT_STATEMENT, [self._worker.epoch, *commit_columns(answers)])
        if texts is not None:
            self._advance(rows.state_of_texts(texts))  # one state with all the answers
        return tuple(None if outcome == "done" else not_open() for outcome in outcomes)

    def forfeit(self, permit: Permit, *, incident: bool) -> None:
        """Close a charge without an answer; it stays spent. ``incident`` closes the data set too, even if the charge was closed already."""
        self._require_own_process()
        [(outcome, *columns)] = self._ask(
            f"SELECT outcome, {rows.STATE_OF_OUTCOME} FROM lapwing.forfeit(%s, %s, %s, %s::pg_catalog.int8, %s)",
            [self._worker.epoch, permit.nonce, permit.charge_id, incident],
        )
        if incident:
            self._advance(rows.state_of(columns))
        if outcome != "done":
            raise not_open()

    def find(self, digest: str, *, analyst: str | None = None, request_id: str | None = None) -> StoredAnswer | None:
        """As :meth:`lapwing.ledger.protocol.Ledger.find`; with ``analyst``, only what that analyst may see."""
        found = rows.first_of(self.connection, digest, ledger_id=self.ledger_id, analyst=analyst, request_id=request_id)
        if found is not None:
            self._wait_for_disk()
        return found

    def bought(
        self, *, version: int, limit: int, analyst: str | None = None, kind: PurchaseKind | None = None, begins: str = ""
    ) -> tuple[Bought, ...]:
        """As :meth:`lapwing.ledger.protocol.Ledger.bought`; nothing for an analyst who may not ask."""
        return rows.bought_of(
            self.connection, ledger_id=self.ledger_id, version=version, limit=limit, analyst=analyst, kind=kind, begins=begins
        )

    def named(self, first: str, after: str, *, version: int, analyst: str | None = None) -> tuple[NamedAnswer, ...]:
        """As :meth:`lapwing.ledger.protocol.Ledger.named`; nothing for an analyst who may not ask."""
        found = rows.named_of(self.connection, first, after, ledger_id=self.ledger_id, version=version, analyst=analyst)
        if found:
            self._wait_for_disk()
        return found

    def purchase(self, charge_id: int) -> PurchaseRecord | None:
        """What a charge bought, if the ledger recorded it."""
        return rows.purchase_of(self.connection, ledger_id=self.ledger_id, charge_id=charge_id)

    def statement(self, charge_id: int) -> ReceiptStatement:
        """The statement of the receipt for a committed answer, from its rows."""
        statement = rows.statement_of(self.connection, source_id=self._source_id, ledger_id=self.ledger_id, charge_id=charge_id)
        self._wait_for_disk()
        return statement

    def history(self, *, limit: int = 100) -> tuple[Entry, ...]:
        """Newest entries first."""
        if not 1 <= limit <= limits.HISTORY_ENTRIES_MAX:
            raise LedgerError("history-limit", f"the limit of a history must be between 1 and {limits.HISTORY_ENTRIES_MAX}")
        self._require_own_process()
        entries = self._ask(f"SELECT {rows.ENTRY} FROM lapwing.newest_entries(%s, %s::pg_catalog.int8)", [limit])
        return tuple(rows.entry_of(row) for row in entries)

    def blocks(self) -> BlockSpending | None:
        """What blocks of time have spent; None of a data set without blocks. ``balance`` is then that of the tables without time."""
        return blocks.spending_at(self.state(), lambda: self._ask(blocks.SPENDING, []))

    def declare_blocks(self, terms: BlockTerms, *, read: tuple[int, int] | None, units: int, reason: str) -> None:
        """Give every block a budget, or lower the cap; to raise or remove it: :func:`lapwing.ledger.postgres.policy.propose_cap`."""
        limits.require_detail(reason)
        blocks.declare(self.state, self.act, terms, read=read, units=units, reason=reason)

    def set_budget(self, to: Budget, *, reason: str) -> None:
        """Lower the budget, never below what is spent. Raising it needs a second person: :mod:`lapwing.ledger.postgres.policy`."""
        limits.require_detail(reason)
        limits.require_within(to, ceiling := self.state().ceiling)
        self.act("lapwing.set_budget(%s, %s, %s, %s)", [budget_text(ceiling), budget_text(to), reason])

    def raise_ceiling(self, to: Budget, *, reason: str) -> None:
        """Refused: changing the promise takes two people, see :func:`lapwing.ledger.postgres.policy.propose_ceiling`."""
        raise second_person()

    def close(self, reason: str) -> None:
        """Refuse every analyst from now on. What is reserved already may still be committed."""
        limits.require_detail(reason)
        self.change("lapwing.set_closed(%s, true, %s)", [reason])

    def reopen(self, reason: str) -> None:
        """Let analysts in again."""
        limits.require_detail(reason)
        self.change("lapwing.set_closed(%s, false, %s)", [reason])

    def record(self, kind: EntryKind, detail: str) -> None:
        """Record an owner's act in the history."""
        limits.require_detail(detail)
        if kind not in RECORDABLE:
            raise LedgerError("entry-kind", "only the ledger itself writes entries of this kind")
        self.change("lapwing.record(%s, %s, %s)", [kind.value, detail])

    def change(self, call: str, parameters: Sequence[object]) -> None:
        """An owner's act that always succeeds. It is not sent twice, because it would be recorded twice."""
        self._require_own_process()
        self._advance(rows.state_of(self._ask(f"SELECT {rows.STATE} FROM {call}", parameters, again=False)[0]))

    def act(self, call: str, parameters: Sequence[object], *, result: str = "NULL") -> Any:
        """An owner's act that may be refused; returns the column ``result`` of the function's row."""
        self._require_own_process()
        [(outcome, value, *columns)] = self._ask(f"SELECT outcome, {result}, {rows.STATE_OF_OUTCOME} FROM {call}", parameters, again=False)
        if outcome != "done":
            raise refusal(outcome)
        self._advance(rows.state_of(columns))
        return value

    def _ask(self, statement: str, parameters: Sequence[object], *, again: bool = True) -> list[tuple[Any, ...]]:
        """Send a statement whose first parameter is this ledger."""
        answer = self._connection.ask(statement, [self._known.ledger_id, *parameters], again=again)
        if not answer:
            raise missing()
        return answer

    def _wait_for_disk(self) -> None:
        """Make what was just read durable: another process may have committed it only a moment ago."""
        self._connection.ask("CALL lapwing.wait_for_disk()", again=True)

    def _holds(self, point: AnchorPoint) -> bool:
        return point.ledger_id == self._known.ledger_id and self._has(point.entries, point.head)

    def _has(self, entries: int, head: str) -> bool:
        statement = "SELECT lapwing.has_entry(%s, %s::pg_catalog.int8, %s)"
        return self._connection.ask(statement, [self._known.ledger_id, entries, head], again=True) == [(True,)]

    def _advance(self, point: AnchorPoint, permit: Permit | None = None, *, known: AnchorPoint | None = None) -> None:
        """Anchor a state. The statement that led to it has already found the point ``known`` in the chain."""
        try:
            self._remember(self._anchors.advance(point, holds=lambda kept: kept == known or self._holds(kept)))
        except LedgerError:
            with contextlib.suppress(LedgerError):
                if permit is not None:  # nothing was or will be read under this charge
                    self.forfeit(permit, incident=False)
            raise

    def _remember(self, point: AnchorPoint) -> None:
        """Keep the point: the next reservation is refused unless the chain still has this entry."""
        with self._gate:
            if point.entries > self._known.entries:
                self._known = point

    def _require_own_process(self) -> None:
        """In a forked child: leave the parent's connection alone, open a new one and register as a new worker."""
        if os.getpid() == self._worker.pid:
            return
        with self._gate:
            if os.getpid() != self._worker.pid:
                self._connection.abandon()
                self._connection = Connection(self._dsn, schema_version=SCHEMA_VERSION, retry_seconds=self._retry_seconds)
                self._start(override_reason=None)

    def _start(self, *, override_reason: str | None) -> None:
        in_database = opening.ledger_in_database(self._connection, source_id=self._source_id, fingerprint=self._fingerprint)
        self._known = in_database.state
        kept = self._anchors.known(self._source_id)
        opening.require_anchors(in_database, kept)
        problems = opening.disagreements(in_database, kept, fingerprint=self._fingerprint, holds=self._holds)
        if problems and override_reason is None:
            raise problems[0]
        self._anchor_names = sorted(kept)
        if problems:
            self._override(self._anchors.newest(self._source_id), f"{', '.join(problem.code for problem in problems)}: {override_reason}")
        self._register()

    def _override(self, kept: AnchorPoint | None, detail: str) -> None:
        """Record the owner's act in the database and then in the anchor; after a crash between the two, the owner must repeat it."""
        ahead = kept if kept is not None and kept.ledger_id == self._known.ledger_id and not self._holds(kept) else None
        milestones = () if ahead is None else self._anchors.milestones(self._source_id)
        parameters = opening.override_parameters(self._known, ahead, milestones, self._anchor_names, has=self._has)
        row = self._ask(
            f"SELECT {rows.STATE} FROM lapwing.accept_override(%s, %s, %s, %s, %s::pg_catalog.numeric, %s::pg_catalog.numeric,"
            " %s::pg_catalog.numeric, %s, %s, %s, %s::pg_catalog.text[], %s, %s, %s)",
            [detail, self._fingerprint, *parameters],
            again=False,
        )[0]
        self._known = rows.state_of(row)
        self._anchors.advance(self._known, holds=self._holds, override=True)

    def _register(self) -> None:
        """Register a new worker, after forfeiting the reservations of dead workers."""
        dead = opening.dead_workers(self._connection, self._known.ledger_id)
        worker = current_worker()
        fields = [worker.epoch, host_name(), worker.boot, worker.namespace, worker.pid, worker.started, self._lease_seconds, dead]
        row = self._ask(
            f"SELECT {rows.STATE} FROM lapwing.register_worker(%s, %s, %s, %s, %s, %s, %s, %s, %s::pg_catalog.text[],"
            " %s::pg_catalog.text[])",
            [*fields, self._anchor_names],
        )[0]
        self._advance(rows.state_of(row))
        self._worker = worker  # last: until then, each use of this object in a new process starts again
        self._renewed = time.monotonic()


_in_use: WeakSet[PostgresLedger] = WeakSet()


def _free_gates() -> None:
    """In a forked child: replace the locks, because a thread of the parent may have held them and does not exist here."""
    for ledger in _in_use:
        ledger._gate = RLock()


os.register_at_fork(after_in_child=_free_gates)
