"""The gate: re-derives stability, sensitivity and cost from a finished plan alone, or refuses.

``certify`` trusts nothing the planner says except the plan itself. It reads public facts only, so its decision and its price are public.
Only it makes ``Certified`` objects; engines run, and ``release`` noises, nothing else. Proof of the whole: docs/proofs/certify.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from lapwing.errors import Refused
from lapwing.kernel import sensitivity as bounds_table
from lapwing.kernel.accounting import Account, Cost, charge_delta, charge_loss
from lapwing.kernel.blocks import BlockCost, BlocksRead, costs_by_block, group_cost, reach_of
from lapwing.kernel.canonical import digest
from lapwing.kernel.domains import INTEGER_LIMIT, Kind, RealDomain, kind_of
from lapwing.kernel.expressions import not_null
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import (
    Cap,
    Clipped,
    DiscoveredGroups,
    DistinctCount,
    Follow,
    GridSum,
    Grouped,
    KnownGroups,
    Plan,
    ProductGroups,
    Query,
    Ranked,
    RowCount,
    UnitCount,
    Vector,
    Weighted,
)
from lapwing.kernel.laws import Law, loss, pure_loss
from lapwing.kernel.plan_types import require_exact_types
from lapwing.kernel.row_ranges import row_range
from lapwing.kernel.selections import CertifiedQuantiles, certify_quantiles
from lapwing.kernel.sensitivity import RowRange, Sensitivity
from lapwing.kernel.stability import Shape, domain_of
from lapwing.kernel.thresholds import least_spread_threshold, least_threshold
from lapwing.kernel.unit_norms import source_shape
from lapwing.kernel.workload import require_bounded_work

_SEAL = object()
SQUARE_LIMIT = 2**126
"""Sums of squares in clipping stay below this, inside 128-bit integers."""
BITS_MAX = 40
"""Finest grid of weights and clipped cells."""
SPREAD_BITS_MAX = 24
"""Finest grid of the weights by which units find groups: a square of one, times a number of groups, stays below 2^50."""
CELLS_MAX = 10_000_000
"""Most known groups a query may list."""


@dataclass(frozen=True, slots=True)
class CertifiedVector:
    """A vector with what certification derived for it."""

    vector: Vector
    sensitivity: Sensitivity
    loss: Fraction
    step: Fraction
    """What one integer of the vector stands for."""
    rounding: Fraction
    """Most by which one row's contribution was rounded to the grid."""
    pure: Fraction | None = None
    """Its epsilon, where the account has an order and the noise is Laplace's."""


