"""Selecting one candidate by its score: the exponential mechanism and permute-and-flip.

The candidates are public and numbered from 0; the scores are private integers, one per candidate, higher is better. Between neighbours each
score moves by at most ``score_sensitivity``. If moreover all scores move the same way (all up or stay, or all down or stay, as counts do
when a unit is added), the scores are *monotone*, and the same noise costs half as much.

With ``decay = exp(-1 / scale)`` the weight of a candidate whose score is ``loss`` below the best is ``decay ** loss``, so both laws are
rational functions of the decay.

Proofs: ``docs/proofs/exponential-mechanism.md`` and ``docs/proofs/permute-and-flip.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from lapwing.errors import LapwingError, Refused
from lapwing.kernel.accounting import Account
from lapwing.kernel.event import Event
from lapwing.kernel.laws import LOSS_MARGIN, require_scale
from lapwing.kernel.numbers import ln_upper, require_exact
from lapwing.kernel.quantile_tree import RANGE_DIVISOR
from lapwing.mechanisms.mechanism import require_decay
from lapwing.prices import scale_at_least, scale_root_at_least
from lapwing.spread import require_confidence

CANDIDATES_MAX = 2**20
"""Most candidates of one selection."""

SCORE_SENSITIVITY_MAX = 2**61
"""Largest sensitivity of a score: the sampler's map doubles it in 64 bits."""

SPREAD_MAX = 2**14
"""Largest difference of two scores for which an exact law is computed; its fractions have that many factors of the decay."""

PURE_DIVISOR = 2
"""rho is ``epsilon^2 / 2`` if only epsilon-differential privacy is known: the loss then lies in an interval of length 2 epsilon."""


def require_selection(*, scale: Fraction, score_sensitivity: int, candidates: int, monotone: bool) -> None:
    """Raise ``scale-invalid``, ``sensitivity-invalid`` or ``mechanism-invalid`` for parameters that no selection can have."""
    require_scale(scale)
    if type(score_sensitivity) is not int or not 1 <= score_sensitivity <= SCORE_SENSITIVITY_MAX:
        raise LapwingError("sensitivity-invalid", "the sensitivity of a score must be an integer from 1 to 2^61")
    if type(candidates) is not int or not 1 <= candidates <= CANDIDATES_MAX:
        raise Refused("mechanism-invalid", "the number of candidates must be an integer from 1 to 2^20")
    if type(monotone) is not bool:
        raise Refused("mechanism-invalid", "monotone must be True or False")


def require_scores(scores: Sequence[int], *, candidates: int) -> list[int]:
    """The scores as a list, if they are integers, one per candidate (else code ``scores-invalid``, without a value)."""
    listed = list(scores)
    if len(listed) != candidates:
        raise LapwingError("scores-invalid", "there must be exactly one score per candidate")
    if any(type(score) is not int for score in listed):
        raise LapwingError("scores-invalid", "scores must be integers")
    return listed


def losses_below_best(scores: Sequence[int], *, candidates: int) -> list[int]:
    """How far each score is below the best, for an exact law; raises ``law-unavailable`` for a spread above ``SPREAD_MAX``."""
    listed = require_scores(scores, candidates=candidates)
    best = max(listed)
    if best - min(listed) > SPREAD_MAX:
        raise Refused("law-unavailable", "the scores are too far apart for an exact law")
    return [best - score for score in listed]


def movement_max(*, score_sensitivity: int, monotone: bool) -> int:
    """How far the difference of two scores can move between neighbours: twice the sensitivity, or once if all move the same way."""
    return score_sensitivity if monotone else 2 * score_sensitivity


def selection_event(scale: Fraction, *, movement: int, divisor: int, rounds: int = 1) -> Event:
    """The cost of ``rounds`` selections, each ``movement / scale`` in epsilon and its square over ``divisor`` in rho; with the margin."""
    epsilon = movement / scale
    return Event(epsilon=LOSS_MARGIN * rounds * epsilon, rho=LOSS_MARGIN * rounds * epsilon**2 / divisor)


