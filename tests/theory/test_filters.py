"""Filters against the best adaptive adversary of a finite class, computed exactly; the counter-examples; the odometer at all times at
once."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from math import comb, floor, log

import pytest

from lapwing.errors import BudgetRefused, LapwingError
from lapwing.kernel.accounting import LOSS_UNITS, rho_for
from lapwing.kernel.event import Event
from lapwing.kernel.numbers import exp_lower, ln_upper
from lapwing.theory import filters
from lapwing.theory.composition import Rule, how_many, optimal_delta_of_different
from lapwing.theory.filters import AdvancedFilter, ConcentratedOdometer, LedgerFilter, Response
from lapwing.theory.guarantees import Guarantee

CHOICES = [Fraction(11, 10), Fraction(3, 2), Fraction(2)]


EPSILON_OF = {odds: ln_upper(odds) for odds in CHOICES}
Admitted = Callable[[tuple[Fraction, ...]], bool]


def best_adversary(admitted: Admitted, *, odds: Fraction, depth: int, choices: Sequence[Fraction] = tuple(CHOICES)) -> Fraction:
    """The largest delta at these odds over all adaptive strategies whose every path is admitted. Exact, by recursion on the odds still to
    go."""
    may = cache(admitted)

    def value(path: tuple[Fraction, ...], target: Fraction) -> Fraction:
        best = max(Fraction(0), 1 - target)
        if len(path) < depth:
            for o in choices:
                if may((*path, o)):
                    likely = o / (1 + o)
                    best = max(best, likely * value((*path, o), target / o) + (1 - likely) * value((*path, o), target * o))
        return best

    return value((), odds)


def by_ledger(epsilon: Fraction, delta: Fraction) -> Admitted:
    start = LedgerFilter.of(epsilon=epsilon, delta=delta, delta_keys_share=Fraction(0))

    def admitted(path: tuple[Fraction, ...]) -> bool:
        state = start
        for o in path:
            event = Event.pure(EPSILON_OF[o])
            if not state.admits(event):
                return False
            state = state.charged(event)
        return True

    return admitted


def by_advanced(epsilon: Fraction, delta: Fraction) -> Admitted:
    def admitted(path: tuple[Fraction, ...]) -> bool:
        state = AdvancedFilter(epsilon=epsilon, delta_slack=delta)
        for o in path:
            if not state.admits(epsilon=EPSILON_OF[o]):
                return False
            state = state.charged(epsilon=EPSILON_OF[o])
        return True

    return admitted


def odds_just_below(epsilon: Fraction) -> Fraction:
    return Fraction(floor(exp_lower(epsilon) * 2**40), 2**40)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(2)])
@pytest.mark.parametrize("delta", [Fraction(1, 10), Fraction(1, 100)])
@pytest.mark.parametrize("rule", [by_ledger, by_advanced])
def test_the_best_adaptive_adversary_gets_no_more_than_promised(
    epsilon: Fraction, delta: Fraction, rule: Callable[[Fraction, Fraction], Admitted]
) -> None:
    found = best_adversary(rule(epsilon, delta), odds=odds_just_below(epsilon), depth=4)
    assert found <= delta
    # the adversary does spend: with four times as much admitted the promise would break, so the check can fail
    broken = best_adversary(rule(4 * epsilon, 4 * delta), odds=odds_just_below(epsilon), depth=4)
    assert broken > delta


def test_the_pure_filter_bounds_every_path() -> None:
    epsilon = Fraction(7, 5)
    admitted = by_ledger(epsilon, Fraction(0))
    assert best_adversary(admitted, odds=odds_just_below(epsilon), depth=5) == 0
    assert best_adversary(admitted, odds=Fraction(3), depth=5) > 0


def test_a_filter_made_of_the_optimal_bound_breaks_its_promise() -> None:
    example = filters.optimal_is_not_a_filter()
    assert example.delta_claimed == Fraction(1, 4)
    assert example.delta_true == Fraction(29, 100)
    for path in filters.strategy_paths(example.strategy):
        assert optimal_delta_of_different(path, odds=example.odds) <= example.delta_claimed

    # and the best adversary against that rule finds it, or better
    def admitted(path: tuple[Fraction, ...]) -> bool:
        return optimal_delta_of_different([Guarantee(o) for o in path], odds=Fraction(3)) <= Fraction(1, 4)

    choices = (Fraction(3, 2), Fraction(2), Fraction(3), Fraction(4))
    assert best_adversary(admitted, odds=Fraction(3), depth=3, choices=choices) >= Fraction(29, 100)


def test_a_strategy_that_does_not_adapt_is_a_fixed_sequence() -> None:
    fixed = Response(Fraction(2), if_likely=Response(Fraction(3)), if_unlikely=Response(Fraction(3)))
    assert filters.strategy_paths(fixed) == [(Guarantee(Fraction(2)), Guarantee(Fraction(3)))]
    for odds in (Fraction(1), Fraction(2), Fraction(5)):
        expected = optimal_delta_of_different([Guarantee(Fraction(2)), Guarantee(Fraction(3))], odds=odds)
        assert filters.strategy_loss(fixed).delta(odds=odds) == expected


def test_the_advanced_filter_admits_no_more_than_the_ledger_and_no_less_than_the_formula() -> None:
    for epsilon in (Fraction(1, 2), Fraction(1), Fraction(5)):
        for delta in (Fraction(1, 10**3), Fraction(1, 10**9)):
            limit = AdvancedFilter(epsilon=epsilon, delta_slack=delta).rho_limit()
            assert limit <= rho_for(epsilon=epsilon, delta=delta)
            length = float(limit) + 2 * (float(limit) * log(1 / float(delta))) ** 0.5
            assert abs(length - float(epsilon)) < 1e-12 * float(epsilon)


def test_the_advanced_filter_admits_more_than_the_textbook_formula_for_fixed_parameters() -> None:
    """No loss for adaptivity: hundredths into (1, 1e-6), one by one, 349 against 337."""
    each, count = Fraction(1, 100), 0
    state = AdvancedFilter(epsilon=Fraction(1), delta_slack=Fraction(1, 10**6), delta_parts=Fraction(1, 10**9))
    while state.admits(epsilon=each):
        state, count = state.charged(epsilon=each), count + 1
    assert count == 349 > how_many(Rule.ADVANCED, each_epsilon=each, epsilon=Fraction(1), delta=Fraction(1, 10**6)) == 337
    assert state.admits(epsilon=Fraction(0), delta=Fraction(1, 10**9)) and not state.admits(epsilon=Fraction(0), delta=Fraction(2, 10**9))
    with pytest.raises(BudgetRefused) as refusal:
        state.charged(epsilon=each)
    assert refusal.value.code == "budget-exceeded"


def least_limit(n: int, *, odds: Fraction, delta: Fraction) -> int:
    """The least multiple of ln odds that the loss of n responses exceeds with probability at most delta, from the exact binomial law."""
    up, down = odds.numerator, odds.denominator
    tail = 0
    for likely in range(n, -1, -1):
        tail += comb(n, likely) * up**likely * down ** (n - likely)
        if tail > delta * (up + down) ** n:
            return 2 * likely - n
    raise AssertionError("delta is below 1")


def test_bounds_that_are_right_for_each_length_are_not_an_odometer() -> None:
    """An analyst who stops when the loss is above the bound of that moment succeeds five times as often as delta allows."""
    odds, delta = Fraction(11, 10), Fraction(1, 20)
    limits = [least_limit(n, odds=odds, delta=delta) for n in range(1, 201)]
    for n in (10, 100, 200):
        alone = filters.crossing_probability(odds=odds, steps_allowed=[n] * (n - 1) + [limits[n - 1]])
        assert 0 < alone <= delta
    assert filters.crossing_probability(odds=odds, steps_allowed=limits) > 4 * delta


def test_the_odometer_holds_at_all_times_at_once() -> None:
    odds, delta = Fraction(11, 10), Fraction(1, 20)
    epsilon = ln_upper(odds)
    levels = tuple(Fraction(2**j, 100) for j in range(9))
    odometer = ConcentratedOdometer(levels=levels, delta=delta)
    limits = []
    for n in range(1, 401):
        reading = odometer.reading(n * epsilon**2 / 2)
        assert reading is not None
        limits.append(floor(reading / epsilon))
    assert 0 < filters.crossing_probability(odds=odds, steps_allowed=limits) <= delta
    assert odometer.reading(levels[-1]) is not None and odometer.reading(levels[-1] + 1) is None
    readings = [odometer.reading(level) for level in levels]
    assert readings == sorted(r for r in readings if r is not None)


def test_crossing_by_hand() -> None:
    # odds 2: above +1 after step 2 only by two likely answers; above 0 after step 1 by one
    assert filters.crossing_probability(odds=Fraction(2), steps_allowed=[1, 1]) == Fraction(4, 9)
    assert filters.crossing_probability(odds=Fraction(2), steps_allowed=[0, 1]) == Fraction(2, 3)


def test_random_adversaries_stop_exactly_at_the_budget() -> None:
    chance = random.Random(4)
    for _ in range(40):
        state = LedgerFilter.of(epsilon=Fraction(chance.randrange(1, 300), 100), delta=chance.choice([Fraction(0), Fraction(1, 10**8)]))
        pure = state.epsilon_odometer() is not None
        total = Fraction(0)
        for _ in range(200):
            event = Event.pure(Fraction(chance.randrange(1, 60), 100)) if pure else Event(None, Fraction(chance.randrange(1, 60), 10**4))
            amount = event.loss(state.budget.account)
            assert state.admits(event) is ((total + amount) * LOSS_UNITS <= state.budget.loss_total)
            if state.admits(event):
                # the next charge depends on the past: after an admission, ask for what is left
                state, total = state.charged(event), total + amount
        if pure:
            assert state.epsilon_odometer() == total
        with pytest.raises(BudgetRefused):
            state.charged(Event(epsilon=Fraction(1000), rho=Fraction(1000)))


@pytest.mark.parametrize(
    "call",
    [
        lambda: AdvancedFilter(epsilon=Fraction(0), delta_slack=Fraction(1, 10)),
        lambda: AdvancedFilter(epsilon=Fraction(1), delta_slack=Fraction(0)),
        lambda: AdvancedFilter(epsilon=Fraction(1), delta_slack=Fraction(1, 10)).admits(epsilon=Fraction(-1)),
        lambda: ConcentratedOdometer(levels=(), delta=Fraction(1, 10)),
        lambda: ConcentratedOdometer(levels=(Fraction(2), Fraction(1)), delta=Fraction(1, 10)),
        lambda: filters.crossing_probability(odds=Fraction(1, 2), steps_allowed=[1]),
    ],
)
def test_refusals(call: Callable[[], object]) -> None:
    with pytest.raises(LapwingError) as refusal:
        call()
    assert refusal.value.code == "theory-argument"
