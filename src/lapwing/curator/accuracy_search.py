"""Asking for an accuracy: pilots, the solved price and the answer, one after another.

Each step is decided by :func:`lapwing.curator.accuracy_targets.next_step` from public facts and releases. Nothing is refused once
something was charged: what a pilot released is then the answer, with a note.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import assert_never

from lapwing.answers.budget import epsilon_of_cost, epsilon_of_loss
from lapwing.answers.number_format import percent
from lapwing.curator.accuracy_targets import (
    PILOTS_MAX,
    Before,
    Buy,
    Pilot,
    Serve,
    Step,
    Target,
    Unreachable,
    aimed,
    met_by,
    next_step,
)
from lapwing.curator.bound_statement import BoundStatement
from lapwing.curator.charged_release import Answered
from lapwing.curator.explanation import Explanation, explanation
from lapwing.curator.life import Curator
from lapwing.errors import BudgetRefused, LapwingError, Refused
from lapwing.kernel.accounting import LOSS_UNITS, Account, Cost, admits
from lapwing.ledger.protocol import Bought
from lapwing.planning.noise_choice import loss_of_price
from lapwing.planning.plan import Planned
from lapwing.sql.text.privacy_terms import ErrorAsked, ShareAsked
from lapwing.sql.text.privacy_words import Question, read_words

BEFORE_MAX = 1_000
"""Newest answers of the ledger that are looked through for the same statement."""
PILOT_MARK = "-- pilot"
"""What a pilot's line in the history starts with: an SQL comment, so that it is still the same statement."""


