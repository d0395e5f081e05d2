"""A ledger with blocks of time against a brute-force model: a balance for each block, and a sum for each year."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.ledger.block_machine import BUDGETS, BlockMachine, random_walk
from tests.support.sizes import size


@pytest.mark.slow
def test_a_ledger_with_blocks_agrees_with_the_model() -> None:
    run_state_machine_as_test(BlockMachine, settings=settings(max_examples=40, stateful_step_count=30, deadline=None, database=None))


@pytest.mark.slow
@pytest.mark.parametrize("account", BUDGETS)
@pytest.mark.parametrize("seed", range(size("walks over blocks")))
def test_a_ledger_with_blocks_agrees_with_the_model_on_long_walks(seed: int, account: str) -> None:
    random_walk(seed, steps=80, account=account)
