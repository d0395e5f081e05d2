"""The k best candidates, in order, by peeling: the exponential mechanism k times, each time without the candidates already taken.

One draw of Gumbel noise on each score, sorted, has exactly this law, so one pass is enough.

Proof: ``docs/proofs/top-k.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from lapwing.errors import Refused
from lapwing.kernel.accounting import Account
from lapwing.kernel.event import Event
from lapwing.kernel.numbers import exp_lower, ln_lower
from lapwing.kernel.quantile_tree import RANGE_DIVISOR
from lapwing.mechanisms.mechanism import require_decay
from lapwing.mechanisms.selection import (
    least_loss,
    losses_below_best,
    movement_max,
    require_selection,
    selection_event,
    selection_scale,
)
from lapwing.spread import require_confidence

LAW_OUTPUTS_MAX = 2**16
"""Most outputs of an exact law."""


@dataclass(frozen=True, slots=True)
class TopK:
    """``k`` indices, each chosen by the exponential mechanism from the candidates that are left; the order is part of the output.

    Pre: between neighbours each score moves by at most ``score_sensitivity``, all the same way if ``monotone``. Post: with
    ``epsilon_one = 2 score_sensitivity / scale`` (half of that if monotone), the list is ``k epsilon_one``-differentially private and
    ``k epsilon_one^2 / 8``-zCDP. Durfee and Rogers 2019.
    """

    k: int
    scale: Fraction
    score_sensitivity: int
    candidates: int
    monotone: bool = False

    def __post_init__(self) -> None:
        require_selection(scale=self.scale, score_sensitivity=self.score_sensitivity, candidates=self.candidates, monotone=self.monotone)
        _require_k(self.k, candidates=self.candidates)

    @property
    def movement(self) -> int:
        """How far the difference of two scores can move between neighbours."""
        return movement_max(score_sensitivity=self.score_sensitivity, monotone=self.monotone)

    def event(self) -> Event:
        """The cost of one run of k selections."""
        return selection_event(self.scale, movement=self.movement, divisor=RANGE_DIVISOR, rounds=self.k)

    def law(self, value: Sequence[int], *, decay: Fraction) -> Mapping[tuple[int, ...], Fraction]:
        """The exact law of the list of indices; raises ``law-unavailable`` for more than ``LAW_OUTPUTS_MAX`` lists."""
        require_decay(decay)
        if math.perm(self.candidates, self.k) > LAW_OUTPUTS_MAX:
            raise Refused("law-unavailable", "there are too many lists for an exact law")
        weights = [decay**loss for loss in losses_below_best(value, candidates=self.candidates)]
        lists: dict[tuple[int, ...], Fraction] = {(): Fraction(1)}
        for _ in range(self.k):
            longer: dict[tuple[int, ...], Fraction] = {}
            for taken, chance in lists.items():
                left = [index for index in range(self.candidates) if index not in taken]
                total = sum(weights[index] for index in left)
                longer |= {(*taken, index): chance * weights[index] / total for index in left}
            lists = longer
        return lists

    def odds(self, *, decay: Fraction) -> Fraction:
        """The claimed ``exp(epsilon)`` of the whole list."""
        require_decay(decay)
        return decay ** -(self.k * self.movement)

    def error(self, *, confidence: Fraction) -> int:
        """With this confidence, for every place i at once, the i-th score chosen is at most this far below the i-th best score."""
        require_confidence(confidence)
        # Place i fails with odds at most (candidates - i) w, given the places before it. All succeed with probability at least the product
        # of 1 / (1 + (candidates - i) w), which is at least (1 + mean)^-k with the mean of these odds.
        mean_others = self.candidates - Fraction(self.k + 1, 2)
        weight_max = exp_lower(ln_lower(1 / Fraction(confidence)) / self.k) - 1
        return least_loss(self.scale, others=mean_others, weight_max=weight_max) if self.candidates > 1 else 0


def top_k_for(account: Account, *, loss: Fraction, k: int, score_sensitivity: int, candidates: int, monotone: bool = False) -> TopK:
    """Peeling with the least scale whose k selections together cost at most ``loss`` (epsilon if pure, rho if approximate)."""
    _require_k(k, candidates=candidates)
    movement = movement_max(score_sensitivity=score_sensitivity, monotone=monotone)
    scale = selection_scale(account, loss=loss, movement=movement, divisor=RANGE_DIVISOR, rounds=k)
    return TopK(k, scale, score_sensitivity, candidates, monotone)


def _require_k(k: int, *, candidates: int) -> None:
    if type(k) is not int or not 1 <= k <= candidates:
        raise Refused("mechanism-invalid", "k must be an integer from 1 to the number of candidates")
