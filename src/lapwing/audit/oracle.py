"""The sensitivity oracle compares exact differences on the real engine with the kernel's claims.

For a plan and two neighbouring data sets, both prepared from their sources, the oracle runs the certified SQL on both, takes the exact
difference of every vector and compares its norms with the certificate. It draws no noise and is deterministic: a breach proves that a
rule, the preparation, the renderer or the certifier is wrong. It also checks what must not differ at all: facts, SQL, groups, cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from lapwing.engines.base import Snapshot
from lapwing.kernel import laws, thresholds
from lapwing.kernel.accounting import DELTA_UNITS, LOSS_UNITS, Account, Cost
from lapwing.kernel.certify import Certified, CertifiedQuery, certify
from lapwing.kernel.exact import Counts, Exact, ExactTable
from lapwing.kernel.expressions import Value
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import DiscoveredGroups, Plan
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.release import dense_vectors
from lapwing.kernel.selections import CertifiedQuantiles
from lapwing.kernel.sensitivity import Sensitivity


@dataclass(frozen=True, slots=True)
class RefutedClaim:
    """A claim of the certificate that a pair of neighbours refutes. For test data only: it contains exact figures."""

    what: str
    claimed: object
    measured: object

    def __str__(self) -> str:
        return f"{self.what}: claimed {self.claimed}, measured {self.measured}"


def gap(left: Sequence[int], right: Sequence[int]) -> Sensitivity:
    """Exact norms of the difference of two vectors."""
    differences = [abs(a - b) for a, b in zip(left, right, strict=True)]
    return Sensitivity(l1=sum(differences), l2_squared=sum(d * d for d in differences), linf=max(differences, default=0))


@dataclass(frozen=True, slots=True)
class ExactResult:
    """A certified plan with its exact result on one data set."""

    certified: Certified
    exact: Exact


def measure(plan: Plan, snapshot: Snapshot) -> ExactResult:
    """Certify the plan for the snapshot's own facts, and run it."""
    certified = certify(plan, snapshot.facts)
    return ExactResult(certified, snapshot.run(certified))


@dataclass(frozen=True, slots=True)
class ChangedBlock:
    """Where neighbours differ, in data with blocks of time: the number of one block, or None for the standing block."""

    number: int | None

    def cost(self, certified: Certified) -> Cost:
        """What the certificate charges this block."""
        for block in certified.blocks:
            if self.number is None and block.first is None:
                return block.cost
            if self.number is not None and block.first is not None and block.last is not None and block.first <= self.number <= block.last:
                return block.cost
        return certified.cost if self.number is None and not certified.blocks else Cost.zero()

    def is_read(self, query: CertifiedQuery) -> bool:
        """Whether the query claims to read this block."""
        return query.reads.standing if self.number is None else query.reads.reads(self.number)


def compare(left: ExactResult, right: ExactResult, *, changed: ChangedBlock | None = None) -> list[RefutedClaim]:
    """All breaches of a plan's certificate on one pair of neighbours. Public values must not differ at all."""
    a, b = left.certified, right.certified
    if (a.facts, a.cost, a.blocks, a.digest) != (b.facts, b.cost, b.blocks, b.digest):
        return [RefutedClaim("facts, cost or digest", "equal on neighbours", "different")]
    return compare_exact(a, left.exact, right.exact, changed=changed)


def _by_group(table: ExactTable) -> object:
    """All that a query counted, by group, in no order."""
    units = table._units if table._units is not None else [None] * len(table._groups)
    counted = dict(zip(table._groups, zip(units, *table._vectors, strict=True), strict=True))
    return counted, [{group: sorted(rows) for group, rows in counts.items()} for counts in table._quantiles]


