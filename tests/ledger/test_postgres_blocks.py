"""Balances of blocks of time on PostgreSQL, against an array with one element for each block and one for each year."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import pytest

from lapwing.errors import BudgetRefused
from lapwing.kernel.accounting import Budget, Cost, admits
from lapwing.kernel.blocks import BlockCost
from lapwing.ledger.block_balances import BLOCK_MAX, BLOCK_MIN, BLOCKS_IN_YEAR, BlockTerms
from lapwing.ledger.postgres.anchors import FileAnchors
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.postgres.verify import verify
from tests.ledger.pg import Place
from tests.ledger.support import approximate_budget, pure_budget, request, union_budget

ACCOUNTS = {"pure": pure_budget(4 * 10**15), "approximate": approximate_budget(3), "union": union_budget(3)}
WINDOW = range(-40, 60)
"""The blocks that the tests charge: on both sides of an edge of the tree."""
CHARGES = 700


class Arrays:
    """What is spent, with one element for each block and one for each year, by its last block."""

    def __init__(self, budget: Budget, terms: BlockTerms) -> None:
        self.budget, self.cap, self.longer = budget, terms.person_budget(budget), BLOCKS_IN_YEAR[terms.every] - 1
        self.standing = Cost.zero()
        self.blocks = dict.fromkeys(WINDOW, Cost.zero())
        self.years = dict.fromkeys([*range(WINDOW[0] - 2, WINDOW[-1] + self.longer + 2), BLOCK_MIN, BLOCK_MAX], Cost.zero())

    def outcome(self, ranges: Sequence[BlockCost], person: Cost, *, charge: bool) -> str:
        parts = {number: each.cost for each in ranges if each.first is not None for number in range(each.first, (each.last or 0) + 1)}
        standing = next((each.cost for each in ranges if each.first is None), None)
        years = [year for year in self.years if standing is not None or any(year - self.longer <= number <= year for number in parts)]
        if standing is not None and not admits(self.budget, spent=self.standing, cost=standing):
            return "budget-exceeded"
        if not all(admits(self.budget, spent=self.blocks[number], cost=cost) for number, cost in parts.items()):
            return "block-budget"
        if self.cap is not None and not all(admits(self.cap, spent=self.years[year], cost=person) for year in years):
            return "person-cap"
        if charge:
            self.standing += standing or Cost.zero()
            for number, cost in parts.items():
                self.blocks[number] += cost
            for year in years:
                self.years[year] += person
        return "permit"


def some_ranges(rng: random.Random, budget: Budget) -> tuple[tuple[BlockCost, ...], Cost]:
    if rng.random() < 0.5:
        first = rng.choice(WINDOW)
        edges = [first, min(first + rng.randrange(9), WINDOW[-1])]
    else:
        edges = sorted(rng.sample(WINDOW, 2 * rng.choice([1, 1, 2, 3])))
    ranges = [BlockCost(first, last, some_cost(rng, budget)) for first, last in zip(edges[::2], edges[1::2], strict=True)]
    if rng.random() < 0.1:
        ranges = ranges * (rng.random() < 0.5) + [BlockCost(None, None, some_cost(rng, budget))]
    return tuple(ranges), some_cost(rng, budget)


def some_cost(rng: random.Random, budget: Budget) -> Cost:
    """Cheap in one amount and expensive in another, so that another amount is the first to run out in each block."""
    share = rng.choice([8, 20, 60, 500])
    loss, delta = budget.loss_total // share + rng.randrange(3), budget.delta_total // (5 if share == 500 else rng.choice([90, 10**9]))
    if budget.pure_total is None:
        return Cost(loss=loss, delta=delta)
    kind = rng.random()
    if kind < 0.05:
        return Cost(loss=loss, delta=0)
    if kind < 0.5:
        return Cost(loss=budget.loss_total // 3, delta=0, pure=budget.pure_total // 200)
    return Cost(loss=budget.loss_total // 200, delta=delta, pure=budget.pure_total // 3)


@pytest.mark.parametrize("cap", [Fraction(3), None], ids=["cap", "none"])
@pytest.mark.parametrize("account", ACCOUNTS)
def test_the_tree_agrees_with_arrays(place: Place, account: str, cap: Fraction | None) -> None:
    with place.create(ACCOUNTS[account]) as ledger:
        seen = walk(ledger, account, cap, steps=CHARGES)
        assert verify(ledger.connection, place.source_id, anchors=place.anchors).problems == ()
    assert seen["permit"] > 20 and seen["block-budget" if cap is None else "person-cap"] > 20, seen


def walk(ledger: PostgresLedger, account: str, cap: Fraction | None, *, steps: int) -> Counter[str]:
    """Charge and ask about random ranges, and compare each outcome with the arrays, and all balances at the end."""
    budget, rng, seen = ACCOUNTS[account], random.Random(f"{account} {cap}"), Counter[str]()
    arrays = Arrays(budget, BlockTerms("month", cap))
    ledger.declare_blocks(BlockTerms("month", cap), read=None, units=1, reason="blocks")
    for number in range(steps):
        ranges, person = some_ranges(rng, budget)
        if rng.random() < 0.5:
            expected = arrays.outcome(ranges, person, charge=False)
            assert asked(ledger, ranges, person) == expected
        else:
            expected = arrays.outcome(ranges, person, charge=True)
            assert charged(ledger, str(number), ranges, person) == expected
        seen[expected] += 1
    agree(ledger, arrays)
    return seen


def asked(ledger: PostgresLedger, ranges: tuple[BlockCost, ...], person: Cost | None) -> str:
    try:
        ledger.require_payable("ana", Cost(loss=1, delta=0), ranges, person)
    except BudgetRefused as refusal:
        return refusal.code
    return "permit"


def charged(ledger: PostgresLedger, key: str, ranges: tuple[BlockCost, ...], person: Cost | None) -> str:
    try:
        permit = ledger.reserve(replace(request(key), ranges=ranges, person=person))
    except BudgetRefused as refusal:
        return refusal.code
    assert type(permit).__name__ == "Permit"
    return "permit"


def agree(ledger: PostgresLedger, arrays: Arrays) -> None:
    spending = ledger.blocks()
    assert spending is not None and ledger.balance().spent == arrays.standing
    for number, cost in arrays.blocks.items():
        assert next((each.cost for each in spending.ranges if each.first <= number <= each.last), Cost.zero()) == cost  # type: ignore[operator]
    most = [max(year.loss for year in arrays.years.values()), max(year.delta for year in arrays.years.values())]
    assert [spending.person.loss, spending.person.delta] == most
    pures = [year.pure for year in arrays.years.values()]
    assert spending.person.pure == (None if None in pures else max(pure or 0 for pure in pures))


def test_processes_that_charge_the_same_blocks_at_once_never_overspend(place: Place) -> None:
    """All of them read block 5, which can pay for fewer than they ask for."""
    with place.create(pure_budget(40)) as ledger:
        ledger.declare_blocks(BlockTerms("day", None), read=None, units=1, reason="blocks")
        assert isinstance(place.anchors, FileAnchors)
        command = [sys.executable, "-m", "tests.ledger.blocks_client", place.dsn, place.source_id, str(place.anchors.directory)]
        clients = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
        permits = [int(client.communicate(timeout=300)[0]) for client in clients]
        assert sum(permits) == 40
        spending = ledger.blocks()
        assert spending is not None and spending.most(5, 5).loss == 40 == spending.person.loss
        assert verify(ledger.connection, place.source_id, anchors=place.anchors).problems == ()