@dataclass(frozen=True, slots=True)
class Hit:
    """What is answered, what was charged for it all together, and what should be said about it."""

    planned: Planned
    answered: Answered
    """The release that is shown, and the charge that paid for it."""
    cost: Cost
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Aim:
    """A statement asked for an accuracy. ``sql`` is its text as written, ``question`` that without Lapwing's words."""

    curator: Curator
    analyst: str
    sql: str
    question: Question
    dialect: str
    bound: BoundStatement
    target: Target
    pilots: tuple[Fraction, ...]

    def reach(self, *, request_id: str | None) -> Hit:
        """Buy what the target needs, or refuse before anything is charged."""
        charged = Cost.zero()
        answers, before = self._bought_before()
        for _ in range(len(self.pilots) + 1):
            step = self.next(before)
            if isinstance(step, Pilot):
                price = step.planned.certified.cost
                try:
                    pilot = self._piloted(step, request_id=request_id)
                except BudgetRefused as error:
                    if not charged.loss:
                        raise
                    return self._fallen_back(answers, before, charged, error.message)
                charged = charged if pilot.free else charged + price
                answers, before = (pilot, *answers), (Before(pilot.released, self._price(price), pilot=True), *before)
                continue
            match step:
                case Serve(found):
                    planned = self.bound.plan_at(Fraction(max(found.loss, 1), LOSS_UNITS))
                    reason = "the pilot is accurate enough" if charged.loss else "what was released before is accurate enough: free"
                    return Hit(planned, _answer_of(found, before, answers), charged, (f"asked for {self.words()}: {reason}",))
                case Buy(planned):
                    if charged.loss and not self._affordable(planned):
                        return self._fallen_back(answers, before, charged, self._too_dear(planned).message)
                    self._require_affordable(planned)
                    plan, summary = planned.certified.plan, self.sql
                    try:
                        answered = self.curator.answer(plan, summary=summary, analyst=self.analyst, request_id=request_id)
                    except BudgetRefused as error:
                        if not charged.loss:
                            raise
                        return self._fallen_back(answers, before, charged, error.message)
                    return self._bought(planned, answered, charged)
                case Unreachable():
                    if charged.loss:
                        return self._fallen_back(answers, before, charged, self._unreachable().message)
                    raise self._unreachable()
                case _:
                    assert_never(step)
        raise AssertionError("there are more pilots than losses of pilots")

    def next(self, before: Sequence[Before]) -> Step:
        """The next step after these releases."""
        if not aimed(self.bound.statement.post):
            hint = "ask for a count, a sum, an average or a ratio of them, or name an epsilon"
            raise Refused(
                "error-no-bar",
                "no column of this answer has an error bar that a price can be solved for",
                hint=hint,
                span=self.target.asked.span,
            )
        return next_step(self.bound.plan_at, self.bound.statement.post, self.target, before, self.pilots)

    def before(self) -> tuple[Before, ...]:
        """What was released for the same statement on this version: the same words apart from Lapwing's own, comments and white space."""
        return self._bought_before()[1]

    def _bought_before(self) -> tuple[tuple[Answered, ...], tuple[Before, ...]]:
        """The same, with the stored answers they come from, in the same order."""
        tokens, questions = self._tokens(self.question), dict[str, Question | None]()

        def is_same(summary: str) -> bool:
            question = questions[summary] = self._question_of(summary)
            return question is not None and self._tokens(question) == tokens

        bought = self.curator.released_before(is_same, limit=BEFORE_MAX, analyst=self.analyst)
        return tuple(answered for _, answered in bought), tuple(
            Before(
                answered.released,
                self._price(item.cost),
                item.summary.startswith(PILOT_MARK),
                self._was_for_target(item, questions[item.summary]),
            )
            for item, answered in bought
        )

    def _tokens(self, question: Question) -> tuple[tuple[str, str], ...] | None:
        from lapwing.sql.text.privacy_clause import statement_tokens

        return statement_tokens(question.statement, question.tokens, dialect=self.dialect)

    def _question_of(self, summary: str) -> Question | None:
        """The history also holds lines that are not statements."""
        try:
            words = read_words(summary, settings=self.curator.settings, dialect=self.dialect)
        except Refused:
            return None
        return words if isinstance(words, Question) else None

    def _was_for_target(self, item: Bought, question: Question | None) -> bool:
        """Whether it was bought for this target or a harder one."""
        if question is None or question.clause is None or item.summary.startswith(PILOT_MARK):
            return False
        asked, confidence = question.clause.asked, question.clause.confidence
        sure = self.curator.declaration.defaults.confidence if confidence is None else confidence.value
        match asked, self.target.asked:
            case (ErrorAsked(bought), ErrorAsked(wanted)) | (ShareAsked(bought), ShareAsked(wanted)):
                return bought <= wanted and sure >= self.target.confidence
            case _:
                return False

    def _piloted(self, step: Pilot, *, request_id: str | None) -> Answered:
        name = None if request_id is None else f"{request_id}/pilot-{step.number}"
        plan, summary = step.planned.certified.plan, f"{PILOT_MARK} {step.number} for this:\n{self.sql}"
        return self.curator.answer(plan, summary=summary, analyst=self.analyst, request_id=name)

    def _bought(self, planned: Planned, answered: Answered, charged: Cost) -> Hit:
        price, released = planned.certified.cost, answered.released
        total = charged if answered.free else charged + price
        note = f"asked for {self.words()}: the least price that reaches it is {self._amount(price)}"
        if charged.loss:
            note += f", after pilots for {self._amount(charged)}"
        met, bars = met_by(planned, released, self.bound.statement.post, self.target, confidence=self.target.confidence)
        notes = (note,) if met == bars else (note, f"{bars - met:,} of {bars:,} error bars came out longer than asked for")
        return Hit(planned, answered, total, notes)

    def _fallen_back(self, answers: Sequence[Answered], before: Sequence[Before], charged: Cost, why: str) -> Hit:
        """The best release there is, because something was charged already."""
        best = max(before, key=lambda item: item.loss)
        planned = self.bound.plan_at(Fraction(best.loss, LOSS_UNITS))
        notes = (f"asked for {self.words()}, NOT REACHED: {why}", "this is what the pilot released")
        return Hit(planned, _answer_of(best, before, answers), charged, notes)

    def _affordable(self, planned: Planned) -> bool:
        balance = self.curator.balance()
        return admits(balance.budget, spent=balance.spent, cost=planned.certified.cost)

    def _require_affordable(self, planned: Planned) -> None:
        if self.curator.ledger.find(planned.certified.digest, analyst=self.analyst) is None and not self._affordable(planned):
            raise self._too_dear(planned)

    def _too_dear(self, planned: Planned) -> LapwingError:
        left = self.curator.balance().remaining
        if planned.certified.cost.pure is None:
            left = Cost(loss=left.loss, delta=left.delta)
        message = f"{self.words()} costs {self._amount(planned.certified.cost)}, and {self._amount(left)} is left"
        return BudgetRefused("error-too-dear", message, hint="ask for a larger error, or for fewer groups", span=self.target.asked.span)

    def _unreachable(self) -> LapwingError:
        if isinstance(self.target.asked, ErrorAsked):
            message, hint = "no price is known that makes every error bar this short", "ask for a larger error, or name an epsilon"
        else:
            message = "some value, or what it is divided by, may be 0 as far as is known, and a share of nothing is nothing"
            hint = "ask for an error in numbers, for fewer groups, or name an epsilon"
        return Refused("error-unreachable", message, hint=hint, span=self.target.asked.span)

    def words(self) -> str:
        """The target in words."""
        asked = self.target.asked
        size = f"±{float(asked.half_width):g}" if isinstance(asked, ErrorAsked) else f"±{float(asked.share * 100):g}% of the value"
        return f"{size} at {percent(float(self.target.confidence))}"

    def _amount(self, cost: Cost) -> str:
        budget = self.curator.balance().budget
        epsilon = f"epsilon {epsilon_of_cost(budget, cost):.3g}"
        return epsilon if budget.account is Account.PURE else f"{epsilon} (rho {cost.loss / LOSS_UNITS:.3g})"

    def _price(self, cost: Cost) -> int:
        """The loss to plan for again what was bought at this cost."""
        return loss_of_price(self.bound.budget, cost)

    def explanation(self) -> Explanation:
        """What asking would do next, and its price. Free."""
        step = self.next(self.before())
        more: tuple[tuple[str, str], ...] = ()
        match step:
            case Serve(found):
                planned = self.bound.plan_at(Fraction(max(found.loss, 1), LOSS_UNITS))
                text, kind = "what was released before is accurate enough: free", "stored"
            case Buy(planned):
                text, kind = "solved: the price is the least that reaches it", "solved"
            case Pilot(planned, number):
                text, kind = f"pilot {number} comes first, at the price below; the rest is solved from what it releases", "pilot"
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
            self.bound.statement, planned, self.curator, confidence=self.target.confidence, analyst=self.analyst
        )
        first, *others = found_explanation.lines
        lines = (first, ("target", self.words()), ("accuracy", text), *more, *others)
        target = {"error": self.words(), "confidence": float(self.target.confidence), "step": kind}
        return replace(found_explanation, lines=lines, values={**found_explanation.values, "target": target})

    def _units(self, loss: Fraction) -> int:
        return int(loss * LOSS_UNITS)


def _answer_of(chosen: Before, before: Sequence[Before], answers: Sequence[Answered]) -> Answered:
    """The stored answer that a release comes from; the two lists go together."""
    return next(answered for one, answered in zip(before, answers, strict=True) if one is chosen)
