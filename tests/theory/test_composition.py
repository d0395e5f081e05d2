"""Composition rules: exact against enumeration, optimal below advanced below basic, figures pinned, dp-accounting as the second opinion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import product
from math import prod

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.errors import LapwingError
from lapwing.kernel.numbers import exp_lower, exp_upper
from lapwing.prices import epsilon_for
from lapwing.theory import composition as cp
from lapwing.theory.composition import Rule, how_many
from lapwing.theory.divergences import hockey_stick, odds_max, renyi_upper
from lapwing.theory.guarantees import Guarantee, holds

Law = Mapping[int, Fraction]
TEN = Fraction(1, 10)

odds_values = st.fractions(min_value=1, max_value=4, max_denominator=6)
deltas = st.sampled_from([Fraction(0), Fraction(1, 100), Fraction(1, 10)])
guarantees = st.builds(Guarantee, odds_values, deltas)


def normalised(weights: list[int]) -> Law:
    return {output: Fraction(weight, sum(weights)) for output, weight in enumerate(weights)}


full_laws = st.lists(st.integers(1, 9), min_size=3, max_size=3).map(normalised)


def response(odds: Fraction, bit: int) -> Law:
    """Randomised response: the true bit with odds ``odds : 1``."""
    return {bit: odds / (1 + odds), 1 - bit: 1 / (1 + odds)}


def independent(parts: list[Law]) -> dict[tuple[int, ...], Fraction]:
    return {outputs: prod((law[o] for law, o in zip(parts, outputs, strict=True)), start=Fraction(1)) for outputs in product(*parts)}


@settings(max_examples=40)
@given(st.lists(st.tuples(full_laws, full_laws), min_size=1, max_size=3), odds_values, odds_values)
def test_basic_and_optimal_cover_every_composition(pairs: list[tuple[Law, Law]], each_odds: Fraction, odds: Fraction) -> None:
    """Three random mechanisms, each with the guarantee that just covers it: their product satisfies what either rule says."""
    covers = []
    for p, q in pairs:
        delta = max(hockey_stick(p, q, odds=each_odds), hockey_stick(q, p, odds=each_odds))
        covers.append(Guarantee(each_odds, delta))
    first, second = independent([p for p, _ in pairs]), independent([q for _, q in pairs])
    assert holds(first, second, cp.basic(covers))
    assert holds(first, second, Guarantee(odds, cp.optimal_delta_of_different(covers, odds=odds)))


@settings(max_examples=60)
@given(guarantees, st.integers(1, 6), odds_values)
def test_optimal_is_attained_and_its_two_forms_agree(each: Guarantee, count: int, odds: Fraction) -> None:
    exact = cp.optimal_delta(each, count=count, odds=odds)
    assert exact == cp.optimal_delta_of_different([each] * count, odds=odds)
    if not each.delta:
        truth = independent([response(each.odds, 1)] * count), independent([response(each.odds, 0)] * count)
        assert exact == hockey_stick(*truth, odds=odds)


@given(st.lists(guarantees, min_size=1, max_size=5))
def test_optimal_is_never_worse_than_basic(parts: list[Guarantee]) -> None:
    whole = cp.basic(parts)
    assert cp.optimal_delta_of_different(parts, odds=whole.odds) <= whole.delta
    assert whole.odds == prod((part.odds for part in parts), start=Fraction(1)) and whole.delta == sum(part.delta for part in parts)


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), TEN])
@pytest.mark.parametrize("count", [1, 20, 100])
def test_advanced_is_sound_and_enclosed(epsilon: Fraction, count: int) -> None:
    """At the epsilon advanced composition gives, the optimal delta is at most its slack, and far below."""
    slack = Fraction(1, 10**6)
    upper = cp.advanced_epsilon_upper(epsilon=epsilon, count=count, delta_slack=slack)
    lower = cp.advanced_epsilon_lower(epsilon=epsilon, count=count, delta_slack=slack)
    assert lower <= upper <= lower + Fraction(1, 10**90)
    with mpmath.workdps(50):
        e = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        formula = e * mpmath.sqrt(2 * count * mpmath.log(10**6)) + count * e * (mpmath.exp(e) - 1)
        assert abs(mpmath.mpf(upper.numerator) / upper.denominator - formula) < mpmath.mpf(10) ** -40
    each = Guarantee(Fraction(round(exp_upper(epsilon) * 10**12) + 1, 10**12))
    assert cp.optimal_delta(each, count=count, odds=Fraction(int(exp_lower(lower) * 10**12), 10**12)) < slack


@settings(max_examples=20, deadline=None)
@given(guarantees, st.integers(1, 8), st.fractions(min_value=0, max_value=Fraction(1, 8), max_denominator=64))
def test_optimal_odds_are_where_delta_is_reached(each: Guarantee, count: int, more: Fraction) -> None:
    delta = 1 - (1 - each.delta) ** count + more
    odds = cp.optimal_odds(each, count=count, delta=delta)
    assert cp.optimal_delta(each, count=count, odds=odds) <= delta
    assert odds <= each.odds**count
    if odds > 1:
        assert odds * (1 - Fraction(1, 10**9)) < 1 or cp.optimal_delta(each, count=count, odds=odds * (1 - Fraction(1, 10**9))) > delta


def test_optimal_composition_against_dp_accounting() -> None:
    """Fifty pure mechanisms of epsilon 0.1: our exact delta against their pessimistic loss distribution, a little above it."""
    from dp_accounting.pld import privacy_loss_distribution as pld
    from dp_accounting.pld.common import DifferentialPrivacyParameters

    theirs = pld.from_privacy_parameters(DifferentialPrivacyParameters(0.1, 1e-9), value_discretization_interval=1e-4).self_compose(50)
    each = Guarantee(Fraction(round(exp_upper(TEN) * 10**15) + 1, 10**15), Fraction(1, 10**9))
    for epsilon in (Fraction(1, 2), Fraction(1), Fraction(2)):
        ours = float(cp.optimal_delta(each, count=50, odds=Fraction(round(exp_lower(epsilon) * 10**15) - 1, 10**15)))
        assert ours * (1 - 1e-6) <= theirs.get_delta_for_epsilon(float(epsilon)) <= ours * 1.01


def test_parallel_is_the_maximum_for_rows() -> None:
    assert cp.parallel([TEN, 3 * TEN, 2 * TEN], parts_per_unit=1) == 3 * TEN
    assert cp.parallel([TEN, 3 * TEN, 2 * TEN], parts_per_unit=2) == 5 * TEN
    assert cp.parallel([TEN, 3 * TEN], parts_per_unit=9) == 4 * TEN
    # one row, in the first part: the second part's mechanism sees the same rows on both sides
    with_row = independent([response(Fraction(2), 1), response(Fraction(3), 0)])
    without = independent([response(Fraction(2), 0), response(Fraction(3), 0)])
    assert odds_max(with_row, without) == 2 <= 3


def test_parallel_is_not_the_maximum_for_users() -> None:
    """A user with a row in each of two parts moves both: odds 2 and 3 make 6, not 3."""
    with_user = independent([response(Fraction(2), 1), response(Fraction(3), 1)])
    without = independent([response(Fraction(2), 0), response(Fraction(3), 0)])
    assert odds_max(with_user, without) == 6
    assert not holds(with_user, without, Guarantee(Fraction(3)))
    assert holds(with_user, without, cp.basic([Guarantee(Fraction(2)), Guarantee(Fraction(3))]))


@settings(max_examples=40)
@given(full_laws, full_laws, st.integers(2, 12))
def test_renyi_of_pure_privacy_is_never_exceeded(p: Law, q: Law, order: int) -> None:
    there, back = odds_max(p, q), odds_max(q, p)
    assert there is not None and back is not None
    found = renyi_upper(p, q, order=Fraction(order))
    bound = cp.pure_to_renyi_upper(Guarantee(max(there, back)), order=order)
    assert found is not None and found <= bound + Fraction(1, 10**90)
    # and the zCDP of a pure guarantee covers that
    epsilon = Guarantee(max(there, back)).epsilon_upper()
    assert bound <= order * cp.pure_to_rho(epsilon) + Fraction(1, 10**90)


@pytest.mark.parametrize("order", [Fraction(3, 2), Fraction(8), Fraction(30)])
def test_renyi_conversion_is_the_kernels_for_concentrated_mechanisms(order: Fraction) -> None:
    rho, delta = Fraction(1, 50), Fraction(1, 10**6)
    at_order = cp.renyi_to_epsilon_upper(order=order, divergence=order * rho, delta=delta)
    best = epsilon_for(rho=rho, delta=delta)
    assert best <= at_order + Fraction(1, 10**30)
    if order == 30:
        assert at_order < best * Fraction(11, 10)


FIGURES = {
    Rule.BASIC: 100,
    Rule.ADVANCED: 337,
    Rule.OPTIMAL: 562,
    Rule.CONCENTRATED: 487,
    Rule.CONCENTRATED_GAUSSIAN: 974,
    Rule.GAUSSIAN: 1120,
}


@pytest.mark.parametrize("rule", list(Rule))
def test_how_many_hundredths_fit_into_one(rule: Rule) -> None:
    assert how_many(rule, each_epsilon=Fraction(1, 100), epsilon=Fraction(1), delta=Fraction(1, 10**6)) == FIGURES[rule]


def test_how_many_against_dp_accounting() -> None:
    """Their loss distributions turn from fitting to not fitting where our exact decisions do, but for their discretisation."""
    from dp_accounting.pld import privacy_loss_distribution as pld
    from dp_accounting.pld.common import DifferentialPrivacyParameters

    pure = pld.from_privacy_parameters(DifferentialPrivacyParameters(0.01, 0.0), value_discretization_interval=1e-4)
    assert pure.self_compose(562).get_delta_for_epsilon(1.0) <= 1e-6 * (1 + 1e-3)
    assert pure.self_compose(563).get_delta_for_epsilon(1.0) > 1e-6 * (1 - 1e-3)

    def normal(count: int) -> float:
        # k Gaussians are one with 1/k of the variance
        one = pld.from_gaussian_mechanism(100 * (2 / count) ** 0.5, value_discretization_interval=1e-5)
        return float(one.get_delta_for_epsilon(1.0))

    assert normal(1119) < 1e-6 < normal(1122)


def test_many_by_the_optimum_are_never_fewer_than_by_any_rule_for_pure_mechanisms() -> None:
    for each, epsilon, delta in ((TEN, Fraction(2), Fraction(1, 10**5)), (Fraction(1, 4), Fraction(1), Fraction(1, 10**9))):
        numbers = {rule: how_many(rule, each_epsilon=each, epsilon=epsilon, delta=delta) for rule in Rule}
        assert numbers[Rule.OPTIMAL] >= max(numbers[Rule.BASIC], numbers[Rule.ADVANCED], numbers[Rule.CONCENTRATED])
        assert numbers[Rule.GAUSSIAN] >= numbers[Rule.CONCENTRATED_GAUSSIAN]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: cp.optimal_delta(Guarantee(Fraction(2)), count=0, odds=Fraction(2)), "theory-argument"),
        (lambda: cp.optimal_delta(Guarantee(Fraction(2)), count=1, odds=Fraction(1, 2)), "theory-argument"),
        (lambda: cp.optimal_delta_of_different([Guarantee(Fraction(2))] * 21, odds=Fraction(2)), "number-too-large"),
        (lambda: cp.optimal_odds(Guarantee(Fraction(2), TEN), count=2, delta=TEN), "theory-argument"),
        (lambda: cp.worst_pair(Guarantee(Fraction(2), Fraction(1))), "theory-argument"),
        (lambda: cp.advanced_epsilon_upper(epsilon=TEN, count=1, delta_slack=Fraction(0)), "theory-argument"),
        (lambda: cp.parallel([TEN], parts_per_unit=0), "theory-argument"),
        (lambda: cp.pure_to_renyi_upper(Guarantee(Fraction(2), TEN), order=2), "theory-argument"),
        (lambda: cp.renyi_to_epsilon_upper(order=Fraction(1), divergence=TEN, delta=TEN), "theory-argument"),
        (lambda: how_many(Rule.BASIC, each_epsilon=TEN, epsilon=Fraction(0), delta=TEN), "theory-argument"),
        (lambda: how_many(Rule.GAUSSIAN, each_epsilon=Fraction(1, 10**6), epsilon=Fraction(1), delta=TEN), "number-too-large"),
    ],
)
def test_refusals(call: Callable[[], object], code: str) -> None:
    with pytest.raises(LapwingError) as refusal:
        call()
    assert refusal.value.code == code
