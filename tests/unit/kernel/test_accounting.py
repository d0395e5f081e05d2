"""Conversion, charges and admission: never above a high-precision reference, exact to the last ledger unit, and equal to dp-accounting."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing import prices
from lapwing.errors import CatalogueError, LapwingError, Refused
from lapwing.kernel import accounting
from lapwing.kernel.accounting import DELTA_UNITS, LOSS_UNITS, Account, Budget, Cost
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law, loss
from tests.support.sizes import size

REFERENCE_DIGITS = 60


def mp(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


def reference_log_delta(order: mpmath.mpf, *, rho: mpmath.mpf, epsilon: mpmath.mpf) -> mpmath.mpf:
    """ln of the delta that rho-zCDP has at epsilon by this order: the formula of Canonne, Kamath and Steinke as they print it."""
    return (order - 1) * (order * rho - epsilon) + order * mpmath.log(1 - 1 / order) - mpmath.log(order - 1)


def reference_least_log_delta(*, rho: Fraction, epsilon: Fraction) -> mpmath.mpf:
    """The least over all orders. The function is convex in the order: bisect its derivative."""
    with mpmath.workdps(REFERENCE_DIGITS):
        r, e = mp(rho), mp(epsilon)

        def slope(order: mpmath.mpf) -> mpmath.mpf:
            return (2 * order - 1) * r - e + mpmath.log(1 - 1 / order)

        low, high = mpmath.mpf(1), mpmath.mpf(2)
        while slope(high) < 0:
            high *= 2
        for _ in range(240):
            middle = (low + high) / 2
            low, high = (middle, high) if slope(middle) < 0 else (low, middle)
        return reference_log_delta(high, rho=r, epsilon=e)


def promise_holds(loss_units: int, *, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether spending these units of rho is (epsilon, delta)-private, by the reference."""
    with mpmath.workdps(REFERENCE_DIGITS):
        least = reference_least_log_delta(rho=Fraction(loss_units, LOSS_UNITS), epsilon=epsilon)
        return bool(least <= mpmath.log(mp(delta)))


epsilons = st.builds(lambda digits, power: Fraction(digits, 1000) * Fraction(10) ** power, st.integers(1, 9999), st.integers(-3, 5))
deltas = st.builds(lambda digits, power: Fraction(digits, 10**power), st.integers(1, 999), st.integers(4, 29))


@settings(max_examples=60, deadline=None)
@given(epsilons, deltas)
def test_rho_is_never_above_the_reference_and_within_a_billionth(epsilon: Fraction, delta: Fraction) -> None:
    rho = accounting.rho_for(epsilon=epsilon, delta=delta)
    with mpmath.workdps(REFERENCE_DIGITS):
        target = mpmath.log(mp(delta))
        assert reference_least_log_delta(rho=rho, epsilon=epsilon) <= target
        assert reference_least_log_delta(rho=rho * (1 + Fraction(1, 10**9)), epsilon=epsilon) > target


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**6), Fraction(1, 100), Fraction(3), Fraction(10**6), Fraction(10**9)])
@pytest.mark.parametrize("delta", [Fraction(1, 10**30), Fraction(1, 2**40), Fraction(1, 3), 1 - Fraction(1, 10**12)])
def test_the_ends_of_the_range(epsilon: Fraction, delta: Fraction) -> None:
    rho = accounting.rho_for(epsilon=epsilon, delta=delta)
    with mpmath.workdps(REFERENCE_DIGITS):
        target = mpmath.log(mp(delta))
        assert rho > 0
        assert reference_least_log_delta(rho=rho, epsilon=epsilon) <= target
        assert reference_least_log_delta(rho=rho * (1 + Fraction(1, 10**6)), epsilon=epsilon) > target


@settings(max_examples=60, deadline=None)
@given(epsilons, deltas)
def test_epsilon_is_never_below_the_reference_and_undoes_rho(epsilon: Fraction, delta: Fraction) -> None:
    rho = epsilon**2 / 40
    back = prices.epsilon_for(rho=rho, delta=delta)
    with mpmath.workdps(REFERENCE_DIGITS):
        target = mpmath.log(mp(delta))
        if back > 0:
            assert reference_least_log_delta(rho=rho, epsilon=back) <= target
            assert reference_least_log_delta(rho=rho, epsilon=back * (1 - Fraction(1, 10**9))) > target
    there_and_back = prices.epsilon_for(rho=accounting.rho_for(epsilon=epsilon, delta=delta), delta=delta)
    assert abs(there_and_back - epsilon) <= epsilon * Fraction(1, 10**9)


