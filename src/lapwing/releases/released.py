"""A release that was bought: it answers SQL, gives its tables and synthetic rows, for ever and free. It knows no rows, nor an engine."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lapwing.answers.answer import Answer, CostView
from lapwing.answers.budget import BudgetView
from lapwing.catalog import Settings
from lapwing.errors import Refused
from lapwing.kernel.accounting import Cost
from lapwing.kernel.facts import Facts
from lapwing.kernel.laws import DiscreteLaplace
from lapwing.kernel.release import Released
from lapwing.receipts import Receipt
from lapwing.releases.axes import Axis
from lapwing.releases.coverage import NotCovered
from lapwing.releases.request import RangeTree, ReleaseRequest, SyntheticTable
from lapwing.releases.serving import ServedMarginals, serve
from lapwing.releases.synopsis import MeasuredMarginal
from lapwing.releases.synthetic import synthetic_table
from lapwing.releases.tree_counts import TreeCounts
from lapwing.spread import variance
from lapwing.sql import bind

if TYPE_CHECKING:
    import pyarrow as pa

CONFIDENCE = Fraction(95, 100)


@dataclass(frozen=True, slots=True)
class ReleaseTerms:
    """What is public about a release: what it was asked for, of which facts, how its rows were bounded, what it cost, who signed."""

    request: ReleaseRequest
    facts: Facts
    unit_columns: Mapping[str, str]
    axes: tuple[Axis, ...]
    tables: tuple[tuple[int, ...], ...]
    notes: tuple[str, ...]
    """What every answer from it says."""
    cost: CostView
    budget: BudgetView
    """When it was bought, or opened from the ledger."""
    stored: bytes
    """As the ledger keeps it; the receipt is for these bytes."""
    receipt: Receipt | None


class Release:
    """Tables of noisy counts that were paid for once."""

    def __init__(self, terms: ReleaseTerms, released: Released) -> None:
        self.terms = terms
        self._released = released

    def __repr__(self) -> str:
        return f"<Release {self.name!r} of {self.terms.request.table!r}: {len(self.terms.tables)} tables>"

    @property
    def name(self) -> str:
        """What it was called."""
        return self.terms.request.name

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it has."""
        return self.terms.request.wanted.columns

    @property
    def receipt(self) -> Receipt | None:
        """The signed receipt of its charge, where keys are declared."""
        return self.terms.receipt

    @cached_property
    def measured(self) -> tuple[MeasuredMarginal, ...]:
        """The noisy tables, by the numbers of their axes."""
        found = []
        for axes, table in zip(self.terms.tables, self._released.tables, strict=True):
            column = table.columns[0]
            step = float(column.step)
            counts = np.asarray(column.values, dtype=np.float64) * step
            shape = [self.terms.axes[number].size for number in axes]
            found.append(MeasuredMarginal(axes, counts.reshape(shape), variance(column.law) * step**2))
        return tuple(found)

    @cached_property
    def _served(self) -> ServedMarginals:
        if self.tree is not None:
            return ServedMarginals.of_tree(self.tree)
        return ServedMarginals.of(self.terms.request.table, self.terms.axes, self.measured, laplace=self._laplace, notes=self.terms.notes)

    @cached_property
    def tree(self) -> TreeCounts | None:
        """Its tables put together, where it is a tree of ranges."""
        if not isinstance(self.terms.request.wanted, RangeTree):
            return None
        return TreeCounts.of(self.terms.request.table, self.terms.axes, self.measured, laplace=self._laplace, notes=self.terms.notes)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The columns in bins, one axis for each: of a tree, the leaves."""
        return self.terms.axes if self.tree is None else self.tree.public.axes

    @property
    def _laplace(self) -> bool:
        return any(isinstance(table.columns[0].law, DiscreteLaplace) for table in self._released.tables)

    def query(self, sql: str, *, confidence: Fraction | float = CONFIDENCE, dialect: str = "duckdb") -> Answer:
        """Answer SQL from the release: free, with error bars. What it does not answer is refused (``release-not-covered``), with why."""
        statement = bind(sql, self.terms.facts, settings=Settings(), unit_columns=self.terms.unit_columns, dialect=dialect)
        sure = Fraction(str(confidence)) if isinstance(confidence, float) else confidence
        found = serve(statement, self.terms.facts, self._served, confidence=sure)
        if isinstance(found, NotCovered):
            raise Refused("release-not-covered", f"the release {self.name!r} does not answer this: {found.reason}")
        free = CostView.of(Cost.zero(), self.terms.budget.budget, free=True)
        notes = (f"answered from the release {self.name!r}: free", *found.notes)
        assembled = found.assembled
        return Answer(assembled.table, assembled.intervals, float(sure), free, self.terms.budget, notes, marks=assembled.marks)

    def covers(self, sql: str, *, dialect: str = "duckdb") -> bool:
        """Whether it answers a statement. Public facts alone decide."""
        try:
            self.query(sql, dialect=dialect)
        except Refused as error:
            if error.code == "release-not-covered":
                return False
            raise
        return True

    def table(self, *, rows: int | None = None) -> pa.Table:
        """A synthetic table: as many rows as the release says there are, or ``rows``. The same release makes the same table.

        Its rows belong to nobody, and have no error bars: count with :meth:`query`.
        """
        measured, digest = self.measured, hashlib.sha256(self.terms.stored).digest()
        if self.tree is not None:
            measured = tuple(MeasuredMarginal(axes, self.tree.counts, noise) for axes, noise in self.tree.public.variances.items())
        return synthetic_table(self.axes, measured, digest, rows=rows)

    @property
    def is_synthetic(self) -> bool:
        """Whether it was bought for its synthetic table."""
        return isinstance(self.terms.request.wanted, SyntheticTable)

    @property
    def kind(self) -> str:
        """``marginals``, ``synthetic`` or ``tree``."""
        return "synthetic" if self.is_synthetic else "tree" if self.tree is not None else "marginals"

    @property
    def cells(self) -> int:
        """Cells of all tables."""
        return sum(math.prod(self.terms.axes[number].size for number in axes) for axes in self.terms.tables)


def marginals_of(release: Release) -> ServedMarginals:
    """The marginals of a release, ready to answer statements that are bound already."""
    return release._served


def facts_of_table(facts: Facts, table: str) -> Facts:
    """The facts that a release of one table needs, and no others."""
    return Facts(
        facts.source_id, facts.version, facts.neighbours, facts.account, {table: facts.table(table)}, {}, facts.limits, facts.order
    )
