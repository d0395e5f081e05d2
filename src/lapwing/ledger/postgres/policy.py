"""What owners decide about a ledger on PostgreSQL: who may ask, how much at once, and what needs two people.

Every act is one statement, is recorded in the history with its author, and is anchored. The caller has authenticated the names of people;
this module only compares them. A decision of two owners also needs sessions of two database roles. Sub-budgets and limits can only refuse
more than the budget of the data set does: the promise does not depend on them, and their sum may exceed the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from lapwing.kernel.accounting import Budget, Cost
from lapwing.ledger import limits
from lapwing.ledger.amounts import budget_text, budget_value
from lapwing.ledger.postgres import blocks
from lapwing.ledger.postgres.ledger import OWNER, PostgresLedger
from lapwing.ledger.postgres.outcomes import refusal
from lapwing.ledger.postgres.rows import cost_of

_SHARE_COLUMNS = ("loss_total", "delta_total", "pure_total", "loss_spent", "delta_spent", "pure_spent")
SHARE = ", ".join(f"{column}::pg_catalog.text" for column in _SHARE_COLUMNS)
"""The columns of a sub-budget, for :func:`share_of`."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a data set; None is no limit. Amounts are in ledger units.

    In an account with an order, a limit may have a loss and a pure amount: a cost must be within one of them.
    """

    statement_loss_max: int | None = None
    """The most that one statement may cost."""
    day_loss_max: int | None = None
    """The most that all analysts together may spend in one day (UTC, the server's clock). The day never goes back."""
    answers_shared: bool = True
    """Whether every admitted analyst may see the answers that others paid for."""
    lost_workers_max: int = 10
    """How many workers with open reservations may be lost, within the time below and since the owner last re-opened the data set, before it
    closes."""
    lost_workers_seconds: int = 315_360_000
    """Ten years by default: with a shorter time, more workers can be lost one after the other."""
    statement_pure_max: int | None = None
    day_pure_max: int | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """A sub-budget of an analyst or a group, and what is spent of it; None is no limit."""

    loss_total: int | None
    delta_total: int | None
    spent: Cost
    pure_total: int | None = None
    """In an account with an order, spending must be within this or within ``loss_total``."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change that awaits the decision of a person other than ``by``."""

    proposal_id: int
    kind: str
    """``budget``, ``ceiling``, ``analyst``, ``anchor`` or ``cap``."""
    target: str
    """The analyst whose sub-budget changes, or the lost anchor; empty otherwise."""
    by: str
    budget: Budget | None
    """With a ``cap`` it is that of one person, and None removes the cap."""
    cost: Cost
    """The proposed totals."""
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
    pure_total: int | None = None,
    day_pure_max: int | None = None,
    suspended: bool = False,
    by: str = OWNER,
    reason: str = "",
) -> None:
    """Admit an analyst, or change the analyst's terms; ``suspended`` revokes the admission. Only admitted analysts may ask."""
    limits.require_name(analyst)
    if group is not None:
        limits.require_name(group)
    ledger.act(
        "lapwing.set_analyst(%s, %s, %s, %s, %s::pg_catalog.numeric, %s::pg_catalog.numeric, %s::pg_catalog.numeric, %s,"
        " %s::pg_catalog.numeric, %s::pg_catalog.numeric)",
        [
            *(analyst, group, suspended, loss_total, delta_total, day_loss_max),
            *(_detail("suspend" if suspended else "admit", by, reason), pure_total, day_pure_max),
        ],
    )


def set_group(
    ledger: PostgresLedger,
    group: str,
    *,
    loss_total: int | None,
    delta_total: int | None = None,
    pure_total: int | None = None,
    by: str = OWNER,
    reason: str = "",
) -> None:
    """Create a group of analysts with its own sub-budget, or change the sub-budget; never below what the group has spent."""
    limits.require_name(group)
    detail = _detail(f"group {group}", by, reason)
    call = "lapwing.set_group(%s, %s, %s::pg_catalog.numeric, %s::pg_catalog.numeric, %s, %s::pg_catalog.numeric)"
    ledger.act(call, [group, loss_total, delta_total, detail, pure_total])


def set_limits(ledger: PostgresLedger, to: Limits, *, by: str = OWNER, reason: str = "") -> None:
    """Replace the limits of the data set."""
    ledger.change(
        "lapwing.set_limits(%s, %s::pg_catalog.numeric, %s::pg_catalog.numeric, %s, %s, %s, %s, %s::pg_catalog.numeric,"
        " %s::pg_catalog.numeric)",
        [
            to.statement_loss_max,
            to.day_loss_max,
            to.answers_shared,
            to.lost_workers_max,
            to.lost_workers_seconds,
            _detail("limits", by, reason),
            to.statement_pure_max,
            to.day_pure_max,
        ],
    )


def propose_budget(ledger: PostgresLedger, to: Budget, *, by: str, reason: str) -> int:
    """Propose another budget within the ceiling; returns the number of the proposal."""
    limits.require_within(to, ledger.state().ceiling)
    return _propose(ledger, "budget", by, to, reason)


