"""What an analyst imports: open a data set, ask SQL, see the price first.

import lapwing as lw
ds = lw.open("clinic/lapwing.toml")
answer = ds.ask("SELECT region, COUNT(*) AS n FROM patients GROUP BY region", epsilon=0.5)
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lapwing.answers.answer import Answer, CostView
from lapwing.answers.assembly import assemble, check_post
from lapwing.answers.budget import BudgetView, budget_view
from lapwing.answers.post_processing import evaluate
from lapwing.answers.quantile_notes import quantile_notes
from lapwing.catalog import Declaration, Settings, UnitPath
from lapwing.client.from_file import quick_catalogue
from lapwing.curator.accuracy_search import Aim, Asking
from lapwing.curator.asked_price import Number, Terms, exact_number, pilot_epsilons, terms_of
from lapwing.curator.explanation import Explanation, explanation, notes_of
from lapwing.curator.life import Answered, Curator
from lapwing.curator.privacy_statements import budget_answer, explained_answer
from lapwing.engines.base import Progress, silent
from lapwing.errors import Refused
from lapwing.kernel.accounting import Account, Cost, statement_loss
from lapwing.ledger.protocol import Entry
from lapwing.planning.plan import Limits, Planned, Price, plan_statement
from lapwing.sql import bind
from lapwing.sql.text.privacy_words import Question, ShowBudget, read_words
from lapwing.sql.text.refusals import span_in, span_of
from lapwing.statements import Statement

DELTA_STATEMENTS = 1024
"""A statement that discovers keys may use one part in this many of the delta set aside for keys."""


class DataSet:
    """An opened data set, for asking. ``analyst`` is who asks, unless a question says otherwise.

    Without it, on a ledger that knows analysts it is the user of the operating system, and on a local ledger ``local``.
    """

    def __init__(self, curator: Curator, *, analyst: str | None = None) -> None:
        self.curator = curator
        self.analyst = curator.analyst_default if analyst is None else analyst

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<DataSet {self.curator.declaration.dataset.id!r}>"

    def close(self) -> None:
        """Give up files and connections."""
        self.curator.close()

    def prepare(self, *, progress: Progress = silent, override: str = "", accept_losses: bool = False) -> int:
        """Write a new version from the sources: the owner's act. Returns its number.

        Refused (``rows-lost``) where more than a tenth of a table would be left out, unless ``accept_losses``.
        """
        return self.curator.prepare(progress=progress, override=override, accept_losses=accept_losses)

    def ask(
        self,
        sql: str,
        *,
        epsilon: Number | None = None,
        confidence: Number | None = None,
        analyst: str | None = None,
        request_id: str | None = None,
        dialect: str = "duckdb",
    ) -> Answer:
        """Answer a statement. ``epsilon`` is for the whole statement; asking the same again on the same version is free.

        ``dialect`` is how the statement is spelt, ``duckdb`` or ``postgres``; what it means does not depend on it.

        ``EXPLAIN PRIVACY``, ``SHOW PRIVACY BUDGET`` and ``WITH PRIVACY (..)`` are read here too, and must agree with the arguments.
        """
        words = read_words(sql, settings=self.curator.settings, dialect=dialect)
        if isinstance(words, ShowBudget):
            return budget_answer(self.budget, confidence=self.curator.declaration.defaults.confidence)
        if words.explain:
            found = self.explain(sql, epsilon=epsilon, confidence=confidence, analyst=analyst, dialect=dialect)
            return explained_answer(found, self.budget, confidence=self._terms(words, epsilon, confidence).confidence)
        who = self.analyst if analyst is None else analyst
        asking, terms = self._asking(words.statement, dialect), self._terms(words, epsilon, confidence)
        if isinstance(terms.wanted, Fraction):
            planned = asking.plan_at(terms.wanted)
            if planned.measured is None:
                return self._declared(asking, planned, terms.confidence)
            check_post(planned, asking.statement.post)
            answered = self.curator.answer(planned.certified.plan, summary=sql, analyst=who, request_id=request_id)
            notes = ("answered before on this version: free, the same answer bit for bit",) if answered.free else ()
            cost = Cost.zero() if answered.free else planned.certified.cost
            return self._answered(asking, planned, answered, terms.confidence, cost=cost, notes=notes)
        planned = asking.plan_at(self._pilot_losses()[0])
        if planned.measured is None:
            return self._declared(asking, planned, terms.confidence)
        check_post(planned, asking.statement.post)
        aim = Aim(self.curator, who, sql, words.statement, asking, terms.wanted, self._pilot_losses())
        hit = aim.reach(request_id=request_id)
        return self._answered(asking, hit.planned, hit.answered, terms.confidence, cost=hit.cost, notes=hit.notes)

    def _declared(self, asking: Asking, planned: Planned, confidence: Fraction) -> Answer:
        """An answer that measures nothing."""
        assembled = assemble(planned, None, asking.statement.post, confidence=confidence)
        cost = CostView.of(Cost.zero(), self.curator.declaration.budget(), free=True)
        notes = ("answered from declarations alone: free",)
        return Answer(assembled.table, assembled.intervals, float(confidence), cost, self.budget, notes)

    def _answered(
        self, asking: Asking, planned: Planned, answered: Answered, confidence: Fraction, *, cost: Cost, notes: tuple[str, ...]
    ) -> Answer:
        released = answered.released
        assembled = assemble(planned, released, asking.statement.post, confidence=confidence)
        found = notes_of(planned, released, assembled, unit=self.curator.declaration.dataset.unit)
        found += quantile_notes(asking.statement, planned, confidence=confidence)
        paid = CostView.of(cost, self.curator.declaration.budget(), free=cost == Cost.zero())
        return Answer(
            assembled.table,
            assembled.intervals,
            float(confidence),
            paid,
            self.budget,
            (*notes, *found),
            receipt=self.curator.receipt(answered.stored),
            stored=answered.stored.payload,
        )

    def explain(
        self,
        sql: str,
        *,
        epsilon: Number | None = None,
        confidence: Number | None = None,
        analyst: str | None = None,
        dialect: str = "duckdb",
    ) -> Explanation:
        """What asking would cost, how it would be bounded and how accurate it would be. Free; touches no data.

        With or without ``EXPLAIN PRIVACY`` before the statement.
        """
        words = read_words(sql, settings=self.curator.settings, dialect=dialect)
        if isinstance(words, ShowBudget):
            hint = "ask for it as it is"
            raise Refused(
                "statement-unsupported",
                "SHOW PRIVACY BUDGET is free: there is nothing to explain",
                hint=hint,
                span=span_of(sql, 0, len(sql)),
            )
        who = self.analyst if analyst is None else analyst
        asking, terms = self._asking(words.statement, dialect), self._terms(words, epsilon, confidence)
        if isinstance(terms.wanted, Fraction):
            planned = asking.plan_at(terms.wanted)
            check_post(planned, asking.statement.post)
            return explanation(asking.statement, planned, self.curator, confidence=terms.confidence, analyst=who)
        planned = asking.plan_at(self._pilot_losses()[0])
        check_post(planned, asking.statement.post)
        if planned.measured is None:
            return explanation(asking.statement, planned, self.curator, confidence=terms.confidence, analyst=who)
        return Aim(self.curator, who, sql, words.statement, asking, terms.wanted, self._pilot_losses()).explanation()

    @property
    def budget(self) -> BudgetView:
        """What the data set has and has spent."""
        return budget_view(self.curator.balance(), unit=self.curator.declaration.dataset.unit)

    def history(self, *, limit: int = 100) -> tuple[Entry, ...]:
        """Newest entries of the ledger first."""
        return self.curator.history(limit=limit)

    def check(self) -> list[str]:
        """What the owner should look at again in the catalogue."""
        return [str(problem) for problem in self.curator.declaration.warnings]

    def _terms(self, words: Question, epsilon: Number | None, confidence: Number | None) -> Terms:
        declaration, budget = self.curator.declaration, self.curator.balance().budget
        return terms_of(words.clause, epsilon=epsilon, confidence=confidence, declaration=declaration, budget=budget)

    def _pilot_losses(self) -> tuple[Fraction, ...]:
        budget = self.curator.balance().budget
        return tuple(statement_loss(budget, epsilon) for epsilon in pilot_epsilons(self.curator.declaration))

    def _plan(self, sql: str, epsilon: Number | None) -> tuple[Statement, Planned]:
        """A statement without words of ours, and its plan at this epsilon."""
        asking = self._asking(sql)
        terms = terms_of(None, epsilon=epsilon, confidence=None, declaration=self.curator.declaration, budget=self.curator.balance().budget)
        assert isinstance(terms.wanted, Fraction)
        planned = asking.plan_at(terms.wanted)
        check_post(planned, asking.statement.post)
        return asking.statement, planned

    def _asking(self, text: str, dialect: str = "duckdb") -> Asking:
        """A statement bound once, to be planned at any loss. Its plans depend on public facts and statistics bought before only."""
        curator = self.curator
        declaration, facts, settings = curator.declaration, curator.facts, curator.settings
        units, references = unit_columns(declaration), references_of(declaration)
        statement = bind(text, facts, settings=settings, unit_columns=units, references=references, dialect=dialect)
        budget, contributions = curator.balance().budget, curator.contributions()
        delta = budget.delta_keys / DELTA_STATEMENTS if budget.account is Account.APPROXIMATE else Fraction(0)

        def plan_at(loss: Fraction) -> Planned:
            try:
                return plan_statement(
                    statement.privates,
                    facts,
                    Price(loss, delta),
                    contributions=contributions,
                    units=declaration.dataset.units,
                    limits=Limits(settings.known_cells_max, settings.groups_max),
                    evaluate=evaluate,
                )
            except Refused as error:
                error.span = error.span or span_in(statement, error.code)
                raise

        return Asking(statement, plan_at)


def unit_columns(declaration: Declaration) -> dict[str, str]:
    """Each protected table's own column that holds the unit, where there is one."""
    return {table.name: column for table in declaration.tables if (column := unit_column(table.unit)) is not None}


