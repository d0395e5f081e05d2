"""The heart of the suite: on the real engine, no neighbour moves any vector further than the kernel claims."""

from __future__ import annotations

from pathlib import Path

import pytest

from lapwing.audit.runs import RANKING_KEY, run_oracle
from lapwing.catalog import Declaration, Settings
from lapwing.engines.base import Snapshot
from lapwing.engines.duckdb import DuckDBSnapshot, prepare_snapshot
from lapwing.kernel.accounting import Account
from tests.support.sizes import size, spread

SEEDS = (5, 11, 21)[: size("oracle seeds")]
WORLDS = {relation: size(f"oracle worlds, {relation}") for relation in ("unbounded", "bounded")}
"""Of each seed. Mutants are looked for in these very worlds (``test_mutants``)."""
NEIGHBOURS = {"unbounded": None, "bounded": size("oracle neighbours, bounded")}
"""Of each world, at most; a unit that goes, and comes back with other rows under its own and under a new id, is three."""
ORDER = 32
PAIRS_OF_A_WORLD = {"unbounded": 140, "bounded": min(400, 46 * size("oracle neighbours, bounded"))}
"""At least: about 5 neighbours of a world (up to 15 for bounded), times 46 shapes (52 for approximate accounts)."""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("account", list(Account))
@pytest.mark.parametrize("relation", WORLDS)
def test_no_neighbour_breaks_a_claim(relation: str, account: Account, seed: int) -> None:
    outcome = run_oracle(relation=relation, account=account, worlds=WORLDS[relation], seed=seed, neighbours_max=NEIGHBOURS[relation])
    assert outcome.faults == []
    assert outcome.breaches == []
    assert outcome.pairs >= WORLDS[relation] * PAIRS_OF_A_WORLD[relation], "the run must be as large as it says"


@pytest.mark.parametrize("relation", spread([*WORLDS], "oracle of an order, relations"))
def test_no_neighbour_breaks_a_claim_of_an_account_with_an_order(relation: str) -> None:
    """With Laplace noise, in both amounts."""
    outcome = run_oracle(
        relation=relation,
        account=Account.APPROXIMATE,
        worlds=WORLDS[relation],
        seed=SEEDS[0],
        neighbours_max=NEIGHBOURS[relation],
        order=ORDER,
    )
    assert outcome.faults == []
    assert outcome.breaches == []
    assert outcome.pairs >= WORLDS[relation] * PAIRS_OF_A_WORLD[relation]


@pytest.mark.soak("the oracle in `check` says itself how many pairs it has")
def test_the_worlds_add_up_to_ten_thousand_pairs() -> None:
    assert sum(len(Account) * len(SEEDS) * WORLDS[relation] * PAIRS_OF_A_WORLD[relation] for relation in WORLDS) >= 10_000


def test_the_same_on_snapshots_written_to_disk(tmp_path: Path) -> None:
    made = 0

    def prepare(declaration: Declaration) -> Snapshot:
        nonlocal made
        made += 1
        target, text = tmp_path / f"{made}.duckdb", (declaration.directory or tmp_path).joinpath("lapwing.toml").read_text()
        prepare_snapshot(declaration, text, target, version=1, ranking_key=RANKING_KEY, settings=Settings())
        return DuckDBSnapshot(target, ranking_key=RANKING_KEY)

    outcome = run_oracle(
        relation="bounded", account=Account.APPROXIMATE, worlds=1, seed=3, prepare=prepare, neighbours_max=NEIGHBOURS["bounded"]
    )
    assert outcome.faults == []
    assert outcome.breaches == []
    assert outcome.pairs >= 100 and made >= 4