def selection_scale(account: Account, *, loss: Fraction, movement: int, divisor: int, rounds: int = 1) -> Fraction:
    """The least scale whose :func:`selection_event` costs at most this loss (epsilon on a pure account, rho on an approximate one).

    Raises ``loss-invalid`` for a loss that is not positive, and ``scale-invalid`` for one that needs more than the largest scale.
    """
    require_exact(loss)
    if loss <= 0:
        raise Refused("loss-invalid", "the privacy loss of a selection must be positive")
    match account:
        case Account.PURE:
            return scale_at_least(LOSS_MARGIN * rounds * movement / loss)
        case Account.APPROXIMATE:
            return scale_root_at_least(LOSS_MARGIN * rounds * movement**2 / (divisor * loss))
        case never:
            assert_never(never)


def least_loss(scale: Fraction, *, others: Fraction, weight_max: Fraction) -> int:
    """The least integer ``t >= 0`` for which we can show ``others * exp(-(t + 1) / scale) <= weight_max``."""
    if others <= 0:
        return 0
    return max(0, math.ceil(scale * ln_upper(others / weight_max)) - 1)


@dataclass(frozen=True, slots=True)
class ExponentialMechanism:
    """Selects candidate h with probability proportional to ``exp(score_h / scale)``.

    Pre: between neighbours each score moves by at most ``score_sensitivity``, all the same way if ``monotone``. Post: the choice is
    epsilon-differentially private for ``epsilon = 2 score_sensitivity / scale`` (half of that if monotone), and ``epsilon^2 / 8``-zCDP.
    McSherry and Talwar 2007; the rho is of Dong, Durfee and Rogers 2020 and of Cesar and Rogers 2021.
    """

    scale: Fraction
    score_sensitivity: int
    candidates: int
    monotone: bool = False

    def __post_init__(self) -> None:
        require_selection(scale=self.scale, score_sensitivity=self.score_sensitivity, candidates=self.candidates, monotone=self.monotone)

    @property
    def movement(self) -> int:
        """How far the difference of two scores can move between neighbours."""
        return movement_max(score_sensitivity=self.score_sensitivity, monotone=self.monotone)

    def event(self) -> Event:
        """The cost of one run."""
        return selection_event(self.scale, movement=self.movement, divisor=RANGE_DIVISOR)

    def law(self, value: Sequence[int], *, decay: Fraction) -> Mapping[int, Fraction]:
        """The exact law of the chosen index on these scores."""
        require_decay(decay)
        weights = [decay**loss for loss in losses_below_best(value, candidates=self.candidates)]
        total = sum(weights)
        return {index: weight / total for index, weight in enumerate(weights)}

    def odds(self, *, decay: Fraction) -> Fraction:
        """The claimed ``exp(epsilon)``; the supremum over all score vectors, which none attains."""
        require_decay(decay)
        return decay**-self.movement

    def error(self, *, confidence: Fraction) -> int:
        """With this confidence the chosen score is at most this far below the best; attained, up to rounding, by some score vector."""
        require_confidence(confidence)
        # The worst case: all candidates but one are just too bad. With total weight w they win with probability w / (1 + w).
        return least_loss(self.scale, others=Fraction(self.candidates - 1), weight_max=(1 - confidence) / confidence)


def exponential_for(
    account: Account, *, loss: Fraction, score_sensitivity: int, candidates: int, monotone: bool = False
) -> ExponentialMechanism:
    """The exponential mechanism with the least scale whose event costs at most ``loss`` (epsilon if pure, rho if approximate)."""
    movement = movement_max(score_sensitivity=score_sensitivity, monotone=monotone)
    scale = selection_scale(account, loss=loss, movement=movement, divisor=RANGE_DIVISOR)
    return ExponentialMechanism(scale, score_sensitivity, candidates, monotone)


