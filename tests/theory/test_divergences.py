"""Divergences of finite laws: against their definitions by brute force, against a high-precision reference, and against each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.errors import LapwingError
from lapwing.kernel.numbers import exp_upper
from lapwing.theory import divergences as dv

Law = Mapping[int, Fraction]


def normalised(weights: list[int]) -> Law:
    return {output: Fraction(weight, sum(weights)) for output, weight in enumerate(weights)}


laws = st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any).map(normalised)
full_laws = st.lists(st.integers(1, 9), min_size=4, max_size=4).map(normalised)
odds_values = st.fractions(min_value=0, max_value=5, max_denominator=12)


def subsets(outputs: list[int]) -> list[tuple[int, ...]]:
    return [chosen for size in range(len(outputs) + 1) for chosen in combinations(outputs, size)]


def probability(law: Law, outputs: tuple[int, ...]) -> Fraction:
    return sum((law[output] for output in outputs), Fraction(0))


@given(laws, laws, odds_values)
def test_hockey_stick_is_the_maximum_over_all_sets(p: Law, q: Law, odds: Fraction) -> None:
    by_definition = max(probability(p, chosen) - odds * probability(q, chosen) for chosen in subsets(list(p)))
    assert dv.hockey_stick(p, q, odds=odds) == by_definition


@given(laws, laws)
def test_odds_are_the_largest_ratio_over_all_sets(p: Law, q: Law) -> None:
    largest = dv.odds_max(p, q)
    if largest is None:
        assert any(probability(p, chosen) > 0 == probability(q, chosen) for chosen in subsets(list(p)))
    else:
        ratios = [probability(p, chosen) / probability(q, chosen) for chosen in subsets(list(p)) if probability(q, chosen)]
        assert largest == max(ratios)


@given(laws, laws)
def test_total_variation_is_symmetric_and_half_the_l1_distance(p: Law, q: Law) -> None:
    assert dv.total_variation(p, q) == dv.total_variation(q, p) == sum(abs(p[o] - q[o]) for o in p) / 2


@given(laws, laws, st.fractions(min_value=0, max_value=Fraction(39, 40), max_denominator=40))
def test_approximate_odds_are_where_the_hockey_stick_reaches_delta(p: Law, q: Law, delta: Fraction) -> None:
    odds = dv.odds_approximate(p, q, delta=delta)
    if odds is None:
        assert dv.hockey_stick(p, q, odds=Fraction(10**9)) > delta
        return
    assert dv.hockey_stick(p, q, odds=odds) <= delta
    assert dv.hockey_stick(p, q, odds=odds * (1 - Fraction(1, 10**9))) > delta
    if delta == 0:
        assert odds == dv.odds_max(p, q)


def reference_renyi(p: Law, q: Law, order: Fraction) -> mpmath.mpf:
    with mpmath.workdps(60):
        a = mpmath.mpf(order.numerator) / order.denominator
        terms = [(mpmath.mpf(p[o].numerator) / p[o].denominator, mpmath.mpf(q[o].numerator) / q[o].denominator) for o in p]
        if order == 1:
            return mpmath.fsum(x * mpmath.log(x / y) for x, y in terms)
        return mpmath.log(mpmath.fsum(x**a * y ** (1 - a) for x, y in terms)) / (a - 1)


@settings(max_examples=60)
@given(full_laws, full_laws, st.fractions(min_value=1, max_value=20, max_denominator=7))
def test_renyi_bounds_enclose_the_reference_closely(p: Law, q: Law, order: Fraction) -> None:
    lower, upper = dv.renyi_lower(p, q, order=order), dv.renyi_upper(p, q, order=order)
    assert lower is not None and upper is not None
    assert lower <= upper <= lower + Fraction(1, 10**90)
    with mpmath.workdps(60):
        reference = reference_renyi(p, q, order)
        assert abs(mpmath.mpf(upper.numerator) / upper.denominator - reference) < mpmath.mpf(10) ** -50


@given(full_laws, full_laws, st.integers(2, 12))
def test_integer_powers_are_exact(p: Law, q: Law, order: int) -> None:
    power = dv.renyi_power(p, q, order=order)
    assert power == sum(p[o] ** order / q[o] ** (order - 1) for o in p)
    upper = dv.renyi_upper(p, q, order=Fraction(order))
    assert upper is not None and power is not None
    assert exp_upper((order - 1) * upper) >= power


@given(full_laws, full_laws)
def test_divergences_grow_with_the_order_from_kl_to_the_maximum(p: Law, q: Law) -> None:
    bounds = [
        (dv.renyi_lower(p, q, order=order), dv.renyi_upper(p, q, order=order))
        for order in (Fraction(1), Fraction(3, 2), Fraction(2), Fraction(40), None)
    ]
    for (lower, _), (_, upper) in pairwise(bounds):
        assert lower is not None and upper is not None and lower <= upper
    kl, maximum = dv.kl_upper(p, q), dv.max_divergence_lower(p, q)
    assert bounds[0][1] == kl and bounds[-1][0] == maximum


def test_an_output_of_one_law_alone_is_infinitely_far() -> None:
    p, q = normalised([1, 1]), normalised([1, 0])
    assert dv.odds_max(p, q) is dv.max_divergence_upper(p, q) is dv.max_divergence_lower(p, q) is None
    assert dv.kl_lower(p, q) is dv.kl_upper(p, q) is dv.renyi_power(p, q, order=2) is None
    assert dv.renyi_upper(p, q, order=Fraction(3)) is dv.renyi_lower(p, q, order=Fraction(3)) is None
    # the other direction is finite: a divergence is no distance
    assert dv.odds_max(q, p) == 2
    assert dv.odds_approximate(p, q, delta=Fraction(1, 2)) == Fraction(1, 2)
    assert dv.odds_approximate(p, q, delta=Fraction(49, 100)) is None


HALF = {"a": Fraction(1, 2), "b": Fraction(1, 2)}


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: dv.total_variation(HALF, {"a": Fraction(1, 2)}), "law-invalid"),
        (lambda: dv.total_variation({"a": Fraction(3, 2), "b": Fraction(-1, 2)}, HALF), "law-invalid"),
        (lambda: dv.hockey_stick(HALF, HALF, odds=Fraction(-1)), "theory-argument"),
        (lambda: dv.odds_approximate(HALF, HALF, delta=Fraction(1)), "theory-argument"),
        (lambda: dv.renyi_power(HALF, HALF, order=1), "theory-argument"),
        (lambda: dv.renyi_upper(HALF, HALF, order=Fraction(1, 2)), "theory-argument"),
    ],
)
def test_what_is_no_law_or_no_order_is_refused(call: Callable[[], object], code: str) -> None:
    with pytest.raises(LapwingError) as refusal:
        call()
    assert refusal.value.code == code


def test_a_float_never_decides() -> None:
    half: Any = 0.5
    with pytest.raises(LapwingError) as refusal:
        dv.total_variation({"a": half, "b": half}, HALF)
    assert refusal.value.code == "number-invalid"
