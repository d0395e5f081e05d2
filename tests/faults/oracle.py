"""Compares what clients saw with what the database holds.

It trusts neither the functions of the ledger nor its sums: charges and entries are read as rows and added up here. What only a walk over
the chain can show is asked of :mod:`lapwing.ledger.postgres.verify`, whose own tests change a ledger in every way.

``state = read_state(dsn, source_id, anchors=anchors)`` reads, ``violations(history, state)`` judges; ``recovered`` does what a worker that
opens the ledger does, twice, and also judges that.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import psycopg

from lapwing.errors import LapwingError
from lapwing.ledger.postgres.anchors import AnchorPoint, Anchors
from lapwing.ledger.postgres.connection import Connection
from lapwing.ledger.postgres.install import SCHEMA_VERSION
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.postgres.verify import verify
from tests.faults.history import Event, What


@dataclass(frozen=True, slots=True)
class Charge:
    """One row of the charges."""

    charge_id: int
    analyst: str
    key: str
    digest: str
    loss: int
    delta: int
    state: str
    answer: str | None
    """SHA-256 of the stored answer, computed here."""
    pure: int | None = None


@dataclass(frozen=True, slots=True)
class EntryRow:
    """One row of the history."""

    entry_id: int
    kind: str
    charge_id: int | None
    loss: int
    delta: int
    chained: str
    pure: int | None = None


@dataclass(frozen=True, slots=True)
class LedgerState:
    """Everything one source has in the database, seen at one moment, and its anchor as it was just before."""

    source_id: str
    ledger_id: str
    loss_total: int
    delta_total: int
    loss_spent: int
    delta_spent: int
    entries: int
    head: str
    closed: bool
    charges: tuple[Charge, ...]
    log: tuple[EntryRow, ...]
    anchored: AnchorPoint | None
    problems: tuple[str, ...]
    """What ``verify`` found."""
    pure_total: int | None = None
    """None where the account has no order, and adds up one loss."""
    pure_spent: int | None = None


def read_state(dsn: str, source_id: str, *, anchors: Anchors | None) -> LedgerState:
    """One read-only transaction. The anchor is read first: it may only name what the database has had since then."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        inside = Connection(dsn, schema_version=SCHEMA_VERSION)
        try:
            return state_over(connection, inside, source_id, anchors=anchors)
        finally:
            inside.close()


def state_over(
    connection: psycopg.Connection[tuple[Any, ...]], inside: Connection, source_id: str, *, anchors: Anchors | None
) -> LedgerState:
    """The same over connections that are there already, the first of them in autocommit mode."""
    anchored = None if anchors is None else anchors.newest(source_id)
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        [(ledger_id, loss_total, delta_total, loss, delta, entries, head, closed, *pures)] = connection.execute(
            "SELECT ledger_id, loss_total::text, delta_total::text, loss_spent::text, delta_spent::text, entries, head, closed,"
            " pure_total::text, pure_spent::text FROM lapwing.data_set WHERE source_id = %s AND NOT superseded",
            [source_id],
        ).fetchall()
        charges = connection.execute(
            "SELECT charge_id, analyst, request_id, digest, loss::text, delta::text, state, payload, pure::text"
            " FROM lapwing.charge WHERE ledger_id = %s ORDER BY charge_id",
            [ledger_id],
        ).fetchall()
        log = connection.execute(
            "SELECT entry_id, kind, charge_id, loss::text, delta::text, chained, pure::text"
            " FROM lapwing.entry WHERE ledger_id = %s ORDER BY entry_id",
            [ledger_id],
        ).fetchall()
    problems = verify(inside, source_id, anchors=anchors).problems
    return LedgerState(
        source_id=source_id,
        ledger_id=ledger_id,
        loss_total=int(loss_total),
        delta_total=int(delta_total),
        loss_spent=int(loss),
        delta_spent=int(delta),
        entries=entries,
        head=head,
        closed=closed,
        charges=tuple(
            Charge(
                *(number, analyst, key, digest, int(loss), int(delta), state),
                answer=None if payload is None else answer_digest(payload),
                pure=_number(pure),
            )
            for number, analyst, key, digest, loss, delta, state, payload, pure in charges
        ),
        log=tuple(
            EntryRow(number, kind, charge, int(loss), int(delta), chained, _number(pure))
            for number, kind, charge, loss, delta, chained, pure in log
        ),
        anchored=anchored,
        problems=problems,
        pure_total=_number(pures[0]),
        pure_spent=_number(pures[1]),
    )


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def answer_digest(payload: bytes) -> str:
    """How a history names an answer."""
    return hashlib.sha256(payload).hexdigest()


