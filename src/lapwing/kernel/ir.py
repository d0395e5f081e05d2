"""The closed relational IR: what the certifier reasons about and the renderer turns into engine SQL.

Every relation is *unit-local*: each of its rows belongs to one unit and depends on that unit's rows and on public tables only
(docs/proofs/unit-local.md). That is why removing a unit removes its rows and touches no others. A plan is a list of queries; each query
aggregates one relation into one vector of integers per output column, one cell per group.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import TypeAlias

from lapwing.kernel.canonical import ADDED
from lapwing.kernel.expressions import Expression, Value
from lapwing.kernel.laws import Law
from lapwing.kernel.quantile_tree import Target
from lapwing.kernel.window_columns import WindowColumn


class JoinKind(Enum):
    """Inner, or keeping every row of the left side."""

    INNER = "inner"
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of time from number ``first`` to number ``last``, of a table that has blocks.

    ``apart``: a unit of the relation is a person within one block, so that everything made of its rows stays within that block. Otherwise
    it is a person over all of these blocks.
    """

    first: int
    last: int
    apart: bool = False
    corrected: tuple[tuple[int, int], ...] = ()
    """Which of them hold corrected rows, each with the number of its correction: after a correction it is another question."""

    @property
    def number(self) -> int:
        """How many blocks there are."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Scan:
    """Rows of a prepared table whose rank within their unit is at most ``rows_per_unit``; of one with blocks, rows of ``blocks`` alone."""

    table: str
    rows_per_unit: int
    blocks: Blocks | None = field(default=None, metadata=ADDED)

    @property
    def blocks_per_unit(self) -> int:
        """In how many blocks of time one unit may have rows; one of a table without blocks."""
        return 1 if self.blocks is None or self.blocks.apart else self.blocks.number


@dataclass(frozen=True, slots=True)
class Filter:
    """Rows where ``predicate`` is true (not false, not NULL)."""

    source: Relation
    predicate: Expression


@dataclass(frozen=True, slots=True)
class Project:
    """One row per row, with exactly these columns."""

    source: Relation
    columns: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class PublicJoin:
    """Join to a public table on its unique key; adds ``columns`` as (output name, public column)."""

    source: Relation
    table: str
    on: Expression
    columns: tuple[tuple[str, str], ...]
    kind: JoinKind = JoinKind.INNER


@dataclass(frozen=True, slots=True)
class UnitJoin:
    """Join of two private relations on equality of units, always, and of ``on``; adds ``columns`` as (output name, right column)."""

    left: Relation
    right: Relation
    on: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, str], ...]
    kind: JoinKind = JoinKind.INNER
    where: Expression | None = None
    """A further condition on a pair of rows, over the columns of the left and those added."""


@dataclass(frozen=True, slots=True)
class SemiJoin:
    """Rows of ``source`` whose unit has a row in ``other`` (with equal ``on`` columns); ``negated`` keeps those that have none.

    ``where`` is a further condition on a pair of rows, over the columns of ``source`` and ``columns``: (name in it, column of ``other``).
    """

    source: Relation
    other: Relation
    on: tuple[tuple[str, str], ...] = ()
    negated: bool = False
    columns: tuple[tuple[str, str], ...] = ()
    where: Expression | None = None


@dataclass(frozen=True, slots=True)
class Union:
    """All rows of all sources; the sources have the same columns."""

    sources: tuple[Relation, ...]


class UnitAggregateKind(Enum):
    """What a per-unit column holds."""

    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class UnitAggregate:
    """An aggregate over the rows of one unit; COUNT of None counts rows, COUNT of a value counts non-NULL values."""

    kind: UnitAggregateKind
    value: Expression | None


@dataclass(frozen=True, slots=True)
class PerUnit:
    """One row per unit that has any row in ``source``; with ``keys``, one for each combination of their values that the unit has there."""

    source: Relation
    columns: tuple[tuple[str, UnitAggregate], ...]
    keys: tuple[tuple[str, Expression], ...] = ()


@dataclass(frozen=True, slots=True)
class UnitWindow:
    """One row per row, with further columns, each made of the rows of the same unit."""

    source: Relation
    columns: tuple[tuple[str, WindowColumn], ...]


Relation: TypeAlias = Scan | Filter | Project | PublicJoin | UnitJoin | SemiJoin | Union | PerUnit | UnitWindow


@dataclass(frozen=True, slots=True)
class Ranked:
    """The stability of the relation bounds the rows of a unit; there is no further bounding."""


@dataclass(frozen=True, slots=True)
class Weighted:
    """Each row weighs floor(2^bits * min(1, rows / rows of its unit)): a unit weighs at most rows * 2^bits in all."""

    rows: int
    bits: int


@dataclass(frozen=True, slots=True)
class Clipped:
    """Each unit's vector of cells, on a grid finer by 2^bits, is scaled to Euclidean norm at most the vector's ``cap``."""

    bits: int


@dataclass(frozen=True, slots=True)
class Grouped:
    """Each unit keeps at most ``groups`` groups, and each of its cells is clamped to the vector's ``cap``."""

    groups: int