def propose_ceiling(ledger: PostgresLedger, to: Budget, *, by: str, reason: str) -> int:
    """Propose to change the promise itself: after the approval it is the new ceiling."""
    limits.require_within(ledger.state().ceiling, to)
    return _propose(ledger, "ceiling", by, to, reason)


def propose_cap(ledger: PostgresLedger, to: Fraction | None, *, by: str, reason: str) -> int:
    """Propose another cap on what one person may lose over a year, or None to remove it: a weaker promise, so it takes two people."""
    state = ledger.state()
    if state.blocks is None:
        raise refusal("blocks-undeclared")
    return _propose(ledger, "cap", by, replace(state.blocks.terms, person_cap=to).person_budget(state.budget), reason)


def request_budget(ledger: PostgresLedger, analyst: str, to: Cost, *, reason: str) -> int:
    """An analyst asks for a sub-budget of these totals; an owner decides."""
    limits.require_name(analyst)
    limits.require_detail(reason)
    number = ledger.act(
        "lapwing.request_share(%s, %s, %s::pg_catalog.numeric, %s::pg_catalog.numeric, %s, %s::pg_catalog.numeric)",
        [analyst, to.loss, to.delta, reason, to.pure],
        result="o_proposal_id",
    )
    return int(number)


def approve(ledger: PostgresLedger, proposal_id: int, *, by: str, reason: str = "") -> None:
    """Approve a proposal and carry it out. Refuses the proposer (``second-person``)."""
    _decide(ledger, proposal_id, by, True, reason)


def deny(ledger: PostgresLedger, proposal_id: int, *, by: str, reason: str = "") -> None:
    """End a proposal without carrying it out."""
    _decide(ledger, proposal_id, by, False, reason)


def proposals(ledger: PostgresLedger) -> tuple[Proposal, ...]:
    """The newest hundred, newest first."""
    rows = ledger.connection.look(
        "SELECT proposal_id, kind, target, proposed_by, budget, loss_total::text, delta_total::text, pure_total::text,"
        " reason, state"
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
            cost=cost_of(loss, delta, pure),
            reason=reason,
            state=state,
        )
        for number, kind, target, by, budget, loss, delta, pure, reason, state in rows
    )


def analyst_share(ledger: PostgresLedger, analyst: str) -> Share | None:
    """The sub-budget of an admitted analyst."""
    rows = ledger.connection.ask(f"SELECT {SHARE} FROM lapwing.share_of(%s, %s)", [ledger.ledger_id, analyst], again=True)
    return share_of(rows[0]) if rows else None


def group_share(ledger: PostgresLedger, group: str) -> Share | None:
    """The sub-budget of a group."""
    statement = f"SELECT {SHARE} FROM lapwing.analyst_group WHERE ledger_id = %s AND group_name = %s"
    rows = ledger.connection.look(statement, [ledger.ledger_id, group])
    return share_of(rows[0]) if rows else None


def share_of(columns: Sequence[Any]) -> Share:
    """A sub-budget from its columns."""
    loss, delta, pure, *spent = columns
    return Share(loss_total=amount_of(loss), delta_total=amount_of(delta), pure_total=amount_of(pure), spent=cost_of(*spent))


def amount_of(text: str | None) -> int | None:
    """An amount from its column."""
    return None if text is None else int(text)


def _propose(ledger: PostgresLedger, kind: str, by: str, to: Budget | None, reason: str) -> int:
    limits.require_name(by)
    limits.require_detail(reason)
    fields = ["", "0", "0"] if to is None else [budget_text(to), to.loss_total, to.delta_total]
    return int(
        ledger.act(
            "lapwing.propose(%s, %s, '', %s, %s, %s::pg_catalog.numeric, %s::pg_catalog.numeric, %s, %s::pg_catalog.numeric)",
            [kind, by, *fields, reason, None if to is None else to.pure_total],
            result="o_proposal_id",
        )
    )


def _decide(ledger: PostgresLedger, proposal_id: int, by: str, approved: bool, reason: str) -> None:
    limits.require_name(by)
    limits.require_detail(reason)
    state = ledger.state()
    for proposal in proposals(ledger):
        # The database compares the totals when it makes the change; account, deltas and epsilon are compared here, against the ceiling
        # that the database then requires.
        if approved and proposal.proposal_id == proposal_id and proposal.kind == "cap" and state.blocks is not None:
            cap = None if proposal.budget is None else proposal.budget.epsilon
            step = blocks.step_text(state.blocks.terms, replace(state.blocks.terms, person_cap=cap))
            reason = f"{step}: {reason}" if reason else step
        elif approved and proposal.proposal_id == proposal_id and proposal.budget is not None:
            if proposal.kind == "budget":
                limits.require_within(proposal.budget, state.ceiling)
                step = limits.step_text(state.budget, proposal.budget)
            else:
                limits.require_within(state.ceiling, proposal.budget)
                step = limits.step_text(state.ceiling, proposal.budget)
            reason = f"{step}: {reason}" if reason else step
    ledger.act("lapwing.decide(%s, %s, %s, %s, %s, %s)", [proposal_id, by, approved, budget_text(state.ceiling), reason])


def _detail(what: str, by: str, reason: str) -> str:
    limits.require_name(by)
    limits.require_detail(reason)
    return f"{what}, by {by}: {reason}" if reason else f"{what}, by {by}"
