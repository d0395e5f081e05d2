"""The norm histograms from which a statement's bounds are chosen: bought for a part of its price, or found in the ledger.

Histograms are charged and stored like any answer. A bought histogram serves later statements at any price,
provided that it cost at least half of what they would pay for it. The choice among several never changes afterwards: it is the
oldest, so that the same statement has the same plan, and its answer is found again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from lapwing.asking.older_charges import record_of
from lapwing.asking.options import AskRequest
from lapwing.contribution.histograms import histogram_of, name_of, norms_plan
from lapwing.contribution.model import ContributionModel, fitted_norms
from lapwing.curator.charged_release import ChargedRelease
from lapwing.curator.curator import Curator
from lapwing.kernel.accounting import LOSS_UNITS, Cost
from lapwing.kernel.certify import Certified
from lapwing.kernel.ir import UnitNorms
from lapwing.ledger.protocol import Bought
from lapwing.ledger.purchases import AskedTerms, PurchaseKind, PurchaseRecord
from lapwing.planning.noise_choice import loss_of_price, pure_facts, pure_share

ENOUGH = Fraction(1, 2)
"""A histogram bought for this share of the present price is accurate enough."""
NORMS_MARK = "norms "
"""The prefix of a histogram's line in the history."""
LOOKED_THROUGH_MAX = 1_000
"""Newest answers of the ledger that are searched for histograms."""


@dataclass(frozen=True, slots=True)
class PricedNorms:
    """The histograms that a statement wants, each with its plan, or as it was bought before."""

    wanted: tuple[UnitNorms, ...] = ()
    plans: tuple[Certified, ...] = ()
    loss: Fraction = Fraction(0)
    """The maximum cost of all of them; the rest of the price is the answer's, even if they were bought before."""
    found: Mapping[UnitNorms, ChargedRelease] = field(default_factory=dict)

    @property
    def one_in(self) -> int:
        """The sampling rate: they are measured on one unit in this many."""
        return max((norms.one_in for norms in self.wanted), default=1)

    def to_dict(self, first: Cost) -> dict[str, Any]:
        """For JSON; ``first`` is the cost of those still to be bought."""
        return {"bought": not self.missing(), "loss": first.loss / LOSS_UNITS, "one_in": self.one_in}

    def missing(self) -> list[tuple[UnitNorms, Certified]]:
        """The histograms that are still to be bought."""
        return [(norms, plan) for norms, plan in zip(self.wanted, self.plans, strict=True) if norms not in self.found]

    def digests(self) -> tuple[str, ...]:
        """Of the plans of all of them, in their order, those that have still to be bought included."""
        pairs = zip(self.wanted, self.plans, strict=True)
        return tuple(self.found[norms].released.digest if norms in self.found else plan.digest for norms, plan in pairs)

    def cost(self) -> Cost:
        """The cost of those still to be bought."""
        return sum((plan.cost for _, plan in self.missing()), Cost.zero())


def priced_norms(curator: Curator, wanted: Sequence[UnitNorms], *, price: Fraction, analyst: str, pure: bool) -> PricedNorms:
    """The cost of the wanted histograms as a part of this price, and those that this analyst has already. Free.

    With ``pure``, in an account with an order: they have Laplace noise, as the statement they are for.
    """
    share = curator.prepared.declared_budget.norms_share
    units = int(price * share * LOSS_UNITS / max(len(wanted), 1))
    if not wanted or not units:
        return PricedNorms()
    loss = Fraction(units, LOSS_UNITS)
    facts, amount = curator.facts, loss
    if facts.order is not None and pure:
        facts, amount = pure_facts(facts), pure_share(curator.prepared.budget(), loss)
    plans = tuple(curator.preview(norms_plan(norms, facts, loss=amount)) for norms in wanted)
    stored = ((norms, curator.stored(plan, analyst=analyst)) for norms, plan in zip(wanted, plans, strict=True))
    found = {norms: answered for norms, answered in stored if answered is not None}
    found |= _bought_before(curator, [norms for norms in wanted if norms not in found], units, analyst)
    return PricedNorms(tuple(wanted), plans, loss * len(wanted), found)


