"""The privacy loss as a random variable, exactly.

The privacy loss of an output o, for an ordered pair of laws (P, Q), is ``ln(P(o) / Q(o))``. Its *odds* ``P(o) / Q(o)`` are rational, so the
law of the loss under P is a finite mapping from odds to probabilities, and independent losses add, that is, odds multiply: composition is
an exact convolution. Everything about (epsilon, delta) can be read off this law (Dwork and Rothblum 2016; Sommer, Meiser and Mohammadi
2019).

Two readings of "(epsilon, delta)" must not be confused. *Pointwise*: the loss exceeds epsilon with probability at most delta. *By sets*:
the definition. The first implies the second (:meth:`LossLaw.exceeds` is never below :meth:`LossLaw.delta`); the second implies the first
only at a larger epsilon (:func:`exceeds_bound`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import TypeVar

from lapwing.errors import LapwingError
from lapwing.kernel.numbers import ln_lower, ln_upper, require_exact
from lapwing.theory.divergences import require_law

Output = TypeVar("Output", bound=Hashable)

SUPPORT_MAX = 200_000
"""Most distinct losses of a law. Composition of unrelated laws multiplies their number."""


def odds_of(first: Mapping[Output, Fraction], second: Mapping[Output, Fraction], output: Output) -> Fraction | None:
    """``exp`` of the privacy loss of one output: ``P(o) / Q(o)``, None for infinity. Above 1 when the first law is the likelier source."""
    require_law(first)
    require_law(second)
    p, q = first.get(output, Fraction(0)), second.get(output, Fraction(0))
    if p == q == 0:
        raise LapwingError("theory-argument", "an output that neither law can produce has no privacy loss")
    return p / q if q else None


@dataclass(frozen=True, slots=True)
class LossLaw:
    """The law of the odds ``P(o) / Q(o)`` when o is drawn from P. The probabilities, ``infinite`` included, sum to 1."""

    mass: Mapping[Fraction, Fraction]
    """Odds, all positive, to probability under P."""
    infinite: Fraction
    """Probability under P of outputs that Q cannot produce."""

    def __post_init__(self) -> None:
        require_exact(self.infinite, *self.mass.keys(), *self.mass.values())
        if any(odds <= 0 for odds in self.mass) or any(share < 0 for share in self.mass.values()) or self.infinite < 0:
            raise LapwingError("law-invalid", "the odds of a loss must be positive, and probabilities must not be negative")
        if sum(self.mass.values()) + self.infinite != 1:
            raise LapwingError("law-invalid", "the probabilities of a law must be at least 0 and sum to exactly 1")
        if len(self.mass) > SUPPORT_MAX:
            raise LapwingError("number-too-large", "the law has too many distinct values of the loss")

    def delta(self, *, odds: Fraction) -> Fraction:
        """The hockey-stick divergence, the least delta for this ordered pair: the mean of ``max(0, 1 - odds / (P/Q))`` under P."""
        require_exact(odds)
        return self.infinite + sum((share * (1 - odds / at) for at, share in self.mass.items() if at > odds), Fraction(0))

    def exceeds(self, *, odds: Fraction) -> Fraction:
        """The probability under P that the loss is above ``ln odds``. Never below ``delta(odds=odds)``: each ``1 - odds / at`` is below
        1."""
        require_exact(odds)
        return self.infinite + sum((share for at, share in self.mass.items() if at > odds), Fraction(0))

    def compose(self, other: LossLaw) -> LossLaw:
        """The loss of two independent draws: odds multiply. This also holds for two adaptive draws, if the second has this law
        for every output of the first."""
        mass: dict[Fraction, Fraction] = {}
        for at, share in self.mass.items():
            for other_at, other_share in other.mass.items():
                product = at * other_at
                mass[product] = mass.get(product, Fraction(0)) + share * other_share
        return LossLaw(mass=MappingProxyType(mass), infinite=1 - (1 - self.infinite) * (1 - other.infinite))

    def repeated(self, count: int) -> LossLaw:
        """The loss of ``count`` independent draws, by repeated squaring."""
        if type(count) is not int or count < 0:
            raise LapwingError("theory-argument", "the number of runs must be an integer of at least 0")
        result, square = NOTHING, self
        while count:
            if count & 1:
                result = result.compose(square)
            count >>= 1
            if count:
                square = square.compose(square)
        return result

    def mean_lower(self) -> Fraction | None:
        """At most the expected loss, which is the Kullback-Leibler divergence; None for infinity."""
        return None if self.infinite else sum((share * ln_lower(at) for at, share in self.mass.items()), Fraction(0))

    def mean_upper(self) -> Fraction | None:
        """At least the expected loss."""
        return None if self.infinite else sum((share * ln_upper(at) for at, share in self.mass.items()), Fraction(0))

    def reversed(self) -> LossLaw:
        """The loss of the pair (Q, P), as far as this law determines it: Q's outputs that P cannot produce become ``infinite``.

        ``Q(o) = P(o) / odds``, and the rest of Q lies where P is 0. Outputs that only P can produce have probability 0 under Q.
        """
        mass = {1 / at: share / at for at, share in self.mass.items()}
        return LossLaw(mass=MappingProxyType(mass), infinite=1 - sum(mass.values(), Fraction(0)))


NOTHING = LossLaw(mass=MappingProxyType({Fraction(1): Fraction(1)}), infinite=Fraction(0))
"""The loss of a mechanism that does not read the data."""


def loss_law(first: Mapping[Output, Fraction], second: Mapping[Output, Fraction]) -> LossLaw:
    """The law of the privacy loss of P against Q. Exact."""
    require_law(first)
    require_law(second)
    mass: dict[Fraction, Fraction] = {}
    infinite = Fraction(0)
    for output, p in first.items():
        q = second.get(output, Fraction(0))
        if p and q:
            mass[Fraction(p) / q] = mass.get(Fraction(p) / q, Fraction(0)) + p
        elif p:
            infinite += p
    return LossLaw(mass=MappingProxyType(mass), infinite=infinite)


def exceeds_bound(*, odds: Fraction, delta: Fraction, beyond: Fraction) -> Fraction:
    """An upper bound, from (ln odds, delta)-privacy, on the probability that the loss is above ``ln beyond``, for ``beyond > odds``.

    On the set S where the loss is above ``ln beyond``, ``Q(S) <= P(S) / beyond``; so ``P(S) <= odds P(S) / beyond + delta``, that is
    ``P(S) <= delta / (1 - odds / beyond)``. At ``beyond = odds`` nothing follows: :func:`converse_fails` shows a pair for which it is
    false.
    """
    require_exact(odds, delta, beyond)
    if not 0 < odds < beyond or delta < 0:
        raise LapwingError("theory-argument", "odds must be positive and below beyond, and delta must be at least 0")
    return min(Fraction(1), delta / (1 - odds / beyond))


def converse_fails(*, odds: Fraction) -> tuple[dict[int, Fraction], dict[int, Fraction]]:
    """Laws P, Q for which the loss exceeds ``ln odds`` with probability 1/2 although delta at those odds is only 1/8.

    P is a fair coin; Q gives the first side ``3/8 / odds``. Pre: ``odds >= 1``.
    """
    require_exact(odds)
    if odds < 1:
        raise LapwingError("theory-argument", "odds must be at least 1")
    half = Fraction(1, 2)
    rare = Fraction(3, 8) / odds
    return {0: half, 1: half}, {0: rare, 1: 1 - rare}