def violations(history: Iterable[Event], state: LedgerState, *, settled: bool = False) -> list[str]:
    """Everything in which the database does not bear out the promise, given what clients saw of this source before it was read.

    ``settled``: no client is left and the ledger was recovered, so that nothing may still be reserved, and a decision that was told to a
    client must show in the end state.
    """
    events = [event for event in history if event.source_id == state.source_id]
    found = [f"verify: {problem}" for problem in state.problems]
    found += _sums(state)
    found += _chain(state)
    found += _one_charge_a_key(state)
    found += _paid_for(events, state)
    found += _one_answer_a_key(events)
    if settled:
        found += [f"charge {charge.charge_id} is still reserved" for charge in state.charges if charge.state == "reserved"]
        found += _told(events, state)
    return sorted(set(found))


def refunds(before: LedgerState, after: LedgerState) -> list[str]:
    """What an earlier state had and a later one lacks: nothing ever becomes cheaper, and no end of a charge is undone."""
    found = []
    if after.loss_spent < before.loss_spent or after.delta_spent < before.delta_spent:
        found.append("the amount spent fell")
    if after.log[: len(before.log)] != before.log:
        found.append("the history was changed")
    later = {charge.charge_id: charge for charge in after.charges}
    for charge in before.charges:
        now = later.get(charge.charge_id)
        if now is None:
            found.append(f"charge {charge.charge_id} is gone")
        elif charge.state == "reserved":
            if replace(now, state="reserved", answer=None) != charge:
                found.append(f"charge {charge.charge_id} was changed")
        elif now != charge:
            found.append(f"charge {charge.charge_id} was changed after its end")
    return found


def recovered(dsn: str, source_id: str, *, anchors: Anchors, history: Sequence[Event]) -> tuple[LedgerState, list[str]]:
    """Open the ledger as a new worker, twice, when all clients are gone: the settled state, and every violation.

    The first opening forfeits what the dead left. The second must change nothing.
    """
    before = read_state(dsn, source_id, anchors=anchors)
    found = violations(history, before)
    try:
        PostgresLedger.open(dsn, source_id=source_id, anchors=anchors).disconnect()
        first = read_state(dsn, source_id, anchors=anchors)
        PostgresLedger.open(dsn, source_id=source_id, anchors=anchors).disconnect()
    except LapwingError as error:
        return before, sorted({*found, f"recovery is refused: {error.code}"})
    second = read_state(dsn, source_id, anchors=anchors)
    found += refunds(before, first)
    if first != second:
        found.append("recovery done twice changes something")
    found += violations(history, second, settled=True)
    return second, sorted(set(found))


def _sums(state: LedgerState) -> list[str]:
    """The state, the entries and the charges name one amount, and it is within the budget."""
    found = []
    charged = (sum(charge.loss for charge in state.charges), sum(charge.delta for charge in state.charges))
    again = [entry for entry in state.log if entry.kind == "restore"]
    charged = (charged[0] + sum(entry.loss for entry in again), charged[1] + sum(entry.delta for entry in again))
    logged = (sum(entry.loss for entry in state.log), sum(entry.delta for entry in state.log))
    stored = (state.loss_spent, state.delta_spent)
    if charged != stored:
        found.append("the charges do not add up to the amount spent")
    if logged != stored:
        found.append("the entries do not add up to the amount spent")
    is_within = max(charged[0], logged[0], stored[0]) <= state.loss_total
    if state.pure_total is not None:
        pures = _pure_sum([*state.charges, *again]), _pure_sum(state.log)
        if set(pures) != {state.pure_spent}:
            found.append("the pure amounts do not add up to what is spent of them")
        is_within |= all(pure is not None and pure <= state.pure_total for pure in (*pures, state.pure_spent))
    if not is_within or max(charged[1], logged[1], stored[1]) > state.delta_total:
        found.append("overspent")
    return found


def _pure_sum(rows: Sequence[Charge | EntryRow]) -> int | None:
    """What costs nothing adds nothing; what costs something and has no pure amount leaves none."""
    amounts = [row.pure for row in rows if row.loss or row.delta or row.pure]
    return None if None in amounts else sum(amount or 0 for amount in amounts)