def _bought_before(curator: Curator, wanted: Sequence[UnitNorms], units: int, analyst: str) -> dict[UnitNorms, ChargedRelease]:
    """The oldest of these histograms that were bought for another, sufficient price."""
    names = {name_of(norms): norms for norms in wanted}
    if not names:
        return {}
    before = curator.released_before(lambda bought: _norms_name(bought) in names, limit=LOOKED_THROUGH_MAX, analyst=analyst)
    budget = curator.prepared.budget()
    enough = ((bought, answered) for bought, answered in before if loss_of_price(budget, bought.cost) >= ENOUGH * units)
    return {names[_norms_name(bought)]: answered for bought, answered in enough}


def _norms_name(bought: Bought) -> str:
    """The name of a histogram; empty where something else was bought."""
    record = record_of(bought)
    return record.name if record.kind is PurchaseKind.NORMS else ""


def norm_prices(curator: Curator, wanted: Sequence[UnitNorms], *, analyst: str) -> tuple[Fraction, ...]:
    """The prices at which any of these histograms were bought, the newest first. Free."""
    names = {name_of(norms) for norms in wanted}
    if not names or curator.ledger.balance().closed:
        return ()
    version, budget = curator.facts.version, curator.prepared.budget()
    kind = PurchaseKind.NORMS
    found = curator.ledger.bought(version=version, limit=LOOKED_THROUGH_MAX, analyst=analyst, kind=kind, begins=NORMS_MARK)
    losses = dict.fromkeys(loss_of_price(budget, bought.cost) for bought in found if _norms_name(bought) in names)
    share = curator.prepared.declared_budget.norms_share
    return tuple(Fraction(loss * len(wanted), LOSS_UNITS) / share for loss in losses)


_OF_NORMS = "/norms-"
DIGITS_OF_NAME = 16
"""The part of a plan's digest in the name under which a request buys it."""


def buy_norms(
    curator: Curator, priced: PricedNorms, *, request: AskRequest, terms: AskedTerms | None
) -> tuple[dict[UnitNorms, ContributionModel], Cost]:
    """All wanted histograms, fitted, and what was paid for those that were missing."""
    charged, answers = Cost.zero(), dict(priced.found)
    for norms, plan in priced.missing():
        # Named by its digest, not its place: a request may buy finer ones later, and a repeated request misses fewer.
        name = None if request.request_id is None else f"{request.request_id}{_OF_NORMS}{plan.digest[:DIGITS_OF_NAME]}"
        record = PurchaseRecord(PurchaseKind.NORMS, parent=request.request_id or "", name=name_of(norms), terms=terms)
        summary = summary_of(norms, request.sql)
        answered = curator.answer(plan.plan, summary=summary, purchase=record, analyst=request.analyst, request_id=name)
        charged = charged if answered.free else charged + plan.cost
        answers[norms] = answered
    return fits_of(curator, answers), charged


def is_norms_of(name: str, request_id: str) -> bool:
    """Whether a charge of this name bought norms for this request."""
    return name.startswith(f"{request_id}{_OF_NORMS}")


def fits_of(curator: Curator, answers: Mapping[UnitNorms, ChargedRelease]) -> dict[UnitNorms, ContributionModel]:
    """Fitted norms of released histograms."""
    return {norms: fitted_norms(histogram_of(norms, item.released.tables[0], curator.facts)) for norms, item in answers.items()}


def summary_of(norms: UnitNorms, sql: str) -> str:
    """The line of a histogram in the history: its name, which is independent of its cost, and the statement that first bought it."""
    return f"{NORMS_MARK}{name_of(norms)}: {sql}"
