"""The union of a pure and a Rényi filter against the best adaptive adversary of a finite class, computed exactly.

The adversary picks each mechanism from what was answered before; the filter admits it while the product of odds *or* the product of moments
is within its total. All numbers are fractions, and so is the largest hockey-stick divergence that any strategy reaches.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import prod

import pytest

from lapwing.kernel.accounting import LOSS_UNITS, budget_for, pure_at_order, rho_at_order, rho_for
from lapwing.kernel.event import Event
from lapwing.kernel.numbers import exp_lower, ln_lower, ln_upper
from lapwing.theory.divergences import hockey_stick, renyi_power
from lapwing.theory.filters import LedgerFilter
from tests.support.sizes import size

ODDS = Fraction(3)
"""``exp(epsilon)`` of the promise."""
DEPTH = size("adversary of the union of filters, statements")


@dataclass(frozen=True, slots=True)
class Table:
    """A mechanism of finitely many answers: the probability of each in the one world and in the other."""

    first: tuple[Fraction, ...]
    second: tuple[Fraction, ...]

    @property
    def odds(self) -> Fraction:
        return max(max(p / q, q / p) for p, q in zip(self.first, self.second, strict=True))

    def moment(self, order: int) -> Fraction:
        first, second = dict(enumerate(self.first)), dict(enumerate(self.second))
        moments = [renyi_power(first, second, order=order), renyi_power(second, first, order=order)]
        return max(moment for moment in moments if moment is not None)

    def turned(self) -> Table:
        return Table(self.second, self.first)


def response(odds: Fraction) -> Table:
    likely = odds / (1 + odds)
    return Table((likely, 1 - likely), (1 - likely, likely))


def table(first: Sequence[int], second: Sequence[int]) -> Table:
    return Table(tuple(Fraction(n, sum(first)) for n in first), tuple(Fraction(n, sum(second)) for n in second))


BELL = table((1, 4, 6, 4, 1), (4, 6, 4, 1, 1))
"""Like a shifted bell: large odds where it is thin."""
RARE = table((20, 980), (1, 999))
"""Nearly nothing, and once in a while nearly everything: more odds than the promise has, and a small moment."""
MENU = (response(Fraction(3, 2)), response(Fraction(2)), response(Fraction(3)), BELL, RARE, RARE.turned())
Rule = Callable[[tuple[Table, ...]], bool]


def delta_of(order: int, moment: Fraction, *, odds: Fraction = ODDS) -> Fraction:
    """What a product of moments of at most ``moment`` promises at the odds: step 3 of the proof, exact for an integer order."""
    worst = (1 - Fraction(1, order)) ** order / (order - 1)
    return worst * moment / odds ** (order - 1)


def union(order: int, moment: Fraction, *, odds: Fraction = ODDS) -> Rule:
    """The filter: one product within its total is enough, and both count every mechanism."""

    def admitted(path: tuple[Table, ...]) -> bool:
        return prod(t.odds for t in path) <= odds or prod(t.moment(order) for t in path) <= moment

    return admitted


def best_adversary(rule: Rule, *, depth: int, menu: Sequence[Table] = MENU, odds: Fraction = ODDS) -> Fraction:
    """The largest delta at the odds over all adaptive strategies whose every path is admitted. Exact: recursion on the odds to go."""
    may = cache(rule)

    @cache
    def value(path: tuple[Table, ...], target: Fraction) -> Fraction:
        best = max(Fraction(0), 1 - target)
        if len(path) < depth:
            for item in menu:
                longer = (*path, item)
                if may(longer):
                    answers = zip(item.first, item.second, strict=True)
                    best = max(best, sum((p * value(longer, target * q / p) for p, q in answers), Fraction(0)))
        return best

    return value((), odds)


TOTALS = [(2, Fraction(3, 2)), (2, Fraction(7, 4)), (2, Fraction(2)), (3, Fraction(8)), (4, Fraction(12))]


@pytest.mark.parametrize(("order", "moment"), TOTALS)
def test_no_adaptive_strategy_passes_the_promise(order: int, moment: Fraction) -> None:
    found = best_adversary(union(order, moment), depth=DEPTH)
    assert 0 < found <= delta_of(order, moment)


def test_no_game_of_many_passes_the_promise() -> None:
    """Random menus, with totals that some of their sequences fill to the last unit; some games come near the promise."""
    chosen = random.Random(20261115)
    nearest = Fraction(0)
    for _ in range(size("adversary of the union of filters, games")):
        odds, order = Fraction(chosen.choice((2, 3, 4, 6))), chosen.choice((2, 2, 3, 4, 6))
        weights = [[chosen.choice((1, 1, 2, 3, 5, 8, 13, 40, 100)) for _ in range(3)] for _ in range(6)]
        menu = [table(weights[i], weights[i + 1]) for i in (0, 2, 4)] + [response(odds), response(Fraction(chosen.randint(11, 40), 10))]
        moment = prod((chosen.choice(menu).moment(order) for _ in range(chosen.choice((1, 2, 3)))), start=Fraction(1))
        promised = delta_of(order, moment, odds=odds)
        found = best_adversary(union(order, moment, odds=odds), depth=3, menu=menu, odds=odds)
        assert found <= promised
        nearest = max(nearest, found / promised)
    assert nearest > Fraction(1, 2)


def test_the_search_reaches_both_sides_of_the_union() -> None:
    """The union admits what neither filter admits alone, and a strategy may leave the one for the other."""
    order, moment = 2, Fraction(2)
    rule = union(order, moment)
    pure_only = (response(Fraction(3)),)
    moment_only = (RARE, RARE.turned())
    both = (response(Fraction(3, 2)), BELL)
    assert rule(pure_only) and pure_only[0].moment(order) > moment - 1
    assert rule(moment_only) and prod(t.odds for t in moment_only) > ODDS
    assert not rule((*pure_only, *pure_only))
    assert rule(both[:1]) and prod(t.odds for t in both[:1]) <= ODDS


def forgets_what_the_pure_sum_admitted(order: int, moment: Fraction) -> Rule:
    """A wrong filter: a charge that the pure sum admits is not counted in the moment."""

    def admitted(path: tuple[Table, ...]) -> bool:
        odds, moments = Fraction(1), Fraction(1)
        for item in path:
            if odds * item.odds <= ODDS:
                odds *= item.odds
            elif moments * item.moment(order) <= moment:
                moments *= item.moment(order)
            else:
                return False
        return True

    return admitted


def forgets_the_others_in_the_pure_sum(order: int, moment: Fraction) -> Rule:
    """A wrong filter: the product of odds leaves out what has more odds than the promise."""

    def admitted(path: tuple[Table, ...]) -> bool:
        return prod(t.odds for t in path if t.odds <= ODDS) <= ODDS or prod(t.moment(order) for t in path) <= moment

    return admitted


def looks_at_the_last_alone(order: int, moment: Fraction) -> Rule:
    """A wrong filter: each charge is compared with the totals, and no sum is kept."""
    return lambda path: all(t.odds <= ODDS or t.moment(order) <= moment for t in path)


@pytest.mark.parametrize("wrong", [forgets_what_the_pure_sum_admitted, forgets_the_others_in_the_pure_sum, looks_at_the_last_alone])
def test_wrong_unions_are_refuted(wrong: Callable[[int, Fraction], Rule]) -> None:
    """Both sums must count every charge: the search finds a strategy against each way of leaving one out."""
    refuted = [best_adversary(wrong(order, moment), depth=3) > delta_of(order, moment) for order, moment in TOTALS[:3]]
    assert any(refuted)


CHOICES = [Fraction(11, 10), Fraction(3, 2), Fraction(2), Fraction(3)]
EVENTS = {odds: Event.pure(ln_upper(odds)) for odds in CHOICES}


@pytest.mark.parametrize(("epsilon", "delta", "order"), [(Fraction(1), Fraction(1, 20), 4), (Fraction(2), Fraction(1, 50), 3)])
def test_the_ledgers_own_union_keeps_its_promise(epsilon: Fraction, delta: Fraction, order: int) -> None:
    """The filter in the kernel's integer units, with the Rényi amounts it charges for pure mechanisms."""
    start = LedgerFilter.of(epsilon=epsilon, delta=delta, delta_keys_share=Fraction(0), order=order)
    odds = Fraction(int(exp_lower(epsilon) * 2**40), 2**40)

    @cache
    def value(state: LedgerFilter, left: int, target: Fraction) -> Fraction:
        best = max(Fraction(0), 1 - target)
        if left:
            for o, event in EVENTS.items():
                if state.admits(event):
                    after, likely = state.charged(event), o / (1 + o)
                    best = max(best, likely * value(after, left - 1, target / o) + (1 - likely) * value(after, left - 1, target * o))
        return best

    assert value(start, DEPTH + 2, odds) <= delta