def _chain(state: LedgerState) -> list[str]:
    """Entries are numbered without a gap, each charge has its one reservation and at most one end, and the anchor is among them."""
    found = []
    if [entry.entry_id for entry in state.log] != list(range(1, state.entries + 1)):
        found.append("an entry is missing")
    if state.log and state.log[-1].chained != state.head:
        found.append("the head is not the newest entry")
    kinds = defaultdict(list)
    for entry in state.log:
        if entry.charge_id is not None:
            kinds[entry.charge_id].append(entry)
    ends = {"reserved": [], "committed": ["commit"], "forfeited": ["forfeit"]}
    for charge in state.charges:
        about = kinds.pop(charge.charge_id, [])
        if [entry.kind for entry in about] != ["reserve", *ends[charge.state]]:
            found.append(f"charge {charge.charge_id} has other entries than its state says")
        elif (about[0].loss, about[0].delta) != (charge.loss, charge.delta) or any(entry.loss or entry.delta for entry in about[1:]):
            found.append(f"charge {charge.charge_id} has another cost than its entries")
    found += [f"charge {number} has entries and no row" for number in kinds]
    anchor = state.anchored
    if anchor is not None:
        at_anchor = next((entry.chained for entry in state.log if entry.entry_id == anchor.entries), None)
        if anchor.ledger_id != state.ledger_id or at_anchor != anchor.head:
            found.append("the anchor is ahead of the database")
    return found


def _one_charge_a_key(state: LedgerState) -> list[str]:
    keys = [(charge.analyst, charge.key) for charge in state.charges]
    return [f"one key, {keys.count(key)} charges: {key}" for key in set(keys) if keys.count(key) > 1] if len(set(keys)) < len(keys) else []


def _paid_for(events: Sequence[Event], state: LedgerState) -> list[str]:
    """Data read implies a charge; an answer sent implies a committed one; both with the hash and the cost of the request."""
    found = []
    charges = {(charge.analyst, charge.key): charge for charge in state.charges}
    reserved_in = {entry.charge_id: entry.entry_id for entry in state.log if entry.kind == "reserve"}
    for event in events:
        charge = charges.get((event.analyst, event.key))
        same = charge is not None and (charge.digest, charge.loss, charge.delta) == (event.digest, event.loss, event.delta)
        match event.what:
            case What.PERMIT | What.RUNNING | What.RAN | What.FORFEITED:
                if charge is None or not same or (event.charge_id and event.charge_id != charge.charge_id):
                    found.append(f"{event.what} without its charge: {event.key}")
                elif state.anchored is not None and reserved_in.get(charge.charge_id, 0) > state.anchored.entries:
                    found.append(f"{event.what} without an anchor: {event.key}")
            case What.SENT:
                if charge is None or charge.state != "committed" or charge.digest != event.digest:
                    found.append(f"sent without a committed charge: {event.key}")
                elif not same:
                    found.append(f"sent for another cost than was charged: {event.key}")
                elif charge.answer != event.answer:
                    found.append(f"sent another answer than was committed: {event.key}")
            case What.ASKED | What.REFUSED | What.LOST | What.STOPPED:
                pass
    return found


def _one_answer_a_key(events: Sequence[Event]) -> list[str]:
    """One key: data read once, under one permit, by one client; and all that was sent for it is the same bytes."""
    answers, permits, runs = defaultdict(set), defaultdict(set), defaultdict(list)
    for event in events:
        key = (event.analyst, event.key)
        match event.what:
            case What.SENT:
                answers[key].add(event.answer)
            case What.PERMIT:
                permits[key].add((event.client, event.charge_id))
            case What.RUNNING:
                runs[key].append(event.client)
            case What.ASKED | What.RAN | What.REFUSED | What.LOST | What.FORFEITED | What.STOPPED:
                pass
    found = [f"one key, {len(given)} answers: {key}" for key, given in answers.items() if len(given) > 1]
    found += [f"one key, {len(given)} permits: {key}" for key, given in permits.items() if len(given) > 1]
    found += [f"one key, data read {len(times)} times: {key}" for key, times in runs.items() if len(times) > 1]
    return found


def _told(events: Sequence[Event], state: LedgerState) -> list[str]:
    """A refusal is true: what was forfeited stays so, and who was told that the budget is too small was not turned away from enough.

    (Amounts spent only grow, so what could be paid in the end could have been paid then, as long as the budget was not raised.)
    """
    found = []
    charges = {(charge.analyst, charge.key): charge for charge in state.charges}
    for event in events:
        charge = charges.get((event.analyst, event.key))
        forfeited = event.what == What.FORFEITED or (event.what == What.REFUSED and event.code == "request-forfeited")
        if forfeited and (charge is None or charge.state != "forfeited"):
            found.append(f"told that it is forfeited, and it is not: {event.key}")
        if event.what == What.REFUSED and event.code == "request-mismatch" and (charge is None or charge.digest == event.digest):
            found.append(f"told that the key was used for another request, and it was not: {event.key}")
        if event.what == What.REFUSED and event.code == "budget-exceeded" and charge is None:
            if state.loss_spent + event.loss <= state.loss_total and state.delta_spent + event.delta <= state.delta_total:
                found.append(f"told that the budget is too small, and it is not: {event.key}")
    return found
