"""A pure model of the ledger, and two drivers that compare a ledger with it step by step: Hypothesis, and a long random walk.

Several uses of one ledger stand for several processes. One is made to look dead by changing what its row records; the object is
kept and goes on acting, as a process does that was only believed dead. A :class:`Stand` says how that and the rest is done for one kind
of ledger; the model and the drivers are the same for all.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Protocol

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import lapwing.ledger.local.ledger
from lapwing.errors import LapwingError
from lapwing.kernel.accounting import Budget, Cost
from lapwing.kernel.permit import Permit
from lapwing.ledger.protocol import Ledger
from tests.ledger.support import approximate_budget, declare_dead, ledger_path, new_ledger, open_ledger, request, union_budget
from tests.support.memory import roomy_memory

BUDGETS = [approximate_budget(epsilon) for epsilon in (1, 2, 3)]
UNION_BUDGETS = [union_budget(epsilon) for epsilon in (1, 2, 3)]
PURE_UNIT = 10**15 // 12
"""A twelfth of the least epsilon: more than twelve charges of one unit fit neither side of an account with an order."""
LOSS_UNIT, DELTA_UNIT = BUDGETS[0].loss_total // 20, BUDGETS[0].delta_total // 6


@dataclass
class ModelCharge:
    digest: str
    cost: Cost
    owner: int
    generation: int = 0
    """Which worker of its owner reserved it."""
    state: str = "reserved"
    payload: bytes | None = None


@dataclass
class Model:
    """The ledger as mathematics: what is spent is a sum, a key has a charge, and a charge ends once."""

    budget: Budget
    ceiling: Budget
    closed: bool = False
    charges: list[ModelCharge] = field(default_factory=list)
    committed: list[ModelCharge] = field(default_factory=list)
    """Those with an answer, in the order in which they got it."""
    keys: dict[str, int] = field(default_factory=dict)
    dead: set[int] = field(default_factory=set)
    """Uses that look dead."""
    workers_end: bool = False
    """Whether a use that was found dead loses everything it had reserved at once, and acts from then on as a new worker."""
    ended: set[int] = field(default_factory=set)
    generations: dict[int, int] = field(default_factory=dict)

    @property
    def spent(self) -> Cost:
        return sum((charge.cost for charge in self.charges), Cost.zero())

    def fits(self, budget: Budget, cost: Cost) -> bool:
        """All charges ever made, this one too: every amount added up for itself, and none is above any total."""
        costs = [*(charge.cost for charge in self.charges), cost]
        pures = [one.pure for one in costs if one.loss or one.delta]
        within_pure = budget.pure_total is not None and None not in pures and sum(pure or 0 for pure in pures) <= budget.pure_total
        within_loss = sum(one.loss for one in costs) <= budget.loss_total
        return (within_loss or within_pure) and sum(one.delta for one in costs) <= budget.delta_total

    @property
    def remaining(self) -> Cost:
        loss, delta = self.budget.loss_total - self.spent.loss, self.budget.delta_total - self.spent.delta
        pure = None if self.budget.pure_total is None or self.spent.pure is None else self.budget.pure_total - self.spent.pure
        return Cost(loss=max(0, loss), delta=max(0, delta), pure=None if pure is None else max(0, pure))

    def reserve(self, use: int, key: str, digest: str, cost: Cost) -> str | bytes | int:
        """A refusal's code, a stored answer, or the number of the new charge."""
        if cost.loss == 0:
            return "zero-cost"
        if use in self.ended:
            self.ended.discard(use)
            self.generations[use] = self.generations.get(use, 0) + 1
            self.find_dead()
        if self.closed:
            return "data-set-closed"
        if key in self.keys:
            charge = self.charges[self.keys[key]]
            if charge.digest != digest:
                return "request-mismatch"
            if charge.state == "reserved" and charge.owner in self.dead:
                if self.workers_end:
                    self.end({charge.owner})
                charge.state = "forfeited"
            if charge.payload is not None:
                return charge.payload
            return "request-in-progress" if charge.state == "reserved" else "request-forfeited"
        if not self.fits(self.budget, cost):
            return "budget-exceeded"
        self.charges.append(ModelCharge(digest, cost, use, self.generations.get(use, 0)))
        self.keys[key] = len(self.charges) - 1
        return len(self.charges)

    def settle(self, use: int, number: int, payload: bytes | None) -> str:
        charge = self.charges[number]
        own = charge.owner == use and charge.generation == self.generations.get(use, 0)
        if own and payload is not None and charge.payload == payload:
            return "done"  # the same commit, sent again
        if charge.state != "reserved" or charge.owner != use:
            return "charge-not-open"
        charge.state, charge.payload = ("forfeited" if payload is None else "committed"), payload
        if payload is not None:
            self.committed.append(charge)
        return "done"

    def find_dead(self) -> None:
        """What happens before a new use is served."""
        if self.workers_end:
            self.end(set(self.dead))
        else:
            self.sweep(self.dead)

    def end(self, owners: set[int]) -> None:
        self.sweep(owners)
        self.ended |= owners
        self.dead -= owners

    def sweep(self, owners: set[int]) -> None:
        for charge in self.charges:
            if charge.state == "reserved" and charge.owner in owners:
                charge.state = "forfeited"

    def set_budget(self, to: Budget) -> str:
        if to.epsilon > self.ceiling.epsilon:
            return "budget-above-ceiling"
        if not self.fits(to, Cost.zero()):
            return "budget-below-spent"
        self.budget = to
        return "done"

    def find(self, digest: str) -> bytes | None:
        return next((charge.payload for charge in self.committed if charge.digest == digest), None)


