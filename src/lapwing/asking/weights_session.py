"""Sessions of private multiplicative weights: explained free of charge, charged when they are opened, and stored when they are closed.

A question is one count. If the weights are near the exact count, their estimate is the answer; otherwise a fresh noisy count is, and the
weights learn from it. The ledger is charged once, for all starts, before a row is read.
"""

from __future__ import annotations

import secrets
import threading
import warnings
from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import TracebackType
from typing import Self

from lapwing.answers.answer import CostView
from lapwing.answers.display.budget import epsilon_of_loss
from lapwing.answers.display.number_format import figure, percent
from lapwing.asking.bound_statement import unit_columns
from lapwing.asking.options import Number, exact_number
from lapwing.asking.release_purchase import LISTED_MAX, rows_of, table_of
from lapwing.catalog.confidences import NOT_ASKED, can_be_asked
from lapwing.curator.charged_stream import ChargedStream
from lapwing.curator.curator import Curator
from lapwing.errors import Refused
from lapwing.kernel.accounting import LOSS_UNITS, charge_loss
from lapwing.ledger.purchases import PurchaseKind, PurchaseRecord
from lapwing.prices import statement_loss
from lapwing.releases.released import Release
from lapwing.releases.request import Marginals
from lapwing.releases.weights.multiplicative_weights import MultiplicativeWeights, weights_of_release
from lapwing.releases.weights.plan import SUMMARY, Alternatives, PlannedWeights, WeightsRequest, other_ways, planned_weights, weights_axes
from lapwing.releases.weights.weights_log import CountQuestion, CountSource, WeighedCount, WeightsLog, count_question
from lapwing.sql import bind