def test_nothing_spent_is_epsilon_zero() -> None:
    assert prices.epsilon_for(rho=Fraction(0), delta=Fraction(1, 10**9)) == 0


def test_known_value() -> None:
    # half the rho of (3, 2^-40) is worth an epsilon of 2.09: epsilons do not add
    delta = Fraction(1, 2**40)
    half = accounting.rho_for(epsilon=Fraction(3), delta=delta) / 2
    assert round(float(prices.epsilon_for(rho=half, delta=delta)), 2) == 2.09


def test_rho_for_is_fast() -> None:
    calls = [(Fraction(n, 37), Fraction(1, 10**9 + n)) for n in range(1, 101)]
    start = time.perf_counter()
    for epsilon, delta in calls:
        accounting.rho_for(epsilon=epsilon, delta=delta)
    assert (time.perf_counter() - start) / len(calls) < 0.005


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**5), Fraction(1, 3), Fraction(1), Fraction(20), Fraction(10**6), Fraction(10**9)])
@pytest.mark.parametrize("delta", [Fraction(1, 2**40), Fraction(1, 10**6), Fraction(7, 10**29)])
def test_one_unit_more_than_the_budget_would_break_the_promise(epsilon: Fraction, delta: Fraction) -> None:
    """So a budget rounded up instead of down is caught."""
    budget = accounting.budget_for(epsilon=epsilon, delta=delta)
    assert promise_holds(budget.loss_total, epsilon=epsilon, delta=budget.delta_conversion)
    rounded_up = replace(budget, loss_total=budget.loss_total + 1)
    assert not promise_holds(rounded_up.loss_total, epsilon=epsilon, delta=budget.delta_conversion)


@given(st.fractions(min_value=0, max_value=100), st.fractions(min_value=0, max_value=1))
def test_charges_round_up_by_less_than_one_unit(amount: Fraction, delta: Fraction) -> None:
    assert 0 <= accounting.charge_loss(amount) - amount * LOSS_UNITS < 1
    assert 0 <= accounting.charge_delta(delta) - delta * DELTA_UNITS < 1


def test_pure_budget() -> None:
    budget = accounting.budget_for(epsilon=Fraction(2, 3), delta=Fraction(0))
    assert budget.account is Account.PURE
    assert budget.loss_total == 666_666_666_666_666
    assert budget.delta_total == budget.delta_conversion == budget.delta_keys == 0
    assert not accounting.admits(budget, spent=Cost.zero(), cost=Cost(loss=0, delta=1))


@settings(max_examples=40, deadline=None)
@given(epsilons, deltas, st.fractions(min_value=0, max_value=Fraction(99, 100), max_denominator=100))
def test_delta_is_split_without_loss(epsilon: Fraction, delta: Fraction, share: Fraction) -> None:
    try:
        budget = accounting.budget_for(epsilon=epsilon, delta=delta, delta_keys_share=share)
    except CatalogueError as refusal:
        assert refusal.code == "budget-invalid"
        assert accounting.rho_for(epsilon=epsilon, delta=delta * (1 - share)) * LOSS_UNITS < 1
        return
    assert budget.delta_conversion + budget.delta_keys == delta
    assert budget.delta_keys == delta * share
    assert Fraction(budget.delta_total, DELTA_UNITS) <= budget.delta_keys


@settings(max_examples=40, deadline=None)
@given(epsilons.filter(lambda e: e > Fraction(1, 100)), st.sampled_from([Fraction(0), Fraction(1, 2**40), Fraction(1, 10**6)]))
def test_a_statement_at_the_whole_epsilon_takes_exactly_the_whole_budget(epsilon: Fraction, delta: Fraction) -> None:
    budget = accounting.budget_for(epsilon=epsilon, delta=delta)
    assert accounting.charge_loss(prices.statement_loss(budget, epsilon)) == budget.loss_total


