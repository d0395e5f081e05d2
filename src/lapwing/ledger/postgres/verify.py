"""Checks a whole ledger on PostgreSQL: derives everything again from the entries, and compares.

One read-only transaction sees one state; it locks nothing, and workers continue meanwhile. Linear in the entries; memory holds two hashes
per charge. It trusts neither the functions of the database nor its constraints: it computes the hashes and sums itself.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lapwing.errors import LedgerError
from lapwing.kernel.accounting import Cost, admits
from lapwing.ledger.postgres import rows
from lapwing.ledger.postgres.anchors import AnchorPoint, Anchors
from lapwing.ledger.postgres.connection import Connection
from lapwing.ledger.postgres.opening import LedgerInDatabase, require_anchors
from lapwing.ledger.postgres.verify_blocks import DerivedBlocks, check_blocks
from lapwing.ledger.protocol import EntryKind
from lapwing.ledger.verification import ComparedAnchor, Verification

if TYPE_CHECKING:
    import psycopg

ROWS_AT_ONCE = 2000
_TOTALS = "loss_total::text, delta_total::text, pure_total::text, loss_ceiling::text, delta_ceiling::text, pure_ceiling::text"
_REST = f"anchors, anchored, {_TOTALS}"
_ENTRY = "entry_id, at, kind, analyst, charge_id, loss::text, delta::text, detail, evidence, chained, pure::text, blocks"
_CHARGE = (
    "charge_id, analyst, group_name, request_id, digest, version, block, summary, loss::text, delta::text, epoch, nonce, state,"
    " pure::text, purchase, payload_digest, encode(sha256(payload), 'hex')"
)


@dataclass(slots=True)
class _Derived:
    """The state derived from the entries."""

    head: str
    entries: int = 0
    spent: Cost = field(default_factory=Cost.zero)
    closed: bool = False
    budgets: str = ""
    policies: dict[str, str] = field(default_factory=dict)
    """Subject of a policy -> digest of the policy in force."""
    blocks: DerivedBlocks = field(default_factory=DerivedBlocks)
    charges: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Number of the charge -> evidence of the reservation, and its end: ``reserved``, ``forfeited`` or the digest of the answer."""
    reserved_on: dict[int, str] = field(default_factory=dict)
    """Number of the charge -> the day of its reservation."""
    days: dict[str, tuple[str, Cost]] = field(default_factory=dict)
    """Analyst (empty: all together) -> the newest day and what was charged on it."""
    proposals: list[str] = field(default_factory=list)
    sought: dict[tuple[int, str], str | None] = field(default_factory=dict)
    """Entries that anchors name -> when each was made; None until it is found."""
    problems: Counter[str] = field(default_factory=Counter)


def verify(connection: Connection, source_id: str, *, anchors: Anchors | None) -> Verification:
    """Check the chain, the sums, every charge, every stored answer, the sub-budgets and the anchors of one source.

    A missing anchor is a problem if the ledger was used with it, or if ``anchors`` are given and none belongs to the ledger.
    """
    found: list[tuple[Verification, LedgerInDatabase]] = []
    # Anchors are read before the ledger, which may grow meanwhile but still has the entries that they name.
    kept = {} if anchors is None else anchors.known(source_id)
    connection.read(lambda inside: found.append(_verified(inside, source_id, kept)))
    [(report, at)] = found
    # And again after it: by then each anchor has the state that the ledger records for it.
    later = {} if anchors is None else anchors.known(source_id)
    return replace(report, problems=(*report.problems, *_promises_broken(at, later, are_given=anchors is not None)))


def _promises_broken(at: LedgerInDatabase, kept: Mapping[str, AnchorPoint | None], *, are_given: bool) -> list[str]:
    """Problems with anchors that are missing, or present only as an older copy."""
    if are_given and not at.anchors and not any(kept.values()):
        return ["[anchor-missing] none of the given anchors belongs to this ledger"]
    try:
        require_anchors(at, kept)
    except LedgerError as error:
        return [f"[{error.code}] {error.message}"]
    return []


