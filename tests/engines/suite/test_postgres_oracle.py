"""The sensitivity oracle with preparation and plans on PostgreSQL: every neighbour is loaded, prepared and asked on the server."""

from __future__ import annotations

import pytest

from lapwing.audit.block_shapes import block_shapes
from lapwing.audit.block_worlds import BLOCKS_OF_TIME
from lapwing.audit.runs import RANKING_KEY, run_oracle
from lapwing.kernel.accounting import Account
from tests.engines.suite import statements
from tests.support.postgres_worlds import PostgresWorlds
from tests.support.sizes import size

WORLDS = {
    "unbounded": size("oracle on PostgreSQL, worlds, unbounded"),
    "bounded": size("oracle on PostgreSQL, worlds, bounded"),
}
CHUNKS = [(relation, account, worlds) for relation, worlds in WORLDS.items() for account in Account]
"""Neighbour relation, account, random worlds."""
NEIGHBOURS_MIN = {"unbounded": 14 * WORLDS["unbounded"] // 4, "bounded": 24 * WORLDS["bounded"] // 2}
"""In every chunk: each world has up to five units; each can go and, where neighbours are bounded, be replaced in two ways."""


@pytest.mark.slow
@pytest.mark.parametrize(("relation", "account", "worlds"), CHUNKS)
def test_no_neighbour_breaks_a_claim(postgres_worlds: PostgresWorlds, relation: str, account: Account, worlds: int) -> None:
    outcome = run_oracle(
        relation=relation,
        account=account,
        worlds=worlds,
        seed=61 + len(relation),
        prepare=lambda declaration: postgres_worlds.prepare(declaration, ranking_key=RANKING_KEY),
    )
    postgres_worlds.clear()
    assert outcome.faults == []
    assert outcome.breaches == []
    assert outcome.pairs >= NEIGHBOURS_MIN[relation] * len(statements.hand_made(account))


@pytest.mark.soak("the oracle in `check` says itself how many pairs it has")
def test_the_runs_are_at_least_three_thousand_pairs() -> None:
    assert sum(NEIGHBOURS_MIN[relation] * len(statements.hand_made(account)) for relation, account, _ in CHUNKS) >= 3_000


@pytest.mark.slow
@pytest.mark.parametrize(("relation", "account"), [("unbounded", Account.PURE), ("bounded", Account.APPROXIMATE)])
def test_no_neighbour_of_one_block_breaks_a_claim(postgres_worlds: PostgresWorlds, relation: str, account: Account) -> None:
    neighbours = size("oracle of blocks on PostgreSQL, neighbours")
    outcome = run_oracle(
        family=BLOCKS_OF_TIME,
        only=block_shapes(account),
        relation=relation,
        account=account,
        worlds=1,
        seed=71,
        prepare=lambda declaration: postgres_worlds.prepare(declaration, ranking_key=RANKING_KEY),
        neighbours_max=neighbours,
    )
    postgres_worlds.clear()
    assert outcome.faults == []
    assert outcome.breaches == []
    assert outcome.pairs >= 150 * neighbours
