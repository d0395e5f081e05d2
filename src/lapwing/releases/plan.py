"""From a request to a plan of the kernel at a price: axes, tables, shares of the loss, noise. Public facts alone decide.

The tables' costs add up to at most the requested loss; the certificate gives the exact cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, islice, repeat

from lapwing.errors import Refused
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import Certified, certify, derived_queries
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Bounding, Plan, Ranked, Scan, Weighted
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law
from lapwing.prices import Family, law_for
from lapwing.releases.marginals.axes import Axis
from lapwing.releases.marginals.measurements import CountTable, release_plan, whole_plan
from lapwing.releases.marginals.precisions import price_split
from lapwing.releases.marginals.workload import WorkloadQuery
from lapwing.releases.request import Marginals, QuantileRequest, RangeTree, ReleaseRequest, SyntheticTable
from lapwing.releases.sections import Section, sections_of
from lapwing.releases.synthetic.method import SyntheticMethod, chosen
from lapwing.releases.tree.range_tree import tree_split, tree_widths
from lapwing.spread import variance

CELLS_MAX = 20_000_000
"""Cells of all tables of a release together."""
TABLES_MAX = 2_000
WEIGHT_BITS = 10
"""Rows of a unit weigh in steps of one part in 2^10, where a unit may have many."""
KEPT = Fraction(2**30 - 1, 2**30)
"""Part of the requested loss that is used: shares are floats, whose sum may exceed 1 by rounding."""


@dataclass(frozen=True, slots=True)
class RowsCounted:
    """The contribution bound of a unit, and its kind."""

    rows: int
    scanned: int
    weighted: bool

    def bounding(self) -> Bounding:
        """The bounding of the kernel."""
        return Weighted(self.rows, WEIGHT_BITS) if self.weighted else Ranked()


@dataclass(frozen=True, slots=True)
class PlannedSection:
    """The tables of a section, and the variance of the noise of a row's count in a cell of each."""

    section: Section
    tables: tuple[tuple[int, ...], ...]
    variances: tuple[float, ...]
    methods: Mapping[int, str]
    """The method of each synthetic table, by the number of its part."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All axes of the section."""
        return self.section.axes

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bins of each axis."""
        return tuple(axis.size for axis in self.axes)

    @property
    def cells(self) -> int:
        """Cells of all tables."""
        return sum(math.prod(self.sizes[number] for number in table) for table in self.tables)


@dataclass(frozen=True, slots=True)
class PlannedRelease:
    """A release that can be bought: its plan is certified."""

    request: ReleaseRequest
    sections: tuple[PlannedSection, ...]
    bounded: RowsCounted
    certified: Certified

    @property
    def tables(self) -> tuple[tuple[int, ...], ...]:
        """The axes of every table, in the section that it is of."""
        return tuple(table for section in self.sections for table in section.tables)

    @property
    def cells(self) -> int:
        """Cells of all tables."""
        return sum(section.cells for section in self.sections)


def planned_release(request: ReleaseRequest, facts: Facts, *, loss: Fraction, rows: float | None) -> PlannedRelease:
    """The plan of a release at a loss. ``rows``: their public number."""
    most = facts.table(request.table).rows_per_unit_max
    bounded = RowsCounted(request.rows_per_unit, most, weighted=request.rows_per_unit < most)
    sections = sections_of(request, facts)
    priced = _Priced(facts.account is Account.PURE, float(loss), rows, bounded.rows)
    shares = [priced.shares(section, request.price_shares()) for section in sections]
    cells = sum(_cells([axis.size for axis in section.axes], tables) for section, (_, tables) in zip(sections, shares, strict=True))
    _require_cells(cells)
    _require_tables(sum(len(tables) for _, tables in shares))
    plan = _with_noise(request.table, [(one.axes, tables) for one, (_, tables) in zip(sections, shares, strict=True)], facts, loss, bounded)
    certified = certify(plan, facts)
    noises = iter(float(variance(each.vectors[0].vector.law)) * float(each.vectors[0].step) ** 2 for each in certified.queries)
    planned = tuple(
        PlannedSection(section, tuple(tables), tuple(islice(noises, len(tables))), methods)
        for section, (methods, tables) in zip(sections, shares, strict=True)
    )
    return PlannedRelease(request, planned, bounded, certified)


@dataclass(frozen=True, slots=True)
class _Priced:
    """The inputs of the division of the loss other than the axes."""

    pure: bool
    loss: float
    rows: float | None
    reach: int

    def shares(self, section: Section, parts: Sequence[Fraction]) -> tuple[dict[int, str], dict[tuple[int, ...], float]]:
        """The method of each synthetic table, and each table's share of the loss: the sum of the shares from its parts."""
        methods: dict[int, str] = {}
        found: dict[tuple[int, ...], float] = {}
        for number, wanted in section.parts:
            share = float(parts[number])
            method, tables = self._shares(section, wanted, share)
            if method:
                methods[number] = method
            for table, own in tables.items():
                found[table] = found.get(table, 0.0) + share * own
        return methods, found

    def _shares(self, section: Section, wanted: QuantileRequest, share: float) -> tuple[str, Mapping[tuple[int, ...], float]]:
        match wanted:
            case Marginals(ways=ways):
                return "", self._marginals(section, section.numbers(wanted), ways)
            case SyntheticTable(method=method):
                return self._synthetic(section, section.numbers(wanted), method, share)
            case RangeTree(branch=branch, by=by):
                return "", self._tree(section.axes, branch, len(by))

    def _marginals(self, section: Section, numbers: tuple[int, ...], ways: int) -> dict[tuple[int, ...], float]:
        sizes = [section.axes[number].size for number in numbers]
        wanted = [WorkloadQuery(table) for table in combinations(range(len(numbers)), ways)]
        _require_tables(len(wanted))
        _require_cells(_cells(sizes, [each.axes for each in wanted]))
        split = price_split(sizes, wanted, pure=self.pure)
        tables = [tuple(numbers[axis] for axis in table) for table in split.tables]
        return dict(zip(tables, split.shares, strict=True))

    def _synthetic(self, section: Section, numbers: tuple[int, ...], method: str, share: float) -> tuple[str, dict[tuple[int, ...], float]]:
        # as if a unit had one row: the price of noise for several is as much higher
        alone = share * self.loss / (self.reach if self.pure else self.reach**2)
        family = Family.LAPLACE if self.pure else Family.GAUSSIAN
        sizes = [section.axes[number].size for number in numbers]
        found = chosen(sizes, loss=alone, rows=self.rows, family=family, method=SyntheticMethod(method))
        return found.method.value, {tuple(numbers[axis] for axis in table): own for table, own in found.shares.items()}

    def _tree(self, axes: Sequence[Axis], branch: int, further: int) -> dict[tuple[int, ...], float]:
        leaves = axes[-1].size - axes[-1].domain.nullable
        levels, planned = tree_widths(leaves, branch=branch), tree_split(leaves, pure=self.pure, branch=branch)
        numbers = [further + levels.index(width) for width in planned.widths]
        return {(*range(further), number): share for number, share in zip(numbers, planned.shares, strict=True)}


