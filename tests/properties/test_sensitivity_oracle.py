"""The heart of the suite: on the real engine, no neighbour moves any vector further than the kernel claims."""

from __future__ import annotations

from pathlib import Path

import pytest

from lapwing.audit.runs import RANKING_KEY, run_oracle
from lapwing.catalog import Declaration, Settings
from lapwing.engines.base import Snapshot
from lapwing.engines.duckdb import DuckDBSnapshot, prepare_snapshot
from lapwing.kernel.accounting import Account

# Pairs per chunk: about 5 neighbours per world (15 for bounded), times 42 shapes (48 for approximate accounts).
CHUNKS = [
    *[("unbounded", account, seed, 7, 1_000) for account in Account for seed in (11, 12)],
    *[("bounded", account, seed, 4, 1_600) for account in Account for seed in (21, 22)],
]


@pytest.mark.parametrize(("relation", "account", "seed", "worlds", "least_pairs"), CHUNKS)
def test_no_neighbour_breaks_a_claim(relation: str, account: Account, seed: int, worlds: int, least_pairs: int) -> None:
    outcome = run_oracle(relation=relation, account=account, worlds=worlds, seed=seed)
    assert outcome.faults == []
    assert outcome.breaches == []
    assert outcome.pairs >= least_pairs, "the run must be as large as it says"


def test_the_chunks_add_up_to_ten_thousand_pairs() -> None:
    assert sum(least for *_, least in CHUNKS) >= 10_000


def test_the_same_on_snapshots_written_to_disk(tmp_path: Path) -> None:
    made = 0

    def prepare(declaration: Declaration) -> Snapshot:
        nonlocal made
        made += 1
        target, text = tmp_path / f"{made}.duckdb", (declaration.directory or tmp_path).joinpath("lapwing.toml").read_text()
        prepare_snapshot(declaration, text, target, version=1, ranking_key=RANKING_KEY, settings=Settings())
        return DuckDBSnapshot(target, ranking_key=RANKING_KEY)

    outcome = run_oracle(relation="bounded", account=Account.APPROXIMATE, worlds=1, seed=3, prepare=prepare)
    assert outcome.faults == []
    assert outcome.breaches == []
    assert outcome.pairs >= 100 and made >= 4
