"""A quantile by selection: each candidate value is scored by how far its rank is from the quantile, and one is selected.

A value c is a q-quantile of N rows when at most q N rows lie below it and at most (1 - q) N above. With ``q = n / d`` the score of c is

    -max(0, d * below - n * N, d * above - (d - n) * N)

an integer: 0 at every quantile among the candidates, and minus d for each rank away from it. It needs the counts of rows between, and equal
to, the candidates, and nothing else about the rows.

Proof: ``docs/proofs/quantile-selection.md``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import TypeAlias, assert_never

from lapwing.errors import LapwingError, Refused
from lapwing.kernel.accounting import Account
from lapwing.kernel.event import Event
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.numbers import ceil_div
from lapwing.kernel.quantile_tree import DENOMINATOR_MAX
from lapwing.mechanisms.selection import ExponentialMechanism, PermuteAndFlip, exponential_for, permute_and_flip_for


class SelectionRule(Enum):
    """How the candidate is selected, given the scores."""

    EXPONENTIAL = "exponential"
    """The exponential mechanism: cheaper on an approximate account, because its rho is a quarter."""

    PERMUTE_AND_FLIP = "permute-and-flip"
    """Permute-and-flip: more accurate on a pure account."""


Selection: TypeAlias = ExponentialMechanism | PermuteAndFlip


def quantile_sensitivity(*, quantile: Fraction, rows_per_unit: int, neighbours: Neighbours) -> int:
    """How far the score of a candidate can move between neighbours, at most; attained.

    Pre: a unit has at most ``rows_per_unit`` rows. With ``quantile = n / d``, a unit that comes or goes moves a score by at most
    ``rows_per_unit * max(n, d - n)``; a unit replaced by another, which may have fewer rows or none, by ``rows_per_unit * d``.
    """
    _require_quantile(quantile)
    if type(rows_per_unit) is not int or rows_per_unit < 1:
        raise LapwingError("sensitivity-invalid", "the number of rows per unit must be a positive integer")
    match neighbours:
        case Neighbours.UNBOUNDED:
            return rows_per_unit * max(quantile.numerator, quantile.denominator - quantile.numerator)
        case Neighbours.BOUNDED:
            return rows_per_unit * quantile.denominator
        case never:
            assert_never(never)


@dataclass(frozen=True, slots=True)
class QuantileSelection:
    """Selects a candidate, by the selection rule and the scores above. The scale is in units of score: ``d`` of them are one rank.

    Pre: a unit has at most ``rows_per_unit`` rows. Post: epsilon-differentially private, for these neighbours, with epsilon twice the
    :func:`quantile_sensitivity` over the scale; rho is that of the rule. The value is the list of rows, in any order. Smith 2011 for
    selecting a quantile by the exponential mechanism.
    """

    candidates: tuple[int, ...]
    """The values that may be chosen, increasing."""
    quantile: Fraction
    rows_per_unit: int
    neighbours: Neighbours
    scale: Fraction
    rule: SelectionRule = SelectionRule.EXPONENTIAL

    def __post_init__(self) -> None:
        _require_candidates(self.candidates)
        self.selection()  # checks the scale, the quantile and the rows per unit

    def selection(self) -> Selection:
        """The mechanism that selects by score."""
        sensitivity = quantile_sensitivity(quantile=self.quantile, rows_per_unit=self.rows_per_unit, neighbours=self.neighbours)
        match self.rule:
            case SelectionRule.EXPONENTIAL:
                return ExponentialMechanism(self.scale, sensitivity, len(self.candidates))
            case SelectionRule.PERMUTE_AND_FLIP:
                return PermuteAndFlip(self.scale, sensitivity, len(self.candidates))
            case never:
                assert_never(never)

    def counts(self, rows: Sequence[int]) -> list[int]:
        """Rows below the first candidate, equal to it, between it and the second, and so on: ``2 * candidates + 1`` counts."""
        counts = [0] * (2 * len(self.candidates) + 1)
        for row in rows:
            if type(row) is not int:
                raise LapwingError("value-invalid", "a quantile can be selected only from integers")
            place = bisect_left(self.candidates, row)
            equal = place < len(self.candidates) and self.candidates[place] == row
            counts[2 * place + 1 if equal else 2 * place] += 1
        return counts

    def scores(self, counts: Sequence[int]) -> list[int]:
        """The score of each candidate, from the counts in the order of :meth:`counts`."""
        if len(counts) != 2 * len(self.candidates) + 1 or any(type(count) is not int or count < 0 for count in counts):
            raise LapwingError("scores-invalid", "the counts of rows must be non-negative integers, two per candidate and one more")
        up_to = list(accumulate(counts))
        total, n, d = up_to[-1], self.quantile.numerator, self.quantile.denominator
        return [
            -max(0, d * up_to[2 * index] - n * total, d * (total - up_to[2 * index + 1]) - (d - n) * total)
            for index in range(len(self.candidates))
        ]

    def event(self) -> Event:
        """The cost of one run."""
        return self.selection().event()

    def law(self, value: Sequence[int], *, decay: Fraction) -> Mapping[int, Fraction]:
        """The exact law of the chosen value, given the rows."""
        by_index = self.selection().law(self.scores(self.counts(value)), decay=decay)
        return {self.candidates[index]: chance for index, chance in by_index.items()}

    def odds(self, *, decay: Fraction) -> Fraction:
        """The claimed ``exp(epsilon)``."""
        return self.selection().odds(decay=decay)

    def error(self, *, confidence: Fraction) -> int:
        """With this confidence the chosen value is at most this many ranks further from the quantile than the best candidate is."""
        return ceil_div(self.selection().error(confidence=confidence), self.quantile.denominator)


def quantile_selection_for(
    account: Account,
    *,
    loss: Fraction,
    candidates: tuple[int, ...],
    quantile: Fraction,
    rows_per_unit: int,
    neighbours: Neighbours,
    rule: SelectionRule = SelectionRule.EXPONENTIAL,
) -> QuantileSelection:
    """The selection with the least scale whose event costs at most ``loss`` (epsilon if pure, rho if approximate)."""
    _require_candidates(candidates)
    sensitivity = quantile_sensitivity(quantile=quantile, rows_per_unit=rows_per_unit, neighbours=neighbours)
    match rule:
        case SelectionRule.EXPONENTIAL:
            scale = exponential_for(account, loss=loss, score_sensitivity=sensitivity, candidates=len(candidates)).scale
        case SelectionRule.PERMUTE_AND_FLIP:
            scale = permute_and_flip_for(account, loss=loss, score_sensitivity=sensitivity, candidates=len(candidates)).scale
        case never:
            assert_never(never)
    return QuantileSelection(candidates, quantile, rows_per_unit, neighbours, scale, rule)


def _require_quantile(quantile: Fraction) -> None:
    if type(quantile) is not Fraction or not 0 < quantile < 1 or quantile.denominator > DENOMINATOR_MAX:
        raise Refused("mechanism-invalid", "a quantile must be a fraction above 0 and below 1 with a denominator of at most 2^20")


def _require_candidates(candidates: tuple[int, ...]) -> None:
    integers = type(candidates) is tuple and all(type(candidate) is int for candidate in candidates)
    if not integers or not candidates or any(before >= after for before, after in pairwise(candidates)):
        raise Refused("mechanism-invalid", "the candidates of a quantile must be a tuple of increasing integers")