class Use(Ledger, Protocol):
    """A ledger as a process has it."""

    def disconnect(self) -> None: ...


class Stand(Protocol):
    """One kind of ledger, as the comparison needs it."""

    workers_end: bool

    def create(self, budget: Budget, ceiling: Budget) -> Use: ...
    def open(self) -> Use: ...
    def declare_dead(self, charge_id: int) -> bool:
        """Whether the worker of this charge looks dead now."""
        ...

    def set_budget(self, use: Use, to: Budget) -> None: ...
    def raise_ceiling(self, use: Use, to: Budget) -> None: ...
    def remove(self) -> None: ...


class LocalStand:
    """A local ledger in a directory of its own."""

    workers_end = False

    def __init__(self, module: ModuleType = lapwing.ledger.local.ledger) -> None:
        self.module = module
        self.directory = Path(tempfile.mkdtemp(dir=roomy_memory()))

    def create(self, budget: Budget, ceiling: Budget) -> Use:
        return new_ledger(self.directory, budget=budget, ceiling=ceiling, module=self.module)

    def open(self) -> Use:
        return open_ledger(self.directory, module=self.module)

    def declare_dead(self, charge_id: int) -> bool:
        assert declare_dead(ledger_path(self.directory), charge_id)
        return True

    def set_budget(self, use: Use, to: Budget) -> None:
        use.set_budget(to, reason="asked")

    def raise_ceiling(self, use: Use, to: Budget) -> None:
        use.raise_ceiling(to, reason="asked")

    def remove(self) -> None:
        shutil.rmtree(self.directory)


