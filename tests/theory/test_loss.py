"""The law of the privacy loss: against divergences of product laws, against dp-accounting, and the two readings of (epsilon, delta)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import product
from math import log, prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.errors import LapwingError
from lapwing.theory.divergences import hockey_stick, kl_lower, kl_upper
from lapwing.theory.loss import NOTHING, LossLaw, converse_fails, exceeds_bound, loss_law, odds_of

Law = Mapping[int, Fraction]


def normalised(weights: list[int]) -> Law:
    return {output: Fraction(weight, sum(weights)) for output, weight in enumerate(weights)}


laws = st.lists(st.integers(0, 6), min_size=3, max_size=3).filter(any).map(normalised)
full_laws = st.lists(st.integers(1, 6), min_size=3, max_size=3).map(normalised)
odds_values = st.fractions(min_value=Fraction(1, 4), max_value=6, max_denominator=8)


def independent(*parts: Law) -> dict[tuple[int, ...], Fraction]:
    return {outputs: prod((law[o] for law, o in zip(parts, outputs, strict=True)), start=Fraction(1)) for outputs in product(*parts)}


@given(laws, laws, odds_values)
def test_delta_is_the_hockey_stick_and_never_above_the_pointwise_probability(p: Law, q: Law, odds: Fraction) -> None:
    loss = loss_law(p, q)
    assert loss.delta(odds=odds) == hockey_stick(p, q, odds=odds)
    assert loss.delta(odds=odds) <= loss.exceeds(odds=odds)
    assert loss.exceeds(odds=odds) == sum((p[o] for o in p if p[o] > odds * q[o]), Fraction(0))


@settings(max_examples=40)
@given(laws, laws, laws, laws, odds_values)
def test_composition_is_the_loss_of_the_product_law(p: Law, q: Law, r: Law, s: Law, odds: Fraction) -> None:
    composed = loss_law(p, q).compose(loss_law(r, s))
    assert composed == loss_law(independent(p, r), independent(q, s))
    assert composed.delta(odds=odds) == hockey_stick(independent(p, r), independent(q, s), odds=odds)


@given(full_laws, full_laws, st.integers(0, 5))
def test_repetition_is_composition_with_itself(p: Law, q: Law, count: int) -> None:
    one, step = loss_law(p, q), NOTHING
    for _ in range(count):
        step = step.compose(one)
    assert one.repeated(count) == step


@given(laws, laws)
def test_the_other_direction_is_known_too(p: Law, q: Law) -> None:
    assert loss_law(p, q).reversed() == loss_law(q, p)


@given(full_laws, full_laws)
def test_the_expected_loss_is_kl(p: Law, q: Law) -> None:
    mean_lower, mean_upper = loss_law(p, q).mean_lower(), loss_law(p, q).mean_upper()
    lower, upper = kl_lower(p, q), kl_upper(p, q)
    assert mean_lower is not None and mean_upper is not None and lower is not None and upper is not None
    assert mean_lower <= upper and lower <= mean_upper
    assert mean_upper - mean_lower < Fraction(1, 10**90)


def test_infinite_loss_has_its_own_mass() -> None:
    p, q = normalised([1, 3]), normalised([0, 1])
    loss = loss_law(p, q)
    assert loss.infinite == Fraction(1, 4) == loss.delta(odds=Fraction(10**9))
    assert loss.mean_lower() is None and loss.mean_upper() is None
    assert loss.repeated(3).infinite == 1 - Fraction(3, 4) ** 3
    assert odds_of(p, q, 0) is None and odds_of(p, q, 1) == Fraction(3, 4)


@given(full_laws, full_laws, odds_values, st.fractions(min_value=Fraction(1, 8), max_value=4, max_denominator=8))
def test_the_converse_at_larger_odds(p: Law, q: Law, odds: Fraction, more: Fraction) -> None:
    loss, beyond = loss_law(p, q), odds + more
    assert loss.exceeds(odds=beyond) <= exceeds_bound(odds=odds, delta=loss.delta(odds=odds), beyond=beyond)


@pytest.mark.parametrize("odds", [Fraction(1), Fraction(3, 2), Fraction(10)])
def test_the_converse_at_the_same_odds_is_false(odds: Fraction) -> None:
    p, q = converse_fails(odds=odds)
    loss = loss_law(p, q)
    assert loss.delta(odds=odds) == Fraction(1, 8)
    assert loss.exceeds(odds=odds) == Fraction(1, 2)


def test_against_dp_accounting_on_randomised_response() -> None:
    """Twenty runs of two-coin randomised response (odds 3): their loss distribution encloses our exact delta."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    exact = loss_law({1: Fraction(3, 4), 0: Fraction(1, 4)}, {1: Fraction(1, 4), 0: Fraction(3, 4)}).repeated(20)
    enclosure = []
    for pessimistic in (False, True):
        # noise_parameter: the chance of a uniform answer among the 2 buckets
        theirs = pld.from_randomized_response(0.5, 2, pessimistic_estimate=pessimistic, value_discretization_interval=1e-4)
        enclosure.append(theirs.self_compose(20))
    for odds in (Fraction(3), Fraction(1000), Fraction(3**10)):
        ours = float(exact.delta(odds=odds))
        low, high = (theirs.get_delta_for_epsilon(log(odds)) for theirs in enclosure)
        assert low * (1 - 1e-9) <= ours <= high * (1 + 1e-9)
        assert high - low < 0.01


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: LossLaw(mass={Fraction(0): Fraction(1)}, infinite=Fraction(0)), "law-invalid"),
        (lambda: LossLaw(mass={Fraction(1): Fraction(1, 2)}, infinite=Fraction(0)), "law-invalid"),
        (lambda: NOTHING.repeated(-1), "theory-argument"),
        (lambda: odds_of({0: Fraction(1)}, {0: Fraction(1)}, 5), "theory-argument"),
        (lambda: exceeds_bound(odds=Fraction(2), delta=Fraction(1, 9), beyond=Fraction(2)), "theory-argument"),
        (lambda: converse_fails(odds=Fraction(1, 2)), "theory-argument"),
    ],
)
def test_refusals(call: Callable[[], object], code: str) -> None:
    with pytest.raises(LapwingError) as refusal:
        call()
    assert refusal.value.code == code
