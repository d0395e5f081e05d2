"""The rows of a ledger: the state, the charges and the chained entries.

Every function here runs inside a transaction of ``lapwing.ledger.local.sqlite_file``. The decisions are made in
``lapwing.ledger.local.ledger``.

The state row (spent, budget, ceiling, closed) is a summary of the entries: :func:`verified_state` derives it again from them, and each
entry carries a SHA-256 over itself and the entry before, so the last one, the *head*, stands for the whole history.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NoReturn

from lapwing.errors import LedgerError
from lapwing.kernel.accounting import Budget, Cost
from lapwing.ledger.amounts import amount_text, amount_value, budget_text, budget_value, cost_value, pure_text, ranges_text, ranges_value
from lapwing.ledger.block_balances import standing_cost
from lapwing.ledger.local.block_state import BlockState, block_state_text, block_state_value, charge_of, person_of, ranges_of
from lapwing.ledger.local.schema import NAMED, NOT_NAMED
from lapwing.ledger.protocol import Balance, Bought, Entry, EntryKind, NamedAnswer, Request, State, StoredAnswer
from lapwing.ledger.purchases import PurchaseKind, PurchaseRecord, kind_text, name_in, named_range, stored_record, stored_text
from lapwing.ledger.workers import Worker
from lapwing.receipts import ReceiptStatement, statement_of_row

_CANONICAL = json.JSONEncoder(separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class LedgerState:
    """Everything a decision depends on."""

    ledger_id: str
    source_id: str
    budget: Budget
    ceiling: Budget
    spent: Cost
    closed: bool
    entries: int
    head: str
    blocks: BlockState | None = None
    """What blocks of time have; None of a data set without blocks."""

    @property
    def balance(self) -> Balance:
        """The budget in force and what is spent of it; with blocks of time, by the standing block."""
        return Balance(budget=self.budget, ceiling=self.ceiling, spent=self.spent, closed=self.closed)


@dataclass(frozen=True, slots=True)
class PaidRequest:
    """A charge with everything needed to copy it into another ledger."""

    request: Request
    state: State
    payload: bytes | None


@dataclass(frozen=True, slots=True)
class Charge:
    """A charge without its answer."""

    charge_id: int
    analyst: str
    digest: str
    state: State
    worker: Worker


def now_text() -> str:
    """UTC, ISO 8601. For people to read, and for daily limits; the budget does not depend on it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def start(connection: sqlite3.Connection, state: LedgerState) -> LedgerState:
    """Write the first state (no entries) and the entry that registers it."""
    connection.execute(
        "INSERT INTO ledger VALUES (1, :ledger_id, :source_id, :budget, :ceiling, :loss_spent, :loss_total, :loss_ceiling,"
        " :delta_spent, :delta_total, :delta_ceiling, :pure_spent, :pure_total, :pure_ceiling, :closed, :entries, :head, :blocks)",
        state_columns(state),
    )
    return append(connection, state, kind=EntryKind.REGISTER, detail=f"registered {state.source_id}", evidence=budgets_digest(state))


def first_head(ledger_id: str, source_id: str) -> str:
    """What the first entry is chained to."""
    return digest_of(["lapwing ledger", ledger_id, source_id])


def read_state(connection: sqlite3.Connection) -> LedgerState:
    """The state row."""
    row = connection.execute(
        "SELECT ledger_id, source_id, budget, ceiling, loss_spent, delta_spent, pure_spent, closed, entries, head, blocks FROM ledger"
    ).fetchone()
    if row is None:
        damaged()
    ledger_id, source_id, budget, ceiling, loss_spent, delta_spent, pure_spent, closed, entries, head, blocks = row
    return LedgerState(
        ledger_id=ledger_id,
        source_id=source_id,
        budget=budget_value(budget),
        ceiling=budget_value(ceiling),
        spent=cost_value(loss_spent, delta_spent, pure_spent),
        closed=bool(closed),
        entries=entries,
        head=head,
        blocks=None if blocks is None else block_state_value(blocks),
    )


