"""The sensitivity oracle on Spark: sources changed by one unit, prepared on Spark again, compared exactly with what is claimed."""

from __future__ import annotations

import pytest

from lapwing.audit.plan_shapes import shapes
from lapwing.audit.quantile_shapes import quantile_shapes
from lapwing.audit.runs import run_oracle
from lapwing.kernel.accounting import Account
from tests.support.sizes import size
from tests.support.spark_worlds import prepare_in_spark

RUNS = [
    ("unbounded", Account.PURE, 1, 11),
    ("bounded", Account.APPROXIMATE, size("Spark oracle, neighbours"), 14),
    ("unbounded", Account.APPROXIMATE, 2, 12),
    ("bounded", Account.PURE, 1, 13),
][: size("Spark oracle, runs")]
"""Relation, account, neighbours of one world (for a bounded relation the third is another unit under a new id), seed."""


def _shapes(account: Account) -> int:
    return len({**shapes(account), **quantile_shapes(account)})


@pytest.mark.slow
@pytest.mark.parametrize(("relation", "account", "neighbours", "seed"), RUNS)
def test_no_pair_of_neighbours_refutes_a_certificate(relation: str, account: Account, neighbours: int, seed: int) -> None:
    outcome = run_oracle(relation=relation, account=account, worlds=1, seed=seed, prepare=prepare_in_spark, neighbours_max=neighbours)
    assert outcome.faults == []
    assert outcome.breaches == []
    assert outcome.pairs == neighbours * _shapes(account)


@pytest.mark.soak("the oracle in `check` says itself how many pairs it has")
def test_the_runs_are_at_least_three_hundred_pairs() -> None:
    assert sum(neighbours * _shapes(account) for _, account, neighbours, _ in RUNS) >= 300
