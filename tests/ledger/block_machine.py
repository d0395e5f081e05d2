"""A brute-force model of budgets of blocks of time, and two drivers that compare a local ledger with it: Hypothesis, and a random walk.

The model keeps every charge and adds up anew for each question: one sum for each block, and one for each stretch of twelve blocks. It knows
no steps, no cache and no anchor. While no file was restored, the ledger must decide and spend exactly as the model does. After a restore it
may have charged more than was lost: then it must refuse what the model refuses, and no balance may be below the model's.
"""

from __future__ import annotations

import importlib
import random
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import lapwing.ledger.local.ledger
from lapwing.errors import LapwingError
from lapwing.kernel.accounting import DELTA_UNITS, Account, Budget, Cost, budget_for
from lapwing.kernel.blocks import BlockCost
from lapwing.kernel.permit import Permit
from lapwing.ledger.local.ledger import LocalLedger
from tests.ledger.support import approximate_budget, ledger_path, new_ledger, open_ledger, pure_budget, request, union_budget
from tests.support.memory import roomy_memory

BLOCKS = range(-3, 33)
"""Months, with years before, inside and after them."""
YEAR = 12
WINDOWS = [range(first, first + YEAR) for first in range(BLOCKS.start - YEAR, BLOCKS.stop + YEAR + 1)]
BUDGETS = {
    "pure": [pure_budget(60), pure_budget(90)],
    "approximate": [approximate_budget(1), approximate_budget(2)],
    "union": [union_budget(1), union_budget(2)],
}
CAPS = (None, 1, 2, 3)
"""Caps of a person, as multiples of the epsilon of the smaller budget."""
PARTS = 6
"""A block can pay about so many charges of one unit."""


@dataclass(frozen=True)
class ModelCharge:
    ranges: tuple[tuple[int, int, Cost], ...]
    standing: Cost | None
    """What the standing block pays; None if the charge reads no table without time."""
    person: Cost

    def of(self, block: int) -> list[Cost]:
        return [cost for first, last, cost in self.ranges if first <= block <= last]

    def concerns(self, window: range) -> bool:
        return self.standing is not None or any(block in window for first, last, _ in self.ranges for block in range(first, last + 1))


def fits(budget: Budget, costs: Iterable[Cost]) -> bool:
    """Every amount added up for itself; with an order one of two sums is enough."""
    costs = list(costs)
    pures = [cost.pure for cost in costs if cost.loss or cost.delta or cost.pure]
    within_pure = budget.pure_total is not None and None not in pures and sum(pure or 0 for pure in pures) <= budget.pure_total
    return (sum(cost.loss for cost in costs) <= budget.loss_total or within_pure) and sum(c.delta for c in costs) <= budget.delta_total


@dataclass
class Model:
    budget: Budget
    ceiling: Budget
    cap: Fraction | None = None
    is_declared: bool = False
    charges: list[ModelCharge] = field(default_factory=list)

    def standing(self) -> list[Cost]:
        return [charge.standing for charge in self.charges if charge.standing is not None]

    def block(self, block: int) -> list[Cost]:
        return [cost for charge in self.charges for cost in charge.of(block)]

    def window(self, window: range) -> list[Cost]:
        return [charge.person for charge in self.charges if charge.concerns(window)]

    def cap_budget(self, cap: Fraction | None) -> Budget | None:
        delta, order = self.budget.delta, self.budget.order
        return None if cap is None else budget_for(epsilon=cap, delta=delta, order=order)

    def refusal(self, charge: ModelCharge) -> str | None:
        """Why all charges together with this one would be too much, or None."""
        after = replace(self, charges=[*self.charges, charge])
        if not fits(self.budget, after.standing()):
            return "budget-exceeded"
        if not self.is_declared:
            return None
        if not all(fits(self.budget, after.block(block)) for block in BLOCKS):
            return "block-budget"
        return None if after.within_cap(self.cap, [window for window in WINDOWS if charge.concerns(window)]) else "person-cap"

    def within_cap(self, cap: Fraction | None, windows: Sequence[range] = WINDOWS) -> bool:
        budget = self.cap_budget(cap)
        return budget is None or all(fits(budget, self.window(window)) for window in windows)

    def inherited(self, units: int) -> Cost:
        spent = self.standing()
        loss = sum(cost.loss for cost in spent) * (units if self.budget.account is Account.PURE else units * units)
        pures = [cost.pure for cost in spent]
        pure = None if None in pures else sum(pure or 0 for pure in pures) * units
        delta = sum(cost.delta for cost in spent)
        return Cost(loss, delta if units == 1 or not delta else DELTA_UNITS, pure)

    def declare(self, cap: Fraction | None, read: tuple[int, int] | None, units: int) -> str | None:
        if self.is_declared:
            if cap != self.cap and not self.within_cap(cap):
                return "cap-below-spent"
            self.cap = cap
            return None
        cost, limit = self.inherited(units), self.cap_budget(cap)
        if not fits(self.budget, [cost]) or not (limit is None or fits(limit, [cost])):
            return "blocks-overspent"
        ranges = () if read is None else ((*read, cost),)
        self.charges = [ModelCharge(ranges, cost, cost)] if cost != Cost.zero() else []
        self.is_declared, self.cap = True, cap
        return None

    def set_budget(self, to: Budget) -> str | None:
        everything = [self.standing(), *(self.block(block) for block in BLOCKS)]
        if not all(fits(to, costs) for costs in everything):
            return "budget-below-spent"
        self.budget = to
        return None