class Comparison:
    """One ledger, several uses of it, and the model; every method does the same to both and compares.

    The arguments are small numbers, taken modulo what there is, so any driver can choose them blindly.
    """

    def __init__(self, budget: Budget, stand: Stand, *, budgets: Sequence[Budget] = BUDGETS) -> None:
        self.stand = stand
        self.budgets = budgets
        self.model = Model(budget, budgets[1], workers_end=stand.workers_end)
        self.uses: list[Use] = [stand.create(budget, budgets[1]), stand.open()]
        self.current = [0, 1]
        self.permits: list[Permit] = []

    def close(self) -> None:
        for index in self.current:
            self.uses[index].disconnect()
        self.stand.remove()

    def use(self, number: int) -> tuple[int, Use]:
        index = self.current[number % len(self.current)]
        return index, self.uses[index]

    def reserve_some(self, number: int, key: str, digest: str, loss: int, delta: int, rest: bool, pure: int | None = None) -> None:
        """So many units; or, with ``rest``, all that is left, give or take one."""
        left = self.model.remaining
        if rest:
            least = None if pure is None or left.pure is None else max(1, left.pure + pure - 1)
            cost = Cost(loss=max(0 if least is None else 1, left.loss + loss - 1), delta=max(0, left.delta + delta - 1), pure=least)
        else:
            cost = Cost(loss=loss * LOSS_UNIT, delta=delta * DELTA_UNIT, pure=None if pure is None else pure * PURE_UNIT)
        self.reserve(number, key, digest, cost)

    def ask_again(self, number: int, which: int) -> None:
        if self.permits:
            charge = which % len(self.permits)
            key = next(key for key, found in self.model.keys.items() if found == charge)
            self.reserve(number, key, self.permits[charge].digest, self.permits[charge].cost)

    def reserve(self, number: int, key: str, digest: str, cost: Cost) -> None:
        index, use = self.use(number)
        expected = self.model.reserve(index, key, digest, cost)
        try:
            outcome = use.reserve(request(key, loss=cost.loss, delta=cost.delta, pure=cost.pure, digest=digest))
        except LapwingError as error:
            assert error.code == expected
            return
        if isinstance(outcome, Permit):
            assert outcome.charge_id == expected and (outcome.digest, outcome.cost) == (digest, cost)
            self.permits.append(outcome)
        else:
            assert outcome.payload == expected

    def commit(self, number: int, which: int, payload: bytes, by_owner: bool) -> None:
        """By any use; or by the one that reserved it, even if that was declared dead: it may not know."""
        if self.permits:
            index, use = self.use(number)
            if by_owner:
                index = self.model.charges[which % len(self.permits)].owner
                use = self.uses[index]
            self.settle(index, which, payload, lambda permit: use.commit(permit, payload))

    def forfeit(self, number: int, which: int, incident: bool) -> None:
        if self.permits:
            index, use = self.use(number)
            self.settle(index, which, None, lambda permit: use.forfeit(permit, incident=incident))
            self.model.closed |= incident

    def settle(self, index: int, which: int, payload: bytes | None, act: Callable[[Permit], None]) -> None:
        number = which % len(self.permits)
        expected = self.model.settle(index, number, payload)
        try:
            act(self.permits[number])
        except LapwingError as error:
            # One that disconnected learns that first; its charges are forfeited, so the model says the same in other words.
            assert error.code == expected or (error.code == "ledger-disconnected" and index not in self.current)
        else:
            assert expected == "done"

    def declare_dead(self, which: int) -> None:
        if self.permits:
            number = which % len(self.permits)
            if self.stand.declare_dead(self.permits[number].charge_id):
                self.model.dead.add(self.model.charges[number].owner)

    def open_another(self) -> None:
        self.uses.append(self.stand.open())
        self.current.append(len(self.uses) - 1)
        self.model.find_dead()
        if len(self.current) > 4:
            self.disconnect(0)

    def disconnect(self, number: int) -> None:
        if len(self.current) > 1:
            index, use = self.use(number)
            use.disconnect()
            self.current.remove(index)
            self.model.sweep({index})
            if self.model.workers_end:
                self.model.dead.discard(index)

    def set_budget(self, number: int, to: int) -> None:
        expected = self.model.set_budget(self.budgets[to])
        try:
            self.stand.set_budget(self.use(number)[1], self.budgets[to])
        except LapwingError as error:
            assert error.code == expected
        else:
            assert expected == "done"

    def raise_ceiling(self, number: int) -> None:
        self.stand.raise_ceiling(self.use(number)[1], self.budgets[2])
        self.model.ceiling = self.budgets[2]

    def close_or_reopen(self, number: int, closed: bool) -> None:
        _, use = self.use(number)
        if closed:
            use.close("asked")
        else:
            use.reopen("asked")
        self.model.closed = closed

    def find(self, number: int, digest: str) -> None:
        answer = self.use(number)[1].find(digest)
        assert (None if answer is None else answer.payload) == self.model.find(digest)

    def balance(self) -> None:
        balance = self.use(0)[1].balance()
        assert (balance.budget, balance.ceiling, balance.closed) == (self.model.budget, self.model.ceiling, self.model.closed)
        assert balance.spent == self.model.spent
        assert self.model.fits(self.model.budget, Cost.zero())


USES = st.integers(0, 3)
"""Which use of the file acts; there are at most four at a time."""
CHARGES = st.integers(0, 30)
KEYS = "abcdefghijklmnopqrst"
RARELY = st.sampled_from([False] * 7 + [True])


