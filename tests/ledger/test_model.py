"""The ledger against a pure model, over random histories of several processes."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.ledger.machine import UNION_BUDGETS, LedgerMachine, LocalStand, random_walk
from tests.support.sizes import size


@pytest.mark.slow
def test_the_ledger_agrees_with_the_model() -> None:
    run_state_machine_as_test(LedgerMachine, settings=settings(max_examples=50, stateful_step_count=40, deadline=None, database=None))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(size("walks of the local ledger")))
def test_the_ledger_agrees_with_the_model_on_long_walks(seed: int) -> None:
    random_walk(seed, steps=200, stand=LocalStand())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(size("walks of the local ledger")))
def test_a_ledger_with_an_order_agrees_with_the_model_on_long_walks(seed: int) -> None:
    random_walk(seed, steps=200, stand=LocalStand(), budgets=UNION_BUDGETS)