def sources(connection: Connection) -> list[str]:
    """The sources that have a ledger in the database."""
    return [name for (name,) in connection.look("SELECT source_id FROM lapwing.data_set WHERE NOT superseded ORDER BY 1")]


def _verified(
    connection: psycopg.Connection[tuple[Any, ...]], source_id: str, kept: Mapping[str, AnchorPoint | None]
) -> tuple[Verification, LedgerInDatabase]:
    states = connection.execute(
        f"SELECT {rows.STATE}, {_REST} FROM lapwing.data_set WHERE source_id = %s AND NOT superseded".encode(), [source_id]
    ).fetchall()
    if not states:
        raise LedgerError("ledger-missing", "this source has no ledger in the database")
    columns, totals = states[0][:-8], states[0][-6:]
    state = rows.state_of(columns)
    at = LedgerInDatabase(state=state, sources=(), anchors=tuple(states[0][-8]), anchored=states[0][-7])
    points = {name: point for name, point in kept.items() if point is not None}
    derived = _Derived(head=rows.digest_of("lapwing ledger", state.ledger_id, source_id))
    derived.sought = {(point.entries, point.head): None for point in points.values() if point.ledger_id == state.ledger_id}
    for row in _streamed(connection, f"SELECT {_ENTRY} FROM lapwing.entry WHERE ledger_id = %s ORDER BY entry_id", state.ledger_id):
        _take(derived, row)
    wrong = derived.problems
    wrong["the state is not that of the newest entry"] += (derived.entries, derived.head) != (state.entries, state.head)
    wrong["the amount spent is not the sum of the entries"] += derived.spent != state.spent
    wrong["more was spent than the budget allows"] += not admits(state.budget, spent=state.spent, cost=Cost.zero())
    wrong["the data set is open where the entries closed it, or the reverse"] += derived.closed != state.closed
    budgets = [row[4] for row in states] + [row[5] for row in states]
    wrong["the budget or the ceiling is not the one the entries set"] += derived.budgets != rows.digest_of(*budgets)
    granted = [total for one in (state.budget, state.ceiling) for total in (one.loss_total, one.delta_total, one.pure_total)]
    compared = [None if total is None else int(total) for total in totals]
    wrong["a total that charges are compared with is not that of the budget"] += compared != granted
    wrong["the anchor belongs to another ledger"] += sum(point.ledger_id != state.ledger_id for point in points.values())
    wrong["the ledger is behind its anchor"] += list(derived.sought.values()).count(None)
    charges, answers = _check_charges(connection, state.ledger_id, derived)
    check_blocks(connection, state, derived.blocks, wrong)
    _check_policies(connection, state.ledger_id, derived)
    _check_days(connection, state.ledger_id, derived)
    _check_proposals(connection, state.ledger_id, derived)
    report = Verification(
        source_id=source_id,
        ledger_id=state.ledger_id,
        entries=state.entries,
        charges=charges,
        answers=answers,
        head=state.head,
        spent=state.spent,
        anchors=tuple(
            ComparedAnchor(name, point.entries, derived.sought.get((point.entries, point.head))) for name, point in points.items()
        ),
        problems=tuple(f"{text} ({count} times)" if count > 1 else text for text, count in sorted(wrong.items()) if count),
    )
    return report, at


