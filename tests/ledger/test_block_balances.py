"""Balances of blocks as step functions, against arrays with one number for each block and each year."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.errors import LedgerError
from lapwing.kernel.accounting import Budget, Cost, admits, budget_for
from lapwing.kernel.blocks import BlockCost
from lapwing.ledger.block_balances import (
    BLOCK_MAX,
    BLOCK_MIN,
    BLOCKS_IN_YEAR,
    BlockBalances,
    BlockCharge,
    BlockTerms,
    Steps,
    most_of,
    standing_cost,
)
from tests.ledger.support import approximate_budget, pure_budget, union_budget

BLOCKS = range(-8, 25)
ALL = range(-8 - 12, 25 + 24)
BUDGETS = st.sampled_from([pure_budget(40), approximate_budget(1), union_budget(1)])
PARTS = 8


@st.composite
def raised(draw: st.DrawFn) -> tuple[int, int, tuple[int, int, int | None]]:
    """A range and a cost in parts of a budget."""
    first, last = sorted((draw(st.integers(BLOCKS[0], BLOCKS[-1])), draw(st.integers(BLOCKS[0], BLOCKS[-1]))))
    return first, last, (draw(st.integers(0, 3)), draw(st.integers(0, 1)), draw(st.sampled_from((0, 1, 2, None))))


def cost_of(budget: Budget, parts: tuple[int, int, int | None]) -> Cost:
    loss, delta, pure = parts
    least = None if pure is None else pure * (budget.pure_total or budget.loss_total) // PARTS
    return Cost(loss * budget.loss_total // PARTS, delta * budget.delta_total // PARTS, least)


def spent(costs: list[Cost]) -> Cost:
    return sum(costs, Cost.zero())


@settings(max_examples=200, deadline=None)
@given(BUDGETS, st.lists(raised(), max_size=12), st.integers(0, 12), raised())
def test_steps_are_an_array(
    budget: Budget, history: list[tuple[int, int, tuple[int, int, int | None]]], at_once: int, asked: object
) -> None:
    """Some ranges are raised when it is made, the others one by one; both give the same sums."""
    ranges = [(first, last, cost_of(budget, parts)) for first, last, parts in history]
    steps, again = Steps(ranges[:at_once]), Steps(ranges)
    for each in ranges[at_once:]:
        steps.raise_by(*each)
    found = {block: spent([cost for first, last, cost in ranges if first <= block <= last]) for block in BLOCKS}
    for one in (steps, again):
        listed = {block: each.cost for each in one.ranges() for block in range(each.first or 0, (each.last or 0) + 1)}
        assert {block: cost for block, cost in found.items() if cost != Cost.zero()} == listed
        over = one.over(-5, 20)
        assert [each.first for each in over] == [-5, *((each.last or 0) + 1 for each in over[:-1])] and over[-1].last == 20
        assert {block: each.cost for each in over for block in range(each.first or 0, (each.last or 0) + 1)} == {
            block: found[block] for block in range(-5, 21)
        }
        assert isinstance(asked, tuple)
        first, last, cost = asked[0], asked[1], cost_of(budget, asked[2])
        assert one.admit(budget, first, last, cost) == all(
            admits(budget, spent=found[block], cost=cost) for block in range(first, last + 1)
        )
    assert steps.ranges() == again.ranges()


@settings(max_examples=100, deadline=None)
@given(BUDGETS, st.lists(st.tuples(st.lists(raised(), max_size=2), st.booleans(), st.integers(1, 3)), max_size=8), st.integers(0, 8))
def test_what_a_person_loses_is_a_sum_over_each_year(
    budget: Budget, history: list[tuple[list[tuple[int, int, tuple[int, int, int | None]]], bool, int]], at_once: int
) -> None:
    terms = BlockTerms("month", 2 * budget.epsilon)
    charges = []
    for parts, standing, person in history:
        loses = cost_of(budget, (person, 0, person))
        ranges = [BlockCost(first, last, cost_of(budget, (1, 0, 1))) for first, last, _ in parts]
        if len(ranges) == 2 and max(each.first or 0 for each in ranges) <= min(each.last or 0 for each in ranges):
            ranges.pop()
        charges.append(BlockCharge.of([*ranges, BlockCost(None, None, loses)] if standing else ranges, loses, loses))
    balances, again = BlockBalances(terms, charges[:at_once]), BlockBalances(terms, charges)
    for charge in charges[at_once:]:
        balances.add(charge)
    windows = [range(last - BLOCKS_IN_YEAR["month"] + 1, last + 1) for last in ALL]

    def meets(each: BlockCost, window: range) -> bool:
        return (each.first or 0) <= window[-1] and window[0] <= (each.last or 0)

    def lost(window: range) -> Cost:
        return spent([one.person for one in charges if one.standing or any(meets(each, window) for each in one.ranges)])

    years = [lost(window) for window in windows]
    always = spent([charge.person for charge in charges if charge.standing])
    cap = terms.person_budget(budget)
    assert cap is not None
    for one in (balances, again):
        assert one.spending().person == most_of([*years, always])
        assert one.fit_cap(budget, terms) == all(admits(cap, spent=cost, cost=Cost.zero()) for cost in years)
    for first in (BLOCKS[0], 3, BLOCKS[-1]):
        asked = BlockCharge.of([BlockCost(first, first, cost_of(budget, (1, 0, 1)))], cost_of(budget, (2, 0, 2)), Cost.zero())
        expected = all(admits(cap, spent=cost, cost=asked.person) for window, cost in zip(windows, years, strict=True) if first in window)
        assert balances.within_cap(budget, asked) == again.within_cap(budget, asked) == expected


def test_ranges_of_a_charge_may_come_in_any_order() -> None:
    late, early = BlockCost(20, 22, Cost(1, 0)), BlockCost(1, 2, Cost(1, 0))
    charge = BlockCharge.of([late, BlockCost(None, None, Cost(2, 0)), early], Cost(3, 0), Cost(4, 0))
    assert charge.ranges == (early, late) and charge.standing
    assert BlockCharge.of([late, early], Cost(3, 0), Cost(4, 0)).years("month") == [(1, 13), (20, 33)]
    assert BlockCharge.of([late, BlockCost(12, 13, Cost(1, 0))], Cost(3, 0), Cost(4, 0)).years("month") == [(12, 33)]
    assert charge.years("month") == [(BLOCK_MIN, BLOCK_MAX)]


def test_a_charge_without_ranges_is_paid_by_the_standing_block_and_concerns_a_person_in_every_year() -> None:
    charge = BlockCharge.of((), None, Cost(4, 0))
    assert (charge.ranges, charge.person, charge.standing) == ((), Cost(4, 0), True)
    assert standing_cost((), Cost(4, 0)) == Cost(4, 0)
    assert standing_cost([BlockCost(1, 2, Cost(3, 0))], Cost(4, 0)) == Cost.zero()
    assert standing_cost([BlockCost(1, 2, Cost(3, 0)), BlockCost(None, None, Cost(2, 0))], Cost(4, 0)) == Cost(2, 0)


def test_the_last_blocks_that_a_ledger_keeps_have_a_year_too() -> None:
    balances = BlockBalances(BlockTerms("day", Fraction(1)))
    balances.add(BlockCharge.of([BlockCost(BLOCK_MAX - 1, BLOCK_MAX, Cost(1, 0))], Cost(2, 0), Cost(2, 0)))
    assert balances.spending().ranges == (BlockCost(BLOCK_MAX - 1, BLOCK_MAX, Cost(1, 0)),)
    assert balances.spending().person == Cost(2, 0)
    for first, last in ((BLOCK_MIN - 1, 0), (0, BLOCK_MAX + 1), (3, 2)):
        with pytest.raises(LedgerError) as refused:
            Steps([(first, last, Cost(1, 0))])
        assert refused.value.code == "block-invalid"


def test_the_most_that_a_block_of_a_range_has_spent() -> None:
    balances = BlockBalances(BlockTerms("month", None))
    balances.add(BlockCharge.of([BlockCost(3, 5, Cost(4, 0, 1)), BlockCost(7, 9, Cost(1, 6, None))], Cost(9, 9), Cost(9, 9)))
    spending = balances.spending()
    assert spending.most(0, 2) == Cost.zero() and spending.most(5, 6) == Cost(4, 0, 1)
    assert spending.most(5, 7) == Cost(4, 6, None) and spending.most(10, 99) == Cost.zero()
    assert spending.terms.person_budget(approximate_budget(1)) is None


def test_a_cap_has_the_deltas_and_the_order_of_the_budget() -> None:
    for budget in (approximate_budget(1), union_budget(1), pure_budget(40)):
        cap = BlockTerms("day", Fraction(3)).person_budget(budget)
        assert cap is not None and cap.epsilon == 3
        assert (cap.delta_keys, cap.delta_conversion, cap.order) == (budget.delta_keys, budget.delta_conversion, budget.order)
    keyless = budget_for(epsilon=Fraction(1), delta=Fraction(1, 10**6), delta_keys_share=Fraction(0))
    cap = BlockTerms("day", Fraction(3)).person_budget(keyless)
    assert cap is not None and cap.delta_total == 0
