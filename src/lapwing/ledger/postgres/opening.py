"""Checks at the opening of a ledger on PostgreSQL: is it the anchored ledger, in its newest state, for this data?

This module only reads and compares; :mod:`lapwing.ledger.postgres.ledger` writes the owner's override.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass

from lapwing.errors import CatalogueError, LapwingError, LedgerError
from lapwing.kernel.accounting import Cost
from lapwing.kernel.blocks import BlockCost
from lapwing.ledger.amounts import budget_text, lost_between, ranges_text
from lapwing.ledger.postgres import rows
from lapwing.ledger.postgres.anchors import AnchorPoint, BlockSums, Milestone, rolled_back
from lapwing.ledger.postgres.blocks import cap_text
from lapwing.ledger.postgres.connection import ANCHORS_HINT, Connection
from lapwing.ledger.postgres.outcomes import missing
from lapwing.ledger.workers import Worker, is_dead_here


@dataclass(frozen=True, slots=True)
class LedgerInDatabase:
    """The ledger of a source in the database, and the sources under which the database knows the data."""

    state: AnchorPoint
    sources: tuple[str, ...]
    anchors: tuple[str, ...]
    """The names of the anchors with which it was used."""
    anchored: int
    """The entry that each of these anchors certainly has."""


def ledger_in_database(connection: Connection, *, source_id: str, fingerprint: str | None) -> LedgerInDatabase:
    """The ledger in force of a source. Refuses ``ledger-missing``, and ``ledger-damaged`` if its head is not its newest entry's."""
    answered = connection.ask(
        f"SELECT agrees, known, (state).anchors, (state).anchored, {rows.STATE_OF_OUTCOME} FROM lapwing.find_ledger(%s, %s)",
        [source_id, fingerprint],
        again=True,
    )
    if not answered:
        raise missing()
    agrees, sources, anchors, anchored, *columns = answered[0]
    if not agrees:
        raise LedgerError("ledger-damaged", "the ledger is inconsistent", hint="restore a backup, then open it with an override")
    return LedgerInDatabase(state=rows.state_of(columns), sources=tuple(sources or ()), anchors=tuple(anchors), anchored=anchored)


def require_anchors(at: LedgerInDatabase, kept: Mapping[str, AnchorPoint | None]) -> None:
    """Require that every anchor with which this ledger was used is available, and that none is an older copy of itself.

    An override does not help, because the state in a missing anchor is unknown. ``lapwing.ledger.postgres.anchoring`` removes an anchor
    that is lost for good.
    """
    missing_names = [name for name in at.anchors if kept.get(name) is None]
    if missing_names:
        message = f"the ledger was used with anchors that are not available here: {', '.join(missing_names)}"
        raise LedgerError("anchor-missing", message, hint=ANCHORS_HINT)
    for name in at.anchors:
        point = kept[name]
        if point is not None and point.ledger_id == at.state.ledger_id and point.entries < at.anchored:
            message = f"the anchor {name} is out of date, or a copy that others do not write to"
            raise LedgerError("anchor-behind", message, hint=ANCHORS_HINT)


def disagreements(
    at: LedgerInDatabase, kept: Mapping[str, AnchorPoint | None], *, fingerprint: str | None, holds: Callable[[AnchorPoint], bool]
) -> list[LapwingError]:
    """Every way in which this ledger differs from the one that was anchored (``kept``) for this data, in its newest state."""
    hint = "if this is intended, the data owner can open it with an override and a reason"
    problems: list[LapwingError] = []
    points = [point for point in kept.values() if point is not None]
    if any(point.ledger_id != at.state.ledger_id for point in points):
        problems.append(LedgerError("ledger-superseded", "the source now has another ledger", hint=hint))
    elif not all(holds(point) for point in points):
        problems.append(rolled_back())
    elif not kept.keys() <= set(at.anchors):
        problems.append(LedgerError("ledger-unregistered", "an anchor given here does not belong to the ledger", hint=hint))
    if fingerprint is not None and at.state.source_id not in at.sources:
        problems.append(CatalogueError("source-changed", "the source was registered for other data", hint=hint))
        if at.sources:
            problems.append(CatalogueError("source-registered", "another source is registered for the same data", hint=hint))
    return problems


def lost_since(milestones: Sequence[Milestone], memory: AnchorPoint, *, has: Callable[[int, str], bool]) -> Cost:
    """What an override charges again: all that ``memory`` spent after the newest milestone (newest first) that the database still has.

    What the database spent after that milestone is not deducted: from there, its history may differ.
    """
    common = _newest_common(milestones, has)
    return lost_between(Cost.zero() if common is None else common.spent, memory.spent)


def override_parameters(
    known: AnchorPoint,
    kept: AnchorPoint | None,
    milestones: Sequence[Milestone],
    anchors: Sequence[str],
    *,
    has: Callable[[int, str], bool],
) -> list[object]:
    """What ``lapwing.accept_override`` is told of a ledger that is behind ``kept``; nothing was lost if that is None.

    Every block that was ever charged is charged what all of them together lost, as far as its budget goes; so is every year of a person.
    """
    memory = known if kept is None else kept
    common = _newest_common(milestones, has)
    since = [common] if common is not None else []
    lost = lost_since(since, memory, has=lambda entries, head: True)
    parameters = [kept is not None, *astuple(lost), budget_text(memory.budget), budget_text(memory.ceiling), memory.closed, list(anchors)]
    if kept is None or kept.blocks is None:
        return [*parameters, None, None, None]
    before, after, hull = (since[0].sums if since else BlockSums()), kept.blocks.sums, kept.blocks.hull
    lost_of_blocks = lost_between(before.blocks, after.blocks)
    ranges = [] if hull is None or lost_of_blocks == Cost.zero() else [BlockCost(*hull, lost_of_blocks)]
    text = ranges_text(ranges, lost_between(before.persons, after.persons))
    return [*parameters, kept.blocks.terms.every, cap_text(kept.blocks.terms, kept.budget), text]


def _newest_common(milestones: Sequence[Milestone], has: Callable[[int, str], bool]) -> Milestone | None:
    return next((one for one in milestones if has(one.entries, one.head)), None)


def dead_workers(connection: Connection, ledger_id: str) -> list[str]:
    """The epochs of the workers that have certainly ended, as far as this process can tell."""
    live = connection.ask("SELECT epoch, boot, namespace, pid, started FROM lapwing.live_workers(%s)", [ledger_id], again=True)
    return [fields[0] for fields in live if is_dead_here(Worker(*fields))]
