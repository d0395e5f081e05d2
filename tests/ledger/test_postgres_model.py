"""The ledger on PostgreSQL against the same model as the local one, over random histories of several workers."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from lapwing.errors import LapwingError
from lapwing.kernel.accounting import Budget
from lapwing.ledger.postgres import policy
from lapwing.ledger.postgres.ledger import PostgresLedger
from tests.ledger.cluster import Cluster
from tests.ledger.machine import UNION_BUDGETS, LedgerMachine, Stand, Use, random_walk
from tests.ledger.pg import new_place
from tests.support.memory import roomy_memory
from tests.support.sizes import size


class PostgresStand:
    """A ledger of its own in the database of the test's server. Budgets are raised as two people do it."""

    workers_end = True

    def __init__(self, cluster: Cluster, database: str) -> None:
        self.directory = Path(tempfile.mkdtemp(dir=roomy_memory()))
        self.place = new_place(cluster, database, self.directory)

    def create(self, budget: Budget, ceiling: Budget) -> Use:
        ledger = self.place.create(budget, ceiling)
        # The model has no count of lost workers; a test of its own has.
        policy.set_limits(ledger, policy.Limits(lost_workers_max=10**6))
        return ledger

    def open(self) -> Use:
        return self.place.open()

    def declare_dead(self, charge_id: int) -> bool:
        return self.place.declare_dead(charge_id)

    def set_budget(self, use: Use, to: Budget) -> None:
        assert isinstance(use, PostgresLedger)
        try:
            use.set_budget(to, reason="asked")
        except LapwingError as error:
            if error.code != "second-person":
                raise
            with self.place.in_another_role(use) as other:
                policy.approve(other, policy.propose_budget(use, to, by="one", reason="asked"), by="another")

    def raise_ceiling(self, use: Use, to: Budget) -> None:
        assert isinstance(use, PostgresLedger)
        with self.place.in_another_role(use) as other:
            policy.approve(other, policy.propose_ceiling(use, to, by="one", reason="asked"), by="another")

    def remove(self) -> None:
        shutil.rmtree(self.directory)


@pytest.mark.slow
def test_the_ledger_agrees_with_the_model(cluster: Cluster, database: str) -> None:
    class Machine(LedgerMachine):
        where: ClassVar[tuple[Cluster, str]] = (cluster, database)

        def new_stand(self) -> Stand:
            return PostgresStand(*self.where)

    run_state_machine_as_test(Machine, settings=settings(max_examples=20, stateful_step_count=40, deadline=None, database=None))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(size("walks of the ledger on PostgreSQL")))
def test_the_ledger_agrees_with_the_model_on_long_walks(cluster: Cluster, database: str, seed: int) -> None:
    random_walk(seed, steps=200, stand=PostgresStand(cluster, database))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(size("walks of the ledger on PostgreSQL")))
def test_a_ledger_with_an_order_agrees_with_the_model_on_long_walks(cluster: Cluster, database: str, seed: int) -> None:
    random_walk(seed, steps=200, stand=PostgresStand(cluster, database), budgets=UNION_BUDGETS)
