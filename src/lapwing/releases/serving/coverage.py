"""Whether released marginals answer a statement, and with which weights; from public facts alone.

A statement is covered where it reads rows of the released table one by one, all columns it uses together are axes of one measured table,
and every condition, key and value is one value in each bin. Its aggregates are then weighted sums of the cells of a marginal. Nothing here
reads a count: the decision and its reason are functions of the statement and of declarations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lapwing.kernel.domains import Domain, IntegerDomain, RealDomain
from lapwing.kernel.expressions import Column, Expression, Value, columns_of
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Filter, GridSum, PerUnit, Project, PublicJoin, Relation, RowCount, Scan, SemiJoin, Union, UnitJoin, UnitWindow
from lapwing.kernel.stability import domain_of, shape_of
from lapwing.planning.group_enumeration.groups import place_in
from lapwing.planning.measures import Recipe, measured
from lapwing.releases.marginals.axes import Axis
from lapwing.releases.marginals.bin_values import BinValues, NotOneValue, Whole, bin_values
from lapwing.releases.marginals.variances import MarginalVariances
from lapwing.releases.tree.variances import TreeLevel, TreeSpreads
from lapwing.statements import Aggregate, AggregateKind, PrivateQuery, Statement, conjuncts, substituted

Floats: TypeAlias = npt.NDArray[np.float64]

GROUPS_MAX = 100_000
"""Most groups of one answer."""
ROWS = "rows"
"""The vector that counts all rows of a group, whether or not it was asked for."""

QUANTILE_CELLS_MAX = 50_000_000
"""Groups times cells of one quantile."""
QUANTILE_WORK_MAX = 400_000_000
"""Leaves squared, for each set of leaves that count together, where these are not all of them."""

_TREE_QUANTILES = {AggregateKind.QUANTILE_CONT, AggregateKind.QUANTILE_DISC}
_LINEAR = {AggregateKind.COUNT, AggregateKind.SUM, AggregateKind.AVG}
_NAMES = {
    AggregateKind.COUNT_DISTINCT: "COUNT(DISTINCT ...)",
    AggregateKind.COUNT_UNITS: "COUNT(DISTINCT ...)",
    AggregateKind.QUANTILE_CONT: "MEDIAN, or a quantile,",
    AggregateKind.QUANTILE_DISC: "a quantile",
}
_SHAPES = {
    PublicJoin: "joins another table",
    UnitJoin: "joins another table",
    SemiJoin: "tests whether a row exists elsewhere",
    Union: "combines several tables",
    PerUnit: "aggregates the rows of each unit first",
    UnitWindow: "compares the rows of each unit",
}


@dataclass(frozen=True, slots=True)
class PublicMarginals:
    """Public properties of released marginals: table, bins, axes and noise."""

    table: str
    axes: tuple[Axis, ...]
    variances: Mapping[tuple[int, ...], float]
    """Of one cell of each measured marginal, by the numbers of its axes, ascending."""
    laplace: bool = False
    """Whether some of the noise is Laplace's, whose tails are longer."""
    notes: tuple[str, ...] = ()
    """The notes on the release for every answer, such as that units with many rows count for less."""
    tree: tuple[TreeLevel, ...] = ()
    """Where the last axis is that of a tree: its levels. The one marginal is then over all axes, and its cells are the leaves."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bins of each axis."""
        return tuple(axis.size for axis in self.axes)

    @property
    def leaves(self) -> int:
        """Bins of the last axis other than that of NULL."""
        return self.sizes[-1] - self.axes[-1].domain.nullable

    def spreads(self) -> MarginalVariances | TreeSpreads:
        """The variances of sums of cells."""
        if not self.tree:
            return MarginalVariances(self.sizes, self.variances)
        return TreeSpreads(self.sizes, self.leaves, self.tree)

    def covers(self, axes: Sequence[int]) -> bool:
        """Whether one measured marginal holds all of these axes."""
        free = {axis for axis in axes if self.axes[axis].size > 1}
        return any(free <= set(held) for held in self.variances)