class LedgerMachine(RuleBasedStateMachine):
    """The comparison driven by Hypothesis, which makes a failing history short."""

    both: Comparison

    def new_stand(self) -> Stand:
        return LocalStand()

    @initialize(budget=st.sampled_from(BUDGETS[:2]))
    def start(self, budget: Budget) -> None:
        self.both = Comparison(budget, self.new_stand())

    def teardown(self) -> None:
        if hasattr(self, "both"):
            self.both.close()

    @rule(number=USES, key=st.sampled_from(KEYS), digest=st.sampled_from("ppq"), loss=st.integers(0, 2), delta=USES, rest=RARELY)
    def reserve_some(self, number: int, key: str, digest: str, loss: int, delta: int, rest: bool) -> None:
        self.both.reserve_some(number, key, digest, loss, delta // 3, rest)

    @rule(number=USES, which=CHARGES)
    def ask_again(self, number: int, which: int) -> None:
        self.both.ask_again(number, which)

    @rule(number=USES, which=CHARGES, payload=st.binary(max_size=4), by_owner=st.booleans())
    def commit(self, number: int, which: int, payload: bytes, by_owner: bool) -> None:
        self.both.commit(number, which, payload, by_owner)

    @rule(number=USES, which=CHARGES, incident=RARELY)
    def forfeit(self, number: int, which: int, incident: bool) -> None:
        self.both.forfeit(number, which, incident)

    @rule(which=CHARGES)
    def declare_dead(self, which: int) -> None:
        self.both.declare_dead(which)

    @rule()
    def open_another(self) -> None:
        self.both.open_another()

    @rule(number=USES)
    def disconnect(self, number: int) -> None:
        self.both.disconnect(number)

    @rule(number=USES, to=st.integers(0, 2))
    def set_budget(self, number: int, to: int) -> None:
        self.both.set_budget(number, to)

    @rule(number=USES)
    def raise_ceiling(self, number: int) -> None:
        self.both.raise_ceiling(number)

    @rule(number=USES, closed=RARELY)
    def close_or_reopen(self, number: int, closed: bool) -> None:
        self.both.close_or_reopen(number, closed)

    @rule(number=USES, digest=st.sampled_from("pqr"))
    def find(self, number: int, digest: str) -> None:
        self.both.find(number, digest)

    @invariant()
    def balance(self) -> None:
        if hasattr(self, "both"):
            self.both.balance()


def random_walk(seed: int, *, steps: int, stand: Stand, budgets: Sequence[Budget] = BUDGETS) -> None:
    """The comparison driven by chance, with weights that keep charges coming: quick at finding a mistake, no help in explaining it."""
    dice = random.Random(seed)
    both = Comparison(budgets[seed % 2], stand, budgets=budgets)
    closes_pure = seed % 3 == 2
    """With an order: in every third walk some charges have no pure amount."""

    def rarely() -> bool:
        return dice.random() < 0.05

    def key() -> str:
        return f"key {dice.randrange(60)}"

    def pure() -> int | None:
        return None if budgets is BUDGETS or (closes_pure and rarely()) else dice.choice((1, 1, 1, 2))

    acts: list[tuple[int, Callable[[], None]]] = [
        (
            30,
            lambda: both.reserve_some(dice.randrange(4), key(), dice.choice("pppqrs"), dice.randrange(3), 0, rarely(), pure()),
        ),
        (3, lambda: both.reserve_some(dice.randrange(4), key(), "p", dice.randrange(3), dice.randrange(2), rarely())),
        (8, lambda: both.ask_again(dice.randrange(4), dice.randrange(1000))),
        (16, lambda: both.commit(dice.randrange(4), dice.randrange(1000), dice.randbytes(3), dice.random() < 0.6)),
        (4, lambda: both.forfeit(dice.randrange(4), dice.randrange(1000), rarely())),
        (3, lambda: both.declare_dead(dice.randrange(1000))),
        (3, both.open_another),
        (2, lambda: both.disconnect(dice.randrange(4))),
        (3, lambda: both.set_budget(dice.randrange(4), dice.randrange(3))),
        (1, lambda: both.raise_ceiling(dice.randrange(4)) if rarely() else None),
        (4, lambda: both.close_or_reopen(dice.randrange(4), rarely())),
        (4, lambda: both.find(dice.randrange(4), dice.choice("pqrs"))),
    ]
    weights = [weight for weight, _ in acts]
    try:
        for _ in range(steps):
            dice.choices(acts, weights)[0][1]()
            both.balance()
    finally:
        both.close()
