"""What an analyst imports: open a data set, ask SQL, see the price first.

import lapwing as lw
ds = lw.open("clinic/lapwing.toml")
answer = ds.ask("SELECT region, COUNT(*) AS n FROM patients GROUP BY region", epsilon=0.5)
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lapwing.catalog import Declaration, Settings, UnitPath
from lapwing.client.answer import Answer, CostView
from lapwing.client.assembly import assemble, check_post
from lapwing.client.budget import BudgetView, budget_view
from lapwing.client.explanation import Explanation, explanation, notes_of
from lapwing.client.quick import quick_catalogue
from lapwing.curator import Curator
from lapwing.engines.base import Progress, silent
from lapwing.engines.scratch import evaluate
from lapwing.errors import Refused
from lapwing.kernel.accounting import Account, Cost, statement_loss
from lapwing.ledger.store import Entry
from lapwing.planning.plan import Limits, Planned, Price, plan_statement
from lapwing.sql import bind
from lapwing.statements import Statement

Number = str | int | float | Decimal | Fraction
DELTA_STATEMENTS = 1024
"""A statement that discovers keys may use one part in this many of the delta set aside for keys."""


class DataSet:
    """An opened data set, for asking."""

    def __init__(self, curator: Curator) -> None:
        self.curator = curator

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<DataSet {self.curator.declaration.dataset.id!r}>"

    def close(self) -> None:
        """Give up files and connections."""
        self.curator.close()

    def prepare(self, *, progress: Progress = silent, override: str = "") -> int:
        """Write a new version from the sources: the owner's act. Returns its number."""
        return self.curator.prepare(progress=progress, override=override)

    def ask(
        self,
        sql: str,
        *,
        epsilon: Number | None = None,
        confidence: Number | None = None,
        analyst: str = "local",
        request_id: str | None = None,
    ) -> Answer:
        """Answer a statement. ``epsilon`` is for the whole statement; asking the same again on the same version is free."""
        statement, planned = self._plan(sql, epsilon)
        sure = self._confidence(confidence)
        budget = self.curator.declaration.budget()
        if planned.measured is None:
            assembled = assemble(planned, None, statement.post, confidence=sure)
            notes: tuple[str, ...] = ("answered from declarations alone: free",)
            return Answer(
                assembled.table, assembled.intervals, float(sure), CostView.of(Cost.zero(), budget, free=True), self.budget, notes
            )
        released, free = self.curator.answer(planned.certified.plan, summary=sql, analyst=analyst, request_id=request_id)
        assembled = assemble(planned, released, statement.post, confidence=sure)
        notes = notes_of(planned, released, assembled, unit=self.curator.declaration.dataset.unit)
        if free:
            notes = ("answered before on this version: free, the same answer bit for bit", *notes)
        cost = CostView.of(planned.certified.cost, budget, free=free)
        return Answer(assembled.table, assembled.intervals, float(sure), cost, self.budget, notes)

    def explain(self, sql: str, *, epsilon: Number | None = None, confidence: Number | None = None) -> Explanation:
        """What asking would cost, how it would be bounded and how accurate it would be. Free; touches no data."""
        statement, planned = self._plan(sql, epsilon)
        return explanation(statement, planned, self.curator, confidence=self._confidence(confidence))

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

    def _confidence(self, confidence: Number | None) -> Fraction:
        value = self.curator.declaration.defaults.confidence if confidence is None else exact_number(confidence, "confidence")
        if not 0 < value < 1:
            raise Refused("confidence-invalid", "a confidence lies between 0 and 1")
        return value

    def _plan(self, sql: str, epsilon: Number | None) -> tuple[Statement, Planned]:
        curator = self.curator
        declaration, facts, settings = curator.declaration, curator.facts, curator.settings
        units, references = unit_columns(declaration), references_of(declaration)
        statement = bind(sql, facts, settings=settings, unit_columns=units, references=references)
        asked = declaration.defaults.epsilon if epsilon is None else exact_number(epsilon, "epsilon")
        budget = curator.balance().budget
        delta = budget.delta_keys / DELTA_STATEMENTS if budget.account is Account.APPROXIMATE else Fraction(0)
        planned = plan_statement(
            statement.privates,
            facts,
            Price(statement_loss(budget, asked), delta),
            contributions=curator.contributions(),
            units=declaration.dataset.units,
            limits=Limits(settings.known_cells_max, settings.groups_max),
            evaluate=evaluate,
        )
        check_post(planned, statement.post)
        return statement, planned


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


def exact_number(value: Number, what: str) -> Fraction:
    """A number as written: a float means the decimal it is printed as."""
    try:
        return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    except (ValueError, ZeroDivisionError, TypeError, OverflowError):
        raise Refused("number-unreadable", f"{what} must be a number") from None


def open(
    path: str | Path,
    *,
    unit: str | None = None,
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    epsilon: str | int | float = 1,
    delta: str | int | float = "2^-40",
    rows_max: int | None = None,
    settings: Settings | None = None,
    home: Path | None = None,
) -> DataSet:
    """Open a data set by its catalogue file, or the directory that holds it.

    With ``unit`` and ``columns``, ``path`` is a Parquet or CSV file: its catalogue is written to ``<file>.lapwing/`` and the data set is
    prepared, the first time; after that the same words open it again, with the same budget.
    """
    if unit is None:
        return DataSet(Curator(path, settings=settings, home=home))
    catalogue = quick_catalogue(Path(path), unit=unit, columns=columns or {}, epsilon=epsilon, delta=delta, rows_max=rows_max)
    opened = DataSet(Curator(catalogue, settings=settings, home=home))
    if not opened.curator.store.versions():
        opened.prepare()
    return opened


__all__ = ["DataSet", "Number", "exact_number", "open"]