def _take(derived: _Derived, row: tuple[Any, ...]) -> None:
    entry_id, at, kind, analyst, charge_id, loss, delta, detail, evidence, chained, pure, blocks = row
    number = None if charge_id is None else str(charge_id)
    fields = [derived.head, str(entry_id), at, kind, analyst, number, loss, delta, detail, evidence]
    head = rows.digest_of(*rows.with_later(fields, *rows.later_of_entry(pure, blocks)))
    derived.problems["the chain is broken"] += chained != head
    derived.problems["an entry is missing"] += entry_id != derived.entries + 1
    # Continue from the stored hash, so that one broken link counts as one problem.
    derived.head, derived.entries = chained, entry_id
    cost = rows.cost_of(loss, delta, pure)
    derived.spent += cost
    derived.blocks.take(kind, cost, evidence, blocks)
    if (entry_id, chained) in derived.sought:
        derived.sought[entry_id, chained] = at
    match kind:
        case EntryKind.RESERVE:
            derived.problems["a charge is reserved twice"] += charge_id in derived.charges
            derived.charges[charge_id] = (evidence, "reserved")
            derived.reserved_on[charge_id] = sys.intern(at[:10])
        case EntryKind.COMMIT | EntryKind.FORFEIT:
            reserved, end = derived.charges.get(charge_id, ("", "never reserved"))
            derived.problems["an entry ends a charge that is not open"] += end != "reserved"
            derived.charges[charge_id] = (reserved, evidence if kind == EntryKind.COMMIT else "forfeited")
        case EntryKind.CLOSE | EntryKind.REOPEN:
            derived.closed = kind == EntryKind.CLOSE
        case EntryKind.REGISTER | EntryKind.BUDGET | EntryKind.CEILING | EntryKind.RESTORE:
            derived.budgets = evidence
        case EntryKind.POLICY:
            about, _, digest = evidence.rpartition(" ")
            derived.policies[about] = digest
        case EntryKind.PROPOSE:
            derived.proposals.append(evidence)
        case EntryKind.OVERRIDE | EntryKind.VERSION | EntryKind.RETIRE | EntryKind.DENY | EntryKind.BLOCKS:
            pass
        case _:
            derived.problems["an entry is of an unknown kind"] += 1


def _check_charges(connection: psycopg.Connection[tuple[Any, ...]], ledger_id: str, derived: _Derived) -> tuple[int, int]:
    """Check that charges match their entries, answers their digests, and sub-budgets their sums. Counts charges and answers."""
    wrong = derived.problems
    count = answers = 0
    by_analyst: dict[str, Cost] = {}
    by_group: dict[str, Cost] = {}
    for *fields, state, pure, purchase, payload_digest, hashed in _streamed(
        connection, f"SELECT {_CHARGE} FROM lapwing.charge WHERE ledger_id = %s ORDER BY charge_id", ledger_id
    ):
        count += 1
        charge_id, analyst, group, *_ = fields
        cost = rows.cost_of(fields[8], fields[9], pure)
        by_analyst[analyst] = by_analyst.get(analyst, Cost.zero()) + cost
        if group is not None:
            by_group[group] = by_group.get(group, Cost.zero()) + cost
        for who in ("", analyst):  # limits count the whole cost of a charge, which its entry does not say where blocks pay
            day = derived.reserved_on.get(charge_id, "")
            derived.days[who] = _day_after(derived.days.get(who), day, Cost(loss=cost.loss, delta=0, pure=cost.pure))
        reserved, end = derived.charges.pop(charge_id, ("", ""))
        evidence = rows.digest_of(
            *rows.with_later([None if value is None else str(value) for value in fields], *rows.later_of_charge(pure, purchase))
        )
        wrong["a charge is not the one that was reserved"] += reserved != evidence
        wrong["a charge is not in the state its entries left it in"] += end != (payload_digest if state == "committed" else state)
        if state == "committed":
            answers += 1
            wrong["an answer is not the one that was committed"] += hashed != payload_digest
    wrong["a charge is missing"] += len(derived.charges)
    for table, name, sums in (("analyst", "analyst", by_analyst), ("analyst_group", "group_name", by_group)):
        statement = f"SELECT {name}, loss_spent::text, delta_spent::text, pure_spent::text FROM lapwing.{table} WHERE ledger_id = %s"
        stored = {who: rows.cost_of(*amounts) for who, *amounts in connection.execute(statement.encode(), [ledger_id])}
        wrong[f"what an {name.removesuffix('_name')} has spent is not the sum of the charges"] += any(
            stored.get(who, Cost.zero()) != sums.get(who, Cost.zero()) for who in stored.keys() | sums.keys()
        )
    return count, answers