def append(
    connection: sqlite3.Connection,
    state: LedgerState,
    *,
    kind: EntryKind,
    detail: str,
    analyst: str = "",
    charge_id: int | None = None,
    cost: Cost | None = None,
    evidence: str = "",
    blocks: str | None = None,
) -> LedgerState:
    """Write one entry together with the state it leads to: ``state`` (which may differ from the stored one) plus ``cost``.

    ``cost`` is what the standing block pays. With ``blocks`` (``ranges_text``) it is part of what blocks pay.
    """
    cost = Cost.zero() if cost is None else cost
    entry_id = state.entries + 1
    loss, delta, pure = amount_text(cost.loss), amount_text(cost.delta), pure_text(cost)
    fields: list[str | int | None] = [entry_id, now_text(), kind.value, analyst, charge_id, loss, delta, detail, evidence]
    head = chained_to(state.head, with_last(fields, pure, blocks))
    connection.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [*fields, pure, head, blocks])
    after = replace(state, spent=state.spent + cost, entries=entry_id, head=head)
    charge = None if state.blocks is None else charge_of(cost, blocks)
    if state.blocks is not None and charge is not None:
        after = replace(after, blocks=state.blocks.after(charge, restored=kind is EntryKind.RESTORE))
    connection.execute(
        "UPDATE ledger SET budget = :budget, ceiling = :ceiling, loss_spent = :loss_spent, loss_total = :loss_total,"
        " loss_ceiling = :loss_ceiling, delta_spent = :delta_spent, delta_total = :delta_total, delta_ceiling = :delta_ceiling,"
        " pure_spent = :pure_spent, pure_total = :pure_total, pure_ceiling = :pure_ceiling,"
        " closed = :closed, entries = :entries, head = :head, blocks = :blocks",
        state_columns(after),
    )
    return after


def add_charge(connection: sqlite3.Connection, state: LedgerState, request: Request, worker_id: int) -> tuple[int, LedgerState]:
    """A new reservation: the charge with the cost of the plan, its entry with what each block pays, and the amount spent, together."""
    charge_id = connection.execute("SELECT coalesce(max(charge_id), 0) + 1 FROM charge").fetchone()[0]
    loss, delta, pure = amount_text(request.cost.loss), amount_text(request.cost.delta), pure_text(request.cost)
    fields = [charge_id, request.analyst, request.request_id, request.digest, request.version, request.summary, loss, delta]
    purchase = stored_text(request.purchase)
    connection.execute(
        "INSERT INTO charge (charge_id, analyst, request_id, digest, version, summary, loss, delta, pure, purchase, worker_id, state)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'reserved')",
        [*fields, pure, purchase, worker_id],
    )
    after = append(
        connection,
        state,
        kind=EntryKind.RESERVE,
        detail=request.summary,
        analyst=request.analyst,
        charge_id=charge_id,
        cost=standing_cost(request.ranges, request.cost),
        evidence=digest_of(with_last(fields, pure, purchase)),
        blocks=None if request.person is None else ranges_text(request.ranges, request.person),
    )
    return charge_id, after


def settle(connection: sqlite3.Connection, state: LedgerState, charge_id: int, *, payload: bytes | None, detail: str) -> LedgerState:
    """End an open charge: committed with its answer, or forfeited without one. Pre: the charge is open and belongs to the caller."""
    if payload is None:
        end, kind, evidence = State.FORFEITED, EntryKind.FORFEIT, None
    else:
        end, kind, evidence = State.COMMITTED, EntryKind.COMMIT, hashlib.sha256(payload).hexdigest()
    analyst = connection.execute("SELECT analyst FROM charge WHERE charge_id = ?", [charge_id]).fetchone()[0]
    connection.execute(
        "UPDATE charge SET state = ?, payload = ?, payload_digest = ? WHERE charge_id = ?", [end.value, payload, evidence, charge_id]
    )
    return append(connection, state, kind=kind, detail=detail, analyst=analyst, charge_id=charge_id, evidence=evidence or "")


def charge_by_key(connection: sqlite3.Connection, analyst: str, request_id: str) -> Charge | None:
    """The charge of this key."""
    charges = _charges(connection, "charge.analyst = ? AND charge.request_id = ?", [analyst, request_id])
    return charges[0] if charges else None


def open_charges(connection: sqlite3.Connection) -> list[Charge]:
    """Every charge that is still reserved."""
    return _charges(connection, "charge.state = 'reserved'", [])


