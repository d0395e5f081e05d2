"""The exact law of all outputs of a tree of quantiles, by going through every candidate of every selection."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction

from lapwing.kernel.noise.quantile_tree import asked_level, badness
from lapwing.kernel.quantile_tree import AtShare, Branch, Leaf, Node, QuantileTree, reach, tree_of
from lapwing.kernel.rank_line import Candidates, Cut, CutCandidates, RankLine, Segment, ValueCandidates

Outcome = tuple[tuple[int, int | Cut], ...]
"""What each selection chose, in the order they are made: more than is published, so a bound on it is a bound on that."""


def line_of(rows: Iterable[int], *, lower: int, upper: int) -> RankLine:
    """The line of these rows."""
    counts = Counter(rows)
    values = sorted(counts)
    return RankLine(values, [counts[value] for value in values], lower=lower, upper=upper)


def log_law(mechanism: QuantileTree, rows: Iterable[int]) -> Mapping[Outcome, float]:
    """The logarithm of the chance of every outcome."""
    line = line_of(rows, lower=mechanism.lower, upper=mechanism.upper)
    return _outcomes(mechanism, tree_of(mechanism.targets), Segment.whole(line), 1, 1)


def choices(candidates: Candidates, level: Fraction, scale: Fraction) -> list[float]:
    """The logarithm of the chance of every candidate of one selection."""
    weights = [-float(badness(candidates, index, level) / scale) for index in range(candidates.size)]
    top = max(weights)
    total = top + math.log(math.fsum(math.exp(weight - top) for weight in weights))
    return [weight - total for weight in weights]


def _outcomes(mechanism: QuantileTree, node: Node | None, part: Segment, before: int, after: int) -> dict[Outcome, float]:
    if node is None:
        return {(): 0.0}
    if isinstance(node, Leaf):
        found: dict[Outcome, float] = {(): 0.0}
        for number in node.targets:
            target = mechanism.targets[number]
            found = _joined(found, _chosen(number, part, asked_level(target, part, before, after), mechanism.scale * reach(target)))
        return found
    level, scale = asked_level(AtShare(node.share), part, before, after), mechanism.scale * max(node.share, 1 - node.share)
    if node.left is None and node.right is None:
        return _chosen(node.target, part, level, scale)
    return _after_cut(mechanism, node, part, before, after, choices(CutCandidates(part), level, scale))


def _chosen(number: int, part: Segment, level: Fraction, scale: Fraction) -> dict[Outcome, float]:
    values = ValueCandidates(part)
    return {((number, values.value(index)),): chance for index, chance in enumerate(choices(values, level, scale))}


def _after_cut(mechanism: QuantileTree, node: Branch, part: Segment, before: int, after: int, chances: list[float]) -> dict[Outcome, float]:
    found: dict[Outcome, float] = {}
    by_cut: dict[Cut, float] = {}
    for index, chance in enumerate(chances):
        cut = CutCandidates(part).cut(index)
        by_cut[cut] = by_cut.get(cut, 0.0) + math.exp(chance)
    for cut, share in by_cut.items():
        left = _outcomes(mechanism, node.left, Segment.between(part.line, part.start, cut), before, 0)
        right = _outcomes(mechanism, node.right, Segment.between(part.line, cut, part.end), 0, after)
        for outcome, chance in _joined(left, right).items():
            found[((node.target, cut), *outcome)] = math.log(share) + chance
    return found


def _joined(left: Mapping[Outcome, float], right: Mapping[Outcome, float]) -> dict[Outcome, float]:
    return {(*a, *b): x + y for a, x in left.items() for b, y in right.items()}
