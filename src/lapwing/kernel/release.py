"""The gate to noise for a plan: Certified + Permit + exact integers -> noisy columns. ``count_stream`` is the gate for a session of counts.

Noise is drawn in these two modules only, here once per cell, after the charge is durable. Each permit is taken once. What both return is
(with the ledger's admission rule) everything that depends on protected rows. Proof: docs/proofs/release.md.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from lapwing.errors import LapwingError
from lapwing.kernel.accounting import Account, Cost
from lapwing.kernel.blocks import BlockCost
from lapwing.kernel.certify import Certified, CertifiedQuery, CertifiedVector, certify
from lapwing.kernel.exact import Counts, Exact, ExactTable
from lapwing.kernel.expressions import Value
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import DiscoveredGroups, KnownGroups, ProductGroups
from lapwing.kernel.laws import Law, Sampler, pure_loss
from lapwing.kernel.noise.additive import add_noise
from lapwing.kernel.noise.quantile_tree import draw_quantiles
from lapwing.kernel.noise.reference import require_opendp
from lapwing.kernel.permit import Permit
from lapwing.kernel.rank_line import RankLine
from lapwing.kernel.selections import CertifiedQuantiles
from lapwing.kernel.sensitivity import Sensitivity

UNITS_COLUMN = "_units"
"""Name of the noisy number of units, or sum of their weights, that decided which discovered groups are shown."""

_taken: set[str] = set()
"""Nonces of all permits used by this process; kept for its life, so that no copy of a permit can be used again."""
_taken_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class NoisyColumn:
    """Noisy integers, one per group; each stands for value * ``step``."""

    name: str
    values: tuple[int, ...]
    law: Law
    step: Fraction
    rounding: Fraction


@dataclass(frozen=True, slots=True)
class ChosenQuantiles:
    """Selected integers of one set of quantiles: per target one value per group; each stands for value * ``step``."""

    name: str
    values: tuple[tuple[int, ...], ...]
    step: Fraction


@dataclass(frozen=True, slots=True)
class NoisyTable:
    """The release of one query. ``threshold`` is set when groups were discovered: a group needs about that many units to be shown.

    With ``axes``, groups are all combinations of their values, the last key running fastest, and ``groups`` is empty.
    """

    keys: tuple[str, ...]
    groups: tuple[tuple[Value, ...], ...]
    columns: tuple[NoisyColumn, ...]
    threshold: int | None
    rows_max: int
    quantiles: tuple[ChosenQuantiles, ...] = ()
    axes: tuple[tuple[Value, ...], ...] | None = None

    def column(self, name: str) -> NoisyColumn:
        """The column of that name."""
        return next(column for column in self.columns if column.name == name)

    def chosen(self, name: str) -> ChosenQuantiles:
        """The set of quantiles of that name."""
        return next(item for item in self.quantiles if item.name == name)


@dataclass(frozen=True, slots=True)
class Released:
    """All noisy tables of a plan, in the order of its queries."""

    digest: str
    tables: tuple[NoisyTable, ...]


def require_sampler(sampler: Sampler) -> None:
    """Stop (code ``sampler-missing``) a choice of sampler that is not installed here, before anything is charged."""
    if sampler is Sampler.OPENDP:
        require_opendp()


def release(certified: Certified, permit: Permit, exact: Exact, *, sampler: Sampler = Sampler.LAPWING) -> Released:
    """Draw noise for every cell. Refuses a permit that is for another plan, for less than the cost, or already used."""
    if type(certified) is not Certified or certify(certified.plan, certified.facts) != certified:
        raise LapwingError("permit-mismatch", "the certificate is not the one of its plan")
    if exact._certified != certified or len(exact._tables) != len(certified.queries):
        raise LapwingError("engine-result", "the engine's result does not fit the plan")
    take(certified.digest, certified.cost, permit, certified.blocks)
    how = HowDrawn(certified.facts, sampler)
    tables = tuple(_release_query(query, how, table) for query, table in zip(certified.queries, exact._tables, strict=True))
    return Released(certified.digest, tables)


@dataclass(frozen=True, slots=True)
class HowDrawn:
    """How the noise of a release is charged, and which sampler draws it."""

    facts: Facts
    sampler: Sampler = Sampler.LAPWING

    def added(self, law: Law, values: Sequence[int], bound: Sensitivity, charged: Fraction) -> tuple[int, ...]:
        """The values with noise."""
        account, epsilon = self.facts.account, None if self.facts.order is None else pure_loss(law, l1=bound.l1)
        if epsilon is not None:  # the loss at an order was derived from this epsilon, which is what a sampler's own map is about
            account, charged = Account.PURE, epsilon
        l1, l2_squared = bound.l1, bound.l2_squared
        return tuple(add_noise(law, values, account=account, l1=l1, l2_squared=l2_squared, charged=charged, sampler=self.sampler))


def take(digest: str, cost: Cost, permit: Permit, blocks: tuple[BlockCost, ...] = ()) -> None:
    """Use up a permit; refuse one that is for another plan, for less than the cost, for other ``blocks`` of time, or already used."""
    if type(permit) is not Permit or permit.digest != digest:
        raise LapwingError("permit-mismatch", "the permit is for another plan")
    if not permit.cost.covers(cost):
        raise LapwingError("permit-mismatch", "the permit does not cover the cost of the plan")
    if blocks and sorted(permit.ranges, key=_place) != sorted(blocks, key=_place):
        raise LapwingError("permit-mismatch", "the permit does not cover what each block of time pays")
    with _taken_lock:
        if permit.nonce in _taken:
            raise LapwingError("permit-used", "the permit was used before")
        _taken.add(permit.nonce)


def _place(block: BlockCost) -> tuple[bool, int]:
    return block.first is None, block.first or 0


def _release_query(certified: CertifiedQuery, how: HowDrawn, table: ExactTable) -> NoisyTable:
    query = certified.query
    fits = len(table._vectors) == len(query.vectors) and len(table._quantiles) == len(query.quantiles)
    if not fits or any(len(v) != len(table._groups) for v in table._vectors):
        raise LapwingError("engine-result", "the engine's result does not fit the plan")
    columns: list[NoisyColumn] = []
    threshold, axes = None, None
    groups: Sequence[tuple[Value, ...]]
    vectors: Sequence[Sequence[int]]
    if isinstance(query.groups, KnownGroups):
        groups = query.groups.groups
        vectors = dense_vectors(query.groups, table)
    elif isinstance(query.groups, ProductGroups):
        groups, axes = (), query.groups.axes
        vectors = dense_vectors(query.groups, table)
    else:
        groups, vectors, units = _shown(certified, query.groups, how, table)
        if certified.keys is not None:
            threshold = certified.keys.units
            columns.append(NoisyColumn(UNITS_COLUMN, units, query.groups.law, Fraction(1, certified.keys.weight), Fraction(0)))
    for vector, values in zip(certified.vectors, vectors, strict=True):
        columns.append(_noisy(vector, how, values))
    keys = tuple(name for name, _ in query.keys)
    chosen = tuple(_chosen(item, groups, rows, how.facts) for item, rows in zip(certified.quantiles, table._quantiles, strict=True))
    return NoisyTable(keys, tuple(groups), tuple(columns), threshold, certified.shape.rows_max, chosen, axes)


def _chosen(certified: CertifiedQuantiles, groups: Sequence[tuple[Value, ...]], rows: Counts, facts: Facts) -> ChosenQuantiles:
    mechanism = certified.mechanism
    lines = (rank_line(rows.get(group, ()), lower=mechanism.lower, upper=mechanism.upper) for group in groups)
    drawn = [draw_quantiles(mechanism, line, account=facts.account, charged=certified.loss) for line in lines]
    values = tuple(tuple(one[number] for one in drawn) for number in range(len(mechanism.targets)))
    return ChosenQuantiles(certified.quantiles.name, values, certified.step)


def rank_line(rows: Sequence[tuple[int, int]], *, lower: int, upper: int) -> RankLine:
    """The rows of one group on the line, each clamped to its ends. Privacy depends on which rows there are, not on their values."""
    counts: dict[int, int] = {}
    for value, count in rows:
        inside = min(max(value, lower), upper)
        counts[inside] = counts.get(inside, 0) + count
    values = sorted(counts)
    return RankLine(values, [counts[value] for value in values], lower=lower, upper=upper)


class ProductPlaces:
    """The index of each combination of values of the axes, the last axis varying fastest, without a list of all of them."""

    def __init__(self, axes: Sequence[Sequence[Value]]) -> None:
        strides = [math.prod(map(len, axes[number + 1 :])) for number in range(len(axes))]
        self._offsets = [{value: place * by for place, value in enumerate(axis)} for axis, by in zip(axes, strides, strict=True)]

    def get(self, group: tuple[Value, ...]) -> int | None:
        """The index of a group, None if it is not one of these."""
        found = [offsets.get(value) for offsets, value in zip(self._offsets, group, strict=True)]
        return sum(place for place in found if place is not None) if None not in found else None


def dense_vectors(groups: KnownGroups | ProductGroups, table: ExactTable) -> list[list[int]]:
    """One value per known group, 0 where the engine found no rows; groups that are not known are left out."""
    _require_once(table)
    places: ProductPlaces | dict[tuple[Value, ...], int]
    places = ProductPlaces(groups.axes) if isinstance(groups, ProductGroups) else {group: i for i, group in enumerate(groups.groups)}
    dense = [[0] * groups.cells for _ in table._vectors]
    for row, group in enumerate(table._groups):
        place = places.get(group)
        if place is not None:
            for values, released in zip(dense, table._vectors, strict=True):
                values[place] = released[row]
    return dense


def _require_once(table: ExactTable) -> None:
    """Refuse a result in which a group appears twice: the engine would choose which of its rows counts."""
    if len(set(table._groups)) != len(table._groups):
        raise LapwingError("engine-result", "the engine's result does not fit the plan")


def _noisy(certified: CertifiedVector, how: HowDrawn, values: Sequence[int]) -> NoisyColumn:
    noisy = how.added(certified.vector.law, values, certified.sensitivity, certified.loss)
    return NoisyColumn(certified.vector.name, noisy, certified.vector.law, certified.step, certified.rounding)


def _shown(
    certified: CertifiedQuery, groups: DiscoveredGroups, how: HowDrawn, table: ExactTable
) -> tuple[list[tuple[Value, ...]], list[list[int]], tuple[int, ...]]:
    """Groups whose noisy number or weight of units reaches the threshold; at most ``groups_max`` of them, those with the largest."""
    keys = certified.keys
    if keys is None or table._units is None or len(table._units) != len(table._groups):
        raise LapwingError("engine-result", "the engine's result does not fit the plan")
    _require_once(table)
    noisy = how.added(groups.law, table._units, keys.sensitivity, keys.loss)
    passing = [row for row, value in enumerate(noisy) if value >= keys.threshold]
    passing = sorted(passing, key=lambda row: (-noisy[row], _sort_key(table._groups[row])))[: groups.groups_max]
    passing.sort(key=lambda row: _sort_key(table._groups[row]))
    shown = [table._groups[row] for row in passing]
    return shown, [[vector[row] for row in passing] for vector in table._vectors], tuple(noisy[row] for row in passing)


def _sort_key(group: tuple[Value, ...]) -> tuple[tuple[bool, str, Value], ...]:
    """A total order of groups by their own values: the order of rows in an answer says nothing about the data."""
    return tuple((value is None, type(value).__name__, 0 if value is None else value) for value in group)
