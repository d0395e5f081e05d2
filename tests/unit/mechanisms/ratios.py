"""The largest ratio of two probabilities over given pairs of neighbours, exactly: what a claim of odds is held against."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Protocol


class HasLaw(Protocol):
    """Whatever has an exact law at a decay."""

    def law(self, value: Any, *, decay: Fraction) -> Mapping[Any, Fraction]: ...


def ratio(one: Mapping[Any, Fraction], other: Mapping[Any, Fraction]) -> Fraction:
    """The largest ratio, in either direction; both laws must have the same outputs, with probabilities that sum to 1."""
    assert one.keys() == other.keys()
    assert sum(one.values()) == sum(other.values()) == 1
    return max(max(one[output] / other[output], other[output] / one[output]) for output in one)


def worst_ratio(mechanism: HasLaw, pairs: Iterable[tuple[Any, Any]], *, decay: Fraction) -> Fraction:
    """The largest ratio over all pairs."""
    laws: dict[Any, Mapping[Any, Fraction]] = {}
    worst = Fraction(0)
    for pair in pairs:
        for value in pair:
            if value not in laws:
                laws[value] = mechanism.law(value, decay=decay)
        worst = max(worst, ratio(laws[pair[0]], laws[pair[1]]))
    return worst


def excess(one: Mapping[Any, Fraction], other: Mapping[Any, Fraction], *, odds: Fraction) -> Fraction:
    """The least delta at these odds, in either direction: the sum of what one law has above ``odds`` times the other."""
    outputs = one.keys() | other.keys()

    def directed(p: Mapping[Any, Fraction], q: Mapping[Any, Fraction]) -> Fraction:
        above = (p.get(output, Fraction(0)) - odds * q.get(output, Fraction(0)) for output in outputs)
        return sum((amount for amount in above if amount > 0), start=Fraction(0))

    return max(directed(one, other), directed(other, one))
