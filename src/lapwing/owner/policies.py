"""Analysts, their terms, and proposals that need a second person: operations of owners and analysts on a ledger with roles.

Omitted values stay unchanged: admitting an analyst again never drops a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from lapwing.answers.display.budget import decimal_text, epsilon_of_cost
from lapwing.curator.curator import Balance, Curator
from lapwing.errors import CatalogueError, LedgerError
from lapwing.kernel.accounting import LOSS_UNITS, Budget, Cost, budget_for
from lapwing.ledger.connect import open_ledger
from lapwing.ledger.limits import LossLimit, declared_limit, limit_of_share
from lapwing.ledger.postgres import overview, policy
from lapwing.ledger.postgres.anchoring import anchor_names
from lapwing.ledger.postgres.connection import without_password
from lapwing.ledger.postgres.ledger import PostgresLedger

__all__ = [
    "LossLimit",
    "Policies",
    "admit_share",
    "limit_of_share",
    "own_terms",
    "policies",
    "request_share",
    "standing",
]
Amount = Callable[[int | None], int | None]
"""The new limit from the limit in force, in ledger units; None is no limit."""


LossAmount = Callable[[LossLimit], LossLimit]
"""The same for a loss."""


@dataclass(frozen=True, slots=True)
class Policies:
    """The policies of one data set, on a ledger in a database."""

    curator: Curator
    ledger: PostgresLedger

    @property
    def budget(self) -> Budget:
        """The budget in force."""
        return self.ledger.balance().budget

    def admit(
        self,
        analyst: str,
        *,
        group: str | None,
        leave_group: bool,
        loss: LossAmount,
        delta: Amount,
        day_loss: LossAmount,
        by: str,
        reason: str,
    ) -> None:
        """Admit an analyst, or change the analyst's terms. Without ``group`` and ``leave_group`` the group stays as it is.

        For a new analyst the daily limit is that of the catalogue, unless ``day_loss`` is given.
        """
        known = self._analyst(analyst)
        stays = known.group if known is not None and not leave_group else None
        in_all = loss(LossLimit(known.share.loss_total, known.share.pure_total) if known else LossLimit())
        usual = declared_limit(self.budget, self.curator.declaration.limits.per_day)
        in_a_day = day_loss(LossLimit(known.day_loss_max, known.day_pure_max) if known else usual)
        policy.admit(
            self.ledger,
            analyst,
            group=stays if group is None else group,
            loss_total=in_all.loss,
            delta_total=delta(known.share.delta_total if known else None),
            pure_total=in_all.pure,
            day_loss_max=in_a_day.loss,
            day_pure_max=in_a_day.pure,
            by=by,
            reason=reason,
        )

    def suspend(self, analyst: str, *, by: str, reason: str) -> None:
        """Suspend an analyst, who can then neither ask nor see stored answers."""
        known = self._analyst(analyst)
        if known is None:
            hint = "see `lapwing ledger status`"
            raise CatalogueError("analyst-never-admitted", "there is no analyst of this name to suspend", hint=hint)
        policy.admit(
            self.ledger,
            analyst,
            group=known.group,
            loss_total=known.share.loss_total,
            delta_total=known.share.delta_total,
            pure_total=known.share.pure_total,
            day_loss_max=known.day_loss_max,
            day_pure_max=known.day_pure_max,
            suspended=True,
            by=by,
            reason=reason,
        )

    def set_group(self, name: str, *, loss: LossAmount, delta: Amount, by: str, reason: str) -> bool:
        """Create or change a group of analysts with its own budget; returns whether the group existed."""
        known = next((one.share for one in overview.groups(self.ledger) if one.group == name), None)
        in_all = loss(LossLimit(known.loss_total, known.pure_total) if known else LossLimit())
        policy.set_group(
            self.ledger,
            name,
            loss_total=in_all.loss,
            delta_total=delta(known.delta_total if known else None),
            pure_total=in_all.pure,
            by=by,
            reason=reason,
        )
        return known is not None

    def set_limits(
        self,
        *,
        statement_loss: LossAmount,
        day_loss: LossAmount,
        shared: bool | None,
        lost_workers: int | None,
        lost_seconds: int | None,
        by: str,
        reason: str,
    ) -> bool:
        """Set limits of the data set; whether anything changed."""
        old = overview.limits_in_force(self.ledger)
        of_one = statement_loss(LossLimit(old.statement_loss_max, old.statement_pure_max))
        of_day = day_loss(LossLimit(old.day_loss_max, old.day_pure_max))
        new = replace(
            old,
            statement_loss_max=of_one.loss,
            statement_pure_max=of_one.pure,
            day_loss_max=of_day.loss,
            day_pure_max=of_day.pure,
            answers_shared=old.answers_shared if shared is None else shared,
            lost_workers_max=old.lost_workers_max if lost_workers is None else lost_workers,
            lost_workers_seconds=old.lost_workers_seconds if lost_seconds is None else lost_seconds,
        )
        if new != old:
            policy.set_limits(self.ledger, new, by=by, reason=reason)
        return new != old

    def propose_budget(self, epsilon: Fraction, *, by: str, reason: str) -> int:
        """Propose another budget within the ceiling; the number of the proposal."""
        return policy.propose_budget(self.ledger, self._budget_of(epsilon), by=by, reason=reason)

    def propose_ceiling(self, epsilon: Fraction, *, by: str, reason: str) -> int:
        """Propose a higher ceiling; the number of the proposal."""
        return policy.propose_ceiling(self.ledger, self._budget_of(epsilon), by=by, reason=reason)

    def propose_cap(self, epsilon: Fraction | None, *, by: str, reason: str) -> int:
        """Propose another cap on what one person may lose over a year, or None to remove it; the number of the proposal."""
        return policy.propose_cap(self.ledger, epsilon, by=by, reason=reason)

    def request(self, analyst: str, limit: LossLimit, *, reason: str) -> int:
        """Request a total share of this size; returns the number of the proposal."""
        share = policy.analyst_share(self.ledger, analyst)
        # Only the loss is requested; the delta for keys does not change, and without its own limit it is that of the data set.
        delta = self.budget.delta_total if share is None or share.delta_total is None else share.delta_total
        return policy.request_budget(self.ledger, analyst, Cost(loss=limit.loss or 0, delta=delta, pure=limit.pure), reason=reason)

    def approve(self, number: int, *, by: str, reason: str) -> None:
        """Carry out another person's proposal."""
        policy.approve(self.ledger, number, by=by, reason=reason)

    def deny(self, number: int, *, by: str, reason: str) -> None:
        """End a proposal without carrying it out."""
        policy.deny(self.ledger, number, by=by, reason=reason)

    def _analyst(self, name: str) -> overview.AnalystTerms | None:
        return next((one for one in overview.analysts(self.ledger) if one.analyst == name), None)

    def _budget_of(self, epsilon: Fraction) -> Budget:
        declared = self.curator.declaration.declared_budget
        return budget_for(epsilon=epsilon, delta=declared.delta, delta_keys_share=declared.delta_keys_share, order=declared.order)


