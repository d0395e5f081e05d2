"""Audits of plans: compares the certificate with actual releases, on the worst known neighbours.

The engine runs once on each of two neighbouring data sets. The exact results are then released many times, through the code that releases
an answer: the cells that differ are repeated, with separate groups for each run, so that one call draws the noise of many runs. The audit
tests the log likelihood ratio of all these cells together, which is known because the laws are known.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import assert_never

import numpy as np

from lapwing.audit.auditor import CONFIDENCE, Audit, audit_draws
from lapwing.audit.claims import Claim, Concentrated, Floats, Pure
from lapwing.audit.oracle import ExactResult, gap, measure
from lapwing.audit.plan_shapes import Shape
from lapwing.audit.runs import Prepare, prepare_in_duckdb
from lapwing.audit.worlds import declare, neighbours_of, random_world
from lapwing.kernel.accounting import DELTA_UNITS, LOSS_UNITS, Account
from lapwing.kernel.certify import Certified, CertifiedQuery, certify
from lapwing.kernel.exact import Exact, ExactTable
from lapwing.kernel.expressions import Value
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import DiscoveredGroups, KnownGroups, Plan, Query
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law, loss, tail_upper
from lapwing.kernel.permit import issue
from lapwing.kernel.release import HowDrawn, NoisyTable, _release_query, release
from lapwing.kernel.sensitivity import Sensitivity
from lapwing.prices import Family, law_for

Group = tuple[Value, ...]

LOSSES = {Account.PURE: Fraction(1), Account.APPROXIMATE: Fraction(1)}
"""The cost of audited plans: the epsilon and the rho at which an audit has most power."""
DELTA_KEYS = Fraction(1, 20)
"""Large, so that an audit detects wrong thresholds."""
SHOWN_ALONE = 1e6
"""Log ratio of a group that can appear on one side only."""
_RUNS_AT_ONCE = 20_000


def claim_of_plan(certified: Certified) -> Claim:
    """The claim of the certificate of a plan."""
    if certified.cost.pure is not None and certified.facts.order is not None:
        return Pure(Fraction(certified.cost.pure, LOSS_UNITS))
    if certified.facts.order is not None:  # a loss at one order is not a rho
        certified = certify(certified.plan, replace(certified.facts, order=None))
    amount = Fraction(certified.cost.loss, LOSS_UNITS)
    match certified.facts.account:
        case Account.PURE:
            return Pure(amount)
        case Account.APPROXIMATE:
            return Concentrated(amount, Fraction(certified.cost.delta, DELTA_UNITS))
        case never:
            assert_never(never)


def repriced(plan: Plan, facts: Facts, *, total: Fraction, delta_keys: Fraction = DELTA_KEYS) -> Plan:
    """The same plan at another price: every vector and every key threshold pays an equal share of ``total``."""
    certified = certify(plan, facts)
    parts = sum(len(query.vectors) + (query.keys is not None) for query in certified.queries)
    thresholds = sum(query.keys is not None for query in certified.queries)
    family = Family.LAPLACE if facts.account is Account.PURE else Family.GAUSSIAN

    def law(bound: Sensitivity) -> Law:
        return law_for(facts.account, loss=total / parts, l1=bound.l1, l2_squared=bound.l2_squared, family=family)

    def priced(query: CertifiedQuery) -> Query:
        vectors = tuple(replace(vector.vector, law=law(vector.sensitivity)) for vector in query.vectors)
        groups = query.query.groups
        if isinstance(groups, DiscoveredGroups) and query.keys is not None:
            groups = replace(groups, law=law(query.keys.sensitivity), delta=delta_keys / thresholds)
        return replace(query.query, vectors=vectors, groups=groups)

    return Plan(tuple(priced(query) for query in certified.queries))


@dataclass(frozen=True, slots=True)
class MovedVector:
    """One vector, in the groups that moved: its exact values on the left and on the right."""

    position: int
    name: str
    law: Law
    left: tuple[int, ...]
    right: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NeighbourDifference:
    """The cells that differ between two neighbours in one query. For test data only: it contains exact figures."""

    query: CertifiedQuery
    groups: tuple[Group, ...]
    vectors: tuple[MovedVector, ...]
    units: tuple[tuple[int | None, int | None], ...] | None
    """For discovered groups, the number of units on each side; None if the side has no such group."""

    def loss(self, account: Account) -> Fraction:
        """The privacy loss of this query between these neighbours, by the laws of the noise."""
        total = sum((_loss(account, vector.law, vector.left, vector.right) for vector in self.vectors), Fraction(0))
        if self.units is not None and isinstance(self.query.query.groups, DiscoveredGroups):
            both = [(a, b) for a, b in self.units if a is not None and b is not None]
            total += _loss(account, self.query.query.groups.law, [a for a, _ in both], [b for _, b in both])
        return total


def _loss(account: Account, law: Law, left: Sequence[int], right: Sequence[int]) -> Fraction:
    norms = gap(left, right)
    return loss(law, account, l1=norms.l1, l2_squared=norms.l2_squared)


def moved_cells(certified: Certified, left: Exact, right: Exact) -> tuple[NeighbourDifference, ...]:
    """The differences, query by query, without the queries that do not differ."""
    cells = []
    for query, a, b in zip(certified.queries, left._tables, right._tables, strict=True):
        moved = _moved(query, a, b)
        if moved.groups:
            cells.append(moved)
    return tuple(cells)


def _moved(query: CertifiedQuery, left: ExactTable, right: ExactTable) -> NeighbourDifference:
    known = query.query.groups
    union = list(dict.fromkeys([*left._groups, *right._groups])) if isinstance(known, DiscoveredGroups) else list(known.groups)
    rows = [dict(zip(table._groups, zip(*table._vectors, strict=True), strict=True)) if table._vectors else {} for table in (left, right)]
    units: list[dict[Group, int]] = [dict(zip(table._groups, table._units or (), strict=False)) for table in (left, right)]
    zeros = (0,) * len(query.vectors)

    def differs(group: Group) -> bool:
        return rows[0].get(group, zeros) != rows[1].get(group, zeros) or units[0].get(group) != units[1].get(group)

    groups = tuple(group for group in union if differs(group))
    vectors = []
    for position, vector in enumerate(query.vectors):
        a, b = (tuple(side.get(group, zeros)[position] for group in groups) for side in rows)
        if a != b:
            vectors.append(MovedVector(position, vector.vector.name, vector.vector.law, a, b))
    counted = None if not isinstance(known, DiscoveredGroups) else tuple((units[0].get(group), units[1].get(group)) for group in groups)
    return NeighbourDifference(query, groups, tuple(vectors), counted)


def released_ratios(moved: NeighbourDifference, facts: Facts, *, right: bool, runs: int) -> Floats:
    """Release one side ``runs`` times; returns the log likelihood ratio of right to left for each run."""
    chunks = [_ratios_at_once(moved, facts, right=right, runs=min(_RUNS_AT_ONCE, runs - start)) for start in range(0, runs, _RUNS_AT_ONCE)]
    return np.concatenate(chunks)


def _ratios_at_once(moved: NeighbourDifference, facts: Facts, *, right: bool, runs: int) -> Floats:
    """Each run becomes groups of a tiled table, which the code that releases one query of an answer releases at once."""
    present = [place for place in range(len(moved.groups)) if moved.units is None or moved.units[place][right] is not None]
    tiled = [(run, *moved.groups[place]) for run in range(runs) for place in present]
    vectors = [[(vector.right if right else vector.left)[place] for place in present] * runs for vector in moved.vectors]
    units = None if moved.units is None else [moved.units[place][right] or 0 for place in present] * runs
    query = moved.query.query
    known, discovered = KnownGroups(tuple(tiled)), query.groups
    groups = replace(discovered, groups_max=len(tiled) + 1) if isinstance(discovered, DiscoveredGroups) else known
    narrowed = replace(
        moved.query,
        query=replace(query, groups=groups, vectors=tuple(query.vectors[vector.position] for vector in moved.vectors), quantiles=()),
        vectors=tuple(moved.query.vectors[vector.position] for vector in moved.vectors),
        quantiles=(),
    )
    table = _release_query(narrowed, HowDrawn(facts), ExactTable(groups=tiled, vectors=vectors, units=units))
    return _ratios(moved, table, runs=runs)


def _ratios(moved: NeighbourDifference, table: NoisyTable, *, runs: int) -> Floats:
    """The log ratio of each run of a tiled release."""
    place_of = {group: place for place, group in enumerate(moved.groups)}
    run = np.array([group[0] for group in table.groups], dtype=np.int64)
    place = np.array([place_of[group[1:]] for group in table.groups], dtype=np.int64)
    ratio = np.zeros(len(run))
    for vector in moved.vectors:
        noisy = np.array(table.column(vector.name).values, dtype=np.float64)
        ratio += log_ratio(vector.law, noisy, left=np.array(vector.left)[place], right=np.array(vector.right)[place])
    ratios = np.zeros(runs)
    if moved.units is not None and isinstance(moved.query.query.groups, DiscoveredGroups):
        law = moved.query.query.groups.law
        a, b = (np.array([np.nan if pair[side] is None else pair[side] for pair in moved.units]) for side in (0, 1))
        shown = log_ratio(law, np.array(table.columns[0].values, dtype=np.float64), left=a[place], right=b[place])
        ratio = np.where(np.isnan(a[place]), SHOWN_ALONE, np.where(np.isnan(b[place]), -SHOWN_ALONE, ratio + shown))
        hidden = _hidden(moved, law)
        ratios += hidden.sum() - np.bincount(run, weights=hidden[place], minlength=runs)
    return ratios + np.bincount(run, weights=ratio, minlength=runs)


def log_ratio(law: Law, noisy: Floats, *, left: Floats, right: Floats) -> Floats:
    """For each noisy value, the log likelihood ratio of the exact value ``right`` to ``left``."""
    scale = float(law.scale)
    match law:
        case DiscreteLaplace():
            ratio: Floats = (np.abs(noisy - left) - np.abs(noisy - right)) / scale
        case DiscreteGaussian():
            ratio = ((noisy - left) ** 2 - (noisy - right) ** 2) / (2.0 * scale**2)
        case never:
            assert_never(never)
    return ratio


def _hidden(moved: NeighbourDifference, law: Law) -> Floats:
    """For each group, the log ratio of the probabilities that it is not shown."""
    assert moved.query.keys is not None and moved.units is not None
    threshold = moved.query.keys.threshold

    def log_hidden(units: int | None) -> float:
        return 0.0 if units is None else float(np.log1p(-min(float(tail_upper(law, threshold - units)), 1.0 - 1e-12)))

    return np.array([log_hidden(b) - log_hidden(a) for a, b in moved.units])


@dataclass(frozen=True, slots=True)
class Pair:
    """The neighbours, among those tried, on which a plan reveals most."""

    left: ExactResult
    right: ExactResult
    moved: tuple[NeighbourDifference, ...]
    share: float
    """The exact loss of these neighbours, as a share of the certificate's charge. Above 1, the certificate is certainly wrong."""

    @property
    def worth(self) -> float:
        """The rank of this pair for an audit: large loss first and, among almost equal losses, few cells to draw."""
        cells = sum(len(part.groups) * (len(part.vectors) + (part.units is not None)) for part in self.moved)
        return self.share - 0.005 * cells


