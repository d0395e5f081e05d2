"""What owners decide about a ledger on PostgreSQL: who may ask, how much at once, and what needs two people.

Every act is one statement, is written into the history with who did it, and is anchored. The names of people are those that the caller has
authenticated; here they are compared, not checked. What two owners decide must also be decided in sessions of two roles of the database.
Sub-budgets and limits only ever refuse more than the budget of the data set does: the promise does not rest on them, and together they
may promise more than there is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lapwing.kernel.accounting import Budget, Cost
from lapwing.ledger import limits
from lapwing.ledger.amounts import budget_text, budget_value
from lapwing.ledger.postgres.ledger import OWNER, PostgresLedger

_AMOUNTS = "loss_total::pg_catalog.text, delta_total::pg_catalog.text, loss_spent::pg_catalog.text, delta_spent::pg_catalog.text"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a data set; None is no limit. ``loss`` is in ledger units."""

    statement_loss_max: int | None = None
    """What one statement may cost."""
    day_loss_max: int | None = None
    """What all analysts together may spend in one day (UTC, the server's clock). The day never goes back."""
    answers_shared: bool = True
    """Whether every admitted analyst may see what others paid for."""
    lost_workers_max: int = 10
    """How many workers may be lost, each with something reserved, since the owner last re-opened and within the time below, before the
    data set closes."""
    lost_workers_seconds: int = 315_360_000
    """Ten years: a shorter time lets more be lost, one after the other."""


