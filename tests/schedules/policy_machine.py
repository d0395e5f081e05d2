"""A ledger on PostgreSQL and the model of its policies, side by side: every method does the same to both and compares."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lapwing.errors import LapwingError
from lapwing.kernel.accounting import Cost
from lapwing.kernel.permit import Permit
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.postgres.policy import Limits
from lapwing.ledger.protocol import Request
from tests.ledger.cluster import SECOND_ROLE
from tests.ledger.machine import BUDGETS, DELTA_UNIT, LOSS_UNIT, PURE_UNIT, UNION_BUDGETS
from tests.schedules.policy_model import SECOND_PEOPLE, Account, PolicyModel, Totals
from tests.schedules.world import ANALYSTS, PacedConnection, Pool, World

NAMES = (*ANALYSTS, "cy", "dee")
GROUPS = ("red", "blue")
PEOPLE = ("olga", "piet", "pia")
USES_MAX = 4


class Both:
    """The arguments are small numbers, taken modulo what there is, so any driver can choose them blindly."""

    def __init__(self, pool: Pool, directory: Path, *, budget: int, has_order: bool) -> None:
        self.budgets = UNION_BUDGETS if has_order else BUDGETS
        self.has_order = has_order
        self.world = World(pool, directory, budget=self.budgets[budget], ceiling=self.budgets[1])
        self.policy: Any = pool.subject.module("postgres.policy")
        self.model = PolicyModel(self.budgets[budget], self.budgets[1])
        for name in ANALYSTS:
            self.model.admit(name, None, Totals(), Totals(), False)
        self.uses: list[PostgresLedger] = [self.world.open("uses"), self.world.open("uses")]
        self.permits: list[Permit] = []
        self.days_moved = False

    def use(self, number: int) -> PostgresLedger:
        return self.uses[number % len(self.uses)]

    def owner(self, person: str = "") -> PostgresLedger:
        """Whose acts are those of the role of this person."""
        if person not in SECOND_PEOPLE:
            return self.uses[0]
        other = copy(self.uses[0])
        other._connection = PacedConnection(self.world.pool.connection("second", role=SECOND_ROLE))  # type: ignore[assignment]
        return other

    def same(self, expected: object, act: Callable[[], object]) -> None:
        """``act`` is refused with the expected code, or succeeds where ``done`` is expected."""
        try:
            act()
        except LapwingError as error:
            assert error.code == expected, f"{error.code} instead of {expected}"
        else:
            assert expected == "done", f"done instead of {expected}"

    def reserve(self, number: int, who: int, key: int, digest: int, loss: int, delta: int, all_left: bool) -> None:
        analyst, use = NAMES[who % len(NAMES)], self.use(number)
        cost = self.cost(key, loss, delta)
        if all_left:  # all that the data set, or the analyst, has left; give or take one
            account = self.model.analysts[analyst].account if analyst in self.model.analysts and delta else self.model.spent
            totals = account.totals if account is not self.model.spent else Totals()
            left = (self.model.budget.loss_total if totals.loss is None else totals.loss) - account.spent.loss
            pure_total, pure = self.model.budget.pure_total if totals.pure is None else totals.pure, cost.pure
            if pure_total is not None and pure is not None and account.spent.pure is not None:
                pure = max(1, pure_total - account.spent.pure + loss - 1)
            cost = Cost(loss=max(0, left + loss - 1), delta=cost.delta, pure=pure)
        self._reserve(use, self.request(key, analyst, cost, digest))

    def cost(self, key: int, loss: int, delta: int) -> Cost:
        """With an order, odd keys are for much loss and little pure epsilon, even ones for the reverse, and a few have no pure amount."""
        if not self.has_order:
            return Cost(loss=loss * LOSS_UNIT, delta=delta * DELTA_UNIT)
        pure = None if key % 20 == 0 else PURE_UNIT * (1 if key % 2 else 3)
        return Cost(loss=loss * LOSS_UNIT * (5 if key % 2 else 1), delta=delta * DELTA_UNIT, pure=pure if loss or delta else None)

    def request(self, key: int, analyst: str, cost: Cost, digest: int) -> Request:
        return self.world.request(f"k{key}", analyst=analyst, loss=cost.loss, delta=cost.delta, pure=cost.pure, digest=f"plan {digest}")

    def totals(self, loss: int, delta: int = 0) -> Totals:
        """Nought and less is no limit. With an order, every other limit has a pure amount too."""
        pure = _total(loss, PURE_UNIT) if self.has_order and loss % 2 else None
        return Totals(_total(loss, LOSS_UNIT), _total(delta, DELTA_UNIT), pure)

    def ask_again(self, number: int, which: int) -> None:
        """The same request as one that was charged."""
        if self.permits:
            charge = self.model.charges[which % len(self.permits)]
            cost = charge.cost
            again = replace(self.world.request(charge.key, analyst=charge.analyst, digest=charge.digest), cost=cost)
            self._reserve(self.use(number), again)

    def _reserve(self, use: PostgresLedger, request: Request) -> None:
        analyst, cost = request.analyst, request.cost
        expected = self.model.reserve(use.epoch, analyst, request.request_id, request.digest, cost)
        if expected == "worker-ended":
            self.model.begin()
        try:
            outcome = use.reserve(request)
        except LapwingError as error:
            outcome = error.code  # type: ignore[assignment]
        if expected == "worker-ended":  # it went on as a new worker, whose epoch the model learns here
            expected = self.model.reserve(use.epoch, analyst, request.request_id, request.digest, cost)
        if isinstance(outcome, Permit):
            assert outcome.charge_id == expected, f"a permit instead of {expected!r}"
            self.permits.append(outcome)
        else:
            said = getattr(outcome, "payload", outcome)
            assert said == expected, f"{said!r} instead of {expected!r}"

    def reserve_many(self, number: int, wanted: Sequence[tuple[int, int, int, int]]) -> None:
        """In one statement (analyst, key, loss, delta); those that find their worker ended come after the others, as a new worker's."""
        use = self.use(number)
        epoch = use.epoch
        requests = [self.request(key, NAMES[who % len(NAMES)], self.cost(key, loss, delta), key % 3) for who, key, loss, delta in wanted]
        expected = [self.model.reserve(epoch, one.analyst, one.request_id, one.digest, one.cost) for one in requests]
        outcomes = use.reserve_many(requests)
        if "worker-ended" in expected:
            self.model.begin()
        for place, one in enumerate(requests):
            if expected[place] == "worker-ended":
                expected[place] = self.model.reserve(use.epoch, one.analyst, one.request_id, one.digest, one.cost)
        said = [
            outcome.code if isinstance(outcome, LapwingError) else outcome.charge_id if isinstance(outcome, Permit) else outcome.payload
            for outcome in outcomes
        ]
        assert said == expected, f"of several, {said} instead of {expected}"
        self.permits += sorted((one for one in outcomes if isinstance(one, Permit)), key=lambda permit: permit.charge_id)

    def commit(self, number: int, which: int, payload: bytes, by_owner: bool) -> None:
        if self.permits:
            index = which % len(self.permits)
            use = self._owner_of(index, number) if by_owner else self.use(number)
            self.same(self.model.commit(use.epoch, index, payload), lambda: use.commit(self.permits[index], payload))

    def commit_many(self, number: int, wanted: Sequence[tuple[int, bytes]]) -> None:
        """In one statement, by one worker, whoever reserved them; one may be named twice."""
        if self.permits:
            chosen, use = [(which % len(self.permits), payload) for which, payload in wanted], self.use(number)
            expected = [self.model.commit(use.epoch, index, payload) for index, payload in chosen]
            outcomes = use.commit_many([(self.permits[index], payload) for index, payload in chosen])
            said = ["done" if one is None else one.code for one in outcomes]
            assert said == expected, f"of several, {said} instead of {expected}"

    def forfeit(self, number: int, which: int, incident: bool, by_owner: bool) -> None:
        if self.permits:
            index = which % len(self.permits)
            use = self._owner_of(index, number) if by_owner else self.use(number)
            expected = self.model.forfeit(use.epoch, index, incident=incident)
            self.same(expected, lambda: use.forfeit(self.permits[index], incident=incident))

    def _owner_of(self, index: int, otherwise: int) -> PostgresLedger:
        return next((use for use in self.uses if use.epoch == self.model.charges[index].epoch), self.use(otherwise))

    def find(self, number: int, digest: int, who: int) -> None:
        analyst = None if who % 5 == 4 else NAMES[who % 5]
        found = self.use(number).find(f"plan {digest}", analyst=analyst)
        expected = self.model.find(f"plan {digest}", analyst)
        assert (None if found is None else found.payload) == expected, f"found {found} instead of {expected!r}"

    def expire(self, number: int) -> None:
        """The lease of one runs out; the object goes on acting, as one does that was only believed dead."""
        use = self.use(number)
        if use.epoch not in self.model.ended:
            self.world.declare_dead(use)
            self.model.expired.add(use.epoch)

    def begin(self) -> None:
        self.model.begin()
        self.uses.append(self.world.open("uses"))
        if len(self.uses) > USES_MAX:
            gone = self.uses.pop(0)
            gone.disconnect()
            if gone.epoch not in self.model.ended:
                self.model.end(gone.epoch, lost=False)

    def long_ago(self) -> None:
        """The losses of workers are no longer recent."""
        with self.world.pool.superuser.transaction():
            self.world.pool.superuser.execute("SET LOCAL session_replication_role = replica")
            self.world.pool.superuser.execute(
                "UPDATE lapwing.worker SET ended_at = ended_at - interval '11 years' WHERE ledger_id = %s AND ended_at IS NOT NULL",
                [self.world.ledger_id],
            )
        self.model.lost = 0

    def days(self, passed: int) -> None:
        """So many days pass; fewer than none is a clock that is put back. What the ledger remembers moves instead of the clock."""
        for table in ("data_set", "analyst"):
            self.world.pool.superuser.execute(
                f"UPDATE lapwing.{table} SET day = day - %s::int WHERE ledger_id = %s".encode(), [passed, self.world.ledger_id]
            )
        self.model.today += passed
        self.days_moved = True

    def admit(self, who: int, group: int, loss: int, delta: int, day: int, suspended: bool) -> None:
        """Nought and less is no limit, and no group."""
        name, group_name = NAMES[who % len(NAMES)], (*GROUPS, None, "nobody's")[group % 4]
        totals, day_max = self.totals(loss, delta), self.totals(day)
        self.same(
            self.model.admit(name, group_name, totals, day_max, suspended),
            lambda: self.policy.admit(
                self.owner(),
                name,
                group=group_name,
                loss_total=totals.loss,
                delta_total=totals.delta,
                pure_total=totals.pure,
                day_loss_max=day_max.loss,
                day_pure_max=day_max.pure,
                suspended=suspended,
            ),
        )

    def set_group(self, group: int, loss: int, delta: int) -> None:
        name, totals = GROUPS[group % 2], self.totals(loss, delta)
        self.same(
            self.model.set_group(name, totals),
            lambda: self.policy.set_group(self.owner(), name, loss_total=totals.loss, delta_total=totals.delta, pure_total=totals.pure),
        )

    def set_limits(self, statement: int, day: int, shared: bool, lost: int) -> None:
        of_one, of_day = self.totals(statement), self.totals(day)
        limits = Limits(of_one.loss, of_day.loss, shared, max(1, lost), 3600, of_one.pure, of_day.pure)
        self.model.limits = replace(limits)
        self.policy.set_limits(self.owner(), limits)

    def set_budget(self, to: int) -> None:
        budget = self.budgets[to]
        self.same(self.model.set_budget(budget), lambda: self.owner().set_budget(budget, reason="asked"))

    def propose(self, kind: int, by: int, to: int, who: int, loss: int) -> None:
        budget, person, analyst = self.budgets[to], PEOPLE[by % 2], NAMES[who % len(NAMES)]
        cost = Cost(loss=loss * LOSS_UNIT, delta=DELTA_UNIT, pure=loss * PURE_UNIT if self.has_order else None)
        expected: str | int
        try:
            match kind % 3:
                case 0:
                    expected = self.model.propose("budget", "", person, budget, Totals())
                    said = self.policy.propose_budget(self.owner(person), budget, by=person, reason="asked")
                case 1:
                    expected = self.model.propose("ceiling", "", person, budget, Totals())
                    said = self.policy.propose_ceiling(self.owner(person), budget, by=person, reason="asked")
                case _:
                    expected = self.model.propose("analyst", analyst, analyst, None, Totals(cost.loss, cost.delta, cost.pure))
                    said = self.policy.request_budget(self.owner(), analyst, cost, reason="asked")
        except LapwingError as error:
            said = error.code
        assert said == expected, f"{said} instead of {expected}"

    def decide(self, which: int, by: int, approve: bool) -> None:
        if self.model.proposals:
            number = which % len(self.model.proposals)
            everybody = (*PEOPLE, *NAMES)
            person = everybody[by % len(everybody)]
            act = self.policy.approve if approve else self.policy.deny
            self.same(self.model.decide(number, person, approve=approve), lambda: act(self.owner(person), number + 1, by=person))

    def close_or_reopen(self, closed: bool) -> None:
        if closed:
            self.owner().close("asked")
        else:
            self.owner().reopen("asked")
            self.model.lost = 0
        self.model.closed = closed

    def compare(self, *, shares: bool = True) -> None:
        """What is in force and what is spent, of all and, with ``shares``, of everybody."""
        model, balance = self.model, self.owner().balance()
        assert balance.spent == model.spent.spent, "another amount is spent"
        assert (balance.budget, balance.ceiling) == (model.budget, model.ceiling), "another budget is in force"
        assert balance.closed == model.closed, "closed instead of open" if balance.closed else "open instead of closed"
        if not shares:
            return
        for name, analyst in model.analysts.items():
            share = self.policy.analyst_share(self.owner(), name)
            assert (share is None) == analyst.suspended, "admitted or not"
            assert share is None or _of(share) == _of_account(analyst.account), "another share of an analyst"
        for name, account in model.groups.items():
            assert _of(self.policy.group_share(self.owner(), name)) == _of_account(account), "another share of a group"

    def finish(self) -> None:
        """The shipped ``verify`` and the oracle find nothing to say, and the states of all charges are the model's."""
        state = self.world.state()
        problems = self.world.problems(state)
        if self.days_moved:  # which is a change behind the ledger's back
            problems = [problem for problem in problems if "charged on the newest day" not in problem]
        assert problems == [], problems
        states = [(charge.key, charge.state) for charge in self.model.charges]
        assert [(charge.key, charge.state) for charge in state.charges] == states, "charges in other states"
        for use in self.uses:
            use.disconnect()


