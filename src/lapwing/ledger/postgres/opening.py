"""What is looked at when a ledger on PostgreSQL is opened: is it the one that was anchored, in its newest state, for this data?

Only reading, and deciding what does not agree; what the owner's override then writes is in :mod:`lapwing.ledger.postgres.ledger`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lapwing.errors import CatalogueError, LapwingError, LedgerError
from lapwing.kernel.accounting import Cost
from lapwing.ledger.anchors import AnchorPoint, Milestone, rolled_back
from lapwing.ledger.postgres import rows
from lapwing.ledger.postgres.connection import Connection
from lapwing.ledger.postgres.outcomes import missing

_STATE = ", ".join(f"d.{column}" for column in rows.STATE.split(", "))


@dataclass(frozen=True, slots=True)
class Found:
    """The ledger of a source as the database has it, and under which sources it knows the data."""

    state: AnchorPoint
    sources: tuple[str, ...]


def found(connection: Connection, *, source_id: str, fingerprint: str | None) -> Found:
    """The ledger in force of a source. Refuses ``ledger-missing``, and ``ledger-damaged`` if its head is not that of its newest entry."""
    answered = connection.ask(
        f"SELECT e.chained = d.head, f.known, {_STATE} FROM lapwing.data_set d"
        " LEFT JOIN lapwing.entry e ON e.ledger_id = d.ledger_id AND e.entry_id = d.entries,"
        " (SELECT array_agg(source_id) FROM lapwing.fingerprint WHERE fingerprint = %s) AS f (known)"
        " WHERE d.source_id = %s AND NOT d.superseded",
        [fingerprint, source_id],
        again=True,
    )
    if not answered:
        raise missing()
    agrees, sources, *columns = answered[0]
    if not agrees:
        raise LedgerError("ledger-damaged", "the ledger contradicts itself", hint="restore it, then open it with an override")
    return Found(state=rows.state_of(columns), sources=tuple(sources or ()))


def disagreements(
    at: Found, kept: AnchorPoint | None, *, fingerprint: str | None, holds: Callable[[AnchorPoint], bool]
) -> list[LapwingError]:
    """Everything in which this ledger is not the one that was anchored (``kept``), in its newest state, for this data."""
    hint = "if this is meant, the data owner can open it with an override and a reason"
    problems: list[LapwingError] = []
    if kept is None:
        problems.append(LedgerError("ledger-unregistered", "the ledger of this source has no anchor here", hint=hint))
    elif kept.ledger_id != at.state.ledger_id:
        problems.append(LedgerError("ledger-superseded", "the source has another ledger by now", hint=hint))
    elif not holds(kept):
        problems.append(rolled_back())
    if fingerprint is not None and at.state.source_id not in at.sources:
        problems.append(CatalogueError("source-changed", "the source was registered for other data", hint=hint))
        if at.sources:
            problems.append(CatalogueError("source-registered", "another source is registered for the same data", hint=hint))
    return problems


def lost_since(milestones: Sequence[Milestone], memory: AnchorPoint, *, has: Callable[[int, str], bool]) -> Cost:
    """What an override charges again: all that ``memory`` spent after the newest milestone (newest first) that the database still has.

    What the database spent after that milestone does not count against it: it may have gone another way from there.
    """
    common = next((one.spent for one in milestones if has(one.entries, one.head)), Cost.zero())
    return Cost(loss=memory.spent.loss - common.loss, delta=memory.spent.delta - common.delta)
