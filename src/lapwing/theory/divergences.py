"""How far apart two finite laws are, by each of the measures that privacy definitions use.

A law maps outputs to probabilities, which are ``Fraction`` and sum to 1. Rational results are exact: hockey-stick divergence, total
variation, ``exp`` of the max-divergence (the *odds*), and ``exp((a-1) D_a)`` for an integer order a. For irrational results there is a pair
of functions, ``..._lower`` and ``..._upper``, whose results are never on the wrong side. ``None`` stands for infinity throughout: one law
has an output that the other cannot produce.

Divergences have a direction. Probabilities are taken under the first law; a privacy definition requires both directions.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from fractions import Fraction
from typing import TypeVar

from lapwing.errors import LapwingError
from lapwing.kernel.numbers import exp_lower, exp_upper, ln_lower, ln_upper, require_exact

Output = TypeVar("Output", bound=Hashable)


def require_law(law: Mapping[Output, Fraction]) -> None:
    """Refuse (``law-invalid``) what is not a law: probabilities must be exact, at least 0, and sum to exactly 1."""
    require_exact(*law.values())
    if any(probability < 0 for probability in law.values()) or sum(law.values()) != 1:
        raise LapwingError("law-invalid", "the probabilities of a law must be at least 0 and sum to exactly 1")


def _pairs(first: Mapping[Output, Fraction], second: Mapping[Output, Fraction]) -> Iterator[tuple[Fraction, Fraction]]:
    """The two probabilities of each output that the first law can produce."""
    require_law(first)
    require_law(second)
    for output, probability in first.items():
        if probability:
            yield Fraction(probability), Fraction(second.get(output, 0))


def odds_max(first: Mapping[Output, Fraction], second: Mapping[Output, Fraction]) -> Fraction | None:
    """``exp`` of the max-divergence: the largest ratio ``P(o) / Q(o)`` over outputs o with ``P(o) > 0``. At least 1, exact.

    A mechanism is epsilon-differentially private if and only if this is at most ``exp(epsilon)`` for every ordered pair of neighbours: the
    ratio of a set is at most the largest ratio of its members (Dwork and Roth 2014, section 3.5.1).
    """
    largest = Fraction(0)
    for p, q in _pairs(first, second):
        if q == 0:
            return None
        largest = max(largest, p / q)
    return largest


def max_divergence_upper(first: Mapping[Output, Fraction], second: Mapping[Output, Fraction]) -> Fraction | None:
    """At least the max-divergence ``D_inf(P || Q)``."""
    odds = odds_max(first, second)
    return None if odds is None else ln_upper(odds)


def max_divergence_lower(first: Mapping[Output, Fraction], second: Mapping[Output, Fraction]) -> Fraction | None:
    """At most the max-divergence, and at least 0."""
    odds = odds_max(first, second)
    return None if odds is None else ln_lower(odds)


def hockey_stick(first: Mapping[Output, Fraction], second: Mapping[Output, Fraction], *, odds: Fraction) -> Fraction:
    """The largest ``P(S) - odds Q(S)`` over all sets S of outputs. Exact.

    The set that attains it holds the outputs with ``P(o) > odds Q(o)``, so the sum of the positive parts is the maximum. A mechanism is
    (epsilon, delta)-differentially private if and only if this is at most delta at ``odds = exp(epsilon)``, for every ordered pair of
    neighbours.
    """
    require_exact(odds)
    if odds < 0:
        raise LapwingError("theory-argument", "odds must not be negative")
    return sum((max(Fraction(0), p - odds * q) for p, q in _pairs(first, second)), Fraction(0))


def total_variation(first: Mapping[Output, Fraction], second: Mapping[Output, Fraction]) -> Fraction:
    """The largest ``P(S) - Q(S)``: the hockey-stick divergence at odds 1, and the same in both directions. Exact."""
    return hockey_stick(first, second, odds=Fraction(1))


def odds_approximate(first: Mapping[Output, Fraction], second: Mapping[Output, Fraction], *, delta: Fraction) -> Fraction | None:
    """``exp`` of the delta-approximate max-divergence: the least odds at which the hockey-stick divergence is at most delta. Exact.

    Below 1 if the laws are closer than delta in total variation; None if the first law gives more than delta to outputs that the second
    cannot produce.

    The divergence falls piecewise linearly in the odds, with a corner at each ratio. Between two corners it is ``A - odds B``, where A and
    B are the probabilities of the outputs whose ratio is larger, so the crossing is found by division, not by search.
    """
    require_exact(delta)
    if not 0 <= delta < 1:
        raise LapwingError("theory-argument", "delta must be at least 0 and below 1")
    pairs = list(_pairs(first, second))
    above, below = sum((p for p, q in pairs if q == 0), Fraction(0)), Fraction(0)
    if above > delta:
        return None
    # From the largest ratio down: the outputs passed so far have a ratio above the odds of the current piece.
    for p, q in sorted(((p, q) for p, q in pairs if q), key=lambda pair: pair[0] / pair[1], reverse=True):
        if above - (p / q) * below > delta:
            break
        above, below = above + p, below + q
    return (above - delta) / below


def kl_lower(first: Mapping[Output, Fraction], second: Mapping[Output, Fraction]) -> Fraction | None:
    """At most the Kullback-Leibler divergence, the mean of ``ln(P(o) / Q(o))`` under P; at least 0."""
    total = Fraction(0)
    for p, q in _pairs(first, second):
        if q == 0:
            return None
        total += p * ln_lower(p / q)
    return max(Fraction(0), total)


def kl_upper(first: Mapping[Output, Fraction], second: Mapping[Output, Fraction]) -> Fraction | None:
    """At least the Kullback-Leibler divergence."""
    total = Fraction(0)
    for p, q in _pairs(first, second):
        if q == 0:
            return None
        total += p * ln_upper(p / q)
    return total


def renyi_power(first: Mapping[Output, Fraction], second: Mapping[Output, Fraction], *, order: int) -> Fraction | None:
    """``exp((a-1) D_a(P || Q))``, the sum of ``P(o)^a Q(o)^(1-a)``, for an integer order a of at least 2. Exact."""
    if type(order) is not int or order < 2:
        raise LapwingError("theory-argument", "the order must be an integer of at least 2")
    total = Fraction(0)
    for p, q in _pairs(first, second):
        if q == 0:
            return None
        total += p * (p / q) ** (order - 1)
    return total


def renyi_upper(first: Mapping[Output, Fraction], second: Mapping[Output, Fraction], *, order: Fraction | None) -> Fraction | None:
    """At least the Rényi divergence of this order: 1 is Kullback-Leibler, None (infinity) is the max-divergence."""
    match _order(order):
        case None:
            return max_divergence_upper(first, second)
        case 1:
            return kl_upper(first, second)
        case excess_order:
            total = Fraction(0)
            for p, q in _pairs(first, second):
                if q == 0:
                    return None
                total += p * exp_upper((excess_order - 1) * ln_upper(p / q))
            return ln_upper(total) / (excess_order - 1)


def renyi_lower(first: Mapping[Output, Fraction], second: Mapping[Output, Fraction], *, order: Fraction | None) -> Fraction | None:
    """At most the Rényi divergence of this order, and at least 0."""
    match _order(order):
        case None:
            return max_divergence_lower(first, second)
        case 1:
            return kl_lower(first, second)
        case excess_order:
            total = Fraction(0)
            for p, q in _pairs(first, second):
                if q == 0:
                    return None
                total += p * exp_lower((excess_order - 1) * ln_lower(p / q))
            return max(Fraction(0), ln_lower(total) / (excess_order - 1))


def _order(order: Fraction | None) -> Fraction | None:
    if order is None:
        return None
    require_exact(order)
    if order < 1:
        raise LapwingError("theory-argument", "a Rényi order must be at least 1")
    return Fraction(order)