def compare_exact(certified: Certified, left: Exact, right: Exact, *, changed: ChangedBlock | None = None) -> list[RefutedClaim]:
    """All breaches, given both exact results, of data sets that differ in one unit or, with blocks of time, in one block of it."""
    charged = certified.cost if changed is None else changed.cost(certified)
    breaches: list[RefutedClaim] = []
    loss, delta = Fraction(0), Fraction(0)
    pure: list[Fraction | None] = []
    for index, query in enumerate(certified.queries):
        if changed is not None and not changed.is_read(query):
            if _by_group(left._tables[index]) != _by_group(right._tables[index]):
                breaches.append(RefutedClaim(f"query {index}, over blocks that do not differ", "equal on neighbours", "different"))
            continue
        query_breaches, query_loss, query_delta = _compare_query(query, certified, left._tables[index], right._tables[index], pure)
        breaches += [RefutedClaim(f"query {index}, {breach.what}", breach.claimed, breach.measured) for breach in query_breaches]
        loss, delta = loss + query_loss, delta + query_delta
    if loss * LOSS_UNITS > charged.loss:
        breaches.append(RefutedClaim("loss of the statement", charged.loss, loss * LOSS_UNITS))
    if charged.pure is not None:
        epsilon = None if None in pure else sum((part for part in pure if part is not None), Fraction(0)) * LOSS_UNITS
        if epsilon is None or epsilon > charged.pure:
            breaches.append(RefutedClaim("pure epsilon of the statement", charged.pure, "none" if epsilon is None else epsilon))
    if delta * DELTA_UNITS > charged.delta:
        breaches.append(RefutedClaim("delta of the statement", charged.delta, delta * DELTA_UNITS))
    return breaches


def _compare_query(
    query: CertifiedQuery, certified: Certified, left: ExactTable, right: ExactTable, pure: list[Fraction | None]
) -> tuple[list[RefutedClaim], Fraction, Fraction]:
    """Breaches, loss and delta; appends the pure epsilon of each part to ``pure``, None if it has none."""
    breaches: list[RefutedClaim] = []
    delta = Fraction(0)
    groups = query.query.groups
    if not isinstance(groups, DiscoveredGroups):
        sides = dense_vectors(groups, left), dense_vectors(groups, right)
        if any(len(vector) != groups.cells for side in sides for vector in side):
            return [RefutedClaim("number of cells shown", groups.cells, "depends on the data")], Fraction(0), Fraction(0)
        pairs = list(zip(*sides, strict=True))
    else:
        union = list(dict.fromkeys([*left._groups, *right._groups]))
        pairs = [(_aligned(left, a, union), _aligned(right, b, union)) for a, b in zip(left._vectors, right._vectors, strict=True)]
        breaches, delta = _compare_keys(query, groups, left, right, union)
        pure.append(None)
    loss = Fraction(0)
    for vector, (a, b) in zip(query.vectors, pairs, strict=True):
        measured = gap(a, b)
        breaches += _exceeding(f"vector {vector.vector.name!r}", vector.sensitivity, measured)
        law, facts = vector.vector.law, certified.facts
        loss += laws.loss(law, facts.account, l1=measured.l1, l2_squared=measured.l2_squared, order=facts.order)
        pure.append(laws.pure_loss(law, l1=measured.l1))
    for place, quantiles in enumerate(query.quantiles):
        quantile_breaches, quantile_loss = _compare_quantiles(
            quantiles, query, certified.facts, left._quantiles[place], right._quantiles[place]
        )
        breaches, loss = breaches + quantile_breaches, loss + quantile_loss
        pure.append(quantiles.mechanism.event().epsilon)
    return breaches, loss, delta


