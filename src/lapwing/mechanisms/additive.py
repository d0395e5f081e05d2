"""Noise added to integers: the Laplace mechanism (on one count: the geometric mechanism) and the Gaussian mechanism.

The value is an integer or a tuple of integers; the output has the same shape. Each coordinate gets its own independent draw, and is then,
if the mechanism has a ``clamp``, moved to the nearest integer of that range: post-processing, which costs nothing and makes the law finite.

Proof: ``docs/proofs/additive-noise.md``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, overload

from lapwing.errors import LapwingError, Refused
from lapwing.kernel.accounting import Account
from lapwing.kernel.event import Event
from lapwing.kernel.laws import SCALE_MAX, DiscreteGaussian, DiscreteLaplace, Law, loss
from lapwing.kernel.numbers import ln_lower, require_exact
from lapwing.mechanisms.geometric import OUTPUTS_MAX, mass, tail
from lapwing.mechanisms.mechanism import require_decay
from lapwing.prices import Family, law_for, scale_at_least
from lapwing.spread import half_width

Integers: TypeAlias = int | tuple[int, ...]
"""One integer, or a vector of them."""

Clamp: TypeAlias = tuple[int, int] | None
"""The lowest and the highest output, both included; None for all integers."""


def require_integers(value: Integers) -> tuple[int, ...]:
    """The value as a vector; raises ``value-invalid`` for anything but integers."""
    vector = value if isinstance(value, tuple) else (value,)
    if any(type(coordinate) is not int for coordinate in vector):
        raise LapwingError("value-invalid", "noise can be added only to integers")
    return vector


def _require_sensitivity(amount: int) -> None:
    if type(amount) is not int or amount < 0:
        raise LapwingError("sensitivity-invalid", "a sensitivity must be a non-negative integer")


def _require_clamp(clamp: Clamp) -> None:
    if clamp is None:
        return
    low, high = clamp
    if type(low) is not int or type(high) is not int or low > high:
        raise Refused("mechanism-invalid", "a clamp must be two integers, the lower one first")


@overload
def clamped(value: int, clamp: Clamp) -> int: ...
@overload
def clamped(value: tuple[int, ...], clamp: Clamp) -> tuple[int, ...]: ...
def clamped(value: Integers, clamp: Clamp) -> Integers:
    """Each coordinate moved to the nearest integer of the range."""
    if clamp is None:
        return value
    low, high = clamp
    if isinstance(value, tuple):
        return tuple(min(max(coordinate, low), high) for coordinate in value)
    return min(max(value, low), high)


def _half_width(law: Law, *, confidence: Fraction, coordinates: int) -> int:
    """The half-width that holds for this many coordinates at once, by the union bound."""
    require_exact(confidence)
    if type(coordinates) is not int or coordinates < 1:
        raise Refused("mechanism-invalid", "the number of coordinates must be a positive integer")
    return half_width(law, confidence=1 - (1 - Fraction(confidence)) / coordinates)


@dataclass(frozen=True, slots=True)
class LaplaceMechanism:
    """Adds independent discrete Laplace noise of this scale to each coordinate.

    Pre: between neighbours the value moves by at most ``l1`` in L1 norm. Post: ``l1 / scale``-differentially private.
    """

    scale: Fraction
    l1: int
    clamp: Clamp = None

    def __post_init__(self) -> None:
        DiscreteLaplace(self.scale)  # checks the scale
        _require_sensitivity(self.l1)
        _require_clamp(self.clamp)

    def noise(self) -> DiscreteLaplace:
        """The law of the noise."""
        return DiscreteLaplace(self.scale)

    def event(self) -> Event:
        """``epsilon = l1 / scale`` and ``rho = epsilon^2 / 2``, with the margin of :func:`lapwing.kernel.laws.loss`."""
        amounts = {account: loss(self.noise(), account, l1=self.l1, l2_squared=self.l1**2) for account in Account}
        return Event(epsilon=amounts[Account.PURE], rho=amounts[Account.APPROXIMATE])

    @overload
    def law(self, value: int, *, decay: Fraction) -> Mapping[int, Fraction]: ...
    @overload
    def law(self, value: tuple[int, ...], *, decay: Fraction) -> Mapping[tuple[int, ...], Fraction]: ...
    def law(self, value: Integers, *, decay: Fraction) -> Mapping[int, Fraction] | Mapping[tuple[int, ...], Fraction]:
        """The exact law of the clamped output. Without a clamp it has infinitely many outputs: refused with ``law-unavailable``.

        So is a vector whose outputs number more than ``OUTPUTS_MAX``.
        """
        require_decay(decay)
        vector = require_integers(value)
        if self.clamp is None:
            raise Refused("law-unavailable", "an output that is not clamped has infinitely many values", hint="give the mechanism a clamp")
        low, high = self.clamp
        if (high - low + 1) ** len(vector) > OUTPUTS_MAX:
            raise Refused("law-unavailable", f"the law has more than {OUTPUTS_MAX} outputs")
        laws = [_clamped_law(coordinate, low=low, high=high, decay=decay) for coordinate in vector]
        if not isinstance(value, tuple):
            return laws[0]
        return {
            tuple(output for output, _ in choice): math.prod((probability for _, probability in choice), start=Fraction(1))
            for choice in itertools.product(*(law.items() for law in laws))
        }

    def odds(self, *, decay: Fraction) -> Fraction:
        """``decay ** -l1``. Attained exactly if two values at distance ``l1`` lie inside the clamp."""
        require_decay(decay)
        return decay**-self.l1

    def error(self, *, confidence: Fraction, coordinates: int = 1) -> int:
        """The distance that no coordinate of the noise exceeds, with this confidence.

        It bounds the error of the clamped output too if the exact value lies inside the clamp.
        """
        return _half_width(self.noise(), confidence=confidence, coordinates=coordinates)


def _clamped_law(value: int, *, low: int, high: int, decay: Fraction) -> dict[int, Fraction]:
    if low == high:
        return {low: Fraction(1)}
    law = {output: mass(output - value, decay=decay) for output in range(low + 1, high)}
    # Z <= low - value has the probability of Z >= value - low, by symmetry
    return {low: tail(value - low, decay=decay), **law, high: tail(high - value, decay=decay)}


def laplace_for(*, epsilon: Fraction, l1: int, clamp: Clamp = None) -> LaplaceMechanism:
    """The Laplace mechanism of least scale whose event is at most this epsilon."""
    law = law_for(Account.PURE, loss=epsilon, l1=l1, l2_squared=l1**2, family=Family.LAPLACE)
    return LaplaceMechanism(scale=law.scale, l1=l1, clamp=clamp)


def geometric(*, alpha: Fraction, sensitivity: int = 1, clamp: Clamp = None) -> LaplaceMechanism:
    """The geometric mechanism (Ghosh, Roughgarden and Sundararajan 2012): ``P[Z = z]`` proportional to ``alpha ** |z|`` on one count.

    The Laplace mechanism by its other parameter. The scale ``1 / ln(1 / alpha)`` is rounded up to a float, so a draw is at least as
    private; ``law(value, decay=alpha)`` is the law at ``alpha`` itself. With a ``clamp`` it is the truncated geometric mechanism.
    """
    require_decay(alpha)
    rate = ln_lower(1 / alpha)
    if rate * SCALE_MAX < 1:
        raise Refused("scale-invalid", "alpha is too close to 1: it needs noise above the largest scale")
    return LaplaceMechanism(scale=scale_at_least(1 / rate), l1=sensitivity, clamp=clamp)


@dataclass(frozen=True, slots=True)
class GaussianMechanism:
    """Adds independent discrete Gaussian noise of this scale (sigma) to each coordinate.

    Pre: between neighbours the squared L2 norm of the value's movement is at most ``l2_squared``. Post: ``l2_squared / (2 scale^2)``-zCDP.

    It has no ``law`` at a rational decay (its normalising sum is not a rational function) and no ``odds`` (the ratio of two probabilities
    is unbounded), so it is not a :class:`~lapwing.mechanisms.mechanism.Mechanism`; for one coordinate,
    :func:`lapwing.mechanisms.calibration.gaussian_delta` bounds its exact delta at every epsilon.
    """

    scale: Fraction
    l2_squared: int

    def __post_init__(self) -> None:
        DiscreteGaussian(self.scale)  # checks the scale
        _require_sensitivity(self.l2_squared)

    def noise(self) -> DiscreteGaussian:
        """The law of the noise."""
        return DiscreteGaussian(self.scale)

    def event(self) -> Event:
        """``rho = l2_squared / (2 scale^2)``, with the margin of :func:`lapwing.kernel.laws.loss`; no epsilon."""
        return Event(epsilon=None, rho=loss(self.noise(), Account.APPROXIMATE, l1=0, l2_squared=self.l2_squared))

    def error(self, *, confidence: Fraction, coordinates: int = 1) -> int:
        """The distance that no coordinate of the noise exceeds, with this confidence."""
        return _half_width(self.noise(), confidence=confidence, coordinates=coordinates)


def gaussian_for(*, rho: Fraction, l2_squared: int) -> GaussianMechanism:
    """The Gaussian mechanism of least scale whose event is at most this rho."""
    law = law_for(Account.APPROXIMATE, loss=rho, l1=0, l2_squared=l2_squared, family=Family.GAUSSIAN)
    return GaussianMechanism(scale=law.scale, l2_squared=l2_squared)