def _cells(sizes: Sequence[int], tables: Iterable[tuple[int, ...]]) -> int:
    return sum(math.prod(sizes[number] for number in table) for table in tables)


def _require_tables(tables: int) -> None:
    if tables > TABLES_MAX:
        raise Refused("release-size", f"a release has at most {TABLES_MAX:,} tables, not {tables:,}")


def _require_cells(cells: int) -> None:
    if cells > CELLS_MAX:
        message = f"these tables have {cells:,} cells together; a release has at most {CELLS_MAX:,}"
        raise Refused("release-size", message, hint="cut columns into fewer bins, or ask for fewer ways")


def _with_noise(
    table: str,
    sections: Sequence[tuple[Sequence[Axis], Mapping[tuple[int, ...], float]]],
    facts: Facts,
    loss: Fraction,
    bounded: RowsCounted,
) -> Plan:
    """The noise that each table's share buys; the certifier derives the sensitivities."""
    rows, pure = Scan(table, bounded.scanned), facts.account is Account.PURE
    placeholder = DiscreteLaplace(Fraction(1)) if pure else DiscreteGaussian(Fraction(1))

    def plan(laws: Iterator[Law]) -> Plan:
        return whole_plan(
            [
                release_plan(rows, axes, [CountTable(each, next(laws)) for each in shares], bounded.bounding(), section=number)
                for number, (axes, shares) in enumerate(sections)
            ]
        )

    shares = [share for _, tables in sections for share in tables.values()]
    derived, whole = derived_queries(plan(repeat(placeholder)), facts), Fraction(sum(shares))
    laws = [
        law_for(
            facts.account,
            loss=loss * KEPT * Fraction(share) / max(whole, Fraction(1)),
            l1=query.vectors[0].sensitivity.l1,
            l2_squared=query.vectors[0].sensitivity.l2_squared,
            family=Family.LAPLACE if pure else Family.GAUSSIAN,
        )
        for query, share in zip(derived, shares, strict=True)
    ]
    return plan(iter(laws))