@dataclass(frozen=True, slots=True)
class Share:
    """A sub-budget of an analyst or a group, and what is spent of it; None is no limit of its own."""

    loss_total: int | None
    delta_total: int | None
    spent: Cost


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change that somebody other than ``by`` decides."""

    proposal_id: int
    kind: str
    """``budget``, ``ceiling``, ``analyst`` or ``anchor``."""
    target: str
    """The analyst whose sub-budget it is, or the anchor that is lost; empty otherwise."""
    by: str
    budget: Budget | None
    cost: Cost
    """The totals that are asked for."""
    reason: str
    state: str


def admit(
    ledger: PostgresLedger,
    analyst: str,
    *,
    group: str | None = None,
    loss_total: int | None = None,
    delta_total: int | None = None,
    day_loss_max: int | None = None,
    suspended: bool = False,
    by: str = OWNER,
    reason: str = "",
) -> None:
    """Let an analyst ask, or change on what terms; ``suspended`` takes it back. Nobody may ask without having been admitted."""
    limits.require_name(analyst)
    if group is not None:
        limits.require_name(group)
    ledger.act(
        "lapwing.set_analyst(%s, %s, %s, %s, %s::pg_catalog.numeric, %s::pg_catalog.numeric, %s::pg_catalog.numeric, %s)",
        [analyst, group, suspended, loss_total, delta_total, day_loss_max, _detail("suspend" if suspended else "admit", by, reason)],
    )


def set_group(
    ledger: PostgresLedger, group: str, *, loss_total: int | None, delta_total: int | None = None, by: str = OWNER, reason: str = ""
) -> None:
    """Make a group of analysts with a sub-budget of its own, or change that; never below what it has spent."""
    limits.require_name(group)
    detail = _detail(f"group {group}", by, reason)
    ledger.act("lapwing.set_group(%s, %s, %s::pg_catalog.numeric, %s::pg_catalog.numeric, %s)", [group, loss_total, delta_total, detail])


def set_limits(ledger: PostgresLedger, to: Limits, *, by: str = OWNER, reason: str = "") -> None:
    """Replace the limits of the data set."""
    ledger.change(
        "lapwing.set_limits(%s, %s::pg_catalog.numeric, %s::pg_catalog.numeric, %s, %s, %s, %s)",
        [
            to.statement_loss_max,
            to.day_loss_max,
            to.answers_shared,
            to.lost_workers_max,
            to.lost_workers_seconds,
            _detail("limits", by, reason),
        ],
    )


def propose_budget(ledger: PostgresLedger, to: Budget, *, by: str, reason: str) -> int:
    """Propose another budget within the ceiling; gives the number of the proposal."""
    limits.require_within(to, ledger.state().ceiling)
    return _propose(ledger, "budget", "", by, budget_text(to), Cost(loss=to.loss_total, delta=to.delta_total), reason)


def propose_ceiling(ledger: PostgresLedger, to: Budget, *, by: str, reason: str) -> int:
    """Propose to change the promise itself: from its approval on it is that of the new ceiling."""
    limits.require_within(ledger.state().ceiling, to)
    return _propose(ledger, "ceiling", "", by, budget_text(to), Cost(loss=to.loss_total, delta=to.delta_total), reason)


def request_budget(ledger: PostgresLedger, analyst: str, to: Cost, *, reason: str) -> int:
    """An analyst asks for a sub-budget of these totals; an owner decides."""
    limits.require_name(analyst)
    limits.require_detail(reason)
    number = ledger.act(
        "lapwing.request_share(%s, %s, %s::pg_catalog.numeric, %s::pg_catalog.numeric, %s)",
        [analyst, to.loss, to.delta, reason],
        result="o_proposal_id",
    )
    return int(number)


def approve(ledger: PostgresLedger, proposal_id: int, *, by: str, reason: str = "") -> None:
    """Carry a proposal out. Refused to whoever proposed it (``second-person``)."""
    _decide(ledger, proposal_id, by, True, reason)


def deny(ledger: PostgresLedger, proposal_id: int, *, by: str, reason: str = "") -> None:
    """End a proposal without carrying it out."""
    _decide(ledger, proposal_id, by, False, reason)


def proposals(ledger: PostgresLedger) -> tuple[Proposal, ...]:
    """The newest hundred, newest first."""
    rows = ledger.connection.look(
        "SELECT proposal_id, kind, target, proposed_by, budget, loss_total::text, delta_total::text, reason, state"
        " FROM lapwing.proposal WHERE ledger_id = %s ORDER BY proposal_id DESC LIMIT 100",
        [ledger.ledger_id],
    )
    return tuple(
        Proposal(
            proposal_id=number,
            kind=kind,
            target=target,
            by=by,
            budget=budget_value(budget) if budget else None,
            cost=Cost(loss=int(loss), delta=int(delta)),
            reason=reason,
            state=state,
        )
        for number, kind, target, by, budget, loss, delta, reason, state in rows
    )


def analyst_share(ledger: PostgresLedger, analyst: str) -> Share | None:
    """The sub-budget of an admitted analyst."""
    return _share(ledger.connection.ask(f"SELECT {_AMOUNTS} FROM lapwing.share_of(%s, %s)", [ledger.ledger_id, analyst], again=True))


def group_share(ledger: PostgresLedger, group: str) -> Share | None:
    """The sub-budget of a group."""
    statement = f"SELECT {_AMOUNTS} FROM lapwing.analyst_group WHERE ledger_id = %s AND group_name = %s"
    return _share(ledger.connection.look(statement, [ledger.ledger_id, group]))


def _share(rows: list[tuple[Any, ...]]) -> Share | None:
    if not rows:
        return None
    loss_total, delta_total, loss, delta = rows[0]
    return Share(
        loss_total=None if loss_total is None else int(loss_total),
        delta_total=None if delta_total is None else int(delta_total),
        spent=Cost(loss=int(loss), delta=int(delta)),
    )


def _propose(ledger: PostgresLedger, kind: str, target: str, by: str, budget: str, cost: Cost, reason: str) -> int:
    limits.require_name(by)
    limits.require_detail(reason)
    return int(
        ledger.act(
            "lapwing.propose(%s, %s, %s, %s, %s, %s::pg_catalog.numeric, %s::pg_catalog.numeric, %s)",
            [kind, target, by, budget, cost.loss, cost.delta, reason],
            result="o_proposal_id",
        )
    )


def _decide(ledger: PostgresLedger, proposal_id: int, by: str, approved: bool, reason: str) -> None:
    limits.require_name(by)
    limits.require_detail(reason)
    state = ledger.state()
    for proposal in proposals(ledger):
        # The totals are compared where the change is made; what else a budget must keep (account, deltas, epsilon) is compared here,
        # against the ceiling that the change then insists on.
        if approved and proposal.proposal_id == proposal_id and proposal.budget is not None:
            if proposal.kind == "budget":
                limits.require_within(proposal.budget, state.ceiling)
            else:
                limits.require_within(state.ceiling, proposal.budget)
    ledger.act("lapwing.decide(%s, %s, %s, %s, %s, %s)", [proposal_id, by, approved, budget_text(state.ceiling), reason])


def _detail(what: str, by: str, reason: str) -> str:
    limits.require_name(by)
    limits.require_detail(reason)
    return f"{what}, by {by}: {reason}" if reason else f"{what}, by {by}"
