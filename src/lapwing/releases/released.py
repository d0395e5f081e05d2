"""A release that was bought: it answers SQL and gives its tables and synthetic rows, free of charge. It has no access to rows or an
engine."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lapwing.answers.answer import Answer, CostView
from lapwing.answers.display.budget import BudgetView
from lapwing.catalog import Settings
from lapwing.catalog.confidences import NOT_ASKED, can_be_asked
from lapwing.errors import Refused
from lapwing.kernel.accounting import Cost
from lapwing.kernel.facts import Facts
from lapwing.kernel.release import NoisyTable, Released
from lapwing.receipts import Receipt
from lapwing.releases.released_section import ReleasedSection, released_section
from lapwing.releases.request import ReleaseRequest, SyntheticTable, kind_of_part
from lapwing.releases.sections import Section, table_section
from lapwing.releases.serving.answers import ServedMarginals, serve_best
from lapwing.releases.serving.coverage import NotCovered
from lapwing.releases.serving.covering import is_covered
from lapwing.releases.synthetic.table import synthetic_table
from lapwing.sql import bind

if TYPE_CHECKING:
    import pyarrow as pa

CONFIDENCE = Fraction(95, 100)
SYNTHETIC_ROWS_MAX = 100_000_000
"""Rows of one synthetic table: about a gigabyte for each column of it."""


@dataclass(frozen=True, slots=True)
class ReleaseTerms:
    """The public terms of a release: its request, facts, contribution bounding, cost and receipt."""

    request: ReleaseRequest
    facts: Facts
    unit_columns: Mapping[str, str]
    sections: tuple[Section, ...]
    tables: tuple[tuple[int, ...], ...]
    """The axes of every stored table, in the section that it is of."""
    notes: tuple[str, ...]
    """The notes of every answer from it."""
    cost: CostView
    budget: BudgetView
    """The time when it was bought, or opened from the ledger."""
    stored: bytes
    """The bytes in the ledger; the receipt is for these bytes."""
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
        """Its name."""
        return self.terms.request.name

    @property
    def of_table(self) -> str:
        """Its table."""
        return self.terms.request.table

    @property
    def columns(self) -> tuple[str, ...]:
        """Its columns."""
        return self.terms.request.columns

    @property
    def receipt(self) -> Receipt | None:
        """The signed receipt of its charge, if keys are declared."""
        return self.terms.receipt

    @cached_property
    def sections(self) -> tuple[ReleasedSection, ...]:
        """Its noisy tables, grouped by best estimate: marginals and synthetic tables first, then each tree."""
        found: list[list[tuple[tuple[int, ...], NoisyTable]]] = [[] for _ in self.terms.sections]
        for axes, table in zip(self.terms.tables, self._released.tables, strict=True):
            found[table_section(table, self.terms.sections)].append((axes, table))
        made = zip(self.terms.sections, found, strict=True)
        return tuple(released_section(self.terms.request.table, section, tables, self.terms.notes) for section, tables in made)

    def query(self, sql: str, *, confidence: Fraction | float = CONFIDENCE, dialect: str = "duckdb") -> Answer:
        """Answer SQL from the release: free, with error bars. Other statements are refused with the reason (``release-not-covered``)."""
        return answered_by(self, sql, confidence=confidence, dialect=dialect, budget=self.terms.budget)

    def covers(self, sql: str, *, dialect: str = "duckdb") -> bool:
        """Whether it answers a statement. Public facts alone decide."""
        return is_covered(lambda: self.query(sql, dialect=dialect))

    def table(self, *, rows: int | None = None) -> pa.Table:
        """A synthetic table: with the release's estimate of the number of rows, or ``rows``. The same release makes the same table.

        Its rows do not belong to any unit and have no error bars: count with :meth:`query`.
        """
        if rows is not None and not 0 <= rows <= SYNTHETIC_ROWS_MAX:
            raise Refused("release-rows", f"a synthetic table must have 0 to {SYNTHETIC_ROWS_MAX:,} rows")
        section, digest = self.sections[0], hashlib.sha256(self.terms.stored).digest()
        wanted = [part for _, part in section.section.parts if isinstance(part, SyntheticTable)]
        columns = {column for part in wanted for column in part.columns}
        kept = [number for number, axis in enumerate(section.axes) if not wanted or axis.column in columns]
        return synthetic_table([section.axes[number] for number in kept], section.marginals_over(kept), digest, rows=rows)

    @property
    def is_synthetic(self) -> bool:
        """Whether it was bought for a synthetic table, among others."""
        return any(isinstance(part, SyntheticTable) for part in self.terms.request.wanted)

    @property
    def kind(self) -> str:
        """``marginals``, ``synthetic`` or ``tree``; of several parts, all that they are."""
        return ", ".join(dict.fromkeys(kind_of_part(part) for part in self.terms.request.wanted))

    @property
    def cells(self) -> int:
        """Cells of all tables."""
        return sum(int(np.size(table.counts)) for section in self.sections for table in section.measured)


def answered_by(release: Release, sql: str, *, confidence: Fraction | float, dialect: str, budget: BudgetView) -> Answer:
    """The answer of a release, with the remaining budget."""
    statement = bind(sql, release.terms.facts, settings=Settings(), unit_columns=release.terms.unit_columns, dialect=dialect)
    if not can_be_asked(confidence):
        raise Refused("confidence-invalid", NOT_ASKED)
    sure = Fraction(str(confidence)) if isinstance(confidence, float) else confidence
    found = serve_best(statement, release.terms.facts, served_by(release), confidence=sure)
    if isinstance(found, NotCovered):
        raise Refused("release-not-covered", f"the release {release.name!r} does not answer this: {found.reason}")
    free = CostView.of(Cost.zero(), budget.budget, free=True)
    notes = (f"answered from the release {release.name!r}: free", *found.notes)
    assembled = found.assembled
    return Answer(assembled.table, assembled.intervals, float(sure), free, budget, notes, marks=assembled.marks)


def served_by(release: Release) -> tuple[ServedMarginals, ...]:
    """The sections of a release, ready to answer bound statements."""
    return tuple(section.served for section in release.sections)


def facts_of_table(facts: Facts, table: str) -> Facts:
    """The facts that a release of one table needs, and no others."""
    return Facts(
        facts.source_id, facts.version, facts.neighbours, facts.account, {table: facts.table(table)}, {}, facts.limits, facts.order
    )