@pytest.mark.parametrize("order", [2, 3, 8, 32, 64])
@pytest.mark.parametrize("odds", [Fraction(101, 100), Fraction(3, 2), Fraction(3), Fraction(50)])
def test_randomised_response_attains_the_renyi_amount_of_a_pure_mechanism(order: int, odds: Fraction) -> None:
    """``pure_at_order`` is never below the exact divergence of randomised response, and above it by next to nothing."""
    exact = ln_upper(response(odds).moment(order)) / (order - 1) / order
    charged = pure_at_order(order, ln_upper(odds))
    assert exact * (1 - Fraction(1, 10**30)) <= charged <= exact * (1 + Fraction(1, 10**30)) + Fraction(2, 10**40)


@pytest.mark.parametrize("order", [2, 3, 5])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_laplace_noise_is_below_the_renyi_amount_that_is_charged(order: int, size: int) -> None:
    """Discrete Laplace at a rational decay, cut at both ends so that it is a table: exact moments of a shift, against the charge."""
    decay, ends = Fraction(2, 3), 40
    weights = [decay ** abs(z) for z in range(-ends, ends + size + 1)]
    shifted = [decay ** abs(z - size) for z in range(-ends, ends + size + 1)]
    total = sum(weights)
    assert sum(shifted) == total  # symmetric ends, so both are one law, shifted
    noise = Table(tuple(w / total for w in weights), tuple(w / total for w in shifted))
    epsilon = ln_upper(1 / decay) * size
    assert ln_upper(noise.moment(order)) / (order - 1) <= order * pure_at_order(order, epsilon)