def _total(number: int, unit: int) -> int | None:
    return number * unit if number > 0 else None


def _of(share: Any) -> tuple[Totals, Cost]:
    return Totals(share.loss_total, share.delta_total, share.pure_total), share.spent


def _of_account(account: Account) -> tuple[Totals, Cost]:
    return account.totals, account.spent


def policy_walk(seed: int, *, steps: int, pool: Pool, directory: Path, has_order: bool) -> None:
    """By chance, with weights that keep charges coming."""
    dice = random.Random(seed)
    both = Both(pool, directory, budget=seed % 2, has_order=has_order)
    number = dice.randrange

    losses = (0, 1, 1, 1, 1, 2, 2, 3)

    def rarely() -> bool:
        return dice.random() < 0.1

    def recent() -> int:
        """One of the newest charges, or any."""
        return number(1000) if rarely() else max(0, len(both.permits) - 1 - number(3))

    acts: list[tuple[int, Callable[[], None]]] = [
        (
            40,
            lambda: both.reserve(
                number(4), number(4), number(60), number(3), dice.choice(losses), number(2) * number(2), dice.random() < 0.03
            ),
        ),
        (10, lambda: both.reserve_many(number(4), [(number(4), number(60), 1, number(2) * number(2)) for _ in range(1 + number(4))])),
        (8, lambda: both.ask_again(number(4), recent())),
        (16, lambda: both.commit(number(4), recent(), dice.randbytes(3), dice.random() < 0.8)),
        (8, lambda: both.commit_many(number(4), [(recent(), dice.randbytes(3)) for _ in range(1 + number(3))])),
        (4, lambda: both.forfeit(number(4), recent(), rarely(), dice.random() < 0.8)),
        (9, lambda: both.find(number(4), number(3), number(5))),
        (3, lambda: both.expire(number(4))),
        (2, both.begin),
        (1, both.long_ago),
        (3, lambda: both.days(dice.choice([1, 1, 1, -1]))),
        (6, lambda: both.admit(number(4), number(4), number(16) - 4, number(6) - 3, number(12) - 6, rarely())),
        (3, lambda: both.set_group(number(2), number(15) - 3, number(6) - 3)),
        (2, lambda: both.set_limits(number(8) - 4, number(24) - 12, dice.random() < 0.5, number(5))),
        (2, lambda: both.set_budget(number(3))),
        (4, lambda: both.propose(number(3), number(2), number(3), number(4), number(10))),
        (5, lambda: both.decide(number(1000), number(6), dice.random() < 0.7)),
        (8, lambda: both.close_or_reopen(dice.random() < 0.15)),
    ]
    weights = [weight for weight, _ in acts]
    for count in range(steps):
        dice.choices(acts, weights)[0][1]()
        both.compare(shares=count % 10 == 0)
    both.finish()


