"""A statement whose subqueries decide which rows count: these are asked first, and their released answers are constants of the rest.

The price is that of the whole statement: every measured part gets the same share, and a statement that the budget cannot pay as a whole
is refused before anything is charged. Each part is charged and stored like any answer, so repeating the statement finds all of them
and is free. The decisions depend on released values only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from lapwing.answers.answer import Answer, CostView
from lapwing.answers.assembly import assemble
from lapwing.answers.display.budget import share_of_cost
from lapwing.answers.display.number_format import shortened
from lapwing.answers.released_values import released_rows
from lapwing.asking.accuracy_targets import Target
from lapwing.asking.bound_request import BoundRequest
from lapwing.asking.bound_statement import BoundStatement, bound_statement, planned_at_will
from lapwing.asking.explaining.explanation import PART_LENGTH_MAX, Explanation, payable, price_text
from lapwing.asking.options import Terms
from lapwing.asking.purchase import PriorCharge, Purchase
from lapwing.errors import Refused
from lapwing.kernel.accounting import LOSS_UNITS, Cost
from lapwing.kernel.blocks import BlocksRead, reach_of
from lapwing.ledger.purchases import PurchaseKind
from lapwing.planning.planned import PlannedStatement
from lapwing.sql.text.privacy_terms import Reuse
from lapwing.statements import DecidedRows, Statement

MARK = "first: "
"""The prefix of a part's line in the history. Without its statement its text may mean something else, so the line is not a statement."""


@dataclass(frozen=True, slots=True)
class _Ahead:
    """The price still to be paid, the first stage and the rest; ``is_decided`` if the whole first stage was bought before."""

    price: Cost
    first: tuple[BoundRequest, ...]
    rest: BoundRequest
    is_decided: bool


@dataclass(frozen=True, slots=True)
class StagedQuery:
    """A question with a first stage. ``supposed`` is the question with undecided parts, at the price of all parts."""

    supposed: BoundRequest

    def answer(self) -> Answer:
        """Buy the parts of the first stage in order, then the rest."""
        self._require_payable()
        decided: tuple[DecidedRows, ...] = ()
        paid, notes = Cost.zero(), []
        for number in range(len(self._first)):
            part = self._part(self._bound(decided).statement.first[number], number)
            bought = part.bought()
            rows = _rows(part, bought)
            decided, paid = (*decided, rows), paid + bought.cost
            notes.append(f"decided first, by an answer of {len(rows):,} row{'' if len(rows) == 1 else 's'}: {_text(part)}")
        return self._rest(decided).answer(PriorCharge(paid, tuple(notes)))

    def explained(self) -> Explanation:
        """The explanation: one price and every part."""
        ahead = self._plan_ahead()
        parts = [(_text(part), part.explained()) for part in ahead.first]
        return self._explanation(ahead.price, parts, ahead.rest.explained(), is_decided=ahead.is_decided)

    def _plan_ahead(self) -> _Ahead:
        """The price still to be paid and its parts, as known from earlier purchases."""
        decided: tuple[DecidedRows, ...] = ()
        price, parts = Cost.zero(), []
        for number in range(len(self._first)):
            part = self._part(self._bound(decided).statement.first[number], number)
            _require_few(part, self._share)
            cost, bought = _priced(part, self._share) if len(decided) == number else (self._quoted(part), None)
            price += cost
            parts.append(part)
            if bought is not None:
                decided = (*decided, _rows(part, bought))
        rest = self._rest(decided)
        is_decided = len(decided) == len(parts)
        return _Ahead(price + (_priced(rest, self._share)[0] if is_decided else self._quoted(rest)), tuple(parts), rest, is_decided)

    def _quoted(self, part: BoundRequest) -> Cost:
        """The maximum cost of an undecided part: all of its share."""
        planned = part.bound.checked_plan(self._share)
        if planned.measured is None:
            return Cost.zero()
        cost = planned.measured.cost
        return Cost(max(cost.loss, math.floor(self._share * LOSS_UNITS)), cost.delta, cost.pure)

    @property
    def terms(self) -> Terms:
        """The epsilon of the whole statement."""
        return self.supposed.terms

    @property
    def _first(self) -> tuple[Statement, ...]:
        return self.supposed.bound.statement.first

    @property
    def _share(self) -> Fraction:
        """The loss of one part."""
        goal, many = self.supposed.terms.goal, self._many
        if isinstance(goal, Target):
            message = "a statement in which an answer decides which rows count is not asked for an error"
            raise Refused("privacy-contradiction", message, hint="name an epsilon", span=goal.asked.span)
        units = math.floor(goal * LOSS_UNITS / many)
        return Fraction(units, LOSS_UNITS) if units else goal / many

    @property
    def _many(self) -> int:
        """The number of measured parts."""
        return 1 + sum(bool(statement.privates) for statement in self._first)

    def _bound(self, decided: tuple[DecidedRows, ...]) -> BoundStatement:
        whole = self.supposed
        dialect, scaled, moment = whole.request.options.dialect, whole.terms.scaled_groups, whole.bound.moment
        return bound_statement(whole.curator, whole.words, dialect=dialect, scaled_groups=scaled, moment=moment, decided=decided)

    def _part(self, statement: Statement, number: int) -> BoundRequest:
        """One part of the first stage."""
        span, whole = dict(statement.spans)[""], self.supposed
        bound = planned_at_will(whole.curator, statement, scaled_groups=whole.terms.scaled_groups)
        name = None if whole.request.request_id is None else f"{whole.request.request_id}/first-{number + 1}"
        request = replace(whole.request, sql=MARK + shortened(statement.text[span.start : span.end], PART_LENGTH_MAX), request_id=name)
        purchase = replace(whole.purchase, kind=PurchaseKind.FIRST, parent=whole.request.request_id or "")
        return replace(whole, request=request, bound=bound, terms=self._terms, purchase=purchase)

    def _rest(self, decided: tuple[DecidedRows, ...]) -> BoundRequest:
        return replace(self.supposed, bound=self._bound(decided), terms=self._terms)

    @property
    def _reads(self) -> tuple[BlocksRead, ...]:
        """Which blocks of time any part may read."""
        of_parts = [reach_of(query.source) for part in self._first for query in part.privates]
        return (*of_parts, *self.supposed.bound.reads)

    @property
    def _terms(self) -> Terms:
        """What each part is asked at; no release answers one."""
        return replace(self.supposed.terms, goal=self._share, reuse=Reuse.NEVER)

    def _require_payable(self) -> None:
        """Refuse, before anything is charged, a statement that cannot be paid or computed as a whole; earlier purchases are free."""
        price = self._plan_ahead().price
        if price != Cost.zero():
            self.supposed.curator.require_payable(self.supposed.request.analyst, price, self._reads)

    def _explanation(self, price: Cost, parts: list[tuple[str, Explanation]], rest: Explanation, *, is_decided: bool) -> Explanation:
        curator = self.supposed.curator
        balance = curator.balance_for(self._reads)
        cost, many = CostView.of(price, balance.budget, free=price == Cost.zero()), self._many
        text = price_text(curator, balance, price, stored=price == Cost.zero())
        lines = [rest.lines[0], ("price", text)]
        lines.append(("decides", f"answers that decide which rows count come first; each of {many} parts gets 1/{many} of the price"))
        for number, (sql, part) in enumerate(parts, start=1):
            lines += [(f"first {number}" if len(parts) > 1 else "first", sql), *part.lines[2:]]
        constants = (
            "with these values, bought before, as constants"
            if is_decided
            else "with what that gives as constants; here as if it left out nothing"
        )
        lines += [("then", f"the statement {constants}"), *rest.lines[2:]]
        values: dict[str, Any] = {
            **rest.values,
            "cost": {**cost.to_dict(), "loss": price.loss / LOSS_UNITS},
            "share_of_budget": share_of_cost(balance.budget, price),
            **payable(curator, balance, price),
            "stored": price == Cost.zero(),
            "first": [part.values for _, part in parts],
        }
        return Explanation(tuple(lines), cost, values)