def references_of(declaration: Declaration) -> dict[tuple[str, str], tuple[str, str]]:
    """Declared keys on the way to the unit."""
    hops = [(table.name, table.unit.hops[0]) for table in declaration.tables if table.unit.hops]
    return {(name, hop.column): (hop.target.table, hop.target.column) for name, hop in hops}


def unit_column(path: UnitPath) -> str | None:
    """The table's own column that holds the unit: the end of the path, or a foreign key straight to it."""
    if not path.hops:
        return path.end.column
    if len(path.hops) == 1 and path.hops[0].target == path.end:
        return path.hops[0].column
    return None


def open(
    path: str | Path,
    *,
    unit: str | None = None,
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    epsilon: str | int | float = 1,
    delta: str | int | float = "2^-40",
    rows_max: int | None = None,
    analyst: str | None = None,
    settings: Settings | None = None,
    home: Path | None = None,
) -> DataSet:
    """Open a data set by its catalogue file, or the directory that holds it.

    With ``unit`` and ``columns``, ``path`` is a Parquet or CSV file: its catalogue is written to ``<file>.lapwing/`` and the data set is
    prepared, the first time; after that the same words open it again, with the same budget. ``analyst`` is who asks (see ``DataSet``).
    """
    if unit is None:
        return DataSet(Curator(path, settings=settings, home=home), analyst=analyst)
    catalogue = quick_catalogue(Path(path), unit=unit, columns=columns or {}, epsilon=epsilon, delta=delta, rows_max=rows_max)
    opened = DataSet(Curator(catalogue, settings=settings, home=home), analyst=analyst)
    if not opened.curator.engine.versions():
        opened.prepare()
    return opened


__all__ = ["DataSet", "Number", "exact_number", "open"]
