"""Error bars of quantiles in values: further quantiles on both sides of those requested, and the number of rows that they are taken from.

The errors of a quantile are in ranks: by selection, and because rows beyond the limit on a unit are left out. So a quantile far enough
below it, in ranks, is below the true value, and one far enough above is above it. How far is enough depends on the number of rows, which is
counted beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from statistics import NormalDist

from lapwing.contribution.row_sample import RankError, RowSample
from lapwing.kernel.certify import CertifiedQuery, derived_queries
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Plan, QuantileSet, Query, Vector
from lapwing.kernel.quantile_tree import TARGETS_MAX, AtShare, QuantileTree, Target
from lapwing.kernel.selections import CertifiedQuantiles
from lapwing.planning.grids import count_of
from lapwing.planning.quantile_errors import noise_in_ranks, rows_needed, spread_errors, tree_scale
from lapwing.planning.quantiles import QuantileRequest
from lapwing.planning.vector_noise import placeholder

COUNT_LOSS = Fraction(1, 10)
"""The part of the loss of quantiles that counts their rows. The error of the count is then less than a third of that in ranks."""
SIDE_LOSS = Fraction(1, 4)
"""The part of the rest that the quantiles on either side use. With a half, values have 1.5 times the noise that they have without bars."""
CONFIDENCE = Fraction(95, 100)
"""The confidence of bars for which the sides are chosen."""
FEWER_ROWS = (1.25, 5, 25)
"""Where the number of rows is a guess, there are sides for groups that are smaller by these factors: three cost no more than two."""
DENOMINATOR = 10_000
"""Sides are multiples of one in this many."""
ROWS_ENOUGH = 1e12
"""With this many rows a quantile has no error by selection."""
ROUNDS = 4
"""Rounds in which the sides and their errors, which depend on each other, are computed."""


@dataclass(frozen=True, slots=True)
class QuantileBars:
    """What was measured beside a set of quantiles: names of the sets with smaller and greater ones, if any, and of the count of rows."""

    below: str | None
    above: str | None
    count: str


@dataclass(frozen=True, slots=True)
class MeasuredBars:
    """The bars of a query: what is measured for them, the loss of each set and count, and the sample in which all are taken."""

    sample: RowSample
    rows: float
    """The predicted number of kept rows in a group."""
    by_set: Mapping[str, QuantileBars] = field(default_factory=dict)
    given: Mapping[str, Fraction] = field(default_factory=dict)
    vectors: tuple[Vector, ...] = ()
    quantiles: tuple[QuantileSet, ...] = ()

    def added_to(self, query: Query) -> Query:
        """The query that measures them too."""
        return replace(query, vectors=query.vectors + self.vectors, quantiles=query.quantiles + self.quantiles)


def rank_noise(requests: Mapping[str, QuantileRequest], facts: Facts, share: Fraction, *, alone: bool) -> tuple[RankError, ...]:
    """The errors of the ends of bars for a limit of one row, by which the limit is chosen, if each set gets this share of the loss."""
    found = []
    for request in requests.values():
        one = alone and len(request.targets) == 1
        loss, targets = (1 - COUNT_LOSS) * SIDE_LOSS * share, request.targets
        scale = tree_scale(facts.account, loss=loss, targets=targets, rows_per_unit=1, neighbours=facts.neighbours, alone=one)
        tree = QuantileTree(0, 2**40, targets, 1, facts.neighbours, scale, one)
        for target, ranks in zip(targets, spread_errors(tree, confidence=CONFIDENCE), strict=True):
            found.append(RankError(float(target.share) if isinstance(target, AtShare) else None, ranks))
    return tuple(found)


def measured_bars(query: Query, sample: RowSample, facts: Facts, share: Fraction, *, rows: float, known_rows: bool) -> MeasuredBars:
    """What is measured beside the quantiles of a query whose groups are predicted to have this many rows each."""
    by_set, given, quantiles = {}, {}, []
    derived = derived_queries(Plan((query,)), facts)[0]
    counts = {vector.measure: vector.name for vector in query.vectors}
    bought: dict[str, Vector] = {}
    for one in derived.quantiles:
        name, loss = one.quantiles.name, share
        measure = count_of(one.quantiles.value, derived.shape)
        if measure not in counts:
            counts[measure] = f"n{len(bought)}"
            bought[counts[measure]] = Vector(counts[measure], measure, placeholder(facts))
            given[counts[measure]] = COUNT_LOSS * share
            loss -= given[counts[measure]]
        sides = _sides(one, sample, facts, SIDE_LOSS * loss, rows=rows, factors=FEWER_ROWS[:1] if known_rows else FEWER_ROWS)
        names = [f"{name}{letter}" if targets else None for letter, targets in zip("ba", sides, strict=True)]
        for side, targets in zip(names, sides, strict=True):
            if side is not None:
                quantiles.append(replace(one.quantiles, name=side, targets=targets))
                given[side] = SIDE_LOSS * loss
        given[name] = loss - sum((given[side] for side in names if side is not None), Fraction(0))
        by_set[name] = QuantileBars(names[0], names[1], counts[measure])
    return MeasuredBars(sample, rows, by_set, given, tuple(bought.values()), tuple(quantiles))


def _sides(
    one: CertifiedQuantiles, sample: RowSample, facts: Facts, loss: Fraction, *, rows: float, factors: Sequence[float]
) -> tuple[tuple[Target, ...], tuple[Target, ...]]:
    """The targets below and above the requested shares, as far from them as bars need. Where that is beyond all rows, halfway."""
    shares = [target.share for target in one.quantiles.targets if isinstance(target, AtShare)]
    if len(shares) * len(factors) > TARGETS_MAX:
        factors = factors[:1]
    below, above = (_side(one, sample, facts, loss, shares, [rows / factor for factor in factors], sign) for sign in (-1, 1))
    return below, above


def _side(
    one: CertifiedQuantiles, sample: RowSample, facts: Facts, loss: Fraction, shares: list[Fraction], rows: list[float], sign: int
) -> tuple[Target, ...]:
    places: dict[tuple[Fraction, float], Fraction] = {(share, each): share for share in shares for each in rows}
    for _ in range(ROUNDS):
        targets = _targets(places)
        if not targets:
            break
        tree = _scaled(one.mechanism, targets, facts, loss)
        errors = dict(zip((target.share for target in targets), spread_errors(tree, confidence=CONFIDENCE), strict=True))
        moved = {}
        for (share, each), place in places.items():
            away = needed_distance(sample, float(share), each, ranks=errors[place], confidence=CONFIDENCE)
            away = max(away, 1 / DENOMINATOR)
            if 0 < float(share) + sign * away < 1:
                moved[share, each] = _rounded(float(share) + sign * away)
        for share in set(shares) - {share for share, _ in moved}:  # for groups that have more rows than predicted
            moved[share, rows[0]] = _rounded((share + (sign > 0)) / 2)
        places = {of: place for of, place in moved.items() if 0 < place < 1 and place != of[0]}
    return _targets(places)


def _targets(places: Mapping[tuple[Fraction, float], Fraction]) -> tuple[AtShare, ...]:
    return tuple(AtShare(share) for share in sorted(set(places.values())))


def _rounded(share: Fraction | float) -> Fraction:
    return Fraction(round(DENOMINATOR * share), DENOMINATOR)


def _scaled(tree: QuantileTree, targets: tuple[Target, ...], facts: Facts, loss: Fraction) -> QuantileTree:
    """The mechanism with other targets, at the scale that a loss buys."""
    alone = tree.alone and len(targets) == 1
    scale = tree_scale(facts.account, loss=loss, targets=targets, rows_per_unit=tree.rows_per_unit, neighbours=tree.neighbours, alone=alone)
    return replace(tree, targets=targets, scale=scale, alone=alone)


def needed_distance(sample: RowSample, share: float, rows: float, *, ranks: float, confidence: Fraction) -> float:
    """How far, in shares of the kept rows, a quantile must be from the requested one to be on its side of the truth, if selecting it is
    ``ranks`` off."""
    score = NormalDist().inv_cdf((1 + float(confidence)) / 2)
    return math.hypot(ranks / max(rows, 1e-9), score * sample.random_error(share, rows)) + sample.bias(share)


def rows_to_be_shown(bars: MeasuredBars, query: CertifiedQuery, name: str, target: int) -> float:
    """The number of kept rows from which a group's quantile is shown: its noise is inside the rows, and a bar has an end among them."""
    sets = {item.quantiles.name: item.mechanism for item in query.quantiles}
    own = sets[name].targets[target]
    noise = noise_in_ranks(sets[name], confidence=CONFIDENCE, rows_max=query.shape.rows_max)[target]
    needed = float(rows_needed(noise, own))
    if not isinstance(own, AtShare):
        return needed
    ends = [math.inf]
    for side in (bars.by_set[name].below, bars.by_set[name].above):
        if side is not None:
            errors = spread_errors(sets[side], confidence=CONFIDENCE)
            pairs = zip(sets[side].targets, errors, strict=True)
            ends += [_rows_for(bars.sample, float(own.share), place, ranks=ranks) for place, ranks in pairs]
    return max(needed, min(ends))


def _rows_for(sample: RowSample, share: float, place: Target, *, ranks: float) -> float:
    """The least number of rows, up to a factor of 1.1, for which a side at ``place`` is far enough from the share."""
    away = abs(float(place.share) - share) if isinstance(place, AtShare) else 0.0
    rows = 1.0
    while needed_distance(sample, share, rows, ranks=ranks, confidence=CONFIDENCE) > away:
        rows *= 1.1
        if rows > ROWS_ENOUGH:
            return math.inf
    return rows
