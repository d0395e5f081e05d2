"""What a guarantee implies: for groups, after post-processing, for mixtures and samples, and for the other neighbour relation.

A :class:`Guarantee` is a pair (odds, delta) with ``odds = exp(epsilon)``. In odds all the rules below are rational, so they are exact, and
on finite mechanisms they can be checked with ``==`` instead of a tolerance.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TypeVar

from lapwing.errors import LapwingError
from lapwing.kernel.numbers import exp_upper, ln_lower, ln_upper, require_exact
from lapwing.theory.divergences import hockey_stick, require_law

Output = TypeVar("Output", bound=Hashable)
Result = TypeVar("Result", bound=Hashable)
Component = TypeVar("Component", bound=Hashable)

GROUP_SIZE_MAX = 10_000
"""Largest group; the powers of the odds grow with it."""


@dataclass(frozen=True, slots=True)
class Guarantee:
    """(ln odds, delta)-differential privacy: ``P(S) <= odds Q(S) + delta`` for all sets S and all ordered pairs of neighbours (P, Q)."""

    odds: Fraction
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        require_exact(self.odds, self.delta)
        if self.odds < 1 or self.delta < 0:
            raise LapwingError("theory-argument", "a guarantee must have odds of at least 1 and a delta of at least 0")

    @staticmethod
    def of_epsilon(epsilon: Fraction, delta: Fraction = Fraction(0)) -> Guarantee:
        """The guarantee (epsilon, delta), its odds rounded up: it claims less by about one part in 10**118."""
        require_exact(epsilon)
        return Guarantee(odds=exp_upper(Fraction(epsilon)), delta=delta)

    def epsilon_upper(self) -> Fraction:
        """At least epsilon."""
        return ln_upper(self.odds)

    def epsilon_lower(self) -> Fraction:
        """At most epsilon."""
        return ln_lower(self.odds)

    def implies(self, weaker: Guarantee) -> bool:
        """Whether every mechanism with this guarantee has the other, by the ordering of the numbers alone."""
        return self.odds <= weaker.odds and self.delta <= weaker.delta


def holds(first: Mapping[Output, Fraction], second: Mapping[Output, Fraction], guarantee: Guarantee) -> bool:
    """Whether two laws satisfy the guarantee, in both directions. Exact; every set of outputs is covered."""
    return all(hockey_stick(p, q, odds=guarantee.odds) <= guarantee.delta for p, q in ((first, second), (second, first)))


def group(guarantee: Guarantee, *, size: int) -> Guarantee:
    """The guarantee for data sets that differ in ``size`` units: ``(odds^k, delta (1 + odds + ... + odds^(k-1)))``.

    By induction along a path of k neighbours: ``P_0(S) <= odds P_1(S) + delta <= odds (odds P_2(S) + delta) + delta <= ...``. For pure
    privacy epsilon grows linearly in the group (Dwork and Roth 2014, theorem 2.2); delta grows exponentially.
    """
    if type(size) is not int or not 1 <= size <= GROUP_SIZE_MAX:
        raise LapwingError("theory-argument", f"a group must have 1 to {GROUP_SIZE_MAX} units")
    if not guarantee.delta:
        return Guarantee(odds=guarantee.odds**size)
    delta = guarantee.delta * sum((guarantee.odds**step for step in range(size)), Fraction(0))
    return Guarantee(odds=guarantee.odds**size, delta=delta)


def group_holds(path: Sequence[Mapping[Output, Fraction]], guarantee: Guarantee) -> bool:
    """Whether the two ends of a path of laws satisfy the group guarantee of its length.

    Pre: consecutive laws are those of neighbours and satisfy the guarantee themselves; otherwise this refuses (``theory-argument``),
    because the rule does not apply.
    """
    if len(path) < 2 or not all(holds(p, q, guarantee) for p, q in pairwise(path)):
        raise LapwingError("theory-argument", "each step of the path must satisfy the guarantee")
    return holds(path[0], path[-1], group(guarantee, size=len(path) - 1))


def post_process(law: Mapping[Output, Fraction], channel: Mapping[Output, Mapping[Result, Fraction]]) -> dict[Result, Fraction]:
    """The law of the result when each output is replaced by a draw from ``channel[output]``, a law that does not depend on the data.

    Processed laws satisfy every guarantee that the two laws satisfy: ``P(S)`` becomes a mean of ``P`` over a function with values in [0,
    1], and the hockey-stick divergence bounds every such mean (Dwork and Roth 2014, proposition 2.1).
    """
    require_law(law)
    processed: dict[Result, Fraction] = {}
    for output, probability in law.items():
        if output not in channel:
            raise LapwingError("theory-argument", "the channel must have a law for every output")
        require_law(channel[output])
        for result, share in channel[output].items():
            processed[result] = processed.get(result, Fraction(0)) + probability * share
    return processed


def mixture(weights: Mapping[Component, Fraction], laws: Mapping[Component, Mapping[Output, Fraction]]) -> dict[Output, Fraction]:
    """The law that draws a component by its weight and then an output from the component, without revealing the component.

    Privacy is convex: if the components of two mixtures with the same (public) weights satisfy a guarantee pairwise, so do the mixtures,
    because ``P(S) - odds Q(S)`` is the weighted mean of the components' (Kifer and Lin 2010).
    """
    require_law(weights)
    mixed: dict[Output, Fraction] = {}
    for name, weight in weights.items():
        require_law(laws[name])
        for output, probability in laws[name].items():
            mixed[output] = mixed.get(output, Fraction(0)) + weight * probability
    return mixed


def bounded_from_unbounded(guarantee: Guarantee) -> Guarantee:
    """Replacing a unit is removing one and adding one: (odds, delta) for add/remove gives ``(odds^2, (1 + odds) delta)`` for replace.

    There is no converse at any price: a mechanism that publishes the number of units is perfectly private when units are replaced and not
    private at all when one is added. :func:`size_law` is that mechanism.
    """
    return group(guarantee, size=2)


def size_law(database: Sequence[Hashable]) -> dict[int, Fraction]:
    """The mechanism that publishes the number of units: the counter-example of :func:`bounded_from_unbounded`."""
    return {len(database): Fraction(1)}


def sampled(guarantee: Guarantee, *, rate: Fraction) -> Guarantee:
    """The guarantee of the mechanism on a secret random sample: ``(1 + rate (odds - 1), rate delta)``.

    For add/remove neighbours each unit is kept independently with probability ``rate``; for replace neighbours a sample of fixed size m out
    of n is drawn without replacement, ``rate = m/n``. Tight for the definition alone (Balle, Barthe and Gaboardi 2018, theorems 8 and 9).
    The sample must be secret and drawn again for each run.
    """
    require_exact(rate)
    if not 0 <= rate <= 1:
        raise LapwingError("theory-argument", "a sampling rate must be between 0 and 1")
    return Guarantee(odds=1 + rate * (guarantee.odds - 1), delta=rate * guarantee.delta)