def is_open(connection: sqlite3.Connection, *, charge_id: int, digest: str, cost: Cost, epoch: str) -> bool:
    """Whether this charge, with exactly this digest and cost, is reserved and belongs to the worker of this epoch."""
    row = connection.execute(
        "SELECT 1 FROM charge JOIN worker USING (worker_id)"
        " WHERE charge_id = ? AND digest = ? AND loss = ? AND delta = ? AND pure IS ? AND state = 'reserved' AND epoch = ?",
        [charge_id, digest, amount_text(cost.loss), amount_text(cost.delta), pure_text(cost), epoch],
    ).fetchone()
    return row is not None


def is_committed(connection: sqlite3.Connection, *, charge_id: int, payload: bytes, epoch: str) -> bool:
    """Whether the worker of this epoch has stored exactly this answer for the charge."""
    row = connection.execute(
        "SELECT 1 FROM charge JOIN worker USING (worker_id)"
        " WHERE charge_id = ? AND state = 'committed' AND payload_digest = ? AND epoch = ?",
        [charge_id, hashlib.sha256(payload).hexdigest(), epoch],
    ).fetchone()
    return row is not None


def stored_answer(connection: sqlite3.Connection, charge_id: int) -> StoredAnswer:
    """The answer of a committed charge, checked against the digest that was stored with it."""
    row = connection.execute("SELECT payload, payload_digest FROM charge WHERE charge_id = ?", [charge_id]).fetchone()
    return _checked(charge_id, *((None, None) if row is None else row))


def _checked(charge_id: int, payload: bytes | None, payload_digest: str | None) -> StoredAnswer:
    if payload is None or hashlib.sha256(payload).hexdigest() != payload_digest:
        damaged()
    return StoredAnswer(charge_id=charge_id, payload=payload)


def first_answer(
    connection: sqlite3.Connection, digest: str, *, analyst: str | None = None, request_id: str | None = None
) -> StoredAnswer | None:
    """The answer with this digest that was committed first, unless this request of the analyst paid for one itself: then that one, and none
    while its charge is open. So the same answer is returned every time."""
    row = connection.execute(
        "SELECT charge_id, state FROM (SELECT charge_id, state,"
        " coalesce(analyst = :analyst AND (request_id = :key OR substr(request_id, 1, length(:key) + 1) = :key || '/'), false) AS own"
        " FROM charge WHERE digest = :digest) AS c WHERE state = 'committed' OR (state = 'reserved' AND own)"
        " ORDER BY own DESC, (SELECT entry_id FROM entry WHERE kind = 'commit' AND entry.charge_id = c.charge_id) LIMIT 1",
        {"analyst": analyst, "key": request_id, "digest": digest},
    ).fetchone()
    return None if row is None or row[1] != "committed" else stored_answer(connection, row[0])


def newest_bought(
    connection: sqlite3.Connection, *, version: int, limit: int, kind: PurchaseKind | None = None, begins: str = ""
) -> tuple[Bought, ...]:
    """The newest committed charges of a version but those for blocks, newest first."""
    rows = connection.execute(
        "SELECT summary, loss, delta, pure, digest, purchase FROM (SELECT * FROM charge WHERE version = ? AND state = 'committed'"
        f" AND {NOT_NAMED} ORDER BY charge_id DESC LIMIT ?) WHERE CASE WHEN purchase IS NULL THEN substr(summary, 1, length(?)) = ?"
        " ELSE substr(purchase, 1, length(?)) = ? END ORDER BY charge_id DESC",
        [version, limit, begins, begins, kind_text(kind), kind_text(kind)],
    )
    return tuple(
        Bought(summary, cost_value(loss, delta, pure), digest, stored_record(purchase))
        for summary, loss, delta, pure, digest, purchase in rows
    )


_IN_RANGE = f"FROM charge WHERE {NAMED} AND version = ? AND substr(purchase, 1, 200) >= ? AND substr(purchase, 1, 200) < ?"
NAMED_ANSWERS = f"SELECT substr(purchase, 1, 200), charge_id, payload, payload_digest {_IN_RANGE} ORDER BY substr(purchase, 1, 200)"
"""Of a version and a range of stored texts: found by the index, which has them in the order of names."""


