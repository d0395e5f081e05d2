"""Accuracy targets: buys pilots, solves for the price and buys the answer.

Each step is decided by :func:`lapwing.asking.accuracy_steps.next_step` from public facts and releases. Where bounds are chosen from norms,
those are bought first, as for a question at the default price; while the solved price is high enough to justify better ones, these
are bought and the price is solved again. Bars whose length depends on released values may still be too long: then the price is solved again
from them, three times at most. Nothing is refused once a pilot was charged: its release is then the answer, with a note.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import assert_never

from lapwing.answers.display.budget import epsilon_of_cost, epsilon_of_loss
from lapwing.answers.display.number_format import percent
from lapwing.asking.accuracy_steps import Buy, Pilot, PriorRelease, Serve, Step, Unreachable, next_step
from lapwing.asking.accuracy_targets import PILOTS_MAX, Target, aimed, met_by
from lapwing.asking.bound_statement import BoundStatement
from lapwing.asking.explaining.explanation import Explanation, explanation
from lapwing.asking.norm_histograms import PricedNorms, buy_norms, fits_of, norm_prices, priced_norms
from lapwing.asking.older_charges import record_of
from lapwing.asking.options import AskRequest
from lapwing.asking.purchase import Purchase
from lapwing.contribution.model import ContributionModel
from lapwing.curator.charged_release import ChargedRelease, replayed
from lapwing.curator.curator import Curator
from lapwing.errors import BudgetRefused, LapwingError, Refused
from lapwing.kernel.accounting import LOSS_UNITS, Account, Cost, admits
from lapwing.kernel.ir import UnitNorms
from lapwing.ledger.protocol import Bought
from lapwing.ledger.purchases import PurchaseKind, PurchaseRecord
from lapwing.planning.noise_choice import loss_of_price
from lapwing.planning.planned import PlannedStatement
from lapwing.sql.text.privacy_terms import ErrorTerm, ShareTerm
from lapwing.sql.text.privacy_words import Question, read_words

BEFORE_MAX = 1_000
"""Newest answers of the ledger that are searched for the same statement."""
NORMS_MAX = 4
"""Maximum number of purchases of norms for one question."""
NORMS_STEP = 10
"""Each purchase has at most this many times the loss of the one before: with better norms, less may be enough."""
CLEAR = 40.0
"""Norms of fewer units than this many times the noise of one bin show little more than where most units are, and are bought again."""
MISSED_MAX = 3
"""How often an answer with bounds from norms is bought again because its bars were too long."""
MISSED_STEP = Fraction(2)
"""Each time for at least this many times the loss: the release may not raise the solved price, and that one was tried."""
PILOT_MARK = "-- pilot"
"""The prefix of a pilot's line in the history: an SQL comment, so the statement stays the same."""