SMALL = st.integers(0, 3)
MANY = st.integers(0, 30)
LIMIT = st.integers(-2, 8)
RARELY = st.sampled_from([False] * 7 + [True])


class PolicyMachine(RuleBasedStateMachine):
    """The comparison driven by Hypothesis, which tries what is unlikely."""

    both: Both
    place: tuple[Pool, Path]

    @initialize(budget=st.integers(0, 1), has_order=st.booleans())
    def start(self, budget: int, has_order: bool) -> None:
        self.both = Both(*self.place, budget=budget, has_order=has_order)

    def teardown(self) -> None:
        if hasattr(self, "both"):
            self.both.finish()

    @rule(number=SMALL, who=SMALL, key=st.integers(0, 9), digest=st.integers(0, 1), loss=SMALL, delta=st.integers(0, 1), rest=RARELY)
    def reserve(self, number: int, who: int, key: int, digest: int, loss: int, delta: int, rest: bool) -> None:
        self.both.reserve(number, who, key, digest, loss, delta, rest)

    @rule(number=SMALL, wanted=st.lists(st.tuples(SMALL, st.integers(0, 9), st.integers(1, 3), st.integers(0, 1)), min_size=1, max_size=4))
    def reserve_many(self, number: int, wanted: list[tuple[int, int, int, int]]) -> None:
        self.both.reserve_many(number, wanted)

    @precondition(lambda self: bool(self.both.permits))
    @rule(number=SMALL, which=MANY)
    def ask_again(self, number: int, which: int) -> None:
        self.both.ask_again(number, which)

    @precondition(lambda self: bool(self.both.permits))
    @rule(number=SMALL, which=MANY, payload=st.binary(max_size=3), by_owner=st.booleans())
    def commit(self, number: int, which: int, payload: bytes, by_owner: bool) -> None:
        self.both.commit(number, which, payload, by_owner)

    @precondition(lambda self: bool(self.both.permits))
    @rule(number=SMALL, wanted=st.lists(st.tuples(MANY, st.binary(max_size=3)), min_size=1, max_size=4))
    def commit_many(self, number: int, wanted: list[tuple[int, bytes]]) -> None:
        self.both.commit_many(number, wanted)

    @precondition(lambda self: bool(self.both.permits))
    @rule(number=SMALL, which=MANY, incident=RARELY, by_owner=st.booleans())
    def forfeit(self, number: int, which: int, incident: bool, by_owner: bool) -> None:
        self.both.forfeit(number, which, incident, by_owner)

    @rule(number=SMALL, digest=st.integers(0, 1), who=st.integers(0, 4))
    def find(self, number: int, digest: int, who: int) -> None:
        self.both.find(number, digest, who)

    @rule(number=SMALL)
    def expire(self, number: int) -> None:
        self.both.expire(number)

    @rule()
    def begin(self) -> None:
        self.both.begin()

    @rule()
    def long_ago(self) -> None:
        self.both.long_ago()

    @rule(passed=st.sampled_from([1, 1, -1]))
    def days(self, passed: int) -> None:
        self.both.days(passed)

    @rule(who=SMALL, group=SMALL, loss=LIMIT, delta=LIMIT, day=LIMIT, suspended=RARELY)
    def admit(self, who: int, group: int, loss: int, delta: int, day: int, suspended: bool) -> None:
        self.both.admit(who, group, loss, delta, day, suspended)

    @rule(group=SMALL, loss=LIMIT, delta=LIMIT)
    def set_group(self, group: int, loss: int, delta: int) -> None:
        self.both.set_group(group, loss, delta)

    @rule(statement=LIMIT, day=LIMIT, shared=st.booleans(), lost=SMALL)
    def set_limits(self, statement: int, day: int, shared: bool, lost: int) -> None:
        self.both.set_limits(statement, day, shared, lost)

    @rule(to=st.integers(0, 2))
    def set_budget(self, to: int) -> None:
        self.both.set_budget(to)

    @rule(kind=SMALL, by=SMALL, to=st.integers(0, 2), who=SMALL, loss=LIMIT)
    def propose(self, kind: int, by: int, to: int, who: int, loss: int) -> None:
        self.both.propose(kind, by, to, who, max(0, loss))

    @precondition(lambda self: bool(self.both.model.proposals))
    @rule(which=MANY, by=st.integers(0, 5), approve=st.booleans())
    def decide(self, which: int, by: int, approve: bool) -> None:
        self.both.decide(which, by, approve)

    @rule(closed=RARELY)
    def close_or_reopen(self, closed: bool) -> None:
        self.both.close_or_reopen(closed)

    @invariant()
    def compare(self) -> None:
        if hasattr(self, "both"):
            self.both.compare()