def _text(part: BoundRequest) -> str:
    return part.request.sql.removeprefix(MARK)


def _priced(part: BoundRequest, share: Fraction) -> tuple[Cost, Purchase | None]:
    """The cost of a part, and its release if it was bought before: then it is free."""
    planned, norms = part.priced(share)
    if planned.measured is None:
        return Cost.zero(), Purchase(planned, None, Cost.zero())
    stored = None if norms.missing() else part.curator.stored(planned.certified, analyst=part.request.analyst)
    if stored is not None:
        return Cost.zero(), Purchase(planned, stored, Cost.zero())
    return planned.certified.cost + norms.cost(), None


def _rows(part: BoundRequest, bought: Purchase) -> DecidedRows:
    """The rows of an answer, as constants."""
    released = None if bought.answered is None else bought.answered.released
    return released_rows(assemble(bought.planned, released, part.bound.statement.post, confidence=part.terms.confidence).table)


def _require_few(part: BoundRequest, share: Fraction) -> None:
    """Refuse an answer that may have more rows than a list of constants."""
    limit, most = part.curator.settings.list_items_max, _rows_at_most(part.bound.plan_at(share), part.bound.statement)
    if most is None or most > limit:
        message = f"an answer that decides which rows count may have at most {limit:,} rows"
        span = dict(part.bound.statement.spans)[""]
        raise Refused("list-too-long", message, hint="add ORDER BY and LIMIT to it", span=span)


def _rows_at_most(planned: PlannedStatement, statement: Statement) -> int | None:
    groups = [1 if not part.query.keys else None if part.groups is None else len(part.groups) for part in planned.parts]
    known = [many for many in groups if many is not None]
    if statement.post.limit is not None:
        return statement.post.limit
    return max(math.prod(known), sum(known)) if len(known) == len(groups) else None