def _compare_quantiles(
    quantiles: CertifiedQuantiles, query: CertifiedQuery, facts: Facts, left: Counts, right: Counts
) -> tuple[list[RefutedClaim], Fraction]:
    """Removed and added rows, over all groups, which are all that a set of quantiles is charged for.

    A proof, and a test on every small data set, show that the mass on the line moves by no more than these rows.
    """
    name, groups = quantiles.quantiles.name, query.query.groups
    shown = tuple(dict.fromkeys([*left, *right])) if isinstance(groups, DiscoveredGroups) else groups.groups
    went = came = 0
    for group in shown:
        before, after = (_rows_by_value(side.get(group, ())) for side in (left, right))
        for value in before.keys() | after.keys():
            moved = after.get(value, 0) - before.get(value, 0)
            went, came = went + max(-moved, 0), came + max(moved, 0)
    most = quantiles.mechanism.rows_per_unit
    breaches = [
        RefutedClaim(f"quantiles {name!r}, rows that {how}", most, rows) for how, rows in (("went", went), ("came", came)) if rows > most
    ]
    claimed = most if quantiles.mechanism.neighbours is Neighbours.UNBOUNDED else 2 * most
    if went + came > claimed:
        breaches.append(RefutedClaim(f"quantiles {name!r}, rows that went or came", claimed, went + came))
    share = Fraction(went + came, claimed)
    return breaches, quantiles.loss * (share if facts.account is Account.PURE else share**2)


def _rows_by_value(rows: Sequence[tuple[int, int]]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for value, count in rows:
        counts[value] = counts.get(value, 0) + count
    return counts


def _exceeding(what: str, claimed: Sensitivity, measured: Sensitivity) -> list[RefutedClaim]:
    names = ("l1", "l2_squared", "linf")
    return [
        RefutedClaim(f"{what}, {n}", getattr(claimed, n), getattr(measured, n)) for n in names if getattr(measured, n) > getattr(claimed, n)
    ]


def _aligned(table: ExactTable, vector: Sequence[int], union: Sequence[tuple[Value, ...]]) -> list[int]:
    by_group = dict(zip(table._groups, vector, strict=True))
    return [by_group.get(group, 0) for group in union]


def _compare_keys(
    query: CertifiedQuery, groups: DiscoveredGroups, left: ExactTable, right: ExactTable, union: list[tuple[Value, ...]]
) -> tuple[list[RefutedClaim], Fraction]:
    """Check discovered groups: key counts respect their bound, and keys of one side only are few and hold what one unit can add."""
    assert query.keys is not None and left._units is not None and right._units is not None
    measured = gap(_aligned(left, left._units, union), _aligned(right, right._units, union))
    breaches = _exceeding("units per group", query.keys.sensitivity, measured)
    for table, other in ((left, right), (right, left)):
        assert table._units is not None
        alone = [units for group, units in zip(table._groups, table._units, strict=True) if group not in set(other._groups)]
        if len(alone) > query.keys.groups_per_unit:
            breaches.append(RefutedClaim("groups of one side alone", query.keys.groups_per_unit, len(alone)))
        most = _most_alone(groups, len(alone))
        if any(units > most for units in alone):
            breaches.append(RefutedClaim("units of a group of one side alone", most, max(alone)))
    # The chance, by the noise law, that a single unit makes one of its keys appear, against the delta that the statement pays for it.
    worst = _worst_delta(groups, query.keys.groups_per_unit, query.keys.threshold)
    if worst > groups.delta:
        breaches.append(RefutedClaim("delta of the key threshold", float(groups.delta), float(worst)))
    return breaches, worst


def _most_alone(groups: DiscoveredGroups, number: int) -> int:
    """The most that one unit may add to each of ``number`` groups: 1, or the largest integer w with number * w^2 <= 4^bits."""
    if groups.spread_bits is None:
        return 1
    return math.isqrt(4**groups.spread_bits // max(number, 1))


@lru_cache(maxsize=256)
def _worst_delta(groups: DiscoveredGroups, groups_per_unit: int, threshold: int) -> Fraction:
    """At least the chance that a single unit makes one of its groups appear, for the number of groups at which it is largest."""
    numbers = [groups_per_unit] if groups.spread_bits is None else range(1, groups_per_unit + 1)
    return max(
        thresholds.threshold_delta(groups.law, groups_per_unit=number, threshold=threshold + 1 - _most_alone(groups, number))
        for number in numbers
    )