@dataclass(frozen=True, slots=True)
class NotCovered:
    """The reason why marginals do not answer a statement."""

    reason: str

    def __str__(self) -> str:
        return f"not covered: {self.reason}"


@dataclass(frozen=True, slots=True, eq=False)
class CoveredQuery:
    """A private query as weighted sums of the cells of a marginal."""

    query: PrivateQuery
    columns: Mapping[str, Domain]
    """Those that its keys are written over."""
    axes: tuple[int, ...]
    groups: tuple[tuple[Value, ...], ...]
    group: Whole
    """The number of the group that each cell belongs to; -1 for cells that do not count. In the shape of the marginal."""
    weights: Mapping[str, Floats]
    """By vector: the weight of each cell, in the shape of the marginal."""
    scales: Mapping[str, int]
    """By vector: of how many parts of one its weights are."""
    recipes: tuple[Recipe, ...]
    quantiles: Mapping[int, CoveredQuantile]
    """By the number of the aggregate."""


@dataclass(frozen=True, slots=True, eq=False)
class CoveredQuantile:
    """A quantile of the column of a tree."""

    share: Fraction
    counted: npt.NDArray[np.bool_]
    """Cells whose rows count, in the shape of the marginal; never those of NULL."""


class _Uncovered(Exception):
    """Stops the decision with a reason."""


def covered_queries(statement: Statement, facts: Facts, marginals: PublicMarginals) -> tuple[CoveredQuery, ...] | NotCovered:
    """The private queries of a statement over the cells of marginals, or the reason why that is impossible. No count is read."""
    if statement.first:
        return NotCovered("another answer decides which rows count")
    try:
        return tuple(_covered(query, facts, marginals) for query in statement.privates)
    except _Uncovered as stopped:
        return NotCovered(str(stopped))


def _covered(query: PrivateQuery, facts: Facts, marginals: PublicMarginals) -> CoveredQuery:
    table, names, conditions = rows_read(query.source, facts)
    if table != marginals.table:
        raise _Uncovered(f"the release is of the table {marginals.table!r}, not of {table!r}")
    quantiles = {number: each for number, each in enumerate(query.aggregates) if each.kind in _TREE_QUANTILES}
    for number, aggregate in enumerate(query.aggregates):
        if aggregate.kind not in _LINEAR and (number not in quantiles or not marginals.tree):
            name = _NAMES.get(aggregate.kind, aggregate.kind.value.upper())
            raise _Uncovered(f"{name} cannot be computed from counts and sums of cells")
    for aggregate in quantiles.values():
        _require_leaves(aggregate, names, marginals.axes[-1])
    shape = shape_of(query.source, facts)
    vectors = measured(query.aggregates, shape)
    parts = [_Part(each, "the condition") for condition in conditions for each in conjuncts(condition)]
    keys = [substituted(key, names) for _, key in query.keys]
    parts += [_Part(key, "the group") for key in keys]
    counted, summed = dict[str, Expression | None](), dict[str, GridSum]()
    for name, measure in vectors.measures.items():
        if isinstance(measure, RowCount):
            counted[name] = None if measure.where is None else substituted(measure.where, names)
            parts += [] if measure.where is None else [_Part(substituted(measure.where, names), "what is counted")]
        else:
            assert isinstance(measure, GridSum)
            summed[name] = measure
            parts.append(_Part(substituted(measure.value, names), "what is summed"))
    filters = {number: None if each.where is None else substituted(each.where, names) for number, each in quantiles.items()}
    parts += [_Part(each, "what is counted") for each in filters.values() if each is not None]
    axes = _axes_of(parts, facts, marginals, leaves=bool(quantiles))
    found = dict(zip((part.expression for part in parts), _looked_at(parts, marginals.axes), strict=True))
    spread = _Spread(axes, tuple(marginals.axes[number].size for number in axes))

    kept = reduce(np.logical_and, (spread.whole(found[part.expression]) for part in parts if part.role == "the condition"), spread.all)
    domains = {axis.column: axis.domain for axis in marginals.axes}
    groups, group = _groups(query, [spread.coded(found[key]) for key in keys], [domain_of(key, domains) for key in keys], kept)
    weights: dict[str, Floats] = {ROWS: kept.astype(np.float64)}
    scales = {ROWS: 1}
    for name, where in counted.items():
        weights[name] = (kept if where is None else kept & spread.whole(found[where])).astype(np.float64)
        scales[name] = 1
    for name, grid in summed.items():
        value = found[substituted(grid.value, names)]
        numbers = spread.numbers(value) * grid.steps - grid.offset
        weights[name] = np.where(kept & spread.present(value), numbers, 0.0)
        scales[name] = grid.steps
    present = np.arange(marginals.sizes[-1]) < marginals.leaves
    counted_in = {number: kept if where is None else kept & spread.whole(found[where]) for number, where in filters.items()}
    covered = {number: CoveredQuantile(each.share or Fraction(1, 2), counted_in[number] & present) for number, each in quantiles.items()}
    for quantile in covered.values():
        _require_work(quantile, len(groups), marginals.leaves)
    return CoveredQuery(query, shape.columns, axes, groups, group, weights, scales, vectors.recipes, covered)