@dataclass(frozen=True, slots=True)
class PartitionSelection:
    """The key threshold of a query with discovered groups (partition selection)."""

    threshold: int
    groups_per_unit: int
    sensitivity: Sensitivity
    loss: Fraction
    weight: int = 1
    """What a unit adds to its group if it has only one, on the grid of the threshold."""

    @property
    def units(self) -> int:
        """How many units a group must have for its exact sum to reach the threshold; more where its units have other groups too."""
        return -(-self.threshold // self.weight)


@dataclass(frozen=True, slots=True)
class CertifiedQuery:
    """A query with the shape of its relation and the derived bounds."""

    query: Query
    shape: Shape
    groups_per_unit: int
    vectors: tuple[CertifiedVector, ...]
    keys: PartitionSelection | None
    reads: BlocksRead
    """Which blocks of time it reads."""
    quantiles: tuple[CertifiedQuantiles, ...] = ()


@dataclass(frozen=True, slots=True)
class Certified:
    """A plan that may be run and released for ``cost``. Made by ``certify`` only."""

    plan: Plan
    facts: Facts
    queries: tuple[CertifiedQuery, ...]
    cost: Cost
    """Of all queries together: what one block pays at most."""
    digest: str
    seal: object
    blocks: tuple[BlockCost, ...] = ()
    """What each block pays, where the plan reads blocks of time."""
    person: Cost | None = None
    """What one person loses by it over all blocks that it reads; None if it reads no blocks of time."""

    def __post_init__(self) -> None:
        if self.seal is not _SEAL:
            raise TypeError("only certify makes Certified plans")


def certify(plan: Plan, facts: Facts) -> Certified:
    """Derive bounds and cost of every query of the plan; the cost is that of all of them together, rounded up once."""
    queries = derived_queries(plan, facts)
    identity = digest((plan, facts.source_id, facts.version))
    by_block = costs_by_block([query.reads for query in queries], lambda readers: total_cost(tuple(queries[number] for number in readers)))
    return Certified(plan, facts, queries, total_cost(queries), identity, _SEAL, by_block, _cost_of_person(queries, facts, by_block))


def derived_queries(plan: Plan, facts: Facts) -> tuple[CertifiedQuery, ...]:
    """Derive bounds of every query of the plan, or refuse. These have no seal, so nothing can be run or released with them."""
    if not plan.queries:
        raise Refused("plan-empty", "a statement must ask for something")
    require_exact_types(plan)
    shapes = tuple(source_shape(query.source, facts) for query in plan.queries)
    require_bounded_work(tuple(zip(plan.queries, shapes, strict=True)), facts)
    return tuple(_certify_query(query, shape, facts) for query, shape in zip(plan.queries, shapes, strict=True))


def total_cost(queries: tuple[CertifiedQuery, ...]) -> Cost:
    """Losses and deltas of all vectors, sets of quantiles and key thresholds add; each total is rounded up once. So do their epsilons,
    unless one of them has none: a threshold has a delta instead.
    """
    total, delta = Fraction(0), Fraction(0)
    epsilons: list[Fraction | None] = []
    for certified in queries:
        total += sum((vector.loss for vector in certified.vectors), Fraction(0))
        total += sum((quantiles.loss for quantiles in certified.quantiles), Fraction(0))
        epsilons += [vector.pure for vector in certified.vectors]
        epsilons += [quantiles.pure for quantiles in certified.quantiles]
        if certified.keys is not None and isinstance(certified.query.groups, DiscoveredGroups):
            total += certified.keys.loss
            delta += certified.query.groups.delta
            epsilons.append(None)
    finite = [epsilon for epsilon in epsilons if epsilon is not None]
    pure = charge_loss(sum(finite, Fraction(0))) if len(finite) == len(epsilons) else None
    return Cost(loss=charge_loss(total), delta=charge_delta(delta), pure=pure)


def _cost_of_person(queries: tuple[CertifiedQuery, ...], facts: Facts, by_block: tuple[BlockCost, ...]) -> Cost | None:
    if not by_block:
        return None
    by_units: dict[int, list[CertifiedQuery]] = {}
    for query in queries:
        by_units.setdefault(query.reads.units_per_person, []).append(query)
    return sum((group_cost(total_cost(tuple(some)), units, facts.account) for units, some in by_units.items()), Cost.zero())


def _certify_query(query: Query, shape: Shape, facts: Facts) -> CertifiedQuery:
    reads, cells = reach_of(query.source), _check_groups(query, shape)
    facts = reads.facts(facts)
    if not query.vectors and not query.quantiles and not isinstance(query.groups, DiscoveredGroups):
        raise Refused("plan-empty", "a query must measure something")
    names = [vector.name for vector in query.vectors] + [item.name for item in query.quantiles] + [name for name, _ in query.keys]
    if len(set(names)) != len(names):
        raise Refused("column-name", "two output columns have the same name")
    if isinstance(query.bounding, Weighted | Clipped) and not 0 <= query.bounding.bits <= BITS_MAX:
        raise Refused("bound-missing", f"a finer grid has from 0 to {BITS_MAX} bits")
    per_unit = groups_per_unit(query, shape, cells)
    vectors = tuple(_certify_vector(vector, query, shape, facts, cells, per_unit) for vector in query.vectors)
    quantiles = tuple(certify_quantiles(item, query, shape, facts) for item in query.quantiles)
    return CertifiedQuery(query, shape, per_unit, vectors, _certify_keys(query, shape, facts, per_unit), reads, quantiles)


def _check_groups(query: Query, shape: Shape) -> int | None:
    """Number of cells if the groups are known; refuses keys that would name units or depend on a grid of doubles."""
    for name, key in query.keys:
        domain = domain_of(key, shape.columns)
        if kind_of(domain) is Kind.KEY:
            hint = "aggregate per unit inside a subquery"
            raise Refused("groups-by-unit", f"grouping by the identifier {name!r} would publish it", hint=hint)
        if isinstance(domain, RealDomain) and domain.steps is None and isinstance(query.bounding, Grouped):
            # 0.0 and -0.0 are one group but two texts: which of a unit's groups are kept would depend on the engine's threads.
            raise Refused("groups-by-real", f"a unit's groups cannot be chosen by the computed real number {name!r}")
        if isinstance(domain, RealDomain) and isinstance(query.groups, DiscoveredGroups):
            hint = "bin it, for example with FLOOR"
            raise Refused("groups-by-real", f"grouping by the real number {name!r} needs known groups", hint=hint)
    match query.groups:
        case KnownGroups(groups):
            if not 1 <= len(groups) <= CELLS_MAX or len(set(groups)) != len(groups):
                raise Refused("groups-invalid", f"known groups must be distinct and from 1 to {CELLS_MAX}")
            if any(len(group) != len(query.keys) for group in groups):
                raise Refused("groups-invalid", "a known group does not fit the keys")
            return len(groups)
        case ProductGroups(axes):
            if len(axes) != len(query.keys) or any(len(set(axis)) != len(axis) for axis in axes):
                raise Refused("groups-invalid", "the axes of known groups must be as many as the keys, and their values distinct")
            if not 1 <= query.groups.cells <= CELLS_MAX or query.quantiles:
                raise Refused("groups-invalid", f"a product of axes has from 1 to {CELLS_MAX} groups, and no quantiles")
            return query.groups.cells
        case DiscoveredGroups():
            if not query.keys:
                raise Refused("groups-invalid", "groups cannot be discovered without keys")
            return None
        case _:
            assert_never(query.groups)


def groups_per_unit(query: Query, shape: Shape, cells: int | None) -> int:
    """Most groups one unit can touch: its rows bound it, the known cells bound it, and Grouped does."""
    most = shape.rows_per_unit if cells is None else min(shape.rows_per_unit, cells)
    return min(most, query.bounding.groups) if isinstance(query.bounding, Grouped) else most


def _certify_keys(query: Query, shape: Shape, facts: Facts, per_unit: int) -> PartitionSelection | None:
    groups = query.groups
    if not isinstance(groups, DiscoveredGroups):
        return None
    if facts.account is not Account.APPROXIMATE:
        hint = "declare the values of the key"
        raise Refused("keys-need-delta", "groups can only be discovered when the data set has a delta", hint=hint)
    if isinstance(query.bounding, Weighted):
        raise Refused("keys-need-rows", "groups cannot be discovered with row weights")
    if not 0 < groups.delta < 1 or groups.groups_max < 1:
        raise Refused("keys-delta", "discovering groups needs a delta between 0 and 1 and a positive limit of groups")
    if groups.spread_bits is not None:
        return _certify_spread_keys(groups, groups.spread_bits, query, shape, facts, per_unit)
    if isinstance(query.bounding, Clipped):
        raise Refused("clipped-known-groups", "with clipping, groups are known, or discovered by weights that units spread over them")
    bound = bounds_table.units_counted(facts.neighbours, groups=per_unit)
    threshold = least_threshold(groups.law, groups_per_unit=per_unit, delta=groups.delta)
    return PartitionSelection(threshold, per_unit, bound, _loss(groups.law, facts, bound))


def _certify_spread_keys(
    groups: DiscoveredGroups, bits: int, query: Query, shape: Shape, facts: Facts, per_unit: int
) -> PartitionSelection:
    """Units spread their weight over all of their groups: docs/proofs/key-weights.md."""
    if not 0 <= bits <= SPREAD_BITS_MAX or shape.rows_max << bits >= INTEGER_LIMIT:
        raise Refused("range-too-wide", "the weights by which groups are discovered could exceed 62 bits")
    if any(isinstance(vector.measure, DistinctCount) for vector in query.vectors):
        raise Refused("measure-unsupported", "distinct values are counted where units count once in each group that is discovered")
    bound = bounds_table.units_spread(facts.neighbours, groups=per_unit, bits=bits)
    threshold = least_spread_threshold(groups.law, bits=bits, groups_per_unit=per_unit, delta=groups.delta)
    return PartitionSelection(threshold, per_unit, bound, _loss(groups.law, facts, bound), 2**bits)


def _loss(law: Law, facts: Facts, bound: Sensitivity) -> Fraction:
    return loss(law, facts.account, l1=bound.l1, l2_squared=bound.l2_squared, order=facts.order)


def _certify_vector(vector: Vector, query: Query, shape: Shape, facts: Facts, cells: int | None, per_unit: int) -> CertifiedVector:
    row, step, rounding = row_range(vector.measure, shape.columns)
    bits = query.bounding.bits if isinstance(query.bounding, Weighted | Clipped) else 0
    if isinstance(vector.measure, DistinctCount) or (isinstance(vector.measure, UnitCount) and vector.bound is None):
        bits = 0
    bound = _bound(vector, row, query, shape, facts, per_unit).within(cells)
    if bound.l1 >= INTEGER_LIMIT:
        raise Refused("range-too-wide", f"one unit could move the column {vector.name!r} by more than 62 bits hold")
    _check_overflow(vector, row, bits, query, shape)
    pure = None if facts.order is None else pure_loss(vector.law, l1=bound.l1)
    return CertifiedVector(vector, bound, _loss(vector.law, facts, bound), step / 2**bits, rounding, pure)


def _bound(vector: Vector, row: RowRange, query: Query, shape: Shape, facts: Facts, per_unit: int) -> Sensitivity:
    neighbours, rows = facts.neighbours, shape.rows_per_unit
    if isinstance(vector.measure, UnitCount) and not (isinstance(query.bounding, Clipped) and vector.bound is not None):
        _no_bound(vector)
        if isinstance(query.bounding, Weighted):
            raise Refused("measure-unsupported", "units cannot be counted by weight")
        return bounds_table.units_counted(neighbours, groups=per_unit)
    if isinstance(vector.measure, DistinctCount):
        _no_bound(vector)
        if not isinstance(query.bounding, Ranked):
            raise Refused("measure-unsupported", "distinct values are counted with ranked bounding only")
        return bounds_table.distinct_counted(neighbours, pairs=rows)
    match query.bounding, vector.bound:
        case Ranked(), None:
            return bounds_table.rows_weighing(neighbours, weight=rows, row=row)
        case Weighted(weight_rows, bits), None:
            if not shape.weighable or weight_rows < 1 or isinstance(query.groups, DiscoveredGroups):
                raise Refused("weights-unsound", "row weights need known groups and rows of one prepared table, without joins that fan out")
            return bounds_table.rows_weighing(neighbours, weight=weight_rows << bits, row=row)
        case Clipped(), (Cap() | Follow()):
            # Two units differ in at most this many cells.
            cells = 2 * per_unit if isinstance(query.groups, DiscoveredGroups) else query.groups.cells
            return bounds_table.clipped(neighbours, norm=_norm(vector, row, query), cells=cells, non_negative=row.non_negative)
        case Grouped(groups), Cap(limit, None) if 1 <= limit < INTEGER_LIMIT and groups >= 1:
            return bounds_table.grouped(neighbours, groups=per_unit, cell=limit, non_negative=row.non_negative)
        case _:
            raise Refused("bound-missing", "the bound of an output column does not fit the bounding plan")


def _no_bound(vector: Vector) -> None:
    if vector.bound is not None:
        raise Refused("bound-missing", "a count of distinct things takes no bound of its own")


def _norm(vector: Vector, row: RowRange, query: Query) -> int:
    """Largest norm of a unit's clipped vector; a sum that follows a count has at most the count's norm times the largest row value."""
    match vector.bound:
        case Cap(limit, alike) if 1 <= limit < INTEGER_LIMIT:
            others = [v for v in query.vectors if v.name == alike and v.name != vector.name and isinstance(v.bound, Cap)]
            if alike is not None and not others:
                raise Refused("bound-missing", "a vector can only be scaled like another clipped one of the same query")
            return limit
        case Follow(name):
            leader = next((v for v in query.vectors if v.name == name), None)
            if leader is None or not isinstance(leader.measure, RowCount) or not isinstance(leader.bound, Cap) or leader.bound.limit < 1:
                raise Refused("bound-missing", "a sum can only follow a clipped count of the same query")
            if not isinstance(vector.measure, GridSum) or leader.measure.where not in (None, not_null(vector.measure.value)):
                raise Refused("bound-missing", "a sum can only follow a count of the rows it adds up")
            return leader.bound.limit * row.magnitude
        case _:
            raise Refused("bound-missing", "clipping needs a positive bound")


def _check_overflow(vector: Vector, row: RowRange, bits: int, query: Query, shape: Shape) -> None:
    """No exact cell can reach 2^62 and no square 2^126, whatever the data: decided before anything is read."""
    cell = (row.magnitude << bits) * shape.rows_max
    norm = _norm(vector, row, query) if isinstance(query.bounding, Clipped) and vector.bound is not None else 0
    too_large = cell >= INTEGER_LIMIT or norm * shape.rows_max >= INTEGER_LIMIT or shape.rows_per_unit * norm**2 >= SQUARE_LIMIT
    if too_large:
        hint = "a smaller declared rows_max, or a coarser grid"
        raise Refused("range-too-wide", f"the column {vector.name!r} could exceed 62 bits", hint=hint)
