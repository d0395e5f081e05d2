"""The two noise laws: discrete Laplace and discrete Gaussian on the integers.

A law is its scale, a ``Fraction`` that a float represents exactly, because OpenDP's samplers take a float and must draw the very law that
was certified, like our own. What a law costs (:func:`loss`) and its tails are exact or rounded against us.

Proofs: ``docs/proofs/discrete-laplace.md`` and ``docs/proofs/discrete-gaussian.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import TypeAlias, assert_never

from lapwing.errors import LapwingError, Refused
from lapwing.kernel.accounting import Account, pure_at_order
from lapwing.kernel.numbers import require_exact
from lapwing.kernel.tails import gaussian_tail_upper, laplace_tail_upper

SCALE_MIN = Fraction(1, 2**20)
"""Smallest scale: noise of this scale is 0 except with a probability below ``exp(-2**20)``."""

SCALE_MAX = Fraction(2**56)
"""Largest scale. Values are at most ``2**62`` in size, so a noisy one needs more than 64 bits with probability below ``2 exp(-64)``."""

PROBABILITY_MIN = Fraction(1, 2**200)
"""Smallest tail probability a quantile is computed for."""

LOSS_MARGIN = Fraction(2**40 + 1, 2**40)
"""Factor on every loss, so that the map of OpenDP's samplers, which rounds up in floats, stays below what we charge."""


def require_scale(scale: Fraction) -> None:
    """Stop (code ``scale-invalid``) a scale that the sampler could not take exactly."""
    # type() and not isinstance(): an equal float or bool would be a scale that was never certified
    if type(scale) is not Fraction or not SCALE_MIN <= scale <= SCALE_MAX or Fraction(float(scale)) != scale:
        raise Refused("scale-invalid", "a noise scale is a fraction from 2^-20 to 2^56 that a 64-bit float represents exactly")


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """``P[Z = z]`` proportional to ``exp(-|z| / scale)`` on the integers."""

    scale: Fraction

    def __post_init__(self) -> None:
        require_scale(self.scale)


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """``P[Z = z]`` proportional to ``exp(-z^2 / (2 scale^2))`` on the integers; ``scale`` is sigma: the deviation, except for tiny
    scales.
    """

    scale: Fraction

    def __post_init__(self) -> None:
        require_scale(self.scale)


Law: TypeAlias = DiscreteLaplace | DiscreteGaussian


class Sampler(Enum):
    """Which sampler draws the noise. The law is the same."""

    LAPWING = "lapwing"
    """Our own, for whole vectors: ``lapwing.kernel.noise.vectors``."""
    OPENDP = "opendp"
    """OpenDP's, one value after another."""


def require_sensitivity(*, l1: int, l2_squared: int) -> None:
    """Stop (code ``sensitivity-invalid``) a value that is not a bound on a sensitivity."""
    if type(l1) is not int or type(l2_squared) is not int or l1 < 0 or l2_squared < 0:
        raise LapwingError("sensitivity-invalid", "a sensitivity is an integer that is not negative")


def _is_pure(account: Account) -> bool:
    match account:
        case Account.PURE:
            return True
        case Account.APPROXIMATE:
            return False
        case never:
            assert_never(never)


def gaussian_needs_delta() -> Refused:
    """The refusal of Gaussian noise without a delta."""
    return Refused("gaussian-needs-delta", "Gaussian noise is never private with delta = 0", hint="use Laplace noise on a pure data set")


def pure_loss(law: Law, *, l1: int) -> Fraction | None:
    """The epsilon of adding this noise to a vector that moves by at most ``l1`` in L1 norm; None where there is none."""
    require_sensitivity(l1=l1, l2_squared=0)
    return LOSS_MARGIN * l1 / law.scale if isinstance(law, DiscreteLaplace) else None


def loss(law: Law, account: Account, *, l1: int, l2_squared: int, order: int | None = None) -> Fraction:
    """What adding independent noise of this law to an integer vector costs.

    Pre: between neighbours the vector moves by at most ``l1`` in L1 norm and ``l2_squared`` in squared L2 norm. Post: the noisy vector is
    ``loss``-differentially private (pure account) or ``loss``-zCDP (approximate account); with an ``order`` its Rényi divergence at that
    order is at most ``order * loss``. A Gaussian on a pure account is refused with ``gaussian-needs-delta``.
    """
    require_sensitivity(l1=l1, l2_squared=l2_squared)
    match law:
        case DiscreteLaplace():
            epsilon = l1 / law.scale
            if order is not None and not _is_pure(account):
                return pure_at_order(order, LOSS_MARGIN * epsilon)
            # epsilon-DP implies epsilon^2/2-zCDP
            return LOSS_MARGIN * (epsilon if _is_pure(account) else epsilon**2 / 2)
        case DiscreteGaussian():
            if _is_pure(account):
                raise gaussian_needs_delta()
            return LOSS_MARGIN * l2_squared / (2 * law.scale**2)
        case never:
            assert_never(never)


def tail_upper(law: Law, t: int) -> Fraction:
    """A rigorous upper bound on ``P[Z >= t]``, for every integer ``t``."""
    match law:
        case DiscreteLaplace():
            return laplace_tail_upper(law.scale, t)
        case DiscreteGaussian():
            return gaussian_tail_upper(law.scale, t)
        case never:
            assert_never(never)


def tail_quantile(law: Law, probability: Fraction) -> int:
    """The least integer ``t`` with ``tail_upper(law, t) <= probability``, so that ``P[Z >= t] <= probability`` for certain.

    A float guess starts the search; only :func:`tail_upper` decides. Refuses a probability below ``PROBABILITY_MIN`` or at least 1.
    """
    require_exact(probability)
    if not PROBABILITY_MIN <= probability < 1:
        raise Refused("probability-invalid", "a tail probability must be at least 2^-200 and below 1")
    return _tail_quantile(law, Fraction(probability))


@lru_cache(maxsize=4096)
def _tail_quantile(law: Law, probability: Fraction) -> int:
    def enough(t: int) -> bool:
        return tail_upper(law, t) <= probability

    match law:
        case DiscreteLaplace():
            guess = -math.log(2.0 * float(probability)) * float(law.scale)
        case DiscreteGaussian():
            guess = -NormalDist().inv_cdf(float(probability)) * float(law.scale)
        case never:
            assert_never(never)
    # Gallop from the guess to a bracket: not enough at ``low``, enough at ``high``.
    step = 1
    if enough(start := math.ceil(guess)):
        low, high = start - 1, start
        while enough(low):
            low, high, step = low - 2 * step, low, 2 * step
    else:
        low, high = start, start + 1
        while not enough(high):
            low, high, step = high, high + 2 * step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