def _require_leaves(quantile: Aggregate, names: Mapping[str, Expression], leaf: Axis) -> None:
    value = None if quantile.value is None else substituted(quantile.value, names)
    if value != Column(leaf.column):
        raise _Uncovered(f"a tree has only quantiles of its own column, {leaf.column!r}")
    if not isinstance(leaf.domain, IntegerDomain | RealDomain):
        raise _Uncovered("quantiles can be read off trees of numbers, not of dates or timestamps")
    if quantile.share is not None and not 0 < quantile.share < 1:
        raise _Uncovered("the least and the greatest value cannot be read off a tree")


def _require_work(quantile: CoveredQuantile, groups: int, leaves: int) -> None:
    """Refuse quantiles of some leaves only, or of very many groups, which take too long."""
    rows = quantile.counted.reshape(-1, quantile.counted.shape[-1])[:, :leaves]
    all_or_none = bool(np.all(rows.any(axis=-1) == rows.all(axis=-1)))
    ways = 0 if all_or_none else np.unique(rows, axis=0).shape[0] + groups
    if groups * rows.size > QUANTILE_CELLS_MAX or ways * leaves**2 > QUANTILE_WORK_MAX:
        raise _Uncovered("there are too many leaves and groups to compute quantiles")


@dataclass(frozen=True, slots=True)
class _Part:
    """An expression over columns of the table, and its role."""

    expression: Expression
    role: str


def rows_read(relation: Relation, facts: Facts) -> tuple[str, Mapping[str, Expression], tuple[Expression, ...]]:
    """The table that a relation reads row by row, its columns over those of the table, and its conditions."""
    match relation:
        case Scan(table):
            return table, {name: Column(name) for name in facts.table(table).columns}, ()
        case Filter(source, predicate):
            table, names, conditions = rows_read(source, facts)
            return table, names, (*conditions, substituted(predicate, names))
        case Project(source, columns):
            table, names, conditions = rows_read(source, facts)
            return table, {name: substituted(value, names) for name, value in columns}, conditions
        case _:
            raise _Uncovered(f"it {_SHAPES[type(relation)]}, and a release answers only for single rows of its table")


def _axes_of(parts: Sequence[_Part], facts: Facts, marginals: PublicMarginals, *, leaves: bool) -> tuple[int, ...]:
    numbers = {axis.column: number for number, axis in enumerate(marginals.axes)}
    declared = facts.table(marginals.table).columns
    own = {marginals.axes[-1].column} if leaves else set()
    used = sorted(own | {name for part in parts for name in columns_of(part.expression)})
    for name in used:
        if name not in numbers:
            raise _Uncovered(f"the column {name!r} is not part of the release")
        if declared[name] != marginals.axes[numbers[name]].domain:
            raise _Uncovered(f"the column {name!r} was declared differently when the release was made")
    axes = tuple(sorted(numbers[name] for name in used))
    if not marginals.variances:
        raise _Uncovered("nothing was measured")
    if not marginals.covers(axes):
        raise _Uncovered(f"no measured table has {_listed([marginals.axes[number].column for number in axes])} together")
    return axes


