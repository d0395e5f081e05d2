"""The ledger on PostgreSQL against the model of its policies, over random histories of several workers, owners and analysts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.schedules.policy_machine import PolicyMachine, policy_walk
from tests.schedules.subject import Subject
from tests.schedules.world import Pool
from tests.support.sizes import size


@pytest.fixture(scope="module")
def pool(shipped: Subject) -> Iterator[Pool]:
    made = Pool(shipped)
    yield made
    made.close()


@pytest.mark.slow
def test_the_ledger_agrees_with_the_model_of_its_policies(pool: Pool, tmp_path: Path) -> None:
    class Machine(PolicyMachine):
        place: ClassVar[tuple[Pool, Path]] = (pool, tmp_path)  # type: ignore[misc]

    # Without shrinking: forty steps can be read, and every step asks a real database.
    wanted = settings(max_examples=20, stateful_step_count=40, deadline=None, database=None, phases=[Phase.generate])
    run_state_machine_as_test(Machine, settings=wanted)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(size("walks of the policies")))
def test_the_ledger_agrees_with_the_model_of_its_policies_on_long_walks(pool: Pool, tmp_path: Path, seed: int) -> None:
    policy_walk(seed, steps=200, pool=pool, directory=tmp_path, has_order=seed % 2 == 1)