class Comparison:
    """One file, two uses of it, and the model. Every method does the same to both and compares."""

    def __init__(self, account: str, module: ModuleType = lapwing.ledger.local.ledger) -> None:
        self.module = module
        self.terms: Any = importlib.import_module(f"{module.__name__.rsplit('.', 2)[0]}.block_balances").BlockTerms
        self.directory = Path(tempfile.mkdtemp(dir=roomy_memory()))
        self.budgets = BUDGETS[account]
        self.model = Model(self.budgets[0], self.budgets[1])
        self.uses = [new_ledger(self.directory, budget=self.budgets[0], ceiling=self.budgets[1], module=module), self.opened()]
        self.permits: list[Permit] = []
        self.requests: list[Any] = []
        self.copied: tuple[bytes, int] | None = None
        self.is_exact = True
        self.number = 0

    def opened(self, *, override: bool = False) -> LocalLedger:
        return open_ledger(self.directory, override=override, reason="restored" if override else "", module=self.module)

    def close(self) -> None:
        for use in self.uses:
            use.disconnect()
        shutil.rmtree(self.directory)

    def unit(self, loss: int, delta: int, pure: int | None) -> Cost:
        smaller = self.budgets[0]
        least = None if pure is None or smaller.pure_total is None else pure * smaller.pure_total // PARTS
        return Cost(loss * (smaller.loss_total // PARTS), delta * (smaller.delta_total // PARTS), least)

    def reserve(self, use: int, parts: Sequence[tuple[int, int, int]], standing: int, person: int, delta: int, pure: bool) -> None:
        """Charge ``parts`` (first, last, units) and so many units to the standing block; without parts, a plan without blocks."""
        self.number += 1

        def cost(units: int) -> Cost:
            return self.unit(units, delta, units if pure else None)

        if not self.model.is_declared:
            parts = ()
        ranges = [BlockCost(first, last, cost(units)) for first, last, units in parts]
        if parts and standing:
            ranges.append(BlockCost(None, None, cost(standing)))
        whole, loses = cost(max([standing, *(units for _, _, units in parts)])), cost(person)
        if not whole.loss:
            return
        if self.model.is_declared and not ranges:  # a plan over tables without time alone
            ranges, loses = [BlockCost(None, None, whole)], whole
        if parts:
            charge = ModelCharge(tuple((*part[:2], cost(part[2])) for part in parts), cost(standing) if standing else None, loses)
        else:
            charge = ModelCharge((), whole, whole)
        asked = replace(
            request(f"key {self.number}", loss=whole.loss, delta=whole.delta, pure=whole.pure),
            ranges=tuple(ranges),
            person=loses if ranges else None,
        )
        expected = self.model.refusal(charge)
        ledger = self.uses[use % 2]
        payable = self.code(lambda: ledger.require_payable("ana", whole, asked.ranges, asked.person))
        outcome: Any = None

        def ask() -> None:
            nonlocal outcome
            outcome = ledger.reserve(asked)

        found = self.code(ask)
        assert found == payable
        if self.is_exact:
            assert found == expected, (found, expected)
        else:
            assert found is not None or expected is None
        if found is None:
            assert isinstance(outcome, Permit) and outcome.cost == whole
            self.permits.append(outcome)
            self.requests.append(asked)
            self.model.charges.append(charge)

    def ask_again(self, use: int, which: int) -> None:
        if self.requests:
            asked = self.requests[which % len(self.requests)]
            assert self.code(lambda: self.uses[use % 2].reserve(asked)) in (None, "request-in-progress", "request-forfeited")

    def settle(self, use: int, which: int, answered: bool) -> None:
        """No balance changes, whether it is committed, forfeited or refused because another use reserved it."""
        if self.permits:
            permit, ledger = self.permits[which % len(self.permits)], self.uses[use % 2]
            if answered:
                found = self.code(lambda: ledger.commit(permit, b"answer"))
            else:
                found = self.code(lambda: ledger.forfeit(permit, incident=False))
            assert found in (None, "charge-not-open")

    def declare(self, use: int, cap: int, read: tuple[int, int] | None, units: int) -> None:
        multiple = CAPS[cap % len(CAPS)]
        limit = None if multiple is None else multiple * self.budgets[0].epsilon
        before = replace(self.model)
        expected = self.model.declare(limit, read, units)
        terms = self.terms("month", limit)
        found = self.code(lambda: self.uses[use % 2].declare_blocks(terms, read=read, units=units, reason="asked"))
        if self.is_exact:
            assert found == expected
        elif found is not None:  # what was charged again may be more than was lost
            self.model = before
        else:
            assert expected is None

    def set_budget(self, use: int, to: int) -> None:
        before, budget = replace(self.model), self.budgets[to % 2]
        expected = self.model.set_budget(budget)
        found = self.code(lambda: self.uses[use % 2].set_budget(budget, reason="asked"))
        if self.is_exact:
            assert found == expected
        elif found is not None:
            self.model = before
        else:
            assert expected is None

    def reopen(self, use: int) -> None:
        self.uses[use % 2].disconnect()
        self.uses[use % 2] = self.opened()

    def copy(self) -> None:
        self.copied = ledger_path(self.directory).read_bytes(), len(self.requests)

    def put_back(self) -> None:
        """The file as it was when it was copied; the registry knows what was lost."""
        if self.copied is None:
            return
        for use in self.uses:
            use.disconnect()
        content, known = self.copied
        is_older = ledger_path(self.directory).read_bytes() != content
        ledger_path(self.directory).write_bytes(content)
        self.permits, self.requests, self.copied = [], self.requests[:known], None
        self.uses = [self.opened(override=is_older), self.opened()]
        self.is_exact = False

    def lose(self) -> None:
        """The file is lost, and made anew with what the registry knows."""
        for use in self.uses:
            use.disconnect()
        ledger_path(self.directory).unlink()
        make_anew = importlib.import_module(f"{self.module.__package__}.restoring").make_anew
        make_anew(ledger_path(self.directory), "clinic", "files of the clinic", home=self.directory / "home", reason="lost")
        self.permits, self.requests, self.copied = [], [], None
        self.uses = [self.opened(), self.opened()]
        self.is_exact = False

    def balances(self) -> None:
        """Every balance of the ledger, as each use has it, against the sums of the model."""
        for use in self.uses:
            balance, blocks = use.balance(), use.blocks()
            assert balance.budget == self.model.budget
            self.compare(balance.spent, self.model.standing())
            assert (blocks is not None) == self.model.is_declared
            if blocks is None:
                continue
            assert blocks.terms.person_cap == self.model.cap
            found = {block: each.cost for each in blocks.ranges for block in range(each.first or 0, (each.last or 0) + 1)}
            assert self.is_exact is False or set(found) <= set(BLOCKS)
            for block in BLOCKS:
                self.compare(found.get(block, Cost.zero()), self.model.block(block))
            lost = [sum(self.model.window(window), Cost.zero()) for window in WINDOWS]
            assert blocks.person.loss >= max(cost.loss for cost in lost)
            if self.is_exact:
                assert blocks.person.loss == max(cost.loss for cost in lost)
                assert blocks.person.delta == max(cost.delta for cost in lost)
        assert fits(self.model.budget, self.model.standing())
        if self.model.is_declared:
            assert all(fits(self.model.budget, self.model.block(block)) for block in BLOCKS)
            assert self.model.within_cap(self.model.cap)

    def compare(self, spent: Cost, costs: Iterable[Cost]) -> None:
        expected = sum(costs, Cost.zero())
        assert spent == expected if self.is_exact else spent.covers(expected)

    @staticmethod
    def code(act: Any) -> str | None:
        try:
            act()
        except LapwingError as error:
            return error.code
        return None


def parts_of(numbers: Sequence[int], units: Sequence[int]) -> list[tuple[int, int, int]]:
    """Ranges that do not meet, from any numbers."""
    edges = sorted({BLOCKS.start + number % len(BLOCKS) for number in numbers})
    return [(first, last, unit) for first, last, unit in zip(edges[::2], edges[1::2] or edges[:1], units, strict=False)]


class BlockMachine(RuleBasedStateMachine):
    """The comparison driven by Hypothesis, which makes a failing history short."""

    both: Comparison

    @initialize(account=st.sampled_from(sorted(BUDGETS)))
    def start(self, account: str) -> None:
        self.both = Comparison(account)

    def teardown(self) -> None:
        if hasattr(self, "both"):
            self.both.close()

    @rule(
        use=st.integers(0, 1),
        numbers=st.lists(st.integers(0, 40), max_size=6),
        units=st.lists(st.integers(1, 2), min_size=3, max_size=3),
        standing=st.integers(0, 2),
        person=st.integers(1, 3),
        delta=st.sampled_from((0, 0, 0, 1)),
        pure=st.sampled_from((True, True, True, False)),
    )
    def reserve(self, use: int, numbers: list[int], units: list[int], standing: int, person: int, delta: int, pure: bool) -> None:
        self.both.reserve(use, parts_of(numbers, units), standing, person, delta, pure)

    @rule(use=st.integers(0, 1), which=st.integers(0, 30))
    def ask_again(self, use: int, which: int) -> None:
        self.both.ask_again(use, which)

    @rule(use=st.integers(0, 1), which=st.integers(0, 30), answered=st.booleans())
    def settle(self, use: int, which: int, answered: bool) -> None:
        self.both.settle(use, which, answered)

    @rule(use=st.integers(0, 1), cap=st.integers(0, 3), read=st.none() | st.just((0, 20)), units=st.integers(1, 3))
    def declare(self, use: int, cap: int, read: tuple[int, int] | None, units: int) -> None:
        self.both.declare(use, cap, read, units)

    @rule(use=st.integers(0, 1), to=st.integers(0, 1))
    def set_budget(self, use: int, to: int) -> None:
        self.both.set_budget(use, to)

    @rule(use=st.integers(0, 1))
    def reopen(self, use: int) -> None:
        self.both.reopen(use)

    @rule()
    def copy(self) -> None:
        self.both.copy()

    @rule()
    def put_back(self) -> None:
        self.both.put_back()

    @invariant()
    def balances(self) -> None:
        if hasattr(self, "both"):
            self.both.balances()


def declaration(seed: int, step: int, model: Model) -> int:
    """For how many units of a person blocks are declared at this step; 0 if they are not.

    In every second walk after one charge, for two units. In the others for so many that what was spent is too much, and then for one.
    """
    if model.is_declared:
        return 0
    if step > 10:
        return 1
    return 2 * (len(model.charges) == 1) if seed % 2 == 0 else 5 * (step == 10)


def random_walk(seed: int, *, steps: int, account: str, module: ModuleType = lapwing.ledger.local.ledger) -> None:
    """The comparison driven by chance. Blocks are declared early, and files are put back late: before, everything is compared exactly."""
    dice = random.Random(seed)
    both = Comparison(account, module)
    loses = seed % 4 == 3
    try:
        for step in range(steps):
            use = dice.randrange(2)
            chance = dice.random()
            declared_for = declaration(seed, step, both.model)
            if declared_for:
                cap, read = dice.choice((0, 1, 1, 2)), dice.choice((None, (0, 5), (4, 30)))
                both.declare(use, 0 if declared_for > 2 else cap, read, declared_for)
            elif step == steps * 3 // 4 and loses:
                both.lose()
            elif step == steps * 2 // 3:
                both.copy()
            elif step == steps * 3 // 4:
                both.put_back()
            elif chance < 0.72:
                numbers = [dice.randrange(len(BLOCKS)) for _ in range(dice.choice((0, 2, 2, 2, 4)))]
                units = [dice.choice((1, 1, 1, 2)) for _ in range(2)]
                standing = dice.choice((0, 0, 0, 0, 1)) if both.model.is_declared else dice.choice((0, 1))
                delta = int(dice.random() < 0.1)
                both.reserve(use, parts_of(numbers, units), standing, dice.choice((1, 1, 2)), delta, dice.random() < 0.9)
            elif chance < 0.82:
                both.settle(use, dice.randrange(100), dice.random() < 0.7)
            elif chance < 0.85:
                both.ask_again(use, dice.randrange(100))
            elif chance < 0.92:
                both.set_budget(use, int(dice.random() < 0.7))
            elif chance < 0.97:
                both.declare(use, dice.randrange(4), None, 1) if both.model.is_declared else None
            else:
                both.reopen(use)
            both.balances()
    finally:
        both.close()