@contextmanager
def policies(curator: Curator) -> Iterator[Policies]:
    """The policies of a data set; ``ledger-local`` if its ledger has none."""
    if curator.place.server is None:
        hint = "`lapwing ledger move` moves it into a database"
        raise LedgerError("ledger-local", "a local ledger has one user: it knows no analysts and no second person", hint=hint)
    ledger = open_ledger(curator.place, curator.declaration, create=False, signs=False)
    try:
        assert isinstance(ledger, PostgresLedger)
        yield Policies(curator, ledger)
    finally:
        ledger.disconnect()


def standing(curator: Curator) -> tuple[dict[str, Any], Balance]:
    """The location of a ledger, its spending, its analysts with their terms, and its proposals. Amounts are exact decimals."""
    ledger = open_ledger(curator.place, curator.declaration, create=False, signs=False)
    try:
        balance = ledger.balance()
        values = _common(curator, balance)
        if isinstance(ledger, PostgresLedger):
            values |= _terms(ledger, balance.budget)
        return values, balance
    finally:
        ledger.disconnect()


def own_terms(curator: Curator, analyst: str) -> dict[str, Any] | None:
    """One analyst's limit and spending; None if the ledger has no analysts, or not this one. Amounts are exact decimals."""
    ledger = curator.ledger
    share = policy.analyst_share(ledger, analyst) if isinstance(ledger, PostgresLedger) else None
    return None if share is None else _share(share, ledger.balance().budget)