def pair_of(left: ExactResult, right: ExactResult) -> Pair:
    """A pair with all its differences."""
    moved = moved_cells(left.certified, left.exact, right.exact)
    facts, cost = left.certified.facts, left.certified.cost
    account, charged = facts.account, cost.loss
    if facts.order is not None and cost.pure is not None:
        account, charged = Account.PURE, cost.pure
    elif facts.order is not None:  # a loss at one order is not a rho
        charged = certify(left.certified.plan, replace(facts, order=None)).cost.loss
    spent = sum((part.loss(account) for part in moved), Fraction(0))
    return Pair(left, right, moved, float(spent * LOSS_UNITS / max(1, charged)))


def worst_pairs(
    shapes: Mapping[str, Shape], *, relation: str, account: Account, worlds: int, seed: int, prepare: Prepare = prepare_in_duckdb
) -> dict[str, Pair]:
    """For each shape, the pair of neighbours with the largest exact loss over random worlds and all their neighbours."""
    rng, pairs = random.Random(seed), dict[str, Pair]()
    delta = "0" if account is Account.PURE else '"2^-30"'
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(worlds):
            world = random_world(rng)
            variants = [world, *neighbours_of(world, relation, rng)]
            measured: list[dict[str, ExactResult]] = []
            for index, variant in enumerate(variants):
                declaration = declare(variant, Path(scratch) / f"{number}-{index}", neighbours=relation, delta=delta, seed=index)
                snapshot = prepare(declaration)
                facts = snapshot.facts
                measured.append(
                    {name: measure(repriced(shape(facts), facts, total=LOSSES[account]), snapshot) for name, shape in shapes.items()}
                )
                snapshot.close()
            for name in shapes:
                for other in measured[1:]:
                    pair = pair_of(measured[0][name], other[name])
                    if name not in pairs or pair.worth > pairs[name].worth:
                        pairs[name] = pair
    return pairs