def _looked_at(parts: Sequence[_Part], axes: Sequence[Axis]) -> list[BinValues]:
    """The value of each part in each bin."""
    try:
        return bin_values([part.expression for part in parts], axes)
    except NotOneValue:
        pass
    found = []
    for part in parts:  # which of them it is
        try:
            found += bin_values([part.expression], axes)
        except NotOneValue as stopped:
            raise _Uncovered(f"{part.role} distinguishes what the release does not: {stopped}") from None
    return found


@dataclass(frozen=True, slots=True)
class _Spread:
    """Values over some axes, spread over all that a query uses."""

    axes: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def all(self) -> npt.NDArray[np.bool_]:
        return np.ones(self.sizes, dtype=np.bool_)

    def coded(self, found: BinValues) -> tuple[tuple[Value, ...], Whole]:
        """The values, NULL last, and the number of that in each cell."""
        codes = np.where(found.codes < 0, len(found.values), found.codes)
        return (*found.values, None), np.broadcast_to(self._placed(found, codes), self.sizes)

    def whole(self, found: BinValues) -> npt.NDArray[np.bool_]:
        """Where a condition is true."""
        return np.broadcast_to(self._placed(found, found.numbers(0.0) == 1.0), self.sizes)

    def present(self, found: BinValues) -> npt.NDArray[np.bool_]:
        """Where there is a value."""
        return np.broadcast_to(self._placed(found, found.codes >= 0), self.sizes)

    def numbers(self, found: BinValues) -> Floats:
        return np.broadcast_to(self._placed(found, found.numbers(0.0)), self.sizes)

    def _placed(self, found: BinValues, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        sizes = dict(zip(found.axes, values.shape, strict=True))
        return values.reshape([sizes.get(axis, 1) for axis in self.axes])


def _groups(
    query: PrivateQuery,
    keys: Sequence[tuple[tuple[Value, ...], Whole]],
    domains: Sequence[Domain],
    kept: npt.NDArray[np.bool_],
) -> tuple[tuple[tuple[Value, ...], ...], Whole]:
    """The groups that cells that count can be in, in order, and the number of each cell's group."""
    if not keys:
        return ((),), np.where(kept, 0, -1)
    if math.prod(len(values) for values, _ in keys) >= 2**62:
        raise _Uncovered(f"it has more than {GROUPS_MAX:,} groups")
    codes = np.zeros(kept.shape, dtype=np.int64)
    for values, own in keys:
        codes = codes * len(values) + own
    present, number = np.unique(codes[kept], return_inverse=True)
    if len(present) > GROUPS_MAX:
        raise _Uncovered(f"it has more than {GROUPS_MAX:,} groups")
    found = [_decoded(int(code), [values for values, _ in keys]) for code in present]
    if query.groups is None:
        places = [place_in(domain) for domain in domains]
        order = sorted(found, key=lambda group: tuple(place(value) for place, value in zip(places, group, strict=True)))
        listed = tuple(dict.fromkeys(order))
    else:
        listed = query.groups
    numbers = {group: place for place, group in enumerate(listed)}
    group = np.full(kept.shape, -1, dtype=np.int64)
    group[kept] = np.array([numbers.get(each, -1) for each in found], dtype=np.int64)[number]
    return listed, group


def _decoded(code: int, keys: Sequence[tuple[Value, ...]]) -> tuple[Value, ...]:
    group: list[Value] = []
    for values in reversed(keys):
        code, place = divmod(code, len(values))
        group.append(values[place])
    return tuple(reversed(group))


def _listed(names: Sequence[str]) -> str:
    quoted = [repr(name) for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