@pytest.mark.parametrize(
    "understated",
    [
        lambda order, epsilon: pure_at_order(order, epsilon) / 2,
        lambda order, epsilon: min(pure_at_order(order, epsilon), epsilon**2 / 4),
        lambda order, epsilon: pure_at_order(order - 1, epsilon) * (order - 1) / order,
        lambda order, epsilon: pure_at_order(order, epsilon) - Fraction(1, 10**30),
    ],
)
def test_an_understated_amount_is_seen(understated: Callable[[int, Fraction], Fraction]) -> None:
    """Each is below the exact divergence of randomised response, or of Laplace noise, for some order and odds."""
    exact = {(a, o): ln_lower(response(o).moment(a)) / (a - 1) / a for a in (3, 8) for o in (Fraction(101, 100), Fraction(3))}
    assert any(understated(a, ln_upper(o)) < divergence for (a, o), divergence in exact.items())
    assert all(pure_at_order(a, ln_upper(o)) >= divergence for (a, o), divergence in exact.items())


def test_a_very_large_epsilon_is_its_own_divergence() -> None:
    assert pure_at_order(32, Fraction(10**9)) == Fraction(10**9, 32)
    assert pure_at_order(2, Fraction(0)) == 0


def test_the_order_of_a_budget_costs_gaussians_next_to_nothing() -> None:
    """At (1, 10^-8) with half of delta for keys, order 32 holds as much rho as the best order."""
    budget = budget_for(epsilon=Fraction(1), delta=Fraction(1, 10**8), order=32)
    best = rho_for(epsilon=Fraction(1), delta=Fraction(1, 2 * 10**8))
    assert budget.loss_total <= best * LOSS_UNITS <= budget.loss_total * Fraction(10001, 10000)
    assert rho_at_order(3, epsilon=Fraction(1), delta=Fraction(1, 10**8)) == 0


def test_hockey_stick_of_one_step_is_what_the_search_computes() -> None:
    only = best_adversary(lambda path: path == (BELL,), depth=1)
    laws = dict(enumerate(BELL.first)), dict(enumerate(BELL.second))
    assert only == hockey_stick(*laws, odds=ODDS)
