"""The errors of a set of quantiles: the scale that a loss buys, the rank of an extreme, and the rank error of a choice.

Planning and error bars use it; the cost of a set is derived again by :mod:`lapwing.kernel.quantile_tree` when the plan is certified.

Proof: ``docs/proofs/quantiles.md``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import assert_never

from lapwing.errors import Refused
from lapwing.kernel.accounting import Account
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.numbers import ln_upper
from lapwing.kernel.quantile_tree import (
    RANGE_DIVISOR,
    RANK_MAX,
    AtShare,
    Branch,
    FromGreatest,
    FromLeast,
    Leaf,
    Node,
    QuantileTree,
    Target,
    levels_of,
    movement,
    reach,
    tree_of,
)
from lapwing.kernel.rank_line import SHARES
from lapwing.prices import scale_at_least, scale_root_at_least
from lapwing.spread import require_confidence

UNEVEN = 20
"""How much denser than evenly spread, per rank, values may lie a few scales away from a quantile. With it all bars of 157 quantiles under
five laws held the truth; a bound for every law is three times as long, as it allows for all values but one in one gap."""


def tree_scale(
    account: Account, *, loss: Fraction, targets: tuple[Target, ...], rows_per_unit: int, neighbours: Neighbours, alone: bool
) -> Fraction:
    """The least scale whose event costs at most this loss (epsilon on a pure account, rho on an approximate one)."""
    if loss <= 0:
        raise Refused("loss-invalid", "a selection needs a positive loss")
    levels = levels_of(tree_of(targets))
    moved = movement(targets, rows_per_unit=rows_per_unit, neighbours=neighbours, alone=alone)
    match account:
        case Account.PURE:
            return scale_at_least(levels * moved / loss)
        case Account.APPROXIMATE:
            return scale_root_at_least(levels * moved**2 / (RANGE_DIVISOR * loss))
        case never:
            assert_never(never)


def extreme_rank(mechanism: QuantileTree, *, confidence: Fraction) -> int:
    """The least rank of an extreme for which, with this confidence, the selection does not pass beyond the last row."""
    require_confidence(confidence)
    candidates = mechanism.upper - mechanism.lower + 1
    return min(RANK_MAX, 1 + math.floor(mechanism.scale * ln_upper(Fraction(candidates) / (1 - confidence))))


def rank_errors(mechanism: QuantileTree, *, confidence: Fraction, rows_max: int) -> tuple[int, ...]:
    """With this confidence the value chosen for each target is at most this many ranks from it, in a group of at most ``rows_max`` rows.
    For extremes: from the rank they name, in a group of twice as many rows at least."""
    errors = _ranks(mechanism, confidence, rows_max, slack=2 + Fraction(rows_max, SHARES))
    return tuple(math.ceil(error) for error in errors)


def noise_in_ranks(mechanism: QuantileTree, *, confidence: Fraction, rows_max: int) -> tuple[Fraction, ...]:
    """The same without the ambiguity in the definition of a rank: nearly 0 if the selection is nearly certain."""
    return _ranks(mechanism, confidence, rows_max, slack=Fraction(0))


def spread_errors(mechanism: QuantileTree, *, confidence: Fraction) -> tuple[float, ...]:
    """Rank errors where values are spread about evenly: then a selection falls off from its best value as fast as its chances do.

    Never more than the bound for all laws.
    """
    require_confidence(confidence)
    failure = (1 - confidence) / mechanism.levels
    candidates = min(mechanism.upper - mechanism.lower + 1, UNEVEN)
    reached = ln_upper(Fraction(candidates) / failure)
    tree, nothing = tree_of(mechanism.targets), Fraction(0)
    errors = _errors(tree, mechanism.targets, mechanism.scale, nothing, nothing, reached, reached, slack=Fraction(1))
    return tuple(float(errors[number]) for number in range(len(mechanism.targets)))


def rows_needed(noise: Fraction, target: Target) -> int:
    """The least number of rows of which, with this noise in ranks, a selected value is surely not beyond the last one on either side."""
    match target:
        case AtShare(share):
            return math.floor(noise / min(share, 1 - share)) + 1
        case FromLeast(rank) | FromGreatest(rank):
            return rank + math.floor(noise)
        case never:
            assert_never(never)


def _ranks(mechanism: QuantileTree, confidence: Fraction, rows_max: int, *, slack: Fraction) -> tuple[Fraction, ...]:
    require_confidence(confidence)
    failure = (1 - confidence) / mechanism.levels
    candidates = mechanism.upper - mechanism.lower + 1
    # Of the cuts, at least one in ``rows_max`` of those of some value is within 1 rank of the best; of values, at least one.
    to_cut = ln_upper(Fraction(candidates * min(SHARES, rows_max + 1)) / failure)
    to_choose = ln_upper(Fraction(candidates) / failure)
    tree = tree_of(mechanism.targets)
    errors = _errors(tree, mechanism.targets, mechanism.scale, Fraction(0), Fraction(0), to_cut, to_choose, slack)
    return tuple(errors[number] for number in range(len(mechanism.targets)))


def _errors(
    node: Node | None,
    targets: tuple[Target, ...],
    scale: Fraction,
    at_start: Fraction,
    at_end: Fraction,
    to_cut: Fraction,
    to_choose: Fraction,
    slack: Fraction,
) -> dict[int, Fraction]:
    """Rank errors below a node, given those of the cuts at both ends of its part."""
    match node:
        case None:
            return {}
        case Leaf(numbers):
            return {number: scale * reach(targets[number]) * to_choose + slack for number in numbers}
        case Branch(number, share, left, right):
            final = left is None and right is None
            moved = (1 - share) * at_start + share * at_end
            own = moved + scale * max(share, 1 - share) * (to_choose if final else to_cut) + slack
            below = _errors(left, targets, scale, at_start, own, to_cut, to_choose, slack)
            above = _errors(right, targets, scale, own, at_end, to_cut, to_choose, slack)
            return {number: own, **below, **above}
        case never:
            assert_never(never)
