"""The ledger with its policies as mathematics: analysts and groups with sub-budgets, limits, days, two people, incidents, lost workers.

:mod:`tests.ledger.machine` has the model that both ledgers agree with; this one says what only the ledger on PostgreSQL has.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lapwing.kernel.accounting import Budget, Cost
from lapwing.ledger.postgres.policy import Limits

SECOND_PEOPLE = frozenset({"piet", "pia"})
"""Who use another role of the database than everybody else, and share it."""


@dataclass(frozen=True)
class Totals:
    """Limits; None is no limit, but of the pure amount: there it is a limit in which only the loss counts."""

    loss: int | None = None
    delta: int | None = None
    pure: int | None = None

    def allow(self, spent: Cost) -> bool:
        within_pure = self.pure is not None and spent.pure is not None and spent.pure <= self.pure
        return (self.loss is None or spent.loss <= self.loss or within_pure) and (self.delta is None or spent.delta <= self.delta)


@dataclass
class Account:
    """What somebody has spent, of what."""

    totals: Totals = Totals()
    spent: Cost = field(default_factory=Cost.zero)

    def pays(self, cost: Cost) -> bool:
        return self.totals.allow(self.spent + cost)

    def add(self, cost: Cost) -> None:
        self.spent += cost


@dataclass
class Day:
    """What was spent on the newest day there was; a day never comes back."""

    number: int | None = None
    spent: Cost = field(default_factory=Cost.zero)

    def on(self, today: int) -> Cost:
        return self.spent if self.number is not None and self.number >= today else Cost.zero()

    def add(self, today: int, cost: Cost) -> None:
        self.spent = self.on(today) + cost
        self.number = today if self.number is None else max(today, self.number)


@dataclass
class Analyst:
    account: Account
    group: str | None = None
    suspended: bool = False
    day_max: Totals = Totals()
    day: Day = field(default_factory=Day)


@dataclass
class Charge:
    analyst: str
    key: str
    digest: str
    cost: Cost
    epoch: str
    state: str = "reserved"
    payload: bytes | None = None


@dataclass
class Proposal:
    kind: str
    target: str
    by: str
    budget: Budget | None
    totals: Totals
    state: str = "open"


@dataclass
class PolicyModel:
    """Every method gives a refusal's code, ``done``, or what was asked for."""

    budget: Budget
    ceiling: Budget
    spent: Account = field(default_factory=Account)
    limits: Limits = field(default_factory=Limits)
    analysts: dict[str, Analyst] = field(default_factory=dict)
    groups: dict[str, Account] = field(default_factory=dict)
    charges: list[Charge] = field(default_factory=list)
    committed: list[Charge] = field(default_factory=list)
    """Those with an answer, in the order in which they got it."""
    proposals: list[Proposal] = field(default_factory=list)
    closed: bool = False
    today: int = 0
    day: Day = field(default_factory=Day)
    expired: set[str] = field(default_factory=set)
    """Epochs whose lease has run out, and that nobody has noticed yet."""
    ended: set[str] = field(default_factory=set)
    lost: int = 0
    """Workers lost with something reserved, since the data set was last re-opened."""

    def begin(self) -> None:
        """A worker begins: the dead are ended first."""
        for epoch in sorted(self.expired):
            self.end(epoch)

    def end(self, epoch: str, *, lost: bool = True) -> None:
        mine = [charge for charge in self.charges if charge.epoch == epoch and charge.state == "reserved"]
        for charge in mine:
            charge.state = "forfeited"
        self.expired.discard(epoch)
        self.ended.add(epoch)
        if lost and mine:
            self.lost += 1
            self.closed |= self.lost >= self.limits.lost_workers_max

    def reserve(self, epoch: str, analyst: str, key: str, digest: str, cost: Cost) -> str | bytes | int:
        """``worker-ended`` is the caller's to handle: it begins anew and asks again."""
        if cost.loss == 0:
            return "zero-cost"
        if epoch in self.ended:
            return "worker-ended"
        if self.closed:
            return "data-set-closed"
        who = self.analysts.get(analyst)
        if who is None or who.suspended:
            return "analyst-unknown"
        for charge in self.charges:
            if (charge.analyst, charge.key) == (analyst, key):
                return self._again(charge, digest)
        group = None if who.group is None else self.groups[who.group]
        limits = self.limits
        if not Totals(limits.statement_loss_max, None, limits.statement_pure_max).allow(cost):
            return "statement-limit"
        for day, day_max in ((self.day, Totals(limits.day_loss_max, None, limits.day_pure_max)), (who.day, who.day_max)):
            if not day_max.allow(day.on(self.today) + cost):
                return "day-limit"
        if not who.account.pays(cost):
            return "analyst-budget"
        if group is not None and not group.pays(cost):
            return "group-budget"
        if not _totals(self.budget).allow(self.spent.spent + cost):
            return "budget-exceeded"
        self.charges.append(Charge(analyst, key, digest, cost, epoch))
        for account in (self.spent, who.account, group):
            if account is not None:
                account.add(cost)
        self.day.add(self.today, cost)
        who.day.add(self.today, cost)
        return len(self.charges)

    def _again(self, charge: Charge, digest: str) -> str | bytes:
        if charge.digest != digest:
            return "request-mismatch"
        if charge.state == "reserved" and charge.epoch in self.expired:
            self.end(charge.epoch)
        if charge.payload is not None:
            return charge.payload
        return "request-in-progress" if charge.state == "reserved" else "request-forfeited"

    def commit(self, epoch: str, number: int, payload: bytes) -> str:
        charge = self.charges[number]
        if charge.epoch == epoch and charge.payload == payload:
            return "done"  # the same, sent again
        if charge.epoch != epoch or charge.state != "reserved" or epoch in self.ended:
            return "charge-not-open"
        charge.state, charge.payload = "committed", payload
        self.committed.append(charge)
        return "done"

    def forfeit(self, epoch: str, number: int, *, incident: bool) -> str:
        charge = self.charges[number]
        self.closed |= incident
        if charge.epoch != epoch or charge.state != "reserved":
            return "charge-not-open"
        charge.state = "forfeited"
        return "done"

    def find(self, digest: str, analyst: str | None) -> bytes | None:
        who = self.analysts.get(analyst or "")
        if analyst is not None and (self.closed or who is None or who.suspended):
            return None
        for charge in self.committed:
            if charge.digest == digest:
                if analyst is None or self.limits.answers_shared or charge.analyst == analyst:
                    return charge.payload
        return None

    def admit(self, name: str, group: str | None, totals: Totals, day_max: Totals, suspended: bool) -> str:
        before = self.analysts.get(name, Analyst(Account()))
        if not totals.allow(before.account.spent):
            return "budget-below-spent"
        if group is not None and group not in self.groups:
            return "group-unknown"
        before.account.totals = totals
        self.analysts[name] = Analyst(before.account, group, suspended, day_max, before.day)
        return "done"

    def set_group(self, name: str, totals: Totals) -> str:
        account = self.groups.get(name, Account())
        if not totals.allow(account.spent):
            return "budget-below-spent"
        account.totals = totals
        self.groups[name] = account
        return "done"

    def set_budget(self, to: Budget, *, two_people: bool = False) -> str:
        if to.epsilon > self.ceiling.epsilon:
            return "budget-above-ceiling"
        if not _totals(to).allow(self.spent.spent):
            return "budget-below-spent"
        if to.loss_total > self.budget.loss_total and not two_people:
            return "second-person"
        self.budget = to
        return "done"

    def propose(self, kind: str, target: str, by: str, budget: Budget | None, totals: Totals) -> str | int:
        if kind == "analyst" and (target not in self.analysts or self.analysts[target].suspended):
            return "analyst-unknown"
        if kind == "budget" and budget is not None and budget.epsilon > self.ceiling.epsilon:
            return "budget-above-ceiling"
        if kind == "ceiling" and budget is not None and budget.epsilon < self.ceiling.epsilon:
            return "budget-above-ceiling"
        self.proposals.append(Proposal(kind, target, by, budget, totals))
        return len(self.proposals)

    def decide(self, number: int, by: str, *, approve: bool) -> str:
        proposal = self.proposals[number]
        if approve and proposal.kind == "ceiling" and proposal.budget is not None and proposal.budget.epsilon < self.ceiling.epsilon:
            return "budget-above-ceiling"
        if proposal.state != "open":
            return "proposal-unknown"
        same_role = (proposal.by in SECOND_PEOPLE) == (by in SECOND_PEOPLE)
        if proposal.by == by or (approve and proposal.kind != "analyst" and same_role):
            return "second-person"
        said = "done"
        if approve and proposal.kind == "budget" and proposal.budget is not None:
            said = self.set_budget(proposal.budget, two_people=True)
        elif approve and proposal.kind == "ceiling" and proposal.budget is not None:
            self.ceiling = proposal.budget
        elif approve:
            account = self.analysts[proposal.target].account
            if proposal.totals.allow(account.spent):
                account.totals = proposal.totals
            else:
                said = "budget-below-spent"
        if said == "done":
            proposal.state = "approved" if approve else "denied"
        return said


def _totals(budget: Budget) -> Totals:
    return Totals(budget.loss_total, budget.delta_total, budget.pure_total)