class WeightsSession:
    """Counts of one table over some columns, from weights that learn. ``with`` opens it, which charges, and closes it, which stores it.

    Before it is opened, :meth:`explain` gives its cost and that of alternatives for the same counts; opening it makes the first charge.
    """

    def __init__(self, curator: Curator, planned: PlannedWeights, weights: MultiplicativeWeights, analyst: str) -> None:
        self.planned = planned
        self._curator, self._analyst = curator, analyst
        self._weights = weights
        self._told: dict[str, WeighedCount] = {}
        self._before: dict[str, WeighedCount] = {}
        self._stream: ChargedStream | None = None
        self._is_closed = False
        self._left = planned.request.starts
        self._one_at_a_time = threading.Lock()
        self._other_ways: Alternatives | None = None

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<WeightsSession of {self.planned.request.table!r}: {len(self._told)} questions, {self.starts_left} starts left>"

    # -- its price ----------------------------------------------------------------------------------------------------------------

    @property
    def cost(self) -> CostView:
        """The cost of opening it: all of its starts, even those that are not used."""
        return CostView.of(self.planned.certified.cost, self._curator.balance().budget, free=False)

    @property
    def other_ways(self) -> Alternatives:
        """The cost of direct counts, or of a release of marginals, with the same error."""
        if self._other_ways is None:
            self._other_ways = other_ways(self.planned, self._curator.facts)
        return self._other_ways

    def explain(self) -> str:
        """The price, the promised error, and alternatives for the same counts. Free; reads no data."""
        planned, request, ways = self.planned, self.planned.request, self.other_ways
        budget, cost = self._curator.budget(), self.cost
        cells = self._weights.probabilities().size
        scope = ", ".join(f"{axis.column} ({axis.size} bins)" for axis in planned.axes)
        sure = percent(float(request.confidence))
        rho = "" if cost.rho is None else f" (rho {float(cost.rho):.3g})"
        release = "would be too large" if ways.release is None else f"epsilon {self._epsilon(ways.release):.3g}"
        lines = [
            f"weights of {request.table}: {scope}; {cells:,} combinations, {self._weights.rows:,} rows, "
            + (f"starting from the release {request.start!r}" if request.start else "starting from nothing known"),
            f"each count: within {planned.near_error:,} rows where the weights serve it, {planned.fresh_error:,} where it is counted "
            f"freshly, in {sure} of all cases",
            f"starts: {request.starts}; each ends with a fresh count. To know all counts, up to {planned.updates_max:,} could be needed",
            f"price: epsilon {cost.epsilon:.3g}{rho}, at opening, used or not; {percent(1 - budget.share_spent)} of the budget is left",
            f"instead, {ways.direct_counts:,} counts asked directly, each within {planned.near_error:,} rows, would cost the same",
            f"instead, a release of marginals of {ways.ways} columns would answer every such count on so many columns: {release}",
            *self._bounded(),
            f"a start pays if it serves more than {ways.direct_counts // request.starts:,} questions that were not asked before",
        ]
        return "\n".join(lines)

    def _bounded(self) -> list[str]:
        """The note on errors that the error bars do not cover."""
        rows, unit = self.planned.stream.rows, self._curator.declaration.dataset.unit
        if rows.rows_per_unit >= self._curator.facts.table(rows.table).rows_per_unit_max:
            return []
        return [f"a {unit} counts for at most {rows.rows_per_unit} rows, and the errors do not reach to what that leaves out"]

    def report(self) -> str:
        """The questions by source of their answers, and the cost of the alternatives."""
        served = {kind: sum(count.served_by is kind for count in self._told.values()) for kind in CountSource}
        ways, cost = self.other_ways, self.cost
        by_weights, fresh = served[CountSource.WEIGHTS], served[CountSource.FRESH]
        asked = by_weights + fresh
        direct = asked * ways.direct
        dearer = float(ways.session / direct) if direct else float("inf")
        compared = f"the session cost {figure(dearer, digits=3)} times as much" if asked else "nothing was asked"
        release = "" if ways.release is None else f"; a release of marginals, epsilon {self._epsilon(ways.release):.3g}"
        return "\n".join(
            [
                f"{asked:,} questions: {by_weights:,} served by the weights, {fresh:,} counted freshly",
                f"paid: epsilon {cost.epsilon:.3g} for {self.planned.request.starts} starts, of which {self.starts_left} were not used",
                f"asked directly, the same would have cost epsilon {self._epsilon(direct) if direct else 0.0:.3g}{release}: {compared}",
            ]
        )

    def _epsilon(self, loss: Fraction) -> float:
        return epsilon_of_loss(self._curator.balance().budget, charge_loss(loss))

    # -- life cycle -----------------------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Charge for the whole session. Afterwards questions are answered until the starts are used up."""
        with self._one_at_a_time:
            if self._stream is not None or self._is_closed:
                raise Refused("session-ended", "a session is opened once", hint="plan another one, at its price")
            planned = self.planned
            self._before = _earlier_answers(self._curator, self._analyst, planned.request.confidence)
            text, record = planned.request.text(), PurchaseRecord(PurchaseKind.WEIGHTS)
            self._stream = self._curator.open_stream(planned.stream, summary=text, purchase=record, analyst=self._analyst)
            self._curator.before_closing.append(self.close)

    @property
    def starts_left(self) -> int:
        """How many fresh counts are left, or were left at closing; after the last one only repeated questions are answered."""
        return self._left if self._stream is None else self._stream.starts_left

    @property
    def answers(self) -> Mapping[str, WeighedCount]:
        """All answers, by question."""
        return dict(self._told)

    @property
    def told(self) -> Mapping[str, WeighedCount]:
        """The old name of :attr:`answers`; deprecated."""
        warnings.warn("WeightsSession.told is deprecated: use WeightsSession.answers", DeprecationWarning, stacklevel=2)
        return self.answers

    @property
    def weights(self) -> MultiplicativeWeights:
        """The present weights. They are public."""
        return self._weights

    def ask(self, sql: str, *, dialect: str = "duckdb") -> WeighedCount:
        """One count: ``SELECT COUNT(*) FROM table WHERE ..`` over the columns of the session. Other statements are refused, free of
        charge."""
        curator = self._curator
        statement = bind(sql, curator.facts, settings=curator.settings, unit_columns=unit_columns(curator.declaration), dialect=dialect)
        question = count_question(statement, curator.facts, self.planned)
        with self._one_at_a_time:
            known = self._told.get(question.key) or self._before.get(question.key)
            if known is not None and (question.key in self._told or known.error <= self.planned.near_error):
                return WeighedCount(known.value, CountSource.LOG, known.error, known.confidence, self.starts_left)
            if self._stream is None:
                raise Refused("session-ended", "the session is not open", hint="open it in a with statement, which charges")
            told = self._answered(question, self._stream)
            self._told[question.key] = told
            return told

    def _answered(self, question: CountQuestion, stream: ChargedStream) -> WeighedCount:
        planned, near = self.planned, self._weights.estimate(question.cells)
        noisy = stream.tell(question.condition, near=near)
        sure = planned.request.confidence
        if noisy is None:
            return WeighedCount(near, CountSource.WEIGHTS, planned.near_error, sure, stream.starts_left)
        self._weights.learn(question.cells, noisy, noise=planned.fresh_error, least=planned.least_apart // 2)
        return WeighedCount(noisy, CountSource.FRESH, planned.fresh_error, sure, stream.starts_left)

    def close(self) -> None:
        """Store the answers: from now on they are free in any session. Unused starts are lost."""
        with self._one_at_a_time:
            stream, self._stream, self._is_closed = self._stream, None, True
            if stream is not None:
                self._curator.before_closing.remove(self.close)
                self._left = stream.starts_left
                stream.close(WeightsLog(self._told, self.planned.request.starts - self._left).packed())


def plan_weights(
    curator: Curator,
    columns: Sequence[str],
    *,
    alpha: Number,
    starts: int,
    epsilon: Number | None = None,
    table: str | None = None,
    bins: Mapping[str, int | Sequence[int | float | str | Fraction]] | None = None,
    start: Release | None = None,
    rows: int | None = None,
    rows_per_unit: int | None = None,
    confidence: Number | None = None,
    analyst: str,
) -> WeightsSession:
    """A session that has not been opened; see :meth:`lapwing.data_set.DataSet.weights`."""
    facts = curator.facts
    parts = () if start is None else start.terms.request.wanted
    own = {column: cut for part in parts for column, cut in part.bins if column in columns}
    wanted = Marginals(*columns, ways=1, bins={**own, **(bins or {})})
    of_table = table_of(curator, (wanted,), table)
    sure = curator.declaration.defaults.confidence if confidence is None else exact_number(confidence, "confidence")
    if not can_be_asked(sure):
        raise Refused("confidence-invalid", NOT_ASKED)
    if start is not None and start.of_table != of_table:
        raise Refused("weights-start", f"the release {start.name!r} is of another table")
    said = None if start is None else weights_of_release(start, weights_axes(of_table, wanted, facts))
    known = rows_of(curator, of_table)
    total = rows if rows is not None else said[1] if said is not None else None if known is None else round(known)
    if type(total) is not int or total < 1:
        raise Refused("weights-rows", "the number of rows is neither declared nor bought", hint="give rows, the approximate number")
    request = WeightsRequest(
        of_table,
        wanted.columns,
        wanted.bins,
        exact_number(alpha, "alpha"),
        starts,
        sure,
        total,
        facts.table(of_table).rows_per_unit_max if rows_per_unit is None else rows_per_unit,
        "" if start is None else start.name,
        secrets.token_hex(8),
    )
    planned = planned_weights(request, facts)
    budget = curator.balance().budget
    if epsilon is not None and planned.certified.cost.loss > statement_loss(budget, exact_number(epsilon, "epsilon")) * LOSS_UNITS:
        least = epsilon_of_loss(budget, planned.certified.cost.loss)
        message = f"{starts} starts within {float(request.alpha):g} of the rows cost epsilon {least:.3g}, which is more than was allowed"
        raise Refused("weights-price", message, hint="allow more, a larger alpha, or fewer starts")
    weights = MultiplicativeWeights([axis.size for axis in planned.axes], total, None if said is None else said[0])
    return WeightsSession(curator, planned, weights, analyst)


def weighed_before(curator: Curator, *, analyst: str | None = None) -> tuple[WeightsLog, ...]:
    """The answers of closed sessions on the newest version, newest first, that this analyst may see. Free."""
    ledger, who = curator.ledger, curator.analyst_default if analyst is None else analyst
    if ledger.balance().closed:
        return ()
    bought = ledger.bought(version=curator.facts.version, limit=LISTED_MAX, analyst=who, kind=PurchaseKind.WEIGHTS, begins=SUMMARY)
    stored = [ledger.find(item.digest, analyst=who) for item in bought]
    return tuple(WeightsLog.unpacked(item.payload) for item in stored if item is not None)


def _earlier_answers(curator: Curator, analyst: str, confidence: Fraction) -> dict[str, WeighedCount]:
    """By question: the count with the least error among those with at least this confidence."""
    found: dict[str, WeighedCount] = {}
    for log in weighed_before(curator, analyst=analyst):
        for key, count in log.told.items():
            if count.confidence >= confidence and (key not in found or count.error < found[key].error):
                found[key] = count
    return found