Bounding: TypeAlias = Ranked | Weighted | Clipped | Grouped


@dataclass(frozen=True, slots=True)
class RowCount:
    """Number of rows (where ``where`` is true)."""

    where: Expression | None = None


@dataclass(frozen=True, slots=True)
class UnitCount:
    """Number of distinct units with a row (where ``where`` is true)."""

    where: Expression | None = None


@dataclass(frozen=True, slots=True)
class GridSum:
    """Sum of grid integers clamp(floor(value * steps + 1/2), K_L, K_U) - offset over rows where ``value`` is not NULL."""

    value: Expression
    lower: Fraction
    upper: Fraction
    steps: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class DistinctCount:
    """Number of distinct non-NULL values."""

    value: Expression


Measure: TypeAlias = RowCount | UnitCount | GridSum | DistinctCount


@dataclass(frozen=True, slots=True)
class UnitNorms:
    """One row per unit that has any row in ``source``, with one column: how many of the ``squared_edges`` are below its squared norm.

    The norm is Euclidean, of what the unit adds to the groups of ``keys`` in ``measure``. It is always the whole source of a query, never
    part of another relation. ``one_in`` above 1: only a sample of the units, chosen by a hash, has rows: about one in ``one_in``.
    """

    source: Relation
    keys: tuple[tuple[str, Expression], ...]
    measure: Measure
    squared_edges: tuple[int, ...]
    name: str
    one_in: int = 1


@dataclass(frozen=True, slots=True)
class Cap:
    """Bound on one unit's cell (Grouped) or vector norm (Clipped), in integers of the cell's own grid.

    ``alike`` (Clipped only) names another capped vector: the unit's cells of this one are then scaled by the smaller of both factors, so
    that their ratio keeps its meaning if the values of the two are similar.
    """

    limit: int
    alike: str | None = None


@dataclass(frozen=True, slots=True)
class Follow:
    """Clipped only: scale this sum by the very factor of the count vector named, so that their ratio keeps its meaning."""

    vector: str


@dataclass(frozen=True, slots=True)
class Vector:
    """One output column: what is measured, how one unit's share is bounded, and the noise it gets."""

    name: str
    measure: Measure
    law: Law
    bound: Cap | Follow | None = None


@dataclass(frozen=True, slots=True)
class QuantileSet:
    """Quantiles of one value over rows where it is not NULL, on its grid: clamp(floor(value * steps + 1/2)); dates and times as they are.

    ``scale`` is in rows: see :class:`lapwing.kernel.quantile_tree.QuantileTree`.
    """

    name: str
    value: Expression
    lower: Fraction
    upper: Fraction
    steps: int
    targets: tuple[Target, ...]
    scale: Fraction


@dataclass(frozen=True, slots=True)
class KnownGroups:
    """Groups listed beforehand from public facts; each always appears, others never do. No key columns: the one empty group."""

    groups: tuple[tuple[Value, ...], ...]

    @property
    def cells(self) -> int:
        """How many groups there are."""
        return len(self.groups)


@dataclass(frozen=True, slots=True)
class ProductGroups:
    """Known groups that are all combinations of one value of each axis, not listed; the last key varies fastest."""

    axes: tuple[tuple[Value, ...], ...]

    @property
    def groups(self) -> tuple[tuple[Value, ...], ...]:
        """All of them, as a list."""
        return tuple(itertools.product(*self.axes))

    @property
    def cells(self) -> int:
        """How many groups there are."""
        return math.prod(map(len, self.axes))


@dataclass(frozen=True, slots=True)
class DiscoveredGroups:
    """Groups found in the data; each is shown only if its noisy number of units reaches the threshold that ``delta`` asks for.

    With ``spread_bits`` a unit does not count 1 in each of its groups: in each of its d groups it weighs floor(2^spread_bits / sqrt(d)).
    """

    law: Law
    delta: Fraction
    groups_max: int
    spread_bits: int | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """One aggregation of one relation."""

    source: Relation | UnitNorms
    keys: tuple[tuple[str, Expression], ...]
    groups: KnownGroups | ProductGroups | DiscoveredGroups
    bounding: Bounding
    vectors: tuple[Vector, ...]
    quantiles: tuple[QuantileSet, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """All queries of one statement: one charge."""

    queries: tuple[Query, ...]
