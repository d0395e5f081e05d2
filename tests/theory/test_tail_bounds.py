"""Tail bounds against exact tails in rational arithmetic: never below, and how far above."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import ceil, factorial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.errors import LapwingError
from lapwing.theory import tail_bounds as tb

chances = st.fractions(min_value=Fraction(1, 20), max_value=Fraction(19, 20), max_denominator=20)


@given(st.integers(1, 60), chances, st.fractions(min_value=Fraction(1, 50), max_value=Fraction(1, 2), max_denominator=50))
def test_hoeffding_and_chernoff_cover_the_exact_binomial(samples: int, chance: Fraction, t: Fraction) -> None:
    exact = tb.binomial_tail(samples=samples, chance=chance, at_least=ceil(samples * (chance + t)))
    additive = tb.hoeffding_upper(samples=samples, deviation=t)
    assert exact <= additive
    if chance + t < 1:
        sharp = tb.chernoff_upper(samples=samples, mean=chance, at_least=chance + t)
        assert exact <= sharp <= additive


@given(st.integers(1, 60), chances, st.fractions(min_value=0, max_value=1, max_denominator=20))
def test_multiplicative_bounds_cover_the_exact_binomial(samples: int, chance: Fraction, share: Fraction) -> None:
    above = tb.binomial_tail(samples=samples, chance=chance, at_least=ceil(samples * chance * (1 + share)))
    assert above <= tb.multiplicative_above_upper(samples=samples, mean=chance, share=share)
    # at most k successes are at least m - k failures
    most = (samples * chance * (1 - share)).__floor__()
    below = tb.binomial_tail(samples=samples, chance=1 - chance, at_least=samples - most)
    assert below <= tb.multiplicative_below_upper(samples=samples, mean=chance, share=share)


def test_multiplicative_wins_for_rare_events() -> None:
    # 1 % of 10,000, half as many again
    additive = tb.hoeffding_upper(samples=10_000, deviation=Fraction(1, 200))
    multiplicative = tb.multiplicative_above_upper(samples=10_000, mean=Fraction(1, 100), share=Fraction(1, 2))
    assert multiplicative < Fraction(1, 4000) < Fraction(1, 2) < additive


@pytest.mark.parametrize("probability", [Fraction(1, 20), Fraction(1, 10**6)])
@pytest.mark.parametrize("t", [Fraction(1, 10), Fraction(1, 100)])
def test_samples_and_deviation_undo_each_other(t: Fraction, probability: Fraction) -> None:
    samples = tb.samples_needed(deviation=t, probability=probability)
    assert 2 * tb.hoeffding_upper(samples=samples, deviation=t) <= probability * (1 + Fraction(1, 10**90))
    assert 2 * tb.hoeffding_upper(samples=samples - 1, deviation=t) > probability
    reached = tb.deviation(samples=samples, probability=probability)
    assert reached <= t < tb.deviation(samples=samples - 1, probability=probability)


def test_the_poll_of_the_textbook() -> None:
    assert tb.samples_needed(deviation=Fraction(3, 100), probability=Fraction(1, 20)) == 2050


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=8), st.integers(1, 12))
def test_azuma_covers_a_martingale_whose_steps_depend_on_the_past(steps: list[int], t: int) -> None:
    """Each step is plus or minus its bound, or half of it after a rise: still mean 0. All paths, exactly."""
    hits = 0
    for signs in product((1, -1), repeat=len(steps)):
        position, rose = Fraction(0), False
        for size, sign in zip(steps, signs, strict=True):
            position += sign * Fraction(size, 2 if rose else 1)
            rose = sign > 0
        hits += position >= t
    assert Fraction(hits, 2 ** len(steps)) <= tb.azuma_upper(steps=[Fraction(s) for s in steps], deviation=Fraction(t))


@pytest.mark.parametrize("n", [1, 2, 5, 20, 100, 1000])
def test_stirling_encloses_the_factorial_closely(n: int) -> None:
    lower, upper = tb.factorial_lower(n), tb.factorial_upper(n)
    assert lower <= factorial(n) <= upper
    assert upper / lower - 1 < Fraction(1, 140 * n**2)


def convolved(count: int, decay: Fraction, reach: int) -> dict[int, Fraction]:
    """The law of the sum with each draw restricted to -reach..reach (masses not rescaled): a lower bound on every mass."""
    one = {z: (1 - decay) / (1 + decay) * decay ** abs(z) for z in range(-reach, reach + 1)}
    law = {0: Fraction(1)}
    for _ in range(count):
        law_next: dict[int, Fraction] = {}
        for at, share in law.items():
            for z, p in one.items():
                law_next[at + z] = law_next.get(at + z, Fraction(0)) + share * p
        law = law_next
    return law


@pytest.mark.parametrize("decay", [Fraction(1, 2), Fraction(1, 5)])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_law_of_a_sum_of_laplace_draws_is_the_convolution(count: int, decay: Fraction) -> None:
    reach = 40
    law = convolved(count, decay, reach)
    for total in (0, 1, 2, 5, -3):
        exact = tb.laplace_sum_mass(count=count, decay=decay, total=total)
        assert 0 <= exact - law[total] <= count * 2 * decay**reach
    if count == 1:
        assert tb.laplace_sum_mass(count=1, decay=decay, total=-7) == law[7]
        assert tb.laplace_sum_tail(count=1, decay=decay, at_least=4) == decay**4 / (1 + decay)


def test_tails_and_masses_agree() -> None:
    arguments = {"count": 5, "decay": Fraction(2, 3)}
    for t in (1, 4, 30):
        here = tb.laplace_sum_tail(**arguments, at_least=t)  # type: ignore[arg-type]
        after = tb.laplace_sum_tail(**arguments, at_least=t + 1)  # type: ignore[arg-type]
        assert here - after == tb.laplace_sum_mass(**arguments, total=t) > 0  # type: ignore[arg-type]
        assert after > 0


@pytest.mark.parametrize("count", [1, 4, 16])
@pytest.mark.parametrize("decay", [Fraction(1, 2), Fraction(4, 5), Fraction(19, 20)])
def test_the_chernoff_bound_on_laplace_sums_covers_the_exact_tail_closely(count: int, decay: Fraction) -> None:
    deviation = (2 * count * float(decay)) ** 0.5 / (1 - float(decay))
    for multiple in (1, 3, 5):
        t = max(1, round(multiple * deviation))
        exact = tb.laplace_sum_tail(count=count, decay=decay, at_least=t)
        bound = tb.laplace_sum_tail_upper(count=count, decay=decay, at_least=t)
        assert exact <= bound <= min(Fraction(1), 40 * exact)
    assert tb.laplace_sum_tail_upper(count=count, decay=decay, at_least=0) == 1


def test_the_subgaussian_bound_is_valid_for_fine_discrete_draws_and_looser() -> None:
    """Scale 20 (decay close to exp(-1/20)), 10 draws: near enough to continuous for the comparison with the published bound."""
    scale, count = 20, 10
    decay = Fraction(19, 20)  # a scale of 19.5: a little less noise than 20
    for t in (100, 200, 500):
        published = tb.laplace_sum_subgaussian_upper(scales=[Fraction(scale)] * count, deviation=Fraction(t))
        assert published is not None
        exact = tb.laplace_sum_tail(count=count, decay=decay, at_least=t)
        ours = tb.laplace_sum_tail_upper(count=count, decay=decay, at_least=t)
        assert exact <= ours <= published
    assert tb.laplace_sum_subgaussian_upper(scales=[Fraction(1)], deviation=Fraction(3)) is None


@pytest.mark.parametrize(
    "call",
    [
        lambda: tb.hoeffding_upper(samples=0, deviation=Fraction(1, 2)),
        lambda: tb.samples_needed(deviation=Fraction(0), probability=Fraction(1, 2)),
        lambda: tb.deviation(samples=1, probability=Fraction(1)),
        lambda: tb.chernoff_upper(samples=1, mean=Fraction(1, 2), at_least=Fraction(1, 2)),
        lambda: tb.multiplicative_above_upper(samples=1, mean=Fraction(1, 2), share=Fraction(2)),
        lambda: tb.azuma_upper(steps=[], deviation=Fraction(1)),
        lambda: tb.factorial_lower(0),
        lambda: tb.binomial_tail(samples=1, chance=Fraction(2), at_least=0),
        lambda: tb.laplace_sum_mass(count=1, decay=Fraction(1), total=0),
        lambda: tb.laplace_sum_tail(count=1, decay=Fraction(1, 2), at_least=0),
        lambda: tb.laplace_sum_tail_upper(count=1, decay=Fraction(1, 2), at_least=-1),
        lambda: tb.laplace_sum_subgaussian_upper(scales=[], deviation=Fraction(1)),
    ],
)
def test_refusals(call: Callable[[], object]) -> None:
    with pytest.raises(LapwingError) as refusal:
        call()
    assert refusal.value.code == "theory-argument"
