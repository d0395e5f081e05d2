"""From what is wanted to a plan of the kernel at a price: axes, tables, shares of the loss, noise. Public facts alone decide.

The sum of what the tables cost is at most the loss that was asked for; the certificate says it exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from lapwing.errors import Refused
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import Certified, certify, derived_queries
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Bounding, Plan, Ranked, Scan, Weighted
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Family, law_for
from lapwing.releases.axes import Axis, axis_of
from lapwing.releases.measurements import CountTable, release_plan
from lapwing.releases.method import SyntheticMethod, chosen
from lapwing.releases.precisions import price_split
from lapwing.releases.range_tree import tree_split, tree_widths
from lapwing.releases.request import Marginals, RangeTree, ReleaseRequest, SyntheticTable
from lapwing.releases.tree_axes import tree_axes
from lapwing.releases.workload import WantedCounts
from lapwing.spread import variance

CELLS_MAX = 20_000_000
"""Cells of all tables of a release together."""
TABLES_MAX = 2_000
WEIGHT_BITS = 10
"""Rows of a unit weigh in steps of one part in 2^10, where a unit may have many."""
KEPT = Fraction(2**30 - 1, 2**30)
"""Of the asked loss: shares are floats, whose sum may be above 1 by their rounding."""


@dataclass(frozen=True, slots=True)
class RowsCounted:
    """How many rows of one unit count, and how."""

    rows: int
    scanned: int
    weighted: bool

    def bounding(self) -> Bounding:
        """As the kernel has it."""
        return Weighted(self.rows, WEIGHT_BITS) if self.weighted else Ranked()


@dataclass(frozen=True, slots=True)
class PlannedRelease:
    """A release that can be bought: its plan is certified."""

    request: ReleaseRequest
    axes: tuple[Axis, ...]
    tables: tuple[tuple[int, ...], ...]
    bounded: RowsCounted
    method: str
    """How a synthetic table will be made; empty for marginals."""
    certified: Certified

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bins of each axis."""
        return tuple(axis.size for axis in self.axes)

    @property
    def cells(self) -> int:
        """Cells of all tables."""
        return sum(math.prod(self.sizes[number] for number in table) for table in self.tables)

    def variances(self) -> tuple[float, ...]:
        """The variance of the noise of a row's count in a cell of each table."""
        return tuple(float(variance(query.vectors[0].vector.law)) * float(query.vectors[0].step) ** 2 for query in self.certified.queries)


def planned_release(request: ReleaseRequest, facts: Facts, *, loss: Fraction, rows: float | None) -> PlannedRelease:
    """The plan of a release at a loss. ``rows``: how many there are, as far as that is public."""
    most = facts.table(request.table).rows_per_unit_max
    bounded = RowsCounted(request.rows_per_unit, most, weighted=request.rows_per_unit < most)
    axes = axes_of(request, facts)
    method, shares = _shares(request, axes, facts, loss=float(loss), rows=rows, reach=bounded.rows)
    tables = tuple(shares)
    _require_size([axis.size for axis in axes], tables)
    plan = _with_noise(request.table, axes, shares, facts, loss, bounded)
    return PlannedRelease(request, axes, tables, bounded, method, certify(plan, facts))


def axes_of(request: ReleaseRequest, facts: Facts) -> tuple[Axis, ...]:
    """The columns in bins, as they are declared; of a tree, first the further columns, then its levels, the leaves last."""
    columns, cuts = facts.table(request.table).columns, dict(request.wanted.bins)
    for column in request.wanted.columns:
        if column not in columns:
            raise Refused("unknown-column", f"there is no column {column!r} in the table {request.table!r}")
    wanted = request.wanted
    if isinstance(wanted, RangeTree):
        further = tuple(axis_of(column, columns[column], bins=cuts.get(column)) for column in wanted.by)
        return (*further, *tree_axes(wanted.column, columns[wanted.column], branch=wanted.branch, bins=cuts.get(wanted.column)))
    return tuple(axis_of(column, columns[column], bins=cuts.get(column)) for column in wanted.columns)


def _shares(
    request: ReleaseRequest, axes: Sequence[Axis], facts: Facts, *, loss: float, rows: float | None, reach: int
) -> tuple[str, Mapping[tuple[int, ...], float]]:
    """How a synthetic table is made, and which share of the loss each table gets."""
    sizes, pure = [axis.size for axis in axes], facts.account is Account.PURE
    match request.wanted:
        case Marginals(ways=ways):
            wanted = [WantedCounts(table) for table in combinations(range(len(axes)), ways)]
            if len(wanted) > TABLES_MAX:
                raise Refused("release-size", f"a release has at most {TABLES_MAX:,} tables, not {len(wanted):,}")
            _require_size(sizes, [each.axes for each in wanted])
            split = price_split(sizes, wanted, pure=pure)
            return "", dict(zip(split.tables, split.shares, strict=True))
        case SyntheticTable(method=method):
            # as if a unit had one row: the price of noise for several is as much higher
            alone = loss / reach if pure else loss / reach**2
            family = Family.LAPLACE if pure else Family.GAUSSIAN
            found = chosen(sizes, loss=alone, rows=rows, family=family, method=SyntheticMethod(method))
            return found.method.value, found.shares
        case RangeTree(branch=branch, by=by):
            leaves = sizes[-1] - axes[-1].domain.nullable
            levels, planned = tree_widths(leaves, branch=branch), tree_split(leaves, pure=pure, branch=branch)
            further = tuple(range(len(by)))
            numbers = [len(by) + levels.index(width) for width in planned.widths]
            return "", {(*further, number): share for number, share in zip(numbers, planned.shares, strict=True)}


def _require_size(sizes: Sequence[int], tables: Sequence[tuple[int, ...]]) -> None:
    cells = sum(math.prod(sizes[number] for number in table) for table in tables)
    if cells > CELLS_MAX:
        message = f"these tables have {cells:,} cells together; a release has at most {CELLS_MAX:,}"
        raise Refused("release-size", message, hint="cut columns into fewer bins, or ask for fewer ways")


def _with_noise(
    table: str, axes: Sequence[Axis], shares: Mapping[tuple[int, ...], float], facts: Facts, loss: Fraction, bounded: RowsCounted
) -> Plan:
    """The noise that each table's share buys; sensitivities are the certifier's own."""
    rows, pure = Scan(table, bounded.scanned), facts.account is Account.PURE
    placeholder = DiscreteLaplace(Fraction(1)) if pure else DiscreteGaussian(Fraction(1))
    draft = release_plan(rows, axes, [CountTable(each, placeholder) for each in shares], bounded.bounding())
    derived, whole = derived_queries(draft, facts), Fraction(sum(shares.values()))
    laws = [
        law_for(
            facts.account,
            loss=loss * KEPT * Fraction(share) / max(whole, Fraction(1)),
            l1=query.vectors[0].sensitivity.l1,
            l2_squared=query.vectors[0].sensitivity.l2_squared,
            family=Family.LAPLACE if pure else Family.GAUSSIAN,
        )
        for query, share in zip(derived, shares.values(), strict=True)
    ]
    return release_plan(rows, axes, [CountTable(*each) for each in zip(shares, laws, strict=True)], bounded.bounding())
