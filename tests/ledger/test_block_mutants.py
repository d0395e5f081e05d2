"""The model of blocks of time can fail: each deliberate mistake is seen on the very walks on which the shipped ledger agrees with it."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from lapwing.errors import LapwingError
from tests.ledger.block_machine import BUDGETS, random_walk
from tests.ledger.block_mutants import SEEN_BY_THE_BLOCK_MODEL
from tests.ledger.mutants import Mutant, build, loaded, patched
from tests.support.sizes import size


@pytest.mark.slow
@pytest.mark.parametrize("mutant", SEEN_BY_THE_BLOCK_MODEL, ids=lambda mutant: mutant.name)
def test_the_block_model_sees(mutant: Mutant, tmp_path: Path) -> None:
    with loaded(mutant, build(mutant, tmp_path)) as module, pytest.raises((AssertionError, LapwingError)):
        for seed, account in product(range(size("walks over blocks")), BUDGETS):
            random_walk(seed, steps=80, account=account, module=module)


def test_every_mutant_of_blocks_fits_the_code() -> None:
    for mutant in SEEN_BY_THE_BLOCK_MODEL:
        patched(mutant)
