"""What blocks of time have spent, and what one person loses over a year of them.

Every block has the budget of the data set. A charge names ranges of blocks, and is admitted if every block of them can pay. Beside the
balances of blocks stands what one person loses: over each stretch of blocks that is a year long, and over the tables without time, the sum
of what the charges cost a person that read any of them. A cap on that is another budget, for the same sums.

Balances are step functions over the numbers of blocks: a charge adds to a range, and what matters is the most in a range.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate

from lapwing.errors import LedgerError
from lapwing.kernel.accounting import Budget, Cost, admits, budget_for
from lapwing.kernel.blocks import BlockCost

BLOCKS_IN_YEAR = {"day": 366, "week": 53, "month": 12}
"""How many blocks in a row are a year, by their period."""
BLOCK_MIN, BLOCK_MAX = -(2**16), 2**16 - 1
"""The blocks that a ledger can keep: days from 1790 to 2149."""


@dataclass(frozen=True, slots=True)
class BlockTerms:
    """What the owner declared of blocks of time, as the ledger keeps it."""

    every: str
    """Their period: a key of ``BLOCKS_IN_YEAR``."""
    person_cap: Fraction | None
    """The most epsilon that one person may lose over a year; None if the owner sets no cap."""

    def person_budget(self, budget: Budget) -> Budget | None:
        """The cap as a budget with the deltas of the budget of one block."""
        if self.person_cap is None:
            return None
        share = budget.delta_keys / budget.delta if budget.delta else Fraction(0)
        return budget_for(epsilon=self.person_cap, delta=budget.delta, delta_keys_share=share, order=budget.order)


@dataclass(frozen=True, slots=True)
class BlockSpending:
    """What is spent of the budgets of blocks, for people to read and for the planner."""

    terms: BlockTerms
    ranges: tuple[BlockCost, ...]
    """What each block of these ranges has spent; in order, and blocks that are in none have spent nothing."""
    person: Cost
    """The most that one person has lost over a year."""

    def most(self, first: int, last: int) -> Cost:
        """The most of each amount that any of these blocks has spent."""
        return most_of(each.cost for each in self.ranges if _of(each.first) <= last and first <= _of(each.last))


class Steps:
    """A step function from block numbers to costs: zero at first, and raised over ranges.

    Amounts are in lists of their own, so that raising a range of thousands of steps takes a fraction of a millisecond.
    """

    __slots__ = ("_amounts", "_starts")

    def __init__(self, raised: Iterable[tuple[int, int, Cost]] = ()) -> None:
        """The sum of all ``raised`` ranges (first, last, cost), in one pass."""
        edges: defaultdict[int, list[int]] = defaultdict(lambda: [0] * _AMOUNTS)
        for first, last, cost in raised:
            _require_range(first, last)
            amounts = _amounts(cost)
            edges[first] = [before + amount for before, amount in zip(edges[first], amounts, strict=True)]
            edges[last + 1] = [before - amount for before, amount in zip(edges[last + 1], amounts, strict=True)]
        self._starts = sorted({BLOCK_MIN, *edges})
        changes = [edges.get(start, [0] * _AMOUNTS) for start in self._starts]
        self._amounts = [list(accumulate(column)) for column in zip(*changes, strict=True)]

    def raise_by(self, first: int, last: int, cost: Cost) -> None:
        """Add a cost to every block from ``first`` to ``last``."""
        _require_range(first, last)
        begin, end = self._split(first), self._split(last + 1)
        for values, amount in zip(self._amounts, _amounts(cost), strict=True):
            if amount:
                values[begin:end] = [value + amount for value in values[begin:end]]

    def admit(self, budget: Budget, first: int, last: int, cost: Cost) -> bool:
        """Whether a budget of each of these blocks can pay the cost after what its block has spent."""
        _require_range(first, last)
        place = slice(bisect_right(self._starts, first) - 1, bisect_right(self._starts, last))
        loss, delta, pure, unbounded = (values[place] for values in self._amounts)
        most = Cost(loss=max(loss), delta=max(delta))
        if admits(replace(budget, pure_total=None), spent=most, cost=cost):
            return True
        each = zip(loss, delta, pure, unbounded, strict=True)
        return budget.pure_total is not None and all(admits(budget, spent=_cost(*amounts), cost=cost) for amounts in set(each))

    def over(self, first: int, last: int) -> list[BlockCost]:
        """Its steps from block ``first`` to block ``last``, those where it is zero too."""
        _require_range(first, last)
        place = bisect_right(self._starts, first) - 1
        starts = [first, *(start for start in self._starts[place + 1 :] if start <= last)]
        ends = [*(start - 1 for start in starts[1:]), last]
        amounts = zip(*(values[place:] for values in self._amounts), strict=True)
        return [BlockCost(start, end, _cost(*each)) for start, end, each in zip(starts, ends, amounts, strict=False)]

    def ranges(self) -> tuple[BlockCost, ...]:
        """The ranges where it is not zero."""
        found: list[BlockCost] = []
        ends = [*self._starts[1:], BLOCK_MAX + 1]
        for first, after, *amounts in zip(self._starts, ends, *self._amounts, strict=True):
            cost = _cost(*amounts)
            if found and found[-1].last == first - 1 and found[-1].cost == cost:
                found[-1] = BlockCost(found[-1].first, after - 1, cost)
            elif cost != Cost.zero() and first < after:
                found.append(BlockCost(first, after - 1, cost))
        return tuple(found)

    def _split(self, at: int) -> int:
        """The place of the step that starts at this block, which is made if there is none."""
        place = bisect_left(self._starts, at)
        if place == len(self._starts) or self._starts[place] != at:
            self._starts.insert(place, at)
            for values in self._amounts:
                values.insert(place, values[place - 1])
        return place


_AMOUNTS = 4
"""Loss, delta, pure epsilon, and how many costs had no pure epsilon."""


def _amounts(cost: Cost) -> tuple[int, int, int, int]:
    return cost.loss, cost.delta, cost.pure or 0, int(cost.pure is None)


def _cost(loss: int, delta: int, pure: int, unbounded: int) -> Cost:
    return Cost(loss=loss, delta=delta, pure=None if unbounded else pure)


@dataclass(frozen=True, slots=True)
class BlockCharge:
    """What one charge adds: to ranges of blocks, and to what a person loses. Tables without time are no range: the ledger keeps them."""

    ranges: tuple[BlockCost, ...]
    person: Cost
    standing: bool
    """Whether it reads tables without time, so that it concerns a person in every year."""

    @classmethod
    def of(cls, ranges: Sequence[BlockCost], person: Cost | None, cost: Cost) -> BlockCharge:
        """The charge of a request: one without ranges is paid by the standing block as a whole. Ranges of time do not overlap."""
        of_time = tuple(sorted((each for each in ranges if each.first is not None), key=lambda each: _of(each.first)))
        return cls(of_time, cost if person is None else person, len(of_time) < len(ranges) or not ranges)

    def years(self, every: str) -> list[tuple[int, int]]:
        """The last blocks of the years that it concerns, as ranges that do not meet."""
        if self.standing:
            return [(BLOCK_MIN, BLOCK_MAX)]
        longer, years = BLOCKS_IN_YEAR[every] - 1, list[tuple[int, int]]()
        for each in self.ranges:
            first, last = _of(each.first), min(_of(each.last) + longer, BLOCK_MAX)
            if years and first <= years[-1][1]:
                years[-1] = years[-1][0], last
            else:
                years.append((first, last))
        return years


class BlockBalances:
    """The balances of all blocks, and what one person loses over each year, named by its last block."""

    __slots__ = ("_blocks", "_years", "terms")

    def __init__(self, terms: BlockTerms, charges: Iterable[BlockCharge] = ()) -> None:
        listed = list(charges)
        self.terms = terms
        self._blocks = Steps((_of(each.first), _of(each.last), each.cost) for charge in listed for each in charge.ranges)
        self._years = Steps((first, last, charge.person) for charge in listed for first, last in charge.years(terms.every))

    def add(self, charge: BlockCharge) -> None:
        """Count a charge."""
        for each in charge.ranges:
            self._blocks.raise_by(_of(each.first), _of(each.last), each.cost)
        for first, last in charge.years(self.terms.every):
            self._years.raise_by(first, last, charge.person)

    def can_pay(self, budget: Budget, charge: BlockCharge) -> bool:
        """Whether every block of the charge can pay its part."""
        return all(self._blocks.admit(budget, _of(each.first), _of(each.last), each.cost) for each in charge.ranges)

    def within_cap(self, budget: Budget, charge: BlockCharge) -> bool:
        """Whether no person loses more over a year than the owner's cap, if there is one."""
        cap = self.terms.person_budget(budget)
        return cap is None or all(self._years.admit(cap, first, last, charge.person) for first, last in charge.years(self.terms.every))

    def fit(self, budget: Budget) -> bool:
        """Whether no block has spent more than this budget."""
        return self._blocks.admit(budget, BLOCK_MIN, BLOCK_MAX, Cost.zero())

    def fit_cap(self, budget: Budget, terms: BlockTerms) -> bool:
        """Whether no person has lost more over a year than the cap of these terms, if there is one."""
        cap = terms.person_budget(budget)
        return cap is None or self._years.admit(cap, BLOCK_MIN, BLOCK_MAX, Cost.zero())

    def over(self, first: int, last: int) -> list[BlockCost]:
        """What each of these blocks has spent; ranges that cover all of them."""
        return self._blocks.over(first, last)

    def least_of_a_person(self, years: Iterable[tuple[int, int]]) -> Cost:
        """The least of each amount that one person has lost over any of these years, without a pure amount."""
        found = [each.cost for first, last in years for each in self._years.over(first, last)]
        return Cost(loss=min(cost.loss for cost in found), delta=min(cost.delta for cost in found))

    def spending(self) -> BlockSpending:
        """All of it, to read."""
        return BlockSpending(self.terms, self._blocks.ranges(), most_of(each.cost for each in self._years.ranges()))


def standing_cost(ranges: Sequence[BlockCost], cost: Cost) -> Cost:
    """What the standing block pays of a plan: all of it if the plan has no ranges."""
    return cost if not ranges else sum((each.cost for each in ranges if each.first is None), Cost.zero())


def most_of(costs: Iterable[Cost]) -> Cost:
    """The most of each amount; zero of none."""
    most = Cost.zero()
    for cost in costs:
        pure = None if most.pure is None or cost.pure is None else max(most.pure, cost.pure)
        most = Cost(loss=max(most.loss, cost.loss), delta=max(most.delta, cost.delta), pure=pure)
    return most


def _of(number: int | None) -> int:
    assert number is not None, "the standing block has no number"
    return number


def _require_range(first: int, last: int) -> None:
    if not BLOCK_MIN <= first <= last <= BLOCK_MAX:
        raise LedgerError("block-invalid", "a ledger keeps blocks of the years 1790 to 2149 only")
