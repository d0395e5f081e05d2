"""The threshold for keys that are not public.

A key is shown only if its noisy number of units, or the noisy sum of their weights, reaches T. T is chosen so that the keys which one unit
alone carries stay suppressed except with a probability of at most delta, with the exact tail of the noise, rounded against us.

Proofs: ``docs/proofs/key-threshold.md`` and, for weights, ``docs/proofs/key-weights.md``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from lapwing.errors import LapwingError, Refused
from lapwing.kernel.laws import Law, tail_quantile, tail_upper
from lapwing.kernel.numbers import exp_lower, exp_upper, ln_lower, ln_upper, require_exact


def _require_groups(groups_per_unit: int) -> None:
    if type(groups_per_unit) is not int or groups_per_unit < 1:
        raise LapwingError("groups-invalid", "the number of groups per unit is a positive integer")


def threshold_delta(law: Law, *, groups_per_unit: int, threshold: int) -> Fraction:
    """At least the probability that any key carried by one unit alone is shown: ``1 - (1 - P[Z >= threshold - 1])**groups_per_unit``.

    Pre: the unit carries at most ``groups_per_unit`` keys, counts 1 in each, and the noise of the keys is independent.
    """
    _require_groups(groups_per_unit)
    shown = min(Fraction(1), tail_upper(law, threshold - 1))
    if shown == 1:
        return shown
    # Both are upper bounds; the first is the union bound, the second is exact up to directed rounding.
    return min(groups_per_unit * shown, 1 - exp_lower(groups_per_unit * ln_lower(1 - shown)))


def least_threshold(law: Law, *, groups_per_unit: int, delta: Fraction) -> int:
    """The least integer T with ``threshold_delta(law, groups_per_unit, T) <= delta``.

    Refuses with ``threshold-needs-delta`` unless ``0 < delta < 1``.
    """
    _require_groups(groups_per_unit)
    require_exact(delta)
    if not 0 < delta < 1:
        raise Refused("threshold-needs-delta", "keys that are not public need a delta above 0 and below 1")
    return _least_threshold(law, groups_per_unit, Fraction(delta))


@lru_cache(maxsize=4096)
def _least_threshold(law: Law, groups_per_unit: int, delta: Fraction) -> int:
    # Arguments are checked before this cache, to which 1, 1.0 and True are the same key.
    # The probability each key may have. It is at least delta / groups_per_unit, and only starts the search: threshold_delta decides.
    per_key = max(delta / groups_per_unit, 1 - exp_upper(ln_upper(1 - delta) / groups_per_unit))
    threshold = tail_quantile(law, per_key) + 1
    while threshold_delta(law, groups_per_unit=groups_per_unit, threshold=threshold) > delta:
        threshold += 1
    while threshold_delta(law, groups_per_unit=groups_per_unit, threshold=threshold - 1) <= delta:
        threshold -= 1
    return threshold


def spread_weight(bits: int, groups: int) -> int:
    """What a unit weighs in each of its ``groups`` groups: floor(2^bits / sqrt(groups))."""
    return math.isqrt(4**bits // groups)


def least_spread_threshold(law: Law, *, bits: int, groups_per_unit: int, delta: Fraction) -> int:
    """The least integer T that hides the keys of any one unit except with probability ``delta``, whatever number d of groups it has:
    ``threshold_delta(law, d, T + 1 - spread_weight(bits, d)) <= delta`` for every d from 1 to ``groups_per_unit``.
    """

    def needed(groups: int) -> int:
        return least_threshold(law, groups_per_unit=groups, delta=delta) - 1 + spread_weight(bits, groups)

    def above(threshold: int, first: int, last: int) -> int:
        """The largest of ``threshold`` and what each d from first to last needs. All d of a stretch need no more than the weight of its
        first and the number of its last: where that is not above, none is examined on its own."""
        at_most = least_threshold(law, groups_per_unit=last, delta=delta) - 1 + spread_weight(bits, first)
        if at_most <= threshold:
            return threshold
        if first == last:
            return at_most
        middle = (first + last) // 2
        return above(above(threshold, first, middle), middle + 1, last)

    return above(max(needed(1), needed(groups_per_unit)), 1, groups_per_unit)
