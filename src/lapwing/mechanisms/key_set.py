"""A private set of keys: those whose noisy number of units reaches a threshold.

The same rule as for the groups of a statement (:mod:`lapwing.kernel.thresholds`), as a separate mechanism. Keys are numbered; the value is
the number of units of each key. A key that no unit has is never shown; delta pays for revealing which keys occur.

Proof: ``docs/proofs/key-threshold.md``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from lapwing.errors import LapwingError, Refused
from lapwing.kernel.accounting import Account
from lapwing.kernel.event import Event
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law, loss, tail_quantile
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.thresholds import least_threshold, threshold_delta
from lapwing.mechanisms.geometric import OUTPUTS_MAX, tail
from lapwing.mechanisms.mechanism import require_decay
from lapwing.spread import require_confidence


@dataclass(frozen=True, slots=True)
class KeySet:
    """Shows the set of keys that occur and whose number of units, with noise of this law, is at least ``threshold``.

    Pre: each unit counts 1 in at most ``groups_per_unit`` keys. Post: with the delta of :func:`lapwing.kernel.thresholds.threshold_delta`,
    (epsilon, delta)-differentially private (Laplace noise) and delta-approximately rho-zCDP, for the neighbours named.
    """

    noise: Law
    groups_per_unit: int
    threshold: int
    neighbours: Neighbours = Neighbours.UNBOUNDED

    def __post_init__(self) -> None:
        if type(self.groups_per_unit) is not int or self.groups_per_unit < 1:
            raise LapwingError("groups-invalid", "the number of groups per unit must be a positive integer")
        if type(self.threshold) is not int:
            raise Refused("mechanism-invalid", "a threshold must be an integer")
        if threshold_delta(self.noise, groups_per_unit=self.groups_per_unit, threshold=self.threshold) >= 1:
            raise Refused("mechanism-invalid", "the threshold hides nothing")

    def moved(self) -> int:
        """How many keys' numbers of units change, each by 1, between neighbours: the L1 and the squared L2 sensitivity."""
        match self.neighbours:
            case Neighbours.UNBOUNDED:
                return self.groups_per_unit
            case Neighbours.BOUNDED:
                return 2 * self.groups_per_unit
            case never:
                assert_never(never)

    def event(self) -> Event:
        """The loss of the noisy numbers of units over a fixed set of keys, and the delta of the threshold."""
        delta = threshold_delta(self.noise, groups_per_unit=self.groups_per_unit, threshold=self.threshold)
        moved = self.moved()
        rho = loss(self.noise, Account.APPROXIMATE, l1=moved, l2_squared=moved)
        match self.noise:
            case DiscreteLaplace():
                epsilon = loss(self.noise, Account.PURE, l1=moved, l2_squared=moved)
                return Event(epsilon=epsilon, rho=rho, delta=delta)
            case DiscreteGaussian():
                return Event(epsilon=None, rho=rho, delta=delta)
            case never:
                assert_never(never)

    def shown(self, units: int, *, decay: Fraction) -> Fraction:
        """The exact probability that a key with this many units is shown, at this decay of Laplace noise."""
        require_decay(decay)
        self._require_laplace()
        return tail(self.threshold - units, decay=decay) if units else Fraction(0)

    def law(self, value: tuple[int, ...], *, decay: Fraction) -> Mapping[frozenset[int], Fraction]:
        """The exact law of the set of keys shown, at this decay of Laplace noise; Gaussian noise is refused with ``law-unavailable``."""
        require_decay(decay)
        self._require_laplace()
        counts = require_counts(value)
        occurring = [(key, self.shown(units, decay=decay)) for key, units in enumerate(counts) if units]
        if 2 ** len(occurring) > OUTPUTS_MAX:
            raise Refused("law-unavailable", f"the law has more than {OUTPUTS_MAX} outputs")
        return {
            frozenset(key for (key, _), is_shown in zip(occurring, choice, strict=True) if is_shown): math.prod(
                (chance if is_shown else 1 - chance for (_, chance), is_shown in zip(occurring, choice, strict=True)), start=Fraction(1)
            )
            for choice in itertools.product((False, True), repeat=len(occurring))
        }

    def odds(self, *, decay: Fraction) -> Fraction:
        """``exp(epsilon)`` at this decay of Laplace noise; it holds together with :meth:`delta_at`."""
        require_decay(decay)
        self._require_laplace()
        return decay ** -self.moved()

    def delta_at(self, *, decay: Fraction) -> Fraction:
        """The exact delta at this decay of Laplace noise: the probability that a unit reveals any of the keys that only it has."""
        return 1 - (1 - self.shown(1, decay=decay)) ** self.groups_per_unit

    def error(self, *, confidence: Fraction) -> int:
        """How many units a key needs to be shown with this confidence."""
        require_confidence(confidence)
        # u units: hidden iff Z <= threshold - u - 1, which has the probability of Z >= u + 1 - threshold
        return max(1, self.threshold - 1 + tail_quantile(self.noise, 1 - Fraction(confidence)))

    def _require_laplace(self) -> None:
        match self.noise:
            case DiscreteLaplace():
                return
            case DiscreteGaussian():
                raise Refused("law-unavailable", "the law of Gaussian noise is not rational at any decay")
            case never:
                assert_never(never)


def require_counts(value: tuple[int, ...]) -> tuple[int, ...]:
    """The numbers of units themselves; raises ``value-invalid`` for anything but a tuple of non-negative integers."""
    if type(value) is not tuple or any(type(units) is not int or units < 0 for units in value):
        raise LapwingError("value-invalid", "numbers of units must be a tuple of non-negative integers")
    return value


def key_set_for(law: Law, *, groups_per_unit: int, delta: Fraction, neighbours: Neighbours = Neighbours.UNBOUNDED) -> KeySet:
    """The key set with the least threshold whose delta is at most this."""
    return KeySet(law, groups_per_unit, least_threshold(law, groups_per_unit=groups_per_unit, delta=delta), neighbours)
