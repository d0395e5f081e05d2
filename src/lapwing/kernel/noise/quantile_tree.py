"""Drawing quantiles: an exact draw from the exponential mechanism over millions of candidates, without visiting each of them.

The badness of a candidate falls along the line to the best one and rises after it. So the candidates with badness in a band are two
runs, found by bisection. A run is proposed with chance proportional to its size halved per band, a candidate in it uniformly, and it is
taken with exactly the chance that makes the law right. All in integers and fractions.

Proof: ``docs/proofs/quantiles.md``, section on drawing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, assert_never

from lapwing.errors import LapwingError
from lapwing.kernel.accounting import Account
from lapwing.kernel.noise.bernoulli import coin_exp, coin_two_over_e, heads
from lapwing.kernel.noise.entropy import random_below
from lapwing.kernel.quantile_tree import (
    AtShare,
    Branch,
    FromGreatest,
    FromLeast,
    Leaf,
    Node,
    QuantileTree,
    Target,
    reach,
    tree_of,
)
from lapwing.kernel.rank_line import Candidates, CutCandidates, RankLine, Segment, ValueCandidates

FLIPPED_MAX = 2**20
"""Up to this many values are selected by permute-and-flip on a pure account, which tosses a coin for each. With more there is no gain."""


def draw_quantiles(mechanism: QuantileTree, line: RankLine, *, account: Account, charged: Fraction) -> tuple[int, ...]:
    """One value per target of the mechanism, for one group, drawn from the law that the mechanism names.

    Pre: between neighbours the lines of all groups differ by the rows of one unit, and ``charged`` (epsilon or rho) is in the ledger for
    all groups together. Refused with ``noise-undercharged`` where the mechanism's event costs more.
    """
    if mechanism.event().loss(account) > charged:
        raise LapwingError("noise-undercharged", "the selection would cost more than was charged for it")
    if (line.lower, line.upper) != (mechanism.lower, mechanism.upper):
        raise LapwingError("value-invalid", "the rows of a quantile have other bounds than it")
    chosen: dict[int, int] = {}
    select = draw_flipped if account is Account.PURE else draw_nearest
    _descend(mechanism, select, tree_of(mechanism.targets), Segment.whole(line), 1, 1, chosen)
    return tuple(chosen[number] for number in range(len(mechanism.targets)))


def _descend(
    mechanism: QuantileTree, select: Select, node: Node | None, part: Segment, before: int, after: int, chosen: dict[int, int]
) -> None:
    """Select in this part, then in the parts it is cut into. ``before`` and ``after`` are 1 where the part ends at a fixed point."""
    match node:
        case None:
            return
        case Leaf(numbers):
            for number in numbers:
                target = mechanism.targets[number]
                level = asked_level(target, part, before, after)
                chosen[number] = _value(part, select, level, mechanism.scale * reach(target))
        case Branch(number, share, left, right):
            level, scale = asked_level(AtShare(share), part, before, after), mechanism.scale * max(share, 1 - share)
            if left is None and right is None:
                chosen[number] = _value(part, select, level, scale)
                return
            cuts = CutCandidates(part)
            cut = cuts.cut(draw_nearest(cuts, level, scale))
            chosen[number] = min(max(cut.value, mechanism.lower), mechanism.upper)
            _descend(mechanism, select, left, Segment.between(part.line, part.start, cut), before, 0, chosen)
            _descend(mechanism, select, right, Segment.between(part.line, cut, part.end), 0, after, chosen)
        case never:
            assert_never(never)


def _value(part: Segment, select: Select, level: Fraction, scale: Fraction) -> int:
    values = ValueCandidates(part)
    return values.value((draw_nearest if values.size > FLIPPED_MAX else select)(values, level, scale))


def asked_level(target: Target, part: Segment, before: int, after: int) -> Fraction:
    """The mass, from the start of the line, that the target asks for in this part."""
    first, inner = part.low + before, part.high - part.low - before - after
    match target:
        case AtShare(share):
            return first + share * inner
        case FromLeast(rank):
            return first + min(Fraction(rank - 1), inner / 2)
        case FromGreatest(rank):
            return first + inner - min(Fraction(rank - 1), inner / 2)
        case never:
            assert_never(never)


Select: TypeAlias = Callable[[ValueCandidates, Fraction, Fraction], int]
"""Draws the number of a value, given the level asked for and the scale."""


@dataclass(frozen=True, slots=True)
class _Run:
    """Candidates ``start`` to ``stop - 1``, none of which is better than ``band`` scales worse than the best."""

    start: int
    stop: int
    band: int


def badness(candidates: Candidates, index: int, level: Fraction) -> Fraction:
    """How far the level is from what the candidate covers."""
    below, through = candidates.ends(index)
    return max(Fraction(0), below - level, level - through)


def draw_nearest(candidates: Candidates, level: Fraction, scale: Fraction) -> int:
    """The number of a candidate, with chance proportional to ``exp(-badness / scale)``; exactly."""
    best = _least_badness(candidates, level)
    runs = _runs(candidates, level, best, scale)
    last = max(run.band for run in runs)
    weights = [(run.stop - run.start) << (last - run.band) for run in runs]
    while True:
        run = runs[_weighted(weights)]
        index = run.start + random_below(run.stop - run.start)
        worse = (badness(candidates, index, level) - best) / scale
        if coin_exp(worse - run.band) and all(coin_two_over_e() for _ in range(run.band)):
            return index


def draw_flipped(candidates: Candidates, level: Fraction, scale: Fraction) -> int:
    """The number of a candidate, by permute-and-flip: any one of those whose coin of chance ``exp(-(badness - best) / scale)`` is true.

    A candidate in band j can only be among them if a coin of chance ``2 ** -j`` falls true. The number of these is drawn first, their
    identity when they are visited.
    """
    best = _least_badness(candidates, level)
    runs = _runs(candidates, level, best, scale)
    left = [heads(run.stop - run.start, run.band) for run in runs]
    seen: set[int] = set()
    while True:
        number = _weighted(left)
        run = runs[number]
        index = run.start + random_below(run.stop - run.start)
        while index in seen:  # in the same run, or runs would not keep their chances
            index = run.start + random_below(run.stop - run.start)
        seen.add(index)
        left[number] -= 1
        worse = (badness(candidates, index, level) - best) / scale
        if coin_exp(worse - run.band) and all(coin_two_over_e() for _ in range(run.band)):
            return index


def _least_badness(candidates: Candidates, level: Fraction) -> Fraction:
    first = candidates.under(level)
    return min(badness(candidates, index, level) for index in (first - 1, first) if 0 <= index < candidates.size)


def _weighted(weights: list[int]) -> int:
    place = random_below(sum(weights))
    for number, weight in enumerate(weights):
        place -= weight
        if place < 0:
            return number
    raise AssertionError("unreachable")


def _runs(candidates: Candidates, level: Fraction, best: Fraction, scale: Fraction) -> list[_Run]:
    """All candidates, in runs: the best ones, then on both sides those up to 1, 2, .. scales worse, and all beyond as the last band."""
    size = candidates.size
    left, right = candidates.under(level - best), size - candidates.over(level + best)
    runs = [_Run(left, right, 0)]
    bands = size.bit_length() + 2  # candidates beyond weigh less than the best one together, so they are hardly ever proposed
    for band in range(bands):
        reached = best + (band + 1) * scale if band + 1 < bands else None
        next_left = 0 if reached is None else candidates.under(level - reached)
        next_right = size if reached is None else size - candidates.over(level + reached)
        runs += [_Run(next_left, left, band), _Run(right, next_right, band)]
        left, right = next_left, next_right
        if left == 0 and right == size:
            break
    return [run for run in runs if run.start < run.stop]