def admit_share(curator: Curator, analyst: str, share: float | None, *, by: str, reason: str) -> None:
    """Let an analyst ask, for this share of the whole budget in all, from 0 to 1; without one, the present share stays."""
    with policies(curator) as office:
        limit = None if share is None else limit_of_share(office.budget, share)
        office.admit(
            analyst,
            group=None,
            leave_group=False,
            loss=lambda before: before if limit is None else limit,
            delta=lambda before: before,
            day_loss=lambda before: before,
            by=by,
            reason=reason,
        )


def request_share(curator: Curator, analyst: str, share: float, *, reason: str) -> int:
    """Ask the owners for this share of the whole budget, from 0 to 1; the number of the proposal."""
    with policies(curator) as office:
        return office.request(analyst, limit_of_share(office.budget, share), reason=reason)


def _common(curator: Curator, balance: Balance) -> dict[str, Any]:
    place, dataset = curator.place, curator.declaration.dataset
    return {
        "dataset": dataset.id,
        "database": None if place.server is None else without_password(place.server.database),
        "closed": balance.closed,
        "receipts": place.keys is not None,
        "budget": curator.view_of(balance).to_dict(),
        "ceiling": float(balance.ceiling.epsilon),
    }


def _terms(ledger: PostgresLedger, budget: Budget) -> dict[str, Any]:
    state, limits = ledger.state(), overview.limits_in_force(ledger)
    return {
        "entries": state.entries,
        "head": state.head,
        "anchors": list(anchor_names(ledger.connection, state.source_id)),
        "limits": {
            "per_statement": _loss(limits.statement_loss_max),
            "per_day": _loss(limits.day_loss_max),
            **_pure(budget, per_statement=limits.statement_pure_max, per_day=limits.day_pure_max),
            "answers_shared": limits.answers_shared,
            "lost_workers_max": limits.lost_workers_max,
            "lost_workers_seconds": limits.lost_workers_seconds,
        },
        "analysts": [
            {
                "analyst": one.analyst,
                "group": one.group,
                "suspended": one.suspended,
                **_share(one.share, budget),
                "per_day": _loss(one.day_loss_max),
                **_pure(budget, per_day=one.day_pure_max),
            }
            for one in overview.analysts(ledger)
        ],
        "groups": [{"group": one.group, **_share(one.share, budget)} for one in overview.groups(ledger)],
        "proposals": [
            {
                "number": one.proposal_id,
                "what": f"share of {one.target}" if one.kind == "analyst" else f"{one.kind} {one.target}".strip(),
                "to": _proposed(one, budget),
                "by": one.by,
                "reason": one.reason,
                "state": one.state,
            }
            for one in policy.proposals(ledger)
        ],
    }


def _proposed(proposal: policy.Proposal, budget: Budget) -> str:
    if proposal.kind == "anchor":
        return "lost"
    if proposal.kind == "cap" and proposal.budget is None:
        return "none"
    if proposal.budget is not None:
        return f"epsilon {float(proposal.budget.epsilon):g}"
    return f"epsilon {epsilon_of_cost(budget, proposal.cost):.4g}"


def _share(share: policy.Share, budget: Budget) -> dict[str, Any]:
    amounts = {"total": _loss(share.loss_total), "spent": _loss(share.spent.loss)}
    return amounts | _pure(budget, total=share.pure_total, spent=share.spent.pure)


def _pure(budget: Budget, **amounts: int | None) -> dict[str, str | None]:
    """The other side of an account with an order; empty for an account without one."""
    return {} if budget.order is None else {f"pure_{name}": _loss(units) for name, units in amounts.items()}


def _loss(units: int | None) -> str | None:
    return None if units is None else decimal_text(units, LOSS_UNITS)