def test_a_tiny_statement_keeps_its_loss_and_pays_one_unit() -> None:
    budget = accounting.budget_for(epsilon=Fraction(1), delta=Fraction(1, 2**40))
    tiny = prices.statement_loss(budget, Fraction(1, 10**8))
    assert 0 < tiny < Fraction(1, LOSS_UNITS)
    assert accounting.charge_loss(tiny) == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda: accounting.budget_for(epsilon=Fraction(0), delta=Fraction(0)),
        lambda: accounting.budget_for(epsilon=Fraction(-1), delta=Fraction(1, 10)),
        lambda: accounting.budget_for(epsilon=Fraction(10**9 + 1), delta=Fraction(0)),
        lambda: accounting.budget_for(epsilon=Fraction(1), delta=Fraction(1)),
        lambda: accounting.budget_for(epsilon=Fraction(1), delta=Fraction(-1, 10)),
        lambda: accounting.budget_for(epsilon=Fraction(1), delta=Fraction(1, 10), delta_keys_share=Fraction(1)),
        lambda: accounting.budget_for(epsilon=Fraction(1), delta=Fraction(1, 10), delta_keys_share=Fraction(-1)),
        lambda: accounting.budget_for(epsilon=Fraction(1, 10**16), delta=Fraction(0)),
        lambda: accounting.budget_for(epsilon=Fraction(1, 10**8), delta=Fraction(1, 10**30)),
        lambda: accounting.rho_for(epsilon=Fraction(1), delta=Fraction(0)),
        lambda: prices.epsilon_for(rho=Fraction(-1), delta=Fraction(1, 2)),
        lambda: prices.epsilon_for(rho=Fraction(1), delta=Fraction(0)),
    ],
)
def test_what_is_no_budget_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(CatalogueError) as refusal:
        call()
    assert refusal.value.code == "budget-invalid"


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(-1), Fraction(10**9 + 1)])
def test_what_is_no_epsilon_is_refused(epsilon: Fraction) -> None:
    budget = accounting.budget_for(epsilon=Fraction(1), delta=Fraction(0))
    with pytest.raises(Refused) as refusal:
        prices.statement_loss(budget, epsilon)
    assert refusal.value.code == "epsilon-invalid"


def test_a_float_never_decides() -> None:
    a_float: Any = 0.5
    budget = accounting.budget_for(epsilon=Fraction(1), delta=Fraction(0))
    for call in (
        lambda: accounting.charge_loss(a_float),
        lambda: accounting.charge_delta(a_float),
        lambda: accounting.rho_for(epsilon=a_float, delta=Fraction(1, 10)),
        lambda: prices.epsilon_for(rho=a_float, delta=Fraction(1, 10)),
        lambda: accounting.budget_for(epsilon=a_float, delta=Fraction(0)),
        lambda: prices.statement_loss(budget, a_float),
    ):
        with pytest.raises(LapwingError) as refusal:
            call()
        assert refusal.value.code == "number-invalid"


@pytest.mark.parametrize(("loss_units", "delta_units"), [(-1, 0), (0, -1), (1.0, 0), (0, True)])
def test_a_cost_is_two_natural_numbers(loss_units: Any, delta_units: Any) -> None:
    with pytest.raises(LapwingError) as refusal:
        Cost(loss=loss_units, delta=delta_units)
    assert refusal.value.code == "cost-invalid"
    with pytest.raises(LapwingError) as refusal:
        accounting.charge_loss(Fraction(-1, 2))
    assert refusal.value.code == "cost-invalid"