def named_answers(connection: sqlite3.Connection, first: str, after: str, *, version: int) -> tuple[NamedAnswer, ...]:
    """What was bought for blocks under names in a range; of several with one name, that which was committed first."""
    found: dict[str, list[StoredAnswer]] = {}
    wanted = [version, *named_range(first, after)]
    for text, *answer in connection.execute(NAMED_ANSWERS, wanted):
        found.setdefault(name_in(text), []).append(_checked(*answer))
    if all(len(answers) == 1 for answers in found.values()):
        return tuple(NamedAnswer(name, answer) for name, [answer] in found.items())
    # Rare: two paid for the same at the same time. Only the entries say who was first, and they have no index.
    committed = connection.execute(
        f"SELECT charge_id, entry_id FROM entry WHERE kind = ? AND charge_id IN (SELECT charge_id {_IN_RANGE})",
        [EntryKind.COMMIT.value, *wanted],
    )
    order: dict[int, int] = dict(committed)
    return tuple(NamedAnswer(name, min(answers, key=lambda one: order[one.charge_id])) for name, answers in found.items())


def purchase_of(connection: sqlite3.Connection, charge_id: int) -> PurchaseRecord | None:
    """What a charge bought, if the ledger recorded it."""
    row = connection.execute("SELECT purchase FROM charge WHERE charge_id = ?", [charge_id]).fetchone()
    return None if row is None else stored_record(row[0])


def spent_today(connection: sqlite3.Connection, analyst: str) -> Cost:
    """What this analyst was charged on this day (UTC) or a later one: setting the clock back does not give the same day twice."""
    charged = connection.execute(
        "SELECT charge.loss, charge.delta, charge.pure FROM entry JOIN charge USING (charge_id)"
        " WHERE entry.at >= ? AND entry.kind = ? AND entry.analyst = ?",
        [now_text()[:10], EntryKind.RESERVE.value, analyst],
    )
    return sum((cost_value(*amounts) for amounts in charged), Cost.zero())


def paid_requests(connection: sqlite3.Connection) -> tuple[PaidRequest, ...]:
    """Every charge ever made, in order."""
    charged = connection.execute("SELECT charge_id, blocks FROM entry WHERE kind = ? AND blocks IS NOT NULL", [EntryKind.RESERVE.value])
    ranges = {charge_id: ranges_value(blocks) for charge_id, blocks in charged}
    return tuple(
        PaidRequest(
            request=Request(
                analyst=analyst,
                request_id=request_id,
                digest=digest,
                cost=cost_value(loss, delta, pure),
                version=version,
                summary=summary,
                purchase=stored_record(purchase),
                ranges=ranges[charge_id][0] if charge_id in ranges else (),
                person=ranges[charge_id][1] if charge_id in ranges else None,
            ),
            state=State(state),
            payload=None if payload is None else stored_answer(connection, charge_id).payload,
        )
        for charge_id, analyst, request_id, digest, version, summary, loss, delta, pure, purchase, state, payload in connection.execute(
            "SELECT charge_id, analyst, request_id, digest, version, summary, loss, delta, pure, purchase, state, payload FROM charge"
            " ORDER BY charge_id"
        ).fetchall()
    )


def add_worker(connection: sqlite3.Connection, worker: Worker) -> int:
    """The row of a worker; created at its first reservation."""
    row = connection.execute("SELECT worker_id FROM worker WHERE epoch = ?", [worker.epoch]).fetchone()
    if row is not None:
        return int(row[0])
    cursor = connection.execute(
        "INSERT INTO worker (epoch, boot, namespace, pid, started) VALUES (?, ?, ?, ?, ?) RETURNING worker_id",
        [worker.epoch, worker.boot, worker.namespace, worker.pid, worker.started],
    )
    return int(cursor.fetchone()[0])


def newest_entries(connection: sqlite3.Connection, limit: int) -> tuple[Entry, ...]:
    """The history, newest first."""
    rows = connection.execute(
        "SELECT entry_id, at, kind, analyst, charge_id, loss, delta, pure, detail, blocks FROM entry ORDER BY entry_id DESC LIMIT ?",
        [limit],
    )
    return tuple(
        Entry(
            entry_id=entry_id,
            at=at,
            kind=kind_of(kind),
            analyst=analyst,
            charge_id=charge_id,
            cost=cost_value(loss, delta, pure),
            detail=detail,
            ranges=ranges_of(blocks),
            person=person_of(blocks),
        )
        for entry_id, at, kind, analyst, charge_id, loss, delta, pure, detail, blocks in rows
    )


MOVED = "moved to "
"""How the detail of the entry begins that closes a ledger for good because it was moved."""


ON_SERVER = "PostgreSQL"
"""The place of a ledger that was moved out of its file."""