@dataclass(frozen=True, slots=True)
class AccuracySolver:
    """A statement with an accuracy target. ``request`` has its text as written, ``question`` the text without Lapwing's clauses."""

    curator: Curator
    request: AskRequest
    question: Question
    bound: BoundStatement
    target: Target
    pilots: tuple[Fraction, ...]
    price_usual: Fraction
    """The default loss of a question."""
    purchase: PurchaseRecord
    """What the ledger records of the statement, but for the histograms that its bounds are chosen from."""

    def reach(self) -> Purchase:
        """Buy what the target needs, or refuse before anything is charged. A repeated request resumes where it ended."""
        request_id = self.request.request_id
        price = self._first_price()
        norms = self._norms(price)
        self._require_first_steps_affordable(norms)
        fits, charged = self._buy_norms(norms)
        is_first = price == self.price_usual  # otherwise the earlier purchases are examined before more is bought
        while is_first and (better := self._price_of_clear_norms(price, fits)) is not None:
            norms = self._norms(better)
            fits, paid = self._buy_norms(norms)
            price, charged = better, charged + paid
        answers, before = self._bought_before(fits, request_id)
        is_begun = any(item.own for item in before)
        missed = [Fraction(item.loss, LOSS_UNITS) for item in reversed(before) if item.own and item.for_target]
        for _ in range((len(self.pilots) + 1) * NORMS_MAX + MISSED_MAX):
            step = self.next(before, fits)
            try:
                match step:
                    case Pilot(planned):
                        pilot = self._piloted(step, norms)
                        cost = planned.certified.cost
                        charged = charged if pilot.free else charged + cost
                        item = PriorRelease(pilot.released, self._price(cost), pilot=True, planned=planned)
                        answers, before = (pilot, *answers), (item, *before)
                    case Serve(found):
                        reason = "the pilot is accurate enough" if charged.loss else "what was released before is accurate enough: free"
                        planned = self._plan_of(found, fits)
                        return Purchase(planned, _answer_of(found, before, answers), charged, (f"asked for {self.words()}: {reason}",))
                    case Buy(planned):
                        if missed and (not fits or len(missed) > MISSED_MAX):
                            return self._answered_before(answers, before, charged, fits)
                        better = self._price_of_better_norms(planned, price)
                        if better is not None:
                            norms = self._norms(better)
                            fits, paid = self._buy_norms(norms)
                            price, charged = better, charged + paid
                            continue
                        if missed and Fraction(self._price(planned.certified.cost), LOSS_UNITS) < MISSED_STEP * missed[-1]:
                            planned = self.bound.plan_with(MISSED_STEP * missed[-1], fits)
                        self._require_affordable(planned)
                        name = request_id if request_id is None or not missed else f"{request_id}/again-{len(missed)}"
                        record, plan = replace(self.purchase, histograms=norms.digests()), planned.certified.plan
                        answered = self.curator.answer(
                            plan, summary=self.request.sql, purchase=record, analyst=self.request.analyst, request_id=name
                        )
                        hit, is_met = self._bought(planned, answered, charged)
                        if is_met or not fits or len(missed) == MISSED_MAX:
                            return hit
                        loss = self._price(planned.certified.cost)
                        missed.append(Fraction(loss, LOSS_UNITS))
                        charged = hit.cost
                        item = PriorRelease(answered.released, loss, for_target=True, planned=planned)
                        answers, before = (answered, *answers), (item, *before)
                    case Unreachable():
                        raise self._unreachable()
                    case _:
                        assert_never(step)
            except (BudgetRefused, Refused) as error:
                if not before or not (charged.loss or is_begun):
                    raise
                return self._fallen_back(answers, before, charged, error.message, fits)
        raise AssertionError("there are more pilots than losses of pilots")

    def _first_price(self) -> Fraction:
        """The price of the first norms: the usual one, or the highest for which finer norms have been bought."""
        most = self.price_usual * NORMS_STEP ** (NORMS_MAX - 1)
        prices = (price for price in self._norm_prices() if self.price_usual < price <= most and not self._norms(price).missing())
        return max(prices, default=self.price_usual)

    def _norm_prices(self) -> tuple[Fraction, ...]:
        """The prices at which norms for this statement were bought."""
        return norm_prices(self.curator, self.bound.plan_at(self.price_usual).wanted, analyst=self.request.analyst)

    def _norms(self, price: Fraction) -> PricedNorms:
        """The norms that bound a question at this price, if they were bought. Free."""
        planned = self.bound.plan_at(price)
        is_pure = planned.measured is not None and planned.measured.cost.pure is not None
        return priced_norms(self.curator, planned.wanted, price=price, analyst=self.request.analyst, pure=is_pure)

    def _whole_price(self, planned: PlannedStatement) -> Fraction:
        """The price whose remainder after norms is this plan's cost; at least the usual one."""
        share = self.curator.prepared.declared_budget.norms_share
        return max(Fraction(self._price(planned.certified.cost), LOSS_UNITS) / (1 - share), self.price_usual)

    def _price_of_clear_norms(self, price: Fraction, fits: Mapping[UnitNorms, ContributionModel]) -> Fraction | None:
        """The next price to buy norms for if those bought for ``price`` are mostly noise; otherwise None."""
        if all(fit.units() > CLEAR * math.sqrt(float(fit.variance.max())) for fit in fits.values()):
            return None
        return self._if_missing(price * NORMS_STEP, price)

    def _price_of_better_norms(self, planned: PlannedStatement, price: Fraction) -> Fraction | None:
        """The next price to buy norms for; None if those for ``price`` are good enough for this plan or cannot be improved."""
        return self._if_missing(min(price * NORMS_STEP, self._whole_price(planned)), price)

    def _if_missing(self, better: Fraction, price: Fraction) -> Fraction | None:
        better = min(better, self.price_usual * NORMS_STEP ** (NORMS_MAX - 1))
        is_missing = better > price and bool(self._norms(better).missing())
        return better if is_missing and better <= Fraction(self.curator.balance_for(self.bound.reads).remaining.loss, LOSS_UNITS) else None

    def _buy_norms(self, norms: PricedNorms) -> tuple[Mapping[UnitNorms, ContributionModel], Cost]:
        if not norms.wanted:
            return {}, Cost.zero()
        return buy_norms(self.curator, norms, request=self.request, terms=self.purchase.terms)

    def _require_first_steps_affordable(self, norms: PricedNorms) -> None:
        """Refuse norms whose pilot cannot be paid: norms alone are not an answer."""
        cost = norms.cost()
        if cost.loss:
            self._require_admitted(cost + self.bound.plan_at(self.pilots[0]).certified.cost)

    def _plan_of(self, item: PriorRelease, fits: Mapping[UnitNorms, ContributionModel]) -> PlannedStatement:
        return item.planned or self.bound.plan_with(Fraction(max(item.loss, 1), LOSS_UNITS), fits)

    def next(self, before: Sequence[PriorRelease], fits: Mapping[UnitNorms, ContributionModel]) -> Step:
        """The next step after these releases, with bounds from these norms."""
        if not aimed(self.bound.statement.post):
            hint = "ask for a count, a sum, an average or a ratio of them, or name an epsilon"
            raise Refused(
                "error-no-bar",
                "no column of this answer has an error bar that a price can be solved for",
                hint=hint,
                span=self.target.asked.span,
            )
        return next_step(lambda loss: self.bound.plan_with(loss, fits), self.bound.statement.post, self.target, before, self.pilots)

    def _bought_before(
        self, fits: Mapping[UnitNorms, ContributionModel], request_id: str | None = None
    ) -> tuple[tuple[ChargedRelease, ...], tuple[PriorRelease, ...]]:
        """The releases for the same statement on this version: the same text apart from Lapwing's clauses, comments and white space.

        Stored answers and their releases, in the same order. Where bounds are chosen from norms, only those whose plan is known: the
        clipping bias is not in a release.
        """
        tokens, questions = self._tokens(self.question), dict[str, Question | None]()

        def is_same(bought: Bought) -> bool:
            if record_of(bought).kind not in (PurchaseKind.STATEMENT, PurchaseKind.PILOT):
                return False
            question = questions[bought.summary] = self._question_of(bought.summary)
            return question is not None and self._tokens(question) == tokens

        bought = self.curator.released_before(is_same, limit=BEFORE_MAX, analyst=self.request.analyst)
        answers, before = list[ChargedRelease](), list[PriorRelease]()
        prices = self._norm_prices() if bought and fits else ()
        for item, answered in bought:
            planned = self._plan_bought(item, answered, prices) if fits else None
            if planned is None and fits:
                continue
            is_pilot, for_target = record_of(item).kind is PurchaseKind.PILOT, self._was_for_target(item, questions[item.summary])
            answers.append(answered)
            is_own = request_id is not None and self._is_part_of(request_id, answered)
            before.append(PriorRelease(answered.released, self._price(item.cost), is_pilot, for_target, planned, is_own))
        return tuple(answers), tuple(before)

    def _is_part_of(self, request_id: str, answered: ChargedRelease) -> bool:
        """Whether this request paid for it."""
        paid = self.curator.ledger.statement(answered.stored.charge_id)
        return paid.analyst == self.request.analyst and (paid.request_id == request_id or paid.request_id.startswith(f"{request_id}/"))

    def _plan_bought(self, item: Bought, answered: ChargedRelease, prices: Sequence[Fraction]) -> PlannedStatement | None:
        """The plan of an earlier purchase, if norms that were available then, bought at these prices, lead to the same plan.

        Coarser and finer norms may lead to the same bounds and to different estimates of the clipping bias: its own were the finest that
        existed, and any others would change its error bars.
        """
        loss = Fraction(self._price(item.cost), LOSS_UNITS)
        if item.purchase is not None and item.purchase.histograms:
            return self._plan_recorded(item, loss, item.purchase.histograms)
        share = self.curator.prepared.declared_budget.norms_share
        ladder = (self.price_usual * NORMS_STEP**times for times in range(NORMS_MAX))
        for price in sorted({loss / (1 - share), *ladder, *prices}, reverse=True):
            norms = self._norms(price)
            if norms.missing() or any(found.stored.charge_id > answered.stored.charge_id for found in norms.found.values()):
                continue
            planned = self.bound.plan_with(loss, fits_of(self.curator, norms.found))
            if planned.certified.digest == item.digest:
                return planned
        return None

    def _plan_recorded(self, item: Bought, loss: Fraction, digests: Sequence[str]) -> PlannedStatement | None:
        """The plan of something bought before, with the histograms it was bought with; None where it has another plan by now."""
        share = self.curator.prepared.declared_budget.norms_share
        wanted = self.bound.plan_at(loss / (1 - share)).wanted
        stored = [self.curator.ledger.find(digest, analyst=self.request.analyst) for digest in digests]
        found = [replayed(one) for one in stored if one is not None]
        if len(found) != len(wanted):
            return None
        planned = self.bound.plan_with(loss, fits_of(self.curator, dict(zip(wanted, found, strict=True))))
        return planned if planned.certified.digest == item.digest else None

    def _tokens(self, question: Question) -> tuple[tuple[str, str], ...] | None:
        from lapwing.sql.text.privacy_clause import statement_tokens

        return statement_tokens(question.statement, question.tokens, dialect=self.request.options.dialect)

    def _question_of(self, summary: str) -> Question | None:
        """The question in a line of the history, or None: the history also holds lines that are not statements."""
        try:
            words = read_words(summary, settings=self.curator.settings, dialect=self.request.options.dialect)
        except Refused:
            return None
        return words if isinstance(words, Question) else None

    def _was_for_target(self, item: Bought, question: Question | None) -> bool:
        """Whether it was bought for this target or a harder one."""
        if question is None or question.clause is None or record_of(item).kind is PurchaseKind.PILOT:
            return False
        asked, confidence = question.clause.asked, question.clause.confidence
        sure = self.curator.declaration.defaults.confidence if confidence is None else confidence.value
        if item.purchase is not None and item.purchase.terms is not None:  # as it was asked, whatever the default is now
            sure = Fraction(item.purchase.terms.confidence)
        match asked, self.target.asked:
            case (ErrorTerm(bought), ErrorTerm(wanted)) | (ShareTerm(bought), ShareTerm(wanted)):
                return bought <= wanted and sure >= self.target.confidence
            case _:
                return False

    def _piloted(self, step: Pilot, norms: PricedNorms) -> ChargedRelease:
        request = self.request
        name = None if request.request_id is None else f"{request.request_id}/pilot-{step.number}"
        plan, summary = step.planned.certified.plan, f"{PILOT_MARK} {step.number} for this:\n{request.sql}"
        record = replace(self.purchase, kind=PurchaseKind.PILOT, parent=request.request_id or "", histograms=norms.digests())
        return self.curator.answer(plan, summary=summary, purchase=record, analyst=request.analyst, request_id=name)

    def _bought(self, planned: PlannedStatement, answered: ChargedRelease, charged: Cost) -> tuple[Purchase, bool]:
        """The purchase, and whether all its bars are as short as requested."""
        price, released = planned.certified.cost, answered.released
        total = charged if answered.free else charged + price
        note = f"asked for {self.words()}: the least price that reaches it is {self._amount(price)}"
        if charged.loss:
            note += f", after pilots for {self._amount(charged)}"
        met, bars = met_by(planned, released, self.bound.statement.post, self.target, confidence=self.target.confidence)
        notes = (note,) if met == bars else (note, f"{bars - met:,} of {bars:,} error bars came out longer than asked for")
        return Purchase(planned, answered, total, notes), met == bars

    def _answered_before(
        self, answers: Sequence[ChargedRelease], before: Sequence[PriorRelease], charged: Cost, fits: Mapping[UnitNorms, ContributionModel]
    ) -> Purchase:
        """The last purchase of this request, with bars longer than requested: the maximum number of attempts was made."""
        last = next(item for item in before if item.own and item.for_target)
        return self._bought(self._plan_of(last, fits), _answer_of(last, before, answers), charged)[0]

    def _fallen_back(
        self,
        answers: Sequence[ChargedRelease],
        before: Sequence[PriorRelease],
        charged: Cost,
        why: str,
        fits: Mapping[UnitNorms, ContributionModel],
    ) -> Purchase:
        """The best available release, because something has been charged already."""
        best = max(before, key=lambda item: item.loss)
        planned = self._plan_of(best, fits)
        what = "what the pilot released" if best.pilot else "the best that was released"
        notes = (f"asked for {self.words()}, NOT REACHED: {why}", f"this is {what}")
        return Purchase(planned, _answer_of(best, before, answers), charged, notes)

    def _require_affordable(self, planned: PlannedStatement) -> None:
        if self.curator.ledger.find(planned.certified.digest, analyst=self.request.analyst) is None:
            self._require_admitted(planned.certified.cost)

    def _require_admitted(self, cost: Cost) -> None:
        balance = self.curator.balance_for(self.bound.reads)
        if admits(balance.budget, spent=balance.spent, cost=cost):
            return
        left = balance.remaining
        if cost.pure is None:
            left = Cost(loss=left.loss, delta=left.delta)
        message = f"{self.words()} costs {self._amount(cost)}, and {self._amount(left)} is left"
        raise BudgetRefused("error-too-dear", message, hint="ask for a larger error, or for fewer groups", span=self.target.asked.span)

    def _unreachable(self) -> LapwingError:
        if isinstance(self.target.asked, ErrorTerm):
            message, hint = "no price is known that makes every error bar this short", "ask for a larger error, or name an epsilon"
        else:
            message = "some value, or what it is divided by, may be 0 as far as is known, and a share of nothing is nothing"
            hint = "ask for an error in numbers, for fewer groups, or name an epsilon"
        return Refused("error-unreachable", message, hint=hint, span=self.target.asked.span)

    def words(self) -> str:
        """The target as text."""
        asked = self.target.asked
        size = f"±{float(asked.half_width):g}" if isinstance(asked, ErrorTerm) else f"±{float(asked.share * 100):g}% of the value"
        return f"{size} at {percent(float(self.target.confidence))}"

    def _amount(self, cost: Cost) -> str:
        budget = self.curator.balance().budget
        epsilon = f"epsilon {epsilon_of_cost(budget, cost):.3g}"
        return epsilon if budget.account is Account.PURE else f"{epsilon} (rho {cost.loss / LOSS_UNITS:.3g})"

    def _price(self, cost: Cost) -> int:
        """The loss from which the purchase with this cost is planned again."""
        return loss_of_price(self.bound.budget, cost)

    def explanation(self) -> Explanation:
        """The next step of the request and its price. Free."""
        price = self._first_price()
        norms = self._norms(price)
        fits = {} if norms.missing() else fits_of(self.curator, norms.found)
        step: Step = Pilot(self.bound.plan_at(self.pilots[0]), 1)
        if not norms.missing():
            step = self.next(self._bought_before(fits)[1], fits)
        more: tuple[tuple[str, str], ...] = ()
        match step:
            case Serve(found):
                planned, norms = self._plan_of(found, fits), PricedNorms()
                text, kind = "what was released before is accurate enough: free", "stored"
            case Buy(planned):
                better = self._price_of_better_norms(planned, price)
                norms = PricedNorms() if better is None else self._norms(better)
                again = ", and solved again with better norms" if better is not None else ""
                text, kind = f"solved: the price is the least that reaches it{again}", "solved"
            case Pilot(planned, number):
                first = "norms and " if norms.missing() else ""
                comes = "come" if norms.missing() else "comes"
                text, kind = f"{first}pilot {number} {comes} first, at the price below; the rest is solved from what is released", "pilot"
                prices = ", ".join(f"{epsilon_of_loss(self.curator.balance().budget, self._units(loss)):.3g}" for loss in self.pilots)
                more = (
                    (
                        "pilots",
                        f"at most {PILOTS_MAX}, at epsilon {prices}, while what they release says too little of how large values are",
                    ),
                )
            case Unreachable():
                raise self._unreachable()
            case _:
                assert_never(step)
        found_explanation = explanation(
            self.bound.statement, planned, self.curator, confidence=self.target.confidence, analyst=self.request.analyst, norms=norms
        )
        protects, *others = found_explanation.lines
        lines = (protects, ("target", self.words()), ("accuracy", text), *more, *others)
        target = {"error": self.words(), "confidence": float(self.target.confidence), "step": kind}
        return replace(found_explanation, lines=lines, values={**found_explanation.values, "target": target})

    def _units(self, loss: Fraction) -> int:
        return int(loss * LOSS_UNITS)


def _answer_of(chosen: PriorRelease, before: Sequence[PriorRelease], answers: Sequence[ChargedRelease]) -> ChargedRelease:
    """The stored answer that a release comes from; the two lists are parallel."""
    return next(answered for one, answered in zip(before, answers, strict=True) if one is chosen)