def spend_adaptively(budget: Budget, chance: random.Random) -> tuple[Cost, int]:
    """Ask until refused ten times in a row; each amount depends on what was admitted before. Returns what was spent, and the steps."""
    spent, refusals, steps = Cost.zero(), 0, 0
    while refusals < 10:
        steps += 1
        left = Fraction(budget.loss_total - spent.loss, LOSS_UNITS)
        share = Fraction(chance.randrange(1, 4000), 1000 if chance.random() < 0.2 else 10_000)
        # after a refusal an adversary tries the edges: all that is left, and a hair more
        amount = left * share if refusals < 5 else left + Fraction(chance.choice([-1, 0, 0, 1]), 3 * LOSS_UNITS)
        cost = Cost(
            loss=accounting.charge_loss(max(Fraction(0), amount)),
            delta=accounting.charge_delta(budget.delta_keys * Fraction(chance.randrange(0, 5), 1000)),
        )
        admitted = accounting.admits(budget, spent=spent, cost=cost)
        exceeds = spent.loss + cost.loss > budget.loss_total or spent.delta + cost.delta > budget.delta_total
        assert admitted is not exceeds
        if admitted:
            spent = spent + cost
        else:
            refusals += 1
    return spent, steps


@pytest.mark.slow
def test_adaptive_sequences_stop_exactly_at_the_budget() -> None:
    chance = random.Random(20261114)
    for _ in range(300):
        epsilon = Fraction(chance.randrange(1, 5000), 1000)
        delta = chance.choice([Fraction(0), Fraction(1, 2**40), Fraction(1, 10**7)])
        budget = accounting.budget_for(epsilon=epsilon, delta=delta)
        spent, steps = spend_adaptively(budget, chance)
        assert steps > 10
        assert spent.loss <= budget.loss_total and spent.delta <= budget.delta_total
        # to the last unit: what is left is admitted, one unit more of either is not
        rest = Cost(loss=budget.loss_total - spent.loss, delta=budget.delta_total - spent.delta)
        assert accounting.admits(budget, spent=spent, cost=rest)
        assert not accounting.admits(budget, spent=spent, cost=rest + Cost(loss=1, delta=0))
        assert not accounting.admits(budget, spent=spent, cost=rest + Cost(loss=0, delta=1))
        # and the whole is worth no more than was promised
        total = Fraction((spent + rest).loss, LOSS_UNITS)
        if budget.account is Account.PURE:
            assert total <= epsilon
        else:
            assert promise_holds((spent + rest).loss, epsilon=epsilon, delta=budget.delta_conversion)


def random_laws(chance: random.Random) -> list[tuple[Law, int]]:
    """A sequence of (law, sensitivity): scalar queries, so that L1 = L2 = sensitivity."""
    laws: list[tuple[Law, int]] = []
    for _ in range(chance.randrange(1, 9)):
        sensitivity = chance.randrange(1, 200)
        scale = Fraction(math.ldexp(math.floor(math.exp(chance.uniform(0.5, 5.0)) * sensitivity * 2**10), -10))
        laws.append((DiscreteLaplace(scale) if chance.random() < 0.5 else DiscreteGaussian(scale), sensitivity))
    return laws


def charged(laws: list[tuple[Law, int]]) -> Fraction:
    """The rho our ledger holds after these charges."""
    units = sum(accounting.charge_loss(loss(law, Account.APPROXIMATE, l1=s, l2_squared=s**2)) for law, s in laws)
    return Fraction(units, LOSS_UNITS)


def float_order(*, rho: float, delta: float) -> float:
    """The best order at this rho and delta, by Newton steps in floats on the derivative of the conversion; independent of ours."""
    excess = math.sqrt(math.log(1.0 / delta) / rho)
    for _ in range(60):
        # d/db of (1+b) rho - ln(1+1/b) - (ln delta + ln(1+b)) / b is  rho + (ln delta + ln(1+b)) / b^2
        value = rho + (math.log(delta) + math.log1p(excess)) / excess**2
        slope = 1.0 / ((1.0 + excess) * excess**2) - 2.0 * (math.log(delta) + math.log1p(excess)) / excess**3
        excess = max(excess / 2.0, excess - value / slope) if slope > 0.0 else excess / 2.0
    return 1.0 + excess


