"""Checks when a ledger on PostgreSQL is opened: is it the one that was anchored, in its newest state, for this data?

Only reading, and deciding what does not agree; what the owner's override then writes is in :mod:`lapwing.ledger.postgres.ledger`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lapwing.errors import CatalogueError, LapwingError, LedgerError
from lapwing.kernel.accounting import Cost
from lapwing.ledger.amounts import lost_between
from lapwing.ledger.postgres import rows
from lapwing.ledger.postgres.anchors import AnchorPoint, Milestone, rolled_back
from lapwing.ledger.postgres.connection import ANCHORS_HINT, Connection
from lapwing.ledger.postgres.outcomes import missing
from lapwing.ledger.workers import Worker, is_dead_here


@dataclass(frozen=True, slots=True)
class LedgerInDatabase:
    """The ledger of a source as the database has it, and under which sources it knows the data."""

    state: AnchorPoint
    sources: tuple[str, ...]
    anchors: tuple[str, ...]
    """The names of the anchors that it was used with."""
    anchored: int
    """The entry that each of them certainly has."""


def ledger_in_database(connection: Connection, *, source_id: str, fingerprint: str | None) -> LedgerInDatabase:
    """The ledger in force of a source. Refuses ``ledger-missing``, and ``ledger-damaged`` if its head is not that of its newest entry."""
    answered = connection.ask(
        f"SELECT agrees, known, (state).anchors, (state).anchored, {rows.STATE_OF_OUTCOME} FROM lapwing.find_ledger(%s, %s)",
        [source_id, fingerprint],
        again=True,
    )
    if not answered:
        raise missing()
    agrees, sources, anchors, anchored, *columns = answered[0]
    if not agrees:
        raise LedgerError("ledger-damaged", "the ledger contradicts itself", hint="restore it, then open it with an override")
    return LedgerInDatabase(state=rows.state_of(columns), sources=tuple(sources or ()), anchors=tuple(anchors), anchored=anchored)


def require_anchors(at: LedgerInDatabase, kept: Mapping[str, AnchorPoint | None]) -> None:
    """Every anchor that this ledger was used with is here, and none of them is an older copy of itself.

    No override helps: nobody here can know what a missing anchor has seen. ``lapwing.ledger.postgres.anchoring`` is for one that
    is lost for good.
    """
    missing_names = [name for name in at.anchors if kept.get(name) is None]
    if missing_names:
        message = f"the ledger was used with anchors that are not here: {', '.join(missing_names)}"
        raise LedgerError("anchor-missing", message, hint=ANCHORS_HINT)
    for name in at.anchors:
        point = kept[name]
        if point is not None and point.ledger_id == at.state.ledger_id and point.entries < at.anchored:
            message = f"the anchor {name} is an older state of itself, or a copy that others do not write to"
            raise LedgerError("anchor-behind", message, hint=ANCHORS_HINT)


def disagreements(
    at: LedgerInDatabase, kept: Mapping[str, AnchorPoint | None], *, fingerprint: str | None, holds: Callable[[AnchorPoint], bool]
) -> list[LapwingError]:
    """Everything in which this ledger is not the one that was anchored (``kept``), in its newest state, for this data."""
    hint = "if this is meant, the data owner can open it with an override and a reason"
    problems: list[LapwingError] = []
    points = [point for point in kept.values() if point is not None]
    if any(point.ledger_id != at.state.ledger_id for point in points):
        problems.append(LedgerError("ledger-superseded", "the source has another ledger by now", hint=hint))
    elif not all(holds(point) for point in points):
        problems.append(rolled_back())
    elif not kept.keys() <= set(at.anchors):
        problems.append(LedgerError("ledger-unregistered", "an anchor given here is not one of the ledger's", hint=hint))
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
    return lost_between(common, memory.spent)


def dead_workers(connection: Connection, ledger_id: str) -> list[str]:
    """The epochs of workers that are certainly gone, as far as can be told from here."""
    live = connection.ask("SELECT epoch, boot, namespace, pid, started FROM lapwing.live_workers(%s)", [ledger_id], again=True)
    return [fields[0] for fields in live if is_dead_here(Worker(*fields))]