def tiled_ratios(pair: Pair, *, right: bool, runs: int) -> Floats:
    """The log ratios of ``runs`` releases of one side, drawn many at once."""
    total = np.zeros(runs)
    for part in pair.moved:
        total += released_ratios(part, pair.left.certified.facts, right=right, runs=runs)
    return total


def audit_pair(pair: Pair, *, samples: int, tests: int, confidence: Fraction = CONFIDENCE, claim: Claim | None = None) -> Audit:
    """Audit a plan's certificate (or another ``claim``) on one pair of neighbours."""

    def draw(right: bool, runs: int) -> list[float]:
        ratios: list[float] = tiled_ratios(pair, right=right, runs=runs).tolist()
        return ratios

    # The score is known, so a tenth of the runs is enough to choose a threshold.
    return audit_draws(
        draw,
        [(False, True)],
        claim or claim_of_plan(pair.left.certified),
        samples=samples,
        confidence=confidence,
        tests=tests,
        choosing=Fraction(1, 10),
        score=lambda _pair: _as_floats,
    )


def _as_floats(outputs: Sequence[float]) -> Floats:
    return np.asarray(outputs, dtype=np.float64)


def whole_releases(pair: Pair, *, right: bool, runs: int) -> Floats:
    """The log ratios of whole releases with permits, one call each: slow, for comparison with tiled releases."""
    side = pair.right if right else pair.left
    place_of = {id(query): place for place, query in enumerate(pair.left.certified.queries)}
    ratios = np.zeros(runs)
    for run in range(runs):
        tables = release(side.certified, issue(1, side.certified.digest, side.certified.cost), side.exact).tables
        for part in pair.moved:
            ratios[run] += _ratios(part, _cut(part, tables[place_of[id(part.query)]]), runs=1)[0]
    return ratios


def _cut(moved: NeighbourDifference, table: NoisyTable) -> NoisyTable:
    """The moved groups of a release, as run 0 of a tiled release."""
    moved_groups = set(moved.groups)
    kept = [row for row, group in enumerate(table.groups) if group in moved_groups]
    columns = tuple(replace(column, values=tuple(column.values[row] for row in kept)) for column in table.columns)
    return replace(table, groups=tuple((0, *table.groups[row]) for row in kept), columns=columns)


def same_law(left: Floats, right: Floats, *, error: float) -> bool:
    """Whether two samples may have the same law; false with probability at most ``error`` if they have.

    Source: Massart 1990, the tight constant of the inequality of Dvoretzky, Kiefer and Wolfowitz, for each sample.
    """
    a, b = np.sort(left), np.sort(right)
    places = np.concatenate([a, b])
    apart = np.abs(np.searchsorted(a, places, side="right") / len(a) - np.searchsorted(b, places, side="right") / len(b)).max()
    allowed = sum(np.sqrt(np.log(4.0 / error) / (2.0 * len(sample))) for sample in (a, b))
    return bool(apart <= allowed)