@dataclass(frozen=True, slots=True)
class PermuteAndFlip:
    """Visit the candidates in random order; stop at one with probability ``exp(-(best score - its score) / scale)``.

    The same law as adding an exponential variable of mean ``scale`` to each score and taking the largest.

    Pre: as for :class:`ExponentialMechanism`. Post: epsilon-differentially private with the same epsilon, ``2 score_sensitivity / scale``
    (half if monotone); ``epsilon^2 / 2``-zCDP and in general no better. Its expected score is never below the exponential mechanism's.
    McKenna and Sheldon 2020; the form with exponential noise is of Ding, Kifer, Steinke and others 2021.
    """

    scale: Fraction
    score_sensitivity: int
    candidates: int
    monotone: bool = False

    def __post_init__(self) -> None:
        require_selection(scale=self.scale, score_sensitivity=self.score_sensitivity, candidates=self.candidates, monotone=self.monotone)

    @property
    def movement(self) -> int:
        """How far the difference of two scores can move between neighbours."""
        return movement_max(score_sensitivity=self.score_sensitivity, monotone=self.monotone)

    def event(self) -> Event:
        """The cost of one run."""
        return selection_event(self.scale, movement=self.movement, divisor=PURE_DIVISOR)

    def law(self, value: Sequence[int], *, decay: Fraction) -> Mapping[int, Fraction]:
        """The exact law of the chosen index on these scores, in time quadratic in their number.

        Give each candidate a uniform time of visit. Candidate h wins at time t if its own coin succeeds (``p_h``) and no other candidate
        was visited before t with a coin that did: ``p_h`` times the integral over t from 0 to 1 of the product of ``1 - p_j t``, j not h.
        """
        require_decay(decay)
        losses = losses_below_best(value, candidates=self.candidates)
        product = [Fraction(1)]  # coefficients of the product of all 1 - p_j t, lowest power first
        for loss in losses:
            coin = decay**loss
            product = [here - coin * before for here, before in zip([*product, Fraction(0)], [Fraction(0), *product], strict=True)]
        chance = {loss: decay**loss * _integral_without(product, decay**loss) for loss in set(losses)}
        return {index: chance[loss] for index, loss in enumerate(losses)}

    def odds(self, *, decay: Fraction) -> Fraction:
        """The claimed ``exp(epsilon)``; some pairs of score vectors attain it."""
        require_decay(decay)
        return decay**-self.movement

    def error(self, *, confidence: Fraction) -> int:
        """With this confidence the chosen score is at most this far below the best; never more than the exponential mechanism's bound."""
        require_confidence(confidence)
        failure = 1 - Fraction(confidence)
        # Two bounds on the chance of others with total weight w: w / 2 and w / (1 + w).
        weight_max = max(2 * failure, failure / (1 - failure))
        return least_loss(self.scale, others=Fraction(self.candidates - 1), weight_max=weight_max)


def _integral_without(product: Sequence[Fraction], coin: Fraction) -> Fraction:
    """The integral from 0 to 1 of the polynomial ``product`` divided by its factor ``1 - coin * t``."""
    total = quotient = Fraction(0)
    for power, coefficient in enumerate(product[:-1]):
        quotient = coefficient + coin * quotient
        total += quotient / (power + 1)
    return total


def permute_and_flip_for(
    account: Account, *, loss: Fraction, score_sensitivity: int, candidates: int, monotone: bool = False
) -> PermuteAndFlip:
    """Permute-and-flip with the least scale whose event costs at most ``loss`` (epsilon if pure, rho if approximate)."""
    movement = movement_max(score_sensitivity=score_sensitivity, monotone=monotone)
    scale = selection_scale(account, loss=loss, movement=movement, divisor=PURE_DIVISOR)
    return PermuteAndFlip(scale, score_sensitivity, candidates, monotone)