@pytest.mark.slow
def test_sequences_against_dp_accounting() -> None:
    """Ours against dp-accounting's Renyi accountant, on the same sequences.

    Same amounts (their zCDP events): equal to a relative 1e-9, and never lower than theirs by more than float error. Real mechanisms (their
    Gaussian and Laplace events, whose Renyi divergences are tight for the continuous laws): ours is an upper bound, never lower than theirs
    by more than float error (1e-9). Their orders contain the best order of the zCDP curve, so theirs is not looser for want of orders.
    """
    import dp_accounting
    from dp_accounting import rdp

    chance = random.Random(7)
    strictly_above = 0
    sequences = size("sequences against dp-accounting")
    for _ in range(sequences):
        laws = random_laws(chance)
        delta = Fraction(1, 10 ** chance.randrange(4, 20))
        rho = charged(laws)
        ours = prices.epsilon_for(rho=rho, delta=delta)
        orders = [1.5, 2.0, 4.0, 8.0, 32.0, float_order(rho=float(rho), delta=float(delta))]

        same_amounts = rdp.RdpAccountant(orders)
        for law, s in laws:
            same_amounts.compose(dp_accounting.ZCDpEvent(float(loss(law, Account.APPROXIMATE, l1=s, l2_squared=s**2))))
        theirs = same_amounts.get_epsilon(float(delta))
        assert float(ours) >= theirs * (1 - 1e-9)
        assert float(ours) <= theirs * (1 + 1e-9)

        mechanisms = rdp.RdpAccountant(orders)
        for law, s in laws:
            noise_multiplier = float(law.scale) / s
            match law:
                case DiscreteLaplace():
                    mechanisms.compose(dp_accounting.LaplaceDpEvent(noise_multiplier))
                case DiscreteGaussian():
                    mechanisms.compose(dp_accounting.GaussianDpEvent(noise_multiplier))
        tight = mechanisms.get_epsilon(float(delta))
        assert float(ours) >= tight * (1 - 1e-9)
        strictly_above += float(ours) > tight * (1 + 1e-6)
    # Laplace is cheaper than its zCDP bound: the comparison would notice if both sides were the same number
    assert strictly_above > sequences // 2


def optimistic_loss_distribution(law: Law, sensitivity: int) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld

    match law:
        case DiscreteLaplace():
            return pld.from_discrete_laplace_mechanism(
                1 / float(law.scale), sensitivity=sensitivity, pessimistic_estimate=False, value_discretization_interval=1e-3
            )
        case DiscreteGaussian():
            return pld.from_discrete_gaussian_mechanism(
                float(law.scale), sensitivity=sensitivity, pessimistic_estimate=False, value_discretization_interval=1e-3
            )


def test_never_below_the_exact_privacy_loss_of_the_discrete_laws() -> None:
    """Against dp-accounting's privacy loss distributions of the very discrete laws: their optimistic estimate is a lower bound."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    chance = random.Random(11)
    gaussian_only = 0
    for _ in range(12):
        delta = Fraction(1, 10 ** chance.randrange(4, 9))
        laws: list[tuple[Law, int]] = []
        for _ in range(chance.randrange(1, 5)):
            sensitivity = chance.randrange(1, 4)
            scale = Fraction(chance.randrange(8, 64) * sensitivity, 4)
            laws.append((DiscreteLaplace(scale) if chance.random() < 0.5 else DiscreteGaussian(scale), sensitivity))
        composed = pld.identity(value_discretization_interval=1e-3, pessimistic_estimate=False)
        for law, s in laws:
            composed = composed.compose(optimistic_loss_distribution(law, s))
        ours = float(prices.epsilon_for(rho=charged(laws), delta=delta))
        tight = composed.get_epsilon_for_delta(float(delta))
        assert 0 < tight <= ours
        # zCDP is close for Gaussian noise only (a lone Laplace is cheaper than its zCDP cost says)
        if all(isinstance(law, DiscreteGaussian) for law, _ in laws):
            gaussian_only += 1
            assert ours <= 1.5 * tight
    assert gaussian_only


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(Fraction(1, 2), Fraction(1, 10**6)), (Fraction(1), Fraction(1, 10**8)), (Fraction(9), Fraction(1, 2**40))]
)
def test_the_best_order_is_the_best_of_all(epsilon: Fraction, delta: Fraction) -> None:
    held = {order: accounting.rho_at_order(order, epsilon=epsilon, delta=delta) for order in range(2, 300)}
    best = prices.best_order(epsilon=epsilon, delta=delta)
    assert held[best] == max(held.values()) > Fraction(999, 1000) * accounting.rho_for(epsilon=epsilon, delta=delta)