def moved_to(connection: sqlite3.Connection) -> str | None:
    """Where this ledger was last moved to; None if it was not moved. One that was moved stays closed, so only then are entries read."""
    if not connection.execute("SELECT closed FROM ledger").fetchone()[0]:
        return None
    row = connection.execute(
        "SELECT detail FROM entry WHERE kind = ? AND substr(detail, 1, ?) = ? ORDER BY entry_id DESC LIMIT 1",
        [EntryKind.CLOSE.value, len(MOVED), MOVED],
    ).fetchone()
    return None if row is None else str(row[0]).removeprefix(MOVED)


def receipt_statement(connection: sqlite3.Connection, charge_id: int) -> ReceiptStatement:
    """The statement of the receipt for a committed charge; refuses any other charge (``receipt-missing``)."""
    row = connection.execute(
        "SELECT c.analyst, c.request_id, c.digest, c.payload_digest, c.loss, c.delta, e.entry_id, e.chained, e.at"
        " FROM charge c JOIN entry e ON e.charge_id = c.charge_id AND e.kind = ? WHERE c.charge_id = ?",
        [EntryKind.COMMIT.value, charge_id],
    ).fetchone()
    state = read_state(connection)
    return statement_of_row(row, source_id=state.source_id, ledger_id=state.ledger_id, charge_id=charge_id, amount=amount_value)


def head_at(connection: sqlite3.Connection, entry_id: int) -> str | None:
    """The head after this entry, if there is one."""
    row = connection.execute("SELECT chained FROM entry WHERE entry_id = ?", [entry_id]).fetchone()
    return None if row is None else str(row[0])


def budgets_digest(state: LedgerState) -> str:
    """The digest that an entry holds of the budget and ceiling in force after it."""
    return digest_of([budget_text(state.budget), budget_text(state.ceiling)])


def kind_of(text: str) -> EntryKind:
    try:
        return EntryKind(text)
    except ValueError:
        damaged()


def _charges(connection: sqlite3.Connection, condition: str, parameters: list[str]) -> list[Charge]:
    rows = connection.execute(
        "SELECT charge_id, analyst, digest, state, epoch, boot, namespace, pid, started"
        f" FROM charge JOIN worker USING (worker_id) WHERE {condition} ORDER BY charge_id",
        parameters,
    )
    return [
        Charge(
            charge_id=charge_id,
            analyst=analyst,
            digest=digest,
            state=State(state),
            worker=Worker(epoch=epoch, boot=boot, namespace=namespace, pid=pid, started=started),
        )
        for charge_id, analyst, digest, state, epoch, boot, namespace, pid, started in rows
    ]


def with_last(fields: list[str | int | None], pure: str | None, last: str | None) -> list[str | int | None]:
    """The hashed fields of an entry or charge. The pure amount comes after them, and then what came with a later format: the blocks of an
    entry, the record of a charge. What is not there leaves the list as it was before it existed."""
    if last is not None:
        return [*fields, pure, last]
    return fields if pure is None else [*fields, pure]


def state_columns(state: LedgerState) -> dict[str, str | int | None]:
    spent, total, most = state.spent.pure, state.budget.pure_total, state.ceiling.pure_total
    return {
        "ledger_id": state.ledger_id,
        "source_id": state.source_id,
        "budget": budget_text(state.budget),
        "ceiling": budget_text(state.ceiling),
        "loss_spent": amount_text(state.spent.loss),
        "loss_total": amount_text(state.budget.loss_total),
        "loss_ceiling": amount_text(state.ceiling.loss_total),
        "delta_spent": amount_text(state.spent.delta),
        "delta_total": amount_text(state.budget.delta_total),
        "delta_ceiling": amount_text(state.ceiling.delta_total),
        "pure_spent": None if spent is None else amount_text(spent),
        "pure_total": None if total is None else amount_text(total),
        "pure_ceiling": None if most is None else amount_text(most),
        "closed": int(state.closed),
        "entries": state.entries,
        "head": state.head,
        "blocks": None if state.blocks is None else block_state_text(state.blocks),
    }


def chained_to(previous: str, fields: list[str | int | None]) -> str:
    return digest_of([previous, *fields])


def digest_of(fields: list[str | int | None] | list[str]) -> str:
    return hashlib.sha256(_CANONICAL.encode(fields).encode("ascii")).hexdigest()


def damaged() -> NoReturn:
    raise LedgerError("ledger-damaged", "the ledger is inconsistent", hint="restore a backup, then open it with an override")
