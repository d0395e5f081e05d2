"""Above threshold, and the sparse vector built on it: which of a stream of values is the first to reach a threshold, for one price.

``AboveThreshold`` adds noise to a public threshold once, and fresh noise to each value; it says "below" until the first noisy value reaches
the noisy threshold, says "above", and ends. However many values were below, the price is the same. ``SparseVector`` restarts it, with a
fresh noisy threshold, a fixed number of times. Neither ever reveals by how much a value exceeded the threshold.

Proof: ``docs/proofs/above-threshold.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from lapwing.errors import LapwingError, Refused
from lapwing.kernel.event import Event
from lapwing.kernel.laws import LOSS_MARGIN, DiscreteLaplace
from lapwing.kernel.numbers import require_exact
from lapwing.mechanisms.geometric import OUTPUTS_MAX, mass, tail
from lapwing.mechanisms.mechanism import require_decay
from lapwing.prices import scale_at_least
from lapwing.spread import half_width, require_confidence

EXPONENT_MAX = 2**10
"""Largest power of the common decay that the decay of either noise may be, for an exact law."""

WORK_MAX = 2**20
"""Limit of the exact law of a stream: its length, times the square of its length and its reach together, times the larger exponent."""

_Polynomial = list[Fraction]
"""Coefficients, the constant term first."""


@dataclass(frozen=True, slots=True)
class AboveThreshold:
    """Says which value of a stream is the first to reach the threshold, with noise on both.

    Pre: between neighbours each value moves by at most ``sensitivity``; if ``monotone``, all of them the same way. The next value may
    depend on the answers so far. Post: differentially private with ``epsilon = sensitivity / scale_threshold + 2 sensitivity /
    scale_query`` (without the 2 if monotone), however long the stream. Noise is discrete Laplace of the two scales.

    The output is the index of the first value reported as above, or None if the stream ends without one.
    """

    sensitivity: int
    threshold: int
    scale_threshold: Fraction
    scale_query: Fraction
    monotone: bool = False

    def __post_init__(self) -> None:
        if type(self.sensitivity) is not int or self.sensitivity < 1:
            raise LapwingError("sensitivity-invalid", "the sensitivity of a stream must be a positive integer")
        if type(self.threshold) is not int:
            raise Refused("mechanism-invalid", "a threshold must be an integer")
        DiscreteLaplace(self.scale_threshold)  # these check the scales
        DiscreteLaplace(self.scale_query)

    def query_shift(self) -> int:
        """How far the noise of the value reported as above has to move between neighbours."""
        return self.sensitivity if self.monotone else 2 * self.sensitivity

    def epsilon(self) -> Fraction:
        """Epsilon as above, with the margin of :func:`lapwing.kernel.laws.loss`."""
        return LOSS_MARGIN * (self.sensitivity / self.scale_threshold + self.query_shift() / self.scale_query)

    def event(self) -> Event:
        """Epsilon as above, and ``epsilon^2 / 2``-zCDP."""
        return Event.pure(self.epsilon())

    def exponents(self) -> tuple[int, int]:
        """``(m, n)``, coprime, with ``exp(-1 / scale_threshold) = decay**m`` and ``exp(-1 / scale_query) = decay**n``.

        ``decay`` is ``exp(-1 / scale)`` for the scale ``m scale_threshold = n scale_query``. With ``scale_query = 2 scale_threshold`` it is
        that of the query noise, and the exponents are 2 and 1.
        """
        ratio = self.scale_query / self.scale_threshold
        return ratio.numerator, ratio.denominator

    def odds(self, *, decay: Fraction) -> Fraction:
        """``exp(epsilon)`` at this decay of the common scale (see :meth:`exponents`)."""
        require_decay(decay)
        of_threshold, of_query = self._small_exponents()
        return decay ** -(self.sensitivity * of_threshold + self.query_shift() * of_query)

    def law(self, value: tuple[int, ...], *, decay: Fraction) -> Mapping[int | None, Fraction]:
        """The exact law of the index of the first value above, or None, at this decay of the common scale (see :meth:`exponents`)."""
        require_decay(decay)
        excesses = [item - self.threshold for item in require_stream(value)]
        of_threshold, of_query = self._small_exponents()
        reach = max([0, *excesses]) - min([0, *excesses])
        if len(excesses) * (len(excesses) + reach) ** 2 * max(of_threshold, of_query) > WORK_MAX:
            raise Refused("law-unavailable", "the stream is too long, or too far from its threshold, for an exact law")
        reached: list[Fraction] = [Fraction(1)]  # probability that the first k values are all below
        reached += _all_below(excesses, threshold_decay=decay**of_threshold, query_decay=decay**of_query)
        law: dict[int | None, Fraction] = {index: reached[index] - reached[index + 1] for index in range(len(excesses))}
        law[None] = reached[-1]
        return law

    def error(self, *, confidence: Fraction, queries: int = 1) -> int:
        """The distance alpha such that, with this confidence, every value reported as below is under ``threshold + alpha``, and the one
        reported as above is at least ``threshold - alpha``, among the first ``queries`` values.

        Half of the failure probability is for the threshold; the values share the other half (union bound).
        """
        require_confidence(confidence)
        if type(queries) is not int or queries < 1:
            raise Refused("mechanism-invalid", "the number of values must be a positive integer")
        failure = (1 - Fraction(confidence)) / 2
        of_threshold = half_width(DiscreteLaplace(self.scale_threshold), confidence=1 - failure)
        return of_threshold + half_width(DiscreteLaplace(self.scale_query), confidence=1 - failure / queries)

    def _small_exponents(self) -> tuple[int, int]:
        exponents = self.exponents()
        if max(exponents) > EXPONENT_MAX:
            raise Refused(
                "law-unavailable",
                f"the two scales have no common scale within a factor of {EXPONENT_MAX}",
                hint="make one scale a small multiple of the other",
            )
        return exponents


def require_stream(value: tuple[int, ...]) -> tuple[int, ...]:
    """The stream itself; raises ``value-invalid`` for anything but a tuple of integers."""
    if type(value) is not tuple or any(type(item) is not int for item in value):
        raise LapwingError("value-invalid", "a stream must be a tuple of integers")
    return value


def above_threshold_for(*, epsilon: Fraction, sensitivity: int, threshold: int, monotone: bool = False) -> AboveThreshold:
    """Above threshold at this epsilon, half of it for the threshold and half for the value above.

    The query noise is then exactly twice the threshold noise (equal to it, if monotone), so that one decay serves both in an exact law.
    """
    require_exact(epsilon)
    if epsilon <= 0:
        raise Refused("loss-invalid", "the privacy loss must be positive")
    if type(sensitivity) is not int or sensitivity < 1:
        raise LapwingError("sensitivity-invalid", "the sensitivity of a stream must be a positive integer")
    scale = scale_at_least(LOSS_MARGIN * 2 * sensitivity / Fraction(epsilon))
    return AboveThreshold(sensitivity, threshold, scale, scale if monotone else 2 * scale, monotone)


def _all_below(excesses: list[int], *, threshold_decay: Fraction, query_decay: Fraction) -> Iterator[Fraction]:
    """For each k, the probability that the first k values all stay below: ``x_i + N_i < R`` for the noise R of the threshold, ``i <= k``.

    It is the sum over r of ``P[R = r]`` times the product of ``P[N < r - x_i]``. Between the least and the greatest of 0 and all ``x_i``
    the terms are added one by one; beyond, each factor is a polynomial in ``query_decay ** |r|``, and the sum over r is a geometric series
    for each of its powers.
    """
    low, high = min([0, *excesses]), max([0, *excesses])
    inner = {r: mass(r, decay=threshold_decay) for r in range(low, high + 1)}
    right: _Polynomial = [Fraction(1)]  # in y = query_decay**r, for r > high
    left = Fraction(1)  # the coefficient of the power k of y = query_decay**-r, for r < low: there is no other
    for k, excess in enumerate(excesses, start=1):
        inner = {r: chance * (1 - tail(r - excess, decay=query_decay)) for r, chance in inner.items()}
        # r > high: P[N < r - x] = 1 - y query_decay**-x / (1 + query_decay)
        right = _times_one_minus(right, query_decay**-excess / (1 + query_decay))
        # r < low: P[N < r - x] = P[N >= 1 - r + x] = y query_decay**(1 + x) / (1 + query_decay)
        left *= query_decay ** (1 + excess) / (1 + query_decay)
        yield (
            sum(inner.values(), start=Fraction(0))
            + sum(
                (
                    coefficient * _series(power, start=high + 1, threshold_decay=threshold_decay, query_decay=query_decay)
                    for power, coefficient in enumerate(right)
                ),
                start=Fraction(0),
            )
            + left * _series(k, start=1 - low, threshold_decay=threshold_decay, query_decay=query_decay)
        )


def _times_one_minus(polynomial: _Polynomial, slope: Fraction) -> _Polynomial:
    """The polynomial times ``1 - slope y``."""
    return [kept - slope * shifted for kept, shifted in zip([*polynomial, Fraction(0)], [Fraction(0), *polynomial], strict=True)]


def _series(power: int, *, start: int, threshold_decay: Fraction, query_decay: Fraction) -> Fraction:
    """The sum over ``r >= start`` (at least 0) of ``P[R = r] (query_decay**r)**power``."""
    ratio = threshold_decay * query_decay**power
    return (1 - threshold_decay) / (1 + threshold_decay) * ratio**start / (1 - ratio)


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Above threshold, restarted after each value above, ``starts`` times in all, each time with a fresh noisy threshold.

    Pre and post as for ``AboveThreshold``, at ``starts`` times its cost. The output is the tuple of the indices reported as above, in
    order.
    """

    above: AboveThreshold
    starts: int

    def __post_init__(self) -> None:
        if type(self.starts) is not int or self.starts < 1:
            raise Refused("mechanism-invalid", "the number of starts must be a positive integer")

    def event(self) -> Event:
        """``starts`` times the epsilon and ``starts`` times the rho of one start: adaptive composition."""
        epsilon = self.above.epsilon()
        return Event(epsilon=self.starts * epsilon, rho=self.starts * epsilon**2 / 2)

    def odds(self, *, decay: Fraction) -> Fraction:
        """The odds of one start to the power ``starts``."""
        return self.above.odds(decay=decay) ** self.starts

    def law(self, value: tuple[int, ...], *, decay: Fraction) -> Mapping[tuple[int, ...], Fraction]:
        """The exact law of the indices reported as above, at this decay (see :meth:`AboveThreshold.exponents`)."""
        outputs = sum(math.comb(len(require_stream(value)), answers_so_far) for answers_so_far in range(self.starts + 1))
        if outputs > OUTPUTS_MAX:
            raise Refused("law-unavailable", f"the law has more than {OUTPUTS_MAX} outputs")
        law: dict[tuple[int, ...], Fraction] = {}
        open_runs: dict[tuple[int, ...], Fraction] = {(): Fraction(1)}
        # the law of one start depends on where it starts, not on the answers before
        rests = [self.above.law(value[first:], decay=decay) for first in range(len(value) + 1)]
        for _ in range(self.starts):
            after: dict[tuple[int, ...], Fraction] = {}
            for answers_so_far, chance in open_runs.items():
                first = answers_so_far[-1] + 1 if answers_so_far else 0
                for index, probability in rests[first].items():
                    if index is None:
                        law[answers_so_far] = chance * probability
                    else:
                        after[*answers_so_far, first + index] = chance * probability
            open_runs = after
        return law | open_runs

    def error(self, *, confidence: Fraction, queries: int = 1) -> int:
        """As for ``AboveThreshold``, for all starts at once: ``queries`` values in all, and one threshold for each start (union bound)."""
        require_confidence(confidence)
        return self.above.error(confidence=1 - (1 - Fraction(confidence)) / self.starts, queries=queries)