def _day_after(counted: tuple[str, Cost] | None, day: str, cost: Cost) -> tuple[str, Cost]:
    """The day only moves forwards: after the clock was set back, charges count towards the latest day that was reached."""
    if counted is None or counted[0] < day:
        return day, cost
    return counted[0], counted[1] + cost


def _check_days(connection: psycopg.Connection[tuple[Any, ...]], ledger_id: str, derived: _Derived) -> None:
    """Check that the amounts of the newest day are the sums of the entries of that day."""
    for table, name in (("data_set", "''"), ("analyst", "analyst")):
        statement = f"SELECT {name}, day::text, day_loss::text, day_pure::text FROM lapwing.{table} WHERE ledger_id = %s"
        for who, day, loss, pure in connection.execute(statement.encode(), [ledger_id]):
            stored = None if day is None else (day, rows.cost_of(loss, "0", pure))
            derived.problems["what was charged on the newest day is not the sum of its charges"] += stored != derived.days.get(who)


def _check_proposals(connection: psycopg.Connection[tuple[Any, ...]], ledger_id: str, derived: _Derived) -> None:
    """Check that proposals match their entries; before schema version 2, these did not include the role of the session."""
    statement = (
        "SELECT proposal_id::text, kind, target, proposed_by, budget, loss_total::text, delta_total::text, proposed_role,"
        " pure_total::text"
        " FROM lapwing.proposal WHERE ledger_id = %s ORDER BY proposal.proposal_id"  # by the number: the column of the result is text
    )
    stored = connection.execute(statement.encode(), [ledger_id]).fetchall()
    evidence = [rows.digest_of(*rows.with_later(row if row[-1] else row[:-1], pure)) for *row, pure in stored]
    derived.problems["a proposal is not the one that was made"] += evidence != derived.proposals


_LIMITS = ("statement_loss_max", "day_loss_max", "answers_shared", "lost_workers_max", "lost_workers_seconds")
_POLICIES = (
    ("data_set", "'limits'", _LIMITS, ("statement_pure_max", "day_pure_max"), "limits"),
    ("data_set", "'anchors'", ("anchors",), (), "anchors"),
    (
        *("analyst", "'analyst ' || analyst"),
        *(("group_name", "suspended", "loss_total", "delta_total", "day_loss_max"), ("pure_total", "day_pure_max"), "analyst"),
    ),
    ("analyst_group", "'group ' || group_name", ("loss_total", "delta_total"), ("pure_total",), "group"),
)
"""Table, subject of a policy, its columns, the columns of later versions, and its name in messages."""


def _check_policies(connection: psycopg.Connection[tuple[Any, ...]], ledger_id: str, derived: _Derived) -> None:
    """Check that the limits, analysts and groups in force are those set by the newest entry about each."""
    in_force = derived.policies
    for table, about, columns, later, kind in _POLICIES:
        texts = ", ".join(f"{column}::text" for column in (*columns, *later))
        for name, *row in connection.execute(f"SELECT {about}, {texts} FROM lapwing.{table} WHERE ledger_id = %s".encode(), [ledger_id]):
            if (name, row) == ("anchors", ["{}"]) and name not in in_force:
                continue  # created by a version without such policies
            digest = rows.digest_of(*rows.with_later(row[: len(columns)], *row[len(columns) :]))
            derived.problems[f"no entry set the {kind} in force"] += in_force.pop(name, None) != digest
    derived.problems["an analyst or a group is missing"] += len(in_force)


def _streamed(connection: psycopg.Connection[tuple[Any, ...]], statement: str, ledger_id: str) -> Iterator[tuple[Any, ...]]:
    with connection.cursor(name="lapwing_rows") as cursor:
        cursor.itersize = ROWS_AT_ONCE
        cursor.execute(statement.encode(), [ledger_id])
        yield from cursor
