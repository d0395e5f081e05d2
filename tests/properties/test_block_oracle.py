"""Blocks of time: no neighbour that differs in one person's rows of one block breaks a claim, and every deliberate bug is seen."""

from __future__ import annotations

import pytest

from lapwing.audit.block_growth import grown_in_duckdb
from lapwing.audit.block_shapes import block_shapes
from lapwing.audit.block_worlds import BLOCKS_OF_TIME
from lapwing.audit.runs import run_oracle
from lapwing.kernel.accounting import Account
from tests.properties.block_mutants import BY_NAME
from tests.support.sizes import size

WORLDS, NEIGHBOURS = size("oracle of blocks, worlds"), size("oracle of blocks, neighbours")
MUTANT_NEIGHBOURS = 40
ORDER = 32


@pytest.mark.parametrize("account", list(Account))
@pytest.mark.parametrize("relation", ["unbounded", "bounded"])
def test_no_neighbour_of_one_block_breaks_a_claim(relation: str, account: Account) -> None:
    outcome = run_oracle(
        family=BLOCKS_OF_TIME,
        only=block_shapes(account),
        relation=relation,
        account=account,
        worlds=WORLDS,
        seed=5,
        neighbours_max=NEIGHBOURS,
    )
    assert outcome.faults == []
    assert outcome.breaches == []
    assert outcome.pairs >= 150 * WORLDS * NEIGHBOURS, "the run must be as large as it says"


def test_nor_of_an_account_with_an_order() -> None:
    outcome = run_oracle(
        family=BLOCKS_OF_TIME,
        only=block_shapes(Account.APPROXIMATE),
        relation="bounded",
        account=Account.APPROXIMATE,
        worlds=1,
        seed=6,
        neighbours_max=NEIGHBOURS,
        order=ORDER,
    )
    assert outcome.faults == []
    assert outcome.breaches == []
    assert outcome.pairs >= 150 * NEIGHBOURS


@pytest.mark.parametrize(("relation", "account"), [("unbounded", Account.APPROXIMATE), ("bounded", Account.PURE)])
def test_nor_does_one_in_a_version_that_grew(relation: str, account: Account) -> None:
    neighbours = size("oracle of blocks, neighbours that grew")
    outcome = run_oracle(
        family=BLOCKS_OF_TIME,
        only=block_shapes(account),
        relation=relation,
        account=account,
        worlds=1,
        seed=7,
        neighbours_max=neighbours,
        prepare=grown_in_duckdb,
    )
    assert outcome.faults == []
    assert outcome.breaches == []
    assert outcome.pairs >= 150 * neighbours


@pytest.mark.parametrize("name", BY_NAME)
def test_the_oracle_sees_the_bug(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = BY_NAME[name]
    only = {key: shape for key, shape in block_shapes(mutant.account).items() if key.startswith(mutant.shapes)}
    assert len(only) >= 1
    for target, attribute, replacement in mutant.patches:
        monkeypatch.setattr(target, attribute, replacement)
    outcome = run_oracle(
        family=BLOCKS_OF_TIME,
        relation=mutant.relation,
        account=mutant.account,
        worlds=3,
        seed=5,
        only=only,
        stop_at_first=True,
        neighbours_max=MUTANT_NEIGHBOURS,
    )
    assert outcome.breaches, f"the oracle did not see: {name}"


def test_there_are_at_least_sixteen_bugs() -> None:
    assert len(BY_NAME) >= 16
