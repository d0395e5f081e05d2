"""The sensitivity oracle on Spark: sources changed by one unit, prepared on Spark again, compared exactly with what is claimed."""

from __future__ import annotations

import pytest

from lapwing.audit.block_shapes import block_shapes, crossing_shapes
from lapwing.audit.block_worlds import BLOCKS_OF_TIME
from lapwing.audit.plan_shapes import Shape, shapes
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


QUARTERS = size("Spark oracle, quarters")


def _shapes(account: Account, run: int) -> dict[str, Shape]:
    """The shapes of a run: in ``check`` every fourth, another one in each run, since a statement on Spark takes half a second."""
    listed = sorted({**shapes(account), **quantile_shapes(account)}.items())
    return dict(item for number, item in enumerate(listed) if (number - run) % 4 < QUARTERS)


@pytest.mark.slow
@pytest.mark.parametrize("run", range(len(RUNS)), ids=lambda run: "-".join(map(str, RUNS[run][:2])))
def test_no_pair_of_neighbours_refutes_a_certificate(run: int) -> None:
    relation, account, neighbours, seed = RUNS[run]
    only = _shapes(account, run)
    outcome = run_oracle(
        relation=relation, account=account, worlds=1, seed=seed, only=only, prepare=prepare_in_spark, neighbours_max=neighbours
    )
    assert outcome.faults == []
    assert outcome.breaches == []
    assert outcome.pairs == neighbours * len(only) >= 10


@pytest.mark.soak("the oracle in `check` says itself how many pairs it has")
def test_the_runs_are_at_least_three_hundred_pairs() -> None:
    assert sum(neighbours * len(_shapes(account, run)) for run, (_, account, neighbours, _) in enumerate(RUNS)) >= 300


@pytest.mark.slow
def test_no_neighbour_of_one_block_refutes_a_certificate() -> None:
    """Those that read several ranges first, then a part of the others."""
    listed = [*crossing_shapes().items(), *sorted(block_shapes(Account.APPROXIMATE).items())[::8]]
    only = dict(listed[: size("Spark oracle of blocks, shapes")])
    neighbours = size("Spark oracle of blocks, neighbours")
    outcome = run_oracle(
        family=BLOCKS_OF_TIME,
        relation="bounded",
        account=Account.APPROXIMATE,
        worlds=1,
        seed=15,
        only=only,
        prepare=prepare_in_spark,
        neighbours_max=neighbours,
    )
    assert outcome.faults == []
    assert outcome.breaches == []
    assert outcome.pairs >= 6 * neighbours
